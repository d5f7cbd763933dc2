"""Straight-line moves: the tool follows a line at the requested speed and comes to rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from ur_energy_model.model.robots import load_robot
from ur_energy_model.simulation import commands as cmd
from ur_energy_model.simulation.client_interfaces import ScriptSession
from ur_energy_model.simulation.commands import ProgramState
from ur_energy_model.simulation.control_box import ControlBox, SimulatedIdentity
from ur_energy_model.simulation.kinematics import (
    ArmKinematics,
    LinePlanner,
    ScriptError,
    StraightLine,
    matrix_of,
)
from ur_energy_model.simulation.simulated_arm import SimulatedArm
from ur_energy_model.trajectory.motions import Hold

if TYPE_CHECKING:
    from test.simulation.conftest import StandInArm

UR5E = load_robot("ur5e")
KINEMATICS = ArmKinematics(UR5E)
HOME = np.array([0.3, -1.4, 1.5, -1.7, -1.4, 0.5])
TOOL = np.array([0.0, 0.0, 0.12, 0.0, 0.3, 0.0])


def plan(shift: list[float], speed: float = 0.25, acceleration: float = 1.2) -> StraightLine:
    """The move of the tool by `shift` [6] from HOME."""
    pose = KINEMATICS.forward(HOME, TOOL) + np.array(shift)
    planner = LinePlanner(KINEMATICS, HOME, pose, TOOL, speed, acceleration, UR5E.max_velocity)
    while (line := planner.advance()) is None:
        pass
    return line


def tool_path(line: StraightLine, count: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """Times [count] and positions of the tool centre point [count, 3]."""
    time = np.linspace(0.0, line.duration, count)
    poses = [KINEMATICS.forward(q, TOOL) for q in line.sample(time)[0]]
    return time, np.array(poses)[:, :3]


def test_tool_stays_on_the_line_and_reaches_the_goal() -> None:
    shift = np.array([0.1, -0.2, 0.15])
    _, path = tool_path(plan([*shift, 0, 0, 0]))
    start = KINEMATICS.forward(HOME, TOOL)[:3]
    along = shift / np.linalg.norm(shift)
    aside = (path - start) - np.outer((path - start) @ along, along)
    assert np.abs(aside).max() < 1e-5
    np.testing.assert_allclose(path[-1], start + shift, atol=1e-6)


def test_speed_and_acceleration_are_those_of_the_tool() -> None:
    line = plan([0.0, 0.0, 0.2, 0, 0, 0], speed=0.2, acceleration=0.8)
    assert line.duration == pytest.approx(0.2 / 0.2 + 0.2 / 0.8)
    time, path = tool_path(line, 2000)
    speed = np.linalg.norm(np.diff(path, axis=0), axis=1) / np.diff(time)
    assert speed.max() == pytest.approx(0.2, rel=1e-3)


def test_velocity_and_acceleration_are_derivatives() -> None:
    line = plan([0.1, 0.0, 0.1, 0.2, 0.0, 0.0])
    time = np.linspace(0.0, line.duration, 20_000)
    q, qd, qdd = line.sample(time)
    np.testing.assert_allclose(np.gradient(q, time, axis=0)[1:-1], qd[1:-1], atol=1e-3)
    smooth = np.abs(np.diff(qdd, axis=0)).max(axis=1) < 0.01  # not at the corners of the profile
    rate = np.diff(qd, axis=0) / np.diff(time)[:, None]
    np.testing.assert_allclose(rate[smooth], qdd[1:][smooth], atol=1e-2)
    np.testing.assert_allclose(qd[[0, -1]], 0.0, atol=1e-12)


def test_a_turn_alone_moves_about_the_tool_centre_point() -> None:
    goal = KINEMATICS.forward(HOME, TOOL)
    goal[3:] = goal[3:] * 0.8
    planner = LinePlanner(KINEMATICS, HOME, goal, TOOL, 0.5, 1.0, UR5E.max_velocity)
    while (line := planner.advance()) is None:
        pass
    _, path = tool_path(line)
    assert np.ptp(path, axis=0).max() < 1e-4
    end = KINEMATICS.forward(line.sample(np.array([line.duration]))[0][0], TOOL)
    np.testing.assert_allclose(matrix_of(end), matrix_of(goal), atol=1e-6)


def test_joint_speed_limits_slow_the_move_down() -> None:
    line = plan([0.15, 0.1, 0.0, 0, 0, 0], speed=20.0, acceleration=500.0)
    speed = np.abs(line.sample(np.linspace(0, line.duration, 2000))[1])
    assert (speed <= UR5E.max_velocity * 1.01).all()
    assert (speed / UR5E.max_velocity).max() > 0.9


def test_out_of_reach_is_refused() -> None:
    with pytest.raises(ScriptError, match="cannot reach"):
        plan([2.0, 0, 0, 0, 0, 0])


def test_a_program_waits_for_its_straight_move(box: ControlBox, arm: StandInArm) -> None:
    box.values.update(target_q=HOME)
    pose = KINEMATICS.forward(HOME, np.zeros(6)) + np.array([0, 0, 0.05, 0, 0, 0])
    text = f"def p():\n  movel(p{pose.tolist()}, a=1.0, v=0.1)\n  set_digital_out(0, True)\nend\n"
    ScriptSession(box).receive(text.encode())
    for _ in range(30):
        box.step()
        if isinstance(arm.commands[-1], cmd.Follow):
            arm.busy = True
    (follow,) = (command for command in arm.commands if isinstance(command, cmd.Follow))
    np.testing.assert_allclose(follow.motion.sample(np.zeros(1))[0][0], HOME, atol=1e-9)
    assert box.values["actual_digital_output_bits"] == 0
    assert box.program_state == ProgramState.PLAYING
    arm.busy = False
    for _ in range(3):
        box.step()
    assert box.values["actual_digital_output_bits"] == 1
    assert box.program_state == ProgramState.STOPPED


def test_the_simulated_arm_follows_the_line() -> None:
    arm = SimulatedArm(UR5E, motion=Hold(HOME))
    box = ControlBox(arm, SimulatedIdentity.for_robot(UR5E, (5, 11, 1), 0, "hold"))
    start = KINEMATICS.forward(HOME, np.zeros(6))
    goal = start + np.array([0.0, 0.05, 0.1, 0.0, 0.0, 0.0])
    ScriptSession(box).receive(f"movel(p{goal.tolist()}, a=1.0, v=0.3)\n".encode())
    box.step()
    poses = []
    while box.program_state == ProgramState.PLAYING:
        box.step()
        poses.append(np.array(box.values["actual_TCP_pose"]))
        assert len(poses) < 2000
    np.testing.assert_allclose(poses[-1], goal, atol=2e-3)
    shift = np.array(poses)[:, :3] - start[:3]
    along = (goal - start)[:3] / np.linalg.norm((goal - start)[:3])
    assert np.linalg.norm(shift - np.outer(shift @ along, along), axis=1).max() < 2e-3
