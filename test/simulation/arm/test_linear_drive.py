"""The linear drive: its transfer function, and PD gains for a phase margin."""

from __future__ import annotations

import numpy as np
import pytest

from ur_energy_model.model.robots import load_robot
from ur_energy_model.simulation.joint_controller import (
    LinearDrive,
    linear_drives,
    pd_gains,
    tuned_pd,
)
from ur_energy_model.simulation.parameters import constants, draw_parameters

RATIO = 100.0
SLIDES = LinearDrive(0.404e-4 * RATIO**2, 6.4e-4 * RATIO**2, 2.4228e-4, 6.4e-4, 16.0e3)
"""First joint of Battistini et al. with the flex-spline inertia that their figures need."""


def test_the_published_transfer_function_comes_out_of_its_constants() -> None:
    numerator, denominator = SLIDES.published_form(RATIO)
    assert numerator == pytest.approx(1.635e10, rel=1e-3)
    assert denominator[:4] == pytest.approx([1.0, 18.48, 6.608e7, 1.046e9], rel=1e-3)
    assert abs(denominator[4]) < 1.0  # zero but for rounding, beside 1e9


def test_frequency_response_is_that_of_the_state_space() -> None:
    matrix, force = SLIDES.state_space
    for frequency in (0.3, 20.0, 7e3):
        state = np.linalg.solve(1j * frequency * np.eye(4) - matrix, force)
        at = np.array([frequency])
        assert SLIDES.response(at, SLIDES.to_rotor)[0] == pytest.approx(state[0], rel=1e-6)
        assert SLIDES.response(at, SLIDES.to_link)[0] == pytest.approx(state[2], rel=1e-6)


def test_pd_gains_of_a_rigid_drive_are_known_in_closed_form() -> None:
    drive = LinearDrive(1.5, 0.0, 0.5, 0.0, 1e9)
    crossover, margin = 20.0, np.radians(60.0)
    kp, kd = pd_gains(drive, crossover, margin)
    assert kp == pytest.approx(2.0 * crossover**2 * np.cos(margin), rel=1e-3)
    assert kd == pytest.approx(2.0 * crossover * np.sin(margin), rel=1e-3)


def test_a_drive_that_friction_damps_enough_gets_no_derivative_gain() -> None:
    drive = LinearDrive(0.1, 50.0, 0.05, 0.0, 1e9)
    kp, kd = pd_gains(drive, 20.0, np.radians(60.0))
    assert kd == 0.0
    at = np.array([20.0])
    assert abs(kp * drive.response(at, drive.to_rotor)[0]) == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["ur3", "ur5", "ur20"])
def test_closed_loops_of_the_tuned_controllers_are_stable(name: str) -> None:
    robot = load_robot(name)
    parameters = draw_parameters(robot)
    gains = tuned_pd(robot, parameters)
    crossover = 2 * np.pi * constants()["servo"]["pd_bandwidth"]
    for drive, kp, kd in zip(
        linear_drives(robot, parameters), gains.stiffness, gains.damping, strict=True
    ):
        at = np.array([crossover])
        loop = (kp + 1j * crossover * kd) * drive.response(at, drive.to_rotor)[0]
        assert abs(loop) == pytest.approx(1.0)
        closed = np.polyadd(drive.denominator, np.polymul([kd, kp], drive.to_rotor))
        assert np.roots(closed).real.max() < 0.0
