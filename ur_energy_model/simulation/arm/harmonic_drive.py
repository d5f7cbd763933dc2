"""Torsional stiffness of strain-wave gears (catalogue of Harmonic Drive).

Stiffness is piecewise constant: K1 up to the torque T1, K2 between T1 and T2, K3 above
(Battistini, Samori, Subini, "Modeling and simulation of an UR5 Robot Manipulator"). All joint side.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from ur_energy_model.typing import Array


@numba.njit(cache=True)
def spring_torque(twist: float, k1: float, k2: float, k3: float, t1: float, t2: float) -> float:
    """Torque [N m] of a gear at a twist [rad]."""
    size = abs(twist)
    first = t1 / k1
    second = first + (t2 - t1) / k2
    if size <= first:
        torque = k1 * size
    elif size <= second:
        torque = t1 + k2 * (size - first)
    else:
        torque = t2 + k3 * (size - second)
    return math.copysign(torque, twist)


def gear_twist(torque: Array, stiffness: Array, knees: Array) -> Array:
    """Twist [n], rad, under torques [n], N m; the inverse of `spring_torque`.

    Args:
        torque: joint side [n].
        stiffness: K1, K2, K3 [n, 3], N m/rad.
        knees: T1, T2 [n, 2], N m.
    """
    parts = _parts(np.abs(torque), np.diff(knees, axis=1, prepend=0.0))
    return np.asarray(np.sign(torque) * (parts / stiffness).sum(axis=1))


def gear_energy(twist: Array, stiffness: Array, knees: Array) -> Array:
    """Energy [n], J, of gears twisted by angles [n], rad; arguments as in `gear_twist`."""
    spans = np.diff(knees, axis=1, prepend=0.0) / stiffness[:, :2]
    parts = _parts(np.abs(twist), spans)
    start = np.concatenate([np.zeros((len(knees), 1)), knees], axis=1)
    return np.asarray((start * parts + 0.5 * stiffness * parts**2).sum(axis=1))


def _parts(size: Array, spans: Array) -> Array:
    """Parts of `size` [n] within the first two spans [n, 2] and beyond them: [n, 3]."""
    first = np.minimum(size, spans[:, 0])
    second = np.clip(size - spans[:, 0], 0.0, spans[:, 1])
    third = np.maximum(size - spans.sum(axis=1), 0.0)
    return np.stack([first, second, third], axis=1)
