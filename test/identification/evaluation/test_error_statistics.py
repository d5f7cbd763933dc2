"""Error statistics against their definitions, in one piece and in many."""

from __future__ import annotations

import numpy as np
import pytest

from ur_energy_model.identification.evaluation.error_statistics import ErrorStatistics


def test_batches_agree_with_the_definitions() -> None:
    random = np.random.default_rng(0)
    measured = random.normal(5.0, 2.0, (1000, 2))
    model = measured + random.normal(0.1, 0.5, measured.shape)
    mask = random.random(measured.shape) < 0.7
    statistics = ErrorStatistics(2)
    for start in range(0, 1000, 130):
        rows = slice(start, start + 130)
        statistics.accumulate(measured[rows], model[rows], mask[rows])
    for j, entry in enumerate(statistics.entries()):
        y, e = measured[mask[:, j], j], (model - measured)[mask[:, j], j]
        assert entry["mean"] == pytest.approx(np.abs(e).mean())
        assert entry["max"] == pytest.approx(np.abs(e).max())
        assert entry["rms"] == pytest.approx(np.sqrt((e**2).mean()))
        assert entry["r2"] == pytest.approx(1 - (e**2).sum() / ((y - y.mean()) ** 2).sum())


def test_a_large_offset_costs_no_accuracy() -> None:
    random = np.random.default_rng(1)
    measured = 1e6 + random.normal(0.0, 1.0, (5000, 1))
    statistics = ErrorStatistics(1)
    for part in np.array_split(measured, 50):
        statistics.accumulate(part, part + 0.1)
    assert statistics.r2[0] == pytest.approx(1 - 0.01 / measured.var(), rel=1e-6)


def test_statistics_without_samples_are_null() -> None:
    statistics = ErrorStatistics(2)
    statistics.accumulate(np.ones((4, 2)), np.ones((4, 2)), np.array([[True, False]] * 4))
    constant, absent = statistics.entries()
    assert constant == {"mean": 0.0, "max": 0.0, "rms": 0.0, "r2": None}
    assert absent == dict.fromkeys(("mean", "max", "rms", "r2"))
