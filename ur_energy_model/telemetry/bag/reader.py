# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Reads the telemetry of bags: rosbag2 directories with MCAP or sqlite3 storage."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.errors import InputError, RecordingError
from ur_energy_model.telemetry.bag.decoding import (
    MAX_MESSAGE,
    STAMP,
    Samples,
    TelemetryDecoder,
    are_packed,
    unpacked_messages,
)
from ur_energy_model.telemetry.bag.files import bag_files
from ur_energy_model.telemetry.bag.mcap_format import RECOVER
from ur_energy_model.telemetry.bag.mcap_reader import McapReader
from ur_energy_model.telemetry.bag.mcap_writer import LIBRARY
from ur_energy_model.telemetry.bag.messages import (
    DYNAMIC_JOINT_STATE,
    TELEMETRY_TOPIC,
)
from ur_energy_model.telemetry.bag.metadata import (
    RECORD_NAME,
    Note,
    info_of_custom,
    notes_of_custom,
)
from ur_energy_model.telemetry.bag.sqlite_reader import lacks_its_log, sqlite_messages
from ur_energy_model.telemetry.bag.storage import StorageKind, budget_of, plain_file
from ur_energy_model.telemetry.gaps import Gap, find_gaps, with_found_gaps
from ur_energy_model.telemetry.plausibility import IMPOSSIBLE_SHARE
from ur_energy_model.telemetry.repeated_samples import SeenSamples
from ur_energy_model.telemetry.samples import (
    RecordingInfo,
    Telemetry,
    join_columns,
)
from ur_energy_model.typing import Array, Bytes, Mask
from ur_energy_model.yaml_nodes import excerpt

BATCH = 5000
MISSING_FILE = "a file between is no longer part of the bag"
"""Cause of a gap between two files."""


def read_bag(path: Path | str, fields: Sequence[str] | None = None) -> Telemetry:
    """All samples of a bag, each once and bit for bit as it was recorded.

    Args:
        path: rosbag2 directory, or one of its .mcap files.
        fields: RTDE names to read, None for all; those that the bag lacks are left out.

    Raises:
        RecordingError: no such bag, not a bag, empty, damaged, or without telemetry.
    """
    reader = _BagReader(Path(path), fields)
    return reader.telemetry(join_columns(list(reader.parts())), last=True)


def iterate_bag(
    path: Path | str, fields: Sequence[str] | None = None, samples: int = BATCH
) -> Iterator[Telemetry]:
    """Samples of a bag in batches with constant memory.

    Args:
        path: rosbag2 directory, or one of its .mcap files.
        fields: RTDE names to read, None for all; those that the bag lacks are left out.
        samples: number of samples of a batch; it has fewer before another program, and at
            the end.

    Yields:
        Batches in order; a gap at index 0 of a batch lies in front of its first sample.

    Raises:
        RecordingError: no such bag, not a bag, empty, damaged, or without telemetry.
    """
    reader = _BagReader(Path(path), fields)
    waiting = list[Samples]()
    count = 0
    for part in reader.parts():
        waiting.append(part)
        count += len(part[STAMP])
        size = reader.same_program(samples)
        # At least one sample stays, because the last batch has the gap at the end.
        while count > size:
            joined = join_columns(waiting)
            yield reader.telemetry(_cut(joined, slice(size)))
            waiting = [_cut(joined, slice(size, None))]
            count -= size
            size = reader.same_program(samples)
    if count:
        yield reader.telemetry(join_columns(waiting), last=True)


def read_info(path: Path | str) -> RecordingInfo:
    """Provenance of a bag, as far as it is known: robot, rate, setup.

    Args:
        path: rosbag2 directory, or one of its files.

    Returns:
        Robot and recording; what the bag does not state is None.

    Raises:
        RecordingError: no such bag, not a bag, empty, damaged, or without telemetry.
    """
    return next(iterate_bag(path, (), 1)).info


def recorded_robot(recordings: Sequence[Path]) -> str:
    """The robot that the first readable recording names, such as "ur5e".

    Args:
        recordings: folders or files of bags; all but the last may be damaged.

    Raises:
        InputError: no recording names a robot, or no recording can be read.
    """
    source: Path | str = "--robot"
    for bag in recordings:
        try:
            name = read_info(bag).robot
        except RecordingError:  # one of several may be damaged
            if bag == recordings[-1]:
                raise
            continue
        if name is not None:
            return name
        source = bag
    problem = "is missing, and there is no model"
    if recordings:
        problem = "does not name the robot"
    remedy = "give --robot NAME, such as --robot ur5e, or a model file"
    raise InputError(source, problem, remedy)


# Each sample once, with the notes that belong to it.


def _cut(samples: Samples, part: slice | Mask) -> Samples:
    """Some of the samples, by a slice or a mask [n]."""
    return {name: values[part] for name, values in samples.items()}


def _distinct_repetitions(samples: Samples, new: Mask) -> int:
    """Number of samples that were taken for repeated ones, although their values are new.

    These follow a sample of the same controller time and host time, and have other
    values.

    Args:
        samples: consecutive samples [n].
        new: mask of the samples that are not taken for repeated samples [n].
    """
    rows = np.flatnonzero(~new)
    rows = rows[rows > 0]
    has_other_values = np.zeros(len(rows), dtype=bool)
    has_same_times = np.ones(len(rows), dtype=bool)
    for name, values in samples.items():
        here = values[rows]
        before = values[rows - 1]
        with np.errstate(invalid="ignore"):
            differs = (here != before) & ~(np.isnan(here) & np.isnan(before))
        differs = differs.reshape(len(rows), -1).any(axis=1)
        if name in ("timestamp", STAMP):
            has_same_times &= ~differs
        else:
            has_other_values |= differs
    return int(np.count_nonzero(has_same_times & has_other_values))


class NotePlacer:
    """Finds the samples of a bag to which the notes of one file belong.

    Notes name samples by their indexes among the samples that the file was recorded with.
    A bag has each sample once: some samples of the file may be in an earlier file too,
    and samples that the file has twice were copied into it later.

    Args:
        first: number of samples of the bag in front of the file.

    Attributes:
        recorded: number of the file's samples so far, without copies within the file.
        ahead: notes of samples that have not come yet, with their indexes in the file.
    """

    def __init__(self, first: int) -> None:
        self.recorded = 0
        self.ahead: list[tuple[int, Note]] = []
        self._next = first  # index of the next new sample in the bag
        self._newest = np.iinfo(np.int64).min  # latest host time so far [ns]

    def count(self, new: Mask, stamp: NDArray[np.int64]) -> list[tuple[int, Note]]:
        """Count the next samples of the file.

        Args:
            new: whether each sample is in the bag for the first time [n].
            stamp: host times of the samples [n], ns.

        Returns:
            The notes of these samples, with indexes in the bag.
        """
        # A sample that is not new, but later than all before it in this file, is in an
        # earlier file: it was recorded, and is no copy.
        was_recorded = new
        if not new.all():
            newest = np.maximum.accumulate(np.append(self._newest, stamp))
            was_recorded = new | (stamp > newest[:-1])
        stop = self.recorded + int(np.count_nonzero(was_recorded))
        found = []
        if any(index < stop for index, _ in self.ahead):
            # Notes whose samples have passed already belong in front of these samples.
            found = self.rest(self.recorded - 1)
            # Indexes of each of these samples, and of the sample behind them.
            in_file = self.recorded + np.append(0, np.cumsum(was_recorded))
            in_bag = self._next + np.append(0, np.cumsum(new))
            for index, note in self.ahead:
                if self.recorded <= index < stop:
                    row = np.searchsorted(in_file, index)
                    found.append((int(in_bag[row]), note))
            self.ahead = [(index, note) for index, note in self.ahead if index >= stop]
        self.recorded = stop
        self._next += int(np.count_nonzero(new))
        self._newest = max(self._newest, int(stamp.max()))
        return found

    def rest(self, last: int | None = None) -> list[tuple[int, Note]]:
        """Notes in front of samples that do not come any more, with indexes in the bag.

        Args:
            last: largest index in the file; None for the end of the file.
        """
        if last is None:
            last = self.recorded
        shift = self._next - self.recorded
        return [(index + shift, note) for index, note in self.ahead if index <= last]


# One pass over a bag.


class _BagReader:
    """One pass over a bag.

    Args:
        path: rosbag2 directory, or one of its files.
        chosen: RTDE names to read, None for all.
    """

    def __init__(self, path: Path, chosen: Sequence[str] | None) -> None:
        self._path = path
        self._chosen = None if chosen is None else {*chosen}
        self._files, self._metadata = bag_files(path)
        self._budget = budget_of(path, self._files)
        self._decoder = TelemetryDecoder(path, chosen, self._budget)
        self._topic: str | None = None
        self._custom = {} if self._metadata is None else dict(self._metadata.custom)
        self._info: RecordingInfo | None = None
        # Notes about samples that were not returned yet, by the indexes of the samples in
        # the bag: gaps, programs that were loaded from a sample on, and begins of files.
        self._has_own_gaps = False
        self._gaps: list[Gap] = []
        self._programs: list[tuple[int, str | None]] = []
        self._file_starts: list[int] = []
        self._notes = NotePlacer(0)
        self._seen = SeenSamples()
        # Numbers of samples.
        self._decoded = 0  # without repeated samples
        self._repeated = 0  # left out, because the bag has them already
        self._reported = 0  # number of repeated samples that batches have stated
        self._returned = 0
        self._distinct = 0  # repeated by their times, although their values differ
        self._last_time = math.nan  # controller time of the last sample returned [s]

    def parts(self) -> Iterator[Samples]:
        """Decoded samples, some hundreds at a time, each sample once.

        Raises:
            RecordingError: a file is damaged, the bag has no samples or fewer than it
                states, or its times do not distinguish them.
        """
        without_log = list[Path]()
        for file in self._files:
            with plain_file(file, self._budget) as (plain, kind):
                if kind == "sqlite3" and lacks_its_log(plain):
                    without_log.append(file)
                for part in self._parts_of(plain, kind):
                    new = self._seen.are_new(part["timestamp"], part[STAMP])
                    self._place(self._notes.count(new, part[STAMP]))
                    self._decoded += int(np.count_nonzero(new))
                    self._repeated += int(np.count_nonzero(~new))
                    if not new.all():
                        self._distinct += _distinct_repetitions(part, new)
                        part = _cut(part, new)
                    yield part
        self._check_samples(without_log)

    def _check_samples(self, without_log: Sequence[Path]) -> None:
        """Refuse a bag without samples, with too coarse times, or with fewer than it states.

        Args:
            without_log: databases that may lack their last samples.
        """
        count = self._decoded + self._repeated
        if count == 0:
            problem = f"holds no samples on {TELEMETRY_TOPIC}"
            remedy = "record or import telemetry with ur_energy"
            raise RecordingError(self._path, problem, remedy)
        if self._distinct > max(1.0, IMPOSSIBLE_SHARE * count):
            problem = (
                f"{self._distinct} of {count} samples have the times of the one before, and other "
                "values: its clock is too coarse"
            )
            remedy = "make it anew with finer times, or import it as CSV with --rate HZ"
            raise RecordingError(self._path, problem, remedy, field="timestamp")
        expected = 0 if self._metadata is None else self._metadata.samples
        if count < expected:
            problem = f"is truncated: {count} of {expected} samples are there"
            remedy = f"copy the bag again, or {RECOVER}"
            if without_log:
                remedy = f"copy {without_log[0].name}-wal too, which was left beside it"
            raise RecordingError(self._path, problem, remedy)

    def _parts_of(self, file: Path, kind: StorageKind) -> Iterator[Samples]:
        """Decoded samples of a storage file that is not packed as a whole."""
        if kind == "mcap":
            yield from self._mcap_parts(file)
            return
        name = DYNAMIC_JOINT_STATE.name
        for topic, messages in sqlite_messages(file, TELEMETRY_TOPIC, name, MAX_MESSAGE):
            yield from self._samples(topic, messages, constant_layout=False)

    def _mcap_parts(self, file: Path) -> Iterator[Samples]:
        """Decoded samples of an MCAP file; its notes are placed, its provenance is kept."""
        reader = McapReader(file, self._budget)
        first = self._decoded
        self._notes = NotePlacer(first)
        if first:
            self._file_starts.append(first)
        reader.note_indexed_metadata()
        for block in reader.blocks(TELEMETRY_TOPIC):
            self._take_metadata(reader.take_metadata(), first)
            channel = reader.channels[block.channel]
            schema = reader.schemas.get(channel.schema_id)
            if schema is not None and schema.name == DYNAMIC_JOINT_STATE.name:
                is_own = reader.library == LIBRARY
                yield from self._samples(
                    channel.topic, block.payload, constant_layout=is_own
                )
        self._take_metadata(reader.take_metadata(), first)
        self._place(self._notes.rest())
        # Programs of samples that an earlier file has too do not go on in the next one.
        self._programs = [
            (index, name) for index, name in self._programs if index < self._decoded
        ]

    def _samples(
        self, topic: str, messages: Bytes, *, constant_layout: bool
    ) -> Iterator[Samples]:
        """Decoded samples of messages.

        Args:
            topic: topic of the messages, the same for all messages of the bag.
            messages: CDR [n, size], or packed one by one.
            constant_layout: whether messages of one size have one layout.

        Raises:
            RecordingError: the topic is another one than before.
        """
        if self._topic not in (None, topic):
            both = f"{excerpt(str(self._topic))} and {excerpt(topic)}"
            problem = f"holds the samples of two arms: {both}"
            raise RecordingError(self._path, problem, "convert it to a bag for each arm")
        self._topic = topic
        if not are_packed(messages):
            yield from self._decoder.decode(messages, constant_layout=constant_layout)
            return
        for unpacked in unpacked_messages(self._path, messages, self._budget):
            yield from self._decoder.decode(unpacked, constant_layout=False)

    def _take_metadata(
        self, records: Iterable[tuple[str, Mapping[str, str]]], first: int
    ) -> None:
        """Provenance and gaps of a file whose first sample has index `first` in the bag."""
        for name, values in records:
            if name == RECORD_NAME:
                self._has_own_gaps = True
                if not first:  # metadata.yaml has that at the end
                    self._custom.pop("program", None)
                self._custom = {**values, **self._custom}
                self._budget.spend(items=len(values))
            else:
                self._notes.ahead += notes_of_custom(name, values)

    def _place(self, notes: Iterable[tuple[int, Note]]) -> None:
        """Keep notes with indexes in the bag; gaps in front of returned samples are too late."""
        for index, note in notes:
            if not isinstance(note, Gap):
                self._programs.append((index, note))
            elif index >= self._returned:
                self._gaps.append(replace(note, index=index))

    def same_program(self, samples: int) -> int:
        """Number of samples from the next one on that have the same program, up to `samples`."""
        for index, _ in self._programs:
            ahead = index - self._returned
            if 0 < ahead < samples:
                samples = ahead
        return samples

    def telemetry(self, part: Samples, *, last: bool = False) -> Telemetry:
        """The next samples, with the gaps among and in front of them.

        Args:
            part: values of the samples by field, and their host times by STAMP.
            last: whether they are the last samples, which have the gap at the end of the
                bag, too.
        """
        if self._info is None:
            self._info = info_of_custom(self._custom, str(self._path))
        while self._programs:
            index, name = self._programs[0]
            if index > self._returned:
                break
            self._info = replace(self._info, program=name)
            self._programs.pop(0)
        clock = part["timestamp"]
        host = part.pop(STAMP)
        period = None if self._info.rate is None else 1 / self._info.rate
        gaps = self._gaps_of(clock, period, last)
        self._returned += len(clock)
        self._last_time = float(clock[-1])
        repeated = self._repeated - self._reported
        self._reported = self._repeated
        has_host_stamps = self._custom.get("stamps", "host") == "host"
        stamp = host if has_host_stamps else None
        if self._chosen is not None and "timestamp" not in self._chosen:
            del part["timestamp"]  # which is always read
        return Telemetry(clock, part, self._info, gaps, stamp, repeated)

    def _gaps_of(self, clock: Array, period: float | None, last: bool) -> tuple[Gap, ...]:
        """Gaps in and in front of the next samples: recorded ones, and those by the clock.

        Args:
            clock: controller times of the samples [n], s.
            period: nominal sample period [s], None if there is none.
            last: whether they are the last samples, which have the gap at the end of the
                bag, too.

        Returns:
            Gaps in order of their indexes among these samples.
        """
        first = self._returned
        stop = first + len(clock)
        noted = self._noted_gaps(clock, last)
        # The clock shows the gaps of other writers, between files, and between samples in
        # disorder.
        begins = {start - first for start in self._file_starts if first <= start < stop}
        self._file_starts = [start for start in self._file_starts if start >= stop]
        has_gaps_anywhere = not self._has_own_gaps or not self._seen.in_order
        if not begins and not has_gaps_anywhere:
            return with_found_gaps(noted, ())
        found: list[Gap] = []
        for gap in find_gaps(clock, period, before=self._last_time):
            is_between_files = gap.index in begins
            if is_between_files and self._has_own_gaps:
                found.append(replace(gap, cause=MISSING_FILE))
            elif is_between_files or has_gaps_anywhere:
                found.append(gap)
        return with_found_gaps(noted, found)

    def _noted_gaps(self, clock: Array, last: bool) -> list[Gap]:
        """Recorded gaps of the next samples, see `_gaps_of`; they are not kept any longer."""
        first = self._returned
        stop = first + len(clock)
        end = stop + 1 if last else stop
        noted = [gap for gap in self._gaps if first <= gap.index < end]
        noted = [replace(gap, index=gap.index - first) for gap in noted]
        self._gaps = [gap for gap in self._gaps if gap.index >= stop]
        if not self._repeated:
            return noted
        # Repeated samples shift the indexes: the times have to agree, too.
        starts = np.append(self._last_time, clock)
        ends = np.append(clock, np.nan)

        def agrees(gap: Gap) -> bool:
            """Whether a gap begins or ends with the samples beside it."""
            return bool(gap.start == starts[gap.index] or gap.end == ends[gap.index])

        return [gap for gap in noted if agrees(gap)]
