"""A planned joint trajectory: positions at times, with derivatives where they are known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ur_energy_model.errors import InputError
from ur_energy_model.typing import Array

SAMPLE_PERIOD = 0.008
"""Sample period of the predicted powers [s]."""
LONGEST = 3600.0
"""Longest plan [s]."""
MOST_POINTS = 500_000
"""Largest number of points of a plan."""
SHORTEST_STEP = 1e-9
"""Shortest time between points [s], the resolution of ROS."""
LARGEST = 1e9
"""Largest position, velocity and acceleration of a point; keeps arithmetic in range."""
CHUNK = 2048
"""Number of samples that are computed together; bounds the memory."""


@dataclass(frozen=True)
class Motion:
    """Consecutive samples of a plan.

    Attributes:
        time: from the start of the plan [m], s.
        q: joint positions [m, n], rad.
        qd: joint velocities [m, n], rad/s.
        qdd: joint accelerations [m, n], rad/s^2.
    """

    time: Array
    q: Array
    qd: Array
    qdd: Array


@dataclass(frozen=True)
class Plan:
    """A planned joint trajectory: positions at times, derivatives where they are known.

    Attributes:
        time: increasing [k], 2 <= k <= MOST_POINTS, s; over LONGEST at most.
        q: joint positions [k, n], rad.
        qd: joint velocities [k, n], rad/s, or None.
        qdd: joint accelerations [k, n], rad/s^2, or None.
        source: origin, for error messages.

    Raises:
        InputError: another number of points, a longer plan, values that are not finite, or times
            that do not increase.
    """

    time: Array
    q: Array
    qd: Array | None = None
    qdd: Array | None = None
    source: str = "trajectory"

    def __post_init__(self) -> None:
        check_points(self.source, len(self.time))
        parts = [part for part in (self.q, self.qd, self.qdd) if part is not None]
        possible = all((np.abs(part) <= LARGEST).all() for part in parts)
        if not (possible and np.isfinite(self.time).all()):
            raise InputError(
                self.source,
                "contains values that are not finite or impossible",
                "correct or remove those points",
            )
        with np.errstate(over="ignore"):
            steps, duration = np.diff(self.time), float(self.time[-1] - self.time[0])
        if (steps < SHORTEST_STEP).any():
            place = int(np.flatnonzero(steps < SHORTEST_STEP)[0]) + 1
            raise InputError(
                self.source, f"time does not increase at point {place}", "sort the points by time"
            )
        if not duration <= LONGEST:
            raise InputError(
                self.source,
                f"lasts {duration:.6g} s, longer than {LONGEST:.0f} s",
                "predict it in parts",
            )

    @property
    def duration(self) -> float:
        """From the first to the last point [s]."""
        return float(self.time[-1] - self.time[0])

    def motion(self, period: float = SAMPLE_PERIOD) -> Iterator[Motion]:
        """The motion at even times, CHUNK samples at a time.

        Quintic between points with accelerations, cubic between points with velocities; a cubic
        spline that starts and ends at rest through points with positions alone.

        Args:
            period: longest time between samples [s].
        """
        duration, knots = self.duration, self.time - self.time[0]
        samples = max(2, int(np.ceil(duration / period)) + 1)
        qd = _spline_slopes(knots, self.q) if self.qd is None else self.qd
        for start in range(0, samples, CHUNK):
            numbers = np.arange(start, min(start + CHUNK, samples), dtype=np.float64)
            time = np.minimum(numbers * (duration / (samples - 1)), duration)
            yield self._between_points(time, knots, qd)

    def _between_points(self, time: Array, knots: Array, qd: Array) -> Motion:
        """The motion at times [m], s, as Hermite polynomials of the points beside them.

        Args:
            time: from the start [m], s.
            knots: times of the points from the start [k], s.
            qd: velocities at the points [k, n], rad/s.
        """
        i = np.clip(np.searchsorted(knots, time, side="right") - 1, 0, len(knots) - 2)
        h, s = (knots[i + 1] - knots[i])[:, None], (time - knots[i])[:, None]
        u = s / h
        q0, v0, a0 = self.q[i], qd[i], None if self.qdd is None else self.qdd[i]
        by_velocity = (qd[i + 1] - v0) * h
        by_position = self.q[i + 1] - q0 - v0 * h
        if a0 is None or self.qdd is None:
            c2, c3 = 3 * by_position - by_velocity, by_velocity - 2 * by_position
            return Motion(
                time,
                q0 + v0 * s + (c2 + c3 * u) * u**2,
                v0 + (2 * c2 + 3 * c3 * u) * u / h,
                (2 * c2 + 6 * c3 * u) / h**2,
            )
        by_position = by_position - 0.5 * a0 * h**2
        by_velocity = by_velocity - a0 * h**2
        by_acceleration = (self.qdd[i + 1] - a0) * h**2
        c3 = 10 * by_position - 4 * by_velocity + 0.5 * by_acceleration
        c4 = -15 * by_position + 7 * by_velocity - by_acceleration
        c5 = 6 * by_position - 3 * by_velocity + 0.5 * by_acceleration
        return Motion(
            time,
            q0 + v0 * s + 0.5 * a0 * s**2 + (c3 + (c4 + c5 * u) * u) * u**3,
            v0 + a0 * s + (3 * c3 + (4 * c4 + 5 * c5 * u) * u) * u**2 / h,
            a0 + (6 * c3 + (12 * c4 + 20 * c5 * u) * u) * u / h**2,
        )


def check_points(source: object, points: int) -> None:
    """Refuse a number of points that no plan has.

    Raises:
        InputError: fewer than two, or more than MOST_POINTS.
    """
    if points < 2:
        raise InputError(str(source), "has fewer than two points", "give a whole trajectory")
    if points > MOST_POINTS:
        raise InputError(str(source), f"has more than {MOST_POINTS} points", "predict it in parts")


def _spline_slopes(knots: Array, q: Array) -> Array:
    """Velocities at points of a cubic spline that starts and ends at rest [k, n], rad/s.

    The second derivative is continuous at the inner points (de Boor, A Practical Guide to Splines,
    chapter IV): a tridiagonal system.
    """
    from scipy.linalg import solve_banded  # slow to import

    h = np.diff(knots)
    slopes = np.zeros_like(q)
    if len(h) > 1:
        chords = np.diff(q, axis=0) / h[:, None]
        bands = np.zeros((3, len(h) - 1))
        bands[0, 1:], bands[1], bands[2, :-1] = h[:-2], 2 * (h[:-1] + h[1:]), h[2:]
        right = 3 * (h[1:, None] * chords[:-1] + h[:-1, None] * chords[1:])
        slopes[1:-1] = solve_banded((1, 1), bands, right, overwrite_b=True)
    return slopes
