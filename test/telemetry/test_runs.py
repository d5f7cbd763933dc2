"""Consecutive stretches of an array."""

from __future__ import annotations

import numpy as np

from ur_energy_model.telemetry.runs import equal_runs, run_starts, time_blocks


def test_runs_of_values_and_rows() -> None:
    values = np.array([1.0, 1.0, 2.0, 1.0, 1.0])
    assert run_starts(values).tolist() == [0, 2, 3]
    assert list(equal_runs(values)) == [slice(0, 2), slice(2, 3), slice(3, 5)]
    rows = np.column_stack([np.zeros(5), values])
    assert list(equal_runs(rows)) == list(equal_runs(values))


def test_nothing_has_no_runs() -> None:
    assert run_starts(np.zeros(0)).size == 0
    assert list(equal_runs(np.zeros((0, 3)))) == []
    assert list(time_blocks(np.zeros(0), 1.0)) == []


def test_time_blocks_cover_all_samples_once() -> None:
    time = 100.3 + np.sort(np.random.default_rng(0).uniform(0.0, 20.0, 400))
    blocks = list(time_blocks(time, 2.0, time[0]))
    assert np.array_equal(np.concatenate([time[block] for block in blocks]), time)
    assert all(time[block][-1] - time[block][0] <= 2.0 for block in blocks)
    assert len(blocks) == 10
    aligned = list(time_blocks(time, 1.0))
    assert all(len(set(np.floor(time[block]))) == 1 for block in aligned)
