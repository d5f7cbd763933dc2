"""The narrow low-pass filter, and the choice of its cut-off."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from test.identification.exact_arm import ExactArm
from test.identification.filtering import filtered_motions
from ur_energy_model.identification.filtered_motion import (
    CUTOFF_RANGE,
    FilteredMotion,
    ParallelFilter,
    choose_cutoff,
)


def test_narrow_filter_keeps_slow_and_stops_fast() -> None:
    recording = ExactArm().record(20.0)
    motion = next(filtered_motions([recording], 6, 4.0, 0.01))
    narrow = ParallelFilter(4.0)
    inside = narrow.inside(motion)
    slow = np.sin(2 * np.pi * 0.5 * motion.time)
    fast = np.sin(2 * np.pi * 20.0 * motion.time)
    np.testing.assert_allclose(narrow(motion, slow)[inside], slow[inside], atol=0.01)
    assert np.abs(narrow(motion, fast)[inside][5:-5]).max() < 0.02


def test_moving_samples_keep_clear_of_standstill() -> None:
    time = np.arange(0, 4.0, 0.01)
    qd = np.where(time < 2.0, 0.0, 0.5)[:, None]
    zero = np.zeros_like(qd)
    motion = FilteredMotion(time, zero, qd, zero, zero, zero, zero, np.full((len(time), 4), np.nan))
    moving = ParallelFilter(4.0).moving(motion, 0.02)[:, 0]
    assert not moving[:205].any()
    assert moving[220:-1].all()


def test_cutoff_follows_the_motion_and_the_noise() -> None:
    recording = ExactArm().record(40.0)
    quiet = choose_cutoff(recording)
    assert CUTOFF_RANGE[0] <= quiet <= CUTOFF_RANGE[1]
    time = recording.time
    lively = np.sin(2 * np.pi * 4.5 * time)[:, None] * np.ones(6) * 0.3
    fast = replace(recording, columns={**recording.columns, "actual_qd": lively})
    assert choose_cutoff(fast) > quiet
