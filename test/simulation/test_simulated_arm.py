# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The simulated arm seen by a client, compared with its truth and with real recordings."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from ur_energy_model.consistency.controller_constants import ControllerConstantsFit
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.simulation import arm_commands as cmd
from ur_energy_model.simulation.arm_constants import constants
from ur_energy_model.simulation.arm_options import ArmOptions
from ur_energy_model.simulation.parameters import draw_parameters
from ur_energy_model.simulation.simulated_arm import START_TIME, SimulatedArm, record_arm
from ur_energy_model.simulation.supply import ARM_ENERGIES, JOINT_ENERGIES, Bus
from ur_energy_model.telemetry.csv.reader import read_csv
from ur_energy_model.trajectory.motions import Hold
from ur_energy_model.trajectory.named_motions import Planner, named_motion

ROBOT = load_robot("ur5e")
HOME = named_motion("hold", ROBOT).sample(np.zeros(1))[0][0]
MOTION = named_motion("trajectory_a", ROBOT)
"""Fields of the control box, not of the arm."""


@pytest.fixture(scope="module")
def moving(tmp_path_factory):
    """An arm in trajectory A for 5 s with a truth file: arm, recording, energies before, truth."""
    path = tmp_path_factory.mktemp("truth") / "truth.json"
    arm = SimulatedArm(ROBOT, motion=MOTION, seed=5, truth=path)
    before = arm.energies(), arm.stored_energy()
    recorded = record_arm(arm, 5.0)
    arm.close()
    with np.load(path.with_suffix(".npz")) as file:
        return arm, recorded, before, json.loads(path.read_text()), dict(file)


@pytest.fixture(scope="module")
def resting():
    """Recording of 4 s of an arm at rest with a bent elbow."""
    return record_arm(SimulatedArm(ROBOT, motion=Hold(HOME), seed=5), 4.0)


def test_equal_seeds_give_equal_values_and_others_do_not():
    first, again, other, one, two = (
        record_arm(
            SimulatedArm(ROBOT, motion=MOTION, seed=seed, options=ArmOptions(session)),
            0.2,
        )["actual_current"]
        for seed, session in ((5, 0), (5, 0), (6, 0), (5, 1), (5, 2))
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    noise = np.diff(one, axis=0).ravel(), np.diff(two, axis=0).ravel()
    assert abs(np.corrcoef(*noise)[0, 1]) < 0.5


def test_measured_torques_are_currents_with_or_without_the_declared_gravity():
    """Also after another payload was declared; what the arm carries does not matter."""
    fields = ("actual_q", "actual_current", "actual_current_as_torque")
    for content in ("with_gravity", "without_gravity"):
        options = ArmOptions(controller_version=(5, 23, 0), torque_field=content)
        arm = SimulatedArm(
            ROBOT,
            motion=MOTION,
            carried=Payload(1.0, np.array([0.0, 0.0, 0.05])),
            options=options,
        )
        for declared in (Payload(), Payload(2.0, np.array([0.0, 0.02, 0.08]))):
            arm.command(cmd.SetPayload(declared.mass, declared.center_of_mass))
            made = record_arm(arm, 0.2, fields)
            torque = made["actual_current"] * arm.parameters.stated_current_to_torque
            if content == "without_gravity":
                known = ArmDynamics(ROBOT, Setup(payload=declared))
                torque = torque - known.gravity_torque(made["actual_q"])
            found = made["actual_current_as_torque"]
            np.testing.assert_allclose(found, torque, atol=1e-9)


def test_target_moment_is_frictionless_inverse_dynamics_of_the_targets(moving, resting):
    arm, recorded, *_ = moving
    q, qd, qdd = (recorded[f"target_{name}"] for name in ("q", "qd", "qdd"))
    expected = (
        ArmDynamics(ROBOT).inverse_dynamics(q, qd, qdd) + ROBOT.reflected_inertia * qdd
    )
    assert np.abs(recorded["target_moment"] - expected).max() < 1e-9
    # Friction is fed forward to the current: the two are proportional at rest only.
    ratio = arm.parameters.stated_current_to_torque
    difference = recorded["target_current"] * ratio - recorded["target_moment"]
    assert np.abs(difference).max(axis=0).min() > 1.0
    at_rest = resting["target_current"] - arm.parameters.controller_current_offset
    assert at_rest * ratio == pytest.approx(resting["target_moment"])


def test_bus_power_and_energy_are_explained_by_the_drives(moving):
    arm, recorded, (before, stored), *_ = moving
    p = arm.parameters
    i = recorded["actual_current"]
    losses = (i**2) @ p.effective_resistance + p.driver_loss * np.abs(i).sum(axis=1)
    shaft = (p.current_to_torque * recorded["actual_qd"] * i).sum(axis=1)
    residual = recorded.bus_power - p.standby_power - losses - shaft
    assert abs(residual.mean()) < 0.3
    assert 0.9 * p.power_noise < residual.std() < 1.9  # recorded arms leave 1.5 to 1.8 W
    assert recorded.bus_power.min() > 0.0
    after = arm.energies()
    joints = after.joints().sum(axis=1) - before.joints().sum(axis=1)
    mechanical, electrical, copper, friction, output = joints
    bus, driver, standby, braking, wall = after.arm() - before.arm()
    assert electrical == pytest.approx(mechanical + copper)
    assert bus == pytest.approx(electrical + driver + standby + braking, abs=0.1)
    assert output == pytest.approx(arm.stored_energy() - stored, abs=1e-3 * electrical)
    assert friction > 0.3 * electrical
    assert np.trapezoid(recorded.bus_power, recorded.time) == pytest.approx(
        bus, rel=0.005
    )
    assert arm.outputs["actual_robot_energy_consumed"] - before.bus == pytest.approx(bus)
    mains = arm.wall.power(recorded["robot_mode"], recorded.bus_power)
    assert np.trapezoid(mains, recorded.time) == pytest.approx(wall, rel=0.005)


def test_truth_has_the_energies_of_any_interval_and_the_true_constants(moving):
    arm, recorded, _, truth, arrays = moving
    assert [joint["name"] for joint in truth["joints"]] == list(ROBOT.joint_names)
    assert truth["controller_time"]["start"] == START_TIME
    assert truth["duration"] == pytest.approx(5.0)
    assert np.median(np.diff(arrays["timestamp"])) == pytest.approx(0.02)
    for key in JOINT_ENERGIES:
        energy = arrays[key][-1] - arrays[key][0]
        assert energy == pytest.approx([joint[key] for joint in truth["joints"]])
    assert {arrays[key].shape for key in ARM_ENERGIES} == {arrays["timestamp"].shape}
    p = arm.parameters
    power = p.current_to_torque * recorded["actual_qd"] * recorded["actual_current"]
    mechanical = [joint["mechanical_energy"] for joint in truth["joints"]]
    assert power.sum(axis=0) * 0.002 == pytest.approx(mechanical, rel=0.02, abs=0.2)
    assert [
        joint["torque_constant"] for joint in truth["joints"]
    ] == p.torque_constant.tolist()


def noise(values):
    """Standard deviation of white noise on a signal [m] or on columns [m, n], without outliers."""
    return np.median(np.abs(np.diff(values, axis=0)), axis=0) / 0.6745 / np.sqrt(2)


def test_noise_at_rest_is_that_of_recorded_arms(resting, recordings):
    counts = resting["actual_q"] / (2 * np.pi / 2**18)
    assert np.abs(counts - np.rint(counts)).max() < 1e-6
    assert not resting["actual_qd"].any()
    real = read_csv([recordings / "ur5e_streamed_move_500hz_6s.csv.gz"], "ur5e")
    still = np.abs(real["target_qd"]).max(axis=1) < 1e-6
    real = real.select(np.convolve(still, np.ones(25), "same") > 24.5)
    assert len(real) > 500
    for name in ("actual_current", "actual_robot_voltage", "actual_joint_voltage"):
        assert noise(resting[name]) == pytest.approx(noise(real[name]), rel=0.35), name
    assert noise(resting.bus_power) == pytest.approx(noise(real.bus_power), rel=0.3)


def test_joints_warm_up_as_they_work():
    options = ArmOptions(ambient=20.0, warmth=0.0)
    arm = SimulatedArm(ROBOT, motion=named_motion("warm_up", ROBOT), options=options)
    record_arm(arm, 4.0, [])
    arm.close()
    warm = arm._balance.temperature
    assert np.all(warm > 20.0)
    losses = arm.energies().joints()[[2, 3]].sum(axis=0)  # copper and friction
    heat = losses + 4.0 * arm.parameters.standby_heat
    assert warm - 20.0 == pytest.approx(heat / arm.parameters.thermal_capacity, rel=0.03)


def holding_torque(arm, seconds=1.5):
    current = record_arm(arm, seconds, ["actual_current"])["actual_current"]
    return current[-200:].mean(axis=0) * arm.parameters.current_to_torque


def test_unannounced_changes_show_in_the_currents_only():
    """Another payload from the start and at run time, another mounting."""
    carried = Payload(2.8, np.array([0.0, 0.0, 0.05]))
    arm, loaded = (
        SimulatedArm(ROBOT, motion=Hold(HOME), carried=load) for load in (None, carried)
    )
    before = holding_torque(arm)
    target = np.array(arm.outputs["target_moment"])
    after = holding_torque(loaded)
    assert np.array_equal(target, loaded.outputs["target_moment"])
    expected = ArmDynamics(ROBOT, Setup(payload=carried)).gravity_torque(HOME[None])[0]
    expected -= ArmDynamics(ROBOT).gravity_torque(HOME[None])[0]
    p = arm.parameters  # static friction may carry a part of it, or be overcome
    static = p.friction.breakaway * p.friction.coulomb.max(axis=0) + p.flex_spline_coulomb
    static = static + p.load_reverse * np.abs(after)
    assert np.all(np.abs(after - before - expected) < 1.05 * static)
    arm.carry(Payload(5.0, np.array([0.0, 0.0, 0.05])))
    carrying = holding_torque(arm)
    assert np.all(np.abs(carrying - before)[1:3] > 10.0)
    arm.tilt(np.array([0.0, -3.0, -9.3]))
    assert np.abs(holding_torque(arm) - carrying).max() > 3.0
    np.testing.assert_allclose(arm.outputs["target_moment"], target, atol=1e-6)
    assert (arm.outputs["payload"], arm.stop_reason) == (0.0, None)


def test_friction_changed_at_run_time_changes_the_currents_in_proportion():
    """Two joints at the same speed all the time; the arm stands upright, so both lift nothing."""
    arm = SimulatedArm(ROBOT, motion=Hold(HOME))
    arm.command(cmd.SpeedJ(np.array([1.0, 0.0, 0.0, 0.0, 0.0, 1.0]), a=5.0))
    before = holding_torque(arm, 1.0)
    arm.change_friction(0, 1.3)
    ratio = holding_torque(arm, 0.6) / before
    assert ratio[[0, 5]] == pytest.approx([1.3, 1.0], abs=0.03)


def test_energy_of_the_bus_is_conserved_and_stored_energy_is_used_first():
    """The supply never absorbs power; it delivers behind its source resistance."""
    table = constants()["bus"]
    bus = Bus()
    bus.advance(0.002, 100.0)
    assert bus.voltage * bus.current == pytest.approx(100.0)
    drop = table["source_resistance"] * bus.current
    assert bus.voltage == pytest.approx(table["open_voltage"] - drop)
    bus = Bus()
    power = 40.0 + 260.0 * np.sin(np.linspace(0.0, 60.0, 5000))
    states = []
    for value in power.tolist():
        bus.advance(0.002, value)
        states.append((bus.voltage, bus.current))
    voltage, current = np.array(states).T
    assert bus.supplied == pytest.approx(0.002 * power.sum() + bus.braked + bus.surplus)
    assert current.min() == 0.0
    assert table["brake_voltage"] < voltage.max() < table["brake_voltage"] + 6.0


def test_target_current_states_the_controllers_constants_not_the_motors():
    robot = replace(ROBOT, rate=125.0)
    planner = Planner(robot)
    arm = SimulatedArm(
        robot, motion=planner.chain_through(planner.random_points(3)), seed=5
    )
    fit = ControllerConstantsFit(robot)
    fit.accumulate(record_arm(arm, 14.0))
    found = fit.result()
    p = arm.parameters
    stated = found.torque_per_ampere / p.stated_current_to_torque - 1.0
    assert found.known[1:4].all()
    assert np.abs(stated[1:4]).max() < 0.003
    hidden = p.stated_torque_constant / p.torque_constant - 1.0
    assert 0.001 < np.abs(hidden).max() < 0.03


def test_friction_is_compensated_by_speed_and_at_the_shoulder_lift_by_load_as_well():
    compensation = draw_parameters(ROBOT, 5).compensation
    light = np.full(6, 1.0)
    slow, full, fast = (
        compensation.torque(np.full(6, speed), light) for speed in (0.005, 0.01, 1.0)
    )
    assert (slow < 0.6 * full).all()
    assert (fast > 1.2 * full).all()
    assert compensation.torque(np.full(6, -1.0), -light) == pytest.approx(-fast)
    of_load = compensation.torque(np.full(6, 1.0), 100.0 * light) - fast
    assert of_load[1] > 0.0
    assert np.delete(of_load, 1) == pytest.approx(np.zeros(5))


def test_one_arm_of_four_has_a_current_offset():
    offsets = np.array(
        [draw_parameters(ROBOT, k).controller_current_offset for k in range(200)]
    )
    offset = (offsets != 0.0).any(axis=1)
    assert 0.15 < offset.mean() < 0.35
    assert 0.003 < np.abs(offsets[offset, 0]).mean() < 0.02
