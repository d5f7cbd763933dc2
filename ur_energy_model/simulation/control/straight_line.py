"""Straight-line moves of the tool centre point as joint trajectories."""

from __future__ import annotations

import math

import numpy as np
import pinocchio as pin
from scipy.interpolate import CubicSpline

from ur_energy_model.simulation.arm.tool import pose_vector
from ur_energy_model.simulation.control.kinematics import ArmKinematics, matrix_of
from ur_energy_model.simulation.control.program import ScriptError
from ur_energy_model.trajectory.profiles import Trapezoid
from ur_energy_model.typing import Array

SPACING, TURN = 0.01, 0.1
"""Largest distance and angle between two solved points of the path [m, rad]."""
FEWEST_POINTS, MOST_POINTS = 6, 60


class StraightLine:
    """A joint trajectory along a line: spline path, trapezoidal speed profile.

    Args:
        path: joint positions at equal steps along the line [points, n], rad.
        length: of the line, m (rad if the tool only turns).
        speed: largest speed along the line, length unit per s.
        acceleration: of both ramps, length unit per s^2.
        max_speed: joint speed limits [n], rad/s; the move is slowed down to keep them.
    """

    def __init__(
        self, path: Array, length: float, speed: float, acceleration: float, max_speed: Array
    ) -> None:
        self._points, self._max_speed = path, max_speed
        self._path = CubicSpline(np.linspace(0.0, 1.0, len(path)), path)
        slope = np.abs(self._path(np.linspace(0.0, 1.0, 4 * len(path)), 1)).max(axis=0) / length
        fastest = float((max_speed / np.maximum(slope, 1e-9)).min())
        self._length = length
        self._profile = Trapezoid(length, min(speed, fastest), acceleration)

    def with_profile(self, speed: float, acceleration: float) -> StraightLine:
        """The same line with another speed and acceleration."""
        return StraightLine(self._points, self._length, speed, acceleration, self._max_speed)

    @property
    def duration(self) -> float:
        """Duration of the move [s]."""
        return self._profile.duration

    def sample(self, time: Array) -> tuple[Array, Array, Array]:
        """As `Motion.sample`."""
        position, speed, acceleration = (
            values[:, None] / self._length for values in self._profile.sample(np.asarray(time))
        )
        q, slope, curvature = (self._path(position[:, 0], order) for order in range(3))
        return q, slope * speed, curvature * speed**2 + slope * acceleration


class LinePlanner:
    """Solves a straight line point by point, one per call, to keep controller cycles short.

    Args:
        kinematics: of the arm.
        q: joint positions at the start [n], rad.
        pose: goal of the tool centre point [6].
        tool: tool centre point in the flange frame [6].
        speed: of the tool centre point [m/s], or rad/s if it only turns.
        acceleration: m/s^2, or rad/s^2.
        max_speed: joint speed limits [n], rad/s.
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
        self._length = length if length > 1e-6 else angle
        points = math.ceil(max(length / SPACING, angle / TURN))
        self._points = min(max(points, FEWEST_POINTS), MOST_POINTS)
        self._path = [np.array(q, dtype=float)]

    def advance(self) -> StraightLine | None:
        """Solve the next point; returns the trajectory after the last one.

        Raises:
            ScriptError: the arm cannot reach a point of the line.
        """
        share = len(self._path) / self._points
        transform = self._start.copy()
        transform[:3, 3] += share * self._shift
        transform[:3, :3] = self._start[:3, :3] @ pin.exp3(share * self._turn)
        q = self._kinematics.inverse(pose_vector(transform), self._path[-1], self._tool)
        if q is None:
            raise ScriptError("the arm cannot reach a point of the straight line")
        self._path.append(q)
        if len(self._path) <= self._points:
            return None
        return StraightLine(
            np.array(self._path),
            max(self._length, 1e-6),
            self._speed,
            self._acceleration,
            self._max_speed,
        )
