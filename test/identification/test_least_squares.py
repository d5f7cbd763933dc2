"""Linear least squares with priors, from Gram matrices of blocks of time."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter

from ur_energy_model.identification.base_parameters import FullRegressor, regroup
from ur_energy_model.identification.least_squares import (
    MAX_BLOCKS,
    BlockedGram,
    Prior,
    cross_validate,
    first_independent_columns,
    pivoted_columns,
    solve,
)
from ur_energy_model.model.robots import load_robot

FLAT = Prior(np.zeros(2), np.full(2, np.inf))
TRUTH = np.array([3.0, -2.0])


def data(seed: int, samples: int = 3000, correlation: float = 0.0) -> np.ndarray:
    """Slow regressors, correlated noise: [regressors, measurement]."""
    random = np.random.default_rng(seed)
    time = np.arange(samples) * 0.01
    phase = random.uniform(0, 2 * np.pi, 2)
    columns = np.column_stack([np.sin(1.7 * time + phase[0]), np.sin(2.9 * time + phase[1])])
    noise = lfilter([1.0], [1.0, -correlation], random.standard_normal(samples))
    return np.column_stack([columns, columns @ TRUTH + noise])


def accumulated(rows: np.ndarray, step: int = 50) -> tuple[BlockedGram, BlockedGram]:
    gram, counts = BlockedGram(), BlockedGram()
    for start in range(0, len(rows), step):
        piece = rows[start : start + step]
        gram.accumulate(piece.T @ piece, len(piece) * 0.01)
        counts.accumulate(np.asarray(float(len(piece))), len(piece) * 0.01)
    return gram, counts


def test_equals_plain_least_squares() -> None:
    rows = data(0)
    gram, counts = accumulated(rows)
    expected, *_ = np.linalg.lstsq(rows[:, :2], rows[:, 2], rcond=None)
    solution = solve(gram.blocks, FLAT, counts.blocks)
    np.testing.assert_allclose(solution.coefficients, expected, rtol=1e-9)
    residual = rows[:, 2] - rows[:, :2] @ expected
    assert solution.residual == pytest.approx(np.sqrt(np.mean(residual**2)))


@pytest.mark.parametrize("correlation", [0.0, 0.97])
def test_intervals_cover_the_truth(correlation: float) -> None:
    """95 % intervals hold the truth in 90 to 99 % of runs, however the noise is correlated."""
    runs, covered = 400, 0
    for seed in range(runs):
        gram, counts = accumulated(data(seed, correlation=correlation))
        solution = solve(gram.blocks, FLAT, counts.blocks)
        covered += int(
            np.count_nonzero(np.abs(solution.coefficients - TRUTH) < 1.96 * solution.std)
        )
    assert 0.90 <= covered / (2 * runs) <= 0.99


def test_correlated_noise_counts_for_less() -> None:
    white, rough = (solve(*_blocks(data(3, correlation=c))) for c in (0.0, 0.97))
    assert rough.effective_samples < 0.2 * white.effective_samples


def _blocks(rows: np.ndarray) -> tuple[np.ndarray, Prior, np.ndarray]:
    gram, counts = accumulated(rows)
    return gram.blocks, FLAT, counts.blocks


def test_the_prior_decides_what_the_data_leave_open() -> None:
    rows = data(4)
    rows[:, 1] = 0.0  # the second regressor was never excited
    rows[:, 2] = rows[:, 0] * TRUTH[0]
    gram, counts = accumulated(rows)
    solution = solve(gram.blocks, Prior(np.array([0.0, 7.0]), np.array([9.0, 0.5])), counts.blocks)
    assert solution.coefficients == pytest.approx([TRUTH[0], 7.0], abs=1e-3)
    assert solution.std[1] == pytest.approx(0.5, rel=1e-6)


def test_cross_validation_sees_overfitting() -> None:
    rows = data(5, samples=1500)
    random = np.random.default_rng(6)
    useless = random.standard_normal((len(rows), 40))
    wide = np.column_stack([rows[:, :2], useless, rows[:, 2]])
    gram, counts = accumulated(rows)
    more, _ = accumulated(wide)
    flat = Prior(np.zeros(42), np.full(42, np.inf))
    honest = cross_validate(gram.blocks, FLAT, counts.blocks).mean()
    assert cross_validate(more.blocks, flat, counts.blocks).mean() > 1.01 * honest


def test_memory_stays_bounded_and_nothing_is_lost() -> None:
    rows = data(1, samples=200_000)
    gram, counts = accumulated(rows)
    assert len(gram) <= MAX_BLOCKS
    np.testing.assert_allclose(gram.blocks.sum(axis=0), rows.T @ rows, rtol=1e-9)
    assert counts.blocks.sum() == len(rows)


def test_merged_parts_equal_the_whole() -> None:
    rows = data(2, samples=8000)
    whole, _ = accumulated(rows)
    first, _ = accumulated(rows[:3000])
    second, _ = accumulated(rows[3000:])
    first.merge(second)
    np.testing.assert_allclose(first.blocks.sum(axis=0), whole.blocks.sum(axis=0), rtol=1e-12)


ROUNDING = 1e-12

"""Relative error put on every entry: a thousand times what a processor's rounding does."""


def rounded(matrix: np.ndarray, seed: int) -> np.ndarray:
    return matrix * (1 + ROUNDING * np.random.default_rng(seed).standard_normal(matrix.shape))


@pytest.mark.parametrize("seed", range(5))
def test_equal_columns_are_decided_by_their_order(seed):
    """Of each column and its negative the first is taken, whatever rounding makes of them."""
    half = np.random.default_rng(100 + seed).standard_normal((20, 6))
    matrix = rounded(np.hstack([half, -half, half]), seed)
    assert sorted(pivoted_columns(matrix, 6)) == list(range(6))
    assert first_independent_columns(matrix).tolist() == list(range(6))


@pytest.mark.parametrize("arm", ["ur3", "ur5e", "ur20", "gen3", "fr3"])
@pytest.mark.parametrize("gravity", [[0.0, 0.0, -9.82], [0.0, 6.94, -6.94]])
def test_base_columns_of_an_arm_do_not_hang_on_rounding(arm, gravity, monkeypatch):
    down = np.array(gravity)
    plain = regroup(FullRegressor(load_robot(arm), down))
    regress = FullRegressor.__call__
    for seed in range(3):
        monkeypatch.setattr(
            FullRegressor, "__call__", lambda *args, seed=seed: rounded(regress(*args), seed)
        )
        noisy = regroup(FullRegressor(load_robot(arm), down))
        np.testing.assert_array_equal(noisy.base, plain.base)
        np.testing.assert_allclose(noisy.combination, plain.combination, atol=1e-6)
