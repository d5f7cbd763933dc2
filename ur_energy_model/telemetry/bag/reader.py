"""Reads telemetry and events from bags: rosbag2 directories with MCAP or sqlite3 storage."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from ur_energy_model.errors import RecordingError
from ur_energy_model.reading.yaml_tree import excerpt
from ur_energy_model.telemetry.bag.cdr import CdrError
from ur_energy_model.telemetry.bag.file_contents import metadata_behind_chunks
from ur_energy_model.telemetry.bag.files import bag_files
from ur_energy_model.telemetry.bag.layout import EVENTS_TOPIC, TELEMETRY_TOPIC, decode_event
from ur_energy_model.telemetry.bag.mcap_format import RECOVER
from ur_energy_model.telemetry.bag.mcap_reader import McapReader
from ur_energy_model.telemetry.bag.mcap_writer import LIBRARY
from ur_energy_model.telemetry.bag.message_decoder import (
    DecodedSamples,
    SampleNumbers,
    SeenSamples,
    TelemetryDecoder,
    join_samples,
)
from ur_energy_model.telemetry.bag.message_types import DYNAMIC_JOINT_STATE
from ur_energy_model.telemetry.bag.metadata import BagMetadata
from ur_energy_model.telemetry.bag.provenance import (
    GAP_RECORD_NAME,
    MAX_GAPS,
    MAX_PROVENANCE,
    PROGRAM_RECORD_NAME,
    RECORD_NAME,
    gap_of_custom,
    info_of_custom,
    program_of_custom,
)
from ur_energy_model.telemetry.bag.sqlite_reader import sqlite_messages
from ur_energy_model.telemetry.event import Event
from ur_energy_model.telemetry.samples import Gap, RecordingInfo, Telemetry, find_gaps
from ur_energy_model.typing import Array

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
