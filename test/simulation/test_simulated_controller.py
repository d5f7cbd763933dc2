# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

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

from test.simulation.conftest import make_box
from test.torture.scripts import PORTS, junk
from ur_energy_model.errors import ControllerError
from ur_energy_model.simulation.client_interfaces import (
    DashboardSession,
    realtime_packet,
)
from ur_energy_model.simulation.control_box import ControlBox
from ur_energy_model.simulation.simulated_controller import (
    REALTIME_PORT,
    SimulatedController,
    Ticker,
)
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
    # the stand-in puts cycle / 1000 into each value of a tick
    samples = clients[0].samples(50)
    cycle = (samples["timestamp"] - 60.0) * 500.0
    for name in ("actual_q", "actual_current"):
        fraction = samples[name] % 1.0 * 1000.0
        np.testing.assert_allclose(fraction, np.tile(cycle % 1000.0, (6, 1)).T, atol=1e-6)
    with socket.create_connection((server.host, REALTIME_PORT), timeout=240) as script:
        script.sendall(b'textmsg("hello")\n')
        for client in clients:
            packets = (client.next_packet() for _ in range(500))
            message = next(p for p in packets if p.kind == PacketType.TEXT_MESSAGE)
            assert b"hello" in message.payload
    with pytest.raises(ControllerError, match="30004"):
        SimulatedController(server.box.arm, server.host, server.box.identity)


def test_junk_on_a_port_does_not_stop_the_others(
    server: SimulatedController, connect: Connect
) -> None:
    good = connect(server)
    assert good.start("timestamp")
    for port in PORTS:
        kinds = [*junk(random.Random(port))]
        for data in kinds[:12] + kinds[12::60]:
            with (
                socket.create_connection((server.host, port), timeout=240) as client,
                suppress(OSError),  # the server may close at once
            ):
                client.sendall(data)
    assert np.allclose(np.diff(good.samples(50)["timestamp"]), 0.002, atol=1e-6)


def test_clients_that_do_not_read_or_reset_are_removed(
    serve: Serve, connect: Connect
) -> None:
    server = serve(speed=20.0)
    deaf, gone, client = (connect(server) for _ in range(3))
    deaf.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    for each in (deaf, gone, client):
        assert each.start(*NAMES)
    gone.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    gone.socket.close()
    deadline = time.monotonic() + 60.0
    while server.connections > 1 and time.monotonic() < deadline:
        client.samples(500)
    assert server.connections == 1
    assert len(client.samples(10)) == 10


PLACES = {
    "timestamp": 0, "target_q": 1, "target_current": 19, "target_moment": 25, "actual_q": 31,
    "actual_current": 43, "actual_TCP_pose": 55, "actual_TCP_force": 67, "joint_temperatures": 86,
    "robot_mode": 94, "joint_mode": 95, "safety_mode": 101, "actual_main_voltage": 121,
    "actual_robot_current": 123, "actual_joint_voltage": 124, "runtime_state": 131,
}  # fmt: skip


def test_realtime_packet() -> None:
    for version, size in (((5, 1, 0), 1108), ((5, 9, 0), 1140), ((3, 15, 8), 1220)):
        of_version = make_box("ur5e" if version[0] > 3 else "ur5", version)
        packet = realtime_packet(of_version)
        assert struct.unpack_from(">i", packet) == (size,) == (len(packet),)
        values = np.frombuffer(packet[4:], ">f8")
        for name, place in PLACES.items():
            expected = np.ravel(of_version.values[name])
            np.testing.assert_array_equal(
                values[place : place + len(expected)], expected, name
            )


DIALOGUE = r"""
PolyscopeVersion: URSoftware 5\.11\.1\.\d+ \(.*\)
get serial number: 20000000007
is in remote control: true
ROBOTMODE: Robotmode: RUNNING
safetystatus: Safetystatus: NORMAL
programState: STOPPED hold\.urp
get loaded program: Loaded program: hold\.urp
popup Some text: showing popup
close safety popup: closing safety popup
set operational mode manual: Operational mode MANUAL is set
setUserRole CHIEF: Failed setting user role: CHIEF
load picture.png: File not found: picture\.png
make coffee: could not understand: "make coffee"
power off: Powering off
robotmode: Robotmode: POWER_OFF
play: Failed to execute: play
brake release: Brake releasing
robotmode: Robotmode: RUNNING
pause: Failed to execute: pause
play: Starting program
running: Program running: true
pause: Pausing program
play: Starting program
load /programs/next.urp: Loading program: /programs/next\.urp
programState: STOPPED next\.urp
unlock protective stop: Protective stop releasing
restart safety: Restarting safety
quit: Disconnected
"""
"""Commands, and answers as ur_rtde 1.6.5 and UR's C++ client library match them."""


def test_dialogue_with_the_dashboard_server(box: ControlBox) -> None:
    dashboard = DashboardSession(box)
    for line in DIALOGUE.strip().splitlines():
        command, _, pattern = line.partition(": ")
        answer = dashboard.receive(f"{command}\r\n".encode()).decode().strip()
        assert re.fullmatch(pattern, answer), line
    assert dashboard.finished
    assert dashboard.receive(b"x" * 100_000) == b""
    assert dashboard.receive(b"robot") == b""  # lines may arrive in pieces
    assert dashboard.receive(b"mode\n") == b"Robotmode: POWER_OFF\n"


def test_late_ticks_are_caught_up_and_counted() -> None:
    now = [100.0]
    ticker = Ticker(0.002, lambda: now[0])
    for _ in range(1000):
        now[0] += 0.0031 if ticker.ticks < 300 else 0.0005  # slow at first, then fast
        while ticker.remaining() <= 0.0:
            ticker.serve()
    assert ticker.ticks == int((now[0] - 100.0) / 0.002 + 1e-9) + 1
    ticker = Ticker(0.002, lambda: now[0])
    begin = now[0]
    for k in range(1000):
        now[0] = begin + 0.002 * k + (0.0005 if k % 100 == 99 else 0.0001)
        ticker.serve()
    assert ticker.rate == pytest.approx(500.0, rel=1e-3)
    assert ticker.lateness(0.5) == pytest.approx(1e-4, rel=0.08)
    assert ticker.lateness_max == pytest.approx(5e-4, rel=1e-6)
