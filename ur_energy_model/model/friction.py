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

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ur_energy_model.typing import Array

# Terms of friction laws: functions of speed, load and temperature.
#
# A term is the motor-side friction torque per unit of its parameter at an operating point. Shape
# constants are passed by name, as scalars or one per joint.

Shape = Mapping[str, "float | Array"]

SMOOTHING = 1e-3
"""Speed around which Coulomb friction changes its sign smoothly, joint side [rad/s]."""
LOAD = "load"
"""Parameter of laws with load friction: friction per unit of load, averaged over both directions
of the power flow."""
LOAD_ASYMMETRY = "load_asymmetry"
"""Parameter of laws with load friction: its excess over the average while the motor drives the
load, per unit of load. Currents alone do not separate it from the torque constant."""
REFERENCE_TEMPERATURE = 35.0
"""Temperature that the parameters of temperature-dependent laws refer to [degC]."""


@dataclass(frozen=True)
class OperatingPoint:
    """Quantities that friction depends on, of one joint [samples] or of k joints [samples, k].

    Attributes:
        speed: joint side [samples] or [samples, k], rad/s.
        load: torque at the joint without friction, joint side, same shape, N m.
        gear_ratio: motor turns per joint turn, scalar or [k].
        temperature: of the joint, broadcasts with speed, degC; None if unknown.
        temperature_model: a, b, c, d of a*exp(b*T) + c*exp(d*T), [4] or [4, k]; None if unknown.
        direction: of Coulomb friction between -1 and 1 (see `presliding`), same shape as speed;
            None or NaN entries derive it from the speed.
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
        uses: names of the shape constants that it depends on.
    """

    function: Callable[[OperatingPoint, Shape], Array]
    uses: tuple[str, ...] = ("smoothing",)

    def __call__(self, point: OperatingPoint, shape: Shape) -> Array:
        """Values [samples, ...]."""
        return self.function(point, shape)


def sign(point: OperatingPoint, shape: Shape) -> Array:
    """Direction of motion."""
    return _direction(point, np.asarray(np.sign(point.speed)))


def coulomb(point: OperatingPoint, shape: Shape) -> Array:
    """Direction of motion, smoothed around standstill."""
    return _direction(point, np.asarray(np.tanh(point.speed / shape["smoothing"])))


def _direction(point: OperatingPoint, from_speed: Array) -> Array:
    """The point's direction of Coulomb friction; that from the speed where it is unknown."""
    if point.direction is None:
        return from_speed
    return np.where(np.isnan(point.direction), from_speed, point.direction)


def direct_coulomb(point: OperatingPoint, shape: Shape) -> Array:
    """`coulomb` where the motor drives the load."""
    return np.where(point.speed * point.load > 0, coulomb(point, shape), 0.0)


def reverse_coulomb(point: OperatingPoint, shape: Shape) -> Array:
    """`coulomb` where the load drives the motor."""
    return np.where(point.speed * point.load > 0, 0.0, coulomb(point, shape))


def viscous(point: OperatingPoint, shape: Shape) -> Array:
    """Motor speed [rad/s]."""
    return point.gear_ratio * point.speed


def signed_square(point: OperatingPoint, shape: Shape) -> Array:
    """Motor speed squared, with its sign [rad^2/s^2]."""
    motor = point.gear_ratio * point.speed
    return np.asarray(motor * np.abs(motor))


def cubic(point: OperatingPoint, shape: Shape) -> Array:
    """Motor speed cubed [rad^3/s^3]."""
    return np.asarray((point.gear_ratio * point.speed) ** 3)


def stribeck(point: OperatingPoint, shape: Shape) -> Array:
    """`coulomb` that decreases with the square of the speed (Gaussian)."""
    fade = np.exp(-((point.speed / shape["stribeck_speed"]) ** 2))
    return np.asarray(coulomb(point, shape) * fade)


def power(point: OperatingPoint, shape: Shape) -> Array:
    """`coulomb` times a power of the joint speed."""
    return np.asarray(coulomb(point, shape) * np.abs(point.speed) ** shape["exponent"])


def load(point: OperatingPoint, shape: Shape) -> Array:
    """`coulomb` times the load, motor side [N m]."""
    return coulomb(point, shape) * np.abs(point.load) / point.gear_ratio


def load_asymmetry(point: OperatingPoint, shape: Shape) -> Array:
    """Load, motor side [N m]: `load` with the sign of the power flow."""
    # Sign of the speed times that of the power flow times |load| is the load itself.
    return np.asarray(point.load / point.gear_ratio)


def _warmth(point: OperatingPoint, shape: Shape) -> Array | float:
    """Temperature above the reference; zero if it is unknown."""
    if point.temperature is None:
        return 0.0
    return np.asarray(point.temperature) - shape["reference_temperature"]


def temperature_factor(model: Array, temperature: Array | float, reference: Array | float) -> Array:
    """Friction at a temperature over friction at the reference, a*exp(b*T) + c*exp(d*T).

    Controller configurations contain the four numbers without an explanation; this interpretation
    is plausible (friction of a warm joint halves from 20 to 60 degC).
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


def warm_viscous(point: OperatingPoint, shape: Shape) -> Array:
    """`viscous` times the temperature above the reference [rad/s K]."""
    return np.asarray(viscous(point, shape) * _warmth(point, shape))


def warm_power(point: OperatingPoint, shape: Shape) -> Array:
    """`power` times the temperature above the reference [K]."""
    return np.asarray(power(point, shape) * _warmth(point, shape))


def scaled_viscous(point: OperatingPoint, shape: Shape) -> Array:
    """`viscous` times the factor of the double exponential [rad/s]."""
    return np.asarray(viscous(point, shape) * _factor(point, shape))


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
    uses_temperature: bool

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


_TERMS: dict[str, tuple[Term, str]] = {
    "viscous": (Term(viscous, ()), "N m s/rad"),
    "coulomb": (Term(coulomb), "N m"),
    "coulomb_direct": (Term(direct_coulomb), "N m"),
    "coulomb_reverse": (Term(reverse_coulomb), "N m"),
    "stribeck": (Term(stribeck, ("smoothing", "stribeck_speed")), "N m"),
    "power": (Term(power, ("smoothing", "exponent")), "N m"),
    LOAD: (Term(load), "1"),
    LOAD_ASYMMETRY: (Term(load_asymmetry, ()), "1"),
    "square": (Term(signed_square, ()), "N m s^2/rad^2"),
    "cubic": (Term(cubic, ()), "N m s^3/rad^3"),
    "viscous_temperature": (Term(warm_viscous, ("reference_temperature",)), "N m s/rad/K"),
    "power_temperature": (
        Term(warm_power, ("smoothing", "exponent", "reference_temperature")),
        "N m/K",
    ),
}
"""Usual term of each linear parameter, and its unit."""
PARAMETER_UNITS: dict[str, str] = {name: unit for name, (_, unit) in _TERMS.items()}
"""Units of the linear parameters, motor side; `power` is the torque at 1 rad/s joint side."""

_SHAPES: dict[str, tuple[float, float, float, str]] = {
    "smoothing": (SMOOTHING, SMOOTHING, SMOOTHING, "rad/s"),
    "stribeck_speed": (0.02, 0.2, 0.5, "rad/s"),
    "exponent": (0.3, 0.6, 0.95, "1"),
    "reference_temperature": (
        REFERENCE_TEMPERATURE,
        REFERENCE_TEMPERATURE,
        REFERENCE_TEMPERATURE,
        "degC",
    ),
}
"""Lowest, default and highest value of the shape constants, and their units."""
SHAPE_UNITS: dict[str, str] = {name: unit for name, (*_, unit) in _SHAPES.items()}
"""Units of the shape constants; speeds are joint side."""


def _law(name: str, parameters: str, description: str, **other: Term) -> FrictionLaw:
    """A law of these parameters; `other` terms replace the usual ones."""
    terms = {key: other.get(key, _TERMS[key][0]) for key in parameters.split()}
    used = {constant for term in terms.values() for constant in term.uses}
    shape = {
        key: (low, usual, high) for key, (low, usual, high, _) in _SHAPES.items() if key in used
    }
    return FrictionLaw(name, terms, shape, description, "reference_temperature" in shape)


LAWS: dict[str, FrictionLaw] = {
    law.name: law
    for law in (
        _law(
            "coulomb_viscous",
            "viscous coulomb",
            "Coulomb (smoothed by tanh) and viscous",
        ),
        _law(
            "sign",
            "viscous coulomb",
            "Coulomb (sign of the speed) and viscous",
            coulomb=Term(sign, ()),
        ),
        _law(
            "power_flow",
            "viscous coulomb_direct coulomb_reverse",
            "Coulomb that depends on the direction of power flow, and viscous",
        ),
        _law(
            "power",
            "coulomb power",
            "Coulomb and a power of the speed (exponent below 1), as in factory calibrations",
        ),
        _law(
            "stribeck",
            "viscous coulomb stribeck",
            "Coulomb, viscous and Stribeck (change at low speed)",
        ),
        _law(
            "load_dependent",
            "viscous coulomb load load_asymmetry",
            "Coulomb that increases with the load, and viscous",
        ),
        _law(
            "power_load",
            "coulomb power load load_asymmetry",
            "Coulomb that increases with the load, and a power of the speed (exponent below 1)",
        ),
        _law(
            "stribeck_load",
            "viscous coulomb stribeck load load_asymmetry",
            "Coulomb that increases with the load, viscous and Stribeck (change at low speed)",
        ),
        _law(
            "polynomial",
            "viscous coulomb square cubic",
            "Coulomb and an odd cubic polynomial of the speed",
        ),
        _law(
            "temperature_linear",
            "viscous coulomb viscous_temperature",
            "Coulomb, and viscous that changes linearly with temperature",
        ),
        _law(
            "power_temperature",
            "coulomb power power_temperature",
            "Coulomb, and a power of the speed that changes linearly with temperature",
        ),
        _law(
            "power_load_temperature",
            "coulomb power power_temperature load load_asymmetry",
            "Coulomb that increases with the load, and a power of the speed that changes linearly "
            "with temperature",
        ),
        _law(
            "temperature_exponential",
            "viscous coulomb",
            "Coulomb, and viscous scaled by the manufacturer's double exponential of temperature",
            viscous=Term(scaled_viscous, ("reference_temperature",)),
        ),
    )
}
"""Friction laws by name, those with few parameters first."""

# FrictionBank: the friction of all joints, evaluated on arrays.


class FrictionBank:
    """The friction of n joints; joints with the same law are evaluated together.

    Args:
        frictions: of the joints, in order.
        gear_ratio: motor turns per joint turn [n].
    """

    def __init__(self, frictions: Sequence[Friction], gear_ratio: Array) -> None:
        self.dof = len(frictions)
        self._ratio = gear_ratio
        self._groups: list[_Group] = []
        for law in dict.fromkeys(friction.law.name for friction in frictions):
            joints = [j for j, friction in enumerate(frictions) if friction.law.name == law]
            self._groups.append(_Group(joints, [frictions[j] for j in joints], gear_ratio))

    def torque(
        self,
        speed: Array,
        load: Array,
        temperature: Array | None = None,
        direction: Array | None = None,
    ) -> Array:
        """Motor-side friction torque [samples, n], N m; positive against positive speed.

        From speed, rad/s, and joint torque without friction, N m, joint side [samples, n];
        temperatures [n] or [samples, n], degC, where None stands for the middle of the fitted
        range; and directions, see `OperatingPoint` [samples, n].
        """
        out = np.empty_like(speed)
        for group in self._groups:
            point = group.point(speed, load, temperature, direction)
            out[:, group.columns] = group.torque(point, range(len(group.law.terms)))
        return out

    def torque_within(
        self, speed: Array, motor_torque: Array, temperature: Array | None = None
    ) -> Array:
        """Friction's part of a known motor torque, load and friction together [samples, n], N m.

        Both are motor side; speed and temperature as for `torque`.
        """
        out = np.empty_like(speed)
        whole = motor_torque * self._ratio  # its sign is the power flow's, which some laws need
        for group in self._groups:
            point = group.point(speed, whole, temperature, None)
            friction = group.torque(point, group.free)
            if group.load is not None:
                # The rest of the torque is load (1 + asymmetry) + share sign(speed) |load|.
                own, (share, asymmetry) = motor_torque[:, group.columns], group.load
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
        for group in self._groups:
            point = group.point(speed, load, temperature, direction)
            terms = group.law.regressor(point, group.shape)
            for k, joint in enumerate(group.joints):
                out[joint] = terms[:, k]
        return out


class _Group:
    """Joints with the same law: parameter values [joints of the group, parameters] and shape.

    `columns` is a slice, which copies nothing, for consecutive joints; `free` are the numbers of
    the parameters that do not depend on the load, and `load` the values of LOAD and LOAD_ASYMMETRY
    [joints of the group], None if the law has neither.
    """

    def __init__(self, joints: list[int], frictions: Sequence[Friction], gear_ratio: Array) -> None:
        first, last = joints[0], joints[-1]
        consecutive = joints == [*range(first, last + 1)]
        self.columns: slice | list[int] = slice(first, last + 1) if consecutive else joints
        self.joints, self.law, self._ratio = joints, frictions[0].law, gear_ratio[joints]
        self._values = np.array([friction.values for friction in frictions])
        self.shape = {
            name: np.array([friction.all_shape[name] for friction in frictions])
            for name in self.law.shape
        }
        models = [friction.temperature_model for friction in frictions]
        self._model = None if None in models else np.array(models).T
        ranges = [friction.temperature_range or (-np.inf, np.inf) for friction in frictions]
        self._low, self._high = np.array(ranges).T
        names = self.law.parameters
        self.free = [k for k, name in enumerate(names) if name not in (LOAD, LOAD_ASYMMETRY)]
        self.load: Array | None = None
        if LOAD in names:
            self.load = self._values[:, [names.index(LOAD), names.index(LOAD_ASYMMETRY)]].T

    def point(
        self, speed: Array, load: Array, temperature: Array | None, direction: Array | None
    ) -> OperatingPoint:
        """Operating points of the group's joints."""
        return OperatingPoint(
            speed[:, self.columns],
            load[:, self.columns],
            self._ratio,
            self._temperature(temperature) if self.law.uses_temperature else None,
            self._model,
            None if direction is None else direction[:, self.columns],
        )

    def torque(self, point: OperatingPoint, numbers: Iterable[int]) -> Array:
        """Sum of the terms with these numbers [samples, joints of the group], N m."""
        terms, out = tuple(self.law.terms.values()), np.zeros_like(point.speed)
        for k in numbers:
            out += terms[k](point, self.shape) * self._values[:, k]
        return out

    def _temperature(self, temperature: Array | None) -> Array | None:
        """Temperatures clipped to the fitted range; its middle, if any, replaces unknown ones."""
        bounded = np.isfinite(self._low).all() and np.isfinite(self._high).all()
        middle = (self._low + self._high) / 2 if bounded else None
        if temperature is None:
            return middle
        known = np.asarray(temperature, dtype=float)[..., self.joints]
        if middle is not None:
            known = np.where(np.isnan(known), middle, known)
        return np.asarray(np.clip(known, self._low, self._high))


# Presliding: the memory that Coulomb friction has at standstill.

STILL_SPEED = 0.01
"""Speed of the transition between standstill and motion, joint side [rad/s]."""
RETAINED = 0.7
"""Share of Dahl's friction that currents of real arms show at standstill: joints settle and creep
by less than encoders resolve. Of 0.3, 0.5, 0.7 and 1 this value gives the smallest error over pairs
of seven recordings of a UR10e."""


def presliding(q: Array, qd: Array, travel: Array, start: Array) -> tuple[Array, Array]:
    """Direction of Coulomb friction with the memory of a joint at rest.

    Dahl's model (1968): friction reverses within a small travel. A joint that stops retains much
    (RETAINED) of its last friction, so currents at standstill depend on the last motion. In motion
    (above STILL_SPEED) friction has the sign of the speed.

    Args:
        q: joint positions [samples, ...], rad, without gaps.
        qd: joint velocities, same shape, rad/s.
        travel: travel constant [...], rad; the direction is NaN where it is not positive.
        start: memory before the first sample [...].

    Returns:
        Direction between -1 and 1 [samples, ...], and the memory after the last sample [...].
    """
    known = travel > 0
    step = np.diff(q, axis=0, prepend=q[:1])
    keep = np.exp(-np.abs(step) / np.where(known, travel, 1.0))
    gain = (1.0 - keep) * np.sign(step)
    out = np.empty(np.broadcast_shapes(keep.shape, q.shape))
    state = np.asarray(start, dtype=float)
    for k in range(len(q)):
        state = keep[k] * state + gain[k]
        out[k] = state
    moving = -np.expm1(-np.square(qd / STILL_SPEED))
    out = RETAINED * out
    out = out + moving * (np.tanh(qd / SMOOTHING) - out)
    return np.where(known, out, np.nan), state


class FrictionDirection:
    """Direction of Coulomb friction with presliding memory, batch by batch.

    The travel constants of the joints [n], rad, are 0 for joints without presliding.
    """

    def __init__(self, travel: Array) -> None:
        self._travel = travel
        self._last_q: Array | None = None
        self._memory: Array | None = None

    def __call__(self, q: Array, qd: Array) -> Array | None:
        """Direction for samples [samples, n], rad, rad/s, that follow those of the last call.

        None without presliding.
        """
        if not self._travel.any():
            return None
        before = q[:1] if self._last_q is None else self._last_q[None]
        start = np.tanh(qd[0] / SMOOTHING) if self._memory is None else self._memory
        path, speed = np.concatenate([before, q]), np.concatenate([qd[:1], qd])
        direction, self._memory = presliding(path, speed, self._travel, start)
        self._last_q = q[-1]
        return direction[1:]


# The Coulomb-viscous law closest to a friction law of any form.


def coulomb_viscous_fit(friction: Friction, gear_ratio: float, fastest: float) -> dict[str, float]:
    """Coulomb and viscous friction closest to a law of any form, without load (least squares).

    The line is fitted from 5 to 100 % of the speed `fastest`, joint side [rad/s]; "coulomb" [N m]
    and "viscous" [N m s/rad] are motor side.
    """
    speed = np.linspace(0.05 * fastest, fastest, 40)[:, None]
    bank = FrictionBank([friction], np.array([gear_ratio]))
    torque = bank.torque(speed, np.zeros_like(speed))[:, 0]
    viscous, coulomb = np.polyfit(gear_ratio * speed[:, 0], torque, 1)
    return {"coulomb": float(coulomb), "viscous": float(viscous)}
