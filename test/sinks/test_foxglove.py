"""Foxglove: the server and its clients, the MCAP file, their messages and the arm in 3D."""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
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
from test.layouts.viewers import foxglove_paths, foxglove_topics
from test.sinks.foxglove_client import FoxgloveClient, decode, decoded
from test.sinks.peers import NODE_PACKAGES, needs_node_package, until
from test.sinks.readings import live_readings
from ur_energy_model.energy.energy_bag import CYCLE
from ur_energy_model.energy.topics import PARTS
from ur_energy_model.errors import InputError
from ur_energy_model.layouts.files import ArmTopics, layout_files
from ur_energy_model.model.robots import RobotDescription, available_robots, load_robot
from ur_energy_model.sinks import foxglove as origin_gate
from ur_energy_model.sinks import foxglove_messages as module
from ur_energy_model.sinks import sink as sinks
from ur_energy_model.sinks.foxglove import FoxgloveDelivery
from ur_energy_model.sinks.foxglove_messages import (
    ArmScene,
    McapDelivery,
    ReadingMessages,
    foxglove_type,
    mcap_sink,
)
from ur_energy_model.sinks.options import Address, SinkOptions
from ur_energy_model.sinks.sink import ArmReading
from ur_energy_model.telemetry.bag.mcap_writer import McapWriter

ANY_PORT = Address("127.0.0.1", 0)


TOTAL = "/energy/total/power"


@pytest.fixture(scope="module")
def readings() -> list[ArmReading]:
    return list(live_readings(2.5))


@pytest.fixture
def delivery() -> Iterator[FoxgloveDelivery]:
    made = FoxgloveDelivery(ANY_PORT)
    made.open()
    yield made
    made.close()


def test_a_client_gets_every_message_as_encoded(
    delivery: FoxgloveDelivery, readings: list[ArmReading]
) -> None:
    delivery.deliver(readings[0])
    client = FoxgloveClient(delivery.address.port)
    encoder = ReadingMessages()
    topics = {messages.topic.name for messages in encoder.of_reading(readings[0])}
    topics.discard("/robot_description")
    client.subscribe(*topics)
    until(lambda: delivery.clients == 1)
    for reading in readings[1:4]:
        delivery.deliver(reading)
        expected = {
            (messages.topic.name, int(stamp), payload.tobytes())
            for messages in encoder.of_reading(reading)
            for stamp, payload in zip(messages.stamp, messages.payload, strict=True)
        }
        got = [client.message() for _ in expected]
        assert {(each.topic, each.time, each.payload) for each in got} == expected
    client.close()


def test_a_late_client_gets_the_urdf_and_the_last_cycle(
    delivery: FoxgloveDelivery, readings: list[ArmReading]
) -> None:
    for reading in readings[:12]:
        delivery.deliver(reading)
    client = FoxgloveClient(delivery.address.port)
    client.subscribe("/robot_description", "/energy/cycle")
    until(lambda: delivery.clients == 1)
    delivery.deliver(readings[12])
    late = {message.topic: message for message in (client.message(), client.message())}
    assert b"<robot name=" in late["/robot_description"].payload
    assert late["/energy/cycle"].time == readings[10].stamp
    client.close()


def test_clients_come_and_go(delivery: FoxgloveDelivery, readings: list[ArmReading]) -> None:
    delivery.deliver(readings[0])
    clients = [FoxgloveClient(delivery.address.port) for _ in range(3)]
    for client in clients:
        client.subscribe(TOTAL)
    until(lambda: delivery.clients == 3)
    clients[0].kill()
    clients[1].close()
    until(lambda: delivery.clients == 1)
    again = FoxgloveClient(delivery.address.port)
    again.subscribe(TOTAL)
    until(lambda: delivery.clients == 2)
    delivery.deliver(readings[1])
    assert again.message().time == clients[2].message().time == readings[1].stamp
    for client in (clients[2], again):
        client.close()


def test_a_client_that_reads_nothing_delays_nothing(
    delivery: FoxgloveDelivery, readings: list[ArmReading]
) -> None:
    """The server drops what it cannot send; 100 s of readings are far more than sockets hold."""
    delivery.deliver(readings[0])
    slow, other = (FoxgloveClient(delivery.address.port) for _ in range(2))
    slow.subscribe("/energy/markers", "/energy/joints")
    other.subscribe(TOTAL)
    until(lambda: delivery.clients == 2)
    start = time.process_time()
    for _ in range(50):
        for reading in readings:
            delivery.deliver(reading)
    assert time.process_time() - start < 20.0
    other.until_time(readings[-1].stamp)
    for client in (slow, other):
        client.kill()


@pytest.mark.parametrize(
    ("origin", "allowed", "status"),
    [
        (None, (), 101),  # a program that is no page
        ("file://", (), 101),  # desktop applications
        ("app://foxglove", (), 101),
        ("https://app.foxglove.dev", (), 101),
        ("http://localhost:8080", (), 101),
        ("http://127.0.0.1:8080", (), 101),
        ("http://[::1]:8080", (), 101),
        ("https://evil.example", (), 403),
        ("http://evil.example:8765", (), 403),
        ("null", (), 403),
        ("http://app.foxglove.dev", (), 403),
        ("https://foxglove.dev.evil.example", (), 403),
        ("http://localhost.evil.example", (), 403),
        ("http://192.0.2.1", (), 403),
        ("http://dashboards.example", ("http://dashboards.example",), 101),
        ("https://evil.example", ("http://dashboards.example",), 403),
        ("https://evil.example", ("*",), 101),
    ],
)
def test_pages_of_foreign_sites_are_refused(
    readings: list[ArmReading], origin: str | None, allowed: tuple[str, ...], status: int
) -> None:
    delivery = FoxgloveDelivery(ANY_PORT, allowed)
    try:
        delivery.deliver(readings[0])
        lines = [
            "GET / HTTP/1.1",
            f"Host: evil.example:{delivery.address.port}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
            "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Protocol: foxglove.sdk.v1",
            *([] if origin is None else [f"oRIGIN: {origin}"]),
        ]
        address = ("127.0.0.1", delivery.address.port)
        with socket.create_connection(address, timeout=20) as client:
            client.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
            assert client.recv(1000).split(b" ")[1] == str(status).encode()
    finally:
        delivery.close()


def test_clients_that_send_no_request_are_left_and_others_served(
    delivery: FoxgloveDelivery, readings: list[ArmReading], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(origin_gate, "DEADLINE", 0.3)
    delivery.deliver(readings[0])
    address = ("127.0.0.1", delivery.address.port)
    with ExitStack() as held:
        slow = [
            held.enter_context(socket.create_connection(address, timeout=20))
            for _ in range(origin_gate.MOST_CLIENTS)
        ]
        for each in slow:
            assert each.recv(10) == b""
        FoxgloveClient(delivery.address.port).close()


READER = Path(__file__).with_name("read_messages.cjs")


@needs_node_package("@foxglove/ws-protocol")
@needs_node_package("ws")
def test_the_client_of_foxglove_gets_every_message() -> None:
    readings = list(live_readings(1.0))
    encoder = ReadingMessages()
    encoded = [encoder.of_reading(reading) for reading in readings]
    kinds = {each.topic.name: each.topic.kind for each in encoded[0]}
    kinds[CYCLE.name] = CYCLE.kind
    expected = Counter(
        (each.topic.name, str(stamp), payload.tobytes().hex())
        for messages in encoded[1:9]
        for each in messages
        for stamp, payload in zip(each.stamp.tolist(), each.payload, strict=True)
    )
    urdf = 1  # sent again to the client that subscribes late
    delivery = FoxgloveDelivery(Address("127.0.0.1", 0))
    delivery.open()
    delivery.deliver(readings[0])
    command = ["node", str(READER), str(delivery.address.port), str(expected.total() + urdf)]
    environment = {**os.environ, "NODE_PATH": str(NODE_PACKAGES)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as process:
        try:
            until(lambda: delivery.subscriptions == len(kinds))
            for reading in readings[1:9]:
                delivery.deliver(reading)
            output, _ = process.communicate(timeout=60)
        finally:
            process.kill()
            delivery.close()
    lines = [json.loads(line) for line in output.splitlines()]
    assert lines[0] == {"server": "ur_energy_model"}
    channels = {line["topic"]: line for line in lines if "schemaName" in line}
    assert channels.keys() == kinds.keys()
    for topic, kind in kinds.items():
        assert channels[topic]["schemaName"] == kind.name
        assert channels[topic]["schemaEncoding"] == kind.schema_encoding
        assert channels[topic]["encoding"] == kind.message_encoding
    got = Counter(
        (line["topic"], line["time"], line["payload"]) for line in lines if "payload" in line
    )
    late = got - expected
    assert got - late == expected
    assert [topic for topic, _, _ in late] == ["/robot_description"]


WRITER = """
import sys, time
from pathlib import Path
from test.sinks.readings import live_readings
from ur_energy_model.sinks.foxglove_messages import mcap_sink
from ur_energy_model.sinks.options import SinkOptions
sink = mcap_sink(sys.argv[1], SinkOptions())
for reading in live_readings(6.0):
    while sink.status.waiting:
        time.sleep(0.001)
    sink.offer(reading)
while sink.status.waiting:
    time.sleep(0.001)
print("written", flush=True)
time.sleep(60)
"""
"""Writes 6 s of readings, and never closes the file."""


def expected_messages(readings: list[ArmReading]) -> Counter[tuple[str, int, bytes]]:
    encoder = ReadingMessages()
    return Counter(
        (messages.topic.name, int(stamp), payload.tobytes())
        for reading in readings
        for messages in encoder.of_reading(reading)
        for stamp, payload in zip(messages.stamp, messages.payload, strict=True)
    )


def messages_in(path: Path) -> Counter[tuple[str, int, bytes]]:
    """All messages, by the mcap package."""
    with path.open("rb") as file:
        return Counter(
            (channel.topic, message.log_time, message.data)
            for _, channel, message in make_reader(file).iter_messages()
        )


def written(path: Path, readings: list[ArmReading]) -> McapDelivery:
    """A delivery that has opened its file and got readings."""
    delivery = McapDelivery(path)
    delivery.open()
    for reading in readings:
        delivery.deliver(reading)
    return delivery


def test_the_file_has_what_the_server_sends(tmp_path: Path, readings: list[ArmReading]) -> None:
    sink = mcap_sink(str(tmp_path / "live.mcap"), SinkOptions())
    for reading in readings:
        sink.offer(reading)
    sink.close()
    assert sink.status.delivered == len(readings)
    assert messages_in(tmp_path / "live.mcap") == expected_messages(readings)


def test_a_growing_file_is_complete(tmp_path: Path, readings: list[ArmReading]) -> None:
    path = tmp_path / "live.mcap"
    delivery = written(path, readings)
    found, everything = messages_in(path), expected_messages(readings)
    assert found <= everything
    assert {time for _, time, _ in found} >= {reading.stamp for reading in readings[:15]}
    delivery.close()


def test_a_killed_process_loses_the_last_second_at_most(tmp_path: Path) -> None:
    path = tmp_path / "live.mcap"
    command = [sys.executable, "-c", WRITER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "written\n"
        os.kill(process.pid, signal.SIGKILL)
    times = sorted({time for _, time, _ in messages_in(path)})
    everything = [reading.stamp for reading in live_readings(6.0)]
    assert times == everything[: len(times)]
    assert everything[-1] - times[-1] <= 1.1e9


def test_what_exists_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "live.mcap"
    path.write_text("precious")
    with pytest.raises(InputError, match="exists already"):
        mcap_sink(str(path), SinkOptions())
    with pytest.raises(InputError, match="not a folder"):
        mcap_sink(str(tmp_path / "nowhere" / "live.mcap"), SinkOptions())
    assert path.read_text() == "precious"


def test_long_recordings_continue_in_further_files(
    tmp_path: Path, readings: list[ArmReading], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_CHUNKS", 1)
    (tmp_path / "live_1.mcap").write_text("precious")
    written(tmp_path / "live.mcap", readings).close()
    files = sorted(tmp_path.glob("live*.mcap"))
    assert [file.name for file in files][:4] == [
        "live.mcap",
        "live_1.mcap",
        "live_2.mcap",
        "live_3.mcap",
    ]
    parts = [messages_in(file) for file in files if file.name != "live_1.mcap"]
    first = next(iter(parts))
    urdf = {key for key in first if key[0] == "/robot_description"}
    assert len(urdf) == 1
    every = {key for part in parts for key in part if key[0] == "/energy/total/power"}
    assert len(every) == len(readings)
    assert all("/robot_description" in {topic for topic, _, _ in part} for part in parts if part)


def full_disk(*_: object) -> None:
    raise OSError(errno.ENOSPC, "no space left")


def test_after_a_failure_of_the_disk_another_file_follows(
    tmp_path: Path, readings: list[ArmReading], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sinks, "FIRST_PAUSE", 0.01)
    sink = mcap_sink(str(tmp_path / "live.mcap"), SinkOptions())
    until(lambda: sink.status.problem is None)
    (tmp_path / "live.mcap").rename(tmp_path / "moved.mcap")
    (tmp_path / "live.mcap").write_text("of somebody else")
    with monkeypatch.context() as broken:
        broken.setattr(McapWriter, "write_chunk", full_disk)
        sink.offer(readings[0])
        until(lambda: sink.status.dropped == 1)
    until(lambda: sink.status.problem is None)
    for reading in readings[1:]:
        sink.offer(reading)
    sink.close()
    assert (tmp_path / "live.mcap").read_text() == "of somebody else"
    assert messages_in(tmp_path / "live_1.mcap") == expected_messages(readings[1:])


def all_of(readings: list[ArmReading]) -> dict[str, list[Any]]:
    """Decoded messages by topic."""
    encoder, found = ReadingMessages(), dict[str, list[Any]]()
    for reading in readings:
        for messages in encoder.of_reading(reading):
            found.setdefault(messages.topic.name, []).extend(decoded(messages))
    return found


def test_the_shipped_layout_finds_everything(readings: list[ArmReading]) -> None:
    layout = layout_files(ArmTopics(tuple(ROBOT.joint_names)))["foxglove/energy.json"]
    found = all_of(readings)
    assert foxglove_topics(layout) <= found.keys()
    for path in foxglove_paths(layout):
        topic, _, rest = path.partition(".")
        field, _, index = rest.rstrip("]").partition("[")
        assert np.isfinite(found[topic][-1][field][int(index)])


def test_values_are_those_of_the_reading(readings: list[ArmReading]) -> None:
    found = all_of(readings)
    for name in readings[0].numbers():
        expected = [reading.numbers()[name] for reading in readings]
        assert [each["data"] for each in found[f"/{name}"]] == expected
    joints = found["/energy/joints"][-1]
    assert joints["joint_names"] == [*ROBOT.joint_names, *PARTS, "total"]
    total = joints["interface_values"][-1]
    values = dict(zip(total["interface_names"], total["values"], strict=True))
    numbers = readings[-1].numbers()
    assert values["electrical_power"] == numbers["energy/total/power"]
    assert values["electrical_energy"] == numbers["energy/total/energy"]


def test_rates(readings: list[ArmReading]) -> None:
    """25 readings in 2.5 s: texts once a second, cycles as they end, the URDF once."""
    encoder = ReadingMessages()
    counts = Counter[str]()
    for reading in readings:
        for messages in encoder.of_reading(reading):
            counts[messages.topic.name] += len(messages.stamp)
            assert set(messages.stamp.tolist()) == {reading.stamp}
    every = {name for name, count in counts.items() if count == len(readings)}
    assert {name: count for name, count in counts.items() if name not in every} == {
        "/energy/summary": 3,
        "/diagnostics": 3,
        "/energy/cycle": 2,
        "/robot_description": 1,
    }


def test_an_arm_without_description_or_angles_is_not_drawn(readings: list[ArmReading]) -> None:
    drawn = {"/tf", "/energy/markers"}
    unknown = all_of([replace(readings[0], robot=None)])
    assert not (drawn | {"/robot_description"}) & unknown.keys()
    blind = replace(readings[0], snapshot=replace(readings[0].snapshot, q=None))
    assert not drawn & all_of([blind]).keys()
    assert "/robot_description" in all_of([blind])


def test_a_new_model_appears_in_the_summary_and_repeats_no_urdf(
    readings: list[ArmReading],
) -> None:
    found = all_of([readings[0], replace(readings[10], model="learned.yaml")])
    assert len(found["/robot_description"]) == 1
    assert "learned.yaml" in json.dumps(found["/energy/summary"][-1])


def test_another_arm_has_its_own_topics_and_urdf(readings: list[ArmReading]) -> None:
    (other,) = list(live_readings(0.1, prefix="left_"))[:1]
    found = all_of([readings[0], replace(other, robot=replace(ROBOT))])
    assert len(found["/robot_description"]) == 2
    assert 'link name="left_base"' in found["/robot_description"][1]["data"]
    assert "/energy/left_elbow_joint/power" in found
    assert found["/tf"][1]["transforms"][0]["parent_frame_id"] == "left_base_link"


STAMP = 1_750_000_000_250_000_000


UR5E = load_robot("ur5e")


def scene_of(
    robot: RobotDescription, q: Any, power: Any, prefix: str = ""
) -> tuple[ArmScene, list[dict[str, Any]], list[dict[str, Any]]]:
    """The scene, its transforms and its entities."""
    scene = ArmScene(robot, tuple(prefix + joint for joint in robot.joint_names))
    frames, update = scene.messages(STAMP, np.asarray(q), np.asarray(power), 123.4)
    transforms = decode(foxglove_type(fox.FrameTransforms), frames)["transforms"]
    entities = decode(foxglove_type(fox.SceneUpdate), update)["entities"]
    return scene, transforms, entities


def pose(transform: dict[str, Any]) -> np.ndarray:
    out = np.eye(4)
    place, turn = transform["translation"], transform["rotation"]
    out[:3, 3] = [place.get(axis, 0.0) for axis in "xyz"]
    out[:3, :3] = Rotation.from_quat([turn.get(axis, 0.0) for axis in "xyzw"]).as_matrix()
    return out


@pytest.mark.parametrize("name", available_robots())
def test_frames_are_those_of_the_urdf(name: str) -> None:
    """Pinocchio reads the URDF; the transforms are chained from the root."""
    robot = load_robot(name)
    q = np.random.default_rng(3).uniform(-2.0, 2.0, robot.dof)
    scene, transforms, _ = scene_of(robot, q, np.zeros(robot.dof), "left_")
    model = pin.buildModelFromXML(scene.urdf)
    data = model.createData()
    pin.framesForwardKinematics(model, data, q)
    world = {"left_base_link": np.eye(4)}
    for transform in transforms:
        child = transform["child_frame_id"]
        world[child] = world[transform["parent_frame_id"]] @ pose(transform)
        expected = data.oMf[model.getFrameId(child)].homogeneous
        assert world[child] == pytest.approx(expected, abs=1e-6)
    assert len(world) == robot.dof + 3


def test_every_link_has_the_colour_of_its_joint() -> None:
    power = [-150.0, 0.0, 50.0, 100.0, 900.0, 10.0]
    _, _, entities = scene_of(UR5E, np.zeros(6), power)
    base, *links = entities
    assert base["texts"][0]["text"] == "123 W"
    assert [link["id"] for link in links] == list(UR5E.joint_names)
    paints = [
        [round(link["spheres"][0]["color"].get(part, 0.0), 6) for part in "rgb"] for link in links
    ]
    assert paints[:5] == [[0, 0, 1], [0, 1, 0], [1, 1, 0], [1, 0, 0], [1, 0, 0]]
    for link in links:
        assert all(
            each["color"] == link["spheres"][0]["color"] for each in link.get("cylinders", [])
        )
    sizes = [link["spheres"][0]["size"]["x"] for link in links]
    assert sizes[1] < sizes[2] < sizes[3] == sizes[4]
