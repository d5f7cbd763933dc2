"""Running means, standby and residual."""

from __future__ import annotations

import numpy as np
import pytest

from ur_energy_model.estimation.tracking import ResidualMonitor, RunningMean, StandbyTracker


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


def test_standby_is_followed_only_after_a_second_of_standstill() -> None:
    tracker = StandbyTracker(25.0)
    for _ in range(40):
        tracker.update(0.02, True, 29.0)
    assert tracker.measured is None
    tracker.update(0.02, False, 90.0)
    for _ in range(40):
        tracker.update(0.02, True, 29.0)
    assert tracker.power == 25.0
    for _ in range(40):
        tracker.update(0.02, True, 29.0)
    assert tracker.power == pytest.approx(29.0)
    tracker.enabled = False
    assert tracker.power == 25.0


def test_standby_keeps_within_its_limits() -> None:
    tracker = StandbyTracker(25.0, limit=3.0)
    for _ in range(200):
        tracker.update(0.02, True, 40.0)
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
