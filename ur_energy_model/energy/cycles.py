"""Work cycles: where they start, found by a signal or by repetition, and what each of them took."""

from __future__ import annotations

import csv
import io
import os
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from ur_energy_model.energy.meter import MeterReading
from ur_energy_model.energy.powers import ArmState, Channels
from ur_energy_model.errors import MissingFieldError
from ur_energy_model.files import cell_text, check_target, user_path
from ur_energy_model.robot_modes import PLAYING
from ur_energy_model.telemetry.samples import Telemetry, slices_between
from ur_energy_model.typing import Array

Trigger = Literal["auto", "none", "program", "digital_output", "int_register"]

TRIGGER_FIELD: dict[str, str] = {
    "program": "runtime_state",
    "digital_output": "actual_digital_output_bits",
    "int_register": "output_int_register_0",
}
LOWEST_SIGNAL, BITS = -(2.0**31), 2.0**64
"""Least value of a trigger (a register), and the first beyond all values (of 64 bits)."""
OUTPUTS = 18
"""Digital outputs that can show a cycle: eight standard, eight configurable, two of the tool."""
NOT_STARTED = (3.0, 4.0, 5.0)
"""Values of runtime_state (pausing, paused, resuming) from which a program continues."""

SAME_POINT = 0.02
"""Distance within which two points of rest are the same [rad]: targets repeat exactly, taught
corrections and measured positions nearly."""
MOST_MARKS = 1024
"""Places at which a cycle may begin that are remembered; a cycle with more rests is not found."""
SHORTEST_CYCLE = 1.0
"""s."""
LEAST_PATH = 0.1
"""Motion of all joints together in a cycle, at least [rad]."""
FIRM = 2e-3
"""Speed of an arm that certainly rests [rad/s]."""
LEAST_REST = 0.3
"""Rest of an arm whose cycle has one rest only [s]: exciting trajectories pass through such an
instant once a period."""
MOST = 0.6
"""Share of the motion that a repetition must cover: approach and retreat may be in it."""
SURE_COUNT = 5
"""Number of repetitions that count whatever the share."""


class Mark(NamedTuple):
    """A place where a cycle may begin, and the cycles that are complete with it.

    Attributes:
        ends: where consecutive cycles begin, the last of which ends here, in marks before this
            one: (5, 2) are a cycle of three marks and one of two. Empty without a complete cycle.
        program: name of the loaded program, None if unknown.
    """

    ends: tuple[int, ...] = ()
    program: str | None = None


Marks = Mapping[int, Mark]
"""Marks by index of their sample, ascending."""


@dataclass(frozen=True)
class Cycle:
    """Energy of one cycle.

    Attributes:
        number: 1 for the first since the estimator started.
        start: controller time [s].
        reading: energies of all channels during the cycle.
        peak_power: largest total power [W].
        program: name of the loaded program, None if unknown.
    """

    number: int
    start: float
    reading: MeterReading
    peak_power: float
    program: str | None = None

    @property
    def duration(self) -> float:
        """Time from start to end, gaps included [s]."""
        return self.reading.accounted + self.reading.unaccounted

    def summary(self, channels: Channels) -> dict[str, float]:
        """Named values [J, s, W] in a fixed order, as in the cycle log."""
        net = self.reading.net
        energy = dict(zip(ArmState, net[channels.state_energy :], strict=False))
        time = dict(zip(ArmState, net[channels.state_time :], strict=False))
        joints = zip(channels.joints, net[channels.per_joint["electrical_power"]], strict=True)
        return {
            "start": self.start,
            "duration": self.duration,
            "total_energy": float(net[channels.arm["total"]]),
            "bus_energy": float(net[channels.arm["bus"]]),
            "peak_power": self.peak_power,
            "motion_time": float(time[ArmState.MOVING]),
            "motion_energy": float(energy[ArmState.MOVING]),
            "idle_time": float(sum(time.values()) - time[ArmState.MOVING]),
            "idle_energy": float(sum(energy.values()) - energy[ArmState.MOVING]),
            **{f"{name}_energy": float(value) for name, value in joints},
            **{
                f"{name}_energy": float(net[channels.arm[name]])
                for name in ("standby", "driver", "regeneration")
            },
        }


class CycleDetector:
    """Finds the samples at which a cycle starts, and which cycles are complete.

    Args:
        trigger: "auto": the first that shows cycles of program starts, a digital output and
            repeated motion; "program": a program starts; "digital_output": its rising edge;
            "int_register": output_int_register_0 changes; "none": never.
        output: number of the digital output.
    """

    def __init__(self, trigger: Trigger = "auto", output: int = 0) -> None:
        self.trigger: Trigger = trigger
        self.output = output
        self._last: dict[str, float] = {}
        self._open = self._requested = False
        self._repetition = Repetition()

    def request(self) -> None:
        """Start a cycle with the next sample; the user then names all cycles that "auto" finds."""
        self._requested = True

    def find(self, batch: Telemetry) -> Marks:
        """Marks of this batch, which follows the previous one.

        Raises:
            MissingFieldError: the source lacks the field of the trigger.
        """
        starts: set[int] = set()
        if self._requested and len(batch):
            if self.trigger == "auto":
                self.trigger, self._open = "none", False
            starts, self._requested = {0}, False
        if self.trigger == "auto":
            signals = [(k, PROGRAM) for k in self._starts(batch, "program", NOT_STARTED)]
            signals += self._rising_outputs(batch)
            ends = self._repetition.update(batch.time, *motion_of(batch), signals, batch.info.rate)
            return {index: Mark(back, batch.info.program) for index, back in ends.items()}
        if self.trigger != "none":
            name = TRIGGER_FIELD[self.trigger]
            if name not in batch.columns:
                raise MissingFieldError(
                    batch.info.source,
                    f"is missing, which cycle_trigger {self.trigger} needs",
                    "set cycle_trigger to none",
                    field=name,
                )
            if self.trigger == "digital_output":
                rising = self._rising_outputs(batch)
                starts.update(k for k, output in rising if output == self.output)
            else:
                starts.update(self._starts(batch, self.trigger))
        marks = {}
        for index in sorted(starts):
            marks[index] = Mark((1,) if self._open else (), batch.info.program)
            self._open = True
        return marks

    def _starts(
        self, batch: Telemetry, trigger: Trigger, paused: tuple[float, ...] = ()
    ) -> list[int]:
        """Samples at which a register changes, or a program starts from no state of a pause."""
        if not self._changes(batch, trigger):
            return []
        signal, before = self._signal(batch, trigger)
        starts = signal != before
        if trigger == "program":
            starts &= (signal == PLAYING) & ~np.isin(before, paused)
        return [int(k) for k in np.flatnonzero(starts)]

    def _rising_outputs(self, batch: Telemetry) -> list[tuple[int, int]]:
        """Samples and numbers of digital outputs that rise."""
        if not self._changes(batch, "digital_output"):
            return []
        bits, old = (
            np.maximum(values, 0.0).astype(np.uint64)
            for values in self._signal(batch, "digital_output")
        )
        rising = bits & ~old
        return [
            (k, output)
            for k in np.flatnonzero(rising).tolist()
            for output in range(OUTPUTS)
            if int(rising[k]) >> output & 1
        ]

    def _changes(self, batch: Telemetry, trigger: Trigger) -> bool:
        """Whether a signal has other values than its last one; nothing starts without."""
        values = batch.columns.get(TRIGGER_FIELD[trigger])
        if values is None:
            return False
        last = self._last.get(trigger)
        return last is None or values.tolist().count(last) < len(values)

    def _signal(self, batch: Telemetry, trigger: Trigger) -> tuple[Array, Array]:
        """A signal, its impossible values replaced by the last possible one; and one sample ago."""
        signal = batch.columns[TRIGGER_FIELD[trigger]]
        possible = (signal >= LOWEST_SIGNAL) & (signal < BITS)
        if not possible.all():
            last = np.maximum.accumulate(np.where(possible, np.arange(len(signal)), -1))
            signal = np.where(last < 0, self._last.get(trigger, 0.0), signal[last])
        before = np.concatenate(([self._last.get(trigger, signal[0])], signal[:-1]))
        self._last[trigger] = float(signal[-1])
        return signal, before


def motion_of(batch: Telemetry) -> tuple[Array, Array]:
    """Targets of position and velocity, else what was measured; empty without either [n, joints]"""
    for kind in ("target", "actual"):
        if f"{kind}_q" in batch.columns and f"{kind}_qd" in batch.columns:
            return batch.columns[f"{kind}_q"], batch.columns[f"{kind}_qd"]
    return np.zeros((len(batch), 0)), np.zeros((len(batch), 0))


PROGRAM, DEPARTURE = -2, -1
"""Kinds of marks; the others are digital outputs."""
_SPEED_PER_PERIOD, _STILL = 5.0, (0.01, 0.05)
"""Speed of an arm at rest: what an acceleration gives within a sample, between limits [rad/s]."""
_DENSEST = 0.2
"""Shortest time between two marks of one kind [s]."""
LARGEST = 1.0e6
"""Positions and speeds beyond it are none [rad, rad/s]."""
_MOST_HELD = 50
"""Samples in which nothing begins that are taken together."""
_ALIKE, _ALIKE_TIME = 0.05, 0.15
"""Relative difference of path and of time in motion between two cycles."""


class Repetition:
    """Finds motion that repeats, sample by sample, in bounded memory and time.

    A mark is a departure from rest, a rising digital output or a program start. What lies between
    two marks of a kind at the same point is described by path and range of every joint and the
    time in motion: not by rests, which slow samples do not always show. Two such stretches
    that follow one another and are alike are two cycles if nothing in them is a shorter cycle
    and if they cover most of the motion so far. From then on each cycle counts as it ends.
    From program start to program start is a cycle too if nothing repeats in between and the program
    is not one move only.
    """

    def __init__(self) -> None:
        self._marks: list[_Place] = []
        self._before = 0
        """Number of marks that were dropped from the list."""
        self._last: tuple[float, Array, bool] | None = None
        self._held: list[tuple[Array, Array, Array]] = []
        """Times, positions and velocities of samples in which nothing begins, not taken yet."""
        self._held_moving = False
        self._period: float | None = None
        self._path = np.zeros(0)
        self._moved = self._rest = self._left = 0.0
        """Time in motion so far, rest since the last mark, last time at which a joint moved [s]."""
        self._low = self._high = np.zeros(0)
        self._run = self._end = 0
        """Numbers of the marks from which on cycles are looked for: of the present run of the
        program, and the end of the last cycle."""
        self._found: tuple[int, _Stretch] | None = None
        """Kind and shape of the cycle that repeats."""
        self._program: int | None = None
        """Number of the last program start."""

    def update(
        self,
        time: Array,
        q: Array,
        qd: Array,
        signals: list[tuple[int, int]],
        rate: float | None = None,
    ) -> dict[int, tuple[int, ...]]:
        """Take samples that follow the previous ones.

        Args:
            time: controller timestamps [n], s.
            q: positions [n, joints], rad; no joints if unknown.
            qd: velocities [n, joints], rad/s.
            signals: sample and kind of signals.
            rate: of the samples [Hz], None if unknown.

        Returns:
            `Mark.ends` by the index of their sample.
        """
        if not len(time):
            return {}
        held = self._held
        if held and held[0][1].shape[1] != q.shape[1]:  # another source
            self._take(*_joined(held), [], rate)
            held.clear()
        quiet = not signals and self._quiet(time, q, qd)
        before = sum(len(each) for each, _, _ in held)
        held.append((time, q, qd))
        if quiet and before + len(time) <= _MOST_HELD:
            return {}
        samples, self._held = _joined(held), []
        ends = self._take(*samples, [(before + k, kind) for k, kind in signals], rate)
        return {k - before: found for k, found in ends.items()}

    def _quiet(self, time: Array, q: Array, qd: Array) -> bool:
        """Whether no cycle can begin in samples, so that they may be taken with later ones."""
        last = self._last
        if last is None or self._period is None or q.shape[1] != len(last[1]):
            return False
        before, _, moving = last
        if self._held:
            before, moving = float(self._held[-1][0][-1]), self._held_moving
        speed = np.abs(qd).max(axis=1, initial=0.0)
        now = speed > self._still
        regular = time[0] >= before and bool((time[1:] >= time[:-1]).all())
        departs = (now[0] and not moving) or bool((now[1:] & ~now[:-1]).any())
        self._held_moving = bool(now[-1])
        possible = speed.max() < LARGEST and np.abs(q).max(initial=0.0) < LARGEST
        return regular and not departs and bool(possible)

    @property
    def _still(self) -> float:
        """Speed below which a joint counts as still [rad/s]."""
        low, high = _STILL
        return min(max(_SPEED_PER_PERIOD * (self._period or 0.0), low), high)

    def _take(
        self,
        time: Array,
        q: Array,
        qd: Array,
        signals: list[tuple[int, int]],
        rate: float | None,
    ) -> dict[int, tuple[int, ...]]:
        """Take samples, see `update`."""
        back = np.flatnonzero(np.diff(time) < 0.0) + 1
        if len(back):  # the controller restarted
            found: dict[int, tuple[int, ...]] = {}
            for part in slices_between(back.tolist(), len(time)):
                own = [(k - part.start, kind) for k, kind in signals if part.start <= k < part.stop]
                marks = self._take(time[part], q[part], qd[part], own, rate)
                found |= {part.start + k: ends for k, ends in marks.items()}
            return found
        last = self._last
        if last is None or len(last[1]) != q.shape[1] or time[0] < last[0]:
            self._restart(float(time[0]), q[0])
            last = (float(time[0]), q[0], True)
        if self._period is None:
            self._period = _period(time, rate)
        good = np.asarray(np.isfinite(q).all(axis=1) & np.isfinite(qd).all(axis=1))
        if not good.all():
            held = np.maximum.accumulate(np.where(good, np.arange(len(q)), -1))
            q = np.where((held < 0)[:, None], last[1], q[held])
            qd = np.where(good[:, None], qd, 0.0)
        speed = np.abs(qd).max(axis=1, initial=0.0)
        moving = np.asarray(speed > self._still)
        leaving = np.flatnonzero(moving & ~np.concatenate(([last[2]], moving[:-1])))
        step = np.where(moving[:, None], np.abs(np.diff(q, axis=0, prepend=last[1][None])), 0.0)
        passed = np.where(moving, np.diff(time, prepend=last[0]), 0.0)
        left = np.maximum.accumulate(np.where(speed > FIRM, time, self._left))
        self._left = float(left[-1])
        rest = time - left - (self._period or 0.0)
        self._last = (float(time[-1]), q[-1], bool(moving[-1]))
        events: dict[int, set[int]] = {k: {DEPARTURE} for k in leaving.tolist()}
        for index, kind in signals:
            events.setdefault(index, set()).add(kind)
        ends: dict[int, tuple[int, ...]] = {}
        done = 0
        for index in sorted(events):
            self._pass(*(values[done:index] for values in (q, step, passed, rest)))
            done = index
            point = q[index - 1] if index else last[1]
            kinds = self._new(events[index], float(time[index]), point)
            if kinds:
                ends[index] = self._ends(kinds)
        self._pass(*(values[done:] for values in (q, step, passed, rest)))
        return ends

    def _restart(self, time: float, q: Array) -> None:
        """Begin to look for cycles; marks before this are behind a jump of the clock."""
        self._before += len(self._marks)
        self._marks.clear()
        self._run = self._end = self._before
        self._program = self._found = None
        self._path = np.zeros(len(q))
        self._moved, self._rest, self._left = 0.0, 0.0, time
        self._low, self._high = q.copy(), q.copy()

    def _pass(self, q: Array, step: Array, passed: Array, rest: Array) -> None:
        if len(q):
            self._rest = max(self._rest, float(rest.max()))
            self._path = self._path + step.sum(axis=0)
            self._moved += float(passed.sum())
            np.minimum(self._low, q.min(axis=0), out=self._low)
            np.maximum(self._high, q.max(axis=0), out=self._high)

    def _new(self, kinds: set[int], time: float, q: Array) -> set[int]:
        """Make a mark of those kinds of which none is near; returns them."""
        for mark in reversed(self._marks):
            if time - mark.time >= _DENSEST:
                break
            kinds = kinds - mark.kinds
        if kinds:
            if self._marks:
                self._marks[-1].low, self._marks[-1].high = self._low, self._high
            self._low, self._high = q.copy(), q.copy()
            self._marks.append(_Place(kinds, time, q.copy(), self._path, self._moved, self._rest))
            self._rest = 0.0
            if len(self._marks) > MOST_MARKS:
                del self._marks[0]
                self._before += 1
        return kinds

    def _ends(self, kinds: set[int]) -> tuple[int, ...]:
        """The cycles that the newest mark completes."""
        now = self._before + len(self._marks) - 1
        starts: list[int] = []
        run = self._program_run(now) if PROGRAM in kinds else None
        if run is not None and run >= self._end:  # no cycle was found in it
            starts = [run]
        for kind in sorted(kinds):
            starts = starts or self._repeats(kind, now)
        if starts:
            self._end = now
        if PROGRAM in kinds:
            self._program = now
        if run is not None:
            self._run = now
        return tuple(now - start for start in starts)

    def _program_run(self, now: int) -> int | None:
        """Start of the run of a program that the newest mark ends; None if it was one move only.

        Clients that send every move as a program of its own start no cycle with each.
        """
        start = self._program
        if start is None or start < self._before:
            return None
        left = [self._mark(k).q for k in range(start, now) if DEPARTURE in self._mark(k).kinds]
        several = any(np.abs(q - left[0]).max() >= SAME_POINT for q in left[1:])
        return start if several or not left else None

    def _repeats(self, kind: int, now: int) -> list[int]:
        first = max(self._run, self._end, self._before)
        if not len(self._path):
            return []
        here = self._marks[-1]
        same = [
            k
            for k in range(now - 1, first - 1, -1)
            if kind in (mark := self._mark(k)).kinds
            and here.time - mark.time >= SHORTEST_CYCLE
            and np.abs(mark.q - here.q).max() < SAME_POINT
        ]
        if self._found is not None:
            known, shape = self._found
            for start in same if kind == known else ():
                if self._alike(shape, stretch := self._stretch(start, now)):
                    self._found = (kind, stretch)
                    return [start]
            begin = self._mark(first)
            if here.path.sum() - begin.path.sum() < 1.2 * shape.path.sum() + LEAST_PATH:
                return []  # nothing shorter within a cycle that may go on
        return self._new_cycle(kind, now, same, first)

    def _new_cycle(self, kind: int, now: int, same: list[int], first: int) -> list[int]:
        """The cycles of a repetition that begins to count; `same` are the marks to look at."""
        totals = {k: float(self._mark(k).path.sum()) for k in (*same, now)}
        for j in same:
            shape, length = self._stretch(j, now), totals[now] - totals[j]
            if length < LEAST_PATH or (kind == DEPARTURE and not self._is_work(j, now)):
                continue
            starts = [now, j]
            while True:
                tolerance = _ALIKE * length + len(shape.path) * self._tolerance
                before = [
                    k
                    for k in same
                    if k < starts[-1]
                    and abs(totals[starts[-1]] - totals[k] - length) <= tolerance
                    and self._mark(starts[-1]).time - self._mark(k).time >= SHORTEST_CYCLE
                    and self._alike(shape, self._stretch(k, starts[-1]))
                ]
                if not before:
                    break
                starts.append(before[0])
            count = len(starts) - 1
            whole = totals[now] - float(self._mark(first).path.sum())
            covered = totals[now] - totals[starts[-1]]
            if count >= 2 and (covered >= MOST * whole or count >= SURE_COUNT):
                self._found = (kind, shape)
                return starts[:0:-1]
        return []

    def _is_work(self, start: int, now: int) -> bool:
        """Whether the arm rests in between, elsewhere or for some time: no periodic function."""
        here = self._marks[-1]
        return here.rested >= LEAST_REST or any(
            np.abs(self._mark(k).q - here.q).max() >= SAME_POINT for k in range(start + 1, now)
        )

    def _mark(self, number: int) -> _Place:
        return self._marks[number - self._before]

    def _stretch(self, start: int, stop: int) -> _Stretch:
        """What lies between two marks."""
        rows = self._marks[start - self._before : stop - self._before]
        low, high = rows[0].low, rows[0].high
        for mark in rows[1:]:
            low, high = np.minimum(low, mark.low), np.maximum(high, mark.high)
        begin, end = rows[0], self._mark(stop)
        return _Stretch(end.path - begin.path, low, high, end.moved - begin.moved)

    @property
    def _tolerance(self) -> float:
        """Of a position where the motion turns, between samples [rad]."""
        return SAME_POINT + min((self._period or 0.0) ** 2, 0.1)

    def _alike(self, one: _Stretch, other: _Stretch) -> bool:
        near = self._tolerance
        longer = np.maximum(one.path, other.path)
        return bool(
            (np.abs(one.path - other.path) <= _ALIKE * longer + 2.0 * near).all()
            and (np.abs(one.low - other.low) <= near).all()
            and (np.abs(one.high - other.high) <= near).all()
            and abs(one.moved - other.moved)
            <= _ALIKE_TIME * max(one.moved, other.moved) + 2.0 * (self._period or 0.0)
        )


@dataclass(slots=True)
class _Place:
    """A mark.

    Attributes:
        kinds: of the events there.
        time: controller time [s].
        q: position [joints], rad.
        path: of every joint so far [joints], rad.
        moved: time in motion so far [s].
        rested: longest rest since the mark before [s].
        low, high: of the positions from here to the next mark [joints], rad.
    """

    kinds: set[int]
    time: float
    q: Array
    path: Array
    moved: float
    rested: float
    low: Array = None  # type: ignore[assignment]
    high: Array = None  # type: ignore[assignment]


def _joined(held: list[tuple[Array, Array, Array]]) -> tuple[Array, Array, Array]:
    """Times, positions and velocities of consecutive samples."""
    if len(held) == 1:
        return held[0]
    time, q, qd = (np.concatenate(each) for each in zip(*held, strict=True))
    return time, q, qd


class _Stretch(NamedTuple):
    """Path of every joint [rad], its lowest and highest position, and the time in motion [s]."""

    path: Array
    low: Array
    high: Array
    moved: float


def _period(time: Array, rate: float | None) -> float | None:
    if rate is not None and rate > 0.0:
        return 1.0 / rate
    steps = np.diff(time)
    steps = steps[(steps > 0.0) & (steps <= 1.0)]
    return float(steps[0]) if len(steps) else None


class CycleCounter:
    """Forms cycles from the readings at marks.

    Args:
        number: of the last cycle.
    """

    def __init__(self, number: int = 0) -> None:
        self.number = number
        self._marks: deque[tuple[float, MeterReading]] = deque(maxlen=MOST_MARKS)
        self._peaks: deque[float] = deque(maxlen=MOST_MARKS)
        """Largest total power from each mark on [W]."""

    def change_channels(self, convert: Callable[[MeterReading], MeterReading]) -> None:
        """Convert the readings at all marks to other channels."""
        marks = [(time, convert(reading)) for time, reading in self._marks]
        self._marks = deque(marks, maxlen=MOST_MARKS)

    def observe(self, total_power: float) -> None:
        """Include the largest total power [W] of some samples."""
        if self._peaks:
            self._peaks[-1] = max(self._peaks[-1], total_power)

    def mark(self, time: float, reading: MeterReading, mark: Mark) -> list[Cycle]:
        """Take a mark at a controller time [s]; returns the cycles that are complete with it.

        Those of which the beginning is not remembered any more are left out.
        """
        self._marks.append((time, reading))
        self._peaks.append(0.0)
        known, done = len(self._marks) - 1, []
        for begin, end in pairwise((*(back for back in mark.ends if back <= known), 0)):
            start, before = self._marks[-1 - begin]
            until = self._marks[-1 - end][1]
            peak = max(self._peaks[k] for k in range(-1 - begin, -1 - end))
            self.number += 1
            done.append(Cycle(self.number, start, until - before, peak, mark.program))
        return done


# CycleLog: a CSV file with one row per cycle.

MOST_WAITING = 10_000
"""Rows that wait in memory while the disk cannot be written; older ones are dropped."""


class CycleLog:
    """Appends a row when a cycle ends; rows that cannot be written wait.

    Args:
        path: of the CSV file; its folder is created if missing.

    Attributes:
        problem: why rows wait or are lost, None if all are written.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = user_path(path)
        self.problem: str | None = None
        self._waiting: deque[dict[str, object]] = deque()
        self._dropped = 0

    def append(self, cycle: Cycle, channels: Channels, ended: str) -> None:
        """Append a cycle that ended at an ISO 8601 time."""
        row = {"cycle": cycle.number, "ended": ended, **cycle.summary(channels)}
        self._waiting.append(
            {
                cell_text(name): cell_text(value) if isinstance(value, str) else value
                for name, value in row.items()
            }
        )
        if len(self._waiting) > MOST_WAITING:
            self._waiting.popleft()
            self._dropped += 1
        self.write()

    def write(self) -> None:
        """Write the rows that wait; a disk that cannot be written is a `problem`."""
        if not self._waiting:
            return
        try:
            self._write()
        except OSError as error:
            self.problem = f"{self.path}: cannot be written ({error.strerror or error})"
            if self._dropped:
                self.problem += f", {self._dropped} cycles are lost"
        else:
            self.problem = None

    def _write(self) -> None:
        check_target(self.path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab", buffering=0) as file:
            size = file.seek(0, os.SEEK_END)
            text = io.StringIO(newline="")
            names = list(self._waiting[0])
            if size:  # a log of an earlier version keeps its columns
                with self.path.open("rb") as before:
                    header = before.readline(MOST_WAITING).decode(errors="replace").split(",")
                known = [name.strip() for name in header]
                names = known if set(known) <= set(names) else names
            writer = csv.DictWriter(text, names, extrasaction="ignore")
            if size == 0:
                writer.writeheader()
            writer.writerows(self._waiting)
            data = text.getvalue().encode("utf-8")
            try:
                written = file.write(data)
                if written is not None and written < len(data):
                    file.write(data[written:])  # raises the error that cut the first part short
            except OSError:
                with suppress(OSError):
                    file.truncate(size)  # no half row
                raise
        self._waiting.clear()
