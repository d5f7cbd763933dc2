"""Which columns are chosen, on matrices with known answers and with rounding made visible."""

from __future__ import annotations

import numpy as np
import pytest

from ur_energy_model.experiment.objectives import base_choices
from ur_energy_model.identification.base_parameters import FullRegressor, regroup
from ur_energy_model.identification.least_squares import first_independent_columns, pivoted_columns
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import load_robot

ROUNDING = 1e-12
"""Relative error put on every entry: a thousand times what a processor's rounding does."""


def rounded(matrix: np.ndarray, seed: int) -> np.ndarray:
    return matrix * (1 + ROUNDING * np.random.default_rng(seed).standard_normal(matrix.shape))


def test_the_longest_remainder_comes_first():
    # Beside column 2, nothing of column 0 is left, and column 1 keeps its length.
    matrix = np.array([[2.0, 0.0, 3.0], [0.0, 1.0, 0.0]])
    assert pivoted_columns(matrix, 2).tolist() == [2, 1]


@pytest.mark.parametrize("seed", range(5))
def test_equal_columns_are_decided_by_their_order(seed):
    """Of each column and its negative the first is taken, whatever rounding makes of them."""
    half = np.random.default_rng(100 + seed).standard_normal((20, 6))
    matrix = rounded(np.hstack([half, -half, half]), seed)
    assert sorted(pivoted_columns(matrix, 6)) == list(range(6))
    assert first_independent_columns(matrix).tolist() == list(range(6))


def test_scaling_decides_before_order():
    column = np.ones((4, 1))
    assert pivoted_columns(np.hstack([0.9 * column, column]), 1).tolist() == [1]


def test_a_column_of_zeros_is_no_choice():
    matrix = np.array([[0.0, 1.0, 1.0], [0.0, 0.0, 1.0]])
    assert first_independent_columns(matrix).tolist() == [1, 2]


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


def test_base_choices_do_not_hang_on_rounding(monkeypatch):
    dynamics = ArmDynamics(load_robot("ur3"))
    plain = base_choices(dynamics)
    regress = ArmDynamics.regressor
    monkeypatch.setattr(ArmDynamics, "regressor", lambda *args: rounded(regress(*args), 0))
    for noisy, known in zip(base_choices(dynamics)[:4], plain[:4], strict=True):
        np.testing.assert_array_equal(noisy, known)
