"""Filtering, differentiating and cutting of recorded motion."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from test.identification.exact_arm import ExactArm
from test.identification.filtering import filtered_motions
from ur_energy_model.identification.filtered_motion import FilteredMotion, sample_period
from ur_energy_model.telemetry.samples import Telemetry, find_gaps


def joined(parts: list[FilteredMotion]) -> FilteredMotion:
    return FilteredMotion.from_rows(np.concatenate([part.rows for part in parts]))


@pytest.mark.parametrize("rate", [50.0, 100.0, 500.0])
def test_acceleration_comes_from_speed(rate: float) -> None:
    recording = ExactArm().record(20.0, rate=rate)
    motion = joined(list(filtered_motions([recording], 6, 4.0, 1 / rate)))
    expected = np.stack(
        [np.interp(motion.time, recording.time, c) for c in recording["target_qdd"].T], axis=1
    )
    scale = np.abs(expected).max(axis=0)
    assert (np.abs(motion.qdd - expected).max(axis=0) < 0.02 * scale).all()


def test_batches_make_no_difference() -> None:
    recording = ExactArm().record(100.0)
    whole = joined(list(filtered_motions([recording], 6, 4.0, 0.01)))
    batches = [recording.cut(slice(i, i + 700)) for i in range(0, len(recording), 700)]
    pieces = joined(list(filtered_motions(batches, 6, 4.0, 0.01)))
    np.testing.assert_allclose(pieces.time, whole.time, atol=1e-9)
    np.testing.assert_allclose(pieces.qd, whole.qd, atol=1e-6)
    np.testing.assert_allclose(pieces.current, whole.current, atol=1e-4)


def without(recording: Telemetry, rows: slice) -> Telemetry:
    keep = np.ones(len(recording), dtype=bool)
    keep[rows] = False
    return Telemetry(
        recording.time[keep],
        {name: values[keep] for name, values in recording.columns.items()},
        recording.info,
        find_gaps(recording.time[keep], 0.01),
    )


def test_a_gap_is_not_bridged_and_a_lost_sample_is() -> None:
    recording = ExactArm().record(20.0)
    gap = list(filtered_motions([without(recording, slice(900, 950))], 6, 4.0, 0.01))
    assert len(gap) == 2
    assert gap[0].time[-1] < recording.time[900] <= gap[1].time[0] - 0.4
    lost = list(filtered_motions([without(recording, slice(900, 901))], 6, 4.0, 0.01))
    assert len(lost) == 1
    assert np.abs(lost[0].qd).max() < 1.1 * np.abs(recording["actual_qd"]).max()


def test_repeated_samples_and_uneven_steps_are_borne() -> None:
    recording = ExactArm().record(20.0)
    random = np.random.default_rng(0)
    rows = np.sort(random.choice(len(recording), 1850, replace=False))
    rows = np.sort(np.concatenate([rows, rows[::40]]))
    uneven = Telemetry(
        recording.time[rows],
        {name: values[rows] for name, values in recording.columns.items()},
        recording.info,
    )
    motion = joined(list(filtered_motions([uneven], 6, 4.0, sample_period(uneven.time))))
    expected = np.interp(motion.time, recording.time, recording["actual_qd"][:, 1])
    assert np.abs(motion.qd[:, 1] - expected).max() < 0.02


def test_stretches_with_brakes_on_are_left_out() -> None:
    recording = ExactArm().record(20.0)
    mode = np.full(len(recording), 7.0)
    mode[:1000] = 5.0
    braked = replace(recording, columns={**recording.columns, "robot_mode": mode})
    motion = joined(list(filtered_motions([braked], 6, 4.0, 0.01)))
    assert motion.time[0] >= recording.time[1000]
