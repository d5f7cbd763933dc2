"""Terms of friction laws: functions of speed, load and temperature.

A term is the motor-side friction torque per unit of its parameter at an operating point. Shape
constants are passed by name, as scalars or one per joint.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from ur_energy_model.typing import Array

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
