"""Bounds of the poses that a simulated controller computes with."""

from __future__ import annotations

import numpy as np

from ur_energy_model.simulation.control.program import ScriptError
from ur_energy_model.typing import Array

FARTHEST, MOST_TURN = 100.0, 1000.0
"""Largest coordinate [m] and component of a rotation vector [rad]; far beyond every arm."""


def checked_pose(pose: Array, what: str = "the pose") -> Array:
    """A pose [6] (position in m, rotation vector in rad) that can be computed with.

    Raises:
        ScriptError: a value is not finite or beyond `FARTHEST` or `MOST_TURN`.
    """
    pose = np.asarray(pose, dtype=float)
    limits = np.repeat([FARTHEST, MOST_TURN], 3)
    if pose.shape != (6,) or not (np.abs(pose) <= limits).all():
        raise ScriptError(
            f"{what} needs six numbers, up to {FARTHEST:g} m and {MOST_TURN:g} rad in size"
        )
    return pose
