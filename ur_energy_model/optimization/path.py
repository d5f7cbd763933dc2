"""Geometric path of a move: joint positions over the share of its length."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.interpolate import CubicHermiteSpline, CubicSpline

from ur_energy_model.typing import Array

DEVIATION = 2e-5
"""Deviation of the path from the recorded targets that is aimed at [rad]."""
_FEWEST, _MOST = 8, 2048
_FINE = 0.004
"""Period to which slow recordings are interpolated before the path is drawn through them [s]."""


class JointPath:
    """A smooth path q(s), s from 0 to 1, twice differentiable.

    Args:
        s: share of the length at the knots [k], increasing from 0 to 1.
        q: joint positions at the knots [k, n], rad.

    Attributes:
        deviation: largest distance from the positions it was made from [rad].
        duration: of the motion it was made from [s].
    """

    def __init__(self, s: Array, q: Array) -> None:
        self._spline = CubicSpline(s, q)
        self.deviation = self.duration = 0.0
        self._recorded: tuple[Array, Array] = (s, s)

    @classmethod
    def through(cls, time: Array, q: Array, qd: Array) -> JointPath:
        """The path of a recorded move, with as few knots as keep the deviation small.

        Args:
            time: of the samples [k], s.
            q: positions [k, n], rad.
            qd: velocities [k, n], rad/s.
        """
        if np.median(np.diff(time)) > _FINE:
            fine = np.linspace(time[0], time[-1], int((time[-1] - time[0]) / _FINE) + 2)
            q, time = np.asarray(CubicHermiteSpline(time, q, qd)(fine)), fine
        share = _shares(q)
        kept = np.concatenate([[True], np.diff(share) > 1e-12])
        share, q, time = share[kept], q[kept], time[kept]
        knots = _FEWEST
        while True:
            grid = np.linspace(0.0, 1.0, knots + 1)
            points = np.stack([np.interp(grid, share, column) for column in q.T], axis=1)
            points[0], points[-1] = q[0], q[-1]
            path = cls(grid, points)
            path.deviation = float(np.abs(path.position(share) - q).max())
            path.duration = float(time[-1] - time[0])
            path._recorded = ((time - time[0]) / path.duration, share)
            if path.deviation <= DEVIATION or knots >= min(_MOST, len(q) // 2):
                return path
            knots *= 2

    def grid(self, intervals: int) -> Array:
        """Ends of intervals along the path [intervals + 1], denser where a motion is slow.

        Half way between even times of the recorded motion, and a motion that starts and ends
        smoothly.
        """
        even = np.linspace(0.0, 1.0, intervals + 1)
        recorded = np.interp(even, *self._recorded)
        grid = 0.5 * (recorded + 0.5 * (1.0 - np.cos(np.pi * even)))
        grid[0], grid[-1] = 0.0, 1.0
        return np.asarray(grid)

    def recorded_squared_speed(self, s: Array) -> Array:
        """Squared path speed of the recorded motion at places on the path [k], 1/s^2."""
        time, share = self._recorded
        speed = np.gradient(share, time) / max(self.duration, 1e-9)
        return np.asarray(np.interp(s, share, np.maximum(speed, 0.0)) ** 2)

    @cached_property
    def length(self) -> float:
        """Largest travel of a joint along the path [rad]."""
        slope = np.abs(self.slope(np.linspace(0.0, 1.0, 201)))
        return float(slope.mean(axis=0).max())

    def position(self, s: Array) -> Array:
        """q(s) [k, n], rad."""
        return np.asarray(self._spline(s))

    def slope(self, s: Array) -> Array:
        """dq/ds [k, n], rad."""
        return np.asarray(self._spline(s, 1))

    def curvature(self, s: Array) -> Array:
        """d2q/ds2 [k, n], rad."""
        return np.asarray(self._spline(s, 2))


def _shares(q: Array) -> Array:
    """Share of the length at samples of a path [k], 0 to 1."""
    way = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(q, axis=0), axis=1))])
    return np.asarray(way / way[-1])
