"""The way from where an arm stands to where a trajectory starts, without touching anything."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ur_energy_model.errors import MotionRefusedError
from ur_energy_model.experiment.limits import SafetyLimits
from ur_energy_model.model.geometry import ArmGeometry
from ur_energy_model.typing import Array

_STEP = 0.02
"""Largest joint step between looked-at positions [rad]."""
_TIGHT = 0.01
"""Distance that is kept on the way, unless the arm stands closer already [m]."""
_UPRIGHT = {1: -np.pi / 2, 2: 0.0, 3: -np.pi / 2}
"""Shoulder lift, elbow and wrist 1 of a UR arm that points straight up."""


def plan_approach(here: Array, start: Array, limits: SafetyLimits) -> list[Array]:
    """Joint positions to move through in straight lines, the last one is the start.

    Args:
        here: where the arm stands [n], rad.
        start: where it shall go [n], rad.
        limits: shape and surroundings of the arm.

    Returns:
        The start alone, or one or two upright positions before it.

    Raises:
        MotionRefusedError: every way comes too close to something.
    """
    geometry = _surroundings(here, limits.geometry)
    upright_here, upright_start = (
        np.array([_UPRIGHT.get(joint, value) for joint, value in enumerate(q)])
        for q in (here, start)
    )
    ways = ([start], [upright_start, start], [upright_here, upright_start, start])
    for way in ways:
        if path_distance([here, *way], geometry) > _needed(here, start, geometry):
            return way
    raise MotionRefusedError(
        "the way to the start of the trajectory comes too close to the arm itself, the table or a "
        "wall; move the arm by hand to an open position, such as straight up, and try again"
    )


def path_distance(corners: list[Array], geometry: ArmGeometry) -> float:
    """Smallest distance on straight joint lines through corners [m]."""
    parts = []
    for begin, end in pairwise(corners):
        count = max(2, int(np.ceil(np.abs(end - begin).max() / _STEP)) + 1)
        parts.append(begin + np.linspace(0, 1, count)[:, None] * (end - begin))
    return float(geometry.distances(np.concatenate(parts)).min())


def _surroundings(here: Array, geometry: ArmGeometry) -> ArmGeometry:
    """The geometry without walls that the arm sticks in already: they cannot be there."""
    walls = tuple(
        wall
        for wall in geometry.walls
        if ArmGeometry(geometry.robot, (wall,), geometry.tool).wall_distances(here[None]).min() > 0
    )
    return ArmGeometry(geometry.robot, walls, geometry.tool)


def _needed(here: Array, start: Array, geometry: ArmGeometry) -> float:
    """Distance to keep: a little less than at the closer one of both ends, where that is less."""
    ends = float(geometry.distances(np.stack([here, start])).min())
    return min(_TIGHT, ends - 1e-3)
