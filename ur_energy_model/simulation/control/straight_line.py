"""Straight-line moves of the tool centre point, as joint trajectories."""

from __future__ import annotations

import math

import numpy as np
import pinocchio as pin
from scipy.interpolate import CubicSpline

from ur_energy_model.simulation.arm.tool import pose_vector
from ur_energy_model.simulation.control.kinematics import ArmKinematics, matrix_of
from ur_energy_model.trajectory.profiles import Trapezoid
from ur_energy_model.typing import Array

SPACING, TURN = 0.01, 0.1
"""Longest way and angle between two points of the path that are solved for [m, rad]."""
FEWEST_POINTS, MOST_POINTS = 6, 60


class StraightLine:
    """A joint trajectory along a line: the path as a spline, the way along it as a trapezoid.

    Args:
        path: joint positions at equal shares of the way [points, n], rad.
        way: how long the line is, in the unit of `speed` times s.
        speed: highest speed along the line.
        acceleration: of both ramps.
        max_speed: joint speeds [n] that the line is slowed down to keep, rad/s.
    """

    def __init__(
        self, path: Array, way: float, speed: float, acceleration: float, max_speed: Array
    ) -> None:
        share = np.linspace(0.0, 1.0, len(path))
        self._path = CubicSpline(share, path)
        slope = np.abs(self._path(np.linspace(0.0, 1.0, 4 * len(path)), 1)).max(axis=0) / way
        fastest = float((max_speed / np.maximum(slope, 1e-9)).min())
        self._way = way
        self._profile = Trapezoid(way, min(speed, fastest), acceleration)

    @property
    def duration(self) -> float:
        """Of the move [s]."""
        return self._profile.duration

    def sample(self, time: Array) -> tuple[Array, Array, Array]:
        """Joint position, velocity and acceleration [samples, n] at times from the start."""
        way, speed, acceleration = (
            values[:, None] / self._way for values in self._profile.sample(np.asarray(time))
        )
        q, slope, bend = (self._path(way[:, 0], order) for order in range(3))
        return q, slope * speed, bend * speed**2 + slope * acceleration


class LinePlanner:
    """Solves for a straight line point by point, so that no controller cycle takes long.

    Args:
        kinematics: of the arm.
        q: joint positions at the start [n], rad.
        pose: where the tool centre point goes [6].
        tool: tool centre point on the flange [6].
        speed: of the tool centre point [m/s]; of the turn [rad/s] where it only turns.
        acceleration: m/s^2, or rad/s^2.
        max_speed: of the joints [n], rad/s.
    """

    def __init__(
        self,
        kinematics: ArmKinematics,
        q: Array,
        pose: Array,
        tool: Array,
        speed: float,
        acceleration: float,
        max_speed: Array,
    ) -> None:
        self._kinematics, self._tool, self._max_speed = kinematics, tool, max_speed
        self._speed, self._acceleration = speed, acceleration
        self._start = matrix_of(kinematics.forward(q, tool))
        goal = matrix_of(pose)
        self._shift = goal[:3, 3] - self._start[:3, 3]
        self._turn = pin.log3(self._start[:3, :3].T @ goal[:3, :3])
        length, angle = float(np.linalg.norm(self._shift)), float(np.linalg.norm(self._turn))
        self._way = length if length > 1e-6 else angle
        points = math.ceil(max(length / SPACING, angle / TURN))
        self._points = min(max(points, FEWEST_POINTS), MOST_POINTS)
        self._path = [np.array(q, dtype=float)]

    def advance(self) -> StraightLine | None:
        """Solve for the next point; the trajectory once all are known.

        Raises:
            ValueError: a point of the line that the arm cannot reach.
        """
        share = len(self._path) / self._points
        transform = self._start.copy()
        transform[:3, 3] += share * self._shift
        transform[:3, :3] = self._start[:3, :3] @ pin.exp3(share * self._turn)
        q = self._kinematics.inverse(pose_vector(transform), self._path[-1], self._tool)
        if q is None:
            raise ValueError("a straight move leads to where the arm cannot reach")
        self._path.append(q)
        if len(self._path) <= self._points:
            return None
        return StraightLine(
            np.array(self._path),
            max(self._way, 1e-6),
            self._speed,
            self._acceleration,
            self._max_speed,
        )
