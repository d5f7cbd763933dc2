"""How a recorded move can be programmed: moveJ, moveL or neither."""

from __future__ import annotations

import numpy as np

from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.optimization.cycle import Kind, Move
from ur_energy_model.typing import Array

JOINT_LINE = 2e-3
"""Largest distance of a joint from the straight line of a moveJ [rad]."""
TOOL_LINE = 1e-3
"""Largest distance of the flange from the straight line of a moveL [m]."""
_POINTS = 60


def path_kind(dynamics: ArmDynamics, q: Array) -> Kind:
    """Whether positions [k, n], rad, lie on a straight line of the joints, or of the tool."""
    if _off_line(q) < JOINT_LINE:
        return "moveJ"
    few = q[np.unique(np.linspace(0, len(q) - 1, _POINTS).astype(int))]
    return "moveL" if _off_line(dynamics.flange_pose(few)[:, :3, 3]) < TOOL_LINE else "other"


def trapezoid_of(dynamics: ArmDynamics, kind: Kind, move: Move) -> tuple[float, float]:
    """Speed and acceleration of a recorded move: of the leading joint, or of the tool.

    The speed is the highest; the acceleration that of the trapezoid of the same length and
    duration with that speed.
    """
    if kind == "other":
        return float("nan"), float("nan")
    if kind == "moveJ":
        distance = float(np.abs(move.q[-1] - move.q[0]).max())
        speed = float(np.abs(move.qd).max())
    else:
        ends = dynamics.flange_pose(move.q[[0, -1]])[:, :3, 3]
        distance = float(np.linalg.norm(ends[1] - ends[0]))
        speed = float(np.linalg.norm(dynamics.flange_speed(move.q, move.qd), axis=1).max())
    ramps = move.duration - distance / max(speed, 1e-9)
    return speed, speed / max(ramps, 1e-3)


def _off_line(points: Array) -> float:
    """Largest distance of points [k, m] from the line between the first and the last."""
    way = points[-1] - points[0]
    length = float(way @ way)
    if length == 0.0:
        return float("inf")
    from_start = points - points[0]
    share = np.clip(from_start @ way / length, 0.0, 1.0)
    return float(np.abs(from_start - share[:, None] * way).max())
