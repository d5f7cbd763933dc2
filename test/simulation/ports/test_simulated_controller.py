"""The server on a loopback address: several clients, streams, clients that do not read."""

from __future__ import annotations

import socket
import struct
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from ur_energy_model.errors import ControllerError
from ur_energy_model.simulation.client_interfaces import (
    realtime_packet,
    state_message,
    version_message,
)
from ur_energy_model.simulation.control_box import ControlBox, SimulatedIdentity
from ur_energy_model.simulation.simulated_controller import (
    PRIMARY_PORT,
    REALTIME_PORT,
    SECONDARY_PORT,
    SimulatedController,
    Ticker,
)
from ur_energy_model.telemetry.rtde.connection import PORT as RTDE_PORT
from ur_energy_model.telemetry.rtde.protocol import PacketType

if TYPE_CHECKING:
    from test.simulation.conftest import Connect, Serve

NAMES = ("timestamp", "actual_q", "actual_current")


def test_clients_of_equal_and_of_other_recipes(serve: Serve, connect: Connect) -> None:
    server = serve()
    clients = [connect(server) for _ in range(4)]
    for client in clients[:3]:
        assert client.start(*NAMES)
    assert clients[3].start("timestamp", "robot_mode")
    for client in clients:
        steps = np.diff(client.samples(100)["timestamp"])
        np.testing.assert_allclose(steps, 0.002, atol=1e-9)


def test_values_of_one_package_belong_to_one_tick(serve: Serve, connect: Connect) -> None:
    client = connect(serve())
    client.start(*NAMES)
    samples = client.samples(50)
    cycle = (samples["timestamp"] - 60.0) * 500.0
    for name in ("actual_q", "actual_current"):
        fraction = samples[name] % 1.0 * 1000.0  # the stand-in puts cycle / 1000 into each value
        np.testing.assert_allclose(fraction, np.tile(cycle % 1000.0, (6, 1)).T, atol=1e-6)


def test_a_client_that_does_not_read_is_closed_and_others_do_not_notice(
    serve: Serve, connect: Connect
) -> None:
    server = serve(speed=20.0)
    deaf, client = connect(server), connect(server)
    deaf.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    assert deaf.start(*NAMES)
    assert client.start(*NAMES)
    deadline = time.monotonic() + 20.0
    while server.connections > 1 and time.monotonic() < deadline:
        client.samples(500)
    assert server.connections == 1
    assert len(client.samples(10)) == 10


def test_a_client_that_disconnects_is_removed(serve: Serve, connect: Connect) -> None:
    server = serve()
    client = connect(server)
    client.start(*NAMES)
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()  # with a reset
    other = connect(server)
    assert other.start(*NAMES)
    other.samples(20)
    assert server.connections == 1


def test_invalid_data_closes_only_its_connection(serve: Serve, connect: Connect) -> None:
    server = serve()
    client = connect(server)
    client.start(*NAMES)
    with socket.create_connection((server.host, RTDE_PORT), timeout=3.0) as rubbish:
        rubbish.sendall(b"\x00\x00\x00 GET / HTTP/1.1\r\n\r\n")
        assert rubbish.recv(100) == b""
    assert len(client.samples(10)) == 10


def test_an_address_in_use_is_refused(serve: Serve, arm: Any) -> None:
    server = serve()
    with pytest.raises(ControllerError, match="30004"):
        SimulatedController(arm, server.host, server.box.identity)


def test_text_messages_reach_every_rtde_client(serve: Serve, connect: Connect) -> None:
    server = serve()
    clients = [connect(server) for _ in range(2)]
    for client in clients:
        client.start(*NAMES)
    with socket.create_connection((server.host, REALTIME_PORT), timeout=3.0) as script:
        script.sendall(b'textmsg("hello")\n')
        for client in clients:
            packets = (client.next_packet() for _ in range(500))
            message = next(p for p in packets if p.kind == PacketType.TEXT_MESSAGE)
            assert b"hello" in message.payload


# Streams


def packets(data: bytes) -> dict[int, bytes]:
    """Bodies of consecutive packets by type."""
    bodies = {}
    while data:
        size, kind = struct.unpack_from(">iB", data)
        assert size >= 5
        bodies[kind] = data[5:size]
        data = data[size:]
    return bodies


def test_state_message(box: ControlBox) -> None:
    (body,) = packets(state_message(box)).values()
    parts = packets(body)
    mode = struct.unpack(">Q7?BBdddB", parts[0])
    assert mode[0] == round(1e6 * box.values["timestamp"])
    assert mode[1:8] == (True, True, True, False, False, False, False)
    assert mode[8] == 7
    assert len(parts[1]) == 6 * 41
    for joint in range(6):
        values = struct.unpack_from(">dddffffB", parts[1], 41 * joint)
        assert values[0] == box.values["actual_q"][joint]
        assert values[1] == box.values["target_q"][joint]
        assert values[3] == pytest.approx(box.values["actual_current"][joint])
    pose = np.frombuffer(parts[4], ">f8")
    np.testing.assert_array_equal(pose[:6], box.values["actual_TCP_pose"])


def test_first_state_message_has_kinematics_and_limits(box: ControlBox) -> None:
    (body,) = packets(state_message(box, configuration=True)).values()
    parts = packets(body)
    assert len(parts[5]) == 24 + 4 * 48 + 4
    lengths = np.frombuffer(parts[5][24:-4], ">f8").reshape(4, 6)
    np.testing.assert_array_equal(lengths[1], box.arm.robot.a[:6])
    limits = np.frombuffer(parts[6][:96], ">f8").reshape(6, 2)
    np.testing.assert_array_equal(limits[:, 1], box.arm.robot.max_position)


def test_version_message(box: ControlBox) -> None:
    (body,) = packets(version_message(box)).values()
    assert body[9] == 3
    name = body[11 : 11 + body[10]]
    assert name == b"URControl"
    assert struct.unpack_from(">BBii", body, 11 + len(name)) == (5, 11, 1, 0)


@pytest.mark.parametrize(("fixture", "size"), [("box", 1220), ("cb3_box", 1220)])
def test_realtime_packet(fixture: str, size: int, request: pytest.FixtureRequest) -> None:
    box: ControlBox = request.getfixturevalue(fixture)
    packet = realtime_packet(box)
    assert len(packet) == size
    assert struct.unpack_from(">i", packet) == (size,)
    values = np.frombuffer(packet[4:], ">f8")
    for place, name in (
        (0, "timestamp"),
        (1, "target_q"),
        (7, "target_qd"),
        (13, "target_qdd"),
        (19, "target_current"),
        (25, "target_moment"),
        (31, "actual_q"),
        (37, "actual_qd"),
        (43, "actual_current"),
        (55, "actual_TCP_pose"),
        (61, "actual_TCP_speed"),
        (67, "actual_TCP_force"),
        (86, "joint_temperatures"),
        (94, "robot_mode"),
        (95, "joint_mode"),
        (101, "safety_mode"),
        (121, "actual_main_voltage"),
        (122, "actual_robot_voltage"),
        (123, "actual_robot_current"),
        (124, "actual_joint_voltage"),
        (131, "runtime_state"),
    ):
        expected = np.ravel(box.values[name])
        np.testing.assert_array_equal(values[place : place + len(expected)], expected, err_msg=name)


@pytest.mark.parametrize(
    ("version", "size"),
    [((5, 1, 0), 1108), ((5, 4, 0), 1116), ((5, 9, 0), 1140), ((5, 23, 0), 1220)],
)
def test_realtime_packet_has_the_length_of_its_version(
    arm: Any, version: tuple[int, ...], size: int
) -> None:
    box = ControlBox(arm, SimulatedIdentity.for_robot(arm.robot, version, 0, "hold"))
    assert len(realtime_packet(box)) == size


@pytest.mark.parametrize(("port", "rate"), [(PRIMARY_PORT, 10), (SECONDARY_PORT, 10)])
def test_state_ports_stream_ten_times_a_second(serve: Serve, port: int, rate: int) -> None:
    server = serve(speed=10.0)
    with socket.create_connection((server.host, port), timeout=3.0) as client:
        stream = client.makefile("rb")
        times = []
        while len(times) < 6:
            size, kind = struct.unpack(">iB", stream.read(5))
            body = stream.read(size - 5)
            if kind == 16:
                times.append(struct.unpack_from(">Q", body, 5)[0] / 1e6)
    np.testing.assert_allclose(np.diff(times)[1:], 1.0 / rate, atol=1e-5)


def test_realtime_port_streams_every_cycle(serve: Serve) -> None:
    with socket.create_connection((serve().host, REALTIME_PORT), timeout=3.0) as client:
        stream = client.makefile("rb")
        times = [np.frombuffer(stream.read(1220)[4:12], ">f8")[0] for _ in range(50)]
    np.testing.assert_allclose(np.diff(times), 0.002, atol=1e-9)


# Ticks


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_ticks_that_are_late_are_caught_up() -> None:
    clock = Clock()
    ticker = Ticker(0.002, clock)
    served = 0
    for _ in range(1000):
        clock.now += 0.0031 if served < 300 else 0.0005  # slow at first, then fast
        while ticker.remaining() <= 0.0:
            ticker.serve()
            served += 1
    elapsed = clock.now - 100.0
    assert served == int(elapsed / 0.002 + 1e-9) + 1


def test_punctuality() -> None:
    clock = Clock()
    ticker = Ticker(0.002, clock)
    for k in range(1000):
        clock.now = 100.0 + 0.002 * k + (0.0005 if k % 100 == 99 else 0.0001)
        ticker.serve()
    assert ticker.ticks == 1000
    assert ticker.rate == pytest.approx(500.0, rel=1e-3)
    assert ticker.lateness(0.5) == pytest.approx(1e-4, rel=0.08)
    assert ticker.lateness_max == pytest.approx(5e-4, rel=1e-6)
