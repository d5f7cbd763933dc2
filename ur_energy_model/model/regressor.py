# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Regressors: joint torques that are linear in parameters with names and units.

torque = regressor.values @ parameters, joint side. Columns of links, of friction laws and of
motor inertias are put side by side (`Regressor.beside`); which combinations of their
parameters a motion shows is found by `regroup` (identification/base_parameters.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from ur_energy_model.errors import InputError
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.friction import FrictionLaw
from ur_energy_model.model.friction_terms import OperatingPoint
from ur_energy_model.typing import Array, Indices

INERTIAL: Mapping[str, str] = {
    "m": "kg",
    "mx": "kg m",
    "my": "kg m",
    "mz": "kg m",
    "Ixx": "kg m^2",
    "Ixy": "kg m^2",
    "Iyy": "kg m^2",
    "Ixz": "kg m^2",
    "Iyz": "kg m^2",
    "Izz": "kg m^2",
}
"""Inertial parameters of a link and their units, about the origin and in the axes of its DH
frame."""
MOTOR_INERTIA = "Ja"
"""Inertia of a motor and its reducer, joint side, kg m^2."""


@dataclass(frozen=True)
class Regressor:
    """Joint torques per unit of each parameter.

    Attributes:
        values: regressor [samples, n, parameters]; joint-side torque [samples, n], N m =
            values @ parameters.
        columns: names of the parameters, such as "mx_2" (joint numbers from 1).
        units: units of the parameters, such as "kg m".

    Raises:
        ValueError: names or units are not as many as columns.
    """

    values: Array
    columns: tuple[str, ...]
    units: tuple[str, ...]

    def __post_init__(self) -> None:
        counts = (self.values.shape[-1], len(self.columns), len(self.units))
        if len(set(counts)) > 1:
            raise ValueError("{} columns have {} names and {} units".format(*counts))

    def __len__(self) -> int:
        """Number of samples."""
        return len(self.values)

    @property
    def stacked(self) -> Array:
        """Rows of all joints below each other, sample by sample [samples n, parameters]."""
        return self.values.reshape(-1, len(self.columns))

    def column(self, name: str) -> Array:
        """Torques per unit of one parameter [samples, n].

        Raises:
            InputError: there is no such column.
        """
        return np.asarray(self.values[:, :, self._place(name)])

    def select(self, columns: Iterable[str]) -> Regressor:
        """Some of the columns, by name, in the given order.

        Raises:
            InputError: there is no such column.
        """
        return self.at(np.array([self._place(name) for name in columns], dtype=np.intp))

    def at(self, places: Indices) -> Regressor:
        """Some of the columns, by their places."""
        return Regressor(
            self.values[:, :, places],
            tuple(self.columns[place] for place in places),
            tuple(self.units[place] for place in places),
        )

    def beside(self, *others: Regressor) -> Regressor:
        """These columns and the columns of other regressors of the same samples."""
        values = [self.values]
        columns = [*self.columns]
        units = [*self.units]
        for other in others:
            values.append(other.values)
            columns += other.columns
            units += other.units
        return Regressor(np.concatenate(values, axis=2), tuple(columns), tuple(units))

    def _place(self, name: str) -> int:
        if name not in self.columns:
            remedy = f"use one of {', '.join(self.columns)}"
            raise InputError("regressor", f"has no column '{name}'", remedy)
        return self.columns.index(name)


def link_regressor(dynamics: ArmDynamics, q: Array, qd: Array, qdd: Array) -> Regressor:
    """Columns of the ten inertial parameters of each moving link, see `INERTIAL`.

    The parameters of the last link include the payload.

    Args:
        dynamics: the arm in its setup, n joints.
        q: positions [samples, n], rad.
        qd: velocities [samples, n], rad/s.
        qdd: accelerations [samples, n], rad/s^2.
    """
    return Regressor(
        dynamics.regressor(q, qd, qdd),
        _of_joints(INERTIAL, dynamics.dof),
        tuple(INERTIAL.values()) * dynamics.dof,
    )


def friction_regressor(
    law: FrictionLaw,
    qd: Array,
    *,
    load: Array | None = None,
    gear_ratio: Array | float = 1.0,
    temperature: Array | None = None,
    temperature_model: Array | None = None,
    shape: Mapping[str, float | Array] | None = None,
) -> Regressor:
    """Columns of the parameters of a friction law, for each joint alone.

    Args:
        law: the law, such as LAWS["stribeck"]; every joint has its parameters.
        qd: velocities, joint side [samples, n], rad/s.
        load: torque without friction, joint side [samples, n], N m, which some laws depend
            on; None for zero.
        gear_ratio: motor turns per joint turn, scalar or [n]. With 1 the parameters are
            joint side, with the gear ratio of the arm motor side, as in a model file.
        temperature: temperatures of the joints [samples, n], degC; None if unknown.
        temperature_model: the four coefficients of each joint, for the law that uses them [4,
            n], see `OperatingPoint`; None if unknown.
        shape: constants of the law that are not linear; None for the usual ones.
    """
    point = OperatingPoint(
        speed=qd,
        load=np.zeros_like(qd) if load is None else load,
        gear_ratio=gear_ratio,
        temperature=temperature,
        temperature_model=temperature_model,
    )
    constants = {**law.default_shape, **(shape or {})}
    kinds = []
    for name, term in law.terms.items():
        kinds.append(
            joint_regressor(name, gear_ratio * term(point, constants), term.unit)
        )
    return by_joint(kinds, qd.shape[1])


def motor_inertia_regressor(qdd: Array) -> Regressor:
    """Columns of the inertia of each motor with its reducer, joint side.

    Args:
        qdd: accelerations, joint side [samples, n], rad/s^2.
    """
    return joint_regressor(MOTOR_INERTIA, qdd, INERTIAL["Izz"])


def joint_regressor(name: str, values: Array, unit: str) -> Regressor:
    """Columns of a parameter of each joint alone, such as the term of a friction law.

    Args:
        name: name of the parameter; the columns are name_1 to name_n.
        values: torque of a joint per unit of its parameter [samples, n].
        unit: unit of the parameter.
    """
    n = values.shape[1]
    return Regressor(values[:, :, None] * np.eye(n), _of_joints((name,), n), (unit,) * n)


def by_joint(regressors: Iterable[Regressor], dof: int) -> Regressor:
    """Columns of several regressors, joint by joint: all of the first joint, then of the second.

    Args:
        regressors: regressors of the same samples, each with as many columns for every
            joint.
        dof: number of joints n.
    """
    values = []
    columns = []
    units = []
    for each in regressors:
        samples, joints, width = each.values.shape
        values.append(each.values.reshape(samples, joints, dof, width // dof))
        columns.append(np.array(each.columns).reshape(dof, -1))
        units.append(np.array(each.units).reshape(dof, -1))
    whole = np.concatenate(values, axis=3)
    samples, joints, _, group = whole.shape
    return Regressor(
        whole.reshape(samples, joints, dof * group),
        tuple(np.hstack(columns).ravel().tolist()),
        tuple(np.hstack(units).ravel().tolist()),
    )


def _of_joints(kinds: Iterable[str], dof: int) -> tuple[str, ...]:
    """Names such as "mx_2": the kinds of the first joint, then of the second."""
    kinds = tuple(kinds)
    names = []
    for joint in range(1, dof + 1):
        names += [f"{kind}_{joint}" for kind in kinds]
    return tuple(names)
