"""The bag of energy topics of a recording: the values and times of the live estimator."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rosbags.rosbag2 import Reader
from rosbags.typesys import Stores, get_typestore

from test.energy.known_arm import ROBOT, electrical, known_model, motion, total
from test.telemetry.bag.bag_files import write_bag
from ur_energy_model.energy.energy_bag import write_energy_bag
from ur_energy_model.energy.topics import energy_names
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.topics_and_services import live_topics

MESSAGES: Any = get_typestore(Stores.ROS2_JAZZY)
EPOCH = 1_700_000_000_000_000_000
SECONDS = 4.0


def stamped(telemetry: Telemetry) -> Telemetry:
    stamp = EPOCH + np.rint((telemetry.time - telemetry.time[0]) * 1e9).astype(np.int64)
    return replace(telemetry, stamp=stamp)


def written(folder: Path, telemetry: Telemetry, rate: float = 50.0) -> dict[str, list[Any]]:
    """Messages of the energy bag of a recording, with their log times, by topic."""
    recording = write_bag(folder / "recording", telemetry)
    write_energy_bag(known_model(), recording, folder / "energy", model_path="m.yaml", rate=rate)
    found = defaultdict(list)
    with Reader(folder / "energy") as reader:
        for connection, time, raw in reader.messages():
            message = MESSAGES.deserialize_cdr(raw, connection.msgtype)
            found[connection.topic].append((time, message))
    return found


def test_topics_are_those_of_the_node(tmp_path: Path) -> None:
    written(tmp_path, stamped(motion(SECONDS)))
    with Reader(tmp_path / "energy") as reader:
        types = {each.topic: each.msgtype.replace("/msg/", "/") for each in reader.connections}
    not_in_bags = {
        *("/energy/prediction", "/energy/optimized_trajectory", "/energy/markers"),
        *("/energy/cycle", "/diagnostics"),
    }
    live = live_topics(ROBOT.joint_names)
    assert types == {topic: kind for topic, kind in live.items() if topic not in not_in_bags}


def test_values_are_the_integrals_at_the_times_of_samples(tmp_path: Path) -> None:
    telemetry = stamped(motion(SECONDS))
    found = written(tmp_path, telemetry)
    stamps = np.asarray(telemetry.stamp)
    rows = [np.flatnonzero(stamps == time)[0] for time, _ in found["/energy"]]
    assert np.diff(rows)[:-1] == pytest.approx(10, abs=1)  # the last one takes the rest
    joints = np.stack([electrical(telemetry)[:, j] for j in range(6)])
    powers = dict(zip(ROBOT.joint_names, joints, strict=True)) | {"total": total(telemetry)}
    for i, (time, message) in zip(rows, found["/energy"], strict=True):
        header = message.header.stamp
        assert header.sec * 10**9 + header.nanosec == time
        assert tuple(message.name) == energy_names(ROBOT.joint_names)
        for name, position in zip(message.name, message.position, strict=True):
            if name in powers:
                energy = np.trapezoid(powers[name][: i + 1], telemetry.time[: i + 1])
                assert position == pytest.approx(energy, abs=1e-6)
    assert rows[-1] == len(telemetry) - 1


def test_the_summary_comes_once_a_second(tmp_path: Path) -> None:
    found = written(tmp_path, stamped(motion(SECONDS)))["/energy/summary"]
    assert len(found) == pytest.approx(SECONDS, abs=1)
    names = [status.name for status in found[-1][1].status]
    parts = [*ROBOT.joint_names, "total", "bus", "state", "counters"]
    assert names == [f"energy: {part}" for part in parts]
    counters = {pair.key: pair.value for pair in found[-1][1].status[-1].values}
    assert counters["model"] == "m.yaml"


def test_cycles_of_the_program_are_in_the_bag(tmp_path: Path) -> None:
    telemetry = stamped(motion(6.6))
    playing = np.where(telemetry.time % 2.0 < 0.5, 2.0, 1.0)
    columns = {**telemetry.columns, "runtime_state": playing}
    found = written(tmp_path, replace(telemetry, columns=columns))["/energy/cycle"]
    assert len(found) >= 2
    values = {pair.key: pair.value for pair in found[0][1].status[0].values}
    assert float(values["duration"]) == pytest.approx(2.0)


def test_a_recording_without_host_stamps_has_controller_times(tmp_path: Path) -> None:
    telemetry = motion(SECONDS)
    found = written(tmp_path, telemetry)["/energy"]
    assert found[-1][0] == pytest.approx(telemetry.time[-1] * 1e9, abs=1e3)
