"""Decimator: the mean rate is exact, on any grid of batches."""

from __future__ import annotations

import numpy as np
import pytest

from ur_energy_model.telemetry.source import Decimator
from ur_energy_model.typing import Array


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


@pytest.mark.parametrize("rate", [50.0, 500.0])
@pytest.mark.parametrize("most", [1, 3, 8, 60])
def test_delayed_batches_are_parted_so_that_the_rate_stays(rate: float, most: int) -> None:
    """What is published and what is counted as missed is one for each period with samples."""
    random = np.random.default_rng(3)
    times = 7.0 + 0.002 * np.arange(5000, dtype=np.float64)
    decimator, start = Decimator(rate), 0
    published = missed = late = 0
    while start < len(times):
        size = max(round(0.5 / rate * 1000.0), 1) * int(random.integers(1, most + 1))
        batch = times[start : start + size]
        parts, left_out = decimator.parts(batch)
        assert np.concatenate([batch[part] for part in parts]).tolist() == batch.tolist()
        missed += left_out
        late += len(parts) == 1 and left_out > 0
        published += sum(decimator.due(float(batch[part][-1])) for part in parts)
        start += size
    assert published + missed == pytest.approx(10.0 * rate, rel=0.01)
    assert (missed > 0) == (late > 0) == (most > 10)


def test_gaps_and_other_clocks_are_no_delay() -> None:
    decimator, clock = Decimator(50.0), 0.002 * np.arange(10, dtype=np.float64)
    cases: list[Array] = [5.0 + clock, 900.0 + clock, np.full(3, np.nan)]
    for times in cases:
        assert decimator.parts(times) == ([slice(0, len(times))], 0)
        decimator.due(float(np.nan_to_num(times[-1])))
