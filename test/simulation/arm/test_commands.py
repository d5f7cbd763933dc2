"""Commands to the arm: moves, streams, stops, power, payload, protective stops."""

from __future__ import annotations

import numpy as np
import pytest

from ur_energy_model.errors import MotionRefusedError
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.simulation import commands as cmd
from ur_energy_model.simulation.commands import JointMode, ProgramState, RobotMode, SafetyMode
from ur_energy_model.simulation.parameters import constants
from ur_energy_model.simulation.simulated_arm import SimulatedArm
from ur_energy_model.trajectory.motions import Hold
from ur_energy_model.trajectory.named_motions import TOOL_SPEED, named_motion

ROBOT = load_robot("ur5e")
HOME = named_motion("hold", ROBOT).sample(np.zeros(1))[0][0]
AWAY = HOME + np.array([0.4, 0.2, -0.3, 0.1, 0.2, -0.5])


def run(arm, seconds, *names):
    rows = []
    for _ in range(round(seconds * arm.rate)):
        arm.tick()
        rows.append([np.asarray(arm.outputs[name]) for name in names])
    return [np.array(column) for column in zip(*rows, strict=True)]


def power(arm, seconds=0.4):
    voltage, current = run(arm, seconds, "actual_robot_voltage", "actual_robot_current")
    return float((voltage * current).mean())


@pytest.fixture
def arm():
    return SimulatedArm(ROBOT, motion=Hold(HOME), seed=3)


@pytest.fixture
def playing():
    return SimulatedArm(ROBOT, motion=named_motion("trajectory_a", ROBOT), seed=3)


def test_move_j_uses_the_requested_speed_and_acceleration(arm):
    arm.command(cmd.MoveJ(AWAY, v=0.6, a=2.0))
    assert arm.busy
    qd, qdd = run(arm, 2.0, "target_qd", "target_qdd")
    assert not arm.busy
    assert arm.outputs["target_q"] == pytest.approx(AWAY)
    assert arm.outputs["actual_q"] == pytest.approx(AWAY, abs=2e-4)
    assert np.abs(qd).max() == pytest.approx(0.6)
    assert np.abs(qdd).max() == pytest.approx(2.0)


def test_a_move_keeps_to_the_tool_speed_that_the_controller_plans_with(arm):
    start = np.array([0.0, -0.3, 0.2, 0.0, 0.0, 0.0])
    arm.command(cmd.MoveJ(start, v=3.0, a=6.0))
    run(arm, 3.0, "timestamp")
    arm.command(cmd.MoveJ(start + np.array([2.0, 0, 0, 0, 0, 0]), v=3.0, a=6.0))
    qd, speed = run(arm, 3.0, "target_qd", "target_TCP_speed")
    assert not arm.busy
    assert np.linalg.norm(speed[:, :3], axis=1).max() == pytest.approx(TOOL_SPEED, rel=0.01)
    assert np.abs(qd).max() < 2.0


def test_a_move_during_a_move_stops_first_and_reaches_the_new_goal(arm):
    arm.command(cmd.MoveJ(AWAY))
    run(arm, 0.3, "timestamp")
    arm.command(cmd.MoveJ(HOME))
    (q,) = run(arm, 2.0, "target_q")
    assert not arm.busy
    assert arm.outputs["target_q"] == pytest.approx(HOME)
    assert np.abs(np.diff(q, axis=0)).max() < 1.1 * 1.05 * 0.002


def test_stop_j_brings_the_arm_to_rest_with_its_deceleration(arm):
    arm.command(cmd.SpeedJ(np.array([0.5, 0, 0, 0, 0, 0]), a=2.0))
    run(arm, 0.5, "timestamp")
    assert arm.outputs["target_qd"][0] == pytest.approx(0.5)
    assert arm.outputs["actual_qd"][0] == pytest.approx(0.5, abs=0.03)
    arm.command(cmd.StopJ(a=1.0))
    run(arm, 0.45, "timestamp")
    assert arm.busy
    run(arm, 0.1, "timestamp")
    assert not arm.busy
    assert not arm.outputs["target_qd"].any()


def test_servo_j_follows_a_stream_with_its_lookahead(arm):
    lag = []
    for k in range(1000):
        angle = 0.1 * np.sin(2 * np.pi * 0.25 * 0.002 * k)
        arm.command(cmd.ServoJ(HOME + angle, time=0.002, lookahead=0.05, gain=300.0))
        arm.tick()
        lag.append(HOME[0] + angle - arm.outputs["actual_q"][0])
    assert arm.safety_mode is SafetyMode.NORMAL
    assert np.abs(lag).max() < 0.012
    assert arm.busy
    arm.command(cmd.StopJ())
    run(arm, 0.5, "timestamp")
    assert not arm.busy


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (cmd.MoveJ(HOME + np.array([0, 0, 3.0, 0, 0, 0])), "out of range"),
        (cmd.ServoJ(np.full(6, np.nan)), "out of range"),
        (cmd.SpeedJ(np.full(6, np.nan)), "not a number"),
        (cmd.ServoJ(HOME + np.array([2.5, 0, 0, 0, 0, 0]), lookahead=0.03), "speed limit"),
        (cmd.SpeedJ(np.array([0, 0, 0, 0, 0, 4.0]), a=20.0), "speed limit of wrist_3_joint"),
    ],
)
def test_exceeded_limits_stop_the_arm_and_keep_it_powered(arm, command, reason):
    arm.command(command)
    run(arm, 1.5, "timestamp")
    assert arm.safety_mode is SafetyMode.PROTECTIVE_STOP
    assert reason in arm.stop_reason
    assert arm.outputs["safety_mode"] == 3
    assert arm.outputs["robot_mode"] == 7
    assert not arm.outputs["target_qd"].any()
    with pytest.raises(MotionRefusedError, match="unlock"):
        arm.command(cmd.MoveJ(AWAY))
    arm.command(cmd.SafetyCommand.UNLOCK)
    arm.command(cmd.MoveJ(HOME))
    run(arm, 4.0, "timestamp")
    assert arm.outputs["target_q"] == pytest.approx(HOME)


def test_a_position_limit_stops_the_arm_close_to_it(arm):
    arm.command(cmd.SpeedJ(np.array([0, 0, 1.0, 0, 0, 0]), a=5.0))
    run(arm, 4.0, "timestamp")
    assert "position limit of elbow_joint" in arm.stop_reason
    assert arm.outputs["actual_q"][2] < ROBOT.max_position[2] + 0.1


def test_a_joint_that_does_not_follow_stops_the_arm():
    heavy = Payload(60.0, np.array([0.0, 0.0, 0.3]))
    arm = SimulatedArm(ROBOT, motion=Hold(HOME), carried=heavy)
    run(arm, 1.0, "timestamp")
    assert "does not follow" in str(arm.stop_reason)


def test_a_load_beyond_the_torque_limits_stops_the_arm():
    setup = Setup(payload=Payload(40.0, np.array([0.0, 0.0, 0.2])))
    arm = SimulatedArm(ROBOT, motion=Hold(HOME), setup=setup)
    run(arm, 0.1, "timestamp")
    assert "torque limit" in str(arm.stop_reason)


def test_a_protective_stop_pauses_the_program_until_unlock_and_play(playing):
    run(playing, 0.5, "timestamp")
    playing.command(cmd.SafetyCommand.PROTECTIVE_STOP)
    run(playing, 1.0, "timestamp")
    assert playing.program_state is ProgramState.PAUSED
    assert not playing.outputs["target_qd"].any()
    playing.command(cmd.SafetyCommand.UNLOCK)
    playing.command(cmd.ProgramCommand.PLAY)
    (qd,) = run(playing, 3.0, "target_qd")
    assert playing.program_state is ProgramState.PLAYING
    assert np.abs(qd).max() > 0.3


def test_pause_holds_the_motion_and_play_resumes_it(playing):
    run(playing, 0.4, "timestamp")
    playing.command(cmd.ProgramCommand.PAUSE)
    (scaling,) = run(playing, 0.5, "speed_scaling")
    assert playing.program_state is ProgramState.PAUSED
    assert scaling[-1] == 0.0
    held = np.array(playing.outputs["target_q"])
    run(playing, 0.5, "timestamp")
    assert playing.outputs["target_q"] == pytest.approx(held)
    playing.command(cmd.ProgramCommand.PLAY)
    q, qd = run(playing, 0.5, "target_q", "target_qd")
    assert np.abs(np.diff(np.vstack([held, q]), axis=0)).max() < 3.2 * 0.002
    assert np.abs(qd).max() > 0.3


def test_stop_ends_the_motion_and_play_restarts_it(playing):
    run(playing, 1.0, "timestamp")
    playing.command(cmd.ProgramCommand.STOP)
    run(playing, 1.0, "timestamp")
    assert playing.program_state is ProgramState.STOPPED
    assert not playing.busy
    playing.command(cmd.ProgramCommand.PLAY)
    (q,) = run(playing, 6.0, "target_q")
    start = named_motion("trajectory_a", ROBOT).sample(np.zeros(1))[0][0]
    assert np.abs(q - start).max(axis=1).min() < 1e-3


def test_a_command_replaces_the_built_in_motion(playing):
    run(playing, 1.0, "timestamp")
    playing.command(cmd.MoveJ(HOME, v=3.0, a=6.0))
    q, _ = run(playing, 3.0, "target_q", "timestamp")
    assert playing.program_state is ProgramState.STOPPED
    assert q[-1] == pytest.approx(HOME)
    assert np.abs(np.diff(q, axis=0)).max() < 3.2 * 0.002


def test_the_speed_slider_scales_the_motion_in_time(playing):
    motion = named_motion("trajectory_a", ROBOT)
    playing.command(cmd.SpeedSlider(0.5))
    q, fraction, scaling = run(playing, 2.0, "target_q", "target_speed_fraction", "speed_scaling")
    assert fraction[-1] == 0.5
    assert scaling[-1] == pytest.approx(1.0)  # the slider is no limit of the trajectory
    passed = 0.002 * np.cumsum(scaling * fraction)
    assert np.abs(q - motion.sample(passed)[0]).max() < 1e-6


def test_target_accelerations_are_right_while_the_scaling_changes(playing):
    run(playing, 0.3, "timestamp")
    playing.command(cmd.SpeedSlider(0.2))
    qd, qdd = run(playing, 0.2, "target_qd", "target_qdd")
    assert np.abs(np.diff(qd, axis=0) / 0.002 - 0.5 * (qdd[1:] + qdd[:-1])).max() < 0.1


def test_set_payload_changes_the_controller_and_not_the_arm(arm):
    run(arm, 0.2, "timestamp")
    arm.command(cmd.SetPayload(2.0, np.array([0.0, 0.0, 0.08])))
    run(arm, 0.2, "timestamp")
    configured = Setup(payload=Payload(2.0, np.array([0.0, 0.0, 0.08])))
    expected = ArmDynamics(ROBOT, configured).gravity_torque(HOME[None])[0]
    assert arm.outputs["target_moment"] == pytest.approx(expected, abs=1e-9)
    assert arm.outputs["payload"] == 2.0
    assert arm.outputs["actual_q"] == pytest.approx(HOME, abs=5e-3)


def test_power_modes_and_their_power_levels(arm):
    running = power(arm)
    current = np.asarray(arm.outputs["target_current"])
    holding = arm.parameters.effective_resistance @ current**2
    holding += arm.parameters.driver_loss * np.abs(current).sum()
    assert running == pytest.approx(arm.parameters.standby_power + holding, abs=0.5)
    arm.command(cmd.PowerCommand.OFF)
    arm.tick()
    assert arm.robot_mode is RobotMode.POWER_OFF
    assert power(arm) == 0.0
    assert set(arm.outputs["joint_mode"]) == {float(JointMode.POWER_OFF)}
    with pytest.raises(MotionRefusedError, match="power it on"):
        arm.command(cmd.MoveJ(AWAY))
    arm.command(cmd.PowerCommand.ON)
    assert arm.robot_mode is RobotMode.POWER_ON
    run(arm, 1.1, "timestamp")
    assert arm.robot_mode is RobotMode.IDLE
    idle = power(arm)
    held = 6 * constants()["bus"]["brake_release_power"]
    assert idle == pytest.approx(arm.parameters.standby_power - held, abs=1.0)
    arm.command(cmd.PowerCommand.RELEASE_BRAKES)
    run(arm, 1.0, "timestamp")
    assert arm.robot_mode is RobotMode.RUNNING
    assert power(arm) == pytest.approx(running, abs=1.0)
    arm.command(cmd.MoveJ(AWAY))
    run(arm, 2.0, "timestamp")
    assert arm.outputs["actual_q"] == pytest.approx(AWAY, abs=3e-4)


def test_brake_release_powers_the_arm_where_needed(arm):
    arm.command(cmd.PowerCommand.OFF)
    run(arm, 0.1, "timestamp")
    arm.command(cmd.PowerCommand.RELEASE_BRAKES)
    run(arm, 2.0, "timestamp")
    assert arm.robot_mode is RobotMode.RUNNING


def test_brakes_hold_a_moving_arm_at_power_off(playing):
    run(playing, 0.5, "timestamp")
    playing.command(cmd.PowerCommand.OFF)
    q, current = run(playing, 0.5, "actual_q", "actual_current")
    assert np.abs(q[100:] - q[-1]).max() < 0.01  # the links still swing on their gears
    assert np.abs(current[100:]).max() < 0.2
    assert playing.program_state is ProgramState.STOPPED


@pytest.mark.parametrize("command", [cmd.MoveJ(AWAY, v=0.0, a=-1.0), cmd.MoveJ(AWAY, a=np.nan)])
def test_a_move_without_speed_hardly_moves(arm, command):
    arm.command(command)
    (q,) = run(arm, 0.5, "target_q")
    assert np.abs(q - HOME).max() < 1e-3
    assert arm.safety_mode is SafetyMode.NORMAL


def test_equal_commands_and_seeds_give_equal_runs(arm):
    again = SimulatedArm(ROBOT, motion=Hold(HOME), seed=3)
    results = []
    for each in (arm, again):
        each.command(cmd.MoveJ(AWAY))
        results.append(run(each, 0.5, "actual_current")[0])
    assert np.array_equal(*results)
