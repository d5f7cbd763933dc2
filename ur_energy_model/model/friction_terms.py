# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Terms of friction laws: functions of speed, load and temperature, and their constants.

A term is a function of the operating point, and its parameter is the motor-side torque per
unit of that function. The shape constants are what terms are not linear in. A record of each
has its unit and starting value; those of the package's laws are in TERMS and CONSTANTS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

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


class TypicalFriction(NamedTuple):
    """Friction that a joint of its size typically has, from which parameters start.

    Attributes:
        coulomb: Coulomb friction, motor side [N m].
        viscous: viscous friction, motor side [N m s/rad].
        gear_ratio: motor turns per joint turn.
        fastest: highest speed of the motor [rad/s].
    """

    coulomb: float
    viscous: float
    gear_ratio: float
    fastest: float


Start = tuple[float, float] | Callable[[TypicalFriction], tuple[float, float]]
"""Value that a parameter has before any measurement, and its standard deviation between arms,
motor side: the same for all joints, or from the typical friction of the joint."""


@dataclass(frozen=True)
class Term:
    """One term of a law.

    Attributes:
        unit: unit of its parameter.
        function: motor-side torque per unit of the parameter, in the shape of the speed
            [samples, ...], each sample by itself. It gets the operating point and the
            shape constants by name, which are numbers or one for each joint.
        uses: names of the shape constants that it depends on.
        start: starting value of the parameter; None for zero, with a standard deviation
            at which the term is as large as typical Coulomb friction.
        kind: what the term depends on. From session to session, terms of kind "coulomb"
            and "speed" vary, each kind together; those of kind "load" do not.
        odd: whether the torque is the opposite where speed, load and direction are.
    """

    unit: str
    function: Callable[[OperatingPoint, Shape], Array]
    uses: tuple[str, ...] = ("smoothing",)
    start: Start | None = None
    kind: Literal["coulomb", "speed", "load"] = "speed"
    odd: bool = True

    def __call__(self, point: OperatingPoint, shape: Shape) -> Array:
        """Values [samples, ...]."""
        return self.function(point, shape)


_ASYMMETRY = 0.03
"""Half the difference of friction forwards and backwards over Coulomb friction: up to 3.2
% in the factory calibration of a UR5e, up to 3 % in recordings of a UR10e."""
_LOAD_SPREAD = 0.2  # spread of load friction, as a share of the load


def _as_coulomb(typical: TypicalFriction) -> tuple[float, float]:
    """Start of a parameter that is a Coulomb friction."""
    return typical.coulomb, typical.coulomb


TERMS: dict[str, Term] = {
    "viscous": Term(
        "N m s/rad",
        lambda point, _: point.motor_speed,
        (),
        lambda typical: (typical.viscous, typical.viscous),
    ),
    "coulomb": Term("N m", OperatingPoint.coulomb, start=_as_coulomb, kind="coulomb"),
    # Coulomb friction while the motor drives the load, and while the load drives the
    # motor.
    "coulomb_direct": Term(
        "N m",
        lambda point, s: np.where(point.speed * point.load > 0, point.coulomb(s), 0.0),
        start=_as_coulomb,
        kind="coulomb",
    ),
    "coulomb_reverse": Term(
        "N m",
        lambda point, s: np.where(point.speed * point.load > 0, 0.0, point.coulomb(s)),
        start=_as_coulomb,
        kind="coulomb",
    ),
    # Decreases with the square of the speed (Gaussian).
    "stribeck": Term(
        "N m",
        lambda point, s: (
            point.coulomb(s) * np.exp(-((point.speed / s["stribeck_speed"]) ** 2))
        ),
        ("smoothing", "stribeck_speed"),
        lambda typical: (0.0, typical.coulomb),
        kind="coulomb",
    ),
    "power": Term(
        "N m",
        OperatingPoint.power,
        ("smoothing", "exponent"),
        lambda typical: (typical.viscous * typical.gear_ratio,) * 2,
    ),
    # Of grease that thins with shear: viscous well below the pace, constant above.
    "rise": Term(
        "N m",
        lambda point, s: -point.coulomb(s) * np.expm1(-np.abs(point.speed) / s["pace"]),
        ("smoothing", "pace"),
        lambda typical: (0.5 * typical.coulomb, typical.coulomb),
    ),
    # Half the excess of friction forwards over friction backwards.
    "coulomb_asymmetry": Term(
        "N m",
        lambda point, s: np.abs(point.coulomb(s)),
        start=lambda typical: (0.0, _ASYMMETRY * typical.coulomb),
        kind="coulomb",
        odd=False,
    ),
    LOAD: Term(
        "1",
        lambda point, s: point.coulomb(s) * np.abs(point.load) / point.gear_ratio,
        start=lambda _: (0.0, _LOAD_SPREAD),
        kind="load",
    ),
    # The sign of the speed times the sign of the power flow times |load| is the load.
    # Its start depends on whether the torque constant is known (`current_prior`).
    LOAD_ASYMMETRY: Term(
        "1", lambda point, _: point.load / point.gear_ratio, (), kind="load"
    ),
    "square": Term(
        "N m s^2/rad^2",
        lambda point, _: point.motor_speed * np.abs(point.motor_speed),
        (),
        lambda typical: (0.0, typical.viscous / typical.fastest),
    ),
    "cubic": Term(
        "N m s^3/rad^3",
        lambda point, _: point.motor_speed**3,
        (),
        lambda typical: (0.0, typical.viscous / typical.fastest**2),
    ),
    "viscous_temperature": Term(
        "N m s/rad/K",
        lambda point, s: point.motor_speed * point.warmth(s),
        ("reference_temperature",),
        lambda typical: (0.0, 0.05 * typical.viscous),
    ),
    "power_temperature": Term(
        "N m/K",
        lambda point, s: point.power(s) * point.warmth(s),
        ("smoothing", "exponent", "reference_temperature"),
        lambda typical: (0.0, 0.05 * typical.viscous * typical.gear_ratio),
    ),
}
"""Usual term of each linear parameter of the package's laws, motor side; `power` is the torque
at 1 rad/s joint side. Laws of users may have them, too."""


class ShapeConstant(NamedTuple):
    """A constant that a law is not linear in.

    Attributes:
        unit: unit of the constant; speeds are joint side.
        low: lowest value that is tried, above zero.
        default: value that is used where none was fitted.
        high: highest value that is tried; equal to `low` for a constant that is not fitted.
    """

    unit: str
    low: float
    default: float
    high: float

    @property
    def is_fixed(self) -> bool:
        """Whether the constant is not fitted."""
        return self.low == self.high


CONSTANTS: dict[str, ShapeConstant] = {
    "smoothing": ShapeConstant("rad/s", SMOOTHING, SMOOTHING, SMOOTHING),
    "stribeck_speed": ShapeConstant("rad/s", 0.02, 0.2, 0.5),
    "exponent": ShapeConstant("1", 0.3, 0.6, 0.95),
    "pace": ShapeConstant("rad/s", 0.05, 0.3, 1.5),
    "reference_temperature": ShapeConstant("degC", *(REFERENCE_TEMPERATURE,) * 3),
}
"""Shape constants of the package's laws, which laws of users may use, too."""
