"""EcBot's regression of each joint on motions whose every constant is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from test.identification.conftest import smooth_motion
from ur_energy_model.identification.ecbot import DynamicColumns, DynamicModelFit, Measured
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import RobotDescription, load_robot
from ur_energy_model.model.setup import Setup

VISCOUS, COULOMB, CONSTANT = 1.5, 2.0, 9.0


def arm(name: str) -> RobotDescription:
    """The arm with point masses: what is left are motors and friction."""
    robot = load_robot(name)
    return replace(robot, inertia=np.zeros_like(robot.inertia))


def torques(robot: RobotDescription, inertia: np.ndarray, seed: int) -> tuple[np.ndarray, ...]:
    """q, qd, qdd and torque [samples, n] of a minute of motion."""
    q, qd, qdd = smooth_motion(robot, np.arange(0, 60, 0.02), seed)
    link = ArmDynamics(robot, Setup()).inverse_dynamics(q, qd, qdd)
    return q, qd, qdd, link + inertia * qdd + VISCOUS * qd + COULOMB * np.sign(qd)


@pytest.mark.parametrize(("name", "measured"), [("ur3e", "current"), ("gen3", "torque")])
def test_finds_friction_motor_inertia_and_torque_constant(name: str, measured: Measured) -> None:
    robot = arm(name)
    inertia = np.linspace(0.6, 0.2, robot.dof)
    q, qd, qdd, torque = torques(robot, inertia, 1)
    columns = DynamicColumns(robot, Setup())
    fit = DynamicModelFit(columns, measured)
    values = torque if measured == "torque" else torque / CONSTANT
    for rows in (slice(0, 1000), slice(1000, None)):
        fit.accumulate(columns(q[rows], qd[rows], qdd[rows]), values[rows])
    model = fit.fit()
    assert fit.samples == 3000
    seen = np.ones(robot.dof, dtype=bool)
    if measured == "current":
        assert model.torque_constant is not None
        seen = np.isfinite(model.torque_constant)
        assert seen.tolist() == [True] * 5 + [False]  # nothing loads the last joint
        np.testing.assert_allclose(model.torque_constant[seen], CONSTANT, rtol=1e-4)
    np.testing.assert_allclose(model.viscous[seen], VISCOUS, rtol=1e-4)
    np.testing.assert_allclose(model.coulomb[seen], COULOMB, rtol=1e-4)
    np.testing.assert_allclose(model.inertia[seen], inertia[seen], rtol=0.01)


def test_predicts_another_motion_of_an_arm_with_tensors() -> None:
    robot = load_robot("ur10e")
    assert robot.inertia.any()
    columns = DynamicColumns(robot, Setup())
    fit = DynamicModelFit(columns, "torque")
    q, qd, qdd, torque = torques(robot, np.full(6, 0.5), 1)
    fit.accumulate(columns(q, qd, qdd), torque)
    model = fit.fit()
    q, qd, qdd, torque = torques(robot, np.full(6, 0.5), 2)
    found = np.einsum("sjc,jc->sj", columns(q, qd, qdd), model.coefficients)
    np.testing.assert_allclose(found, torque, atol=0.05)
