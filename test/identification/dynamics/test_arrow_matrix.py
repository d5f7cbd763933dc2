"""Arrow matrices against the same matrices written out."""

from __future__ import annotations

import numpy as np
import pytest

from ur_energy_model.identification.target_moment_solver import ArrowMatrix

COMMON, SETUPS, OWN = 5, 4, 3
Pair = tuple[ArrowMatrix, np.ndarray]


def made(random: np.random.Generator) -> Pair:
    """A positive definite arrow and the same as a dense matrix."""
    size = COMMON + SETUPS * OWN
    arrow, dense = ArrowMatrix.zeros(COMMON, SETUPS, OWN), np.zeros((size, size))
    for k in range(SETUPS):
        part = random.normal(size=(COMMON + OWN, COMMON + OWN + 2))
        arrow.add(k, part @ part.T)
        places = np.r_[0:COMMON, COMMON + k * OWN : COMMON + (k + 1) * OWN]
        dense[np.ix_(places, places)] += part @ part.T
    diagonal = random.uniform(1.0, 2.0, size)
    arrow.add_diagonal(diagonal)
    return arrow, dense + np.diag(diagonal)


@pytest.fixture
def pair() -> Pair:
    return made(np.random.default_rng(1))


def test_solves_and_inverts(pair: Pair) -> None:
    arrow, dense = pair
    right = np.random.default_rng(2).normal(size=len(dense))
    assert np.allclose(arrow.diagonal, np.diag(dense))
    assert np.allclose(arrow.solve(right), np.linalg.solve(dense, right))
    assert np.allclose(arrow.common_inverse, np.linalg.inv(dense)[:COMMON, :COMMON])


def test_diagonal_of_the_sandwich(pair: Pair) -> None:
    arrow, dense = pair
    middle, written_out = made(np.random.default_rng(3))
    inverse = np.linalg.inv(dense)
    assert np.allclose(arrow.sandwich(middle), np.diag(inverse @ written_out @ inverse))


def test_a_copy_is_independent(pair: Pair) -> None:
    arrow, dense = pair
    other = arrow.copy()
    other.add_diagonal(np.ones(len(dense)))
    assert np.allclose(arrow.diagonal, np.diag(dense))
