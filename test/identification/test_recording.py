# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""A bag read once: filtered motion, buffers, and the parts of long recordings that are used."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from test.identification.conftest import filtered_motions
from test.identification.exact_arm import TORQUE_CONSTANT, ExactArm
from ur_energy_model.cli.identify import identification_json
from ur_energy_model.identification.arm_fit import IdentificationOptions
from ur_energy_model.identification.filtered_motion import (
    FilteredMotion,
    sample_period,
)
from ur_energy_model.identification.pipeline import identify
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.telemetry.gaps import find_gaps
from ur_energy_model.telemetry.samples import Telemetry


@pytest.fixture(scope="module")
def made() -> Telemetry:
    return ExactArm().record(100.0)


def motion_of(*batches: Telemetry) -> FilteredMotion:
    """Their motion, which has no gap."""
    return reduce(FilteredMotion.followed_by, filtered_motions(batches, 6, 4.0, 0.01))


def some(made: Telemetry, rows: np.ndarray) -> Telemetry:
    columns = {name: values[rows] for name, values in made.columns.items()}
    time = made.time[rows]
    return Telemetry(time, columns, made.info, find_gaps(time, 0.01))


def test_acceleration_comes_from_speed_and_batches_make_no_difference(
    made: Telemetry,
) -> None:
    made = made.cut(slice(0, 3000))
    whole = motion_of(made)
    for found, true in zip(whole.qdd.T, made["target_qdd"].T, strict=True):
        expected = np.interp(whole.time, made.time, true)
        assert np.abs(found - expected).max() < 0.02 * np.abs(expected).max()
    pieces = motion_of(*(made.cut(slice(i, i + 700)) for i in range(0, len(made), 700)))
    for name, close in (("time", 1e-9), ("qd", 1e-6), ("current", 1e-4)):
        np.testing.assert_allclose(
            getattr(pieces, name), getattr(whole, name), atol=close
        )


def test_gaps_lost_repeated_and_uneven_samples(made: Telemetry) -> None:
    """A gap is not bridged, the others are."""
    made = made.cut(slice(0, 2000))
    every = np.arange(2000)
    gap = list(
        filtered_motions([some(made, np.delete(every, slice(900, 950)))], 6, 4.0, 0.01)
    )
    assert len(gap) == 2
    assert gap[0].time[-1] < made.time[900] <= gap[1].time[0] - 0.4
    kept = np.sort(np.random.default_rng(0).choice(2000, 1850, replace=False))
    for rows in (np.delete(every, 900), np.sort(np.concatenate([kept, kept[::40]]))):
        part = some(made, rows)
        (motion,) = filtered_motions([part], 6, 4.0, sample_period(part.time))
        expected = np.interp(motion.time, made.time, made["actual_qd"][:, 1])
        assert np.abs(motion.qd[:, 1] - expected).max() < 0.02


def test_a_long_recording_is_used_in_part_and_says_so(tmp_path: Path) -> None:
    """Seven minutes, a motion of its own in each."""
    path = tmp_path / "bag"
    arm = ExactArm()
    minutes = [arm.record(60.0, rate=25.0, seed=seed) for seed in range(7)]
    with BagWriter(path, minutes[0].info, tuple(minutes[0].columns)) as writer:
        for number, part in enumerate(minutes):
            writer.write(replace(part, time=part.time + 60.0 * number))
    found = identify([path], "ur5e", IdentificationOptions(friction="power_flow"))
    (line,) = found.notes
    assert "of 7.0 minutes" in line
    assert list(identification_json(found)["notes"]) == [line]
    bag: dict[str, Any] = found.model.provenance["bags"][0]
    assert bag["duration"] == pytest.approx(420.0, rel=0.01)
    assert 240.0 < bag["seconds_of_motion_used"] <= 300.0
    assert 60.0 < bag["seconds_of_samples_used"] <= 90.0
    for joint, true in zip(found.model.joints, TORQUE_CONSTANT, strict=True):
        assert abs(joint.torque_constant - true) < 4.0 * joint.std["torque_constant"]
    metrics = found.fit[0]
    assert metrics.samples == 25 * 60 * 7
    assert metrics.power is not None
    assert metrics.power["energy_error_percent"] == pytest.approx(0.0, abs=0.5)
