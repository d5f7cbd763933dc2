"""The exponentially weighted mean."""

from __future__ import annotations

import numpy as np
import pytest

from ur_energy_model.energy.session import RunningMean


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
