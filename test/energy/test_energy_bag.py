# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

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

MESSAGES: Any = get_typestore(Stores.ROS2_JAZZY)
EPOCH = 1_700_000_000_000_000_000
SECONDS = 6.6
Found = dict[str, list[Any]]


def written(folder: Path, telemetry: Telemetry) -> Found:
    """Messages of the energy bag of a recording, with their log times, by topic."""
    recording = write_bag(folder / "recording", telemetry)
    write_energy_bag(known_model(), recording, folder / "energy", model_path="m.yaml")
    found: Found = defaultdict(list)
    with Reader(folder / "energy") as reader:
        for connection, time, raw in reader.messages():
            message = MESSAGES.deserialize_cdr(raw, connection.msgtype)
            found[connection.topic].append((time, message))
    return found


@pytest.fixture(scope="module")
def bag(tmp_path_factory: pytest.TempPathFactory) -> tuple[Telemetry, Found]:
    telemetry = motion(SECONDS)
    stamp = EPOCH + np.rint((telemetry.time - telemetry.time[0]) * 1e9).astype(np.int64)
    telemetry = replace(telemetry, stamp=stamp)
    return telemetry, written(tmp_path_factory.mktemp("bag"), telemetry)


def test_values_are_the_integrals_at_the_times_of_samples(
    bag: tuple[Telemetry, Found],
) -> None:
    telemetry, found = bag
    stamps = np.asarray(telemetry.stamp)
    rows = [np.flatnonzero(stamps == time)[0] for time, _ in found["/energy"]]
    assert np.diff(rows)[:-1] == pytest.approx(10, abs=1)  # the last one takes the rest
    assert rows[-1] == len(telemetry) - 1
    powers = np.column_stack([electrical(telemetry), total(telemetry)])
    steps = np.diff(telemetry.time)[:, None]
    energy = np.cumsum(0.5 * steps * (powers[1:] + powers[:-1]), axis=0)
    names = energy_names(ROBOT.joint_names)
    places = [*range(6), names.index("total")]
    for i, (time, message) in zip(rows, found["/energy"], strict=True):
        header = message.header.stamp
        assert header.sec * 10**9 + header.nanosec == time
        assert tuple(message.name) == names
        assert np.array(message.position)[places] == pytest.approx(
            energy[i - 1], abs=1e-6
        )


def test_a_recording_without_host_stamps_has_controller_times(tmp_path: Path) -> None:
    telemetry = motion(1.0)
    found = written(tmp_path, telemetry)["/energy"]
    assert found[-1][0] == pytest.approx(telemetry.time[-1] * 1e9, abs=1e3)
