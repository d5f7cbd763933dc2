"""Decimator: the mean rate is exact, on any grid of batches."""

from __future__ import annotations

import numpy as np
import pytest

from ur_energy_model.telemetry.decimation import Decimator


def moments(rate: float, times: np.ndarray) -> list[float]:
    decimator = Decimator(rate)
    return [now for now in times.tolist() if decimator.due(now)]


@pytest.mark.parametrize("rate", [10.0, 40.0, 50.0, 125.0])
@pytest.mark.parametrize("step", [0.002, 0.008])
def test_the_mean_rate_is_the_wanted_one(rate: float, step: float) -> None:
    found = moments(rate, 1000.0 + step * np.arange(round(20.0 / step)))
    assert len(found) == pytest.approx(20.0 * rate, rel=0.01)
    assert np.diff(found).max() <= 1.0 / rate + step


def test_batches_that_end_a_little_early_are_in_time() -> None:
    random = np.random.default_rng(2)
    times = 5.0 + 0.02 * np.arange(500) + random.uniform(-0.002, 0.002, 500)
    assert len(moments(50.0, times)) == 500


def test_a_stream_that_is_slower_loses_nothing() -> None:
    assert len(moments(50.0, 0.05 * np.arange(100))) == 100


def test_another_clock_starts_another_grid() -> None:
    times = np.concatenate([1000.0 + 0.02 * np.arange(10), 3.0 + 0.02 * np.arange(10)])
    assert moments(50.0, times) == times.tolist()
