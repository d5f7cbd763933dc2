# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Friction laws, and friction as a law with parameter values.

A law is a list of terms (`friction_terms`), each with a parameter. Every law is therefore
fitted by linear least squares. The few nonlinear constants (smoothing speed, Stribeck speed,
reference temperature) are the law's shape, which a bounded outer search determines.

Laws: power-flow Coulomb (Clochiatti et al., Robotica 2024, eq. 10-18), Coulomb-viscous
with tanh (Raviola et al., RAAD 2021), with sign (Machines 2024, 12(9), 595), Stribeck,
load-dependent, power-law, velocity-polynomial and temperature-dependent ones. Laws of
users are the same records, in files of their own (`friction_files`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ur_energy_model.errors import InputError
from ur_energy_model.model.friction_terms import (
    CONSTANTS,
    LOAD,
    LOAD_ASYMMETRY,
    SMOOTHING,
    TERMS,
    OperatingPoint,
    Shape,
    ShapeConstant,
    Term,
)
from ur_energy_model.typing import Array


@dataclass(frozen=True)
class FrictionLaw:
    """One friction law.

    Attributes:
        name: name of the law in `--friction` and in the model file.
        description: description in one line.
        terms: terms of the law by parameter name.
        constants: shape constants of the law's own; those of the package, CONSTANTS, need
            not be there.
    """

    name: str
    description: str
    terms: Mapping[str, Term]
    constants: Mapping[str, ShapeConstant] = field(default_factory=dict)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled by name: terms have functions, which cannot be pickled."""
        return _law_named, (self.name,)

    @cached_property
    def shape(self) -> dict[str, ShapeConstant]:
        """The shape constants that the terms use, the package's first."""
        used: set[str] = set()
        for term in self.terms.values():
            used.update(term.uses)
        known = {**CONSTANTS, **self.constants}
        return {name: constant for name, constant in known.items() if name in used}

    @property
    def units(self) -> dict[str, str]:
        """Units of the linear parameters by name, motor side, in regressor order."""
        return {name: term.unit for name, term in self.terms.items()}

    @property
    def uses_temperature(self) -> bool:
        """Whether the law depends on the joint temperature."""
        return "reference_temperature" in self.shape

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the linear parameters, in regressor order."""
        return tuple(self.terms)

    @property
    def default_shape(self) -> dict[str, float]:
        """The shape constants' default values."""
        return {name: constant.default for name, constant in self.shape.items()}

    def regressor(self, point: OperatingPoint, shape: Shape) -> Array:
        """Motor-side friction torque per unit parameter, [samples, ..., parameters]."""
        return np.stack([term(point, shape) for term in self.terms.values()], axis=-1)


_LAWS = (
    ("coulomb_viscous", "viscous coulomb", "Coulomb (smoothed by tanh) and viscous"),
    ("sign", "viscous coulomb", "Coulomb (sign of the speed) and viscous"),
    ("power_flow", "viscous coulomb_direct coulomb_reverse",
     "Coulomb that depends on the direction of power flow, and viscous"),
    ("power", "coulomb power",
     "Coulomb and a power of the speed (exponent below 1), as in factory calibrations"),
    ("shear_thinning", "viscous coulomb rise coulomb_asymmetry",
     "Coulomb that depends on the direction, viscous, and viscous that saturates with the speed"),
    ("shear_thinning_load", "viscous coulomb rise coulomb_asymmetry load load_asymmetry",
     "Coulomb that depends on direction and load, viscous, and viscous that saturates"),
    ("stribeck", "viscous coulomb stribeck", "Coulomb, viscous and Stribeck (change at low speed)"),
    ("load_dependent", "viscous coulomb load load_asymmetry",
     "Coulomb that increases with the load, and viscous"),
    ("power_load", "coulomb power load load_asymmetry",
     "Coulomb that increases with the load, and a power of the speed (exponent below 1)"),
    ("stribeck_load", "viscous coulomb stribeck load load_asymmetry",
     "Coulomb that increases with the load, viscous and Stribeck (change at low speed)"),
    ("polynomial", "viscous coulomb square cubic",
     "Coulomb and an odd cubic polynomial of the speed"),
    ("temperature_linear", "viscous coulomb viscous_temperature",
     "Coulomb, and viscous that changes linearly with temperature"),
    ("power_temperature", "coulomb power power_temperature",
     "Coulomb, and a power of the speed that changes linearly with temperature"),
    ("power_load_temperature", "coulomb power power_temperature load load_asymmetry",
     "Coulomb that increases with the load, and a power of the speed that changes linearly with "
     "temperature"),
    ("temperature_exponential", "viscous coulomb",
     "Coulomb, and viscous scaled by the manufacturer's double exponential of temperature"),
)  # fmt: skip
_OTHER_TERMS: dict[tuple[str, str], Term] = {
    ("sign", "coulomb"): replace(
        TERMS["coulomb"],
        function=lambda point, _: point.directed(np.sign(point.speed)),
        uses=(),
    ),
    ("temperature_exponential", "viscous"): replace(
        TERMS["viscous"],
        function=lambda point, s: point.motor_speed * point.temperature_factor(s),
        uses=("reference_temperature",),
    ),
}
"""Terms of a law and parameter that replace the usual ones."""


def _law_named(name: str) -> FrictionLaw:
    """A law that was pickled."""
    if name not in LAWS:
        problem = "is not there in this process"
        raise InputError(f"friction law {name}", problem, "load it from a file")
    return LAWS[name]


LAWS: dict[str, FrictionLaw] = {
    name: FrictionLaw(
        name,
        description,
        {key: _OTHER_TERMS.get((name, key), TERMS[key]) for key in parameters.split()},
    )
    for name, parameters, description in _LAWS
}
"""Friction laws by name: the package's, laws with few parameters first, then those that
`friction_files` has added."""


def parameter_units() -> dict[str, str]:
    """Units of the linear parameters of all laws by name, motor side.

    Parameters of the same name have the same unit in all laws.
    """
    units: dict[str, str] = {}
    for law in LAWS.values():
        units |= law.units
    return units


def constant_units() -> dict[str, str]:
    """Units of the shape constants of all laws by name; speeds are joint side."""
    units = {name: constant.unit for name, constant in CONSTANTS.items()}
    for law in LAWS.values():
        units |= {name: constant.unit for name, constant in law.constants.items()}
    return units


@dataclass(frozen=True)
class Friction:
    """A friction law with values.

    Attributes:
        law: law of the friction torque.
        parameters: values by parameter name, motor side (units: those of the law).
        shape: the law's shape constants.
        temperature_model: a, b, c, d of the manufacturer-style model, if the law uses it.
        temperature_range: joint temperatures of the fitted data [degC], None if unknown;
            beyond it, the friction at the nearest end is used.
        presliding: joint travel within which Coulomb friction reverses [rad]; 0 if
            unknown.
    """

    law: FrictionLaw
    parameters: Mapping[str, float]
    shape: Mapping[str, float] = field(default_factory=dict)
    temperature_model: tuple[float, float, float, float] | None = None
    temperature_range: tuple[float, float] | None = None
    presliding: float = 0.0

    @property
    def values(self) -> Array:
        """Parameter values in regressor order [parameters]."""
        return np.array([self.parameters[name] for name in self.law.parameters])

    @property
    def all_shape(self) -> dict[str, float]:
        """Shape constants; defaults where no value was given."""
        return {**self.law.default_shape, **self.shape}

    @property
    def coulomb(self) -> tuple[float | None, float | None]:
        """Coulomb friction while the motor drives the load and vice versa, motor side [N m].

        Symmetric laws have the same value in both cases; None if the law has no such
        parameter.
        """
        symmetric = self.parameters.get("coulomb")
        direct = self.parameters.get("coulomb_direct", symmetric)
        return direct, self.parameters.get("coulomb_reverse", symmetric)


# FrictionBank: the friction of all joints, evaluated on arrays.


class _Group:
    """Joints with the same friction law.

    Attributes:
        joints: numbers of the joints, ascending; k of them.
        columns: these joints as a selection of columns; for consecutive joints a slice,
            which copies nothing.
        law: friction law of these joints.
        ratio: gear ratios [k].
        values: parameter values [k, parameters].
        shape: shape constants by name [k].
        model: model of the temperature dependence [4, k]; None where a joint has none.
        low: lowest temperatures of the fitted data [k], degC.
        high: highest temperatures of the fitted data [k], degC.
        middle: middles of the ranges of temperature [k], degC; None where a joint has no range.
    """

    def __init__(
        self, joints: list[int], frictions: list[Friction], gear_ratio: Array
    ) -> None:
        self.columns: slice | list[int] = joints
        consecutive = slice(joints[0], joints[-1] + 1)
        if joints == [*range(consecutive.start, consecutive.stop)]:
            self.columns = consecutive
        self.joints = joints
        self.law = frictions[0].law
        self.ratio = gear_ratio[joints]
        self.values = np.array([friction.values for friction in frictions])
        self.shape = {
            name: np.array([friction.all_shape[name] for friction in frictions])
            for name in self.law.shape
        }
        models = [friction.temperature_model for friction in frictions]
        self.model = None if None in models else np.array(models).T
        ranges = [
            friction.temperature_range or (-np.inf, np.inf) for friction in frictions
        ]
        self.low, self.high = np.array(ranges).T
        self.middle = (self.low + self.high) / 2 if np.isfinite(ranges).all() else None

    def temperature(self, measured: Array | None) -> Array | None:
        """Temperatures clipped to the fitted range; its middle, if any, replaces unknown ones."""
        if not self.law.uses_temperature:
            return None
        if measured is None:
            return self.middle
        known = np.asarray(measured, dtype=float)[..., self.columns]
        if self.middle is not None:
            known = np.where(np.isnan(known), self.middle, known)
        return np.asarray(np.clip(known, self.low, self.high))

    def value(self, name: str) -> Array:
        """Values of a parameter [k]; zeros where the law does not have it."""
        if name not in self.law.terms:
            return np.zeros(len(self.joints))
        return self.values[:, self.law.parameters.index(name)]

    def torque(self, point: OperatingPoint, names: Sequence[str]) -> Array:
        """Sum of these terms [samples, joints of the group], N m."""
        total: Array | float = 0.0
        terms = self.law.terms.items()
        for (name, term), value in zip(terms, self.values.T, strict=True):
            if name in names:
                total = total + term(point, self.shape) * value
        return np.asarray(total)


class FrictionBank:
    """The friction of n joints; joints with the same law are evaluated together.

    Speeds, rad/s, and loads, the joint torques without friction, N m, are joint side
    [samples, n]. Temperatures are [n] or [samples, n], degC; None stands for the middle
    of the fitted range. Directions [samples, n]: see `OperatingPoint`.

    Args:
        frictions: frictions of the joints, in order.
        gear_ratio: motor turns per joint turn [n].
    """

    def __init__(self, frictions: Sequence[Friction], gear_ratio: Array) -> None:
        self.dof = len(frictions)
        self._ratio = gear_ratio
        joints: dict[str, list[int]] = {}
        for j, friction in enumerate(frictions):
            joints.setdefault(friction.law.name, []).append(j)
        self._groups = []
        for group in joints.values():
            own = [frictions[j] for j in group]
            self._groups.append(_Group(group, own, gear_ratio))

    def torque(
        self,
        speed: Array,
        load: Array,
        temperature: Array | None = None,
        direction: Array | None = None,
    ) -> Array:
        """Motor-side friction torque [samples, n], N m; positive against positive speed."""
        out = np.empty_like(speed)
        for group, point in self._points(speed, load, temperature, direction):
            out[:, group.columns] = group.torque(point, group.law.parameters)
        return out

    def torque_within(
        self, speed: Array, motor_torque: Array, temperature: Array | None = None
    ) -> Array:
        """Friction's part of a known motor torque [samples, n], N m, motor side.

        Args:
            speed: speeds of the joints [samples, n], rad/s.
            motor_torque: load and friction together, motor side [samples, n], N m.
            temperature: temperatures of the joints [n] or [samples, n], degC; None if
                unknown.
        """
        out = np.empty_like(speed)
        # The torque stands for the load, as its sign shows the power flow that some laws need.
        whole = motor_torque * self._ratio
        for group, point in self._points(speed, whole, temperature, None):
            names = group.law.parameters
            free = [name for name in names if name not in (LOAD, LOAD_ASYMMETRY)]
            friction = group.torque(point, free)
            if len(free) < len(names):
                # The rest of the torque is
                # load (1 + asymmetry) + share sign(speed) |load|.
                share = group.value(LOAD)
                asymmetry = group.value(LOAD_ASYMMETRY)
                own = motor_torque[:, group.columns]
                rest = own - friction
                forward = np.tanh(point.speed / SMOOTHING) * np.sign(rest)
                friction = own - rest / (1.0 + asymmetry + share * forward)
            out[:, group.columns] = friction
        return out

    def regressors(
        self,
        speed: Array,
        load: Array,
        temperature: Array | None = None,
        direction: Array | None = None,
    ) -> list[Array]:
        """Motor-side friction torque per unit parameter [samples, parameters] of each joint."""
        out: list[Array] = [np.empty(0)] * self.dof
        for group, point in self._points(speed, load, temperature, direction):
            terms = group.law.regressor(point, group.shape)
            for k, joint in enumerate(group.joints):
                out[joint] = terms[:, k]
        return out

    def _points(
        self,
        speed: Array,
        load: Array,
        temperature: Array | None,
        direction: Array | None,
    ) -> Iterator[tuple[_Group, OperatingPoint]]:
        """Groups of joints with the same law, each with its operating point."""
        for group in self._groups:
            point = OperatingPoint(
                speed=speed[:, group.columns],
                load=load[:, group.columns],
                gear_ratio=group.ratio,
                temperature=group.temperature(temperature),
                temperature_model=group.model,
                direction=None if direction is None else direction[:, group.columns],
            )
            yield group, point


def coulomb_viscous_fit(
    friction: Friction, gear_ratio: float, fastest: float
) -> dict[str, float]:
    """Coulomb and viscous friction closest to a law of any form, without load (least squares).

    Args:
        friction: friction of a joint.
        gear_ratio: motor turns per joint turn.
        fastest: joint speed [rad/s]; the line is fitted from 5 to 100 % of it.

    Returns:
        "coulomb", N m, and "viscous", N m s/rad, motor side.
    """
    speeds = np.linspace(0.05 * fastest, fastest, 40)
    column = speeds[:, None]
    bank = FrictionBank([friction], np.array([gear_ratio]))
    torque = bank.torque(column, np.zeros_like(column))
    viscous, coulomb = np.polyfit(gear_ratio * speeds, torque.ravel(), 1)
    return {"coulomb": float(coulomb), "viscous": float(viscous)}
