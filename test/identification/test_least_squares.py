# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Linear least squares with priors, from Gram matrices of blocks of time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.signal import lfilter

from ur_energy_model.identification.base_parameters import FullRegressor, regroup
from ur_energy_model.identification.least_squares import (
    MAX_BLOCKS,
    BlockedGram,
    Prior,
    Solution,
    first_independent_columns,
    pivoted_columns,
    solve,
)
from ur_energy_model.model.regressor import Regressor
from ur_energy_model.model.robots import load_robot

FLAT = Prior(np.zeros(2), np.full(2, np.inf))
TRUTH = np.array([3.0, -2.0])


def data(seed: int, samples: int = 3000, correlation: float = 0.0) -> np.ndarray:
    """Slow regressors, correlated noise: [regressors, measurement]."""
    random = np.random.default_rng(seed)
    time = np.arange(samples) * 0.01
    phase = random.uniform(0, 2 * np.pi, 2)
    columns = np.column_stack(
        [np.sin(1.7 * time + phase[0]), np.sin(2.9 * time + phase[1])]
    )
    noise = lfilter([1.0], [1.0, -correlation], random.standard_normal(samples))
    return np.column_stack([columns, columns @ TRUTH + noise])


def accumulated(rows: np.ndarray, step: int = 50) -> tuple[BlockedGram, BlockedGram]:
    gram = BlockedGram()
    counts = BlockedGram()
    for start in range(0, len(rows), step):
        piece = rows[start : start + step]
        gram.accumulate(piece.T @ piece, len(piece) * 0.01)
        counts.accumulate(np.asarray(float(len(piece))), len(piece) * 0.01)
    return gram, counts


def solved(rows: np.ndarray, prior: Prior = FLAT) -> Solution:
    gram, counts = accumulated(rows)
    return solve(gram.blocks, prior, counts.blocks)


def test_intervals_cover_the_truth() -> None:
    """Without a prior, in 90 to 99 % of runs, however the noise is correlated."""
    rows = data(0)
    effective = []
    expected, *_ = np.linalg.lstsq(rows[:, :2], rows[:, 2], rcond=None)
    np.testing.assert_allclose(solved(rows).coefficients, expected, rtol=1e-9)
    for correlation in (0.0, 0.97):
        found = [solved(data(seed, correlation=correlation)) for seed in range(200)]
        within = [np.abs(one.coefficients - TRUTH) < 1.96 * one.std for one in found]
        assert 0.90 <= np.mean(within) <= 0.99
        effective.append(np.median([one.effective_samples for one in found]))
    assert effective[1] < 0.2 * effective[0]


def test_the_prior_decides_what_the_data_leave_open() -> None:
    rows = data(4)
    rows[:, 1] = 0.0  # the second regressor was never excited
    rows[:, 2] = rows[:, 0] * TRUTH[0]
    solution = solved(rows, Prior(np.array([0.0, 7.0]), np.array([9.0, 0.5])))
    assert solution.coefficients == pytest.approx([TRUTH[0], 7.0], abs=1e-3)
    assert solution.std[1] == pytest.approx(0.5, rel=1e-6)


def test_memory_stays_bounded_and_nothing_is_lost() -> None:
    """Nor where two parts are merged."""
    rows = data(1, samples=200_000)
    (gram, counts), (first, _) = accumulated(rows), accumulated(rows[:30_000])
    first.merge(accumulated(rows[30_000:])[0])
    for found in (gram, first):
        assert len(found) <= MAX_BLOCKS
        np.testing.assert_allclose(found.blocks.sum(axis=0), rows.T @ rows, rtol=1e-9)
    assert counts.blocks.sum() == len(rows)


def test_equal_columns_are_decided_by_their_order_and_not_by_rounding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of each column and its negative the first is taken, as of the columns of an arm."""

    def rounded(matrix: np.ndarray, seed: int) -> np.ndarray:
        """A thousand times what a processor's rounding does."""
        return matrix * (
            1 + 1e-12 * np.random.default_rng(seed).standard_normal(matrix.shape)
        )

    half = np.random.default_rng(100).standard_normal((20, 6))
    matrix = rounded(np.hstack([half, -half, half]), 0)
    assert sorted(pivoted_columns(matrix, 6)) == list(range(6))
    assert first_independent_columns(matrix).tolist() == list(range(6))
    arm = FullRegressor(load_robot("gen3"), np.array([0.0, 6.94, -6.94]))
    regress = FullRegressor
    plain = regroup(arm)
    exact = regress.__call__

    def inexact(*args: Any) -> Regressor:
        found = exact(*args)
        return replace(found, values=rounded(found.values, 1))

    monkeypatch.setattr(regress, "__call__", inexact)
    noisy = regroup(arm)
    np.testing.assert_array_equal(noisy.base, plain.base)
    np.testing.assert_allclose(noisy.combination, plain.combination, atol=1e-6)
