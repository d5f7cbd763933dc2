"""Collision-free move from the current position to the start of a trajectory."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ur_energy_model.errors import MotionRefusedError
from ur_energy_model.experiment.limits import SafetyLimits
from ur_energy_model.model.geometry import ArmGeometry
from ur_energy_model.typing import Array

_STEP = 0.02
"""Largest joint step between checked positions [rad]."""
_TIGHT = 0.01
"""Minimum distance on the path, unless the arm starts or ends closer [m]."""
_UPRIGHT = {1: -np.pi / 2, 2: 0.0, 3: -np.pi / 2}
"""Shoulder lift, elbow and wrist 1 of a UR arm that points straight up."""


def plan_approach(current: Array, start: Array, limits: SafetyLimits) -> list[Array]:
    """Joint positions to move through in straight lines; the last one is the start.

    Args:
        current: current position [n], rad.
        start: start of the trajectory [n], rad.
        limits: shape and surroundings of the arm.

    Returns:
        The start, preceded by up to two upright positions.

    Raises:
        MotionRefusedError: every path comes too close to an obstacle.
    """
    geometry = _surroundings(current, limits.geometry)
    upright_current, upright_start = (
        np.array([_UPRIGHT.get(joint, value) for joint, value in enumerate(q)])
        for q in (current, start)
    )
    candidates = ([start], [upright_start, start], [upright_current, upright_start, start])
    for path in candidates:
        if path_distance([current, *path], geometry) > _required_distance(current, start, geometry):
            return path
    raise MotionRefusedError(
        "the path to the start of the trajectory comes too close to the arm itself, the table or a "
        "wall; move the arm by hand to an open position, such as straight up, and try again"
    )


def path_distance(corners: list[Array], geometry: ArmGeometry) -> float:
    """Smallest distance on straight joint lines through corners [m]."""
    parts = []
    for begin, end in pairwise(corners):
        count = max(2, int(np.ceil(np.abs(end - begin).max() / _STEP)) + 1)
        parts.append(begin + np.linspace(0, 1, count)[:, None] * (end - begin))
    return float(geometry.distances(np.concatenate(parts)).min())


def _surroundings(current: Array, geometry: ArmGeometry) -> ArmGeometry:
    """The geometry without walls that the arm already intersects, which cannot be real."""
    walls = tuple(
        wall
        for wall in geometry.walls
        if ArmGeometry(geometry.robot, (wall,), geometry.tool).wall_distances(current[None]).min()
        > 0
    )
    return ArmGeometry(geometry.robot, walls, geometry.tool)


def _required_distance(current: Array, start: Array, geometry: ArmGeometry) -> float:
    """Required distance: `_TIGHT`, or slightly less than at the ends if they are closer."""
    ends = float(geometry.distances(np.stack([current, start])).min())
    return min(_TIGHT, ends - 1e-3)
