# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Tool poses: forward, inverse, composition, and straight moves of the tool."""

from __future__ import annotations

import numpy as np
import pytest

from ur_energy_model.model.robots import load_robot
from ur_energy_model.trajectory.kinematics import (
    ArmKinematics,
    LinePlanner,
    ScriptError,
    StraightLine,
    compose,
    matrix_of,
)

ROBOT = load_robot("ur5e")
UR5E = ArmKinematics(ROBOT)
TOOL = np.array([0.01, -0.02, 0.15, 0.1, 0.2, -0.3])
HOME = np.array([0.3, -1.4, 1.5, -1.7, -1.4, 0.5])
RANDOM = np.random.default_rng(1)


def test_forward_kinematics_its_composition_and_its_derivative() -> None:
    """All joints zero: the arm lies along -x, as the maker's DH parameters have it."""
    pose = UR5E.forward(np.zeros(6), np.zeros(6))
    a = ROBOT.a
    d = ROBOT.d
    np.testing.assert_allclose(
        pose[:3], [a[1] + a[2], -(d[3] + d[5]), d[0] - d[4]], atol=1e-9
    )
    for q in RANDOM.uniform(-2.5, 2.5, (3, 6)):
        product = matrix_of(q) @ matrix_of(TOOL)
        np.testing.assert_allclose(matrix_of(compose(q, TOOL)), product, atol=1e-9)
        jacobian = UR5E.jacobian(q, TOOL)
        step = 1e-4
        for joint, move in enumerate(np.eye(6) * step):
            before, after = (
                matrix_of(UR5E.forward(q + sign * move, TOOL)) for sign in (-1, 1)
            )
            linear = (after[:3, 3] - before[:3, 3]) / (2 * step)
            spin = (after[:3, :3] - before[:3, :3]) @ matrix_of(UR5E.forward(q, TOOL))[
                :3, :3
            ].T
            angular = np.array([spin[2, 1], spin[0, 2], spin[1, 0]]) / (2 * step)
            np.testing.assert_allclose(
                jacobian[:, joint], np.r_[linear, angular], atol=1e-5
            )


@pytest.mark.parametrize("name", ["ur3", "ur10e", "ur30"])
def test_inverse_finds_the_joint_positions_nearby(name: str) -> None:
    kinematics = ArmKinematics(load_robot(name))
    for q in HOME + RANDOM.uniform(-0.5, 0.5, (4, 6)):
        found = kinematics.inverse(kinematics.forward(q, TOOL), HOME, TOOL)
        assert found is not None
        np.testing.assert_allclose(found, q, atol=1e-5)
    assert kinematics.inverse(np.array([9.0, 0, 0, 0, 0, 0]), HOME, TOOL) is None


def plan(
    shift: list[float], speed: float = 0.25, acceleration: float = 1.2
) -> StraightLine:
    """The move of the tool by `shift` [6] from HOME."""
    pose = UR5E.forward(HOME, TOOL) + np.array(shift)
    planner = LinePlanner(UR5E, HOME, pose, TOOL, speed, acceleration, ROBOT.max_velocity)
    while (line := planner.advance()) is None:
        pass
    return line


def tool_path(line: StraightLine, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Times [count] and positions of the tool centre point [count, 3]."""
    time = np.linspace(0.0, line.duration, count)
    return time, np.array([UR5E.forward(q, TOOL)[:3] for q in line.sample(time)[0]])


def test_tool_stays_on_the_line_with_its_speed_and_reaches_the_goal() -> None:
    shift = np.array([0.1, -0.2, 0.15])
    line = plan([*shift, 0, 0, 0], speed=0.2, acceleration=0.8)
    length = float(np.linalg.norm(shift))
    assert line.duration == pytest.approx(length / 0.2 + 0.2 / 0.8)
    time, path = tool_path(line, 1000)
    start = UR5E.forward(HOME, TOOL)[:3]
    along = shift / length
    aside = (path - start) - np.outer((path - start) @ along, along)
    assert np.abs(aside).max() < 1e-5
    np.testing.assert_allclose(path[-1], start + shift, atol=1e-6)
    speed = np.linalg.norm(np.diff(path, axis=0), axis=1) / np.diff(time)
    assert speed.max() == pytest.approx(0.2, rel=1e-3)
    fast = plan([0.15, 0.1, 0.0, 0, 0, 0], speed=20.0, acceleration=500.0)
    share = (
        np.abs(fast.sample(np.linspace(0, fast.duration, 2000))[1]) / ROBOT.max_velocity
    )
    assert 0.9 < share.max() < 1.01, "limits of the joints"
    with pytest.raises(ScriptError, match="cannot reach"):
        plan([2.0, 0, 0, 0, 0, 0])
