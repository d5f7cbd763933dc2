"""Messages of a reading: the topics, types and values of the estimator node."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("foxglove")

from test.energy.known_arm import ROBOT
from test.layouts.viewers import foxglove_paths, foxglove_topics
from test.sinks.foxglove.decoding import decoded
from test.sinks.live_readings import START, live_readings
from ur_energy_model.energy.topics import PARTS
from ur_energy_model.layouts.files import ArmTopics, layout_files
from ur_energy_model.sinks.foxglove_messages import ReadingMessages, source_status
from ur_energy_model.sinks.sink import ArmReading
from ur_energy_model.telemetry.bag.cdr import ERROR, OK
from ur_energy_model.telemetry.source import LinkStatus
from ur_energy_model.topics_and_services import live_topics

GOLDEN = Path(__file__).with_name("golden.json")
NOT_OF_READINGS = {"/energy/prediction", "/energy/optimized_trajectory"}
"""Topics that need a plan, which only the node gets."""


@pytest.fixture(scope="module")
def readings() -> list[ArmReading]:
    return list(live_readings(2.5))


def all_of(readings: list[ArmReading]) -> dict[str, list[Any]]:
    """Decoded messages by topic."""
    encoder, found = ReadingMessages(), dict[str, list[Any]]()
    for reading in readings:
        for messages in encoder.of_reading(reading):
            found.setdefault(messages.topic.name, []).extend(decoded(messages))
    return found


def golden_messages() -> dict[str, Any]:
    """What a reading at the end of a cycle becomes: types and decoded messages by topic."""
    reading = list(live_readings(1.1))[10]
    return {
        messages.topic.name: {
            "type": messages.topic.kind.name,
            "schema_encoding": messages.topic.kind.schema_encoding,
            "message_encoding": messages.topic.kind.message_encoding,
            "messages": decoded(messages),
        }
        for messages in ReadingMessages().of_reading(reading)
    }


def nearly(value: Any) -> Any:
    """Numbers may differ by rounding, and so may numbers in texts."""
    if isinstance(value, dict):
        return {key: nearly(each) for key, each in value.items()}
    if isinstance(value, list):
        return [nearly(each) for each in value]
    try:
        number = None if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return value
    return value if number is None else pytest.approx(number, rel=1e-4, abs=1e-6, nan_ok=True)


def numbers_of(value: Any) -> Any:
    """The same structure with texts that are numbers as numbers."""
    if isinstance(value, dict):
        return {key: numbers_of(each) for key, each in value.items()}
    if isinstance(value, list):
        return [numbers_of(each) for each in value]
    try:
        return value if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return value


def test_messages_are_the_recorded_ones() -> None:
    """Written by `python -m test.sinks.foxglove.write_golden`; read the difference before that."""
    golden = json.loads(GOLDEN.read_text())
    now = json.loads(json.dumps(golden_messages()))
    assert now.keys() == golden.keys()
    for topic, expected in golden.items():
        assert numbers_of(now[topic]) == nearly(expected), topic


def test_topics_and_types_are_those_of_the_node(readings: list[ArmReading]) -> None:
    encoder = ReadingMessages()
    types = {
        messages.topic.name: messages.topic.kind.name.replace("/msg/", "/")
        for reading in readings
        for messages in encoder.of_reading(reading)
    }
    node = {
        topic: kind
        for topic, kind in live_topics(ROBOT.joint_names).items()
        if topic not in NOT_OF_READINGS
    }
    own = {"/energy/markers": "foxglove.SceneUpdate", "/tf": "foxglove.FrameTransforms"}
    optional = {
        "/energy/joints": "control_msgs/DynamicJointState",
        "/robot_description": "std_msgs/String",
    }
    assert types == node | optional | own


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


def test_stamps_are_those_of_the_samples(readings: list[ArmReading]) -> None:
    found = all_of(readings[:1])
    stamp = {"sec": START // 10**9, "nanosec": readings[0].stamp % 10**9}
    assert found["/energy"][0]["header"]["stamp"] == stamp
    assert found["/energy/joints"][0]["header"]["stamp"] == stamp


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


def test_the_state_of_the_connection() -> None:
    assert source_status("arm-1", LinkStatus()).level == OK
    lost = source_status("arm-1", LinkStatus(connected=False, problem="no route", lost=7))
    assert (lost.level, lost.message, lost.values["samples_lost"]) == (ERROR, "no route", 7)
