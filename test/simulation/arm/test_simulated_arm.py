"""The simulated arm seen by a client, compared with its truth and with real recordings."""

from __future__ import annotations

import numpy as np
import pytest

from ur_energy_model.errors import InputError
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.setup import Payload, Setup, gravity_of_mounting
from ur_energy_model.simulation import commands as cmd
from ur_energy_model.simulation.arm_options import ArmOptions
from ur_energy_model.simulation.parameters import constants
from ur_energy_model.simulation.simulated_arm import START_TIME, SimulatedArm
from ur_energy_model.telemetry.csv.reader import read_csv
from ur_energy_model.telemetry.fields import ENERGY_FIELDS, FIELDS
from ur_energy_model.trajectory.motions import Hold
from ur_energy_model.trajectory.named_motions import named_motion

ROBOT = load_robot("ur5e")
HOME = named_motion("hold", ROBOT).sample(np.zeros(1))[0][0]
BOX = {"actual_digital_output_bits", "output_int_register_0", "script_control_line"}
"""Fields of the control box, not of the arm."""


def run(arm, seconds, *names):
    """Values of fields over time, [samples] or [samples, n] each."""
    rows = []
    for _ in range(round(seconds * arm.rate)):
        arm.tick()
        rows.append([arm.outputs[name] for name in names])
    return [np.array(column) for column in zip(*rows, strict=True)]


@pytest.fixture(scope="module")
def moving():
    """An arm in trajectory A: the arm, and its energy fields over 11 s."""
    arm = SimulatedArm(ROBOT, motion=named_motion("trajectory_a", ROBOT), seed=5)
    names = [name for name in ENERGY_FIELDS if name not in BOX and "TCP" not in name]
    before = arm.energies(), arm.stored_energy()
    columns = dict(zip(names, run(arm, 11.0, *names), strict=True))
    return arm, columns, before


@pytest.fixture(scope="module")
def resting():
    """An arm at rest with a bent elbow: the arm, and some fields over 8 s."""
    arm = SimulatedArm(ROBOT, motion=Hold(HOME), seed=5)
    names = (
        "actual_q",
        "actual_qd",
        "actual_current",
        "target_current",
        "target_moment",
        "actual_robot_voltage",
        "actual_robot_current",
        "actual_joint_voltage",
    )
    return arm, dict(zip(names, run(arm, 8.0, *names), strict=True))


def test_it_has_every_recorded_field_with_the_right_width(moving):
    outputs = moving[0].outputs
    for name in set(ENERGY_FIELDS) - BOX:
        assert np.size(outputs[name]) == FIELDS[name].width, name
        assert np.isfinite(outputs[name]).all(), name
    assert set(outputs) <= set(FIELDS)


def test_time_passes_by_controller_cycles(moving):
    time = moving[1]["timestamp"]
    assert time[0] == pytest.approx(START_TIME + 0.002)
    assert np.allclose(np.diff(time), 0.002)


def test_equal_seeds_give_equal_values_and_others_do_not():
    motion = named_motion("trajectory_a", ROBOT)
    first, again, other = (SimulatedArm(ROBOT, motion=motion, seed=seed) for seed in (5, 5, 6))
    fields = ("actual_current", "actual_robot_current", "actual_q")
    for a, b, c in zip(*(run(arm, 0.3, *fields) for arm in (first, again, other)), strict=True):
        assert np.array_equal(a, b)
        assert not np.array_equal(a, c)


def test_target_moment_is_frictionless_inverse_dynamics_of_the_targets(moving):
    _, columns, _ = moving
    q, qd, qdd = (columns[f"target_{name}"] for name in ("q", "qd", "qdd"))
    expected = ArmDynamics(ROBOT).inverse_dynamics(q, qd, qdd) + ROBOT.reflected_inertia * qdd
    assert np.abs(columns["target_moment"] - expected).max() < 1e-9


def test_target_moment_includes_mounting_and_payload():
    setup = Setup(gravity_of_mounting(np.pi / 4, 0.3), Payload(1.5, np.array([0.0, 0.02, 0.1])))
    arm = SimulatedArm(ROBOT, motion=Hold(HOME), setup=setup)
    arm.tick()
    expected = ArmDynamics(ROBOT, setup).gravity_torque(HOME[None])[0]
    assert arm.outputs["target_moment"] == pytest.approx(expected, abs=1e-9)
    assert arm.outputs["payload"] == 1.5
    assert arm.outputs["payload_cog"] == pytest.approx([0.0, 0.02, 0.1])


def test_target_current_is_moment_over_torque_constant_at_rest_only(moving, resting):
    arm, columns = resting
    ratio = 101 * arm.parameters.torque_constant
    assert columns["target_current"] * ratio == pytest.approx(columns["target_moment"])
    arm, columns, _ = moving
    still = np.abs(columns["target_qd"]).max(axis=1) < 1e-12
    difference = columns["target_current"] * ratio - columns["target_moment"]
    assert np.abs(difference[still]).max() < 1e-9
    assert np.abs(difference[~still]).max(axis=0).min() > 1.0


def test_joints_follow_their_targets_as_closely_as_real_ones(moving):
    _, columns, _ = moving
    error = np.abs(columns["actual_q"] - columns["target_q"])
    assert error.max() < 5e-3  # recorded UR5e in streamed motion: up to 4.5 mrad
    late = error[-100:]  # at rest on the last point
    assert late.max() < 3e-3


def test_bus_power_is_explained_by_the_drives(moving):
    arm, columns, _ = moving
    p, i = arm.parameters, columns["actual_current"]
    power = columns["actual_robot_voltage"] * columns["actual_robot_current"]
    copper = (i**2) @ p.effective_resistance
    shaft = (p.current_to_torque * columns["actual_qd"] * i).sum(axis=1)
    driver = p.driver_loss * np.abs(i).sum(axis=1)
    residual = power - p.standby_power - copper - shaft - driver
    assert abs(residual.mean()) < 0.3
    assert 0.9 * p.power_noise < residual.std() < 1.9  # recorded arms leave 1.5 to 1.8 W
    assert power.min() > 0.0


def test_bus_energy_is_the_sum_of_the_true_energies(moving):
    arm, columns, (before, stored) = moving
    after = arm.energies()
    joints = after.joints().sum(axis=1) - before.joints().sum(axis=1)
    mechanical, electrical, copper, friction, output = joints
    whole = after.arm() - before.arm()
    bus, driver, standby, braking = whole
    assert electrical == pytest.approx(mechanical + copper)
    assert bus == pytest.approx(electrical + driver + standby + braking, abs=1e-6)
    assert output == pytest.approx(arm.stored_energy() - stored, abs=1e-3 * electrical)
    assert friction > 0.3 * electrical
    power = columns["actual_robot_voltage"] * columns["actual_robot_current"]
    assert np.trapezoid(power, columns["timestamp"]) == pytest.approx(bus, rel=0.005)
    counted = columns["actual_robot_energy_consumed"]
    assert counted[-1] - before.bus == pytest.approx(bus)


def test_friction_changes_the_holding_currents_after_a_motion(moving):
    _, columns, _ = moving
    still = np.abs(columns["target_qd"]).max(axis=1) < 1e-12
    offset = (columns["actual_current"] - columns["target_current"])[still]
    assert np.abs(offset.mean(axis=0)).max() > 0.02


def test_positions_are_whole_encoder_counts_and_rest_is_zero_speed(resting):
    _, columns = resting
    counts = columns["actual_q"] / (2 * np.pi / 2**18)
    assert np.abs(counts - np.rint(counts)).max() < 1e-6
    assert not columns["actual_qd"].any()


def noise(values):
    """Standard deviation of white noise on a signal [m] or on columns [m, n], without outliers."""
    steps = np.diff(values, axis=0)
    return np.median(np.abs(steps), axis=0) / 0.6745 / np.sqrt(2)


def test_noise_at_rest_is_that_of_recorded_arms(resting, recordings):
    _, simulated = resting
    real = read_csv([recordings / "ur5e_streamed_move_500hz_6s.csv.gz"], "ur5e")
    still = np.abs(real["target_qd"]).max(axis=1) < 1e-6
    settled = np.convolve(still, np.ones(25), "same") > 24.5
    assert settled.sum() > 500
    recorded = {name: values[settled] for name, values in real.columns.items()}
    for name in ("actual_current", "actual_robot_voltage", "actual_joint_voltage"):
        assert noise(simulated[name]) == pytest.approx(noise(recorded[name]), rel=0.35), name
    power = [
        part["actual_robot_voltage"] * part["actual_robot_current"]
        for part in (simulated, recorded)
    ]
    assert noise(power[0]) == pytest.approx(noise(power[1]), rel=0.3)


def test_joints_warm_up_as_they_work():
    arm = SimulatedArm(
        ROBOT, motion=named_motion("warm_up", ROBOT), options=ArmOptions(ambient=20.0)
    )
    cold = np.array(arm.outputs["joint_temperatures"])
    run(arm, 20.0, "timestamp")
    warm = np.array(arm.outputs["joint_temperatures"])
    assert np.all(cold > 20.0)
    assert np.all(warm >= cold)
    assert warm.sum() > cold.sum()
    steps = warm / constants()["sensors"]["temperature_step"]
    assert np.allclose(steps, np.rint(steps))


def test_the_payload_may_differ_from_the_configured_one():
    carried = Payload(2.8, np.array([0.0, 0.0, 0.05]))
    arms = [SimulatedArm(ROBOT, motion=Hold(HOME), carried=load) for load in (None, carried)]
    currents = []
    for arm in arms:
        (current,) = run(arm, 2.0, "actual_current")
        currents.append(current[-200:].mean(axis=0) * arm.parameters.current_to_torque)
    assert np.array_equal(arms[0].outputs["target_moment"], arms[1].outputs["target_moment"])
    expected = ArmDynamics(ROBOT, Setup(payload=carried)).gravity_torque(HOME[None])[0]
    expected -= ArmDynamics(ROBOT).gravity_torque(HOME[None])[0]
    # Static friction may carry a part of it, or be overcome.
    p = arms[0].parameters
    static = p.friction.breakaway * p.friction.coulomb.max(axis=0) + p.flex_spline_coulomb
    static = static + p.load_reverse * np.abs(currents[1])
    assert np.all(np.abs(currents[1] - currents[0] - expected) < 1.05 * static)
    assert np.all(np.abs(expected[1:3]) > 1.5 * static[1:3])


def test_a_payload_mounted_at_run_time_changes_the_currents():
    arm = SimulatedArm(ROBOT, motion=Hold(HOME))
    before = run(arm, 1.0, "actual_current")[0][-200:].mean(axis=0)
    arm.carry(Payload(5.0, np.array([0.0, 0.0, 0.05])))
    after = run(arm, 2.0, "actual_current")[0][-200:].mean(axis=0)
    change = np.abs(after - before) * arm.parameters.current_to_torque
    assert np.all(change[1:3] > 10.0)
    assert arm.outputs["payload"] == 0.0
    assert arm.stop_reason is None


def test_friction_changed_at_run_time_changes_the_currents_in_proportion():
    """Two joints at the same speed all the time; the arm stands upright, so both lift nothing."""
    speed = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    arm = SimulatedArm(ROBOT, motion=Hold(HOME))
    arm.command(cmd.SpeedJ(speed, a=5.0))
    before = run(arm, 1.0, "actual_current")[0][-200:].mean(axis=0)
    arm.change_friction(0, 1.3)
    after = run(arm, 0.6, "actual_current")[0][-200:].mean(axis=0)
    assert abs(after[0] / before[0] - 1.3) < 0.03
    assert abs(after[5] / before[5] - 1.0) < 0.03


def test_a_mounting_changed_at_run_time_changes_the_currents_but_not_the_targets():
    arm = SimulatedArm(ROBOT, motion=Hold(HOME))
    before = run(arm, 1.0, "actual_current", "target_moment")
    arm.tilt(np.array([0.0, -3.0, -9.3]))
    arm.carry(Payload(1.0))  # does not turn the arm back
    after = run(arm, 2.0, "actual_current", "target_moment")
    change = np.abs(after[0][-200:].mean(axis=0) - before[0][-200:].mean(axis=0))
    assert np.all((change * arm.parameters.current_to_torque)[[0, 1]] < 60.0)
    assert (change * arm.parameters.current_to_torque).max() > 3.0
    np.testing.assert_allclose(after[1][-1], before[1][-1], atol=1e-6)
    assert arm.stop_reason is None


def test_pd_control_follows_less_closely_and_feeds_gravity_forward_only():
    motion = named_motion("trajectory_a", ROBOT)
    arm = SimulatedArm(ROBOT, motion=motion, options=ArmOptions(controller="pd"))
    q, target, current = run(arm, 5.0, "actual_q", "target_q", "target_current")
    gravity = ArmDynamics(ROBOT).gravity_torque(target) / arm.parameters.current_to_torque
    assert np.abs(current - gravity).max() < 1e-9
    error = np.abs(q - target).max()
    assert 5e-3 < error < 0.1


def test_an_unknown_controller_is_refused():
    with pytest.raises(InputError, match="pd"):
        SimulatedArm(ROBOT, motion=Hold(HOME), options=ArmOptions(controller="fuzzy"))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["ur3", "ur10", "ur20", "gen3"])
def test_arms_without_known_motors_move(name):
    robot = load_robot(name)
    arm = SimulatedArm(robot, motion=named_motion("trajectory_b", robot), seed=1)
    time, q, target = run(arm, 3.0, "timestamp", "actual_q", "target_q")
    assert arm.stop_reason is None
    assert np.allclose(np.diff(time), 1.0 / robot.rate)
    assert np.abs(q - target).max() < 5e-3


def test_tool_fields_follow_the_joints(moving):
    arm = moving[0]
    out = arm.outputs
    pose = ArmDynamics(ROBOT).flange_pose(np.asarray(out["actual_q"])[None])[0]
    assert out["actual_TCP_pose"][:3] == pytest.approx(pose[:3, 3])
    at_rest = SimulatedArm(ROBOT, motion=Hold(HOME))
    assert at_rest.outputs["actual_tool_accelerometer"] == pytest.approx([0, 0, -9.82], abs=0.3)
    assert at_rest.outputs["actual_TCP_speed"] == pytest.approx(np.zeros(6))
