# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Marks in the motion of an arm, the stretches between them, and which stretches are alike.

A mark is a departure from rest, a rising digital output or a program start. Stretches are
alike where the arm does the same work in them: it comes to the same points of rest in the
same order, on paths of the same length and range, and moves for the same time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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
LEAST_REST = 0.3
"""Shortest rest in a cycle that has one rest only [s]: periodic exciting trajectories pass through
an instant of rest once a period, and are no work."""
LONGER = 1.1
"""Factor on the motion that the cycles found so far cover, from which on longer cycles count: a
subprogram that is called several times in a row is a part of a cycle."""
DENSEST = 0.2  # shortest time between two marks of one kind [s]
_FAST = 0.02
"""Period of samples up to which they show nearly every instant of rest between two moves [s]: all
with accelerations up to 5 rad/s^2, or up to 10 rad/s^2 at half the period."""
_MISSING = 0.2  # share of the rests of a cycle, at most, that fast samples do not show
_ALIKE = 0.05  # largest relative difference of the paths of two cycles
_ALIKE_TIME = 0.15  # largest relative difference of the times in motion of two cycles


@dataclass(slots=True)
class MotionMark:
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


class Rests(NamedTuple):
    """Rests between the first and the last mark of a stretch, in order.

    Attributes:
        points: positions [rests, joints], rad.
        brief: whether a rest is so short that slow samples may not show it [rests].
    """

    points: Array
    brief: Mask

    def come_again(self, other: Rests, near: float, *, fast: bool) -> bool:
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
        row = 0  # number of this stretch's rest
        column = 0  # number of the other stretch's rest
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

    def _same(self, row: int, other: Rests, column: int, near: float) -> bool:
        """Whether two rests are at the same point; behind the last one, whether both stretches end.

        Args:
            row: number of a rest of this stretch.
            other: rests of the other stretch.
            column: number of a rest of the other stretch.
            near: distance within which slow samples show a brief rest [rad].
        """
        if row == len(self.brief) or column == len(other.brief):
            return row == len(self.brief) and column == len(other.brief)
        brief = self.brief[row] or other.brief[column]
        distance = np.abs(self.points[row] - other.points[column]).max(initial=0.0)
        tolerance = near if brief else SAME_POINT
        return bool(distance < tolerance)

    def _in_order(self, other: Rests, near: float) -> bool:
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


class Stretch(NamedTuple):
    """Motion between two marks.

    Attributes:
        path: length of the path of every joint [joints], rad.
        low: lowest position of every joint [joints], rad.
        high: highest position of every joint [joints], rad.
        moved: time in motion [s].
        rests: rests within the stretch.
    """

    path: Array
    low: Array
    high: Array
    moved: float
    rests: Rests


class Periodic(NamedTuple):
    """Departures from points that come again; departures are counted from 0.

    Attributes:
        period: number of departures of a cycle.
        first: departure that begins the first cycle.
        last: last departure from the same point as the departure a cycle before.
        path: length of the path of every joint in a cycle [joints], rad.
        inside: mask of the departures that begin a part of such cycles [departures].
    """

    period: int
    first: int
    last: int
    path: Array
    inside: Mask


def same_path(one: Array, other: Array) -> bool:
    """Whether two cycles have the same length of every joint's path [joints], rad."""
    return bool(np.abs(one - other).max() <= _ALIKE * np.maximum(one, other).max())


class MarkMemory:
    """The newest marks of the motion of one arm, at most MOST_MARKS, and the motion between them.

    Attributes:
        marks: the marks by number, ascending.
        count: number of all marks so far; marks are numbered from 0.
        period: period of the samples [s]; 0 while it is unknown.
    """

    def __init__(self) -> None:
        self.marks: dict[int, MotionMark] = {}
        self.count = 0
        self.period = 0.0

    @property
    def newest(self) -> MotionMark:
        """The newest mark."""
        return self.marks[self.count - 1]

    def add(self, mark: MotionMark) -> None:
        """Add a mark with the number `count`, and forget the oldest one if there are too many."""
        self.marks[self.count] = mark
        self.marks.pop(self.count - MOST_MARKS, None)
        self.count += 1

    def forget(self) -> None:
        """Forget all marks; numbers go on."""
        self.marks = {}

    def between(self, begin: int, end: int) -> list[MotionMark]:
        """The marks with the numbers from `begin` to before `end`."""
        return [self.marks[number] for number in range(begin, end)]

    def departures(self) -> list[MotionMark]:
        """The departures among the marks that are remembered, in order."""
        return [mark for mark in self.marks.values() if DEPARTURE in mark.kinds]

    def longer_cycles(
        self, marks: Sequence[MotionMark], found: Stretch
    ) -> Periodic | None:
        """Cycles that cover clearly more of the motion than the cycles found so far.

        Among the cycles that cover nearly as much as the best ones do, the shortest cycles
        are returned; None where no others cover clearly more.

        Args:
            marks: departures, in order.
            found: a cycle of those found so far.
        """
        path = np.array([mark.path.sum() for mark in marks])
        steps = np.diff(path, append=path[-1:])  # path from each departure to the next
        cycles = self._periodic(marks)
        covered = [float(steps[each.inside].sum()) for each in cycles]
        enough = max(covered, default=0.0) / LONGER
        good = [each for each, way in zip(cycles, covered, strict=True) if way >= enough]
        if not good or any(same_path(each.path, found.path) for each in good):
            return None
        return min(good, key=attrgetter("period"))

    def _periodic(self, marks: Sequence[MotionMark]) -> list[Periodic]:
        """All cycles of which two or more follow one another, wherever in the cycle they begin.

        In a cycle of p departures, each departure is from the same point as the departure
        p later.
        """
        points = np.array([mark.q for mark in marks])
        found: list[Periodic] = []
        for period in range(1, (len(marks) - 1) // 2 + 1):
            distance = np.abs(points[period:] - points[:-period]).max(axis=1)
            same = distance < self.near
            for run in equal_runs(same):
                if not same[run.start] or run.stop - run.start <= period:
                    continue
                begin = marks[run.start]
                middle = marks[run.start + period]
                end = marks[run.start + 2 * period]
                shape = self.stretch(begin, middle)
                if not self.alike(shape, self.stretch(middle, end)):
                    continue
                last = run.stop - 1 + period
                inside = np.zeros(len(marks), dtype=bool)
                inside[run.start : last] = True
                # Cycles that were interrupted are one entry.
                for k, other in enumerate(found):
                    if other.period == period and same_path(other.path, shape.path):
                        inside |= other.inside
                        del found[k]
                        break
                found.append(Periodic(period, run.start, last, shape.path, inside))
        return found

    def rests_between(self, begin: MotionMark, end: MotionMark) -> bool:
        """Whether the arm rests between two departures, at another point or for LEAST_REST.

        Else the motion is a periodic function of time, such as an exciting trajectory, and
        no work.

        Args:
            begin: departure from a point.
            end: later departure from the same point.
        """
        inside = self.between(begin.number + 1, end.number)
        elsewhere = any(np.abs(mark.q - end.q).max() >= SAME_POINT for mark in inside)
        return elsewhere or end.rested >= LEAST_REST

    @property
    def near(self) -> float:
        """Distance within which two points of rest are the same [rad].

        Slow samples show a rest by a sample at which the arm still approaches or already
        leaves the point.
        """
        return SAME_POINT + min(self.period**2, SAME_TURN - SAME_POINT)

    def stretch(self, begin: MotionMark, end: MotionMark) -> Stretch:
        """The motion between two marks."""
        marks = self.between(begin.number, end.number)
        low = np.min([mark.low for mark in marks], axis=0)
        high = np.max([mark.high for mark in marks], axis=0)
        inside = [mark for mark in marks[1:] if DEPARTURE in mark.kinds]
        # Marks are at least DENSEST apart, and a rest of two periods contains a sample.
        shown = max(DENSEST, 2.0 * self.period)
        points = np.array([mark.q for mark in inside]).reshape(len(inside), len(begin.q))
        brief = np.array([mark.rested < shown for mark in inside], dtype=bool)
        return Stretch(
            path=end.path - begin.path,
            low=low,
            high=high,
            moved=end.moved - begin.moved,
            rests=Rests(points, brief),
        )

    def alike(self, one: Stretch, other: Stretch) -> bool:
        """Whether two stretches are two cycles of the same work."""
        period = self.period
        # The motion may turn between two samples.
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
        return one.rests.come_again(other.rests, self.near, fast=period <= _FAST)
