"""Speeds at the instants of the currents."""

from __future__ import annotations

import numpy as np
import pytest

from ur_energy_model.energy.joint_powers import SpeedAlignment, backward_difference
from ur_energy_model.energy.meter import DEFAULT_GAP_LIMIT, bridged_steps

TIME = 100.0 + 0.002 * np.arange(1000.0)
STEPS = bridged_steps(TIME)


def speeds(time: np.ndarray) -> np.ndarray:
    """Two joints [samples, 2], rad/s."""
    return np.column_stack([np.sin(5 * time), 0.5 * np.cos(3 * time)])


@pytest.mark.parametrize("delay", [1e-3, -2e-3, 5e-3])
def test_speed_at_the_earlier_instant(delay: float) -> None:
    aligned = SpeedAlignment(delay)(STEPS, speeds(TIME))
    np.testing.assert_allclose(aligned[1:], speeds(TIME - delay)[1:], atol=5e-4)
    assert np.abs(speeds(TIME) - speeds(TIME - delay)).max() > 4e-3


def test_batches_give_the_same_as_the_whole() -> None:
    whole = SpeedAlignment(1e-3)(STEPS, speeds(TIME))
    align = SpeedAlignment(1e-3)
    parts = [align(STEPS[k : k + 7], speeds(TIME[k : k + 7])) for k in range(0, len(TIME), 7)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_an_empty_batch_changes_nothing() -> None:
    align = SpeedAlignment(1e-3)
    first = align(STEPS[:5], speeds(TIME[:5]))
    assert align(STEPS[:0], speeds(TIME[:0])).shape == (0, 2)
    rest = align(STEPS[5:], speeds(TIME[5:]))
    whole = SpeedAlignment(1e-3)(STEPS, speeds(TIME))
    np.testing.assert_array_equal(np.concatenate([first, rest]), whole)


def test_speeds_are_not_shifted_across_gaps() -> None:
    time = TIME.copy()
    time[500:] += 2 * DEFAULT_GAP_LIMIT
    rate = backward_difference(time, speeds(TIME))
    np.testing.assert_array_equal(rate[500], 0.0)
    np.testing.assert_array_equal(rate[0], 0.0)
    assert (rate[499] != 0.0).all()


def test_restarted_clocks_are_gaps() -> None:
    align = SpeedAlignment(1e-3)
    twice = np.concatenate([TIME, TIME])
    aligned = align(bridged_steps(twice), speeds(twice))
    np.testing.assert_array_equal(aligned[len(TIME)], speeds(TIME[:1])[0])
