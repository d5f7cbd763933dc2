"""Paths of moves are told apart as the program made them."""

from __future__ import annotations

import numpy as np
import pytest

from test.optimization.hand_made import HOME, NO_TOOL, ROBOT, sampled, straight_down
from ur_energy_model.optimization.pendant import programmed_path
from ur_energy_model.simulation.kinematics import ArmKinematics, LinePlanner
from ur_energy_model.trajectory.motions import move


def test_a_joint_line_is_a_movej_with_the_travel_of_its_leading_joint() -> None:
    _, q, _, _ = sampled(move(HOME, HOME + np.array([0.2, -0.5, 0.9, 0.0, 0.1, -0.3]), 1.0, 2.0))
    path = programmed_path(q, ROBOT)
    assert path is not None
    assert (path.kind, path.distance) == ("moveJ", pytest.approx(0.9))
    assert path.progress[[0, -1]] == pytest.approx([0.0, 0.9])


def test_a_straight_tool_is_a_movel_with_its_length() -> None:
    line = straight_down(HOME, 0.2)
    _, q, _, _ = sampled(line)
    path = programmed_path(q, ROBOT)
    assert path is not None
    assert (path.kind, path.distance) == ("moveL", pytest.approx(0.2, abs=1e-6))
    slow = path.motion(0.05, 0.3)
    assert slow.duration == pytest.approx(0.2 / 0.05 + 0.05 / 0.3)
    end = slow.sample(np.array([slow.duration]))[0][0]
    np.testing.assert_allclose(end, q[-1], atol=1e-5)


def test_a_turn_about_the_tool_is_a_movel_in_radians() -> None:
    """With a tool of 0.2 m the flange swings, and only the tool's own point stays."""
    tool = np.array([0.0, 0.0, 0.2, 0.0, 0.0, 0.0])
    kinematics = ArmKinematics(ROBOT)
    pose = kinematics.forward(HOME, tool)
    goal = kinematics.forward(HOME + 0.3 * np.eye(6)[3], tool)
    goal[:3] = pose[:3]
    planner = LinePlanner(kinematics, HOME, goal, tool, 0.5, 1.0, ROBOT.max_velocity)
    while (line := planner.advance()) is None:
        pass
    _, q, _, _ = sampled(line)
    path = programmed_path(q, ROBOT, tool)
    assert path is not None
    assert (path.kind, path.distance) == ("moveL", pytest.approx(0.3, abs=1e-4))
    assert programmed_path(q, ROBOT, NO_TOOL) is None


def test_a_path_with_a_corner_is_neither() -> None:
    corner = HOME + 0.4 * np.eye(6)[0]
    first, second = move(HOME, corner, 1.0, 2.0), move(corner, corner + 0.3 * np.eye(6)[1], 1, 2)
    q = np.concatenate([sampled(first)[1], sampled(second)[1]])
    assert programmed_path(q, ROBOT) is None


def test_no_motion_has_no_path() -> None:
    assert programmed_path(np.repeat(HOME[None], 10, axis=0), ROBOT) is None
