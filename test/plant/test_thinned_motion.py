"""Means over short blocks keep the motion."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ur_energy_model.plant.rows import BLOCK, thinned_motions
from ur_energy_model.telemetry.samples import Telemetry

N = 2


def samples(rate: float, seconds: float = 4.0, *, targets: bool = True) -> Telemetry:
    """A sine of each joint."""
    time = 10.0 + np.arange(round(seconds * rate)) / rate
    phase = time[:, None] * np.array([2.0, 3.0])
    w = np.array([2.0, 3.0])
    motion = (np.sin(phase), w * np.cos(phase), -(w**2) * np.sin(phase))
    names = ("target_q", "target_qd", "target_qdd") if targets else ("actual_q", "actual_qd")
    columns = dict(zip(names, motion, strict=False))
    return Telemetry(time, {**columns, "actual_current": 0.5 * motion[1]})


@pytest.mark.parametrize(("rate", "targets"), [(500.0, True), (500.0, False), (125.0, True)])
def test_the_motion_is_kept(rate, targets):
    (motion,) = thinned_motions(samples(rate, targets=targets))
    assert motion.period == pytest.approx(BLOCK)
    assert len(motion) >= 4.0 / BLOCK - 3
    middle = motion.time - 0.5 / rate
    np.testing.assert_allclose(motion.q[:, 0], np.sin(2.0 * middle), atol=2e-3)
    inner = slice(1, -1)
    np.testing.assert_allclose(motion.qdd[inner, 0], -4.0 * np.sin(2.0 * middle)[inner], atol=2e-2)
    np.testing.assert_allclose(motion.current, 0.5 * motion.qd, atol=1e-9)


def test_a_gap_cuts_the_motion_and_half_blocks_are_left_out():
    whole = samples(500.0)
    kept = (whole.time < 11.005) | (whole.time > 12.0)
    parts = list(thinned_motions(whole.select(kept)))
    assert len(parts) == 2
    for part in parts:
        np.testing.assert_allclose(np.diff(part.time), BLOCK, rtol=1e-6)


def test_slow_recordings_have_longer_blocks():
    (motion,) = thinned_motions(samples(10.0))
    assert motion.period == pytest.approx(0.2)


def test_nothing_without_currents_or_motion():
    whole = samples(500.0)
    assert list(thinned_motions(replace(whole, columns={}))) == []
    assert list(thinned_motions(whole.cut(slice(0, 1)))) == []
