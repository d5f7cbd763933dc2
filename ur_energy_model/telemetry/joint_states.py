# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Samples from the JointState messages of a driver, with losses counted."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.telemetry.bag.cdr import CdrError, CdrParser, Template
from ur_energy_model.telemetry.gaps import NO_LOSSES, TYPICAL_LIMIT, Gap
from ur_energy_model.telemetry.samples import (
    RecordingInfo,
    Telemetry,
    equal_runs,
    slices_between,
)
from ur_energy_model.typing import Array, Bytes, Indices

MOST_FORMATS = 16  # formats that are kept; each publisher of a topic has its format
LARGEST = 1_000_000
"""Size of the largest message that is decoded [bytes]; messages of an arm are below 1000."""
NAMES_SHOWN = 3
LETTERS_SHOWN = 40
"""Joint names, and letters of each, that a message to the user quotes."""
CLOCK_SET_AFTER = 1.0
"""Once stamps were older than the last sample for this long, the clock was set back [s]."""
OUT_OF_ORDER = 10_000_000
"""Time by which a message of a driver may be older than the message before, though the
driver's clock was not set [ns]."""
LONGEST_PAUSE = 0.25
"""Shortest time between two arrivals that is a pause [s]; messages are taken 25 times a second."""
AHEAD = 2.0
"""Once stamps advanced this much more than the host's clock, their clock was set forward [s]."""
STEPS_KEPT = 200
FEWEST_STEPS = 5
"""Steps between stamps whose median is the driver's period, and the fewest that determine it."""
MOST_REASONS = 20  # reasons of refusals that are counted separately

_OTHER = "cannot be used for other reasons"
_REPEATED = "repeat the stamp of the one before: is the clock of the driver paused?"
_NOT_NEWER = "are older than others: does a second driver publish this arm?"
_OUT_OF_ORDER = "are older than the one before, of the same driver"
_NO_EFFORT = "have no efforts, which method: current needs"


class JointStateFormat(NamedTuple):
    """Messages with the same joint names, in the same order, and the same numbers of values.

    Attributes:
        names: names of the joints, in the order of the values.
        template: template of the messages.
    """

    names: tuple[str, ...]
    template: Template


class JointStateFormats:
    """The formats seen on one topic, by the size of their messages."""

    def __init__(self) -> None:
        self._known: dict[int, list[JointStateFormat]] = {}

    def run(self, messages: Sequence[bytes], start: int) -> tuple[JointStateFormat, int]:
        """Format of the message at `start`, and the index behind the last one of its format.

        Raises:
            CdrError: the message is not a JointState, or too large.
        """
        size = len(messages[start])
        raw = as_array(messages[start : start + 1])
        known = self._known.get(size, [])
        found = next((each for each in known if each.template.matches(raw)[0]), None)
        if found is None:
            if sum(map(len, self._known.values())) >= MOST_FORMATS:
                self._known.clear()
            if size > LARGEST:
                raise CdrError("message is too large for an arm")
            parser = CdrParser(messages[start])
            _stamp, _frame, names, *blocks = parser.take("tsSddd")
            template = Template(messages[start], tuple(blocks), tuple(parser.padding))
            found = JointStateFormat(names, template)
            self._known.setdefault(size, []).append(found)
        stop = start + 1
        while stop < len(messages) and len(messages[stop]) == size:
            stop += 1
        same = found.template.matches(as_array(messages[start:stop]))
        return found, start + (len(same) if same.all() else int(np.argmin(same)))


def as_array(messages: Sequence[bytes]) -> Bytes:
    """Messages of one size as bytes [n, size]."""
    return np.frombuffer(b"".join(messages), np.uint8).reshape(len(messages), -1)


class JointStateStream:
    """Samples of one arm from the messages of a joint_states topic.

    Args:
        joints: joint names of the arm, prefix included.
        effort_field: RTDE name of the efforts: actual_current or
            actual_current_as_torque.
        require_effort: refuse messages without efforts.
        source: name of the topic.

    Attributes:
        info: provenance, whose source is the name of the topic.
        fields: RTDE names of the columns.
        refused: number of messages that cannot be used, by reason; a reason continues a
            sentence that begins with "messages on <topic>".
        foreign: number of messages that name none of the joints.
        duplicates: number of messages with the stamp of the sample before.
        losses: the gaps between the samples that were read.
        clock_steps: number of times that the clock of the stamps was set.
        problem: why no message of the last call could be used; None if one could.
        effort_missing: whether the last sample has no efforts.
    """

    def __init__(
        self,
        joints: Sequence[str],
        effort_field: str,
        *,
        require_effort: bool = False,
        source: str = "joint_states",
    ) -> None:
        self._joints = tuple(joints)
        self._require_effort = require_effort
        self._formats = JointStateFormats()
        # Messages of several publishers and formats interleave. Each run of one format is
        # decoded at once into rows of this type, and these are ordered, checked and
        # counted together. `lost` is the number of messages lost so far, by the
        # publisher's numbers. It can be compared within one `era` only, and not where the
        # era is -1.
        values = (len(self._joints),)
        self._dtype = np.dtype(
            [("stamp", "i8"), ("lost", "i8"), ("era", "i8")]
            + [(name, "f8", values) for name in _VALUES]
        )
        # The last sample: row, time [ns] and arrival [s].
        self._last: Any = None
        self._last_time = 0
        self._last_arrival = 0.0
        self._steps: deque[int] = deque(maxlen=STEPS_KEPT)  # clock steps [ns]
        # The last message: number, messages lost up to this message, and era.
        self._number: int | None = None
        self._number_lost = 0
        self._era = 0
        self.info = RecordingInfo(source=source)
        self.fields = ("actual_q", "actual_qd", effort_field)
        self.refused: Counter[str] = Counter()
        self.foreign = 0
        self.duplicates = 0
        self.clock_steps = 0
        self.losses = NO_LOSSES
        self.problem: str | None = None
        self.effort_missing = False

    def read(
        self,
        messages: Sequence[bytes],
        numbers: Sequence[int] | None,
        arrival: float,
        publishers: int = 1,
    ) -> list[Telemetry]:
        """Samples of the next messages, a batch for each run with or without efforts.

        Args:
            messages: encoded messages, at least one, in the order of their arrival.
            numbers: numbers of the messages, as counted by their only publisher; None if
                the middleware does not number them, or if there are several publishers.
            arrival: time at which they were taken [s], by a clock that is never set.
            publishers: number of publishers of the topic now.
        """
        self.problem = None
        rows = self._usable(self._decoded(messages, numbers))
        batches: list[Telemetry] = []
        for run in self._runs(rows["stamp"], publishers):
            batches += self._samples(rows[run], arrival, publishers)
        return batches

    def _decoded(
        self, messages: Sequence[bytes], numbers: Sequence[int] | None
    ) -> NDArray[np.void]:
        """Rows of the messages that have these joints, in their order; others are counted."""
        lost, era = self._known_losses(numbers, len(messages))
        parts = [np.empty(0, self._dtype)]
        start = 0
        while start < len(messages):
            try:
                found, stop = self._formats.run(messages, start)
            except CdrError as error:
                self._refuse(f"cannot be decoded: {error}", 1)
                start += 1
                continue
            problem = self._problem_of(found)
            if problem is None:
                rows = self._rows_of(found, as_array(messages[start:stop]))
                rows["lost"] = lost[start:stop]
                rows["era"] = era[start:stop]
                parts.append(rows)
            elif set(self._joints).isdisjoint(found.names):
                self.foreign += stop - start
                self.problem = problem
            else:
                self._refuse(problem, stop - start)
            start = stop
        return np.concatenate(parts)

    def _rows_of(self, found: JointStateFormat, messages: Bytes) -> NDArray[np.void]:
        """Stamps and values of messages [n, size] of one format; efforts may be NaN."""
        stamp, values = found.template.decode(messages)
        count = len(found.names)
        order = [found.names.index(joint) for joint in self._joints]
        rows = np.empty(len(messages), self._dtype)
        rows["stamp"] = stamp
        # The values of a message: positions, velocities, and efforts if it has any.
        positions = values[:, :count]
        velocities = values[:, count : 2 * count]
        efforts = values[:, 2 * count :]
        rows["position"] = positions[:, order]
        rows["velocity"] = velocities[:, order]
        rows["effort"] = np.nan
        if efforts.shape[1] == count:
            rows["effort"] = efforts[:, order]
        return rows

    def _usable(self, rows: NDArray[np.void]) -> NDArray[np.void]:
        """The rows with a stamp and finite values; other rows are counted as refused."""
        has_position = np.isfinite(rows["position"]).all(axis=1)
        has_velocity = np.isfinite(rows["velocity"]).all(axis=1)
        has_effort = np.isfinite(rows["effort"]).all(axis=1)
        has_motion = has_position & has_velocity
        has_stamp = rows["stamp"] > 0
        self._refuse("have no time stamp", np.count_nonzero(~has_stamp))
        not_finite = np.count_nonzero(has_stamp & ~has_motion)
        self._refuse("have positions or velocities that are not finite", not_finite)
        usable = has_stamp & has_motion
        if self._require_effort:
            self._refuse(_NO_EFFORT, np.count_nonzero(usable & ~has_effort))
            usable &= has_effort
        return np.asarray(rows[usable])

    def _runs(self, stamp: Indices, publishers: int) -> Iterator[slice]:
        """Samples between steps back of the clock of the only driver; all with several drivers."""
        cuts: list[int] = []
        if publishers == 1:
            cuts = (np.flatnonzero(np.diff(stamp) < -OUT_OF_ORDER) + 1).tolist()
        return slices_between(cuts, len(stamp))

    def _problem_of(self, found: JointStateFormat) -> str | None:
        """Why messages of a format are no samples of this arm; None if they are samples."""
        names = found.names
        joints = self._joints
        (_, positions), (_, velocities), _ = found.template.blocks
        missing = [name for name in joints if name not in names]
        if missing:
            return (
                f"lack {_quoted(missing)} (they name {_quoted(names)}); check tf_prefix"
            )
        if any(names.count(name) > 1 for name in joints):
            return "name a joint twice"
        if not velocities:
            return "have no velocities, which the energy model needs"
        for count, what in ((positions, "positions"), (velocities, "velocities")):
            if count != len(names):
                return f"have {count} {what} for {len(names)} joints"
        return None

    def _refuse(self, reason: str, count: int | np.integer[Any]) -> None:
        """Count messages that cannot be used; after many reasons, all further reasons are one."""
        if count:
            known = reason in self.refused or len(self.refused) < MOST_REASONS
            self.refused[reason if known else _OTHER] += int(count)
            self.problem = reason

    def _known_losses(
        self, numbers: Sequence[int] | None, count: int
    ) -> tuple[Indices, Indices]:
        """Messages lost so far at each message, and the era of each, by their numbers.

        Args:
            numbers: numbers of the messages [count], as counted by their publisher; None
                if they are not known.
            count: number of the messages.

        Returns:
            Number of messages lost so far [count], and number of the era [count]: -1
            without numbers. An era ends where a publisher starts to count anew.
        """
        if numbers is None:
            self._number = None
            return np.zeros(count, dtype=np.intp), np.full(count, -1, dtype=np.intp)
        known = np.array(numbers, dtype=np.int64)
        before = known[0] if self._number is None else self._number
        steps = np.diff(known, prepend=before)
        if self._number is None:
            self._era += 1
            steps[0] = 1
        lost = self._number_lost + np.cumsum(np.maximum(steps - 1, 0))
        # a publisher that was restarted counts anew
        era = self._era + np.cumsum(steps <= 0)
        self._number = int(known[-1])
        self._number_lost = int(lost[-1])
        self._era = int(era[-1])
        return lost, era

    def _samples(
        self, rows: NDArray[np.void], arrival: float, publishers: int
    ) -> list[Telemetry]:
        """Batches of the rows whose stamps advance.

        Args:
            rows: rows of the messages, at least one, in the order of their arrival.
            arrival: time at which they were taken [s].
            publishers: number of publishers of the topic.
        """
        last = self._last
        elapsed = arrival - self._last_arrival
        if last is None:  # as if a sample had come just before the first one
            last = rows[0].copy()
            last["stamp"] -= 1
            elapsed = 0.0
        set_back = self._is_set_back(rows["stamp"], last["stamp"], elapsed, publishers)
        before = rows["stamp"][0] - 1 if set_back else last["stamp"]
        rows = rows[self._advancing(rows["stamp"], before, publishers)]
        if not len(rows):
            return []
        self.problem = None
        steps, clock_set = self._time_steps(rows, last, elapsed, set_back=set_back)
        self.clock_steps += int(np.count_nonzero(clock_set))
        if self._last is None:
            self._last_time = int(rows["stamp"][0])
        time = self._last_time + np.cumsum(steps)
        own_steps = steps[(steps > 0) & ~clock_set]
        self._steps.extend(own_steps[-STEPS_KEPT:].tolist())
        gaps = self._gaps(rows, last, time, steps, clock_set)
        self.losses = self.losses.after(gaps)
        self._last = rows[-1]
        self._last_time = int(time[-1])
        self._last_arrival = arrival
        return self._batches(rows, 1e-9 * time.astype(np.float64), gaps)

    def _time_steps(
        self, rows: NDArray[np.void], last: Any, elapsed: float, *, set_back: bool
    ) -> tuple[Indices, NDArray[np.bool_]]:
        """Steps of the time of the samples.

        The time follows the stamps, which the driver made, except where these advance
        further than the host's own clock allows, or go back: there the driver's clock was
        set, and the numbers of the messages or the host's clock bridge the step, so that
        the time goes on.

        Args:
            rows: rows whose stamps advance [n >= 1].
            last: the row before the first of these rows.
            elapsed: time between the arrivals [s].
            set_back: whether the driver's clock was set back in front of the first row.

        Returns:
            Step from the sample before to each sample [n], ns, which is 0 for the first
            sample of all; and whether the driver's clock was set in it [n].
        """
        steps = np.diff(rows["stamp"], prepend=last["stamp"])
        clock_set = steps > round((elapsed + AHEAD) * 1e9)
        clock_set[0] |= set_back
        if self._last is None:
            steps[0] = 0
        if clock_set.any():
            bridges = self._bridges(rows, last, elapsed)
            steps = np.where(clock_set, bridges, steps)
        return steps, clock_set

    @staticmethod
    def _is_set_back(stamp: Indices, last: int, elapsed: float, publishers: int) -> bool:
        """Whether the clock of the stamps was set back.

        Two drivers of one arm interleave: the one that is ahead advances the time, and
        the messages of the other one are older. A clock that was set back looks like that
        at first, but then nothing newer comes any more: after CLOCK_SET_AFTER without
        newer stamps, the older ones are the new time. With a single driver they are at
        once.

        Args:
            stamp: stamps of the next rows [n], ns.
            last: stamp of the last sample [ns].
            elapsed: time since its arrival [s].
            publishers: number of publishers of the topic.
        """
        if publishers == 1:
            return bool(stamp[0] < last - OUT_OF_ORDER)
        return bool(stamp.max() < last) and elapsed > CLOCK_SET_AFTER

    def _advancing(
        self, stamp: Indices, before: int, publishers: int
    ) -> NDArray[np.bool_]:
        """Which rows [n] are later than all rows in front of them; other rows are counted.

        Args:
            stamp: stamps of the rows [n], ns.
            before: stamp in front of the first row [ns].
            publishers: number of publishers of the topic.
        """
        highest = np.maximum.accumulate(np.append(before, stamp))[:-1]
        is_newer: NDArray[np.bool_] = stamp > highest
        is_same = stamp == highest
        if is_same.any():
            self.duplicates += int(np.count_nonzero(is_same))
            self.problem = _REPEATED
        reason = _OUT_OF_ORDER if publishers == 1 else _NOT_NEWER
        self._refuse(reason, np.count_nonzero(~is_newer & ~is_same))
        return is_newer

    def _gaps(
        self,
        rows: NDArray[np.void],
        last: Any,
        time: Indices,
        steps: Indices,
        clock_set: NDArray[np.bool_],
    ) -> list[Gap]:
        """Gaps in front of rows.

        Args:
            rows: rows of the samples [n].
            last: the row before the first of these rows.
            time: times of the samples [n], ns.
            steps: steps of the time in front of each sample [n], ns.
            clock_set: whether the driver's clock was set in a step [n].
        """
        gaps: list[Gap] = []
        for i, missing in self._missing(rows, last, steps, clock_set):
            cause = "messages lost" if missing else "no messages"
            if clock_set[i]:
                cause = "clock set"
            start = 1e-9 * float(time[i] - steps[i])
            end = 1e-9 * float(time[i])
            gaps.append(Gap(i, start, end, missing, cause))
        return gaps

    def _batches(
        self, rows: NDArray[np.void], time: Array, gaps: Sequence[Gap]
    ) -> list[Telemetry]:
        """Rows as batches of samples, one for each run with or without efforts.

        Args:
            rows: rows of the samples [n].
            time: times of the samples [n], s.
            gaps: gaps in front of the samples, with indexes among them.
        """
        has_effort = np.isfinite(rows["effort"]).all(axis=1)
        self.effort_missing = not has_effort[-1]
        batches: list[Telemetry] = []
        for part in equal_runs(has_effort):
            columns: dict[str, Array] = {}
            for field, name in zip(self.fields, _VALUES, strict=True):
                if name != "effort" or has_effort[part.start]:
                    columns[field] = np.ascontiguousarray(rows[name][part])
            inside = [gap for gap in gaps if part.start <= gap.index < part.stop]
            moved = tuple(replace(gap, index=gap.index - part.start) for gap in inside)
            stamp = rows["stamp"][part]
            batches.append(Telemetry(time[part], columns, self.info, moved, stamp))
        return batches

    def _bridges(self, rows: NDArray[np.void], last: Any, elapsed: float) -> Indices:
        """Time to each row since the one before, if the driver's clock was set in between [ns].

        Where the messages are numbered and did not pause, it is a period for each number.
        Else it is the time between two arrivals by the host's clock, less the time of the
        messages behind the row.

        Args:
            rows: rows of the samples [n].
            last: the row before the first of these rows.
            elapsed: time between the arrivals [s].
        """
        behind = rows["stamp"][-1] - rows["stamp"]
        bridges: Indices = np.maximum(round(elapsed * 1e9) - behind, 1)
        if len(self._steps) < FEWEST_STEPS or elapsed > LONGEST_PAUSE:
            return bridges
        numbers = 1 + np.diff(rows["lost"], prepend=last["lost"])
        period = float(np.median(self._steps))
        by_number = np.round(period * numbers).astype(bridges.dtype)
        is_numbered = _is_same_era(rows, last)
        return np.asarray(np.where(is_numbered, by_number, bridges), dtype=np.int64)

    def _missing(
        self,
        rows: NDArray[np.void],
        last: Any,
        steps: Indices,
        clock_set: NDArray[np.bool_],
    ) -> list[tuple[int, int]]:
        """Rows in front of which time or samples are missing, and how many samples.

        Args:
            rows: rows of the samples [n].
            last: the row before the first of these rows.
            steps: steps of the time in front of each sample [n], ns.
            clock_set: whether the driver's clock was set in a step [n].

        Returns:
            Index of each such row, and the number of samples missing in front of it.
        """
        estimated: Array = np.zeros(len(rows))
        long = clock_set.copy()
        if len(self._steps) >= FEWEST_STEPS:
            periods = steps / float(np.median(self._steps))
            long |= periods > TYPICAL_LIMIT
            # A step that is long because its message was late is followed by a short one.
            late = np.clip(1.0 - np.append(periods[1:], 1.0), 0.0, 1.0)
            estimated = np.maximum(np.floor(periods - late + 0.25) - 1, 0)
        # Numbers of a publisher count what the middleware lost; the period counts what
        # the driver itself left out. A loss shows in both, so that the larger one holds.
        lost = np.diff(rows["lost"], prepend=last["lost"])
        by_number = np.where(_is_same_era(rows, last), lost, 0)
        # How many the driver left out while its clock was set is not known.
        by_period = np.where(clock_set, 0, estimated)
        missing = np.maximum(by_number, by_period).astype(int)
        if self._last is None:
            missing[0] = 0
            long[0] = False
        places = np.flatnonzero(long | (missing > 0)).tolist()
        return [(i, int(missing[i])) for i in places]


_VALUES = ("position", "velocity", "effort")


def _is_same_era(rows: NDArray[np.void], last: Any) -> NDArray[np.bool_]:
    """Whether each row [n] and the one before were numbered by one run of a publisher."""
    is_same = np.diff(rows["era"], prepend=last["era"]) == 0
    return np.asarray(is_same & (rows["era"] >= 0))


def _quoted(names: Sequence[str]) -> str:
    """Names of joints for a message to the user, the first ones and the number of the others."""
    quoted = [ascii(name)[1:-1][:LETTERS_SHOWN] for name in names[:NAMES_SHOWN]]
    shown = ", ".join(quoted) or "no joints"
    more = len(names) - NAMES_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown
