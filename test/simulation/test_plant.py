"""Mechanics of the simulated arm, and the linear drives its controller is tuned on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.setup import Setup
from ur_energy_model.simulation.joint_controller import (
    LinearDrive,
    linear_drives,
    pd_gains,
    tuned_pd,
)
from ur_energy_model.simulation.parameters import draw_parameters
from ur_energy_model.simulation.plant import (
    COPPER,
    CURRENT,
    FRICTION,
    GEAR,
    QD,
    ROTOR,
    SHAFT,
    Plant,
    Q,
    ServoGains,
    cylinder,
    gear_energy,
    gear_twist,
    solid_links,
    spring_torque,
)
from ur_energy_model.trajectory.named_motions import named_motion

ROBOT = load_robot("ur5e")
HOME = named_motion("hold", ROBOT).sample(np.zeros(1))[0][0]
START = named_motion("trajectory_a", ROBOT).sample(np.zeros(1))[0][0]
NONE = ServoGains(np.zeros(6), np.zeros(6))
WEIGHTLESS = Setup(gravity=np.zeros(3))


def servo(parameters, hertz=12.0):
    pace = 2 * np.pi * hertz
    return ServoGains(pace**2 * parameters.rotor_inertia, 1.6 * pace * parameters.rotor_inertia)


def test_it_is_in_equilibrium_under_gravity():
    parameters = draw_parameters(ROBOT, 1).without_friction()
    plant = Plant(ROBOT, parameters, Setup(), HOME)
    torque = plant.dynamics.gravity_torque(HOME[None])[0]
    reference = np.stack([plant.state[ROTOR], np.zeros(6)])
    for _ in range(200):
        plant.advance(0.002, reference, reference, torque, servo(parameters))
    assert plant.state[Q] == pytest.approx(HOME, abs=1e-7)
    assert plant.state[CURRENT] * parameters.current_to_torque == pytest.approx(torque, abs=1e-3)


def test_friction_holds_a_joint_without_creeping():
    parameters = draw_parameters(ROBOT, 1)
    plant = Plant(ROBOT, parameters, WEIGHTLESS, HOME)
    held = 0.8 * parameters.friction.coulomb[0]
    reference = np.stack([plant.state[ROTOR], np.zeros(6)])
    for _ in range(500):
        plant.advance(0.002, reference, reference, held, NONE)
    assert np.array_equal(plant.state[ROTOR], reference[0])
    assert np.abs(plant.state[QD]).max() < 1e-6


@pytest.mark.parametrize("speed", [-1.5, 0.5])
def test_current_at_constant_speed_equals_friction(speed):
    parameters = replace(
        draw_parameters(ROBOT, 1), load_direct=np.zeros(6), load_reverse=np.zeros(6)
    )
    plant = Plant(ROBOT, parameters, WEIGHTLESS, HOME)
    gains = servo(parameters)
    only = np.array([1.0, 0, 0, 0, 0, 0])  # the pan joint has no inertial load at constant speed
    reference = np.stack([plant.state[ROTOR], speed * only])
    current = []
    for k in range(1000):
        target = np.stack([reference[0] + 0.002 * reference[1], reference[1]])
        plant.advance(0.002, reference, target, np.zeros(6), gains)
        reference = target
        if k >= 500:
            current.append(plant.state[CURRENT, 0])
    friction = (
        parameters.friction.torque(reference[1])
        + np.sign(reference[1]) * parameters.flex_spline_coulomb
        + parameters.flex_spline_viscous * reference[1]
    )
    assert np.mean(current) * parameters.current_to_torque[0] == pytest.approx(
        friction[0], rel=0.01
    )


def run_trajectory(plant, parameters, seconds):
    motion = named_motion("trajectory_a", ROBOT)
    q, qd, qdd = motion.sample(np.arange(0.0, seconds, 0.002))
    torque = plant.dynamics.inverse_dynamics(q, qd, qdd) + parameters.rotor_inertia * qdd
    for k in range(len(q) - 1):
        plant.advance(
            0.002,
            np.stack([q[k], qd[k]]),
            np.stack([q[k + 1], qd[k + 1]]),
            torque[k],
            servo(parameters),
        )
    return q[-1]


def test_motor_work_is_stored_or_dissipated():
    parameters = draw_parameters(ROBOT, 4)
    plant = Plant(ROBOT, parameters, Setup(), START)
    before = plant.stored_energy()
    run_trajectory(plant, parameters, 4.0)
    energy = plant.energy.sum(axis=1)
    stored = plant.stored_energy() - before
    assert energy[SHAFT] > 100.0
    assert energy[SHAFT] == pytest.approx(
        stored + energy[FRICTION] + energy[GEAR], abs=2e-3 * energy[SHAFT]
    )
    assert np.all(plant.energy[[COPPER, FRICTION, GEAR]] >= 0.0)


def test_without_friction_energy_is_conserved():
    parameters = replace(draw_parameters(ROBOT, 4).without_friction(), damping=np.zeros(6))
    plant = Plant(ROBOT, parameters, Setup(), HOME)
    reference = np.stack([plant.state[ROTOR], np.zeros(6)])
    plant.stopped = True  # links swing on their gears alone
    plant.state[QD] = 0.05
    before = plant.stored_energy()
    kinetic = before - Plant(ROBOT, parameters, Setup(), HOME).stored_energy()
    for _ in range(500):
        plant.advance(0.002, reference, reference, np.zeros(6), NONE)
        assert abs(plant.stored_energy() - before) < 0.05 * kinetic
    assert np.array_equal(plant.state[ROTOR], reference[0])


def test_links_deflect_by_the_stiffness_of_their_gears():
    parameters = draw_parameters(ROBOT, 4)
    plant = Plant(ROBOT, parameters, Setup(), HOME)
    torque = plant.dynamics.gravity_torque(HOME[None])[0]
    twist = plant.state[ROTOR] - plant.state[Q]
    k1, k2, _ = parameters.stiffness[1]
    t1 = parameters.knees[1, 0]
    assert t1 < torque[1] * np.sign(torque[1]) < parameters.knees[1, 1]
    assert abs(twist[1]) == pytest.approx(t1 / k1 + (abs(torque[1]) - t1) / k2)


def test_half_the_step_gives_the_same_motion():
    parameters = draw_parameters(ROBOT, 4)
    states = []
    for step in (1.0, 0.5):
        plant = Plant(ROBOT, parameters, Setup(), START)
        plant.step *= step
        run_trajectory(plant, parameters, 1.5)
        states.append((plant.state.copy(), plant.energy.copy()))
    (coarse, work), (fine, exact) = states
    assert np.abs(coarse[Q] - fine[Q]).max() < 1e-4
    assert work[SHAFT] == pytest.approx(exact[SHAFT], rel=0.01)


def test_friction_falls_as_joints_warm_up():
    parameters = draw_parameters(ROBOT, 4)
    work = []
    for temperature in (24.0, 35.0):
        plant = Plant(ROBOT, parameters, Setup(), START)
        plant.set_temperature(np.full(6, temperature))
        run_trajectory(plant, parameters, 2.0)
        work.append(plant.energy[FRICTION].sum())
    # Viscous friction falls by up to 35 % from 24 to 35 degC (Raviola et al.), all of it by less.
    assert 0.65 * work[0] < work[1] < 0.95 * work[0]


def test_links_without_a_tensor_become_cylinders():
    solid = solid_links(ROBOT)
    assert np.all(np.linalg.eigvalsh(solid.inertia) > 0.0)
    assert np.array_equal(solid.mass, ROBOT.mass)
    upper_arm = solid.inertia[1]
    assert upper_arm[1, 1] == pytest.approx(8.058 * 0.425**2 / 12, rel=0.1)
    known = load_robot("ur10e")
    assert np.array_equal(solid_links(known).inertia[1], known.inertia[1])
    tensor = cylinder(3.0, np.array([0.0, 0.5, 0.0]))
    assert tensor[0, 0] == pytest.approx(tensor[2, 2])
    assert tensor[1, 1] < 0.1 * tensor[0, 0]


def test_gear_torque_twist_and_energy_are_consistent():
    stiffness, knees = np.array([[4.7e3, 6.1e3, 7.1e3]]), np.array([[2.0, 6.9]])
    for torque in (-20.0, -1.0, 0.0, 1.5, 4.0, 12.0):
        twist = gear_twist(np.array([torque]), stiffness, knees)
        assert spring_torque(float(twist[0]), *stiffness[0], *knees[0]) == pytest.approx(torque)
        grid = np.linspace(0.0, float(twist[0]), 2001)
        work = np.trapezoid([spring_torque(x, *stiffness[0], *knees[0]) for x in grid], grid)
        assert gear_energy(twist, stiffness, knees)[0] == pytest.approx(work, rel=1e-5, abs=1e-12)


# Linear drives.

RATIO = 100.0
SLIDES = LinearDrive(0.404e-4 * RATIO**2, 6.4e-4 * RATIO**2, 2.4228e-4, 6.4e-4, 16.0e3)
"""First joint of Battistini et al. with the flex-spline inertia that their figures need."""


def test_the_published_transfer_function_comes_out_of_its_constants() -> None:
    numerator, denominator = SLIDES.published_form(RATIO)
    assert numerator == pytest.approx(1.635e10, rel=1e-3)
    assert denominator[:4] == pytest.approx([1.0, 18.48, 6.608e7, 1.046e9], rel=1e-3)
    assert abs(denominator[4]) < 1.0  # zero but for rounding, beside 1e9
    matrix, force = SLIDES.state_space
    for frequency in (0.3, 20.0, 7e3):
        state = np.linalg.solve(1j * frequency * np.eye(4) - matrix, force)
        at = np.array([frequency])
        assert SLIDES.response(at, SLIDES.to_rotor)[0] == pytest.approx(state[0], rel=1e-6)
        assert SLIDES.response(at, SLIDES.to_link)[0] == pytest.approx(state[2], rel=1e-6)


def test_pd_gains_of_rigid_and_of_damped_drives() -> None:
    crossover, margin = 20.0, np.radians(60.0)
    kp, kd = pd_gains(LinearDrive(1.5, 0.0, 0.5, 0.0, 1e9), crossover, margin)  # closed form
    assert kp == pytest.approx(2.0 * crossover**2 * np.cos(margin), rel=1e-3)
    assert kd == pytest.approx(2.0 * crossover * np.sin(margin), rel=1e-3)
    damped = LinearDrive(0.1, 50.0, 0.05, 0.0, 1e9)
    kp, kd = pd_gains(damped, crossover, margin)
    assert kd == 0.0
    assert abs(kp * damped.response(np.array([20.0]), damped.to_rotor)[0]) == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["ur5", "ur20"])
def test_closed_loops_of_the_tuned_controllers_are_stable(name: str) -> None:
    robot = load_robot(name)
    parameters = draw_parameters(robot)
    gains, drives = tuned_pd(robot, parameters), linear_drives(robot, parameters)
    for drive, kp, kd in zip(drives, gains.stiffness, gains.damping, strict=True):
        closed = np.polyadd(drive.denominator, np.polymul([kd, kp], drive.to_rotor))
        assert np.roots(closed).real.max() < 0.0
