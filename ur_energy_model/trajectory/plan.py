# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""A planned joint trajectory: positions at times, with derivatives where they are known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ur_energy_model.errors import InputError
from ur_energy_model.typing import Array

SAMPLE_PERIOD = 0.008  # sample period of the predicted powers [s]
LONGEST = 3600.0  # longest plan [s]
MOST_POINTS = 500_000  # largest number of points of a plan
SHORTEST_STEP = 1e-9  # shortest time between points [s], the resolution of ROS
LARGEST = 1e9
"""Largest position, velocity and acceleration of a point; keeps arithmetic in range."""
CHUNK = 2048  # number of samples that are computed together; bounds the memory


@dataclass(frozen=True)
class MotionSamples:
    """Consecutive samples of a plan.

    Attributes:
        time: times from the start of the plan [samples], s.
        q: positions [samples, n], rad.
        qd: velocities [samples, n], rad/s.
        qdd: accelerations [samples, n], rad/s^2.
    """

    time: Array
    q: Array
    qd: Array
    qdd: Array


@dataclass(frozen=True)
class Plan:
    """A planned joint trajectory: positions at times, derivatives where they are known.

    Raises:
        InputError: another number of points, a longer plan, values that are not finite,
            or times that do not increase.

    Attributes:
        time: increasing times [k], s; 2 <= k <= MOST_POINTS, from first to last at most
            LONGEST.
        q: joint positions [k, n], rad.
        qd: joint velocities [k, n], rad/s.
        qdd: joint accelerations [k, n], rad/s^2.
        source: origin, for error messages.
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
            problem = "contains values that are not finite or impossible"
            raise InputError(self.source, problem, "correct or remove those points")
        with np.errstate(over="ignore"):
            steps = np.diff(self.time)
            duration = float(self.time[-1] - self.time[0])
        if (steps < SHORTEST_STEP).any():
            place = int(np.flatnonzero(steps < SHORTEST_STEP)[0]) + 1
            problem = f"time does not increase at point {place}"
            raise InputError(self.source, problem, "sort the points by time")
        if not duration <= LONGEST:
            problem = f"lasts {duration:.6g} s, longer than {LONGEST:.0f} s"
            raise InputError(self.source, problem, "predict it in parts")

    @property
    def duration(self) -> float:
        """Time from the first to the last point [s]."""
        return float(self.time[-1] - self.time[0])

    def motion(self, period: float = SAMPLE_PERIOD) -> Iterator[MotionSamples]:
        """The motion at even times, CHUNK samples at a time.

        It is quintic between points with accelerations and cubic between points with
        velocities. Through points with positions alone it is a cubic spline that starts
        and ends at rest.

        Args:
            period: longest time between samples [s].
        """
        duration = self.duration
        knots = self.time - self.time[0]
        samples = max(2, int(np.ceil(duration / period)) + 1)
        qd = _spline_slopes(knots, self.q) if self.qd is None else self.qd
        for start in range(0, samples, CHUNK):
            numbers = np.arange(start, min(start + CHUNK, samples), dtype=np.float64)
            time = np.minimum(numbers * (duration / (samples - 1)), duration)
            yield self._between_points(time, knots, qd)

    def sampled(self, period: float = SAMPLE_PERIOD) -> tuple[Array, Array, Array, Array]:
        """The whole motion in arrays, see `motion`.

        Args:
            period: longest time between samples [s].

        Returns:
            Times [samples], s; positions, velocities and accelerations [samples, n], rad,
            rad/s and rad/s^2.
        """
        parts = list(self.motion(period))
        return (
            np.concatenate([part.time for part in parts]),
            np.concatenate([part.q for part in parts]),
            np.concatenate([part.qd for part in parts]),
            np.concatenate([part.qdd for part in parts]),
        )

    def part(self, first: int, last: int) -> Plan:
        """The plan from one of its points to another one, both included."""
        rows = slice(first, last + 1)
        return Plan(
            time=self.time[rows] - self.time[first],
            q=self.q[rows],
            qd=None if self.qd is None else self.qd[rows],
            qdd=None if self.qdd is None else self.qdd[rows],
            source=self.source,
        )

    def _between_points(self, time: Array, knots: Array, qd: Array) -> MotionSamples:
        """The motion at some times, by Hermite polynomials between neighbouring points.

        The polynomials are in s, the time since the point before, and u = s / h with the
        time h between the points. With positions q0, velocities v0 and accelerations a0 of
        the point before, q = q0 + v0 s + c2 u^2 + c3 u^3 is the cubic, and
        q = q0 + v0 s + a0 s^2 / 2 + c3 u^3 + c4 u^4 + c5 u^5 the quintic. The coefficients
        follow from what is left at the next point: of its position, velocity times h and
        acceleration times h^2.

        Args:
            time: times since the first point [samples], s.
            knots: times of the points since the first one [k], s.
            qd: velocities at the points [k, n], rad/s.
        """
        i = np.clip(np.searchsorted(knots, time, side="right") - 1, 0, len(knots) - 2)
        h = (knots[i + 1] - knots[i])[:, None]
        s = (time - knots[i])[:, None]
        u = s / h
        q0 = self.q[i]
        v0 = qd[i]
        a0 = None if self.qdd is None else self.qdd[i]
        by_velocity = (qd[i + 1] - v0) * h
        by_position = self.q[i + 1] - q0 - v0 * h
        if a0 is None or self.qdd is None:
            c2 = 3 * by_position - by_velocity
            c3 = by_velocity - 2 * by_position
            return MotionSamples(
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
        return MotionSamples(
            time,
            q0 + v0 * s + 0.5 * a0 * s**2 + (c3 + (c4 + c5 * u) * u) * u**3,
            v0 + a0 * s + (3 * c3 + (4 * c4 + 5 * c5 * u) * u) * u**2 / h,
            a0 + (6 * c3 + (12 * c4 + 20 * c5 * u) * u) * u / h**2,
        )


def check_points(source: object, points: int) -> None:
    """Check the number of points of a plan.

    Raises:
        InputError: it has fewer than two points, or more than MOST_POINTS.
    """
    if points < 2:
        problem = "has one point only" if points else "is empty: it has no points"
        raise InputError(str(source), problem, "give a whole trajectory")
    if points > MOST_POINTS:
        problem = f"has more than {MOST_POINTS} points"
        raise InputError(str(source), problem, "predict it in parts")


def _spline_slopes(knots: Array, q: Array) -> Array:
    """Velocities at points of a cubic spline that starts and ends at rest [k, n], rad/s.

    The second derivative is continuous at the inner points (de Boor, A Practical Guide to
    Splines, chapter IV): a tridiagonal system.
    """
    from scipy.linalg import solve_banded  # slow to import

    h = np.diff(knots)
    slopes = np.zeros_like(q)
    if len(h) > 1:
        chords = np.diff(q, axis=0) / h[:, None]
        bands = np.zeros((3, len(h) - 1))
        bands[0, 1:] = h[:-2]
        bands[1] = 2 * (h[:-1] + h[1:])
        bands[2, :-1] = h[2:]
        right = 3 * (h[1:, None] * chords[:-1] + h[:-1, None] * chords[1:])
        slopes[1:-1] = solve_banded((1, 1), bands, right, overwrite_b=True)
    return slopes
