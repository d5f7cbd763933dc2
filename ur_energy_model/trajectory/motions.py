# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Motions as functions of time: rest, point to point, sampled and sinusoidal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ur_energy_model.typing import Array


@dataclass(frozen=True)
class Trapezoid:
    """Trapezoidal speed, triangular where the distance is too short for full speed.

    The profile of the controller's own moves.

    Attributes:
        distance: length of the line, not negative, in any unit u.
        speed: highest speed, u/s.
        acceleration: acceleration of both ramps, u/s^2.
    """

    distance: float
    speed: float
    acceleration: float

    @property
    def peak(self) -> float:
        """Highest speed reached, u/s."""
        return float(min(self.speed, np.sqrt(self.distance * self.acceleration)))

    @property
    def ramp(self) -> float:
        """Duration of one ramp [s]."""
        return self.peak / self.acceleration

    @property
    def duration(self) -> float:
        """From rest to rest [s]."""
        if self.distance == 0.0:
            return 0.0
        return self.distance / self.peak + self.ramp

    def sample(self, t: Array) -> tuple[Array, Array, Array]:
        """As `Profile.sample`; at rest before the start and after the end."""
        end = self.duration
        ramp = self.ramp
        peak = self.peak
        a = self.acceleration
        t = np.clip(t, 0.0, end)
        left = end - t
        ramps = [t < ramp, t > end - ramp]  # upwards, downwards
        ramp_ways = [0.5 * a * t**2, self.distance - 0.5 * a * left**2]
        inside = (t > 0.0) & (t < end)
        way = np.select(ramps, ramp_ways, peak * (t - 0.5 * ramp))
        speed = np.select(ramps, [a * t, a * left], peak)
        rate = np.where(inside, np.select(ramps, [a, -a], 0.0), 0.0)
        return way, speed, rate


class Profile(Protocol):
    """Position along a line over time, from 0 to `distance`, from rest to rest.

    Lengths are in any unit u.
    """

    @property
    def distance(self) -> float:
        """Length of the line (any unit u)."""
        ...

    @property
    def duration(self) -> float:
        """From rest to rest [s]."""
        ...

    def sample(self, t: Array, /) -> tuple[Array, Array, Array]:
        """Position, speed and acceleration [samples], u, u/s and u/s^2.

        Args:
            t: times from the start [samples], s.
        """
        ...


@dataclass(frozen=True)
class Cycloid:
    """Cycloidal profile with continuous acceleration (Battistini et al.).

    Attributes:
        distance: length of the line, in any unit u.
        duration: duration from rest to rest [s].
    """

    distance: float
    duration: float

    def sample(self, t: Array) -> tuple[Array, Array, Array]:
        """As `Profile.sample`; at rest outside."""
        share = np.clip(t / self.duration, 0.0, 1.0)
        angle = 2 * np.pi * share
        way = self.distance * (share - np.sin(angle) / (2 * np.pi))
        speed = self.distance / self.duration * (1.0 - np.cos(angle))
        rate = self.distance / self.duration**2 * 2 * np.pi * np.sin(angle)
        return way, speed, rate


class Motion(Protocol):
    """A joint trajectory that begins at rest."""

    @property
    def duration(self) -> float:
        """Duration of one run [s]; infinite for a motion without end."""
        ...

    def sample(self, time: Array, /) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration [samples, n], rad, rad/s, rad/s^2.

        Args:
            time: times from the start [samples], s.
        """
        ...


def repeats(motion: Motion) -> bool:
    """Whether a motion ends at rest at its start, so that it can be repeated."""
    if not np.isfinite(motion.duration) or motion.duration <= 0.0:
        return False
    q, qd, _ = motion.sample(np.array([0.0, motion.duration]))
    return bool(np.allclose(q[0], q[1], atol=1e-6) and np.allclose(qd, 0.0, atol=1e-6))


@dataclass(frozen=True)
class Hold:
    """Rest at joint positions [n], rad.

    Attributes:
        q: position [n], rad.
    """

    q: Array

    @property
    def duration(self) -> float:
        """Infinite [s]."""
        return float("inf")

    def sample(self, time: Array) -> tuple[Array, Array, Array]:
        """As `Motion.sample`."""
        q = np.broadcast_to(self.q, (len(time), len(self.q)))
        return q, np.zeros_like(q), np.zeros_like(q)


@dataclass(frozen=True)
class MoveSegment:
    """A straight joint-space move, then a pause.

    Attributes:
        start: joint positions at the begin [n], rad.
        end: joint positions at the end [n], rad.
        profile: path parameter over time, from 0 at the begin to 1 at the end.
        rest: standstill after the move [s].
    """

    start: Array
    end: Array
    profile: Profile
    rest: float = 0.0

    @property
    def duration(self) -> float:
        """Move and pause [s]."""
        return self.profile.duration + self.rest

    def sample(self, time: Array) -> tuple[Array, Array, Array]:
        """As `Motion.sample`."""
        path, speed, rate = self.profile.sample(time)
        step = self.end - self.start
        return (
            self.start + path[:, None] * step,
            speed[:, None] * step,
            rate[:, None] * step,
        )


class Chain:
    """Moves one after the other, at rest before, between and after them.

    Args:
        moves: moves from rest to rest, at least one; each starts where the one before it
            ended.
        starts: start times of the moves, increasing [s]; None to start each move when the
            one before it ends.
        duration: duration of the chain [s]; None for the end of the last move.
    """

    def __init__(
        self,
        moves: Sequence[Motion],
        starts: Sequence[float] | None = None,
        duration: float | None = None,
    ) -> None:
        self.moves = tuple(moves)
        ends = np.cumsum([0.0, *(move.duration for move in self.moves)])
        self.starts = ends[:-1] if starts is None else np.asarray(starts)
        self.duration = float(ends[-1]) if duration is None else duration

    def sample(self, time: Array) -> tuple[Array, Array, Array]:
        """As `Motion.sample`."""
        which = np.maximum(np.searchsorted(self.starts, time, side="right") - 1, 0)
        first_q, _, _ = self.moves[0].sample(np.zeros(1))
        motion = np.empty((3, len(time), first_q.shape[1]))
        for index in np.unique(which):
            here = which == index
            motion[:, here] = self.moves[index].sample(time[here] - self.starts[index])
        q, qd, qdd = motion
        return q, qd, qdd


class Sampled:
    """A motion interpolated between samples, such as the targets of a recording.

    Args:
        time: increasing times [m], s; the first is the start.
        q: joint positions [m, n], rad.
        qd: joint velocities [m, n], rad/s.
        qdd: joint accelerations [m, n], rad/s^2.
    """

    def __init__(self, time: Array, q: Array, qd: Array, qdd: Array) -> None:
        from scipy.interpolate import CubicHermiteSpline, make_interp_spline  # slow

        self._time = time - time[0]
        self._path = CubicHermiteSpline(self._time, q, qd)
        self._speed = self._path.derivative()
        self._rate = make_interp_spline(self._time, qdd, k=1)

    @property
    def duration(self) -> float:
        """From the first to the last sample [s]."""
        return float(self._time[-1])

    def sample(self, time: Array) -> tuple[Array, Array, Array]:
        """As `Motion.sample`; at rest outside."""
        inside = np.clip(time, 0.0, self.duration)
        moving = (inside == time)[:, None]
        return (
            np.asarray(self._path(inside)),
            np.asarray(moving * self._speed(inside)),
            np.asarray(moving * self._rate(inside)),
        )


@dataclass(frozen=True)
class Sinusoids:
    """A separate sine for every joint, faded in and out (EcBot's test motion).

    q = centre + fade(t) amplitude sin(2 pi frequency t), with fade from 0 to 1 and back
    to 0 by smooth steps of `fade_time` at both ends.

    Attributes:
        centre: position around which each joint moves [n], rad.
        amplitude: amplitude of each joint [n], rad.
        frequency: frequency of each joint [n], Hz.
        duration: duration of the motion [s].
        fade_time: duration of fading in, and of fading out [s].
    """

    centre: Array
    amplitude: Array
    frequency: Array
    duration: float
    fade_time: float = 2.0

    def sample(self, time: Array) -> tuple[Array, Array, Array]:
        """As `Motion.sample`."""
        time = np.clip(time, 0.0, self.duration)
        late = time > 0.5 * self.duration
        to_end = np.where(late, self.duration - time, time)  # time to the nearer end [s]
        # The smooth step is the quintic polynomial in u with zero slope and curvature at
        # both ends.
        u = np.clip(to_end / self.fade_time, 0.0, 1.0)[:, None]
        slope = 30.0 * u**2 * (1.0 - u) ** 2 / self.fade_time
        fade = u**3 * (10.0 - 15.0 * u + 6.0 * u**2)
        fade_d = np.where(late[:, None], -slope, slope)
        fade_dd = 60.0 * u * (1.0 - u) * (1.0 - 2.0 * u) / self.fade_time**2
        pace = 2 * np.pi * self.frequency
        angle = time[:, None] * pace
        sin = np.sin(angle)
        cos = np.cos(angle)
        q = fade * sin
        qd = fade_d * sin + fade * pace * cos
        qdd = fade_dd * sin + 2 * fade_d * pace * cos - fade * pace**2 * sin
        return (
            self.centre + self.amplitude * q,
            self.amplitude * qd,
            self.amplitude * qdd,
        )


def move(
    start: Array,
    end: Array,
    speed: Array | float,
    acceleration: Array | float,
    rest: float = 0.0,
) -> MoveSegment:
    """Straight joint-space move with trapezoidal speed, all joints starting and ending together.

    Args:
        start: joint positions at the begin [n], rad.
        end: joint positions at the end [n], rad.
        speed: highest speed of each joint [n], or of all joints, rad/s.
        acceleration: highest acceleration of each joint [n], or of all joints, rad/s^2.
        rest: pause after the move [s].
    """
    step = np.abs(end - start)
    moving = step > 1e-12
    if not moving.any():
        return MoveSegment(start, end, Trapezoid(0.0, 1.0, 1.0), rest)
    speeds = np.broadcast_to(speed, step.shape)[moving] / step[moving]
    accelerations = np.broadcast_to(acceleration, step.shape)[moving] / step[moving]
    profile = Trapezoid(1.0, float(speeds.min()), float(accelerations.min()))
    return MoveSegment(start, end, profile, rest)
