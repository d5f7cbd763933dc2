# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Measured energy of planned motions that the arm has carried out.

A motion is that of a plan if it starts from rest at the plan's first position, within
EXPECTED of the plan, and is at the plan's positions at the plan's times: at every moment
within TOLERANCE, with one shift of time of at most TIME_TOLERANCE for all of it. Times
are those of the prediction, with the speed scaling when the plan came: a motion at
another speed is not that of the plan.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence

import numpy as np

from ur_energy_model.energy.live import Snapshot
from ur_energy_model.energy.meter import MeterReading
from ur_energy_model.energy.powers import ArmState
from ur_energy_model.trajectory.plan import Plan
from ur_energy_model.typing import Array

EXPECTED = (-1.0, 60.0)
"""Start of the motion after the plan was sent: earliest, since messages take time, and latest."""
TIME_TOLERANCE = 0.1
"""Largest shift of time, and longest step between snapshots at both ends of a motion [s]."""
LONGEST_STEP = 0.5
"""Longest step between snapshots within a motion [s]; a busy machine leaves some out."""
TOLERANCE = (0.01, 0.05, 0.05)
"""Of the positions of a joint: least [rad], share of its way, largest [rad]."""
# distance of a joint from its first position at which a motion has begun [rad]
AWAY = 0.005
AT_REST = 0.3  # standstill that ends a motion [s]
MOST_PLANS = 10  # plans that are expected at the same time; the oldest gives way
PERIOD = 0.02  # period of the positions that are compared [s]

Point = tuple[float, MeterReading]
Verdict = tuple[object, MeterReading | str]
"""A plan's key, and the measured energy of its motion or why there is none."""


class PlanFollower:
    """Finds the motions of plans among those of the arm, and measures their energy."""

    def __init__(self) -> None:
        self._plans: list[_Expected] = []
        self._recent: deque[Point] = deque()
        self._rest: Point | None = None
        self._last: Snapshot | None = None

    @property
    def now(self) -> float | None:
        """Controller time of the last snapshot [s]; None before the first."""
        return None if self._last is None else self._last.time

    def expect(self, key: object, plan: Plan, since: float | None = None) -> None:
        """Follow the motion of a plan.

        Args:
            key: that verdicts on it carry.
            plan: with the times of its prediction, speed scaling included.
            since: controller time when it came [s]; None for that of the next snapshot.
        """
        self._plans = [*self._plans, _Expected(key, plan, since)][-MOST_PLANS:]

    def update(self, snapshot: Snapshot) -> list[Verdict]:
        """Follow the arm; returns what has become of plans."""
        now = snapshot.time
        q = snapshot.q
        last = self._last
        verdicts = list[Verdict]()
        if last is not None and (
            now < last.time or snapshot.channels is not last.channels
        ):
            # Another clock, or other counters: motions under way cannot be measured.
            self._recent.clear()
            self._rest = None
            for plan in self._plans:
                plan.motions.clear()
                plan.since = (
                    None if plan.since is None else now - (last.time - plan.since)
                )
            last = None
        self._last = snapshot
        self._recent.append((now, snapshot.lifetime))
        while self._recent[0][0] < now - 4.0 * TIME_TOLERANCE and len(self._recent) > 2:
            self._recent.popleft()
        moving = snapshot.state == ArmState.MOVING
        rest = self._rest
        if not moving and rest is None:
            rest = (now, snapshot.lifetime)
        self._rest = None if moving else rest
        for plan in list(self._plans):
            plan.since = now if plan.since is None else plan.since
            measured: MeterReading | str | None = None
            if q is not None:
                if (
                    moving
                    and rest is not None
                    and last is not None
                    and last.q is not None
                ):
                    plan.begin([rest, (last.time, last.lifetime)], last.time, last.q)
                measured = plan.follow(plan.since, now, q, self._recent)
                if measured is None and rest is not None and now - rest[0] >= AT_REST:
                    measured = plan.at_rest(rest[0], q)
            latest = plan.since + EXPECTED[1] + (plan.begins or 0.0) + TIME_TOLERANCE
            late = now > latest and all(motion.refused for motion in plan.motions)
            if measured is None and late:
                measured = f"no motion within {EXPECTED[1]:.0f} s was that of the plan"
            if isinstance(measured, MeterReading) or late:
                self._plans.remove(plan)
            if isinstance(measured, MeterReading) or (measured and not plan.reported):
                plan.reported = True
                verdicts.append((plan.key, measured))
        return verdicts


class _Motion:
    """A motion from rest that may be that of one plan, from its last position at rest on."""

    def __init__(self, rest: list[Point], time: float, q: Array) -> None:
        # beginning and end of the standstill, and the first moments of motion
        self.rest = rest
        self.time = [time]
        self.q = [q]
        self.way = [(time, q)]  # without pauses
        # when the plan began, once the arm has left its place
        self.start: float | None = None
        # as the plan's motion; it is not where the plan is
        self.refused = self.off = False

    def append(self, now: float, q: Array) -> None:
        self.time.append(now)
        self.q.append(q)
        # noise at standstill is no way
        if np.abs(q - self.way[-1][1]).max() > 0.2 * AWAY:
            self.way.append((now, q))


class _Expected:
    """A plan with the times of its prediction, whose motion is expected since a time [s]."""

    def __init__(self, key: object, plan: Plan, since: float | None) -> None:
        self.key = key
        self.since = since
        self.time, self.q, qd, _ = plan.sampled(PERIOD)
        self.duration = float(self.time[-1])
        least, share, largest = TOLERANCE
        self.tolerance = np.clip(share * np.ptp(self.q, axis=0), least, largest)
        self.margin = self.tolerance + TIME_TOLERANCE * np.abs(qd).max(axis=0)
        self.begins = _departure(self.time, self.q, self.q[0])
        self.motions: list[_Motion] = []
        self.reported = False

    def at(self, time: Array) -> Array:
        """Planned positions at times [k] from the start, s: [k, n], rad."""
        return np.column_stack([np.interp(time, self.time, q) for q in self.q.T])

    def begin(self, rest: list[Point], time: float, q: Array) -> None:
        """The arm leaves its rest at q [n], rad."""
        if self.begins is not None and (np.abs(q - self.q[0]) <= self.tolerance).all():
            self.motions.append(_Motion(rest, time, q))

    def follow(
        self, since: float, now: float, q: Array, recent: Sequence[Point]
    ) -> MeterReading | str | None:
        """Take the present position; returns the energy of the motion once it has ended."""
        for motion in list(self.motions):
            if motion.time[-1] - motion.time[0] < 4.0 * TIME_TOLERANCE:
                motion.rest.append(recent[-1])
            if now - motion.time[0] > 4.0 * self.duration + EXPECTED[1]:
                self.motions.remove(motion)
                continue
            if now - motion.time[-1] >= 0.9 * PERIOD:
                motion.append(now, q)
            if motion.start is None:
                left = _departure(
                    np.array(motion.time[-2:]), np.array(motion.q[-2:]), motion.q[0]
                )
                if left is not None and self.begins is not None:
                    # After the plan came, and after the arm was at rest.
                    motion.start = left - self.begins
                    earliest, latest = (since + each for each in EXPECTED)
                    rested = motion.rest[0][0] - TIME_TOLERANCE <= motion.start
                    motion.refused = not (rested and earliest <= motion.start <= latest)
                continue
            motion.off |= bool(
                (np.abs(q - self.at(np.array([now - motion.start]))) > self.margin).any()
            )
            if (
                not motion.refused
                and now >= motion.start + self.duration + TIME_TOLERANCE
            ):
                found = self._energy(motion, motion.start, recent)
                if found is not None:
                    self.motions.remove(motion)
                    return found
                motion.refused = True
        return None

    def at_rest(self, since: float, q: Array) -> str | None:
        """What the standstill at q [n], rad, shows: the plan's path at another speed, or None."""
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
        for _ in range(5):  # Gauss-Newton for the shift of time
            error = q - self.at(time - shift)
            ahead, behind = (
                self.at(time - shift + part * PERIOD) for part in (0.5, -0.5)
            )
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
    """When a joint of q [k, n], rad, has left the position `first`; None if none has."""
    way = np.abs(q - first).max(axis=1)
    away = int(np.argmax(way > AWAY))
    if not way[away] > AWAY or not away:
        return None
    share = (AWAY - way[away - 1]) / (way[away] - way[away - 1])
    return float(time[away - 1] + share * (time[away] - time[away - 1]))


def _by_way(q: Array) -> Array:
    """Positions [k, n], rad, at even shares of their way [200, n]."""
    way = np.append(0.0, np.linalg.norm(np.diff(q, axis=0), axis=1).cumsum())
    even = np.linspace(0.0, way[-1], 200)
    return np.column_stack([np.interp(even, way, each) for each in q.T])


def _at(points: Sequence[Point], time: float) -> MeterReading:
    """The energy at a time, between those known."""
    after = min(
        max(bisect_left(points, time, key=lambda each: each[0]), 1), len(points) - 1
    )
    t0, first = points[after - 1]
    t1, second = points[after]
    share = min(max((time - t0) / (t1 - t0), 0.0), 1.0) if t1 > t0 else 0.0
    return first + (second - first) * share
