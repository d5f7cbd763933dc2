"""Friction laws, and friction as a law with parameter values.

A law is a list of terms; a term is a function of the operating point, and its parameter is the
motor-side torque per unit of that function. Every law is therefore fitted by linear least squares.
The few nonlinear constants (smoothing speed, Stribeck speed, reference temperature) are the law's
shape, which a bounded outer search determines.

Laws: power-flow Coulomb (Clochiatti et al., Robotica 2024, eq. 10-18), Coulomb-viscous with tanh
(Raviola et al., RAAD 2021), with sign (Machines 2024, 12(9), 595), Stribeck, load-dependent,
power-law, velocity-polynomial and temperature-dependent ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ur_energy_model.model.friction import terms
from ur_energy_model.model.friction.terms import (
    LOAD,
    LOAD_ASYMMETRY,
    REFERENCE_TEMPERATURE,
    SMOOTHING,
    OperatingPoint,
    Shape,
    Term,
)
from ur_energy_model.typing import Array


@dataclass(frozen=True)
class FrictionLaw:
    """One friction law.

    Attributes:
        name: in `--friction` and in the model file.
        terms: parameter name -> function of operating point and shape, [samples].
        shape: shape constant -> (lowest, default, highest); equal bounds mean fixed.
        description: one line.
        uses_temperature: whether it depends on the joint temperature.
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
        """Number of fitted constants: parameters and searched shape constants."""
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
        temperature_model: a, b, c, d of the manufacturer-style model, if the law uses it.
        temperature_range: joint temperatures of the fitted data [degC], None if unknown; beyond
            it friction is that of the nearest end.
        presliding: joint travel within which Coulomb friction reverses [rad]; 0 if unknown.
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

        Symmetric laws have the same value in both cases; None if the law has no such parameter.
        """
        symmetric = self.parameters.get("coulomb")
        return (
            self.parameters.get("coulomb_direct", symmetric),
            self.parameters.get("coulomb_reverse", symmetric),
        )


_SMOOTH = {"smoothing": (SMOOTHING, SMOOTHING, SMOOTHING)}
_STRIBECK = {**_SMOOTH, "stribeck_speed": (0.02, 0.2, 0.5)}
_POWER = {**_SMOOTH, "exponent": (0.3, 0.6, 0.95)}
_REFERENCE = {"reference_temperature": (REFERENCE_TEMPERATURE,) * 3}

_VISCOUS = {"viscous": Term(terms.viscous, ())}
_COULOMB = {"coulomb": Term(terms.coulomb)}
_SPEED_TERM = {"stribeck": Term(terms.stribeck, ("smoothing", "stribeck_speed"))}
_LOAD = {LOAD: Term(terms.load), LOAD_ASYMMETRY: Term(terms.load_asymmetry, ())}
_POWER_TERM = {"power": Term(terms.power, ("smoothing", "exponent"))}
_WARM_POWER = {
    "power_temperature": Term(terms.warm_power, ("smoothing", "exponent", "reference_temperature"))
}

LAWS: dict[str, FrictionLaw] = {
    law.name: law
    for law in (
        FrictionLaw(
            "coulomb_viscous",
            {**_VISCOUS, **_COULOMB},
            _SMOOTH,
            "Coulomb (smoothed by tanh) and viscous",
        ),
        FrictionLaw(
            "sign",
            {**_VISCOUS, "coulomb": Term(terms.sign, ())},
            {},
            "Coulomb (sign of the speed) and viscous",
        ),
        FrictionLaw(
            "power_flow",
            {
                **_VISCOUS,
                "coulomb_direct": Term(terms.direct_coulomb),
                "coulomb_reverse": Term(terms.reverse_coulomb),
            },
            _SMOOTH,
            "Coulomb that depends on the direction of power flow, and viscous",
        ),
        FrictionLaw(
            "power",
            {**_COULOMB, **_POWER_TERM},
            _POWER,
            "Coulomb and a power of the speed (exponent below 1), as in factory calibrations",
        ),
        FrictionLaw(
            "stribeck",
            {**_VISCOUS, **_COULOMB, **_SPEED_TERM},
            _STRIBECK,
            "Coulomb, viscous and Stribeck (change at low speed)",
        ),
        FrictionLaw(
            "load_dependent",
            {**_VISCOUS, **_COULOMB, **_LOAD},
            _SMOOTH,
            "Coulomb that increases with the load, and viscous",
        ),
        FrictionLaw(
            "power_load",
            {**_COULOMB, **_POWER_TERM, **_LOAD},
            _POWER,
            "Coulomb that increases with the load, and a power of the speed (exponent below 1)",
        ),
        FrictionLaw(
            "stribeck_load",
            {**_VISCOUS, **_COULOMB, **_SPEED_TERM, **_LOAD},
            _STRIBECK,
            "Coulomb that increases with the load, viscous and Stribeck (change at low speed)",
        ),
        FrictionLaw(
            "polynomial",
            {
                **_VISCOUS,
                **_COULOMB,
                "square": Term(terms.signed_square, ()),
                "cubic": Term(terms.cubic, ()),
            },
            _SMOOTH,
            "Coulomb and an odd cubic polynomial of the speed",
        ),
        FrictionLaw(
            "temperature_linear",
            {
                **_VISCOUS,
                **_COULOMB,
                "viscous_temperature": Term(terms.warm_viscous, ("reference_temperature",)),
            },
            {**_SMOOTH, **_REFERENCE},
            "Coulomb, and viscous that changes linearly with temperature",
            uses_temperature=True,
        ),
        FrictionLaw(
            "power_temperature",
            {**_COULOMB, **_POWER_TERM, **_WARM_POWER},
            {**_POWER, **_REFERENCE},
            "Coulomb, and a power of the speed that changes linearly with temperature",
            uses_temperature=True,
        ),
        FrictionLaw(
            "power_load_temperature",
            {**_COULOMB, **_POWER_TERM, **_WARM_POWER, **_LOAD},
            {**_POWER, **_REFERENCE},
            "Coulomb that increases with the load, and a power of the speed that changes linearly "
            "with temperature",
            uses_temperature=True,
        ),
        FrictionLaw(
            "temperature_exponential",
            {"viscous": Term(terms.scaled_viscous, ("reference_temperature",)), **_COULOMB},
            {**_SMOOTH, **_REFERENCE},
            "Coulomb, and viscous scaled by the manufacturer's double exponential of temperature",
            uses_temperature=True,
        ),
    )
}
"""Friction laws by name, those with few parameters first."""

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
