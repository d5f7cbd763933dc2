"""Constants of simulated arms: their calibration and their spread."""

from __future__ import annotations

import numpy as np
import pytest
import yaml

from ur_energy_model.errors import InputError
from ur_energy_model.model.robots import available_robots, load_robot
from ur_energy_model.simulation.arm_options import draw_session, with_drive_set
from ur_energy_model.simulation.parameters import constants, draw_parameters, fit_calibration
from ur_energy_model.simulation.supply import EnergyBalance


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_friction_curves_meet_the_factory_calibration(direction):
    table = constants()["friction_calibration"]
    speed, current = np.array(table["speed"]), np.array(table[direction])
    coulomb, rise, pace, viscous = (row[:, None] for row in fit_calibration(speed, current).T)
    fit = coulomb + rise * (1.0 - np.exp(-speed / pace)) + viscous * speed
    assert np.abs(fit / current - 1.0).max() < 0.002


def test_calibration_figures_are_those_published(facts):
    published = yaml.safe_load((facts / "ur_motors.yaml").read_text())["ur5e_friction_calibration"]
    table = constants()["friction_calibration"]
    for direction, sign in (("forward", 1.0), ("backward", -1.0)):
        for joint in range(6):
            rows = published["arm_a"][f"joint_{joint + 1}"]
            assert [abs(rows[sign * v][1]) for v in table["speed"]] == table[direction][joint]


def test_a_calibrated_arm_has_the_calibrated_friction_times_its_spread():
    robot = load_robot("ur5e")
    table = constants()["friction_calibration"]
    to_joint = 101 * np.array(table["torque_constant"])
    speed = np.array(table["speed"])[:, None] * np.ones(6)
    mean = np.zeros(speed.shape)
    for seed in range(40):
        p = draw_parameters(robot, seed)
        whole = p.friction.torque(speed) + p.flex_spline_coulomb + p.flex_spline_viscous * speed
        mean = mean + whole / 40
        ratio = whole[1:] / (np.array(table["forward"]).T[1:] * to_joint)
        assert np.all((ratio > 0.8) & (ratio < 1.2))
    assert mean[1:] == pytest.approx(np.array(table["forward"]).T[1:] * to_joint, rel=0.07)


def test_seeds_give_different_arms_of_one_type():
    robot = load_robot("ur5e")
    constant = np.array([draw_parameters(robot, seed).torque_constant for seed in range(50)])
    ratio = constant / robot.torque_constant
    assert np.all(np.abs(ratio - 1.0) <= 0.12)
    assert ratio.std() > 0.05
    again = draw_parameters(robot, 3)
    assert np.array_equal(again.torque_constant, constant[3])


@pytest.mark.parametrize("name", [*available_robots()][::3])
def test_every_arm_has_plausible_constants(name):
    robot = load_robot(name)
    p = draw_parameters(robot, 1)
    for key, value in vars(p).items():
        if isinstance(value, np.ndarray) and key != "temperature_model":
            assert np.isfinite(value).all(), key
            assert (value > 0).all(), key
    # Full torque needs tens of ampere at most, its copper loss less than what a supply gives, and
    # friction is a small part of it.
    assert np.all(p.max_current < 120.0)
    assert np.all(p.effective_resistance * p.max_current**2 < 1000.0)
    speed = np.full(robot.dof, 1.0)
    assert np.all(p.friction.torque(speed) < 0.25 * robot.max_torque)


def test_unknown_motors_are_interpolated_by_size():
    small, large = (draw_parameters(load_robot(name), 0) for name in ("ur10e", "ur20"))
    assert np.all(large.reflected_inertia > small.reflected_inertia)
    assert np.all(large.winding_resistance < small.winding_resistance)
    known = load_robot("ur5e")
    assert draw_parameters(known, 0).reflected_inertia == pytest.approx(known.reflected_inertia)


def test_the_ur5_of_the_slides() -> None:
    robot = load_robot("ur5")
    typical = draw_parameters(robot, 3)
    assert with_drive_set(typical, robot, "typical") is typical
    own = with_drive_set(typical, robot, "s3")
    assert own.stiffness[[0, 5]].tolist() == [[16e3, 25e3, 29e3], [4.7e3, 6.1e3, 7.1e3]]
    assert own.flex_spline_coulomb.tolist() == [0.4] * 6
    np.testing.assert_allclose(own.rotor_inertia / 101**2, [0.404e-4] * 3 + [0.091e-4] * 3)
    # Wave generator at 1 rad/s of the joint: Coulomb 0.008 N m and 6.4e-4 N m s/rad of the motor.
    speed = np.ones(6)
    assert own.friction.torque(speed)[0] == pytest.approx(101 * (0.008 + 6.4e-4 * 101))
    assert own.friction.torque(-speed)[0] == pytest.approx(-101 * (0.007 + 6.4e-4 * 101))
    assert own.friction_factor(np.full(6, 20.0)) == pytest.approx(np.ones(6))


# Sessions.

OF_THE_SESSION = {
    "friction", "flex_spline_coulomb", "flex_spline_viscous", "load_direct", "load_reverse",
    "standby_power", "standby_heat",
}  # fmt: skip


def test_a_session_changes_standby_and_friction_only() -> None:
    arm, session = draw_parameters(load_robot("ur5e"), 3), draw_session(3, 2, 6)
    assert draw_session(3, 0, 6).applied_to(arm) is arm
    now = session.applied_to(arm)
    for name, value in vars(arm).items():
        if name not in OF_THE_SESSION:
            assert np.array_equal(value, getattr(now, name)), name
    assert now.standby_power == arm.standby_power + session.standby_offset
    for speed in (-2.0, -0.001, 0.5):
        before = arm.friction.torque(np.full(6, speed), 1.3)
        torque = now.friction.torque(np.full(6, speed), 1.3)
        assert torque == pytest.approx(session.friction_scale * before)
    with pytest.raises(InputError, match="session"):
        draw_session(0, -1, 6)


def test_spreads_of_sessions_are_those_stated() -> None:
    table = constants()["session"]
    sessions = [draw_session(seed, 1, 6) for seed in range(2000)]
    standby = np.array([session.standby_offset for session in sessions])
    assert standby.std() == pytest.approx(table["standby"], rel=0.1)
    lost = np.mean(table["running_in"]) * (1 - np.exp(-1 / table["running_in_sessions"]))
    scale = np.array([session.friction_scale for session in sessions])
    assert scale.mean() == pytest.approx(1 - lost, abs=0.01)
    # The common part is the correlation between two joints of one session.
    common = np.cov(scale[:, 0], scale[:, 1])
    assert np.sqrt(common[0, 1]) == pytest.approx(table["friction_common"], rel=0.1)
    last = np.mean([draw_session(seed, 1000, 6).friction_scale for seed in range(200)])
    assert last == pytest.approx(1 - np.mean(table["running_in"]), abs=0.02)


def test_warmth_sets_the_joints_between_ambient_and_rest() -> None:
    arm = draw_parameters(load_robot("ur5e"), 3)
    cold, rest, warm = (
        EnergyBalance(arm, 0.002, 22.0, warmth).temperature for warmth in (0.0, 1.0, 2.0)
    )
    assert cold == pytest.approx(22.0)
    assert warm - rest == pytest.approx(rest - cold)
    assert rest - cold == pytest.approx(arm.thermal_resistance * arm.standby_heat)
