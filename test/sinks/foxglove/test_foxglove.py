# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Foxglove: the server and its clients, the MCAP file, their messages and the arm in 3D."""

from __future__ import annotations

import errno
import json
import os
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from foxglove import messages as fox
from mcap.reader import make_reader
from scipy.spatial.transform import Rotation

from test.energy.known_arm import ROBOT
from test.sinks.foxglove.foxglove_client import FoxgloveClient, decode
from test.sinks.peers import NODE_PACKAGES, needs_node_package, until
from test.sinks.readings import live_readings
from ur_energy_model.energy.energy_bag import CYCLE
from ur_energy_model.energy.topics import MODEL_PARTS
from ur_energy_model.errors import InputError
from ur_energy_model.model.robots import load_robot
from ur_energy_model.rooms import Given
from ur_energy_model.sinks import sink as sinks
from ur_energy_model.sinks.foxglove import sink as module
from ur_energy_model.sinks.foxglove.messages import ReadingMessages, foxglove_type
from ur_energy_model.sinks.foxglove.scene import ArmScene
from ur_energy_model.sinks.foxglove.sink import FoxgloveDelivery, McapDelivery, mcap_sink
from ur_energy_model.sinks.options import Address
from ur_energy_model.sinks.sink import ArmReading
from ur_energy_model.telemetry.bag.mcap_writer import McapWriter

Encoded = Counter[tuple[str, int, bytes]]  # messages as topic, time [ns] and payload
READINGS = list(live_readings(2.5))
TOTAL = "/energy/total/power"


def encoded(
    readings: Iterable[ArmReading], encoder: ReadingMessages | None = None
) -> Encoded:
    encoder = ReadingMessages() if encoder is None else encoder
    return Counter(
        (messages.topic.name, int(stamp), payload.tobytes())
        for reading in readings
        for messages in encoder.of_reading(reading)
        for stamp, payload in zip(messages.stamp, messages.payload, strict=True)
    )


@pytest.fixture
def delivery() -> Iterator[FoxgloveDelivery]:
    """A server that has got the first reading."""
    made = FoxgloveDelivery(Address("127.0.0.1", 0))
    made.open()
    try:
        made.deliver(READINGS[0])
        yield made
    finally:
        made.close()


def test_clients_come_late_and_go_and_get_every_message(
    delivery: FoxgloveDelivery,
) -> None:
    clients = [FoxgloveClient(delivery.address.port) for _ in range(4)]
    every, *others = clients
    encoder = ReadingMessages()
    every.subscribe(
        *{name for name, _, _ in encoded(READINGS[:1], encoder)} - {"/robot_description"}
    )
    for client in others:
        client.subscribe(TOTAL)
    until(lambda: delivery.clients == 4)
    others[0].kill()
    others[1].close()
    until(lambda: delivery.clients == 2)
    for reading in READINGS[1:12]:
        expected = encoded([reading], encoder)
        delivery.deliver(reading)
        wanted = {each for each in expected if each[0] != "/energy/cycle"}
        got = [every.message() for _ in wanted]
        assert {(each.topic, each.time, each.payload) for each in got} == wanted
        assert others[2].message().time == reading.stamp
    late = FoxgloveClient(delivery.address.port)
    late.subscribe("/robot_description", "/energy/cycle")
    until(lambda: delivery.clients == 3)
    delivery.deliver(READINGS[12])
    found = {message.topic: message for message in (late.message(), late.message())}
    assert b"<robot name=" in found["/robot_description"].payload
    assert found["/energy/cycle"].time == READINGS[10].stamp
    for client in (every, others[2], late):
        client.close()


def test_a_client_that_reads_nothing_delays_nothing(delivery: FoxgloveDelivery) -> None:
    """The server drops what it cannot send; 50 s of readings are far more than sockets hold."""
    slow, other = (FoxgloveClient(delivery.address.port) for _ in range(2))
    slow.subscribe("/energy/markers", "/energy/joints")
    other.subscribe(TOTAL)
    until(lambda: delivery.clients == 2)
    start = time.process_time()
    for reading in READINGS * 20:
        delivery.deliver(reading)
    assert time.process_time() - start < 20.0
    other.until_time(READINGS[-1].stamp)
    for client in (slow, other):
        client.kill()


HANDSHAKE = (
    "GET / HTTP/1.1\r\nHost: {host}\r\nOrigin: {origin}\r\nUpgrade: websocket\r\n"
    "Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: foxglove.sdk.v1\r\n\r\n"
)
REQUESTS = (
    *(
        HANDSHAKE.format(host="a", origin=each).encode()
        for each in ("http://[", r"http://a\@b")
    ),
    HANDSHAKE.format(host="[", origin="null").encode(),
    b"GET / HTTP/1.1\r\nHost: [\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"Cookie: a\r\n" * 50_000,
    b"\0" * 100_000,
    b"",
)


def test_hostile_requests_leave_the_server_as_it_is(
    delivery: FoxgloveDelivery, capfd: pytest.CaptureFixture[str]
) -> None:
    """Also many connections that say nothing."""
    address = ("127.0.0.1", delivery.address.port)
    with ExitStack() as held:
        for request in (*REQUESTS, *(b"" for _ in range(200))):
            client = held.enter_context(socket.create_connection(address, timeout=240))
            with suppress(OSError):  # it may be refused before it is complete
                client.sendall(request)
        good = FoxgloveClient(delivery.address.port)
        good.subscribe(TOTAL)
        until(lambda: delivery.clients == 1)
        delivery.deliver(READINGS[1])
        assert good.message().time == READINGS[1].stamp
        good.close()
    assert capfd.readouterr() == ("", "")


@needs_node_package("@foxglove/ws-protocol")
@needs_node_package("ws")
def test_the_client_of_foxglove_gets_every_message(delivery: FoxgloveDelivery) -> None:
    encoder = ReadingMessages()
    topics = {each.topic.name for each in encoder.of_reading(READINGS[0])} | {CYCLE.name}
    expected = encoded(READINGS[1:9], encoder)
    reader = Path(__file__).with_name("read_messages.cjs")
    # The URDF is sent again to the client that subscribes late.
    command = ["node", str(reader), str(delivery.address.port), str(expected.total() + 1)]
    environment = {**os.environ, "NODE_PATH": str(NODE_PACKAGES)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, env=environment, text=True
    ) as process:
        try:
            until(lambda: delivery.subscriptions.total() == len(topics))
            for reading in READINGS[1:9]:
                delivery.deliver(reading)
            output, _ = process.communicate(timeout=240)
        finally:
            process.kill()
    lines = [json.loads(line) for line in output.splitlines()]
    got: Encoded = Counter(
        (line["topic"], int(line["time"]), bytes.fromhex(line["payload"]))
        for line in lines
    )
    late = got - expected
    assert got - late == expected
    assert [topic for topic, _, _ in late] == ["/robot_description"]


# The MCAP file.


def messages_in(path: Path) -> Encoded:
    """All messages, by the mcap package."""
    with path.open("rb") as file:
        return Counter(
            (channel.topic, message.log_time, message.data)
            for _, channel, message in make_reader(file).iter_messages()
        )


def test_the_file_has_what_the_server_sends_and_is_always_complete(
    tmp_path: Path,
) -> None:
    """Without the last second at most: what a killed process leaves."""
    path = tmp_path / "live.mcap"
    delivery = McapDelivery(path)
    delivery.open()
    for reading in READINGS:
        delivery.deliver(reading)
    times = sorted({time for _, time, _ in messages_in(path)})
    everything = [reading.stamp for reading in READINGS]
    assert times == everything[: len(times)]
    assert everything[-1] - times[-1] <= 1.1e9
    delivery.close()
    assert messages_in(path) == encoded(READINGS)


def test_files_are_never_overwritten_and_long_recordings_continue_in_further_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor after a failure of the disk."""
    monkeypatch.setattr(module, "MOST_CHUNKS", 1)
    monkeypatch.setattr(sinks, "FIRST_PAUSE", 0.01)
    existing = tmp_path / "live_1.mcap"
    existing.write_text("precious")
    for wrong in (existing, tmp_path / "nowhere" / "live.mcap"):
        with pytest.raises(InputError):
            mcap_sink(str(wrong), Given())
    sink = mcap_sink(str(tmp_path / "live.mcap"), Given())
    until(lambda: sink.status.problem is None)
    (tmp_path / "live.mcap").rename(tmp_path / "moved.mcap")
    (tmp_path / "live.mcap").write_text("precious")

    def full_disk(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    with monkeypatch.context() as broken:
        broken.setattr(McapWriter, "write_chunk", full_disk)
        sink.offer(READINGS[0])
        until(lambda: sink.status.dropped == 1)
    until(lambda: sink.status.problem is None)
    for reading in READINGS[1:]:
        sink.offer(reading)
    until(lambda: sink.status.delivered == len(READINGS) - 1)
    sink.close()
    assert existing.read_text() == (tmp_path / "live.mcap").read_text() == "precious"
    parts = [messages_in(file) for file in sorted(tmp_path.glob("live_[2-9]*.mcap"))]
    assert len(parts) > 2
    assert (
        len({key for part in parts for key in part if key[0] == TOTAL})
        == len(READINGS) - 1
    )
    assert all(
        "/robot_description" in {topic for topic, _, _ in part} for part in parts if part
    )


# The messages.


def all_of(*readings: ArmReading) -> dict[str, list[Any]]:
    """Decoded messages by topic."""
    encoder = ReadingMessages()
    found = dict[str, list[Any]]()
    for reading in readings:
        for messages in encoder.of_reading(reading):
            assert set(messages.stamp.tolist()) == {reading.stamp}
            (payload,) = messages.payload
            decoded = decode(messages.topic.kind, payload.tobytes())
            found.setdefault(messages.topic.name, []).append(decoded)
    return found


def test_values_and_rates() -> None:
    """25 readings in 2.5 s: texts once a second, cycles as they end, the URDF once."""
    found = all_of(*READINGS)
    for name in READINGS[0].numbers():
        expected = [reading.numbers()[name] for reading in READINGS]
        assert [each["data"] for each in found[f"/{name}"]] == expected
    joints = found["/energy/joints"][-1]
    names = joints["joint_names"]
    assert names == [*ROBOT.joint_names, *MODEL_PARTS, "total", "unexplained", "model"]
    total = joints["interface_values"][names.index("total")]
    values = dict(zip(total["interface_names"], total["values"], strict=True))
    numbers = READINGS[-1].numbers()
    assert values["electrical_power"] == numbers["energy/total/power"]
    counts = {
        name: len(each) for name, each in found.items() if len(each) < len(READINGS)
    }
    assert counts == {
        "/energy/summary": 3,
        "/diagnostics": 3,
        "/energy/cycle": 2,
        "/robot_description": 1,
    }


def test_other_arms_and_models() -> None:
    first = READINGS[0]
    drawn = {"/tf", "/energy/markers"}
    assert (
        not (drawn | {"/robot_description"}) & all_of(replace(first, robot=None)).keys()
    )
    blind = all_of(replace(first, snapshot=replace(first.snapshot, q=None)))
    assert not drawn & blind.keys()
    assert "/robot_description" in blind
    other = next(live_readings(0.1, prefix="left_"))
    found = all_of(first, replace(other, robot=replace(ROBOT)))
    assert len(found["/robot_description"]) == 2
    assert 'link name="left_base"' in found["/robot_description"][1]["data"]
    assert "/energy/left_elbow_joint/power" in found
    assert found["/tf"][1]["transforms"][0]["parent_frame_id"] == "left_base_link"


def pose(transform: dict[str, Any]) -> np.ndarray:
    out = np.eye(4)
    place = transform["translation"]
    turn = transform["rotation"]
    out[:3, 3] = [place.get(axis, 0.0) for axis in "xyz"]
    out[:3, :3] = Rotation.from_quat([turn.get(axis, 0.0) for axis in "xyzw"]).as_matrix()
    return out


@pytest.mark.parametrize("name", ["ur3e", "ur20"])
def test_frames_are_those_of_the_urdf_and_links_have_the_colour_of_their_joint(
    name: str,
) -> None:
    """Pinocchio reads the URDF; the transforms are chained from the root."""
    robot = load_robot(name)
    q = np.random.default_rng(3).uniform(-2.0, 2.0, robot.dof)
    power = np.array([-150.0, 0.0, 50.0, 100.0, 900.0, 10.0])
    scene = ArmScene(robot, tuple("left_" + joint for joint in robot.joint_names))
    frames, update = scene.messages(1_750_000_000_250_000_000, q, power, 123.4)
    model = pin.buildModelFromXML(scene.urdf)
    data = model.createData()
    pin.framesForwardKinematics(model, data, q)
    world = {"left_base_link": np.eye(4)}
    for transform in decode(foxglove_type(fox.FrameTransforms), frames)["transforms"]:
        child = transform["child_frame_id"]
        world[child] = world[transform["parent_frame_id"]] @ pose(transform)
        expected = data.oMf[model.getFrameId(child)].homogeneous
        assert world[child] == pytest.approx(expected, abs=1e-6)
    assert len(world) == robot.dof + 3
    base, *links = decode(foxglove_type(fox.SceneUpdate), update)["entities"]
    assert base["texts"][0]["text"] == "123 W"
    colours = [link["spheres"][0]["color"] for link in links]
    paints = [[round(each.get(part, 0.0), 6) for part in "rgb"] for each in colours]
    assert paints[:5] == [[0, 0, 1], [0, 1, 0], [1, 1, 0], [1, 0, 0], [1, 0, 0]]
