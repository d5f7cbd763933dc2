"""The path to the start keeps its distance, avoids obstacles, or is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ur_energy_model.errors import MotionRefusedError
from ur_energy_model.experiment.execution import path_distance, plan_approach
from ur_energy_model.model.geometry import ArmGeometry, Wall

OPEN = np.array([0.0, -np.pi / 2, 0.6, -np.pi / 2, -np.pi / 2, 0.0])
LEFT = np.array([-1.4, -0.35, 0.3, -1.5, -1.5, 0.0])
RIGHT = np.array([1.4, -0.35, 0.3, -1.5, -1.5, 0.0])
POST = (Wall("post", np.array([1.0, 0.0, 0.0]), -0.45),)


def test_straight_without_obstacles(problem):
    way = plan_approach(OPEN, OPEN + 0.3, problem.limits)
    assert len(way) == 1
    np.testing.assert_array_equal(way[0], OPEN + 0.3)


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
