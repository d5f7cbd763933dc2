"""Measured energy of planned motions that the arm has carried out.

A motion is that of a plan if it starts from rest at the plan's first position, within EXPECTED of
the plan, and is at the plan's positions at the plan's times: at every moment within `tolerance_of`,
with one shift of time of at most TIME_TOLERANCE for all of it. Times are those of the prediction,
with the speed scaling when the plan came: a motion at another speed is not that of the plan.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

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
AWAY = 0.005
"""Distance of a joint from its first position at which a motion has begun [rad]."""
AT_REST = 0.3
"""Standstill that ends a motion [s]."""
MOST_PLANS = 10
"""Plans that are expected at the same time; the oldest gives way."""
PERIOD = 0.02
"""Period of the positions that are compared [s]."""

Point = tuple[float, MeterReading]
Verdict = tuple[object, MeterReading | str]
"""A plan's key, and the measured energy of its motion or why there is none."""


def tolerance_of(q: Array) -> Array:
    """Largest distance of each joint from its planned positions q [k, n], rad: [n], rad."""
    least, share, largest = TOLERANCE
    return np.asarray(np.clip(share * np.ptp(q, axis=0), least, largest))


@dataclass(eq=False)
class _Motion:
    """A motion from rest while it may be that of one plan.

    Attributes:
        rest: beginning and end of the standstill before it, and its first moments, with energies.
        q, time: positions so far [k], rad, and their times [s]; the first one at rest.
        start: when the plan began, as found from the first way [s]; None before that.
        in_time: whether the positions are the plan's so far.
    """

    rest: list[Point]
    time: list[float]
    q: list[Array]
    start: float | None = None
    in_time: bool = True


class _Expected:
    """A plan whose motion is expected.

    Args:
        key: of the plan.
        plan: with the times of its prediction.
        since: controller time when it came [s]; None for that of the next snapshot.
    """

    def __init__(self, key: object, plan: Plan, since: float | None) -> None:
        self.key, self.since = key, since
        parts = list(plan.motion(PERIOD))
        self.time = np.concatenate([part.time for part in parts])
        self.q = np.concatenate([part.q for part in parts])
        self.tolerance = tolerance_of(self.q)
        speed = np.max([np.abs(part.qd).max(axis=0) for part in parts], axis=0)
        self.margin = self.tolerance + TIME_TOLERANCE * speed
        self.begins = _departure(self.time, self.q)
        self.motions: list[_Motion] = []
        self.reported = False

    @property
    def duration(self) -> float:
        return float(self.time[-1])

    def at(self, time: Array) -> Array:
        """Planned positions at times [k] from the start, s: [k, n], rad."""
        return np.column_stack([np.interp(time, self.time, q) for q in self.q.T])

    def begin(self, rest: list[Point], q: Array) -> None:
        """Follow a motion that leaves rest at q [n], rad."""
        if self.begins is not None and (np.abs(q - self.q[0]) <= self.tolerance).all():
            self.motions.append(_Motion(rest, [rest[-1][0]], [q]))

    def overdue(self, now: float) -> bool:
        """Whether the motion can no longer come."""
        assert self.since is not None
        latest = self.since + EXPECTED[1] + (self.begins or 0.0) + TIME_TOLERANCE
        return now > latest and not any(motion.in_time for motion in self.motions)

    def follow(self, now: float, q: Array, recent: Sequence[Point]) -> MeterReading | str | None:
        """Compare the present position; returns the energy of the motion once it has ended."""
        for motion in list(self.motions):
            last = motion.time[-1]
            if last - motion.time[0] < 4.0 * TIME_TOLERANCE:
                motion.rest.append(recent[-1])
            if now - motion.time[0] > 4.0 * self.duration + EXPECTED[1]:
                self.motions.remove(motion)
                continue
            if now - last >= 0.9 * PERIOD:
                motion.time.append(now)
                motion.q.append(q)
            if motion.start is None:
                left = _departure(np.array(motion.time), np.array(motion.q))
                if left is not None:
                    assert self.begins is not None
                    motion.start = left - self.begins
                    motion.in_time = self._may_start(motion)
            elif motion.in_time:
                passed = now - motion.start
                expected = self.at(np.array([passed]))[0]
                motion.in_time = bool((np.abs(q - expected) <= self.margin).all())
                if motion.in_time and passed >= self.duration + TIME_TOLERANCE:
                    self.motions.remove(motion)
                    found = self._energy(motion, recent)
                    if found is not None:
                        return found
        return None

    def at_rest(self, since: float, q: Array) -> str | None:
        """What the standstill at q [n], rad, shows: the plan's path at another speed, or None."""
        if not (np.abs(q - self.q[-1]) <= self.tolerance).all():
            return None
        for motion in [each for each in self.motions if not each.in_time]:
            rows = np.array(motion.time) <= since
            if self._same_path(np.array(motion.q)[rows]):
                self.motions.remove(motion)
                took = since - motion.time[0]
                return f"its path was followed in {took:.1f} s instead of {self.duration:.1f} s"
        return None

    def _may_start(self, motion: _Motion) -> bool:
        """Whether the start is one of the plan: after it came, and after the arm was at rest."""
        assert motion.start is not None
        assert self.since is not None
        earliest, latest = (self.since + each for each in EXPECTED)
        rested = motion.rest[0][0] - TIME_TOLERANCE <= motion.start
        return rested and earliest <= motion.start <= latest

    def _energy(self, motion: _Motion, recent: Sequence[Point]) -> MeterReading | str | None:
        """The energy of a motion that was within the margins; None if it was not the plan's."""
        assert motion.start is not None
        time, q = np.array(motion.time), np.array(motion.q)
        known = time
        rows = (time >= motion.start) & (time <= motion.start + self.duration)
        time, q, shift = time[rows], q[rows], 0.0
        if len(time) < 2:
            return None
        for _ in range(5):  # Gauss-Newton for the shift of time
            error = q - self.at(time - motion.start - shift)
            ahead = self.at(time - motion.start - shift + 0.5 * PERIOD)
            speed = (ahead - self.at(time - motion.start - shift - 0.5 * PERIOD)) / PERIOD
            shift -= float((error * speed).sum() / max((speed**2).sum(), 1e-12))
        error = q - self.at(time - motion.start - shift)
        if abs(shift) > TIME_TOLERANCE or not (np.abs(error) <= self.tolerance).all():
            motion.in_time = False
            self.motions.append(motion)  # its path may be the plan's
            return None
        start = motion.start + shift
        steps = np.diff(known)
        ends = np.searchsorted(known, [start, start + self.duration]) - 1
        at_ends = steps[np.clip(ends, 0, len(steps) - 1)].max()
        if at_ends > TIME_TOLERANCE or steps.max() > LONGEST_STEP:
            gap = max(at_ends, steps.max())
            return f"its motion has a gap of {gap:.2g} s between two snapshots"
        # A wait of the plan before its motion is part of the standstill before it.
        return _at(recent, start + self.duration) - _at(motion.rest, start)

    def _same_path(self, q: Array) -> bool:
        """Whether positions [k, n], rad, run along the whole path, whenever that was."""
        own, other = _by_way(self.q), _by_way(q)
        return bool((np.abs(own - other).max(axis=0) <= 2.0 * self.tolerance).all())


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
        now, q, last = snapshot.time, snapshot.q, self._last
        if last is not None and (now < last.time or snapshot.channels is not last.channels):
            # Another clock, or other counters: motions under way cannot be measured.
            self._recent.clear()
            self._rest = None
            for plan in self._plans:
                plan.motions.clear()
                plan.since = None if plan.since is None else now - (last.time - plan.since)
            last = None
        for plan in self._plans:
            plan.since = now if plan.since is None else plan.since
        self._last = snapshot
        self._recent.append((now, snapshot.lifetime))
        while self._recent[0][0] < now - 4.0 * TIME_TOLERANCE and len(self._recent) > 2:
            self._recent.popleft()
        moving = snapshot.state == ArmState.MOVING
        if not moving and self._rest is None:
            self._rest = (now, snapshot.lifetime)
        verdicts = self._verdicts(snapshot, last, moving) if q is not None else []
        if moving:
            self._rest = None
        return verdicts + self._given_up(now)

    def _verdicts(self, snapshot: Snapshot, last: Snapshot | None, moving: bool) -> list[Verdict]:
        assert snapshot.q is not None
        now, verdicts = snapshot.time, list[Verdict]()
        starts = moving and self._rest is not None and last is not None and last.q is not None
        for plan in list(self._plans):
            if starts:
                assert self._rest is not None
                assert last is not None
                assert last.q is not None
                plan.begin([self._rest, (last.time, last.lifetime)], last.q)
            measured = plan.follow(now, snapshot.q, self._recent)
            if measured is None and self._rest is not None and now - self._rest[0] >= AT_REST:
                measured = plan.at_rest(self._rest[0], snapshot.q)
            if isinstance(measured, MeterReading):
                self._plans.remove(plan)
            elif measured is None or plan.reported:
                continue
            plan.reported = True
            verdicts.append((plan.key, measured))
        return verdicts

    def _given_up(self, now: float) -> list[Verdict]:
        """Plans whose motion can no longer come."""
        text = f"no motion within {EXPECTED[1]:.0f} s was that of the plan"
        late = [plan for plan in self._plans if plan.overdue(now)]
        self._plans = [plan for plan in self._plans if plan not in late]
        return [(plan.key, text) for plan in late if not plan.reported]


def _departure(time: Array, q: Array) -> float | None:
    """When a joint of q [k, n], rad, has left its first position; None if none has."""
    way = np.abs(q - q[0]).max(axis=1)
    away = int(np.argmax(way > AWAY))
    if not way[away] > AWAY:
        return None
    share = (AWAY - way[away - 1]) / (way[away] - way[away - 1])
    return float(time[away - 1] + share * (time[away] - time[away - 1]))


def _by_way(q: Array) -> Array:
    """Positions [k, n], rad, at even shares of their way [200, n]; pauses do not count."""
    rows = [0]
    for k in range(1, len(q)):  # noise at standstill is no way
        if np.abs(q[k] - q[rows[-1]]).max() > 0.2 * AWAY:
            rows.append(k)
    kept = q[rows]
    way = np.concatenate([[0.0], np.linalg.norm(np.diff(kept, axis=0), axis=1).cumsum()])
    even = np.linspace(0.0, way[-1], 200)
    return np.column_stack([np.interp(even, way, each) for each in kept.T])


def _at(points: Sequence[Point], time: float) -> MeterReading:
    """The energy at a time, between those known."""
    times = [each for each, _ in points]
    after = min(max(bisect_left(times, time), 1), len(points) - 1)
    (t0, first), (t1, second) = points[after - 1], points[after]
    share = min(max((time - t0) / (t1 - t0), 0.0), 1.0) if t1 > t0 else 0.0
    return first + (second - first) * share
