# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Joint voltages of simulated arms: the chain of the cable, and the joint powers measured by it."""

from __future__ import annotations

import numpy as np
import pytest

from test.truth import first_fast
from ur_energy_model.identification.joint_meter import JointMeter, JointPowerMeasurement
from ur_energy_model.model.generic import generic_model
from ur_energy_model.model.robots import load_robot
from ur_energy_model.simulation.sensors import SimulatedCable, draw_cable
from ur_energy_model.simulation.simulated_arm import SimulatedArm, record_arm
from ur_energy_model.telemetry.samples import Telemetry, concatenate
from ur_energy_model.trajectory.named_motions import Planner

SECONDS = 16.0


def test_a_joint_far_out_lowers_the_voltage_of_all_joints_before_it() -> None:
    cable = SimulatedCable(np.array([0.1, 0.2, 0.3]), np.zeros(3))
    at_rest = cable.voltages(48.0, np.zeros(3))
    np.testing.assert_allclose(at_rest, 48.0)
    first = 48.0 - cable.voltages(48.0, np.array([48.0, 0.0, 0.0]))
    last = 48.0 - cable.voltages(48.0, np.array([0.0, 0.0, 48.0]))
    np.testing.assert_allclose(first, 0.1, rtol=0.01)  # one ampere
    np.testing.assert_allclose(last, [0.1, 0.3, 0.6], rtol=0.02)


def test_cables_differ_between_arms_and_are_the_same_in_every_session_of_one() -> None:
    one = draw_cable(3, 6)
    again = draw_cable(3, 6)
    other = draw_cable(4, 6)
    np.testing.assert_array_equal(one.resistance, again.resistance)
    assert (one.resistance != other.resistance).all()
    assert (one.resistance > 0).all()


def moving_arm(name: str, seed: int) -> tuple[Telemetry, np.ndarray]:
    """A recording, and the true energy of motors and drives while the arm moves [n], J."""
    robot = load_robot(name)
    planner = Planner(robot)
    arm = SimulatedArm(
        robot, motion=planner.chain_through(planner.random_points(seed)), seed=seed
    )
    energy = np.zeros(robot.dof)
    pieces = []
    before = arm.energies().joints()[1]
    for _ in range(round(SECONDS * arm.rate)):
        piece = record_arm(arm, 1.0 / arm.rate)
        pieces.append(piece)
        electrical = arm.energies().joints()[1]
        drives = (
            arm.parameters.driver_loss * np.abs(piece["actual_current"][0]) / arm.rate
        )
        if (np.abs(piece["actual_qd"]) > 0.003).any():
            energy += electrical - before + drives
        before = electrical
    arm.close()
    return concatenate(pieces), energy


@pytest.mark.parametrize(
    ("name", "seed"), first_fast([("ur3", 33), ("ur5", 31), ("ur10", 32)])
)
def test_joint_energies_of_simulated_arms_are_measured(name: str, seed: int) -> None:
    telemetry, energy = moving_arm(name, seed)
    meter = JointMeter(generic_model(name))
    meter.accumulate(telemetry)
    found = meter.result()
    assert isinstance(found, JointPowerMeasurement)
    measured = np.array([joint.measured for joint in found.joints])
    std = np.array([joint.measured_std for joint in found.joints])
    assert np.sqrt(np.mean(np.square((measured - energy) / std))) < 2.0
    assert np.abs(measured - energy).sum() < 0.1 * np.abs(energy).sum()
