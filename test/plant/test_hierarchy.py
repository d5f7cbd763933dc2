"""Arms that are alike share a constant, arms that differ do not; intervals hold."""

from __future__ import annotations

import numpy as np
import pytest

from ur_energy_model.plant.fleet import SizeHierarchy

NOMINAL_STD = 0.12
JOINTS = 3


def fleet(seed: int, arms: int, between: float, own: float, std: float):
    """True constants and measurements of arms, the last of which is new."""
    random = np.random.default_rng([seed, 31])
    mean = 1.0 + 0.08 * random.standard_normal()
    true = mean + between * random.standard_normal((arms + 1, 1))
    true = true + own * random.standard_normal((arms + 1, JOINTS))
    return true, true + std * random.standard_normal(true.shape)


def predicted(seed: int, arms: int, between: float, own: float, std: float = 0.02):
    true, measured = fleet(seed, arms, between, own, std)
    stds = np.full_like(measured[:arms], std)
    return true[arms], SizeHierarchy(measured[:arms], stds, NOMINAL_STD).predict()


@pytest.mark.parametrize("arms", [2, 4, 10])
@pytest.mark.parametrize(
    ("between", "own"), [(0.0, 0.0), (0.01, 0.0), (0.05, 0.02), (0.0, 0.07), (0.1, 0.04)]
)
def test_intervals_hold(arms, between, own):
    """95 % intervals of another arm cover it nearly always, over 60 fleets."""
    covered = []
    for seed in range(60):
        true, found = predicted(seed, arms, between, own)
        covered += (np.abs(found.mean - true) < 1.96 * np.sqrt(np.diag(found.covariance))).tolist()
    assert np.mean(covered) > 0.9


def test_arms_that_are_alike_have_no_spread():
    spreads = [predicted(seed, 10, 0.0, 0.0)[1] for seed in range(20)]
    assert np.median([found.spread for found in spreads]) <= 0.005
    assert np.mean([np.sqrt(found.covariance[0, 0]) for found in spreads]) < 0.03


def test_arms_that_differ_hardly_tell_of_each_other():
    spreads = [predicted(seed, 10, 0.1, 0.05)[1] for seed in range(20)]
    assert 0.06 < np.median([found.spread for found in spreads]) < 0.16
    assert np.mean([np.sqrt(found.covariance[0, 0]) for found in spreads]) > 0.08


def test_one_arm_is_not_trusted_with_all_others():
    _, found = predicted(1, 1, 0.0, 0.0, std=0.005)
    assert np.sqrt(found.covariance[0, 0]) > 0.05
    assert found.arms == 1


def test_joints_of_one_arm_tell_of_each_other():
    """Where arms differ but their joints do not, the joints are correlated."""
    _, found = predicted(3, 20, 0.08, 0.0, std=0.01)
    deviation = np.sqrt(np.diag(found.covariance))
    assert found.covariance[0, 1] / (deviation[0] * deviation[1]) > 0.8
    assert found.independent < 0.01**2


def test_an_arm_is_left_out_of_its_own_prediction():
    value = np.full((5, JOINTS), 1.05)
    value[2] = 1.07
    found = SizeHierarchy(value, np.full_like(value, 0.01), NOMINAL_STD).predict(without=2)
    np.testing.assert_allclose(found.mean, 1.05, atol=0.003)
    assert found.arms == 4


def test_an_arm_that_differs_is_not_taken_for_one_of_those_that_are_alike():
    value = np.full((5, JOINTS), 1.05)
    value[2] = 0.8
    found = SizeHierarchy(value, np.full_like(value, 0.01), NOMINAL_STD).predict(without=2)
    assert (found.mean - 0.8 < 2.5 * np.sqrt(np.diag(found.covariance))).all()


def test_missing_measurements_say_nothing():
    value = np.full((6, JOINTS), 1.05)
    value[:, 1] = np.nan
    value[4:] = np.nan
    std = np.where(np.isfinite(value), 0.01, np.nan)
    found = SizeHierarchy(value, std, NOMINAL_STD).predict()
    assert found.arms == 4
    np.testing.assert_allclose(found.mean, 1.05, atol=0.03)
    assert found.covariance[1, 1] > found.covariance[0, 0]


def test_nothing_known():
    value = np.full((2, JOINTS), np.nan)
    found = SizeHierarchy(value, value, NOMINAL_STD).predict()
    assert found.arms == 0
    np.testing.assert_allclose(found.mean, 1.0)
    assert np.sqrt(found.covariance[0, 0]) > NOMINAL_STD
