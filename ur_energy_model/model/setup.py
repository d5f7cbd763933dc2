"""The setup of an arm: its mounting and its payload."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ur_energy_model.typing import Array


@dataclass(frozen=True)
class Payload:
    """A rigid body fixed to the flange.

    Attributes:
        mass: kg.
        center_of_mass: in the flange frame [3], m.
        inertia: about its centre of mass, flange axes [3, 3], kg m^2.
    """

    mass: float = 0.0
    center_of_mass: Array = field(default_factory=lambda: np.zeros(3))
    inertia: Array = field(default_factory=lambda: np.zeros((3, 3)))


@dataclass(frozen=True)
class Setup:
    """Mounting and payload.

    Attributes:
        gravity: acceleration of gravity in the base frame [3], m/s^2; upright is (0, 0, -g).
        payload: fixed to the flange.
    """

    gravity: Array = field(default_factory=lambda: np.array([0.0, 0.0, -9.82]))
    payload: Payload = field(default_factory=Payload)


def gravity_of_mounting(tilt: float, rotation: float, magnitude: float = 9.82) -> Array:
    """Gravity vector in the base frame of a tilted base, as UR's mounting screen defines it.

    Args:
        tilt: angle of the base against the floor [rad]; pi/2 is a wall, pi the ceiling.
        rotation: rotation of the base about its own z axis [rad].
        magnitude: acceleration of gravity [m/s^2].

    Returns:
        Gravity [3], m/s^2: Rz(-rotation) Rx(-tilt) (0, 0, -magnitude).
    """
    tilted = np.array([0.0, -np.sin(tilt), -np.cos(tilt)])
    cos, sin = np.cos(-rotation), np.sin(-rotation)
    turn = np.array([[cos, -sin, 0.0], [sin, cos, 0.0], [0.0, 0.0, 1.0]])
    return np.asarray(magnitude * turn @ tilted)
