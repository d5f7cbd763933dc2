# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Motion that repeats: where the arm comes back to all of its points of rest in the same order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ur_energy_model.energy.motion_marks import (
    DENSEST,
    DEPARTURE,
    PROGRAM,
    SAME_POINT,
    MarkMemory,
    MotionMark,
    Stretch,
)
from ur_energy_model.typing import Array, Mask

SHORTEST_CYCLE = 1.0  # shortest duration of a cycle [s]
LEAST_PATH = 0.1  # motion of all joints together in a cycle, at least [rad]
FIRM = 2e-3  # speed of an arm that certainly rests [rad/s]
MOST = 0.6
"""Share of the motion so far that a repetition must cover: the others may be approach and
retreat."""
SURE_COUNT = 5  # number of repetitions from which on they count whatever the share
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
LARGEST = 1.0e6  # positions and speeds beyond it are none [rad, rad/s]
_MOST_HELD = 50  # samples in which nothing begins that are taken together


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

    def __init__(self, known: tuple[int, Stretch] | None = None) -> None:
        self.kind = DEPARTURE  # kind of the marks between which the last cycle was found
        self._memory = MarkMemory()
        # The last sample that was processed, and later samples without a mark, which are
        # processed together with the samples after them.
        self._held: list[_Batch] = []
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
        if self._memory.period == 0.0:
            self._memory.period = _period(time, rate)
        speed = np.abs(qd).max(axis=1, initial=0.0)
        if not (speed.max() < LARGEST and np.abs(q).max(initial=0.0) < LARGEST):
            q, speed = self._without_impossible(q, speed)
        last = self._held[-1] if self._held else None
        if last is None or last.q.shape[1] != q.shape[1] or time[0] < last.time[-1]:
            last = self._begin(time[:1], q[:1])
        low, high = _STILL
        still = min(max(_SPEED_PER_PERIOD * self._memory.period, low), high)
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

    def _without_impossible(self, q: Array, speed: Array) -> tuple[Array, Array]:
        """Samples in which impossible ones get the position of the last possible one, and rest.

        Args:
            q: positions [samples, joints], rad.
            speed: speed of the fastest joint [samples], rad/s.

        Returns:
            Positions [samples, joints], rad, and speeds [samples], rad/s.
        """
        good = (np.abs(q) < LARGEST).all(axis=1) & (speed < LARGEST)
        last_good = np.maximum.accumulate(np.where(good, np.arange(len(q)), -1))
        before = self._held[-1].q[-1] if self._held else np.zeros(q.shape[1])
        q = np.where((last_good < 0)[:, None], before, q[last_good])
        return q, np.where(good, speed, 0.0)

    def _begin(self, time: Array, q: Array) -> _Batch:
        """Begin the search anew at a sample.

        Args:
            time: controller time of the sample [1], s.
            q: its joint positions [1, joints], rad.

        Returns:
            The sample as a batch. It counts as moving, since motion that is under way is
            no departure.
        """
        self._memory.forget()
        self._program = None
        self._found = self._known
        self._run = self._memory.count
        self._end = self._memory.count
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
        marks = self._memory.departures()
        other = self._memory.longer_cycles(marks, self._found[1])
        if other is None:
            return Repetition(self._found)
        shape = self._memory.stretch(
            marks[other.first], marks[other.first + other.period]
        )
        return Repetition((DEPARTURE, shape))

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
        rest = time - left - self._memory.period
        step = np.where(moving[1:, None], np.abs(np.diff(q, axis=0)), 0.0)
        passed = np.where(moving[1:], np.diff(time), 0.0)
        ends: dict[int, tuple[int, ...]] = {}
        for begin, end in pairwise((1, *sorted(events), len(time))):
            if begin in events:
                kinds = self._new_kinds(events[begin], float(time[begin]))
                if kinds:
                    self._add_mark(kinds, float(time[begin]), q[begin - 1])
                    ends[begin] = self._ends(kinds)
            if begin == end:
                continue
            self._rest = max(self._rest, float(rest[begin:end].max()))
            self._path = self._path + step[begin - 1 : end - 1].sum(axis=0)
            self._moved += float(passed[begin - 1 : end - 1].sum())
            if self._memory.marks:
                here = self._memory.newest
                np.minimum(here.low, q[begin:end].min(axis=0), out=here.low)
                np.maximum(here.high, q[begin:end].max(axis=0), out=here.high)
        return ends

    def _new_kinds(self, kinds: set[int], time: float) -> set[int]:
        """Kinds of a mark at a time [s] that no mark within DENSEST before has."""
        for mark in reversed(self._memory.marks.values()):
            if time - mark.time >= DENSEST:
                break
            kinds = kinds - mark.kinds
        return kinds

    def _add_mark(self, kinds: set[int], time: float, q: Array) -> None:
        """Add a mark.

        Args:
            kinds: kinds of the mark, see DEPARTURE.
            time: controller time [s].
            q: joint positions just before the mark [joints], rad.
        """
        mark = MotionMark(
            number=self._memory.count,
            kinds=kinds,
            time=time,
            q=q,
            path=self._path,
            moved=self._moved,
            rested=self._rest,
            low=q.copy(),
            high=q.copy(),
        )
        self._memory.add(mark)
        self._rest = 0.0

    def _ends(self, kinds: set[int]) -> tuple[int, ...]:
        """Begins of the cycles that the newest mark of these kinds completes, see `Mark.ends`."""
        now = self._memory.newest.number
        run = self._run
        starts: list[int] = []
        if PROGRAM in kinds:
            begin = self._program
            self._program = now
            known = begin is not None and begin in self._memory.marks
            # Clients that send every move as a separate program start no cycle with each.
            if begin is not None and known and not self._is_move(begin, now):
                run = now
                if begin >= self._end:  # no cycle was found in the program
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

    def _is_move(self, begin: int, end: int) -> bool:
        """Whether the arm departs from one point only between two marks, by their numbers."""
        marks = self._memory.between(begin, end)
        left = [mark.q for mark in marks if DEPARTURE in mark.kinds]
        return bool(left) and all(np.abs(q - left[0]).max() < SAME_POINT for q in left)

    def _repeats(self, kind: int) -> list[int]:
        """Begins of consecutive cycles that the newest mark completes, the oldest first.

        Args:
            kind: kind of the marks at which the cycles begin.

        Returns:
            Numbers of the marks; none where no cycle is complete.
        """
        marks = self._memory.marks
        here = self._memory.newest
        first = marks[max(self._run, self._end, next(iter(marks)))]
        if not len(self._path):
            return []
        same = [
            mark
            for mark in reversed(self._memory.between(first.number, here.number))
            if kind in mark.kinds
            and here.time - mark.time >= SHORTEST_CYCLE
            and np.abs(mark.q - here.q).max() < self._memory.near
        ]
        whole = float((here.path - first.path).sum())
        if self._found is not None:
            found_kind, shape = self._found
            if kind == found_kind:
                begin = self._comes_again(kind, shape, same)
                if begin is not None:
                    return [begin]
            if whole < self._patience * shape.path.sum() + LEAST_PATH:
                return []  # nothing shorter within a cycle that may go on
        return self._new_cycles(kind, same, whole)

    def _comes_again(
        self, kind: int, shape: Stretch, same: Sequence[MotionMark]
    ) -> int | None:
        """Begin of the cycle that was found before, if it comes again up to the newest mark.

        Args:
            kind: kind of the marks at which the cycle begins.
            shape: motion of the cycle.
            same: marks of this kind at the point of the newest mark, the newest first.

        Returns:
            Number of the mark; None where the cycle does not come again.
        """
        for mark in same:
            stretch = self._memory.stretch(mark, self._memory.newest)
            if self._memory.alike(shape, stretch):
                self._found = (kind, stretch)
                if self._known is None and mark.number > self._end:
                    self._lengthen(stretch)
                return mark.number
        return None

    def _new_cycles(
        self, kind: int, same: Sequence[MotionMark], whole: float
    ) -> list[int]:
        """Begins of cycles of a new shape, of which the newest mark completes two or more.

        Args:
            kind: kind of the marks at which the cycles begin.
            same: marks of this kind at the point of the newest mark, the newest first.
            whole: motion of all joints together, of which the cycles must cover MOST [rad].

        Returns:
            Numbers of the marks, the oldest first; none where no cycles are found.
        """
        here = self._memory.newest
        for mark in same:
            shape = self._memory.stretch(mark, here)
            if shape.path.sum() < LEAST_PATH:
                continue
            if kind == DEPARTURE and not self._memory.rests_between(mark, here):
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

    def _chain(
        self, shape: Stretch, newest: MotionMark, marks: Sequence[MotionMark]
    ) -> list[MotionMark]:
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
            if self._memory.alike(shape, self._memory.stretch(mark, begins[-1])):
                begins.append(mark)
        return begins

    def _lengthen(self, shape: Stretch) -> None:
        """Go on with longer cycles if cycles of this shape are only a part of what repeats.

        That may be so where a cycle does not begin with the end of the one before it.
        """
        marks = self._memory.departures()
        other = self._memory.longer_cycles(marks, shape)
        if other is not None and other.last == len(marks) - 1:
            whole = self._memory.stretch(marks[-1 - other.period], marks[-1])
            self._found = (DEPARTURE, whole)
            self._patience = LONG_PATIENCE


def _period(time: Array, rate: float | None) -> float:
    """Period of samples at times [n], s, or with a rate [Hz]; 0 where neither shows it [s]."""
    if rate:
        return 1.0 / rate
    steps = np.diff(time)
    steps = steps[(steps > 0.0) & (steps <= 1.0)]
    return float(steps[0]) if len(steps) else 0.0
