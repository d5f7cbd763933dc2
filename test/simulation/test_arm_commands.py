# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Commands to the arm: moves, streams, stops, power, payload, protective stops."""

from __future__ import annotations

import numpy as np
import pytest

from ur_energy_model.errors import MotionRefusedError
from ur_energy_model.model.robots import load_robot
from ur_energy_model.simulation import arm_commands as cmd
from ur_energy_model.simulation.arm_commands import ProgramState, RobotMode, SafetyMode
from ur_energy_model.simulation.arm_constants import constants
from ur_energy_model.simulation.simulated_arm import SimulatedArm, record_arm
from ur_energy_model.trajectory.motions import Hold
from ur_energy_model.trajectory.named_motions import named_motion

ROBOT = load_robot("ur5e")
HOME = named_motion("hold", ROBOT).sample(np.zeros(1))[0][0]
AWAY = HOME + np.array([0.4, 0.2, -0.3, 0.1, 0.2, -0.5])
MOTION = named_motion("trajectory_a", ROBOT)


def run(arm, seconds, *names):
    recorded = record_arm(arm, seconds, names)
    return [recorded[name] for name in names]


@pytest.fixture
def arm():
    return SimulatedArm(ROBOT, motion=Hold(HOME), seed=3)


@pytest.fixture
def playing():
    """An arm that has played trajectory A for a moment."""
    arm_ = SimulatedArm(ROBOT, motion=MOTION, seed=3)
    run(arm_, 0.5)
    return arm_


def test_moves_have_the_requested_speed_and_acceleration(arm):
    for nothing in (cmd.MoveJ(AWAY, v=0.0, a=-1.0), cmd.MoveJ(AWAY, a=np.nan)):
        arm.command(nothing)
        (q,) = run(arm, 0.1, "target_q")
        assert np.abs(q - HOME).max() < 1e-3, "a move without speed hardly moves"
    arm.command(cmd.MoveJ(AWAY, v=0.6, a=2.0))
    qd, qdd = run(arm, 1.6, "target_qd", "target_qdd")
    assert not arm.busy
    assert arm.outputs["actual_q"] == pytest.approx(AWAY, abs=5e-4)
    largest = np.abs(qd).max(), np.abs(qdd[100:]).max()
    assert largest == (pytest.approx(0.6, rel=2e-3), pytest.approx(2.0, rel=2e-3))


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (cmd.MoveJ(HOME + np.array([0, 0, 3.0, 0, 0, 0])), "out of range"),
        (cmd.SpeedJ(np.full(6, np.nan)), "not a number"),
        (
            cmd.SpeedJ(np.array([0, 0, 0, 0, 0, 4.0]), a=20.0),
            "speed limit of wrist_3_joint",
        ),
        (
            cmd.SpeedJ(np.array([0, 0, 2.5, 0, 0, 0]), a=15.0),
            "position limit of elbow_joint",
        ),
        (cmd.SetPayload(40.0, np.array([0.0, 0.0, 0.2])), "torque limit"),
    ],
)
def test_exceeded_limits_stop_the_arm_and_keep_it_powered(arm, command, reason):
    arm.command(command)
    run(arm, 1.3)
    assert reason in arm.stop_reason
    assert (arm.outputs["safety_mode"], arm.outputs["robot_mode"]) == (3, 7)
    assert not arm.outputs["target_qd"].any()
    with pytest.raises(MotionRefusedError, match="unlock"):
        arm.command(cmd.MoveJ(AWAY))
    arm.command(cmd.SafetyCommand.UNLOCK)
    assert arm.safety_mode is SafetyMode.NORMAL


@pytest.mark.parametrize(
    ("commands", "state"),
    [
        (
            [cmd.SafetyCommand.PROTECTIVE_STOP, cmd.SafetyCommand.UNLOCK],
            ProgramState.PAUSED,
        ),
        # replaces the built-in motion
        ([cmd.MoveJ(HOME, v=3.0, a=6.0)], ProgramState.STOPPED),
    ],
)
def test_the_motion_rests_until_it_is_played_again(playing, commands, state):
    for command in commands:
        playing.command(command)
    run(playing, 2.0 if isinstance(commands[0], cmd.MoveJ) else 0.6)
    held = np.array(playing.outputs["target_q"])
    (q,) = run(playing, 0.1, "target_q")
    assert playing.program_state is state
    assert q == pytest.approx(np.tile(held, (50, 1)))
    playing.command(cmd.ProgramCommand.PLAY)
    q, qd = run(playing, 1.5, "target_q", "target_qd")
    assert playing.program_state is ProgramState.PLAYING
    assert np.abs(np.diff(np.vstack([held, q]), axis=0)).max() < 3.2 * 0.002
    assert np.abs(qd).max() > 0.3


def test_the_speed_slider_scales_the_motion_in_time():
    arm = SimulatedArm(ROBOT, motion=MOTION, seed=3)
    arm.command(cmd.SpeedSlider(0.5))
    names = (
        "target_q",
        "target_qd",
        "target_qdd",
        "target_speed_fraction",
        "speed_scaling",
    )
    q, qd, qdd, fraction, scaling = run(arm, 1.5, *names)
    # no limit of the trajectory
    assert (fraction[-1], scaling[-1]) == (0.5, pytest.approx(1.0))
    passed = 0.002 * np.cumsum(scaling * fraction)
    assert np.abs(q - MOTION.sample(passed)[0]).max() < 1e-6
    error = np.abs(np.diff(qd, axis=0) / 0.002 - 0.5 * (qdd[1:] + qdd[:-1]))
    assert np.quantile(error, 0.99) < 0.1  # all but the corners of the profile


def test_power_modes_and_their_power_levels(arm):
    def power():
        voltage, current = run(arm, 0.4, "actual_robot_voltage", "actual_robot_current")
        return float((voltage * current).mean())

    running = power()
    p = arm.parameters
    current = np.asarray(arm.outputs["target_current"])
    holding = p.effective_resistance @ current**2 + p.driver_loss * np.abs(current).sum()
    assert running == pytest.approx(p.standby_power + holding, abs=0.5)
    arm.command(cmd.PowerCommand.OFF)
    assert power() == 0.0
    assert set(arm.outputs["joint_mode"]) == {239.0}
    with pytest.raises(MotionRefusedError, match="power it on"):
        arm.command(cmd.MoveJ(AWAY))
    arm.command(cmd.PowerCommand.ON)
    assert arm.robot_mode is RobotMode.POWER_ON
    run(arm, 1.1)
    assert arm.robot_mode is RobotMode.IDLE
    held = 6 * constants()["bus"]["brake_release_power"]
    assert power() == pytest.approx(p.standby_power - held, abs=1.0)
    arm.command(cmd.PowerCommand.OFF)
    arm.tick()
    arm.command(cmd.PowerCommand.RELEASE_BRAKES)  # powers it where needed
    run(arm, 1.6)
    assert arm.robot_mode is RobotMode.RUNNING
    assert power() == pytest.approx(running, abs=1.0)
