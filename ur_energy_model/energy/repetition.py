# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Motion that repeats: where the arm comes back to all of its points of rest in the same order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from ur_energy_model.telemetry.samples import equal_runs
from ur_energy_model.typing import Array, Mask

PROGRAM = -2
DEPARTURE = -1
"""Kinds of marks that are program starts and departures from rest; the others are numbers of
digital outputs."""
SAME_POINT = 0.005
"""Distance within which two points of rest are the same [rad]: targets repeat exactly, measured
positions nearly. Neighbouring places of a pallet or tray are farther apart: at 0.8 m from
the base this is 4 mm."""
SAME_TURN = 0.02
"""Distance within which two extremes of a path are the same [rad]: where a motion turns without a
rest, as in a blend, samples do not show its end."""
MOST_MARKS = 1024
"""Number of marks that are remembered; a cycle with more rests is not found."""
SHORTEST_CYCLE = 1.0  # s
LEAST_PATH = 0.1  # motion of all joints together in a cycle, at least [rad]
FIRM = 2e-3  # speed of an arm that certainly rests [rad/s]
LEAST_REST = 0.3
"""Shortest rest in a cycle that has one rest only [s]: periodic exciting trajectories pass through
an instant of rest once a period, and are no work."""
MOST = 0.6
"""Share of the motion so far that a repetition must cover: the others may be approach and
retreat."""
SURE_COUNT = 5  # number of repetitions from which on they count whatever the share
LONGER = 1.1
"""Factor on the motion that the cycles found so far cover, from which on longer cycles count: a
subprogram that is called several times in a row is a part of a cycle."""
PATIENCE = 1.2
"""Path since the last cycle, relative to the path of a cycle, after which other cycles are
searched."""
LONG_PATIENCE = 2.2
"""PATIENCE where shorter cycles repeat within the cycle: a search that begins within one of them
passes up to two others before the first complete cycle."""
LONGEST_PATIENCE = 5.0  # PATIENCE where the whole recording is known to repeat the cycle
_SPEED_PER_PERIOD = 5.0
_STILL = (0.01, 0.05)
"""Speed below which an arm rests: the change of speed within a sample at an acceleration of
`_SPEED_PER_PERIOD` [rad/s^2], between limits [rad/s]."""
_DENSEST = 0.2  # shortest time between two marks of one kind [s]
LARGEST = 1.0e6  # positions and speeds beyond it are none [rad, rad/s]
_FAST = 0.02
"""Period of samples up to which they show nearly every instant of rest between two moves [s]: all
with accelerations up to 5 rad/s^2, or up to 10 rad/s^2 at half the period."""
_MISSING = 0.2  # share of the rests of a cycle, at most, that fast samples do not show
_MOST_HELD = 50  # samples in which nothing begins that are taken together
_ALIKE = 0.05  # largest relative difference of the paths of two cycles
_ALIKE_TIME = 0.15  # largest relative difference of the times in motion of two cycles


@dataclass(slots=True)
class _Batch:
    """Consecutive samples.

    Attributes:
        time: controller timestamps [samples], s.
        q: positions [samples, joints], rad.
        speed: speed of the fastest joint [samples], rad/s.
        moving: whether the arm moves [samples].
    """

    time: Array
    q: Array
    speed: Array
    moving: Mask


@dataclass(slots=True)
class _MarkState:
    """A mark, and the motion from the first sample up to the mark.

    Attributes:
        number: number of the mark, from 0.
        kinds: kinds of the mark, see DEPARTURE.
        time: controller time [s].
        q: joint positions just before the mark [joints], rad.
        path: length of the path of every joint so far [joints], rad.
        moved: time in motion so far [s].
        rested: longest rest since the mark before [s].
        low: lowest positions from here to the next mark [joints], rad.
        high: highest positions from here to the next mark [joints], rad.
    """

    number: int
    kinds: set[int]
    time: float
    q: Array
    path: Array
    moved: float
    rested: float
    low: Array
    high: Array


class _Rests(NamedTuple):
    """Rests between the first and the last mark of a stretch, in order.

    Attributes:
        points: positions [rests, joints], rad.
        brief: whether a rest is so short that slow samples may not show it [rests].
    """

    points: Array
    brief: Mask

    def come_again(self, other: _Rests, near: float, *, fast: bool) -> bool:
        """Whether two stretches have the same points of rest in the same order.

        A brief rest may be missing in one of the two. Fast samples show nearly every rest:
        then only a few may be missing, and no rest may be at another point.

        Args:
            other: rests of the other stretch.
            near: distance within which slow samples show a brief rest [rad].
            fast: whether the samples are fast, see _FAST.
        """
        if not fast:
            return self._in_order(other, near) and other._in_order(self, near)
        row = 0
        column = 0
        missing = 0
        while row < len(self.brief) or column < len(other.brief):
            if self._same(row, other, column, near):
                row += 1
                column += 1
                continue
            missing += 1
            own_is_brief = row < len(self.brief) and self.brief[row]
            other_is_brief = column < len(other.brief) and other.brief[column]
            if own_is_brief and self._same(row + 1, other, column, near):
                row += 1
            elif other_is_brief and self._same(row, other, column + 1, near):
                column += 1
            else:
                return False
        return missing <= max(1.0, _MISSING * len(self.brief))

    def _same(self, row: int, other: _Rests, column: int, near: float) -> bool:
        """Whether two rests are at the same point; past the last rest both end at the same mark."""
        if row == len(self.brief) or column == len(other.brief):
            return row == len(self.brief) and column == len(other.brief)
        brief = self.brief[row] or other.brief[column]
        distance = np.abs(self.points[row] - other.points[column]).max(initial=0.0)
        return bool(distance < (near if brief else SAME_POINT))

    def _in_order(self, other: _Rests, near: float) -> bool:
        """Whether each rest that is not brief is one of the other's, in the same order."""
        column = 0
        for point in self.points[~self.brief]:
            distance = np.abs(point - other.points[column:]).max(axis=1, initial=0.0)
            tolerance = np.where(other.brief[column:], near, SAME_POINT)
            found = np.flatnonzero(distance < tolerance)
            if not len(found):
                return False
            column += int(found[0]) + 1
        return True


class _Stretch(NamedTuple):
    """Motion between two marks."""

    path: Array  # of every joint [joints], rad
    low: Array  # lowest position of every joint [joints], rad
    high: Array  # highest position of every joint [joints], rad
    moved: float  # time in motion [s]
    rests: _Rests


class _Periodic(NamedTuple):
    """Departures from points that come again, by their indices."""

    period: int  # departures of a cycle
    first: int  # departure that begins the first cycle
    last: int  # last departure from the same point as a cycle before
    path: Array  # of every joint in a cycle [joints], rad
    inside: Mask  # which departures begin a part of such cycles [departures]


def _same_path(one: Array, other: Array) -> bool:
    """Whether the paths of every joint in two cycles are the same [joints], rad."""
    return bool(np.abs(one - other).max() <= _ALIKE * np.maximum(one, other).max())


class Repetition:
    """Finds motion that repeats, sample by sample, in bounded memory and time.

    A mark is a departure from rest, a rising digital output or a program start. A stretch
    of motion between two marks of one kind at the same point is described by its points of
    rest, by path and range of every joint, and by the time in motion. Two consecutive
    stretches that are alike are two cycles: the arm has come back to all of its points.
    (Filling a pallet is one cycle, for each place of the pallet is another point.) Two
    further conditions: neither stretch contains a shorter cycle, and both together cover
    most of the motion so far. Once a cycle is found, every further one is reported when it
    ends. The motion from one program start to the next is a cycle, too, if nothing repeats
    in between and the program is more than a single move.

    Args:
        known: kind and shape of the cycle, where they are known already from the same
            recording.
    """

    def __init__(self, known: tuple[int, _Stretch] | None = None) -> None:
        self.kind = DEPARTURE  # of the marks between which the last cycle was found
        self._marks: dict[int, _MarkState] = {}  # the newest marks by number, in order
        self._count = 0  # number of marks so far
        self._held: list[_Batch] = []
        """The last sample that was processed, and later samples without a mark, which are processed
        together with the samples after them."""
        self._period: float | None = None
        self._path = np.zeros(0)  # length of every joint's path so far [joints], rad
        self._moved = 0.0  # time in motion so far [s]
        self._rest = 0.0  # longest rest since the last mark [s]
        self._left = 0.0  # last time at which a joint moved [s]
        # Cycles are searched from the later of these two marks on.
        self._run = 0  # number of the mark at which the present run of the program began
        self._end = 0  # number of the mark at which the last cycle ended
        self._known = known
        self._found = known  # kind and shape of the cycle that repeats
        self._patience = PATIENCE if known is None else LONGEST_PATIENCE
        self._program: int | None = None  # number of the last program start

    def update(
        self,
        time: Array,
        q: Array,
        qd: Array,
        signals: list[tuple[int, int]],
        rate: float | None = None,
    ) -> dict[int, tuple[int, ...]]:
        """Process samples that follow the previous ones.

        Args:
            time: controller timestamps [samples], s.
            q: positions [samples, joints], rad; no joints if unknown.
            qd: velocities [samples, joints], rad/s.
            signals: program starts and digital outputs: index of the sample and kind.
            rate: rate of the samples [Hz], None if unknown.

        Returns:
            Begins of the complete cycles (see `Mark.ends`) by the index of the sample with
            which they are complete.
        """
        if not len(time):
            return {}
        restarts = (time[1:] < time[:-1]).nonzero()[0]
        if len(restarts):  # the controller was restarted: each part on its own
            cut = int(restarts[0]) + 1
            before = [(k, kind) for k, kind in signals if k < cut]
            after = [(k - cut, kind) for k, kind in signals if k >= cut]
            ends = self.update(time[:cut], q[:cut], qd[:cut], before, rate)
            later = self.update(time[cut:], q[cut:], qd[cut:], after, rate)
            return ends | {cut + k: back for k, back in later.items()}
        if self._period is None:
            self._period = _period(time, rate)
        low, high = _STILL
        still = min(max(_SPEED_PER_PERIOD * (self._period or 0.0), low), high)
        speed = np.abs(qd).max(axis=1, initial=0.0)
        if not (speed.max() < LARGEST and np.abs(q).max(initial=0.0) < LARGEST):
            # Impossible samples get the position of the last possible one, and rest.
            good = (np.abs(q) < LARGEST).all(axis=1) & (speed < LARGEST)
            rows = np.maximum.accumulate(np.where(good, np.arange(len(q)), -1))
            known = self._held[-1].q[-1] if self._held else np.zeros(q.shape[1])
            q = np.where((rows < 0)[:, None], known, q[rows])
            speed = np.where(good, speed, 0.0)
        last = self._held[-1] if self._held else None
        if last is None or last.q.shape[1] != q.shape[1] or time[0] < last.time[-1]:
            last = self._begin(time[:1], q[:1])
        batch = _Batch(time, q, speed, moving=speed > still)
        held = sum(len(each.time) for each in self._held)
        moved_before = np.concatenate((last.moving[-1:], batch.moving[:-1]))
        departures = (batch.moving & ~moved_before).nonzero()[0].tolist()
        events: dict[int, set[int]] = {}
        for k in departures:
            events.setdefault(held + k, set()).add(DEPARTURE)
        for k, kind in signals:
            events.setdefault(held + k, set()).add(kind)
        self._held.append(batch)
        if not events and held + len(time) <= _MOST_HELD:
            return {}
        return {row - held: back for row, back in self._take(events).items()}

    def _begin(self, time: Array, q: Array) -> _Batch:
        """Begin the search anew at a sample.

        Args:
            time: controller time of the sample [1], s.
            q: its joint positions [1, joints], rad.

        Returns:
            The sample as a batch. It counts as moving, since motion that is under way is
            no departure.
        """
        self._marks = {}
        self._program = None
        self._found = self._known
        self._run = self._count
        self._end = self._count
        self._path = np.zeros(q.shape[1])
        self._moved = 0.0
        self._rest = 0.0
        self._left = float(time[0])
        first = _Batch(time, q, speed=np.zeros(1), moving=np.ones(1, dtype=bool))
        self._held = [first]
        return first

    def afterwards(self) -> Repetition:
        """The search for a second pass over the same samples.

        It begins with the cycle that covers most of them.
        """
        if self._found is None:
            return Repetition()
        marks = self._departures()
        other = self._other(marks, self._found[1])
        if other is None:
            return Repetition(self._found)
        shape = self._stretch(marks[other.first], marks[other.first + other.period])
        return Repetition((DEPARTURE, shape))

    def _departures(self) -> list[_MarkState]:
        """The departures among the marks that are remembered, in order."""
        return [mark for mark in self._marks.values() if DEPARTURE in mark.kinds]

    def _other(self, marks: Sequence[_MarkState], found: _Stretch) -> _Periodic | None:
        """Cycles that cover clearly more of the motion than the cycles found so far.

        Among the cycles that cover nearly as much as the best ones do, the shortest cycles
        are returned; None where no others cover clearly more.

        Args:
            marks: departures, in order.
            found: a cycle of those found so far.
        """
        path = np.array([mark.path.sum() for mark in marks])
        steps = np.diff(path, append=path[-1:])
        covered = [
            (float(steps[each.inside].sum()), each) for each in self._periodic(marks)
        ]
        enough = max((way for way, _ in covered), default=0.0) / LONGER
        good = [each for way, each in covered if way >= enough]
        if not good or any(_same_path(each.path, found.path) for each in good):
            return None
        return min(good, key=attrgetter("period"))

    def _periodic(self, marks: Sequence[_MarkState]) -> list[_Periodic]:
        """All cycles of which two or more follow one another, wherever in the cycle they begin.

        In a cycle of p departures, each departure is from the same point as the departure
        p later.
        """
        points = np.array([mark.q for mark in marks])
        found: list[_Periodic] = []
        for period in range(1, (len(marks) - 1) // 2 + 1):
            distance = np.abs(points[period:] - points[:-period]).max(axis=1)
            same = distance < self._near
            for run in equal_runs(same):
                if not same[run.start] or run.stop - run.start <= period:
                    continue
                begin, middle, end = (marks[run.start + k * period] for k in range(3))
                shape = self._stretch(begin, middle)
                if not self._alike(shape, self._stretch(middle, end)):
                    continue
                last = run.stop - 1 + period
                inside = np.zeros(len(marks), dtype=bool)
                inside[run.start : last] = True
                for k, other in enumerate(found):
                    if other.period == period and _same_path(other.path, shape.path):
                        inside |= other.inside
                        del found[k]
                        break
                found.append(_Periodic(period, run.start, last, shape.path, inside))
        return found

    def _take(self, events: dict[int, set[int]]) -> dict[int, tuple[int, ...]]:
        """Process the samples that are held; the first one was processed before.

        Args:
            events: kinds of the marks that begin at samples, by the numbers of the samples.

        Returns:
            `Mark.ends` by the numbers of the samples.
        """
        time = np.concatenate([each.time for each in self._held])
        q = np.concatenate([each.q for each in self._held])
        speed = np.concatenate([each.speed for each in self._held])
        moving = np.concatenate([each.moving for each in self._held])
        self._held = [_Batch(time[-1:], q[-1:], speed[-1:], moving[-1:])]
        left = np.maximum.accumulate(np.where(speed > FIRM, time, self._left))
        self._left = float(left[-1])
        rest = time - left - (self._period or 0.0)
        step = np.where(moving[1:, None], np.abs(np.diff(q, axis=0)), 0.0)
        passed = np.where(moving[1:], np.diff(time), 0.0)
        ends: dict[int, tuple[int, ...]] = {}
        for begin, end in pairwise((1, *sorted(events), len(time))):
            if begin in events:
                kinds = self._new(events[begin], time[begin], q[begin - 1])
                if kinds:
                    ends[begin] = self._ends(kinds)
            if begin == end:
                continue
            self._rest = max(self._rest, float(rest[begin:end].max()))
            self._path = self._path + step[begin - 1 : end - 1].sum(axis=0)
            self._moved += float(passed[begin - 1 : end - 1].sum())
            if self._marks:
                here = self._marks[self._count - 1]
                np.minimum(here.low, q[begin:end].min(axis=0), out=here.low)
                np.maximum(here.high, q[begin:end].max(axis=0), out=here.high)
        return ends

    def _new(self, kinds: set[int], time: float, q: Array) -> set[int]:
        """Make a mark, without kinds that a mark within _DENSEST before has; returns its kinds."""
        for mark in reversed(self._marks.values()):
            if time - mark.time >= _DENSEST:
                break
            kinds = kinds - mark.kinds
        if kinds:
            number = self._count
            self._marks[number] = _MarkState(
                number=number,
                kinds=kinds,
                time=float(time),
                q=q,
                path=self._path,
                moved=self._moved,
                rested=self._rest,
                low=q.copy(),
                high=q.copy(),
            )
            self._count = number + 1
            self._rest = 0.0
            self._marks.pop(number - MOST_MARKS, None)
        return kinds

    def _ends(self, kinds: set[int]) -> tuple[int, ...]:
        """Begins of the cycles that the newest mark of these kinds completes, see `Mark.ends`."""
        now = self._count - 1
        run = self._run
        starts = list[int]()
        if PROGRAM in kinds:
            begin = self._program
            self._program = now
            if begin is not None and begin in self._marks:
                since = [self._marks[k] for k in range(begin, now)]
                left = [mark.q for mark in since if DEPARTURE in mark.kinds]
                # Clients that send every move as a separate program start no cycle with
                # each.
                is_move = bool(left) and all(
                    np.abs(q - left[0]).max() < SAME_POINT for q in left
                )
                if not is_move:
                    run = now
                    if begin >= self._end:  # no cycle was found in it
                        starts = [begin]
        shown_by = PROGRAM
        for kind in sorted(kinds):
            if not starts:
                shown_by = kind
                starts = self._repeats(kind)
        self._run = run
        if starts:
            self.kind = shown_by
            self._end = now
        return tuple(now - start for start in starts)

    def _repeats(self, kind: int) -> list[int]:
        """Numbers of the marks at which consecutive cycles begin that the newest one completes."""
        marks = self._marks
        here = self._marks[self._count - 1]
        first = marks[max(self._run, self._end, next(iter(marks)))]
        if not len(self._path):
            return []
        before = [marks[k] for k in range(here.number - 1, first.number - 1, -1)]
        same = [
            mark
            for mark in before
            if kind in mark.kinds
            and here.time - mark.time >= SHORTEST_CYCLE
            and np.abs(mark.q - here.q).max() < self._near
        ]
        whole = float((here.path - first.path).sum())
        if self._found is not None:
            known, shape = self._found
            for mark in same if kind == known else ():
                stretch = self._stretch(mark, here)
                if self._alike(shape, stretch):
                    self._found = (kind, stretch)
                    if self._known is None and mark.number > self._end:
                        self._lengthen(stretch)
                    return [mark.number]
            if whole < self._patience * shape.path.sum() + LEAST_PATH:
                return []  # nothing shorter within a cycle that may go on
        for mark in same:
            shape = self._stretch(mark, here)
            if shape.path.sum() < LEAST_PATH:
                continue
            if kind == DEPARTURE and not self._rests_between(mark, here):
                continue
            begins = self._chain(shape, mark, same)
            covered = float((here.path - begins[-1].path).sum())
            enough = covered >= MOST * whole or len(begins) >= SURE_COUNT
            if len(begins) > 1 and enough:
                self._found = (kind, shape)
                if self._known is None:
                    self._patience = PATIENCE
                return [begin.number for begin in reversed(begins)]
        return []

    def _rests_between(self, begin: _MarkState, end: _MarkState) -> bool:
        """Whether the arm rests between two departures, at another point or for LEAST_REST.

        Else the motion is a periodic function of time, such as an exciting trajectory, and
        no work.
        """
        inside = [self._marks[k] for k in range(begin.number + 1, end.number)]
        elsewhere = any(np.abs(mark.q - end.q).max() >= SAME_POINT for mark in inside)
        return elsewhere or end.rested >= LEAST_REST

    def _chain(
        self, shape: _Stretch, newest: _MarkState, marks: Sequence[_MarkState]
    ) -> list[_MarkState]:
        """Begins of consecutive cycles, from the newest to the oldest.

        Args:
            shape: motion of the last cycle.
            newest: begin of the last cycle.
            marks: earlier marks at the same point, from the newest to the oldest.
        """
        begins = [newest]
        for mark in marks:
            if begins[-1].time - mark.time < SHORTEST_CYCLE:
                continue
            if self._alike(shape, self._stretch(mark, begins[-1])):
                begins.append(mark)
        return begins

    def _lengthen(self, shape: _Stretch) -> None:
        """Go on with longer cycles if cycles of this shape are only a part of what repeats.

        That may be so where a cycle does not begin with the end of the one before it.
        """
        marks = self._departures()
        other = self._other(marks, shape)
        if other is not None and other.last == len(marks) - 1:
            whole = self._stretch(marks[-1 - other.period], marks[-1])
            self._found = (DEPARTURE, whole)
            self._patience = LONG_PATIENCE

    @property
    def _near(self) -> float:
        """Distance within which two points of rest are the same [rad].

        Slow samples show a rest by one that is still coming to it or already leaving.
        """
        return SAME_POINT + min((self._period or 0.0) ** 2, SAME_TURN - SAME_POINT)

    def _stretch(self, begin: _MarkState, end: _MarkState) -> _Stretch:
        """The motion between two marks."""
        marks = [self._marks[k] for k in range(begin.number, end.number)]
        low = np.min([mark.low for mark in marks], axis=0)
        high = np.max([mark.high for mark in marks], axis=0)
        inside = [mark for mark in marks[1:] if DEPARTURE in mark.kinds]
        # Marks are at least _DENSEST apart, and a rest of two periods contains a sample.
        shown = max(_DENSEST, 2.0 * (self._period or 0.0))
        points = np.array([mark.q for mark in inside]).reshape(len(inside), len(begin.q))
        brief = np.array([mark.rested < shown for mark in inside], dtype=bool)
        return _Stretch(
            path=end.path - begin.path,
            low=low,
            high=high,
            moved=end.moved - begin.moved,
            rests=_Rests(points, brief),
        )

    def _alike(self, one: _Stretch, other: _Stretch) -> bool:
        """Whether two stretches are two cycles of the same work."""
        # The motion may turn between two samples.
        period = self._period or 0.0
        near = SAME_TURN + min(period**2, 0.1)
        most_path = _ALIKE * np.maximum(one.path, other.path) + 2.0 * near
        most_time = _ALIKE_TIME * max(one.moved, other.moved) + 2.0 * period
        same_motion = (
            (np.abs(one.path - other.path) <= most_path).all()
            and (np.abs(one.low - other.low) <= near).all()
            and (np.abs(one.high - other.high) <= near).all()
            and abs(one.moved - other.moved) <= most_time
        )
        if not same_motion:
            return False
        return one.rests.come_again(other.rests, self._near, fast=period <= _FAST)


def _period(time: Array, rate: float | None) -> float | None:
    """Period of samples at times [n], s, or with a rate [Hz]; None where neither shows it [s]."""
    if rate:
        return 1.0 / rate
    steps = np.diff(time)
    steps = steps[(steps > 0.0) & (steps <= 1.0)]
    return float(steps[0]) if len(steps) else None
