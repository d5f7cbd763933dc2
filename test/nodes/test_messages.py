# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Messages of other nodes: plans as they are serialized, and the memory of huge messages."""

from __future__ import annotations

import os
import re
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builtin_interfaces.msg import Duration, Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from hypothesis import given
from hypothesis import strategies as st
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Header, String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from test.nodes.conftest import Cell
from ur_energy_model.errors import InputError
from ur_energy_model.nodes.logger_topics import LONGEST_LABEL, label_of
from ur_energy_model.nodes.memory import (
    OWN_SETTINGS,
    configure_middleware,
    give_back_memory,
)
from ur_energy_model.nodes.plan_messages import (
    LARGEST_MESSAGE,
    PlanMessage,
    header_of,
    read_plan,
)

FIELDS = ("positions", "velocities", "accelerations", "effort")


def trajectory(
    joints: int, points: int, fields: tuple[bool, ...], seed: int
) -> JointTrajectory:
    """Random points with these fields."""
    random = np.random.default_rng(seed)
    made = JointTrajectory(joint_names=[f"joint{'_' * k}" for k in range(joints)])
    made.header = Header(stamp=Time(sec=-5, nanosec=7), frame_id="b" * (seed % 9))
    for k in range(points):
        point = JointTrajectoryPoint(time_from_start=Duration(sec=k - 1, nanosec=k * 999))
        for field, present in zip(FIELDS, fields, strict=True):
            if present:
                setattr(point, field, random.normal(size=joints).tolist())
        made.points.append(point)
    return made


def assert_same(found: PlanMessage, message: JointTrajectory) -> None:
    """What was read is what rclpy reads; a stamp that is none has its largest nanoseconds."""
    assert found.header.frame_id == message.header.frame_id
    assert found.header.stamp.sec == message.header.stamp.sec
    assert found.header.stamp.nanosec == min(message.header.stamp.nanosec, 999_999_999)
    assert list(found.names) == list(message.joint_names)
    times = [each.time_from_start for each in message.points]
    np.testing.assert_allclose(
        found.time, [t.sec + 1e-9 * t.nanosec for t in times], atol=1e-9
    )
    read = (found.q, found.qd, found.qdd)
    for field, values in zip(FIELDS, read, strict=False):
        rows = [list(getattr(each, field)) for each in message.points]
        if values is None:
            assert not all(rows)
        else:
            np.testing.assert_array_equal(values, np.array(rows))


@given(
    joints=st.integers(0, 9),
    points=st.integers(0, 6),
    fields=st.tuples(st.just(True), st.booleans(), st.booleans(), st.booleans()),
    seed=st.integers(0, 10_000),
)
def test_a_serialized_plan_is_read_as_rclpy_reads_it(
    joints: int, points: int, fields: tuple[bool, ...], seed: int
) -> None:
    message = trajectory(joints, points, fields, seed)
    if not joints or not points:
        with pytest.raises(InputError, match=r"no joints|no points"):
            read_plan(serialize_message(message))
        return
    if points > 2 and seed % 2:
        message.points[1].velocities = []  # a point without: no velocities at all
    assert_same(read_plan(serialize_message(message)), message)


@given(data=st.data())
def test_a_damaged_plan_is_refused_or_read_as_rclpy_reads_it(data: st.DataObject) -> None:
    whole = serialize_message(trajectory(6, 3, (True, True, False, False), 3))
    changed = bytearray(whole[: data.draw(st.integers(0, len(whole)), label="length")])
    for _ in range(data.draw(st.integers(0, 3), label="changes")):
        if changed:
            place = data.draw(st.integers(0, len(changed) - 1), label="place")
            changed[place] = data.draw(st.integers(0, 255), label="byte")
    message = bytes(changed)
    assert isinstance(header_of(message), Header)
    try:
        found = read_plan(message)
    except InputError:
        return
    assert_same(found, deserialize_message(message, JointTrajectory))


def hostile_plans() -> dict[str, bytes]:
    """Plans of several megabytes, or that state that they are."""
    joints = [f"joint{k}" for k in range(6)]
    empty = JointTrajectory(joint_names=joints, points=[JointTrajectoryPoint()] * 300_000)
    one = serialize_message(JointTrajectory(joint_names=joints))
    return {
        "points without values": serialize_message(empty),
        "names": serialize_message(JointTrajectory(joint_names=["a"] * 900_000)),
        "a name": serialize_message(JointTrajectory(joint_names=["a" * 8_000_000])),
        "a count of points": one[:-4] + struct.pack("<I", 2**32 - 1),
        "too large": bytes(LARGEST_MESSAGE + 1),
    }


def test_refusals_of_large_plans_take_little_memory() -> None:
    """As Python objects, the points of such a message take 500 MB."""
    for name, message in hostile_plans().items():
        tracemalloc.start()
        with pytest.raises(InputError):
            read_plan(message)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert most < 5 * len(message) + 1_000_000, name


@pytest.mark.parametrize("text", ["", "a", "wide \N{SNOWMAN}", "x" * LONGEST_LABEL])
def test_a_label_is_read(text: str) -> None:
    assert label_of(serialize_message(String(data=text))) == text


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\0\1\0\0",
        b"\0\1\0\0\xff\xff\xff\xff",
        b"\0\1\0\0\2\0\0\0\xff\0",
        serialize_message(String(data="x" * (LONGEST_LABEL + 1))),
    ],
)
def test_a_label_that_is_none_is_refused(message: bytes) -> None:
    with pytest.raises(InputError):
        label_of(message)


def test_settings_of_the_middleware_that_somebody_has_made_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours: dict[str, str] = {}
    assert configure_middleware(ours, tmp_path)
    assert Path(ours["FASTRTPS_DEFAULT_PROFILES_FILE"]).is_file()
    given_before: list[dict[str, str]] = [{name: "their own"} for name in OWN_SETTINGS]
    given_before.append({"RMW_IMPLEMENTATION": "rmw_cyclonedds_cpp"})
    for theirs in given_before:
        before = dict(theirs)
        assert not configure_middleware(theirs, tmp_path)
        assert theirs == before
    (tmp_path / "DEFAULT_FASTDDS_PROFILES.xml").touch()
    assert not configure_middleware({}, tmp_path)
    monkeypatch.chdir(tmp_path)
    assert not configure_middleware({}, Path())


def test_a_node_starts_where_its_folder_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "deleted"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    for name in (*OWN_SETTINGS, "RMW_IMPLEMENTATION"):
        monkeypatch.setenv(name, "")
    give_back_memory()
    assert os.environ["RMW_FASTRTPS_USE_QOS_FROM_XML"] == "1"
    # other tests have the usual settings
    monkeypatch.delenv("RMW_FASTRTPS_USE_QOS_FROM_XML")


HUGE = 30_000_000  # size of a message [bytes]
KEPT = 30.0
"""Most memory that a node may have more than before, after huge messages on several topics [MB]."""


def huge_status() -> DiagnosticArray:
    return DiagnosticArray(status=[DiagnosticStatus(message="x" * HUGE)])


def memory_of(process: int, figure: str = "VmRSS") -> float:
    """Resident memory of a process [MB]; its peak where the figure is VmHWM."""
    text = Path(f"/proc/{process}/status").read_text()
    (kilobytes,) = re.findall(rf"{figure}:\s+(\d+) kB", text)
    return int(kilobytes) / 1024.0


def begin_peak(process: int) -> None:
    """The peak of the resident memory of a process begins anew."""
    Path(f"/proc/{process}/clear_refs").write_text("5")


LOGGER_TOPICS: dict[str, Callable[[], Any]] = {
    "/energy": lambda: JointState(position=np.zeros(HUGE // 8)),
    "/energy/summary": huge_status,
    "/energy/cycle": huge_status,
    "/energy/prediction": huge_status,
    "/logger/mark": lambda: String(data="x" * HUGE),
}
ESTIMATOR_TOPICS: dict[str, Callable[[], Any]] = {
    "/joint_states": lambda: JointState(position=np.zeros(HUGE // 8)),
    "/energy/planned_trajectory": lambda: JointTrajectory(joint_names=["x" * HUGE]),
}


@pytest.mark.parametrize(
    ("name", "made", "parameters"),
    [
        ("logger", LOGGER_TOPICS, {"robot_ip": "127.0.0.1", "bag_directory": "bags"}),
        (
            "estimator",
            ESTIMATOR_TOPICS,
            {"source": "joint_states", "robot_model": "ur5e"},
        ),
    ],
)
def test_the_memory_of_huge_messages_goes_back(
    cell: Cell, name: str, made: dict[str, Callable[[], Any]], parameters: dict[str, Any]
) -> None:
    """A subscription of the middleware would keep a buffer of this size for each topic."""
    observer = cell.observer
    observer.subscribe("/diagnostics", "diagnostic_msgs/DiagnosticArray")
    process = cell.start_process(name, **parameters)
    observer.next_message("/diagnostics")
    publishers = {}
    for topic, message in made.items():
        publishers[topic] = observer.node.create_publisher(type(message()), topic, 10)
        observer.wait(publishers[topic].get_subscription_count, f"subscriber of {topic}")
    before = memory_of(process.pid)
    begin_peak(process.pid)
    for topic, message in made.items():
        publishers[topic].publish(message())
    arrived = before + 1e-6 * HUGE / 2
    observer.wait(
        lambda: memory_of(process.pid, "VmHWM") > arrived, "memory of huge messages"
    )
    observer.wait(lambda: memory_of(process.pid) < before + KEPT, "memory that goes back")
    if name == "logger":
        # The subscription to /energy takes best effort: a huge message may be lost on its
        # way.
        status = observer.status_that(
            "energy topics", lambda s: s["refused"] in ("3", "4"), "the refused messages"
        )
        assert status["level"] == "1"
    code, output = cell.stop(process)
    assert code == 0
    assert "Traceback" not in output
