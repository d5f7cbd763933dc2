"""Constants of simulated arms: their calibration and their spread."""

from __future__ import annotations

import numpy as np
import pytest
import yaml

from ur_energy_model.model.robots import available_robots, load_robot
from ur_energy_model.simulation.parameters import constants, draw_parameters, fit_calibration
from ur_energy_model.simulation.plant import gear_energy, gear_twist, spring_torque


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


@pytest.mark.parametrize("name", available_robots())
def test_every_arm_has_plausible_constants(name):
    robot = load_robot(name)
    p = draw_parameters(robot, 1)
    for key, value in p.as_dict().items():
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


def test_gear_torque_twist_and_energy_are_consistent():
    stiffness = np.array([[4.7e3, 6.1e3, 7.1e3]])
    knees = np.array([[2.0, 6.9]])
    for torque in (-20.0, -5.0, -1.0, 0.0, 1.5, 4.0, 12.0):
        twist = gear_twist(np.array([torque]), stiffness, knees)
        assert spring_torque(float(twist[0]), *stiffness[0], *knees[0]) == pytest.approx(torque)
        grid = np.linspace(0.0, float(twist[0]), 2001)
        work = np.trapezoid([spring_torque(x, *stiffness[0], *knees[0]) for x in grid], grid)
        assert gear_energy(twist, stiffness, knees)[0] == pytest.approx(work, rel=1e-5, abs=1e-12)
