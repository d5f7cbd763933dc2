"""Regressor and objectives against known parameters, central differences and analytic cases."""

from __future__ import annotations

import numpy as np
import pytest

from test.experiment.conftest import assert_gradient
from ur_energy_model.experiment.objectives import (
    ConditionNumber,
    EnergyAccuracy,
    LogDeterminant,
    MotionRegressor,
    base_choices,
)
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.setup import Setup, gravity_of_mounting


def test_regressor_gives_torque(problem, motion):
    """Rigid bodies, Coulomb and viscous friction and motor inertia, each from known values."""
    q, qd, qdd = motion
    dynamics = problem.limits.dynamics
    coulomb, viscous, motor = np.arange(1.0, 7), np.arange(2.0, 8), np.arange(0.5, 3.5, 0.5)
    drive = np.stack([coulomb, viscous, motor], axis=1)
    parameters = np.hstack([dynamics.parameters().reshape(6, 10), drive]).ravel()
    torque = problem.regressor.matrix(q, qd, qdd) @ parameters
    expected = dynamics.inverse_dynamics(q, qd, qdd)
    expected = expected + coulomb * np.sign(qd) + viscous * qd + motor * qdd
    np.testing.assert_allclose(torque, expected, rtol=1e-9, atol=1e-8)


def test_speeds_of_rounding_size_are_rest(problem, motion):
    """Their signs differ between processors and must not change Coulomb columns."""
    q, qd, qdd = motion
    still = qd.copy()
    still[[0, -1]] = 0.0
    noise = np.where(still == 0, 1e-15 * np.random.default_rng(4).choice([-1, 1], qd.shape), 0.0)
    coulomb = problem.regressor.matrix(q, still + noise, qdd)[..., 10::13]
    np.testing.assert_array_equal(coulomb, np.sign(still)[:, :, None] * np.eye(6))


@pytest.mark.parametrize("arm", ["ur5", "ur5e", "ur10e"])
def test_a_ur_arm_has_52_base_parameters(arm):
    """Raviola et al. 2021: 36 inertial, 12 of friction, 4 motor inertias."""
    bases = base_choices(ArmDynamics(load_robot(arm)))
    assert {base.shape for base in bases} == {(78, 52)}
    columns = np.flatnonzero(bases[0].any(axis=1)) % 13
    assert [int(np.sum(columns == kind)) for kind in (10, 11)] == [6, 6]


def test_regressor_gradient_on_a_wall(motion):
    """With gravity across the first axis the position of the first joint matters."""
    setup = Setup(gravity=gravity_of_mounting(np.pi / 2, 0.4))
    regressor = MotionRegressor(ArmDynamics(load_robot("ur5e"), setup))
    weight = np.random.default_rng(3).normal(size=(30, 6, 78))

    def weighted(q, qd, qdd):
        matrix = regressor.matrix(q, qd, qdd, smooth=True)
        return float(np.sum(weight * matrix)), regressor.pull_back(q, qd, qdd, weight)

    assert_gradient(weighted, motion)


def test_objective_gradients(problem, motion):
    accuracy = EnergyAccuracy(problem.regressor, problem.limits.reflected_inertia, motion)
    for objective in (
        ConditionNumber(problem.regressor, problem.bases),
        LogDeterminant(problem.regressor, problem.bases[0]),
        accuracy,
    ):
        assert_gradient(objective.smooth, motion)
