# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Friction laws, and friction as a law with parameter values.

A law is a list of terms; a term is a function of the operating point, and its parameter
is the motor-side torque per unit of that function. Every law is therefore fitted by
linear least squares. The few nonlinear constants (smoothing speed, Stribeck speed,
reference temperature) are the law's shape, which a bounded outer search determines.

Laws: power-flow Coulomb (Clochiatti et al., Robotica 2024, eq. 10-18), Coulomb-viscous
with tanh (Raviola et al., RAAD 2021), with sign (Machines 2024, 12(9), 595), Stribeck,
load-dependent, power-law, velocity-polynomial and temperature-dependent ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ur_energy_model.typing import Array

SMOOTHING = 1e-3
"""Speed around which Coulomb friction changes its sign smoothly, joint side [rad/s]."""
LOAD = "load"
"""Parameter of laws with load friction: friction per unit of load, averaged over both
directions of the power flow."""
LOAD_ASYMMETRY = "load_asymmetry"
"""Parameter of laws with load friction: its excess over the average while the motor
drives the load, per unit of load. Currents alone do not separate it from the torque
constant."""
REFERENCE_TEMPERATURE = 35.0
"""Temperature that the parameters of temperature-dependent laws refer to [degC]."""

# Terms of friction laws: functions of speed, load and temperature.

Shape = Mapping[str, "float | Array"]  # shape constants by name, scalars or one per joint


@dataclass(frozen=True)
class OperatingPoint:
    """Quantities that friction depends on, of one joint [samples] or of k joints [samples, k].

    Attributes:
        speed: joint side [samples] or [samples, k], rad/s.
        load: torque at the joint without friction, joint side, same shape, N m.
        gear_ratio: motor turns per joint turn, scalar or [k].
        temperature: temperature of the joint, broadcasts with speed, degC; None if
            unknown.
        temperature_model: a, b, c, d of a*exp(b*T) + c*exp(d*T), [4] or [4, k]; None if
            unknown.
        direction: direction of Coulomb friction between -1 and 1 (see `presliding`), same
            shape as speed; None or NaN entries derive it from the speed.
    """

    speed: Array
    load: Array
    gear_ratio: float | Array
    temperature: Array | float | None = None
    temperature_model: Array | None = None
    direction: Array | None = None

    @property
    def motor_speed(self) -> Array:
        """Speed of the motor, in the shape of `speed`, rad/s."""
        return self.gear_ratio * self.speed

    def directed(self, from_speed: Array) -> Array:
        """The direction of Coulomb friction, `from_speed` where it is unknown.

        Args:
            from_speed: direction by the speed, between -1 and 1, in the shape of `speed`.
        """
        if self.direction is None:
            return from_speed
        return np.where(np.isnan(self.direction), from_speed, self.direction)

    def coulomb(self, shape: Shape) -> Array:
        """Direction of motion, smoothed around standstill."""
        return self.directed(np.asarray(np.tanh(self.speed / shape["smoothing"])))

    def power(self, shape: Shape) -> Array:
        """`coulomb` times a power of the joint speed."""
        return np.asarray(self.coulomb(shape) * np.abs(self.speed) ** shape["exponent"])

    def warmth(self, shape: Shape) -> Array | float:
        """Temperature above the reference [K]; zero if it is unknown."""
        if self.temperature is None:
            return 0.0
        return np.asarray(self.temperature) - shape["reference_temperature"]

    def temperature_factor(self, shape: Shape) -> Array | float:
        """Friction at the temperature over friction at the reference; one where unknown."""
        if self.temperature is None or self.temperature_model is None:
            return 1.0
        reference = shape["reference_temperature"]
        return temperature_factor(self.temperature_model, self.temperature, reference)


def temperature_factor(
    model: Array, temperature: Array | float, reference: Array | float
) -> Array:
    """Friction at a temperature over friction at the reference, a*exp(b*T) + c*exp(d*T).

    Controller configurations contain the four numbers without an explanation; this
    interpretation is plausible (friction of a warm joint halves from 20 to 60 degC).
    """
    a, b, c, d = model

    def level(at: Array | float) -> Array:
        warmth = np.asarray(at)
        return np.asarray(a * np.exp(b * warmth) + c * np.exp(d * warmth))

    return np.asarray(level(temperature) / level(reference))


@dataclass(frozen=True)
class Term:
    """One term of a law.

    Attributes:
        unit: unit of its parameter.
        function: motor-side torque per unit of the parameter [samples, ...].
        uses: names of the shape constants that it depends on.
    """

    unit: str
    function: Callable[[OperatingPoint, Shape], Array]
    uses: tuple[str, ...] = ("smoothing",)

    def __call__(self, point: OperatingPoint, shape: Shape) -> Array:
        """Values [samples, ...]."""
        return self.function(point, shape)


_TERMS: dict[str, Term] = {
    "viscous": Term("N m s/rad", lambda point, _: point.motor_speed, ()),
    "coulomb": Term("N m", OperatingPoint.coulomb),
    # Coulomb friction while the motor drives the load, and while the load drives the
    # motor.
    "coulomb_direct": Term(
        "N m",
        lambda point, s: np.where(point.speed * point.load > 0, point.coulomb(s), 0.0),
    ),
    "coulomb_reverse": Term(
        "N m",
        lambda point, s: np.where(point.speed * point.load > 0, 0.0, point.coulomb(s)),
    ),
    # Decreases with the square of the speed (Gaussian).
    "stribeck": Term(
        "N m",
        lambda point, s: (
            point.coulomb(s) * np.exp(-((point.speed / s["stribeck_speed"]) ** 2))
        ),
        ("smoothing", "stribeck_speed"),
    ),
    "power": Term("N m", OperatingPoint.power, ("smoothing", "exponent")),
    # Of grease that thins with shear: viscous well below the pace, constant above.
    "rise": Term(
        "N m",
        lambda point, s: -point.coulomb(s) * np.expm1(-np.abs(point.speed) / s["pace"]),
        ("smoothing", "pace"),
    ),
    # Half the excess of friction forwards over friction backwards.
    "coulomb_asymmetry": Term("N m", lambda point, s: np.abs(point.coulomb(s))),
    LOAD: Term(
        "1", lambda point, s: point.coulomb(s) * np.abs(point.load) / point.gear_ratio
    ),
    # The sign of the speed times the sign of the power flow times |load| is the load.
    LOAD_ASYMMETRY: Term("1", lambda point, _: point.load / point.gear_ratio, ()),
    "square": Term(
        "N m s^2/rad^2",
        lambda point, _: point.motor_speed * np.abs(point.motor_speed),
        (),
    ),
    "cubic": Term("N m s^3/rad^3", lambda point, _: point.motor_speed**3, ()),
    "viscous_temperature": Term(
        "N m s/rad/K",
        lambda point, s: point.motor_speed * point.warmth(s),
        ("reference_temperature",),
    ),
    "power_temperature": Term(
        "N m/K",
        lambda point, s: point.power(s) * point.warmth(s),
        ("smoothing", "exponent", "reference_temperature"),
    ),
}
"""Usual term of each linear parameter."""
PARAMETER_UNITS: dict[str, str] = {name: term.unit for name, term in _TERMS.items()}
"""Units of the linear parameters, motor side; `power` is the torque at 1 rad/s joint
side."""

_SHAPES: dict[str, tuple[float, float, float, str]] = {
    "smoothing": (SMOOTHING, SMOOTHING, SMOOTHING, "rad/s"),
    "stribeck_speed": (0.02, 0.2, 0.5, "rad/s"),
    "exponent": (0.3, 0.6, 0.95, "1"),
    "pace": (0.05, 0.3, 1.5, "rad/s"),
    "reference_temperature": (*(REFERENCE_TEMPERATURE,) * 3, "degC"),
}
"""Lowest, default and highest value of the shape constants, and their units."""
SHAPE_UNITS: dict[str, str] = {name: unit for name, (*_, unit) in _SHAPES.items()}
"""Units of the shape constants; speeds are joint side."""


@dataclass(frozen=True)
class FrictionLaw:
    """One friction law.

    Attributes:
        name: name of the law in `--friction` and in the model file.
        description: description in one line.
        terms: terms of the law by parameter name.
    """

    name: str
    description: str
    terms: Mapping[str, Term]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled by name."""
        return _law_named, (self.name,)

    @cached_property
    def shape(self) -> dict[str, tuple[float, float, float]]:
        """Lowest, default and highest value of each shape constant; equal bounds mean fixed."""
        used: set[str] = set()
        for term in self.terms.values():
            used.update(term.uses)
        found = {}
        for name, (low, default, high, _) in _SHAPES.items():
            if name in used:
                found[name] = (low, default, high)
        return found

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
        return {name: default for name, (_, default, _) in self.shape.items()}

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
    ("sign", "coulomb"): Term(
        "N m", lambda point, _: point.directed(np.sign(point.speed)), ()
    ),
    ("temperature_exponential", "viscous"): Term(
        "N m s/rad",
        lambda point, s: point.motor_speed * point.temperature_factor(s),
        ("reference_temperature",),
    ),
}
"""Terms of a law and parameter that replace the usual ones."""


def _law_named(name: str) -> FrictionLaw:
    return LAWS[name]


LAWS: dict[str, FrictionLaw] = {
    name: FrictionLaw(
        name,
        description,
        {key: _OTHER_TERMS.get((name, key), _TERMS[key]) for key in parameters.split()},
    )
    for name, parameters, description in _LAWS
}
"""Friction laws by name, laws with few parameters first."""


@dataclass(frozen=True)
class Friction:
    """A friction law with values.

    Attributes:
        law: law of the friction torque.
        parameters: values by parameter name, motor side (units: PARAMETER_UNITS).
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
            if LOAD in names:
                # The rest of the torque is
                # load (1 + asymmetry) + share sign(speed) |load|.
                share = group.values[:, names.index(LOAD)]
                asymmetry = group.values[:, names.index(LOAD_ASYMMETRY)]
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
