"""Reads telemetry and events from bags: rosbag2 directories with MCAP or sqlite3 storage."""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import quote

import numpy as np

from ur_energy_model.errors import RecordingError
from ur_energy_model.telemetry.bag.cdr import CdrError
from ur_energy_model.telemetry.bag.file_contents import metadata_behind_chunks
from ur_energy_model.telemetry.bag.files import bag_files
from ur_energy_model.telemetry.bag.layout import EVENTS_TOPIC, TELEMETRY_TOPIC, decode_event
from ur_energy_model.telemetry.bag.mcap_format import RECOVER
from ur_energy_model.telemetry.bag.mcap_reader import McapReader
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
    GAP_RECORD_NAME,
    MAX_GAPS,
    MAX_PROVENANCE,
    PROGRAM_RECORD_NAME,
    RECORD_NAME,
    BagMetadata,
    gap_of_custom,
    info_of_custom,
    program_of_custom,
)
from ur_energy_model.telemetry.samples import Event, Gap, RecordingInfo, Telemetry, find_gaps
from ur_energy_model.telemetry.source import LinkStatus
from ur_energy_model.typing import Array, Bytes, Self
from ur_energy_model.yaml_reader import excerpt

# Telemetry messages of bags with sqlite3 storage, hostile ones too, in bounded memory.

_GROUP = 1000
"""Messages of one size that are decoded together."""
_LARGEST = 1 << 30
"""Largest text or value that sqlite may build [bytes]; telemetry is checked before it is read."""
_LIMIT_LENGTH = 0
"""Number of that limit in sqlite's interface; Python names it from 3.11 on."""
_REMEDY = "convert the bag to MCAP storage"
_TABLES = {"topics": {"id", "name", "type"}, "messages": {"topic_id", "timestamp", "data"}}
_TOPICS = "SELECT id, name FROM topics WHERE substr(name, -length(?1)) = ?1 AND type = ?2"
_SIZES = (
    "SELECT rowid FROM messages WHERE topic_id = ? AND (typeof(data) != 'blob' OR length(data) > ?)"
)
_MESSAGES = "SELECT data FROM messages WHERE topic_id = ? ORDER BY timestamp, rowid"


def sqlite_messages(files: Sequence[Path]) -> Iterator[tuple[str, Bytes]]:
    """Telemetry messages in order, as arrays [n, size] of equal size, with the name of the topic.

    Args:
        files: of the bag, in order.

    Raises:
        RecordingError: a file cannot be read, is no bag, or has rows that are no messages.
    """
    for path in files:
        yield from _file_messages(path)


def _file_messages(path: Path) -> Iterator[tuple[str, Bytes]]:
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as file:
            yield from _messages(path, file)
    except (sqlite3.Error, UnicodeDecodeError, OverflowError) as error:
        raise RecordingError(path, f"cannot be read ({error})", _REMEDY) from None


def _messages(path: Path, file: sqlite3.Connection) -> Iterator[tuple[str, Bytes]]:
    _check_tables(path, file)
    found = file.execute(_TOPICS, (TELEMETRY_TOPIC, DYNAMIC_JOINT_STATE.name)).fetchall()
    for number, topic in found:
        wrong = file.execute(_SIZES, (number, MAX_MESSAGE)).fetchone()
        if wrong is not None:
            problem = f"row {str(wrong[0])[:20]} of its messages is no telemetry"
            raise RecordingError(path, problem, _REMEDY)
        group: list[bytes] = []
        for (data,) in file.execute(_MESSAGES, (number,)):
            if group and (len(data) != len(group[0]) or len(group) == _GROUP):
                yield topic, _stack(group)
                group = []
            group.append(data)
        if group:
            yield topic, _stack(group)


def _check_tables(path: Path, file: sqlite3.Connection) -> None:
    """Accept only plain tables: views and computed columns can make any amount of data."""
    if hasattr(file, "setlimit"):  # Python 3.11
        file.setlimit(_LIMIT_LENGTH, _LARGEST)
    file.execute("PRAGMA trusted_schema = OFF")
    file.execute("PRAGMA temp_store = FILE")
    for table, needed in _TABLES.items():
        kinds = file.execute(
            "SELECT type, sql FROM sqlite_master WHERE name = ?", (table,)
        ).fetchall()
        plain = len(kinds) == 1 and kinds[0][0] == "table"
        plain = plain and str(kinds[0][1]).upper().startswith("CREATE TABLE")
        columns = file.execute(f"PRAGMA table_xinfo({table})").fetchall() if plain else []
        names = {column[1] for column in columns}
        if not needed <= names or any(column[6] for column in columns):
            raise RecordingError(
                path, f"has no table '{table}' as bags have it", "name a bag that ROS 2 recorded"
            )


def _stack(group: list[bytes]) -> Bytes:
    return np.frombuffer(b"".join(group), np.uint8).reshape(len(group), -1)


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
        count += len(part)
        while count > (size := reader.same_program(samples)):  # the last has the gap at the end
            joined = join_samples(waiting)
            yield reader.telemetry(joined.cut(slice(size)))
            waiting = [joined.cut(slice(size, None))]
            count -= size
    if any(map(len, waiting)):
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


@dataclass
class _BagReader:
    """One pass over a bag.

    Attributes:
        path: of the bag.
        wanted: RTDE names to read, None for all.
    """

    path: Path
    wanted: Sequence[str] | None
    _topic: str | None = None
    _custom: dict[str, str] = field(default_factory=dict)
    _gaps: list[Gap] = field(default_factory=list)
    _programs: list[tuple[int, str | None]] = field(default_factory=list)
    """Samples from which on a program was loaded, and its name."""
    _ahead: list[tuple[int, Gap | str | None]] = field(default_factory=list)
    """Gaps and programs of samples that are not read yet, by their indexes in the file."""
    _numbers: SampleNumbers = field(default_factory=lambda: SampleNumbers(0))
    _file_starts: list[int] = field(default_factory=list)
    _has_own_gaps: bool = False
    _info: RecordingInfo | None = None
    _seen: SeenSamples = field(default_factory=SeenSamples)
    _decoded: int = 0
    _repeated: int = 0
    _reported: int = 0
    _returned: int = 0
    _last_time: float = math.nan

    def parts(self) -> Iterator[DecodedSamples]:
        """Decoded samples, some hundreds at a time.

        Raises:
            RecordingError: see `read_bag`.
        """
        files, metadata = bag_files(self.path)
        decoder = TelemetryDecoder(self.path, self.wanted)
        try:
            for part in self._parts(files, metadata, decoder):
                new = self._seen.are_new(part.columns["timestamp"], part.stamp)
                self._place(self._numbers.count(self._ahead, new, part.stamp))
                self._decoded += int(np.count_nonzero(new))
                if new.all():
                    yield part
                else:
                    self._repeated += int(np.count_nonzero(~new))
                    yield part.cut(new)
        finally:
            self._seen.close()
        count = self._decoded + self._repeated
        if count == 0:
            raise RecordingError(
                self.path,
                f"holds no samples on {TELEMETRY_TOPIC}",
                "record or import telemetry with ur_energy",
            )
        expected = 0 if metadata is None else metadata.samples
        if count < expected:
            raise RecordingError(
                self.path,
                f"is truncated: {count} of {expected} samples are there",
                f"copy the bag again, or {RECOVER}",
            )

    def _parts(
        self, files: Sequence[Path], metadata: BagMetadata | None, decoder: TelemetryDecoder
    ) -> Iterator[DecodedSamples]:
        if metadata is not None:
            self._custom = dict(metadata.custom)
        if metadata is not None and metadata.storage != "mcap":
            for topic, messages in sqlite_messages(files):
                self._expect_one_arm(topic)
                yield from decoder.decode(messages, constant_layout=False)
            return
        for file in files:
            yield from self._file_parts(McapReader(file), decoder)

    def _file_parts(
        self, reader: McapReader, decoder: TelemetryDecoder
    ) -> Iterator[DecodedSamples]:
        definitions, first = reader.definitions, self._decoded
        self._numbers, self._ahead = SampleNumbers(first), []
        if first:
            self._file_starts.append(first)
        behind = list(metadata_behind_chunks(reader.path))
        self._take_metadata(behind, first)
        for block in reader.blocks(TELEMETRY_TOPIC):
            self._take_metadata(definitions.take_metadata(), first)
            channel = definitions.channels[block.channel]
            schema = definitions.schemas.get(channel.schema_id)
            if schema is not None and schema.name == DYNAMIC_JOINT_STATE.name:
                self._expect_one_arm(channel.topic)
                own = definitions.library == LIBRARY
                yield from decoder.decode(block.payload, constant_layout=own)
        if not behind:
            self._take_metadata(definitions.take_metadata(), first)
        self._place(self._numbers.rest(self._ahead))
        # Programs of samples that an earlier file has too do not go on in the next one.
        self._programs = [program for program in self._programs if program[0] < self._decoded]

    def _expect_one_arm(self, topic: str) -> None:
        if self._topic not in (None, topic):
            both = f"{excerpt(str(self._topic))} and {excerpt(topic)}"
            remedy = "convert it to a bag for each arm"
            raise RecordingError(self.path, f"holds the samples of two arms: {both}", remedy)
        self._topic = topic

    def _take_metadata(self, records: Iterable[tuple[str, Mapping[str, str]]], first: int) -> None:
        """Provenance and gaps of a file whose first sample has index `first` in the bag."""
        for name, values in records:
            if name == RECORD_NAME:
                self._has_own_gaps = True
                if not first:  # metadata.yaml has that at the end
                    self._custom.pop("program", None)
                for key, value in values.items():
                    self._custom.setdefault(key, value)
            elif name == GAP_RECORD_NAME:
                gap = gap_of_custom(values)
                if gap is not None:
                    self._ahead.append((gap.index, gap))
            elif name == PROGRAM_RECORD_NAME:
                program = program_of_custom(values)
                if program is not None:
                    self._ahead.append(program)
        for count, limit, what in (
            (len(self._ahead), MAX_GAPS, "gaps and programs ahead of their samples"),
            (len(self._gaps) + len(self._programs), MAX_GAPS, "gaps and programs"),
            (len(self._custom), MAX_PROVENANCE, "entries about the recording"),
        ):
            if count > limit:
                raise RecordingError(
                    self.path, f"has more than {limit} {what}", "use a bag from a source you trust"
                )

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
            self._info = info_of_custom(self._custom, str(self.path))
        while self._programs and self._programs[0][0] <= self._returned:
            self._info = replace(self._info, program=self._programs.pop(0)[1])
        time = part.columns["timestamp"]
        first, stop = self._returned, self._returned + len(part)
        if self._has_own_gaps:
            gaps = tuple(
                replace(gap, index=gap.index - first)
                for gap in self._gaps
                if first <= gap.index < stop + last
            )
            self._gaps = [gap for gap in self._gaps if gap.index >= stop]
            if self._repeated:
                gaps = self._matching(gaps, time)
            gaps = self._with_missing_files(gaps, time, self._info.rate)
            if not self._seen.in_order:
                known = {gap.index for gap in gaps}
                found = self._found_gaps(time, self._info.rate)
                more = [gap for gap in found if gap.index not in known]
                gaps = tuple(sorted([*gaps, *more], key=lambda gap: gap.index))
        else:
            gaps = self._found_gaps(time, self._info.rate)
        self._returned, self._last_time = stop, float(time[-1])
        repeated, self._reported = self._repeated - self._reported, self._repeated
        host = self._custom.get("stamps", "host") == "host"
        wanted = None if self.wanted is None else set(self.wanted)
        columns = {
            name: values
            for name, values in part.columns.items()
            if wanted is None or name in wanted
        }
        return Telemetry(time, columns, self._info, gaps, part.stamp if host else None, repeated)

    def _matching(self, gaps: tuple[Gap, ...], time: Array) -> tuple[Gap, ...]:
        """Gaps of a batch that belong between its samples: repeated ones shift the numbers."""
        before, after = np.append(self._last_time, time), np.append(time, np.nan)
        return tuple(
            gap for gap in gaps if gap.start == before[gap.index] or gap.end == after[gap.index]
        )

    def _with_missing_files(
        self, gaps: tuple[Gap, ...], time: Array, rate: float | None
    ) -> tuple[Gap, ...]:
        """Gaps of a batch, with those that files leave which are no longer part of the bag.

        Args:
            gaps: as recorded.
            time: controller times of the batch [n], s.
            rate: of the samples [Hz], None if unknown.
        """
        first, stop = self._returned, self._returned + len(time)
        known = {gap.index for gap in gaps}
        found = list(gaps)
        for start in self._file_starts:
            place = start - first
            if not first <= start < stop or place in known:
                continue
            before = time[place - 1] if place else self._last_time
            jump = find_gaps(np.array([before, time[place]]), None if rate is None else 1.0 / rate)
            found += [replace(gap, index=place, cause=MISSING_FILE) for gap in jump]
        self._file_starts = [start for start in self._file_starts if start >= stop]
        return tuple(sorted(found, key=lambda gap: gap.index))

    def _found_gaps(self, time: Array, rate: float | None) -> tuple[Gap, ...]:
        """Gaps found from the clock, for bags of other writers."""
        period = None if rate is None else 1.0 / rate
        if math.isnan(self._last_time):
            return find_gaps(time, period)
        gaps = find_gaps(np.concatenate([[self._last_time], time]), period)
        return tuple(replace(gap, index=gap.index - 1) for gap in gaps)


# BagSource: a recorded bag as a TelemetrySource.

DEFAULT_PERIOD = 0.002
"""Assumed period of a bag with a single sample [s]."""
_FIRST_SAMPLES = 100
"""Samples from which the period of a bag is measured: not every bag states its rate."""


class BagSource:
    """A bag as a TelemetrySource.

    Args:
        path: of the bag.
        fields: names wanted, None for all.
        real_time: return samples at the rate they were recorded at (pauses last a second at
            most); otherwise at once.
        batch_seconds: time span of a batch, by the period of the first samples.

    Attributes:
        info: robot and recording; known once the source is entered.
        fields: RTDE names of the columns; known once the source is entered.

    Raises:
        RecordingError: on entering: not a bag, or one that cannot be read.
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
        self._path, self._wanted, self._batch_seconds = Path(path), fields, batch_seconds
        self._real_time = real_time
        self._next: Telemetry | None = None
        self._due = 0.0
        self._last: float | None = None

    def __enter__(self) -> Self:
        first = next(iterate_bag(self._path, (), _FIRST_SAMPLES))
        samples = max(1, round(self._batch_seconds / _period(first.time)))
        self._batches = iterate_bag(self._path, self._wanted, samples)
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
        if self._next is None:
            raise EOFError
        if self._real_time:
            batch = self._next
            start = self._last if self._last is not None else float(batch.time[0])
            due = self._due + min(max(float(batch.time[-1]) - start, 0.0), 1.0)
            wait = due - time.monotonic()
            if wait > timeout:
                time.sleep(max(timeout, 0.0))
                return None
            time.sleep(max(wait, 0.0))
            self._due = due
            self._last = float(batch.time[-1])
        batch, self._next = self._next, next(self._batches, None)
        return batch

    def close(self) -> None:
        """Release the bag."""
        self._next = None

    def __exit__(self, *_: object) -> None:
        self.close()


def _period(time: Array) -> float:
    """Median step of timestamps [n], s; DEFAULT_PERIOD if there is none."""
    steps = np.diff(time)
    steps = steps[steps > 0.0]
    return float(np.median(steps)) if steps.size else DEFAULT_PERIOD
