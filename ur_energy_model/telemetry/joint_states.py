"""Samples from the JointState messages of a driver, with losses counted."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.telemetry.bag.cdr import CdrError, CdrParser, Template
from ur_energy_model.telemetry.samples import Gap, RecordingInfo, Telemetry, equal_runs
from ur_energy_model.typing import Array, Bytes, Indices, Mask

# JointStateFormat: sensor_msgs/JointState messages of a driver, decoded as arrays.

MOST_FORMATS = 16
"""Formats that are kept; a topic has one for each of its publishers."""
LARGEST = 1_000_000
"""Size of the largest message that is decoded [bytes]; that of an arm is below 1000."""
NAMES_SHOWN, LETTERS_SHOWN = 3, 40
"""Joint names, and letters of each, that a message to the user quotes."""


@dataclass(frozen=True)
class JointStateFormat:
    """Messages with the same joint names, in the same order, and the same numbers of values.

    Attributes:
        names: joint names.
        template: encoded message.
    """

    names: tuple[str, ...]
    template: Template

    @classmethod
    def of_message(cls, message: bytes) -> JointStateFormat:
        """Format of an encoded message.

        Raises:
            CdrError: it is not a JointState, or too large.
        """
        if len(message) > LARGEST:
            raise CdrError("message is too large for an arm")
        parser = CdrParser(message)
        parser.u32()
        parser.u32()
        parser.string()
        names = parser.strings()
        blocks = tuple(parser.doubles() for _ in range(3))
        return cls(names, Template(message, blocks, tuple(parser.padding)))

    @property
    def counts(self) -> tuple[int, int, int]:
        """Numbers of positions, velocities and efforts."""
        position, velocity, effort = (count for _, count in self.template.blocks)
        return position, velocity, effort

    def names_any(self, joints: Sequence[str]) -> bool:
        """Whether the messages name at least one of these joints."""
        return not set(joints).isdisjoint(self.names)

    def problem(self, joints: Sequence[str]) -> str | None:
        """Why these messages are not samples of an arm with these joints; None if they are."""
        missing = [name for name in joints if name not in self.names]
        if missing:
            return f"lack {_quoted(missing)} (they name {_quoted(self.names)}); check tf_prefix"
        if any(self.names.count(name) > 1 for name in joints):
            return "name a joint twice"
        positions, velocities, _ = self.counts
        if not velocities:
            return "have no velocities, which the energy model needs"
        for count, what in ((positions, "positions"), (velocities, "velocities")):
            if count != len(self.names):
                return f"have {count} {what} for {len(self.names)} joints"
        return None

    def decode(
        self, messages: Sequence[bytes], joints: Sequence[str]
    ) -> tuple[NDArray[np.int64], Array, Array, Array]:
        """Stamps [n] (ns), positions, velocities and efforts, each [n, joints].

        Efforts are NaN where the messages have none. The format must have no `problem`.
        """
        order = [self.names.index(name) for name in joints]
        stamp, values = self.template.decode(as_array(messages))
        count = len(self.names)
        position, velocity = values[:, :count], values[:, count : 2 * count]
        effort = values[:, 2 * count :]
        if effort.shape[1] != count:
            effort = np.full((len(stamp), count), np.nan)
        return stamp, position[:, order], velocity[:, order], effort[:, order]


class JointStateFormats:
    """The formats seen on one topic, by the size of their messages."""

    def __init__(self) -> None:
        self._known: dict[int, list[JointStateFormat]] = {}

    def run(self, messages: Sequence[bytes], start: int) -> tuple[JointStateFormat, int]:
        """Format of the message at `start`, and the index behind the last one of its format.

        Raises:
            CdrError: it is not a JointState.
        """
        found = self._format_of(messages[start])
        size = len(messages[start])
        stop = start + 1
        while stop < len(messages) and len(messages[stop]) == size:
            stop += 1
        same = found.template.matches(as_array(messages[start:stop]))
        return found, start + (len(same) if same.all() else int(np.argmin(same)))

    def _format_of(self, message: bytes) -> JointStateFormat:
        known = self._known.setdefault(len(message), [])
        raw = as_array([message])
        for each in known:
            if each.template.matches(raw)[0]:
                return each
        if sum(map(len, self._known.values())) >= MOST_FORMATS:
            self._known.clear()
        found = JointStateFormat.of_message(message)
        self._known.setdefault(len(message), []).append(found)
        return found


def as_array(messages: Sequence[bytes]) -> Bytes:
    """Messages of one size as bytes [n, size]."""
    return np.frombuffer(b"".join(messages), np.uint8).reshape(len(messages), -1)


def _quoted(names: Sequence[str]) -> str:
    shown = ", ".join(ascii(name)[1:-1][:LETTERS_SHOWN] for name in names[:NAMES_SHOWN])
    shown = shown or "no joints"
    return shown + (f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else "")


class JointStateRows(NamedTuple):
    """Messages that name all joints, in order.

    Attributes:
        stamp: [n], ns since the epoch.
        lost: messages lost so far, by the publisher's numbers [n].
        era: [n]; `lost` can be compared within an era only; -1 where nothing is known.
        position, velocity, effort: [n, joints].
    """

    stamp: NDArray[np.int64]
    lost: Indices
    era: Indices
    position: Array
    velocity: Array
    effort: Array

    def select(self, keep: Mask) -> JointStateRows:
        """The rows with keep [n] True."""
        return JointStateRows(*(column[keep] for column in self))  # type: ignore[arg-type]

    @classmethod
    def joined(cls, parts: Sequence[JointStateRows]) -> JointStateRows:
        """Rows of consecutive parts, at least one."""
        return cls(*map(np.concatenate, zip(*parts, strict=True)))


def missing_between(steps: Array) -> Indices:
    """Number of samples missing in each step [n], from its length in periods.

    A step that is long because its message was late is followed by a short one.
    """
    following = np.append(steps[1:], 1.0)
    late = np.clip(1.0 - following, 0.0, 1.0)
    missing = np.floor(steps - late + 0.25).astype(np.intp) - 1
    return np.maximum(missing, 0)


CLOCK_SET_AFTER = 1.0
"""Stamps that are older than the last sample for this long are those of a clock set back [s]."""
AHEAD = 2.0
"""Stamps that advance this much more than the host's clock are those of a clock set forward [s]."""
STEPS_KEPT = 200
"""Number of steps between stamps whose median is the driver's period."""
FEWEST_STEPS = 5
"""Least number of steps that determines the period."""

MOST_REASONS = 20
"""Reasons of refusals that are counted separately."""

_OTHER = "cannot be used for other reasons"
_REPEATED = "repeat the stamp of the one before: is the clock of the driver paused?"
_NOT_NEWER = "are older than others: does a second driver publish this arm?"
_NO_EFFORT = "have no efforts, which method: current needs"


@dataclass(frozen=True)
class _Last:
    """The last sample: stamp, time [ns], arrival [s]; `lost` and `era` as in JointStateRows."""

    stamp: int
    time: int
    arrival: float
    lost: int
    era: int


class JointStateStream:
    """Samples of one arm from the messages of a joint_states topic.

    Args:
        joints: joint names of the arm, prefix included.
        effort_field: RTDE name of the efforts: actual_current or actual_current_as_torque.
        require_effort: refuse messages without efforts.
        source: name of the topic.

    Attributes:
        info: name of the topic.
        fields: RTDE names of the columns.
        refused: number of messages that cannot be used, by reason; a reason continues a sentence
            that begins with "messages on <topic>".
        foreign: number of messages that name none of the joints.
        duplicates: number of messages with the stamp of the sample before.
        lost: number of samples missing between those that were read.
        lost_seconds: time of the gaps between the samples that were read [s].
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
        self._effort_field, self._require_effort = effort_field, require_effort
        self._formats = JointStateFormats()
        self._last: _Last | None = None
        self._steps: deque[int] = deque(maxlen=STEPS_KEPT)
        self._number: int | None = None
        self._number_lost = self._era = 0
        self.info = RecordingInfo(source=source)
        self.fields = ("actual_q", "actual_qd", effort_field)
        self.refused: Counter[str] = Counter()
        self.foreign = self.duplicates = self.lost = self.clock_steps = 0
        self.lost_seconds = 0.0
        self.problem: str | None = None
        self.effort_missing = False

    @property
    def period(self) -> float | None:
        """Period of the driver's messages [s]; None before it is known."""
        return 1e-9 * float(np.median(self._steps)) if len(self._steps) >= FEWEST_STEPS else None

    def read(
        self, messages: Sequence[bytes], numbers: Sequence[int] | None, arrival: float
    ) -> list[Telemetry]:
        """Samples of the next messages, a batch for each run with or without efforts.

        Args:
            messages: at least one, encoded, in the order of their arrival.
            numbers: of the messages, as their only publisher counts them; None if the middleware
                does not tell, or if there are several publishers.
            arrival: time at which they were taken [s], by a clock that is never set.
        """
        self.problem = None
        lost, era = self._known_losses(numbers, len(messages))
        parts: list[JointStateRows] = []
        start = 0
        while start < len(messages):
            try:
                found, stop = self._formats.run(messages, start)
            except CdrError as error:
                self._refuse(f"cannot be decoded: {error}", 1)
                start += 1
                continue
            problem = found.problem(self._joints)
            if problem is None:
                values = found.decode(messages[start:stop], self._joints)
                parts.append(
                    JointStateRows(values[0], lost[start:stop], era[start:stop], *values[1:])
                )
            elif found.names_any(self._joints):
                self._refuse(problem, stop - start)
            else:
                self.foreign += stop - start
                self.problem = problem
            start = stop
        if not parts:
            return []
        rows = self._usable(JointStateRows.joined(parts))
        return self._samples(rows, arrival) if len(rows.stamp) else []

    def _refuse(self, reason: str, count: int) -> None:
        if count:
            known = reason in self.refused or len(self.refused) < MOST_REASONS
            self.refused[reason if known else _OTHER] += count
            self.problem = reason

    def _known_losses(self, numbers: Sequence[int] | None, count: int) -> tuple[Indices, Indices]:
        """Messages lost before each message, and the era of each [count], from their numbers."""
        if numbers is None:
            self._number = None
            return np.zeros(count, dtype=np.intp), np.full(count, -1, dtype=np.intp)
        known = np.array(numbers, dtype=np.int64)
        steps = np.diff(known, prepend=known[0] if self._number is None else self._number)
        if self._number is None:
            self._era += 1
            steps[0] = 1
        lost = self._number_lost + np.cumsum(np.maximum(steps - 1, 0))
        era = self._era + np.cumsum(steps <= 0)  # a publisher that was restarted counts anew
        self._number, self._number_lost, self._era = int(known[-1]), int(lost[-1]), int(era[-1])
        return lost.astype(np.intp), era.astype(np.intp)

    def _usable(self, rows: JointStateRows) -> JointStateRows:
        """The rows with a stamp and finite values."""
        finite = np.isfinite(rows.position).all(axis=1) & np.isfinite(rows.velocity).all(axis=1)
        stamped = rows.stamp > 0
        self._refuse("have no time stamp", int(np.count_nonzero(~stamped)))
        self._refuse(
            "have positions or velocities that are not finite",
            int(np.count_nonzero(stamped & ~finite)),
        )
        keep = stamped & finite
        if self._require_effort:
            has_effort = np.isfinite(rows.effort).all(axis=1)
            self._refuse(_NO_EFFORT, int(np.count_nonzero(keep & ~has_effort)))
            keep &= has_effort
        return rows.select(keep)

    def _samples(self, rows: JointStateRows, arrival: float) -> list[Telemetry]:
        """Batches of the rows whose stamps advance."""
        last = self._last
        # Stamps order the samples, not arrivals. Two drivers of one arm interleave: the one that
        # is ahead advances the time, and the messages of the other one are older. A clock that
        # was set back looks like that at first, but then nothing newer comes any more: after
        # CLOCK_SET_AFTER without any, the older stamps are the new time.
        set_back = (
            last is not None
            and int(rows.stamp.max()) < last.stamp
            and arrival - last.arrival > CLOCK_SET_AFTER
        )
        before = int(rows.stamp[0]) - 1 if last is None or set_back else last.stamp
        highest = np.maximum.accumulate(np.concatenate([[before], rows.stamp]))[:-1]
        newer, same = rows.stamp > highest, rows.stamp == highest
        if same.any():
            self.duplicates += int(np.count_nonzero(same))
            self.problem = _REPEATED
        self._refuse(_NOT_NEWER, int(np.count_nonzero(~newer & ~same)))
        if not newer.any():
            return []
        rows = rows.select(newer)
        self.problem = None
        return self._batches(rows, arrival, set_back)

    def _batches(self, rows: JointStateRows, arrival: float, set_back: bool) -> list[Telemetry]:
        """Batches of rows with increasing stamps."""
        last = self._last
        if last is None:
            last = _Last(int(rows.stamp[0]), int(rows.stamp[0]), arrival, 0, -1)
        # The time of the samples follows the stamps, which the driver made, except where these
        # advance further than the host's own clock allows, or go back: there the driver's clock was
        # set, and the host's clock bridges the step, so that the time goes on.
        steps = np.diff(rows.stamp, prepend=last.stamp)
        elapsed = arrival - last.arrival
        clock_set = steps > round((elapsed + AHEAD) * 1e9)
        clock_set[0] |= set_back
        if self._last is None:
            clock_set[0] = False
        steps = np.where(clock_set, round(elapsed * 1e9), steps)
        self.clock_steps += int(np.count_nonzero(clock_set))
        time = last.time + np.cumsum(steps)
        self._steps.extend(steps[(steps > 0) & ~clock_set][-STEPS_KEPT:].tolist())
        gaps = self._gaps(rows, last, time, clock_set)
        self._last = _Last(
            int(rows.stamp[-1]), int(time[-1]), arrival, int(rows.lost[-1]), int(rows.era[-1])
        )
        has_effort = np.atleast_1d(np.isfinite(rows.effort).all(axis=1))
        self.effort_missing = not bool(has_effort[-1])
        batches = []
        for part in equal_runs(has_effort):
            columns = {"actual_q": rows.position[part], "actual_qd": rows.velocity[part]}
            if has_effort[part.start]:
                columns[self._effort_field] = rows.effort[part]
            inside = tuple(
                replace(gap, index=gap.index - part.start)
                for gap in gaps
                if part.start <= gap.index < part.stop
            )
            stamp = rows.stamp[part]
            batches.append(Telemetry(1e-9 * time[part], columns, self.info, inside, stamp))
        return batches

    def _gaps(
        self, rows: JointStateRows, last: _Last, time: NDArray[np.int64], clock_set: Mask
    ) -> list[Gap]:
        """Gaps in front of and between the rows; counts the losses."""
        steps = np.diff(time, prepend=last.time)
        period = self.period
        estimated = np.zeros(len(rows.stamp), dtype=np.int64)
        long = clock_set.copy()
        if period is not None:
            estimated = missing_between(1e-9 * steps / period)
            long |= 1e-9 * steps > 2.5 * period
        # Numbers of a publisher count what the middleware lost; the period counts what the driver
        # itself left out. A loss shows in both, so that the larger one holds.
        eras = np.diff(rows.era, prepend=last.era)
        known = (eras == 0) & (rows.era >= 0)
        missing = np.maximum(np.where(known, np.diff(rows.lost, prepend=last.lost), 0), estimated)
        if self._last is None:
            missing[0], long[0] = 0, False
        self.lost += int(missing.sum())
        gaps = []
        for i in np.flatnonzero(long | (missing > 0)).tolist():
            start, end = 1e-9 * float(time[i] - steps[i]), 1e-9 * float(time[i])
            cause = (
                "clock set" if clock_set[i] else "messages lost" if missing[i] else "no messages"
            )
            self.lost_seconds += 1e-9 * float(steps[i])
            gaps.append(Gap(i, start, end, int(missing[i]), cause))
        return gaps
