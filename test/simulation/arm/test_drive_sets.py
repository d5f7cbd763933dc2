"""Drive sets: the constants of the papers in a simulated arm."""

from __future__ import annotations

import numpy as np
import pytest

from ur_energy_model.model.robots import load_robot
from ur_energy_model.simulation.arm_options import ArmOptions, with_drive_set
from ur_energy_model.simulation.parameters import draw_parameters
from ur_energy_model.simulation.plant import gear_twist
from ur_energy_model.simulation.simulated_arm import SimulatedArm, record_arm
from ur_energy_model.trajectory.named_motions import named_motion

ROBOT = load_robot("ur5")


def test_the_ur5_of_the_slides() -> None:
    typical = draw_parameters(ROBOT, 3)
    assert with_drive_set(typical, ROBOT, "typical") is typical
    own = with_drive_set(typical, ROBOT, "s3")
    assert own.stiffness[0].tolist() == [16e3, 25e3, 29e3]
    assert own.stiffness[5].tolist() == [4.7e3, 6.1e3, 7.1e3]
    assert own.knees[2].tolist() == [7.0, 25.0]
    assert own.flex_spline_coulomb.tolist() == [0.4] * 6
    np.testing.assert_allclose(own.rotor_inertia / 101**2, [0.404e-4] * 3 + [0.091e-4] * 3)
    assert own.torque_constant.tolist() == typical.torque_constant.tolist()
    # Wave generator at 1 rad/s of the joint: Coulomb 0.008 N m and 6.4e-4 N m s/rad of the motor.
    speed = np.ones(6)
    assert own.friction.torque(speed)[0] == pytest.approx(101 * (0.008 + 6.4e-4 * 101))
    assert own.friction.torque(-speed)[0] == pytest.approx(-101 * (0.007 + 6.4e-4 * 101))
    assert own.friction_factor(np.full(6, 20.0)) == pytest.approx(np.ones(6))


def test_twist_up_to_the_first_knee_has_the_first_stiffness() -> None:
    own = with_drive_set(draw_parameters(ROBOT), ROBOT, "s3")
    twist = gear_twist(np.full(6, 7.0), own.stiffness, own.knees)
    assert twist[0] == pytest.approx(7.0 / 16e3)


def test_an_arm_runs_with_it() -> None:
    motion = named_motion("trajectory_a", ROBOT)
    arm = SimulatedArm(ROBOT, motion=motion, options=ArmOptions(drive_set="s3"))
    recorded = record_arm(arm, 6.0)
    assert np.abs(recorded["target_q"] - recorded["actual_q"]).max() < 0.05
    assert (recorded["safety_mode"] == 1).all()
