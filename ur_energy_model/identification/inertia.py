"""Inertia of bodies and drives: what is physically possible, and motor against reducer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.model.robots import RobotDescription

Array = NDArray[np.float64]


@dataclass(frozen=True)
class DriveInertia:
    """Reflected inertia of the joints, taken apart as Clochiatti et al. 2024 report it.

    Attributes:
        reflected: joint side [n], kg m^2.
        motor_side: motor and reducer, motor side [n], kg m^2.
        reducer: catalogue value, motor side [n], kg m^2; NaN where unknown.
        rotor: what is left for the motor [n], kg m^2; NaN where the reducer is unknown.
    """

    reflected: Array
    motor_side: Array
    reducer: Array
    rotor: Array


def split_inertia(reflected: Array, robot: RobotDescription) -> DriveInertia:
    """Motor and reducer shares of reflected inertias [n], kg m^2, joint side."""
    motor_side = reflected / robot.gear_ratio**2
    rotor = motor_side - robot.reducer_inertia
    return DriveInertia(reflected, motor_side, robot.reducer_inertia, rotor)


def possible_inertia(tensor: Array) -> Array:
    """Nearest inertia tensor [3, 3] about a centre of mass that a mass distribution can have.

    A tensor is possible where the second moments of mass, trace/2 - tensor, are not negative
    (the triangle inequality of the principal moments); negative ones are set to zero.
    """
    moments = 0.5 * np.trace(tensor) * np.eye(3) - tensor
    values, vectors = np.linalg.eigh(moments)
    kept = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return np.asarray(np.trace(kept) * np.eye(3) - kept)
