# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The setup of an arm: its mounting and its payload."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ur_energy_model.typing import Array


@dataclass(frozen=True)
class Payload:
    """A rigid body fixed to the flange.

    Attributes:
        mass: mass [kg].
        center_of_mass: centre of mass in the flange frame [3], m.
        inertia: inertia tensor about the centre of mass, flange axes [3, 3], kg m^2.
    """

    mass: float = 0.0
    center_of_mass: Array = field(default_factory=lambda: np.zeros(3))
    inertia: Array = field(default_factory=lambda: np.zeros((3, 3)))


@dataclass(frozen=True)
class Setup:
    """Mounting and payload.

    Attributes:
        gravity: acceleration of gravity in the base frame [3], m/s^2; upright is (0, 0,
            -g).
        payload: body that is fixed to the flange.
    """

    gravity: Array = field(default_factory=lambda: np.array([0.0, 0.0, -9.82]))
    payload: Payload = field(default_factory=Payload)


def gravity_of_mounting(tilt: float, rotation: float, magnitude: float = 9.82) -> Array:
    """Gravity [3], m/s^2, in the base frame of a tilted base, as UR's mounting screen defines it.

    It is Rz(-rotation) Rx(-tilt) (0, 0, -magnitude).

    Args:
        tilt: tilt angle of the base [rad]; pi/2 on a wall, pi on the ceiling.
        rotation: rotation of the base about its z axis [rad].
        magnitude: magnitude of gravity [m/s^2].
    """
    tilted = np.array([0.0, -np.sin(tilt), -np.cos(tilt)])
    cos = np.cos(-rotation)
    sin = np.sin(-rotation)
    turn = np.array([[cos, -sin, 0.0], [sin, cos, 0.0], [0.0, 0.0, 1.0]])
    return np.asarray(magnitude * turn @ tilted)


# The ten inertial parameters of a rigid body as a vector, in pinocchio's order. Mass,
# first moment of mass m c (3), and the six entries (xx, xy, yy, xz, yz, zz) of the
# inertia tensor about the origin of the frame: torque is linear in these (Khalil and
# Dombre, "Modeling, Identification and Control of Robots", 2002, ch. 9).

MASS = 0  # place of the mass [kg] in the vector
FIRST_MOMENT = slice(1, 4)  # places of the first moment of mass [kg m]
STATIC = slice(0, 4)  # places of mass and first moment, which give the torque of gravity
TENSOR = slice(4, 10)  # places of the tensor's entries [kg m^2]
COUNT = 10  # number of parameters of a body


def tensor_of(entries: Array) -> Array:
    """Symmetric tensor [3, 3] from its entries [6] (xx, xy, yy, xz, yz, zz)."""
    xx, xy, yy, xz, yz, zz = entries
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


_ROWS = np.array([0, 0, 1, 0, 1, 2])
_COLUMNS = np.array([0, 1, 1, 2, 2, 2])
"""Rows and columns of the entries (xx, xy, yy, xz, yz, zz) in the tensor."""


def entries_of(tensor: Array) -> Array:
    """Entries [6] (xx, xy, yy, xz, yz, zz) of a symmetric tensor [3, 3]."""
    return np.asarray(tensor[_ROWS, _COLUMNS])


def point_tensor(mass: float, center: Array) -> Array:
    """Tensor [3, 3] about the origin of a point mass [kg] at `center` [3], m (Steiner), kg m^2."""
    return np.asarray(mass * ((center @ center) * np.eye(3) - np.outer(center, center)))


def inertial_parameters(mass: float, center: Array, inertia: Array) -> Array:
    """The vector [10] of a body: mass [kg], centre of mass [3], m, tensor entries about it [6]."""
    tensor = entries_of(point_tensor(mass, center)) + inertia
    return np.concatenate([[mass], mass * center, tensor])


def inertial_slopes(mass: float, center: Array) -> Array:
    """Change of `inertial_parameters` with mass, centre and tensor's entries [10, 10]."""
    # The columns have the places of the parameters, with the centre in place of the moment.
    out = np.eye(COUNT)
    out[FIRST_MOMENT, MASS] = center
    out[TENSOR, MASS] = entries_of(point_tensor(1.0, center))
    for axis, unit in enumerate(np.eye(3)):
        of_axis = FIRST_MOMENT.start + axis
        turn = np.outer(unit, center)
        slope = 2.0 * center[axis] * np.eye(3) - turn - turn.T
        out[FIRST_MOMENT, of_axis] = mass * unit
        out[TENSOR, of_axis] = entries_of(mass * slope)
    return out
