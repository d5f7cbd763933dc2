"""What friction laws are made of: functions of speed, load and temperature.

Each term is the motor-side friction torque per unit of its parameter at an operating point. Its
functions take shape constants by name, so that one term serves many joints at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from ur_energy_model.typing import Array

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


def sign(point: OperatingPoint, shape: Shape) -> Array:
    """Direction of motion."""
    return _remembered(point, np.asarray(np.sign(point.speed)))


def coulomb(point: OperatingPoint, shape: Shape) -> Array:
    """Direction of motion, smoothed around standstill."""
    return _remembered(point, np.asarray(np.tanh(point.speed / shape["smoothing"])))


def _remembered(point: OperatingPoint, otherwise: Array) -> Array:
    if point.direction is None:
        return otherwise
    return np.where(np.isnan(point.direction), otherwise, point.direction)


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
    """`coulomb` that fades out as the joint gets faster."""
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


def warm_viscous(point: OperatingPoint, shape: Shape) -> Array:
    """`viscous` times the temperature above the reference [rad/s K]."""
    return np.asarray(viscous(point, shape) * _warmth(point, shape))


def warm_power(point: OperatingPoint, shape: Shape) -> Array:
    """`power` times the temperature above the reference [K]."""
    return np.asarray(power(point, shape) * _warmth(point, shape))


def scaled_viscous(point: OperatingPoint, shape: Shape) -> Array:
    """`viscous` times the factor of the double exponential [rad/s]."""
    return np.asarray(viscous(point, shape) * _factor(point, shape))
