"""The ports of the simulated controller: clients, streams, dashboard, ticks."""

from __future__ import annotations

import random
import re
import socket
import struct
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np
import pytest

from test.simulation.conftest import ask as ask_control_port
from test.simulation.conftest import make_box
from test.torture.scripts import PORTS, junk
from ur_energy_model.errors import ControllerError
from ur_energy_model.simulation.client_interfaces import (
    DashboardSession,
    realtime_packet,
    state_message,
    version_message,
)
from ur_energy_model.simulation.commands import SafetyCommand
from ur_energy_model.simulation.control_box import ControlBox
from ur_energy_model.simulation.simulated_controller import (
    PRIMARY_PORT,
    REALTIME_PORT,
    SECONDARY_PORT,
    SimulatedController,
    Ticker,
)
from ur_energy_model.simulation.tcp_server import ClientSession, TcpServer
from ur_energy_model.telemetry.rtde.connection import PORT as RTDE_PORT
from ur_energy_model.telemetry.rtde.protocol import PacketType

if TYPE_CHECKING:
    from test.simulation.conftest import Connect, Serve

NAMES = ("timestamp", "actual_q", "actual_current")
RESET = struct.pack("ii", 1, 0)
"""Linger options with which closing a socket resets its connection."""


def test_clients_of_equal_and_of_other_recipes(
    server: SimulatedController, connect: Connect
) -> None:
    clients = [connect(server) for _ in range(3)]
    assert all(client.start(*NAMES) for client in clients[:2])
    assert clients[2].start("timestamp", "robot_mode")
    for client in clients:
        steps = np.diff(client.samples(60)["timestamp"])
        np.testing.assert_allclose(steps, 0.002, atol=1e-9)
    samples = clients[0].samples(50)  # the stand-in puts cycle / 1000 into each value of a tick
    cycle = (samples["timestamp"] - 60.0) * 500.0
    for name in ("actual_q", "actual_current"):
        fraction = samples[name] % 1.0 * 1000.0
        np.testing.assert_allclose(fraction, np.tile(cycle % 1000.0, (6, 1)).T, atol=1e-6)
    with socket.create_connection((server.host, REALTIME_PORT), timeout=10.0) as script:
        script.sendall(b'textmsg("hello")\n')
        for client in clients:
            packets = (client.next_packet() for _ in range(500))
            message = next(p for p in packets if p.kind == PacketType.TEXT_MESSAGE)
            assert b"hello" in message.payload
    with pytest.raises(ControllerError, match="30004"):
        SimulatedController(server.box.arm, server.host, server.box.identity)


def test_clients_that_do_not_read_reset_or_send_rubbish_are_removed(
    serve: Serve, connect: Connect
) -> None:
    server = serve(speed=20.0)
    deaf, gone, client = (connect(server) for _ in range(3))
    deaf.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    for each in (deaf, gone, client):
        assert each.start(*NAMES)
    gone.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    gone.socket.close()
    with socket.create_connection((server.host, RTDE_PORT), timeout=10.0) as rubbish:
        rubbish.sendall(b"\x00\x00\x00 GET / HTTP/1.1\r\n\r\n")
        assert rubbish.recv(100) == b""
    deadline = time.monotonic() + 60.0
    while server.connections > 1 and time.monotonic() < deadline:
        client.samples(500)
    assert server.connections == 1
    assert len(client.samples(10)) == 10


def test_junk_on_a_port_does_not_stop_the_others(
    server: SimulatedController, connect: Connect
) -> None:
    good = connect(server)
    assert good.start("timestamp")
    for port in PORTS:
        kinds = [*junk(random.Random(port))]
        for data in kinds[:12] + kinds[12::60]:
            with socket.create_connection((server.host, port), timeout=10.0) as client:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                with suppress(OSError):  # the server may close at once
                    client.sendall(data)
    assert ask_control_port(server, "clear")[0].startswith("ok")
    assert np.allclose(np.diff(good.samples(50)["timestamp"]), 0.002, atol=1e-6)


def test_what_a_client_sent_before_it_left_is_read(fresh_host) -> None:
    received, host, sent = bytearray(), fresh_host(), b"x" * 10_000 + b"\n"

    class Session(ClientSession):
        def receive(self, data: bytes) -> bytes:
            received.extend(data)
            return b""

    server = TcpServer()
    with socket.create_connection((host, server.listen(host, 0, Session)), 10.0) as client:
        client.sendall(sent)
    server.serve(10.0)  # accepts a client that is gone already
    for _ in range(3):  # the first of these is refused, the others fail
        for connection in server.connections:
            connection.send(b"state")
    deadline = time.monotonic() + 10.0
    while server.connections and time.monotonic() < deadline:
        server.serve(0.1)
    server.close()
    assert received == sent


def packets(data: bytes) -> dict[int, bytes]:
    """Bodies of consecutive packets by type."""
    bodies = {}
    while data:
        size, kind = struct.unpack_from(">iB", data)
        assert size >= 5
        bodies[kind] = data[5:size]
        data = data[size:]
    return bodies


def test_messages_of_the_client_interfaces(box: ControlBox) -> None:
    (body,) = packets(state_message(box, configuration=True)).values()
    parts = packets(body)
    mode = struct.unpack(">Q7?BBdddB", parts[0])
    assert mode[0] == round(1e6 * box.values["timestamp"])
    assert mode[1:9] == (True, True, True, False, False, False, False, 7)
    assert len(parts[1]) == 6 * 41
    for joint in range(6):
        values = struct.unpack_from(">dddffffB", parts[1], 41 * joint)
        assert values[0] == box.values["actual_q"][joint]
        assert values[3] == pytest.approx(box.values["actual_current"][joint])
    pose = np.frombuffer(parts[4], ">f8")
    np.testing.assert_array_equal(pose[:6], box.values["actual_TCP_pose"])
    lengths = np.frombuffer(parts[5][24:-4], ">f8").reshape(4, 6)
    np.testing.assert_array_equal(lengths[1], box.arm.robot.a[:6])
    limits = np.frombuffer(parts[6][:96], ">f8").reshape(6, 2)
    np.testing.assert_array_equal(limits[:, 1], box.arm.robot.max_position)
    (body,) = packets(version_message(box)).values()
    name = body[11 : 11 + body[10]]
    assert name == b"URControl"
    assert struct.unpack_from(">BBii", body, 11 + len(name)) == (5, 11, 1, 0)


PLACES = {
    "timestamp": 0, "target_q": 1, "target_current": 19, "target_moment": 25, "actual_q": 31,
    "actual_current": 43, "actual_TCP_pose": 55, "actual_TCP_force": 67, "joint_temperatures": 86,
    "robot_mode": 94, "joint_mode": 95, "safety_mode": 101, "actual_main_voltage": 121,
    "actual_robot_current": 123, "actual_joint_voltage": 124, "runtime_state": 131,
}  # fmt: skip


@pytest.mark.parametrize(
    ("version", "size"),
    [((5, 1, 0), 1108), ((5, 4, 0), 1116), ((5, 9, 0), 1140), ((5, 23, 0), 1220),
     ((3, 15, 8), 1220)],
)  # fmt: skip
def test_realtime_packet(version: tuple[int, ...], size: int) -> None:
    box = make_box("ur5e" if version[0] > 3 else "ur5", version)
    packet = realtime_packet(box)
    assert struct.unpack_from(">i", packet) == (size,) == (len(packet),)
    values = np.frombuffer(packet[4:], ">f8")
    for name, place in PLACES.items():
        expected = np.ravel(box.values[name])
        np.testing.assert_array_equal(values[place : place + len(expected)], expected, err_msg=name)


def test_rates_of_the_streams(server: SimulatedController) -> None:
    for port, rate in ((PRIMARY_PORT, 10), (SECONDARY_PORT, 10), (REALTIME_PORT, 500)):
        with socket.create_connection((server.host, port), timeout=10.0) as client:
            stream, times = client.makefile("rb"), []
            while len(times) < 4:
                (size,) = struct.unpack(">i", stream.read(4))
                body = stream.read(size - 4)
                if port == REALTIME_PORT:
                    times.append(struct.unpack_from(">d", body)[0])
                elif body[0] == 16:
                    times.append(struct.unpack_from(">Q", body, 6)[0] / 1e6)
        np.testing.assert_allclose(np.diff(times)[1:], 1.0 / rate, atol=1e-5)


DIALOGUE = r"""
PolyscopeVersion: URSoftware 5\.11\.1\.\d+ \(.*\)
version: 5\.11\.1\.0
get serial number: 20000000007
get robot model: UR5
is in remote control: true
ROBOTMODE: Robotmode: RUNNING
safetymode: Safetymode: NORMAL
safetystatus: Safetystatus: NORMAL
programState: STOPPED hold\.urp
running: Program running: false
get loaded program: Loaded program: hold\.urp
isProgramSaved: true hold\.urp
popup Some text: showing popup
close popup: closing popup
close safety popup: closing safety popup
addToLog Some text: Added log message
saveLog: Log saved to disk
get operational mode: NONE
set operational mode manual: Operational mode MANUAL is set
get operational mode: MANUAL
clear operational mode: No longer controlling the operational mode.*
getUserRole: NONE
setUserRole CHIEF: Failed setting user role: CHIEF
setUserRole PROGRAMMER: Setting user role: PROGRAMMER
generate flight report controller: Flight Report generated with id:.*
generate support file .: Completed successfully:.*
load picture.png: File not found: picture\.png
load installation default.installation: Loading installation: default\.installation
make coffee: could not understand: "make coffee"
power off: Powering off
robotmode: Robotmode: POWER_OFF
play: Failed to execute: play
power on: Powering on
robotmode: Robotmode: IDLE
brake release: Brake releasing
robotmode: Robotmode: RUNNING
pause: Failed to execute: pause
play: Starting program
running: Program running: true
programState: PLAYING hold\.urp
pause: Pausing program
programState: PAUSED hold\.urp
play: Starting program
stop: Stopped
play: Starting program
load /programs/next.urp: Loading program: /programs/next\.urp
programState: STOPPED next\.urp
unlock protective stop: Protective stop releasing
restart safety: Restarting safety
robotmode: Robotmode: POWER_OFF
shutdown: Shutting down
quit: Disconnected
"""
"""Commands, and answers as ur_rtde 1.6.5 and UR's C++ client library match them."""


def test_dialogue_with_the_dashboard_server(box: ControlBox) -> None:
    dashboard = DashboardSession(box)
    assert dashboard.greeting() == b"Connected: Universal Robots Dashboard Server\n"
    for line in DIALOGUE.strip().splitlines():
        command, _, pattern = line.partition(": ")
        answer = dashboard.receive(f"{command}\r\n".encode()).decode().strip()
        assert re.fullmatch(pattern, answer), line
    assert dashboard.finished
    box.arm.command(SafetyCommand.PROTECTIVE_STOP)
    assert dashboard.receive(b"safety") == b""  # lines may arrive in pieces
    assert dashboard.receive(b"mode\nplay\n").split(b"\n")[:2] == [
        b"Safetymode: PROTECTIVE_STOP",
        b"Failed to execute: play",
    ]
    assert dashboard.receive(b"x" * 100_000) == b""
    assert dashboard.receive(b"robotmode\n") == b"Robotmode: POWER_OFF\n"


def test_late_ticks_are_caught_up_and_counted() -> None:
    now = [100.0]
    ticker = Ticker(0.002, lambda: now[0])
    for _ in range(1000):
        now[0] += 0.0031 if ticker.ticks < 300 else 0.0005  # slow at first, then fast
        while ticker.remaining() <= 0.0:
            ticker.serve()
    assert ticker.ticks == int((now[0] - 100.0) / 0.002 + 1e-9) + 1
    ticker, begin = Ticker(0.002, lambda: now[0]), now[0]
    for k in range(1000):
        now[0] = begin + 0.002 * k + (0.0005 if k % 100 == 99 else 0.0001)
        ticker.serve()
    assert ticker.rate == pytest.approx(500.0, rel=1e-3)
    assert ticker.lateness(0.5) == pytest.approx(1e-4, rel=0.08)
    assert ticker.lateness_max == pytest.approx(5e-4, rel=1e-6)
