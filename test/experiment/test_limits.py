"""Checks find violated limits, the penalty agrees with them, and the approach keeps clear."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from test.experiment.conftest import assert_gradient
from ur_energy_model.errors import MotionRefusedError
from ur_energy_model.experiment.execution import path_distance, plan_approach
from ur_energy_model.experiment.limits import check
from ur_energy_model.files import config_file
from ur_energy_model.model.geometry import TABLE, ArmGeometry, Wall
from ur_energy_model.model.robots import load_robot
from ur_energy_model.trajectory.fourier import FourierTrajectory, load_trajectory


@pytest.fixture
def shipped() -> FourierTrajectory:
    return load_trajectory(config_file("excitation", "ur5e.yaml"))


def test_penalty_gradient(problem, motion):
    assert_gradient(problem.limits.penalty, motion)


def test_speeds_are_those_of_moving_points(problem, motion):
    q, qd, _ = motion
    limits, step = problem.limits, 1e-6
    places = [
        limits.dynamics.frames(q + sign * step * qd)[0][:, [2, 6]][..., :3, 3] for sign in (1, -1)
    ]
    numeric = np.linalg.norm((places[0] - places[1]) / (2 * step), axis=-1)
    np.testing.assert_allclose(limits.speeds(q, qd), numeric, rtol=1e-5)


OPEN = np.array([0.0, -np.pi / 2, 0.6, -np.pi / 2, -np.pi / 2, 0.0])
LEFT = np.array([-1.4, -0.35, 0.3, -1.5, -1.5, 0.0])
RIGHT = np.array([1.4, -0.35, 0.3, -1.5, -1.5, 0.0])
POST = (Wall("post", np.array([1.0, 0.0, 0.0]), -0.45),)


def test_around_an_obstacle_by_an_upright_position(problem):
    """Turning with the arm stretched out would hit the wall in front."""
    limits = replace(
        problem.limits, geometry=ArmGeometry(problem.request.robot, problem.request.walls + POST)
    )
    assert path_distance([LEFT, RIGHT], limits.geometry) < 0
    way = plan_approach(LEFT, RIGHT, limits)
    assert len(way) > 1
    assert path_distance([LEFT, *way], limits.geometry) > 0


def test_refused_if_every_path_is_blocked(problem):
    low = Wall("ceiling", np.array([0.0, 0.0, -1.0]), -0.75)
    limits = replace(
        problem.limits,
        geometry=ArmGeometry(problem.request.robot, (*problem.request.walls, *POST, low)),
    )
    with pytest.raises(MotionRefusedError, match="by hand"):
        plan_approach(LEFT, RIGHT, limits)


def test_a_table_that_the_arm_intersects_is_ignored(problem):
    """An arm on a pedestal may hang below the plane of its base."""
    below = np.array([0.0, 0.3, 0.2, -1.5, -1.5, 0.0])
    assert problem.limits.geometry.wall_distances(below[None]).min() < 0
    way = plan_approach(below, OPEN, problem.limits)
    np.testing.assert_array_equal(way[-1], OPEN)


def test_violated_limits_are_found(problem, shipped):
    wall = Wall("wall", np.array([1.0, 0.0, 0.0]), -0.1)
    geometry = ArmGeometry(load_robot("ur5e"), (TABLE, wall))
    for motion, limits, word in (
        (replace(shipped, period=shipped.period / 1.3), problem.limits, "velocity"),
        (replace(shipped, period=shipped.period / 1.6), problem.limits, "acceleration"),
        (shipped, replace(problem.limits, tool_speed=0.5), "m/s"),
        (shipped, replace(problem.limits, geometry=geometry), "collide"),
        (replace(shipped, b=shipped.b + 1e-3), problem.limits, "rest"),
    ):
        assert any(word in text for text in check(motion, limits).problems)
