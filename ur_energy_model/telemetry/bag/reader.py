"""Reads telemetry and events from bags: rosbag2 directories with MCAP or sqlite3 storage."""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from urllib.parse import quote

import numpy as np

from ur_energy_model.errors import RecordingError
from ur_energy_model.telemetry.bag.cdr import CdrError
from ur_energy_model.telemetry.bag.files import bag_files
from ur_energy_model.telemetry.bag.layout import EVENTS_TOPIC, TELEMETRY_TOPIC, decode_event
from ur_energy_model.telemetry.bag.mcap_format import RECOVER
from ur_energy_model.telemetry.bag.mcap_reader import (
    McapReader,
    budget_of,
    metadata_behind_chunks,
)
from ur_energy_model.telemetry.bag.mcap_writer import LIBRARY
from ur_energy_model.telemetry.bag.message_decoder import (
    MAX_MESSAGE,
    DecodedSamples,
    SampleNumbers,
    SeenSamples,
    TelemetryDecoder,
    join_samples,
)
from ur_energy_model.telemetry.bag.message_encoder import DYNAMIC_JOINT_STATE
from ur_energy_model.telemetry.bag.metadata import (
    RECORD_NAME,
    info_of_custom,
    placed_record,
)
from ur_energy_model.telemetry.samples import Event, Gap, RecordingInfo, Telemetry, find_gaps
from ur_energy_model.telemetry.source import LinkStatus
from ur_energy_model.typing import Array, Bytes, Self
from ur_energy_model.yaml_reader import excerpt

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
    return reader.telemetry(join_samples(list(reader.parts())), last=True)


def iterate_bag(
    path: Path | str, fields: Sequence[str] | None = None, samples: int = BATCH
) -> Iterator[Telemetry]:
    """Samples of a bag in batches of bounded size, each sample once, with constant memory.

    A gap at index 0 of a batch lies in front of its first sample.

    Args:
        path: rosbag2 directory, or one of its .mcap files.
        fields: RTDE names to read, None for all.
        samples: size of a batch; the last one may be smaller.

    Raises:
        RecordingError: no such bag, not a bag, empty, damaged, or without telemetry.
    """
    reader = _BagReader(Path(path), fields)
    waiting: list[DecodedSamples] = []
    count = 0
    for part in reader.parts():
        waiting.append(part)
        count += len(part.stamp)
        while count > (size := reader.same_program(samples)):  # the last has the gap at the end
            joined = join_samples(waiting)
            yield reader.telemetry(joined.cut(slice(size)))
            waiting = [joined.cut(slice(size, None))]
            count -= size
    if any(len(part.stamp) for part in waiting):
        yield reader.telemetry(join_samples(waiting), last=True)


def read_info(path: Path | str) -> RecordingInfo:
    """Provenance of a bag: its robot, rate and setup, as far as they are known.

    Raises:
        RecordingError: no such bag, not a bag, empty, damaged, or without telemetry.
    """
    for batch in iterate_bag(path, (), 1):
        return batch.info
    raise RecordingError(path, "holds no samples", "record again")


def read_events(path: Path | str) -> list[Event]:
    """Events of a bag in order of their stamps.

    Raises:
        RecordingError: no such bag, not a bag, or damaged.
    """
    messages = (
        row.tobytes()
        for file in bag_files(Path(path))[0]
        for block in McapReader(file).blocks(EVENTS_TOPIC)
        for row in block.payload
    )
    try:
        return sorted(map(decode_event, messages), key=lambda event: event.stamp)
    except CdrError as error:
        raise RecordingError(path, f"has a malformed event ({error})", "record again") from None


_GROUP = 1000
"""Messages of one size in sqlite3 storage that are decoded together."""
_LARGEST = 1 << 30
"""Largest text or value that sqlite may build [bytes]; telemetry is checked before it is read."""
_LIMIT_LENGTH = 0
"""Number of that limit in sqlite's interface; Python names it from 3.11 on."""
_REMEDY = "convert the bag to MCAP storage"
_TABLES = {"topics": {"id", "name", "type"}, "messages": {"topic_id", "timestamp", "data"}}
_KINDS = "SELECT type, sql FROM sqlite_master WHERE name = ?"
_TOPICS = "SELECT id, name FROM topics WHERE substr(name, -length(?1)) = ?1 AND type = ?2"
_SIZES = (
    "SELECT rowid FROM messages WHERE topic_id = ? AND (typeof(data) != 'blob' "
    "OR length(data) NOT BETWEEN 12 AND ?)"
)
_MESSAGES = "SELECT data FROM messages WHERE topic_id = ? ORDER BY timestamp, rowid"


class _BagReader:
    """One pass over a bag; `chosen` are the RTDE names to read, None for all."""

    def __init__(self, path: Path, chosen: Sequence[str] | None) -> None:
        self._path, self._chosen = path, None if chosen is None else {*chosen}
        self._files, self._metadata = bag_files(path)
        self._budget = budget_of(path, self._files)
        self._decoder = TelemetryDecoder(path, chosen, self._budget)
        self._topic: str | None = None
        self._custom = {} if self._metadata is None else dict(self._metadata.custom)
        self._info: RecordingInfo | None = None
        self._has_own_gaps = False
        self._gaps: list[Gap] = []
        self._programs: list[tuple[int, str | None]] = []
        """Samples from which on a program was loaded, and its name."""
        self._ahead: list[tuple[int, Gap | str | None]] = []
        """Gaps and programs of samples that are not read yet, by their indexes in the file."""
        self._numbers = SampleNumbers(0)
        self._file_starts: list[int] = []
        self._seen = SeenSamples()
        self._decoded = self._repeated = self._reported = self._returned = 0
        self._last_time = math.nan

    def parts(self) -> Iterator[DecodedSamples]:
        """Decoded samples, some hundreds at a time.

        Raises:
            RecordingError: see `read_bag`.
        """
        mcap = self._metadata is None or self._metadata.storage == "mcap"
        for file in self._files:
            for part in self._mcap_parts(file) if mcap else self._sqlite_parts(file):
                new = self._seen.are_new(part.columns["timestamp"], part.stamp)
                self._place(self._numbers.count(self._ahead, new, part.stamp))
                self._decoded += int(np.count_nonzero(new))
                self._repeated += int(np.count_nonzero(~new))
                yield part if new.all() else part.cut(new)
        count = self._decoded + self._repeated
        if count == 0:
            problem = f"holds no samples on {TELEMETRY_TOPIC}"
            remedy = "record or import telemetry with ur_energy"
            raise RecordingError(self._path, problem, remedy)
        expected = 0 if self._metadata is None else self._metadata.samples
        if count < expected:
            problem = f"is truncated: {count} of {expected} samples are there"
            raise RecordingError(self._path, problem, f"copy the bag again, or {RECOVER}")

    def _mcap_parts(self, file: Path) -> Iterator[DecodedSamples]:
        reader, first = McapReader(file, self._budget), self._decoded
        self._numbers, self._ahead = SampleNumbers(first), []
        if first:
            self._file_starts.append(first)
        behind = list(metadata_behind_chunks(file, self._budget))
        self._take_metadata(behind, first)
        for block in reader.blocks(TELEMETRY_TOPIC):
            self._take_metadata(reader.take_metadata(), first)
            channel = reader.channels[block.channel]
            schema = reader.schemas.get(channel.schema_id)
            if schema is not None and schema.name == DYNAMIC_JOINT_STATE.name:
                own = reader.library == LIBRARY
                yield from self._samples(channel.topic, block.payload, constant_layout=own)
        if not behind:
            self._take_metadata(reader.take_metadata(), first)
        self._place(self._numbers.rest(self._ahead))
        # Programs of samples that an earlier file has too do not go on in the next one.
        self._programs = [program for program in self._programs if program[0] < self._decoded]

    def _sqlite_parts(self, path: Path) -> Iterator[DecodedSamples]:
        try:
            with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as file:
                if hasattr(file, "setlimit"):  # Python 3.11
                    file.setlimit(_LIMIT_LENGTH, _LARGEST)
                file.execute("PRAGMA trusted_schema = OFF")
                file.execute("PRAGMA temp_store = FILE")
                for table, needed in _TABLES.items():
                    kinds = file.execute(_KINDS, (table,))
                    plain = [str(sql).upper()[:12] for kind, sql in kinds if kind == "table"]
                    columns = file.execute(f"PRAGMA table_xinfo({table})").fetchall()
                    # Views and computed columns can make any amount of data.
                    computed = any(column[6] for column in columns)
                    lacks = needed - {column[1] for column in columns}
                    if plain != ["CREATE TABLE"] or lacks or computed:
                        problem = f"has no table '{table}' as bags have it"
                        raise RecordingError(path, problem, "name a bag that ROS 2 recorded")
                topics = file.execute(_TOPICS, (TELEMETRY_TOPIC, DYNAMIC_JOINT_STATE.name))
                for number, topic in topics.fetchall():
                    wrong = file.execute(_SIZES, (number, MAX_MESSAGE)).fetchone()
                    if wrong is not None:
                        problem = f"row {str(wrong[0])[:20]} of its messages is no telemetry"
                        raise RecordingError(path, problem, _REMEDY)
                    rows = enumerate(data for (data,) in file.execute(_MESSAGES, (number,)))
                    groups = groupby(rows, lambda row: (len(row[1]), row[0] // _GROUP))
                    for (size, _), group in groups:
                        data = np.frombuffer(b"".join(row for _, row in group), np.uint8)
                        messages = data.reshape(-1, size)
                        yield from self._samples(topic, messages, constant_layout=False)
        except (sqlite3.Error, UnicodeDecodeError, OverflowError) as error:
            raise RecordingError(path, f"cannot be read ({error})", _REMEDY) from None

    def _samples(
        self, topic: str, messages: Bytes, *, constant_layout: bool
    ) -> Iterator[DecodedSamples]:
        """Samples of messages [n, size] of a topic, which must be the one of all messages."""
        if self._topic not in (None, topic):
            both = f"{excerpt(str(self._topic))} and {excerpt(topic)}"
            remedy = "convert it to a bag for each arm"
            raise RecordingError(self._path, f"holds the samples of two arms: {both}", remedy)
        self._topic = topic
        return self._decoder.decode(messages, constant_layout=constant_layout)

    def _take_metadata(self, records: Iterable[tuple[str, Mapping[str, str]]], first: int) -> None:
        """Provenance and gaps of a file whose first sample has index `first` in the bag."""
        for name, values in records:
            if name == RECORD_NAME:
                self._has_own_gaps = True
                if not first:  # metadata.yaml has that at the end
                    self._custom.pop("program", None)
                self._custom = {**values, **self._custom}
                self._budget.spend(items=len(values))
            else:
                self._ahead += placed_record(name, values)

    def _place(self, records: Iterable[tuple[int, Gap | str | None]]) -> None:
        """Keep gaps and programs at their indexes in the bag."""
        for index, what in records:
            if not isinstance(what, Gap):
                self._programs.append((index, what))
            elif index >= self._returned:
                self._gaps.append(replace(what, index=index))

    def same_program(self, samples: int) -> int:
        """Number of samples, at most this one, until another program was loaded."""
        ahead = [index - self._returned for index, _ in self._programs]
        return min([samples, *(count for count in ahead if count > 0)])

    def telemetry(self, part: DecodedSamples, *, last: bool = False) -> Telemetry:
        """The next samples, with the gaps among and in front of them; behind the last ones too."""
        if self._info is None:
            self._info = info_of_custom(self._custom, str(self._path))
        while self._programs and self._programs[0][0] <= self._returned:
            self._info = replace(self._info, program=self._programs.pop(0)[1])
        clock = part.columns["timestamp"]
        gaps = self._gaps_of(clock, None if self._info.rate is None else 1 / self._info.rate, last)
        self._returned, self._last_time = self._returned + len(clock), float(clock[-1])
        repeated, self._reported = self._repeated - self._reported, self._repeated
        host = self._custom.get("stamps", "host") == "host"
        chosen = part.columns if self._chosen is None else self._chosen
        columns = {name: values for name, values in part.columns.items() if name in chosen}
        stamp = part.stamp if host else None
        return Telemetry(clock, columns, self._info, tuple(gaps), stamp, repeated)

    def _gaps_of(self, clock: Array, period: float | None, last: bool) -> list[Gap]:
        """Gaps in and in front of the next samples; behind them too, if they are the last ones."""
        first, stop = self._returned, self._returned + len(clock)
        before = [] if math.isnan(self._last_time) else [self._last_time]
        edges = np.concatenate([before, clock])
        if not self._has_own_gaps:  # another writer's: gaps are found from the clock
            return _shifted(find_gaps(edges, period), -len(before))
        own = [gap for gap in self._gaps if first <= gap.index < stop + last]
        gaps = _shifted(own, -first)
        self._gaps = [gap for gap in self._gaps if gap.index >= stop]
        if self._repeated:  # which shift the numbers of samples
            ends, starts = np.append(clock, np.nan), np.append(self._last_time, clock)
            gaps = [g for g in gaps if g.start == starts[g.index] or g.end == ends[g.index]]
        known = {gap.index for gap in gaps}
        for start in self._file_starts:
            place = start - first + len(before)
            if first <= start < stop and start - first not in known:
                jump = find_gaps(edges[place - 1 : place + 1], period)
                gaps += [replace(gap, index=start - first, cause=MISSING_FILE) for gap in jump]
        self._file_starts = [start for start in self._file_starts if start >= stop]
        if not self._seen.in_order:
            known = {gap.index for gap in gaps}
            found = _shifted(find_gaps(edges, period), -len(before))
            gaps += [gap for gap in found if gap.index not in known]
        return sorted(gaps, key=lambda gap: gap.index)


def _shifted(gaps: Iterable[Gap], shift: int) -> list[Gap]:
    return [replace(gap, index=gap.index + shift) for gap in gaps]


# BagSource: a recorded bag as a TelemetrySource.

DEFAULT_PERIOD = 0.002
"""Assumed period of a bag with a single sample [s]."""
_FIRST_SAMPLES = 100
"""Samples from which the period of a bag is measured: not every bag states its rate."""


class BagSource:
    """A bag as a TelemetrySource; entering raises RecordingError where it cannot be read.

    Args:
        path: of the bag.
        fields: names to read, None for all.
        real_time: return samples at the rate they were recorded at (pauses last a second at most).
        batch_seconds: time span of a batch, by the period of the first samples.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        fields: Sequence[str] | None = None,
        real_time: bool = False,
        batch_seconds: float = 0.05,
    ) -> None:
        self.info: RecordingInfo
        self.fields: tuple[str, ...]
        self._path, self._chosen, self._batch_seconds = Path(path), fields, batch_seconds
        self._real_time = real_time
        self._next: Telemetry | None = None
        self._due = 0.0
        self._last: float | None = None

    def __enter__(self) -> Self:
        steps = np.diff(next(iterate_bag(self._path, (), _FIRST_SAMPLES)).time)
        steps = steps[steps > 0.0]
        period = float(np.median(steps)) if steps.size else DEFAULT_PERIOD
        samples = max(1, round(self._batch_seconds / period))
        self._batches = iterate_bag(self._path, self._chosen, samples)
        self._next = next(self._batches)
        self.info, self.fields = self._next.info, tuple(self._next.columns)
        self._due = time.monotonic()
        return self

    @property
    def status(self) -> LinkStatus:
        """A bag is always connected."""
        return LinkStatus()

    def take_events(self) -> list[Event]:
        """No events; `read_events` returns those recorded in the bag."""
        return []

    def read(self, timeout: float) -> Telemetry | None:
        """Next batch; None if it is not due within the timeout.

        Raises:
            EOFError: the bag has ended or is closed.
            RecordingError: the bag is damaged.
        """
        batch = self._next
        if batch is None:
            raise EOFError
        if self._real_time:
            start = self._last if self._last is not None else float(batch.time[0])
            due = self._due + min(max(float(batch.time[-1]) - start, 0.0), 1.0)
            wait = due - time.monotonic()
            time.sleep(max(min(wait, timeout), 0.0))
            if wait > timeout:
                return None
            self._due, self._last = due, float(batch.time[-1])
        self._next = next(self._batches, None)
        return batch

    def close(self) -> None:
        """Release the bag."""
        self._next = None

    def __exit__(self, *_: object) -> None:
        self.close()
