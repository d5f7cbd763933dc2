# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Checks find violated limits, penalty and objectives have true gradients, approaches are clear."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from ur_energy_model.errors import MotionRefusedError
from ur_energy_model.experiment.design_problem import DesignProblem, DesignRequest
from ur_energy_model.experiment.execution import path_distance, plan_approach
from ur_energy_model.experiment.limits import check
from ur_energy_model.experiment.objectives import (
    ConditionNumber,
    EnergyAccuracy,
    LogDeterminant,
    MotionRegressor,
    base_choices,
)
from ur_energy_model.files import config_file
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.geometry import TABLE, ArmGeometry, Wall
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.setup import Setup, gravity_of_mounting
from ur_energy_model.trajectory.fourier import load_trajectory

Motion = tuple[np.ndarray, np.ndarray, np.ndarray]
ROBOT = load_robot("ur5e")
PROBLEM = DesignProblem(DesignRequest(ROBOT))
LIMITS = PROBLEM.limits
REGRESSOR = PROBLEM.regressor
RANDOM = np.random.default_rng(1)
Q, QD, QDD = MOTION = tuple(RANDOM.uniform(-most, most, (30, 6)) for most in (2, 4, 20))
WALL = Setup(gravity=gravity_of_mounting(np.pi / 2, 0.4))
"""With gravity across the first axis the position of the first joint matters."""


def weighted(q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> tuple[float, Motion]:
    """A weighted sum of the regressor of an arm on a wall, and its gradient."""
    regressor = MotionRegressor(ArmDynamics(ROBOT, WALL))
    weight = np.random.default_rng(3).normal(size=(30, 6, 78))
    matrix = regressor.matrix(q, qd, qdd, smooth=True)
    return float(np.sum(weight * matrix)), regressor.pull_back(q, qd, qdd, weight)


FUNCTIONS: dict[str, Callable[..., tuple[float, Motion]]] = {
    "penalty": LIMITS.penalty,
    "regressor": weighted,
    "condition": ConditionNumber(REGRESSOR, PROBLEM.bases).smooth,
    "logdet": LogDeterminant(REGRESSOR, PROBLEM.bases[:1]).smooth,
    "energy": EnergyAccuracy(REGRESSOR, LIMITS.reflected_inertia, (Q, QD, QDD)).smooth,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_those_of_central_differences(name: str) -> None:
    """Along random directions."""
    function = FUNCTIONS[name]
    random = np.random.default_rng(2)
    step = 1e-5
    for which, gradient in enumerate(function(*MOTION)[1]):
        direction = random.normal(size=(30, 6))
        values = []
        for sign in (1, -1):
            moved = [*MOTION]
            moved[which] = moved[which] + sign * step * direction
            values.append(function(*moved)[0])
        numeric = (values[0] - values[1]) / (2 * step)
        assert np.sum(gradient * direction) == pytest.approx(numeric, rel=1e-4, abs=1e-6)


def test_regressor_gives_torque() -> None:
    """Rigid bodies, Coulomb and viscous friction and motor inertia, each from known values."""
    coulomb = np.arange(1.0, 7)
    viscous = np.arange(2.0, 8)
    motor = np.arange(0.5, 3.5, 0.5)
    rigid = LIMITS.dynamics.parameters().reshape(6, 10)
    parameters = np.hstack([rigid, np.stack([coulomb, viscous, motor], axis=1)]).ravel()
    expected = LIMITS.dynamics.inverse_dynamics(Q, QD, QDD)
    expected = expected + coulomb * np.sign(QD) + viscous * QD + motor * QDD
    torque = REGRESSOR.matrix(Q, QD, QDD) @ parameters
    np.testing.assert_allclose(torque, expected, rtol=1e-9, atol=1e-8)


def test_a_ur_arm_has_52_base_parameters() -> None:
    """Raviola et al. 2021: 36 inertial, 12 of friction, 4 motor inertias."""
    bases = base_choices(ArmDynamics(load_robot("ur5")))
    assert {base.shape for base in bases} == {(78, 52)}
    columns = np.flatnonzero(bases[0].any(axis=1)) % 13
    assert [int(np.sum(columns == kind)) for kind in (10, 11)] == [6, 6]


LEFT = np.array([-1.4, -0.35, 0.3, -1.5, -1.5, 0.0])
RIGHT = LEFT * np.array([-1, 1, 1, 1, 1, 1])
POST = Wall("post", np.array([1.0, 0.0, 0.0]), -0.45)


def test_the_approach_goes_around_obstacles_or_is_refused() -> None:
    """Turning with the arm stretched out would hit the wall in front."""
    limits = replace(LIMITS, geometry=ArmGeometry(ROBOT, (TABLE, POST)))
    assert path_distance([LEFT, RIGHT], limits.geometry) < 0
    way = plan_approach(LEFT, RIGHT, limits)
    assert len(way) > 1, "by an upright position"
    assert path_distance([LEFT, *way], limits.geometry) > 0
    ceiling = Wall("ceiling", np.array([0.0, 0.0, -1.0]), -0.75)
    blocked = replace(LIMITS, geometry=ArmGeometry(ROBOT, (TABLE, POST, ceiling)))
    with pytest.raises(MotionRefusedError, match="by hand"):
        plan_approach(LEFT, RIGHT, blocked)


def test_violated_limits_are_found() -> None:
    shipped = load_trajectory(config_file("excitation", "ur5e.yaml"))
    wall = Wall("wall", np.array([1.0, 0.0, 0.0]), -0.1)
    for motion, limits, word in (
        (replace(shipped, period=shipped.period / 1.3), LIMITS, "velocity"),
        (replace(shipped, period=shipped.period / 1.6), LIMITS, "acceleration"),
        (shipped, replace(LIMITS, tool_speed=0.5), "m/s"),
        (shipped, replace(LIMITS, geometry=ArmGeometry(ROBOT, (TABLE, wall))), "collide"),
        (replace(shipped, b=shipped.b + 1e-3), LIMITS, "rest"),
    ):
        assert any(word in text for text in check(motion, limits).problems)
