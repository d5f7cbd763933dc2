# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Measured energy of planned motions that the arm has carried out.

A motion belongs to a plan if it starts from rest at the plan's first position, between
EARLIEST and LATEST after the plan has come, and is at the plan's positions at the plan's
times: at every moment within tolerance, with one shift of time of at most TIME_TOLERANCE
for the whole motion. Times are the predicted ones, with the speed scaling at which
the plan has come: a motion at another speed does not belong to the plan.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ur_energy_model.energy.meter import MeterReading
from ur_energy_model.energy.powers import ArmState
from ur_energy_model.energy.snapshot import Snapshot
from ur_energy_model.trajectory.plan import Plan
from ur_energy_model.typing import Array

EARLIEST = -1.0
"""Earliest start of a motion after its plan has come [s]: the plan's message takes time."""
LATEST = 60.0  # latest start of a motion after its plan has come [s]
TIME_TOLERANCE = 0.1
"""Largest shift of time, and longest step between snapshots at both ends of a motion [s]."""
LONGEST_STEP = 0.5
"""Longest step between snapshots within a motion [s]; a busy machine leaves some out."""
LEAST_TOLERANCE = 0.01
LARGEST_TOLERANCE = 0.05
"""Limits of the tolerance of a joint's positions [rad]."""
TOLERANCE = 0.05  # tolerance of a joint's positions within these limits, per range
AWAY = 0.005  # distance of a joint from its first position with a motion begun [rad]
AT_REST = 0.3  # standstill that ends a motion [s]
MOST_PLANS = 10  # plans that are expected at the same time; the oldest gives way
PERIOD = 0.02  # period of the positions that are compared [s]

_WINDOW = 4.0 * TIME_TOLERANCE
"""Time around both ends of a motion for which energies are kept [s]."""
_SHIFTS = 5  # number of Newton's steps for the shift of time
_WAY_POINTS = 200  # number of points at which two paths are compared


class Point(NamedTuple):
    """A moment, and the energy up to it.

    Attributes:
        time: controller time [s].
        reading: energy counted up to this time.
    """

    time: float
    reading: MeterReading


Verdict = tuple[object, MeterReading | str]
"""A plan's key, and the measured energy of its motion or why there is none."""


class PlanFollower:
    """Finds the motions of plans among the motions of the arm, and measures their energy."""

    def __init__(self) -> None:
        self._plans: list[_Expected] = []
        self._recent: deque[Point] = deque()  # moments of the last _WINDOW
        self._rest: Point | None = None  # begin of the present standstill
        self._last: Snapshot | None = None

    @property
    def now(self) -> float | None:
        """Controller time of the last snapshot [s]; None before the first."""
        return None if self._last is None else self._last.time

    def expect(self, key: object, plan: Plan, since: float | None = None) -> None:
        """Follow the motion of a plan.

        Args:
            key: key that verdicts on it carry.
            plan: plan with the times of its prediction, speed scaling included.
            since: controller time at which the plan arrived [s]; None for the time of the
                next snapshot.
        """
        self._plans = [*self._plans, _Expected(key, plan, since)][-MOST_PLANS:]

    def update(self, snapshot: Snapshot) -> list[Verdict]:
        """Follow the arm.

        Returns:
            Plans whose motion was measured, or is not measured any more.
        """
        now = snapshot.time
        q = snapshot.q
        last = self._last
        if last is not None and self._clock_changed(last, snapshot):
            self._restart(last.time, now)
            last = None
        self._last = snapshot
        here = Point(now, snapshot.lifetime)
        self._recent.append(here)
        while self._recent[0].time < now - _WINDOW and len(self._recent) > 2:
            self._recent.popleft()
        moving = snapshot.state == ArmState.MOVING
        rest = self._rest
        if not moving and rest is None:
            rest = here
        self._rest = None if moving else rest
        departure: tuple[Point, Point] | None = None
        if moving and rest is not None and last is not None:
            departure = (rest, Point(last.time, last.lifetime))
        verdicts = list[Verdict]()
        for plan in list(self._plans):
            plan.since = now if plan.since is None else plan.since
            measured: MeterReading | str | None = None
            if q is not None:
                if departure is not None and last is not None and last.q is not None:
                    plan.begin(departure, last.q)
                measured = plan.follow(plan.since, now, q, self._recent)
                if measured is None and rest is not None and now - rest.time >= AT_REST:
                    measured = plan.at_rest(rest.time, q)
            latest = plan.since + LATEST + (plan.begins or 0.0) + TIME_TOLERANCE
            late = now > latest and all(motion.refused for motion in plan.motions)
            if measured is None and late:
                measured = f"no motion within {LATEST:.0f} s was that of the plan"
            if isinstance(measured, MeterReading) or late:
                self._plans.remove(plan)
            if isinstance(measured, MeterReading) or (measured and not plan.reported):
                plan.reported = True
                verdicts.append((plan.key, measured))
        return verdicts

    @staticmethod
    def _clock_changed(last: Snapshot, snapshot: Snapshot) -> bool:
        """Whether a snapshot is of another clock or of other counters than the last one."""
        return snapshot.time < last.time or snapshot.channels is not last.channels

    def _restart(self, last: float, now: float) -> None:
        """Go on with another clock, from a time of the old one [s] that is now [s].

        Motions under way cannot be measured.
        """
        self._recent.clear()
        self._rest = None
        for plan in self._plans:
            plan.motions.clear()
            if plan.since is not None:
                plan.since = now - (last - plan.since)


class _Motion:
    """A motion from rest that may belong to one plan, from its last position at rest on.

    Attributes:
        rest: begin and end of the standstill, and the first moments of motion.
        time: times of the positions [k], s.
        q: positions, a list of k arrays [n], rad.
        way: times and positions without pauses.
        start: time at which the plan has begun [s]; None before the arm has left its
            position.
        refused: whether it is not the motion of the plan.
        off: whether it was at other positions than the plan at some time.
    """

    def __init__(self, rest: tuple[Point, Point], q: Array) -> None:
        _, departed = rest
        time = departed.time
        self.rest = [*rest]
        self.time = [time]
        self.q = [q]
        self.way = [(time, q)]
        self.start: float | None = None
        self.refused = False
        self.off = False

    def append(self, now: float, q: Array) -> None:
        """Add a position [n], rad, at a time [s]."""
        self.time.append(now)
        self.q.append(q)
        # Noise at standstill is no way.
        if np.abs(q - self.way[-1][1]).max() > 0.2 * AWAY:
            self.way.append((now, q))


class _Expected:
    """A plan whose motion is expected.

    Attributes:
        key: see `PlanFollower.expect`.
        since: see `PlanFollower.expect`.
        time: times of planned positions [k], s.
        q: planned positions [k, n], rad.
        duration: duration of the plan [s].
        tolerance: tolerance of the positions of each joint [n], rad.
        margin: tolerance that includes a shift of time of at most TIME_TOLERANCE [n], rad.
        begins: time at which the planned motion leaves its first position [s]; None if it
            never does.
        motions: motions that may be the plan's.
        reported: whether a verdict was returned.
    """

    def __init__(self, key: object, plan: Plan, since: float | None) -> None:
        self.key = key
        self.since = since
        self.time, self.q, qd, _ = plan.sampled(PERIOD)
        self.duration = float(self.time[-1])
        ranges = np.ptp(self.q, axis=0)
        self.tolerance = np.clip(TOLERANCE * ranges, LEAST_TOLERANCE, LARGEST_TOLERANCE)
        self.margin = self.tolerance + TIME_TOLERANCE * np.abs(qd).max(axis=0)
        self.begins = _departure(self.time, self.q, self.q[0])
        self.motions: list[_Motion] = []
        self.reported = False

    def at(self, time: Array) -> Array:
        """Planned positions [k, n], rad, at times [k] from the start, s."""
        return np.column_stack([np.interp(time, self.time, q) for q in self.q.T])

    def begin(self, rest: tuple[Point, Point], q: Array) -> None:
        """Take a departure of the arm from its rest at positions q [n], rad.

        `rest` is the begin and the end of its standstill.
        """
        if self.begins is not None and (np.abs(q - self.q[0]) <= self.tolerance).all():
            self.motions.append(_Motion(rest, q))

    def follow(
        self, since: float, now: float, q: Array, recent: Sequence[Point]
    ) -> MeterReading | str | None:
        """Take the present position; returns the energy of the motion once it has ended."""
        for motion in list(self.motions):
            if motion.time[-1] - motion.time[0] < _WINDOW:
                motion.rest.append(recent[-1])
            if now - motion.time[0] > 4.0 * self.duration + LATEST:
                self.motions.remove(motion)
                continue
            if now - motion.time[-1] >= 0.9 * PERIOD:
                motion.append(now, q)
            if motion.start is None:
                self._find_start(motion, since)
                continue
            planned = self.at(np.array([now - motion.start]))
            motion.off |= bool((np.abs(q - planned) > self.margin).any())
            ended = now >= motion.start + self.duration + TIME_TOLERANCE
            if ended and not motion.refused:
                found = self._energy(motion, motion.start, recent)
                if found is not None:
                    self.motions.remove(motion)
                    return found
                motion.refused = True
        return None

    def _find_start(self, motion: _Motion, since: float) -> None:
        """Find when the plan of a motion has begun, once the arm has left its first position.

        It must have begun after the plan has come at the time `since` [s], and after the
        arm was at rest.
        """
        time = np.array(motion.time[-2:])
        left = _departure(time, np.array(motion.q[-2:]), motion.q[0])
        if left is None or self.begins is None:
            return
        start = left - self.begins
        rested = motion.rest[0].time - TIME_TOLERANCE <= start
        motion.start = start
        motion.refused = not (rested and since + EARLIEST <= start <= since + LATEST)

    def at_rest(self, since: float, q: Array) -> str | None:
        """What a standstill since a time [s] at positions q [n], rad, shows of the plan.

        Returns:
            Statement that the path was followed at another speed; None if it was not.
        """
        if not (np.abs(q - self.q[-1]) <= self.tolerance).all():
            return None
        for motion in self.motions:
            if motion.start is None or not (motion.refused or motion.off):
                continue  # the plan has not ended yet
            path = np.array([each for time, each in motion.way if time <= since])
            apart = np.abs(_by_way(self.q) - _by_way(path)).max(axis=0)
            if (apart <= 2.0 * self.tolerance).all():
                self.motions.remove(motion)
                took = since - motion.time[0]
                return f"its path was followed in {took:.1f} s instead of {self.duration:.1f} s"
        return None

    def _energy(
        self, motion: _Motion, start: float, recent: Sequence[Point]
    ) -> MeterReading | str | None:
        """The energy of a motion that has ended; None if it was not the plan's."""
        known = np.array(motion.time)
        q = np.array(motion.q)
        rows = (known >= start) & (known <= start + self.duration)
        if np.count_nonzero(rows) < 2:
            return None
        time = known[rows] - start
        q = q[rows]
        shift = 0.0
        for _ in range(_SHIFTS):
            error = q - self.at(time - shift)
            ahead = self.at(time - shift + 0.5 * PERIOD)
            behind = self.at(time - shift - 0.5 * PERIOD)
            speed = (ahead - behind) / PERIOD
            shift -= float((error * speed).sum() / max((speed**2).sum(), 1e-12))
        error = q - self.at(time - shift)
        if abs(shift) > TIME_TOLERANCE or not (np.abs(error) <= self.tolerance).all():
            return None
        first = start + shift
        last = start + shift + self.duration
        steps = np.diff(known)
        ends = np.clip(np.searchsorted(known, [first, last]) - 1, 0, len(steps) - 1)
        if steps[ends].max() > TIME_TOLERANCE or steps.max() > LONGEST_STEP:
            return f"its motion has a gap of {steps.max():.2g} s between two snapshots"
        # A wait of the plan before its motion is part of the standstill before it.
        return _at(recent, last) - _at(motion.rest, first)


def _departure(time: Array, q: Array, first: Array) -> float | None:
    """Time at which a joint has left its first position [s]; None if none has.

    Args:
        time: times of the positions [k], s.
        q: positions [k, n], rad.
        first: first position [n], rad.
    """
    way = np.abs(q - first).max(axis=1)
    away = int(np.argmax(way > AWAY))
    if not way[away] > AWAY or not away:
        return None
    before = away - 1
    share = (AWAY - way[before]) / (way[away] - way[before])
    return float(time[before] + share * (time[away] - time[before]))


def _by_way(q: Array) -> Array:
    """Positions [k, n], rad, at even shares of their way [_WAY_POINTS, n]."""
    way = np.append(0.0, np.linalg.norm(np.diff(q, axis=0), axis=1).cumsum())
    even = np.linspace(0.0, way[-1], _WAY_POINTS)
    return np.column_stack([np.interp(even, way, each) for each in q.T])


def _at(points: Sequence[Point], time: float) -> MeterReading:
    """The energy at a time [s], interpolated between points, at least two."""
    place = bisect_left([point.time for point in points], time)
    after = min(max(place, 1), len(points) - 1)
    begin = points[after - 1]
    end = points[after]
    share = 0.0
    if end.time > begin.time:
        share = min(max((time - begin.time) / (end.time - begin.time), 0.0), 1.0)
    return begin.reading + (end.reading - begin.reading) * share
