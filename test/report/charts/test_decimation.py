"""Decimation keeps extremes, ends and holes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ur_energy_model.report.chart import break_at, decimate

VALUES = arrays(
    float,
    st.integers(1, 400),
    elements=st.one_of(st.floats(-1e6, 1e6), st.just(float("nan"))),
)


@given(y=VALUES, buckets=st.integers(1, 50))
def test_extremes_of_every_bucket_are_kept(y: np.ndarray, buckets: int) -> None:
    x = np.arange(len(y), dtype=float)
    kept_x, kept_y = decimate(x, y, buckets)
    assert len(kept_x) <= max(2 * buckets, 3 * buckets + 2)
    assert np.array_equal(y[kept_x.astype(int)], kept_y, equal_nan=True)
    edges = np.linspace(0, len(y), buckets + 1).astype(int) if len(y) > 2 * buckets else [0, len(y)]
    for start, stop in pairwise(edges):
        inside = kept_y[(kept_x >= start) & (kept_x < stop)]
        part = y[start:stop]
        assert np.isnan(part).any() == np.isnan(inside).any()
        if np.isfinite(part).any():
            assert np.nanmin(inside) == np.nanmin(part)
            assert np.nanmax(inside) == np.nanmax(part)


@pytest.mark.filterwarnings("error")
def test_a_single_spike_in_ten_minutes_is_kept() -> None:
    y = np.zeros(300_000)
    y[123_456] = 1.0
    _, kept = decimate(np.arange(len(y)) / 500, y, 500)
    assert len(kept) <= 1502
    assert kept.max() == 1.0


def test_a_curve_is_broken_at_gaps_only() -> None:
    time, values = np.array([0.0, 1.0, 9.0, 10.0]), np.arange(4.0)
    x, y = break_at(time, values, np.array([2]))
    assert np.array_equal(x, [0, 1, 9, 9, 10])
    assert np.array_equal(y, [0, 1, np.nan, 2, 3], equal_nan=True)
