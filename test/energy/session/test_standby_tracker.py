"""Standby power tracked at standstill."""

from __future__ import annotations

import numpy as np
import pytest

from ur_energy_model.energy.meter import bridged_steps
from ur_energy_model.energy.session import StandbyTracker


def followed(
    tracker: StandbyTracker, rate: float, stretches: list[tuple[float, bool, float]], size: int
) -> np.ndarray:
    """Standby power in use [samples], W.

    Args:
        tracker: takes in the samples.
        rate: of the samples [Hz].
        stretches: length [s], whether the arm stands still, and unexplained power [W] of each.
        size: of the batches.
    """
    lengths = [round(seconds * rate) for seconds, _, _ in stretches]
    still = np.repeat([state for _, state, _ in stretches], lengths)
    power = np.repeat([watts for _, _, watts in stretches], lengths)
    time = 7.0 + np.arange(len(still)) / rate
    steps = bridged_steps(time)
    parts = [slice(k, k + size) for k in range(0, len(time), size)]
    return np.concatenate(
        [tracker.update(time[p], steps[p], still[p], power[p]).power for p in parts]
    )


@pytest.mark.parametrize("rate", [5.0, 10.0, 50.0, 500.0])
def test_a_second_of_standstill_determines_the_standby_power(rate: float) -> None:
    tracker = StandbyTracker(25.0, spread=2.5)
    followed(tracker, rate, [(3.0, False, 90.0)], 100)
    assert (tracker.power, tracker.std, tracker.anchored) == (25.0, 2.5, False)
    tracker = StandbyTracker(25.0, spread=2.5)
    power = followed(tracker, rate, [(3.0, False, 90.0), (1.2, True, 29.0)], 100)
    assert tracker.anchored
    assert power[0] == 25.0
    assert power[-1] == pytest.approx(29.0)
    assert tracker.std < 1.0
    tracker.enabled = False
    assert tracker.power == 25.0


def test_short_standstills_add_up() -> None:
    rest_and_move = [(0.4, True, 29.0), (1.0, False, 90.0)]
    tracker = StandbyTracker(25.0, spread=2.5)
    followed(tracker, 500.0, rest_and_move, 100)
    assert (tracker.power, tracker.anchored) == (25.0, False)
    tracker = StandbyTracker(25.0, spread=2.5)
    followed(tracker, 500.0, 5 * rest_and_move, 100)
    assert (tracker.power, tracker.anchored) == (pytest.approx(29.0), True)


def test_transients_at_the_start_of_standstill_are_ignored() -> None:
    tracker = StandbyTracker(25.0, spread=2.5)
    followed(tracker, 500.0, [(0.1, True, 70.0), (1.0, True, 29.0), (0.1, False, 90.0)], 100)
    assert tracker.power == pytest.approx(29.0)


def test_batches_give_the_same_as_the_whole() -> None:
    noise = np.random.default_rng(2).normal(28.0, 3.0, 40)
    stretches = [(0.7, bool(k % 3), float(watts)) for k, watts in enumerate(noise)]
    whole = followed(StandbyTracker(25.0, spread=2.5), 125.0, stretches, 10**6)
    assert np.ptp(whole) > 0.5
    for size in (1, 7, 64):
        parts = followed(StandbyTracker(25.0, spread=2.5), 125.0, stretches, size)
        np.testing.assert_allclose(parts, whole, rtol=1e-12)


@pytest.mark.parametrize("size", [1, 64, 10**6])
def test_errors_of_the_holding_power_are_in_the_standby_power_with_the_opposite_sign(
    size: int,
) -> None:
    still = np.repeat([False, True, False], 250)
    time = 7.0 + np.arange(len(still)) / 125.0
    steps, power = bridged_steps(time), np.full(len(time), 29.0)
    # Two errors: one of the holding power alone, one that motion has three times as much of.
    changes = np.where(still[:, None], [2.0, 0.5], [0.0, 1.5])
    tracker = StandbyTracker(25.0, spread=2.5)
    parts = [slice(k, k + size) for k in range(0, len(time), size)]
    errors = np.concatenate(
        [tracker.update(time[p], steps[p], still[p], power[p], changes[p]).errors for p in parts]
    )
    assert not errors[still.argmax()].any()  # not anchored yet
    np.testing.assert_allclose(errors[-1], [-2.0, -0.5])
    np.testing.assert_allclose((changes + errors)[-1], [-2.0, 1.0])


def test_standby_stays_within_its_limits() -> None:
    tracker = StandbyTracker(25.0, spread=2.5, limit=3.0)
    followed(tracker, 50.0, [(4.0, True, 40.0)], 10)
    assert tracker.power == 28.0
    assert tracker.at_limit
    assert tracker.measured == pytest.approx(40.0)
