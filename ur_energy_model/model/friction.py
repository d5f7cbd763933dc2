"""Friction laws as plain descriptions, linear in their parameters, and friction with values.

A law is a list of terms; a term is a function of the operating point, and its parameter is the
motor-side torque per unit of that function. So every law is fitted by linear least squares, and
the few constants that enter nonlinearly (smoothing speed, Stribeck speed, reference temperature)
are the law's shape, found by a bounded outer search.

Laws: power-flow Coulomb (Clochiatti et al., Robotica 2024, eq. 10-18), Coulomb-viscous with tanh
(Raviola et al., RAAD 2021), with sign (Machines 2024, 12(9), 595), Stribeck, load-dependent,
power-law, velocity-polynomial and temperature-dependent ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Shape = Mapping[str, "float | Array"]

SMOOTHING = 1e-3
"""Speed below which Coulomb friction is smoothed, joint side [rad/s]."""
LOAD = "load"
"""Parameter of laws with load friction: friction per unit of load, on average of both ways of
power flow."""
LOAD_ASYMMETRY = "load_asymmetry"
"""Parameter of laws with load friction: what it is more where the motor drives the load than on
average of both ways, per unit of load. Current alone cannot tell it from the torque constant."""
REFERENCE_TEMPERATURE = 35.0
"""Temperature at which temperature-dependent laws state their parameters [degC]."""


@dataclass(frozen=True)
class OperatingPoint:
    """What friction may depend on: one joint's samples, or k joints' [samples, k].

    Attributes:
        speed: joint side [samples] or [samples, k], rad/s.
        load: torque at the joint without friction, joint side, same shape, N m.
        gear_ratio: motor turns per joint turn, scalar or [k].
        temperature: of the joint, anything that broadcasts with speed, degC; None if unknown.
        temperature_model: a, b, c, d of a*exp(b*T) + c*exp(d*T), [4] or [4, k]; None if unknown.
        direction: direction of Coulomb friction between -1 and 1 where it is known better than
            from the speed (see `presliding`), same shape as speed, NaN where not; or None.
    """

    speed: Array
    load: Array
    gear_ratio: float | Array
    temperature: Array | float | None = None
    temperature_model: Array | None = None
    direction: Array | None = None


@dataclass(frozen=True)
class Term:
    """One term of a law: motor-side torque per unit of its parameter.

    Attributes:
        function: of operating point and shape constants, [samples, ...].
        uses: shape constants it depends on.
    """

    function: Callable[[OperatingPoint, Shape], Array]
    uses: tuple[str, ...] = ("smoothing",)

    def __call__(self, point: OperatingPoint, shape: Shape) -> Array:
        """Values [samples, ...]."""
        return self.function(point, shape)


@dataclass(frozen=True)
class FrictionLaw:
    """One friction law.

    Attributes:
        name: as `--friction` and the model file spell it.
        terms: parameter name -> function of operating point and shape, [samples].
        shape: shape constant -> (lowest, default, highest); equal bounds mean fixed.
        uses_temperature: True where joint temperature enters.
        description: what it says, in one line.
    """

    name: str
    terms: Mapping[str, Term]
    shape: Mapping[str, tuple[float, float, float]]
    description: str
    uses_temperature: bool = False

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the linear parameters, in regressor order."""
        return tuple(self.terms)

    @property
    def freedom(self) -> int:
        """Number of constants that data decide: parameters and searched shape constants."""
        decided = len(self.terms) - (LOAD_ASYMMETRY in self.terms)
        return decided + sum(low < high for low, _, high in self.shape.values())

    @property
    def default_shape(self) -> dict[str, float]:
        """The shape constants' default values."""
        return {name: default for name, (_, default, _) in self.shape.items()}

    def regressor(self, point: OperatingPoint, shape: Shape) -> Array:
        """Motor-side friction torque per unit parameter, [samples, ..., parameters]."""
        return np.stack([term(point, shape) for term in self.terms.values()], axis=-1)


@dataclass(frozen=True)
class Friction:
    """A friction law with values.

    Attributes:
        law: the law.
        parameters: values by parameter name, motor side (units: PARAMETER_UNITS).
        shape: the law's shape constants.
        temperature_model: a, b, c, d of the manufacturer-style model where the law uses it.
        temperature_range: joint temperatures the law was fitted on [degC], None if unknown;
            outside of it the nearest end holds.
        presliding: joint travel within which Coulomb friction turns around [rad]; 0 if unknown.
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
        """Shape constants, defaults where the file says nothing."""
        return {**self.law.default_shape, **self.shape}

    @property
    def coulomb(self) -> tuple[float | None, float | None]:
        """Coulomb friction by power flow, to the load and back, motor side [N m].

        A symmetric law has the same value both ways; None where the law has none.
        """
        symmetric = self.parameters.get("coulomb")
        return (
            self.parameters.get("coulomb_direct", symmetric),
            self.parameters.get("coulomb_reverse", symmetric),
        )


def _sign(point: OperatingPoint, shape: Shape) -> Array:
    return _remembered(point, np.asarray(np.sign(point.speed)))


def _coulomb(point: OperatingPoint, shape: Shape) -> Array:
    return _remembered(point, np.asarray(np.tanh(point.speed / shape["smoothing"])))


def _remembered(point: OperatingPoint, otherwise: Array) -> Array:
    if point.direction is None:
        return otherwise
    return np.where(np.isnan(point.direction), otherwise, point.direction)


def _direct(point: OperatingPoint, shape: Shape) -> Array:
    return np.where(point.speed * point.load > 0, _coulomb(point, shape), 0.0)


def _reverse(point: OperatingPoint, shape: Shape) -> Array:
    return np.where(point.speed * point.load > 0, 0.0, _coulomb(point, shape))


def _viscous(point: OperatingPoint, shape: Shape) -> Array:
    return point.gear_ratio * point.speed


def _signed_square(point: OperatingPoint, shape: Shape) -> Array:
    motor = point.gear_ratio * point.speed
    return np.asarray(motor * np.abs(motor))


def _cubic(point: OperatingPoint, shape: Shape) -> Array:
    return np.asarray((point.gear_ratio * point.speed) ** 3)


def _stribeck(point: OperatingPoint, shape: Shape) -> Array:
    fade = np.exp(-((point.speed / shape["stribeck_speed"]) ** 2))
    return np.asarray(_coulomb(point, shape) * fade)


def _power(point: OperatingPoint, shape: Shape) -> Array:
    return np.asarray(_coulomb(point, shape) * np.abs(point.speed) ** shape["exponent"])


def _load(point: OperatingPoint, shape: Shape) -> Array:
    return _coulomb(point, shape) * np.abs(point.load) / point.gear_ratio


def _asymmetry(point: OperatingPoint, shape: Shape) -> Array:
    # |load| with the sign of the speed, and with that of the power flow: the load itself.
    return np.asarray(point.load / point.gear_ratio)


def _warmth(point: OperatingPoint, shape: Shape) -> Array | float:
    """Temperature above the reference; none where it is unknown."""
    if point.temperature is None:
        return 0.0
    return np.asarray(point.temperature) - shape["reference_temperature"]


def temperature_factor(model: Array, temperature: Array | float, reference: Array | float) -> Array:
    """Friction at a temperature over friction at the reference, a*exp(b*T) + c*exp(d*T).

    The four numbers are recorded in controller configurations without their meaning; this
    reading of them is plausible (warm joints turn more easily, by half from 20 to 60 degC).
    """
    a, b, c, d = model

    def level(t: Array | float) -> Array:
        return np.asarray(a * np.exp(b * np.asarray(t)) + c * np.exp(d * np.asarray(t)))

    return np.asarray(level(temperature) / level(reference))


def _factor(point: OperatingPoint, shape: Shape) -> Array | float:
    if point.temperature is None or point.temperature_model is None:
        return 1.0
    return temperature_factor(
        point.temperature_model, point.temperature, shape["reference_temperature"]
    )


def _warm_viscous(point: OperatingPoint, shape: Shape) -> Array:
    return np.asarray(_viscous(point, shape) * _warmth(point, shape))


def _warm_power(point: OperatingPoint, shape: Shape) -> Array:
    return np.asarray(_power(point, shape) * _warmth(point, shape))


def _scaled_viscous(point: OperatingPoint, shape: Shape) -> Array:
    return np.asarray(_viscous(point, shape) * _factor(point, shape))


_SMOOTH = {"smoothing": (SMOOTHING, SMOOTHING, SMOOTHING)}
_STRIBECK = {**_SMOOTH, "stribeck_speed": (0.02, 0.2, 0.5)}
_POWER = {**_SMOOTH, "exponent": (0.3, 0.6, 0.95)}
_REFERENCE = {"reference_temperature": (REFERENCE_TEMPERATURE,) * 3}

_VISCOUS = {"viscous": Term(_viscous, ())}
_COULOMB = {"coulomb": Term(_coulomb)}
_SPEED_TERM = {"stribeck": Term(_stribeck, ("smoothing", "stribeck_speed"))}
_LOAD = {LOAD: Term(_load), LOAD_ASYMMETRY: Term(_asymmetry, ())}
_POWER_TERM = {"power": Term(_power, ("smoothing", "exponent"))}

LAWS: dict[str, FrictionLaw] = {
    law.name: law
    for law in (
        FrictionLaw(
            "coulomb_viscous",
            {**_VISCOUS, **_COULOMB},
            _SMOOTH,
            "Coulomb with tanh and viscous",
        ),
        FrictionLaw(
            "sign",
            {**_VISCOUS, "coulomb": Term(_sign, ())},
            {},
            "Coulomb with the sign of the speed and viscous",
        ),
        FrictionLaw(
            "power_flow",
            {**_VISCOUS, "coulomb_direct": Term(_direct), "coulomb_reverse": Term(_reverse)},
            _SMOOTH,
            "Coulomb by direction of power flow, and viscous",
        ),
        FrictionLaw(
            "power",
            {**_COULOMB, **_POWER_TERM},
            _POWER,
            "Coulomb and a power of the speed below one, as factory calibrations show",
        ),
        FrictionLaw(
            "stribeck",
            {**_VISCOUS, **_COULOMB, **_SPEED_TERM},
            _STRIBECK,
            "Coulomb, viscous and a part that changes at low speed",
        ),
        FrictionLaw(
            "load_dependent",
            {**_VISCOUS, **_COULOMB, **_LOAD},
            _SMOOTH,
            "Coulomb that grows with the load, and viscous",
        ),
        FrictionLaw(
            "power_load",
            {**_COULOMB, **_POWER_TERM, **_LOAD},
            _POWER,
            "Coulomb that grows with the load, and a power of the speed below one",
        ),
        FrictionLaw(
            "stribeck_load",
            {**_VISCOUS, **_COULOMB, **_SPEED_TERM, **_LOAD},
            _STRIBECK,
            "Coulomb that grows with the load, viscous and a part that changes at low speed",
        ),
        FrictionLaw(
            "polynomial",
            {
                **_VISCOUS,
                **_COULOMB,
                "square": Term(_signed_square, ()),
                "cubic": Term(_cubic, ()),
            },
            _SMOOTH,
            "Coulomb and an odd cubic polynomial of the speed",
        ),
        FrictionLaw(
            "temperature_linear",
            {
                **_VISCOUS,
                **_COULOMB,
                "viscous_temperature": Term(_warm_viscous, ("reference_temperature",)),
            },
            {**_SMOOTH, **_REFERENCE},
            "Coulomb and viscous friction that changes linearly with temperature",
            uses_temperature=True,
        ),
        FrictionLaw(
            "power_temperature",
            {
                **_COULOMB,
                **_POWER_TERM,
                "power_temperature": Term(
                    _warm_power, ("smoothing", "exponent", "reference_temperature")
                ),
            },
            {**_POWER, **_REFERENCE},
            "Coulomb and a power of the speed that changes linearly with temperature",
            uses_temperature=True,
        ),
        FrictionLaw(
            "temperature_exponential",
            {"viscous": Term(_scaled_viscous, ("reference_temperature",)), **_COULOMB},
            {**_SMOOTH, **_REFERENCE},
            "Coulomb and viscous friction under the manufacturer-style double exponential",
            uses_temperature=True,
        ),
    )
}
"""Friction laws by name, parsimonious ones first."""

PARAMETER_UNITS: dict[str, str] = {
    "viscous": "N m s/rad",
    "coulomb": "N m",
    "coulomb_direct": "N m",
    "coulomb_reverse": "N m",
    "stribeck": "N m",
    "power": "N m",
    LOAD: "1",
    LOAD_ASYMMETRY: "1",
    "square": "N m s^2/rad^2",
    "cubic": "N m s^3/rad^3",
    "viscous_temperature": "N m s/rad/K",
    "power_temperature": "N m/K",
}
"""Units of the linear parameters, motor side; `power` is the torque at 1 rad/s joint side."""

SHAPE_UNITS: dict[str, str] = {
    "smoothing": "rad/s",
    "stribeck_speed": "rad/s",
    "exponent": "1",
    "reference_temperature": "degC",
}
"""Units of the shape constants; speeds are joint side."""
