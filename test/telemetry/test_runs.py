"""Runs of equal samples as slices."""

from __future__ import annotations

import numpy as np
import pytest

from ur_energy_model.telemetry.samples import equal_runs, run_starts, slices_between, time_blocks


@pytest.mark.parametrize(
    ("values", "starts"),
    [
        ([], []),
        ([5.0], [0]),
        ([1, 1, 2, 2, 2, 1], [0, 2, 5]),
        ([[1, 1], [1, 1], [1, 2]], [0, 2]),
        ([[3, 4]], [0]),
        ([np.nan, np.nan], [0, 1]),
    ],
)
def test_a_run_starts_where_a_value_changes(values: list[float], starts: list[int]) -> None:
    assert run_starts(values).tolist() == starts


def test_runs_cover_all_samples_in_order() -> None:
    values = np.random.default_rng(1).integers(0, 3, 500)
    parts = list(equal_runs(values))
    assert np.array_equal(np.concatenate([values[part] for part in parts]), values)
    assert all(len(set(values[part].tolist())) == 1 for part in parts)
    changes = int(np.count_nonzero(np.diff(values)))
    assert len(parts) == changes + 1


def test_slices_between_leaves_out_empty_ones() -> None:
    assert list(slices_between([0, 2, 2, 5], 5)) == [slice(0, 2), slice(2, 5)]
    assert list(slices_between([], 0)) == []


def test_time_blocks_cover_all_samples_once() -> None:
    time = 100.3 + np.sort(np.random.default_rng(0).uniform(0.0, 20.0, 400))
    blocks = list(time_blocks(time, 2.0, time[0]))
    assert np.array_equal(np.concatenate([time[block] for block in blocks]), time)
    assert all(time[block][-1] - time[block][0] <= 2.0 for block in blocks)
    assert len(blocks) == 10
    aligned = list(time_blocks(time, 1.0))
    assert all(len(set(np.floor(time[block]))) == 1 for block in aligned)
    assert list(time_blocks(np.zeros(0), 1.0)) == []
