# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Regressors: every column is the torque of a unit of what its name says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ur_energy_model.errors import InputError
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.friction import LAWS, Friction, FrictionBank
from ur_energy_model.model.regressor import (
    Regressor,
    by_joint,
    friction_regressor,
    link_regressor,
    motor_inertia_regressor,
)
from ur_energy_model.model.robots import load_robot

ARM = load_robot("ur5e")
Q, QD, QDD = np.random.default_rng(1).uniform(-2, 2, (3, 20, ARM.dof))


@pytest.mark.parametrize("link", [1, 2, 5])
def test_columns_of_a_link_are_the_torques_of_a_body_there(link: int) -> None:
    """A body of 2 kg whose centre of mass is at (0.1, 0.2, 0.3) m in the DH frame of the link."""
    regressor = link_regressor(ArmDynamics(ARM), Q, QD, QDD)
    mass = ARM.mass.copy()
    center = ARM.center_of_mass.copy()
    inertia = ARM.inertia.copy()
    mass[link] = 2.0
    center[link] = (0.1, 0.2, 0.3)
    inertia[link] = np.diag([0.03, 0.02, 0.01])
    changed = ArmDynamics(
        replace(ARM, mass=mass, center_of_mass=center, inertia=inertia)
    ).inverse_dynamics(Q, QD, QDD)
    mass[link] = 0.0
    inertia[link] = 0.0
    without = ArmDynamics(
        replace(ARM, mass=mass, center_of_mass=center, inertia=inertia)
    ).inverse_dynamics(Q, QD, QDD)
    parameters = {
        "m": 2.0, "mx": 0.2, "my": 0.4, "mz": 0.6,
        "Ixx": 0.03 + 2 * 0.13, "Iyy": 0.02 + 2 * 0.10, "Izz": 0.01 + 2 * 0.05,
        "Ixy": -2 * 0.02, "Ixz": -2 * 0.03, "Iyz": -2 * 0.06,
    }  # fmt: skip
    torque = np.zeros_like(Q)
    for name, value in parameters.items():
        torque += value * regressor.column(f"{name}_{link + 1}")
    np.testing.assert_allclose(torque, changed - without, atol=1e-9)


@pytest.mark.parametrize("name", ["stribeck", "power_load", "coulomb_viscous"])
def test_friction_columns_are_motor_side_with_the_gear_ratio(name: str) -> None:
    law = LAWS[name]
    random = np.random.default_rng(2)
    values = random.uniform(0.1, 1, (ARM.dof, len(law.parameters)))
    frictions = [
        Friction(law, dict(zip(law.parameters, row, strict=True)))
        for row in values.tolist()
    ]
    load = random.uniform(-50, 50, QD.shape)
    expected = FrictionBank(frictions, ARM.gear_ratio).torque(QD, load)
    regressor = friction_regressor(law, QD, load=load, gear_ratio=ARM.gear_ratio)
    np.testing.assert_allclose(
        regressor.values @ values.ravel(), ARM.gear_ratio * expected
    )


def test_joint_side_friction_columns_are_of_the_joint_alone() -> None:
    found = friction_regressor(LAWS["coulomb_viscous"], QD)
    assert found.columns[:2] == ("viscous_1", "coulomb_1")
    assert found.units[:2] == ("N m s/rad", "N m")
    expected = np.zeros_like(QD)
    expected[:, 3] = QD[:, 3]
    np.testing.assert_allclose(found.column("viscous_4"), expected)


def test_regressors_side_by_side() -> None:
    links = link_regressor(ArmDynamics(ARM), Q, QD, QDD)
    motors = motor_inertia_regressor(QDD)
    both = links.beside(motors)
    assert len(both) == 20
    assert both.columns == (*links.columns, *motors.columns)
    np.testing.assert_array_equal(both.column("Ja_2"), motors.values[:, :, 1])
    ordered = by_joint([links, motors], ARM.dof)
    assert ordered.columns[10] == "Ja_1"
    assert ordered.columns[21] == "Ja_2"
    none = by_joint([motor_inertia_regressor(QDD[:0])], ARM.dof)
    assert none.values.shape == (0, 6, 6)
    chosen = ordered.select(["Ja_2", "m_6"])
    np.testing.assert_array_equal(chosen.stacked, both.select(["Ja_2", "m_6"]).stacked)
    assert chosen.units == ("kg m^2", "kg")


def test_what_is_wrong_is_refused() -> None:
    motors = motor_inertia_regressor(QDD)
    with pytest.raises(InputError, match="no column 'Ja_7'"):
        motors.column("Ja_7")
    with pytest.raises(ValueError, match="6 columns have 1 names"):
        Regressor(motors.values, ("Ja_1",), motors.units)
