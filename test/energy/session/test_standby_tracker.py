"""Running means, standby and residual."""

from __future__ import annotations

import numpy as np
import pytest

from ur_energy_model.energy.gaps import bridged_steps
from ur_energy_model.energy.live.residual_monitor import ResidualMonitor
from ur_energy_model.energy.session.running_mean import RunningMean
from ur_energy_model.energy.session.standby_tracker import StandbyTracker


def test_a_running_mean_is_unbiased_from_the_first_value() -> None:
    random = np.random.default_rng(3)
    values = random.normal(7.0, 2.0, 5000)
    mean = RunningMean(60.0)
    for value in values:
        mean.update(0.002, value)
    assert mean.mean == pytest.approx(values.mean())
    assert mean.std == pytest.approx(values.std(), rel=0.02)


def test_a_running_mean_forgets_with_its_time_constant() -> None:
    mean = RunningMean(5.0)
    for _ in range(1000):
        mean.update(0.02, 10.0)
    for _ in range(250):
        mean.update(0.02, 20.0)
    assert mean.mean == pytest.approx(20.0 - 10.0 * np.exp(-1.0), rel=0.01)


def test_no_time_changes_nothing() -> None:
    mean = RunningMean(5.0)
    mean.update(0.0, 10.0)
    assert (mean.mean, mean.elapsed) == (0.0, 0.0)


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
def test_a_second_of_standstill_shows_the_standby_power(rate: float) -> None:
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


def test_a_short_rest_shows_nothing_and_several_do() -> None:
    rest_and_move = [(0.4, True, 29.0), (1.0, False, 90.0)]
    tracker = StandbyTracker(25.0, spread=2.5)
    followed(tracker, 500.0, rest_and_move, 100)
    assert (tracker.power, tracker.anchored) == (25.0, False)
    tracker = StandbyTracker(25.0, spread=2.5)
    followed(tracker, 500.0, 5 * rest_and_move, 100)
    assert (tracker.power, tracker.anchored) == (pytest.approx(29.0), True)


def test_the_first_moment_of_a_rest_does_not_count() -> None:
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


def test_standby_keeps_within_its_limits() -> None:
    tracker = StandbyTracker(25.0, spread=2.5, limit=3.0)
    followed(tracker, 50.0, [(4.0, True, 40.0)], 10)
    assert tracker.power == 28.0
    assert tracker.at_limit
    assert tracker.measured == pytest.approx(40.0)


@pytest.mark.parametrize(("residual", "drifting"), [(6.0, True), (-6.0, True), (4.0, False)])
def test_the_alarm_looks_at_the_mean(residual: float, drifting: bool) -> None:
    monitor = ResidualMonitor(alarm=5.0, time_constant=10.0)
    noise = np.random.default_rng(1).normal(0.0, 3.0, 2000)
    for value in noise:
        monitor.update(0.02, residual + value)
    assert bool(monitor.drifting) == drifting
