# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

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
    FRICTION,
    GEAR,
    QD,
    ROTOR,
    SHAFT,
    Plant,
    Q,
    ServoGains,
    gear_energy,
    gear_twist,
    spring_torque,
)
from ur_energy_model.trajectory.named_motions import named_motion

ROBOT = load_robot("ur5e")
PARAMETERS = draw_parameters(ROBOT, 4)
HOME = named_motion("hold", ROBOT).sample(np.zeros(1))[0][0]
MOTION = named_motion("trajectory_a", ROBOT)
NONE = ServoGains(np.zeros(6), np.zeros(6), False)
PACE = 2 * np.pi * 12.0
SERVO = ServoGains(
    PACE**2 * PARAMETERS.rotor_inertia, 1.6 * PACE * PARAMETERS.rotor_inertia, False
)


def run_trajectory(seconds, *, step=1.0, temperature=PARAMETERS.calibration_temperature):
    """The plant after trajectory A, and the energy that it stored more than before."""
    q, qd, qdd = MOTION.sample(np.arange(0.0, seconds, 0.002))
    plant = Plant(ROBOT, PARAMETERS, Setup(), q[0])
    plant.step *= step
    plant.set_temperature(np.full(6, temperature))
    before = plant.stored_energy()
    torque = plant.dynamics.inverse_dynamics(q, qd, qdd) + PARAMETERS.rotor_inertia * qdd
    states = np.stack([q, qd], axis=1)
    for start, end, feed_forward in zip(
        states[:-1], states[1:], torque[:-1], strict=True
    ):
        plant.advance(0.002, start, end, feed_forward, SERVO)
    return plant, plant.stored_energy() - before


def test_motor_work_is_stored_or_dissipated_whatever_the_step_is():
    plant, stored = run_trajectory(2.0)
    energy = plant.energy.sum(axis=1)
    assert energy[SHAFT] > 40.0
    dissipated = energy[FRICTION] + energy[GEAR]
    assert energy[SHAFT] == pytest.approx(stored + dissipated, abs=2e-3 * energy[SHAFT])
    assert np.all(plant.energy[[COPPER, FRICTION, GEAR]] >= 0.0)
    fine, _ = run_trajectory(2.0, step=0.5)
    assert np.abs(plant.state[Q] - fine.state[Q]).max() < 1e-4
    assert energy[SHAFT] == pytest.approx(fine.energy[SHAFT].sum(), rel=0.01)
    cold, warm = (
        run_trajectory(2.0, temperature=each)[0].energy[FRICTION].sum()
        for each in (24.0, 35.0)
    )
    # Viscous friction falls by up to 35 % from 24 to 35 degC (Raviola et al.), all of it
    # by less.
    assert 0.65 * cold < warm < 0.95 * cold


def test_without_friction_energy_is_conserved():
    parameters = replace(
        PARAMETERS.with_friction_scaled(np.zeros(6)), damping=np.zeros(6)
    )
    plant = Plant(ROBOT, parameters, Setup(), HOME)
    reference = np.stack([plant.state[ROTOR], np.zeros(6)])
    # links swing on their gears alone
    plant.stopped, resting = True, plant.stored_energy()
    plant.state[QD] = 0.05
    before = plant.stored_energy()
    for _ in range(300):
        plant.advance(0.002, reference, reference, np.zeros(6), NONE)
        assert abs(plant.stored_energy() - before) < 0.05 * (before - resting)
    assert np.array_equal(plant.state[ROTOR], reference[0])


def test_gear_torque_twist_and_energy_are_consistent():
    stiffness = np.array([[4.7e3, 6.1e3, 7.1e3]])
    knees = np.array([[2.0, 6.9]])
    for torque in (-20.0, -1.0, 0.0, 4.0):
        twist = gear_twist(np.array([torque]), stiffness, knees)
        assert spring_torque(float(twist[0]), *stiffness[0], *knees[0]) == pytest.approx(
            torque
        )
        grid = np.linspace(0.0, float(twist[0]), 2001)
        work = np.trapezoid(
            [spring_torque(x, *stiffness[0], *knees[0]) for x in grid], grid
        )
        assert gear_energy(twist, stiffness, knees)[0] == pytest.approx(
            work, rel=1e-5, abs=1e-12
        )


RATIO = 100.0
SLIDES = LinearDrive(0.404e-4 * RATIO**2, 6.4e-4 * RATIO**2, 2.4228e-4, 6.4e-4, 16.0e3)
"""First joint of Battistini et al. with the flex-spline inertia that their figures need."""


def test_the_published_transfer_function_comes_out_of_its_constants() -> None:
    numerator, denominator = SLIDES.published_form(RATIO)
    assert numerator == pytest.approx(1.635e10, rel=1e-3)
    assert denominator[:4] == pytest.approx([1.0, 18.48, 6.608e7, 1.046e9], rel=1e-3)
    assert abs(denominator[4]) < 1.0  # zero but for rounding, beside 1e9


def test_pd_gains_are_stable_with_the_phase_margin_at_the_crossover() -> None:
    crossover = 20.0
    margin = np.radians(60.0)
    drive = replace(SLIDES, link_inertia=1.1)
    kp, kd = pd_gains(drive, crossover, margin)
    w = np.geomspace(0.1 * crossover, crossover, 2001).astype(float)
    closing = (kp + 1j * kd * w) * drive.response(w, drive.to_link)
    # the first crossing, or the wished one
    (at,) = np.flatnonzero(np.diff(np.abs(closing) > 1.0))
    assert np.pi + np.angle(closing[at]) == pytest.approx(margin, abs=0.01)
    robot = load_robot("ur20")
    parameters = draw_parameters(robot)
    gains = tuned_pd(robot, parameters)
    drives = linear_drives(robot, parameters)
    for drive, kp, kd in zip(drives, gains.stiffness, gains.damping, strict=True):
        closed = np.polyadd(drive.denominator, np.polymul([kd, kp], drive.to_link))
        assert np.roots(closed).real.max() < 0.0, "the closed loop is stable"
