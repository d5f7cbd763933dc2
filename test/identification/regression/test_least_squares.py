"""Least squares on Gram matrices of blocks of time."""

from __future__ import annotations

import numpy as np
import pytest

from test.identification.regression.accumulated import FLAT, TRUTH, accumulated, data
from ur_energy_model.identification.least_squares import Prior, cross_validate, solve


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


def test_nothing_at_all_leaves_the_prior() -> None:
    prior = Prior(np.array([1.0, 2.0]), np.array([0.1, 0.2]))
    solution = solve(np.zeros((1, 3, 3)), prior, np.zeros(1))
    np.testing.assert_array_equal(solution.coefficients, prior.mean)
    np.testing.assert_allclose(solution.std, prior.std)
