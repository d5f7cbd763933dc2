"""Rewrites a damaged or unfinished storage file with what is intact in it."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.errors import RecordingError
from ur_energy_model.telemetry.bag.cdr import STAMP, STAMP_OFFSET, CdrError
from ur_energy_model.telemetry.bag.intact_records import IntactRecords
from ur_energy_model.telemetry.bag.layout import TELEMETRY_TOPIC, TelemetryLayout
from ur_energy_model.telemetry.bag.mcap_definitions import McapDefinitions
from ur_energy_model.telemetry.bag.mcap_format import MESSAGE_HEAD, PREFIX, Op, Summary
from ur_energy_model.telemetry.bag.mcap_reader import McapReader
from ur_energy_model.telemetry.bag.mcap_writer import McapWriter
from ur_energy_model.telemetry.bag.message_decoder import (
    MAX_LAYOUTS,
    MAX_MESSAGE,
    SampleNumbers,
    SeenSamples,
)
from ur_energy_model.telemetry.bag.message_encoder import TOPICS, topics_in
from ur_energy_model.telemetry.bag.message_places import Positions
from ur_energy_model.telemetry.bag.provenance import (
    GAP_RECORD_NAME,
    MAX_GAPS,
    MAX_PROVENANCE,
    PROGRAM_RECORD_NAME,
    RECORD_NAME,
    custom_of_gap,
    custom_of_program,
    gap_of_custom,
    info_of_custom,
    name_of_custom,
    program_of_custom,
)
from ur_energy_model.telemetry.bag.recovered_gaps import SampleTimes, place_gaps
from ur_energy_model.telemetry.samples import Gap
from ur_energy_model.temporary_files import remove_abandoned, temporary_name
from ur_energy_model.typing import Array, Indices

MAX_PROBLEMS = 100
"""Most problems of a file that are named; more are counted."""
MAX_OTHERS = 10_000
"""Most metadata records of other writers that are kept."""


@dataclass
class Salvage:
    """What is intact in a file that was rewritten.

    Attributes:
        summary: of the file that holds it.
        custom: provenance found in the file.
        gaps: of the file, indexes from its first sample.
        samples: telemetry messages.
        problems: what was not intact.
        damaged: whether more than its end is missing.
    """

    summary: Summary
    custom: Mapping[str, str]
    gaps: tuple[Gap, ...]
    samples: int
    problems: list[str]
    damaged: bool


@dataclass
class SeenContent:
    """What the files of a bag had so far: samples, and checksums and sizes of chunks.

    Attributes:
        custom: provenance of the bag.
    """

    custom: Mapping[str, str] = field(default_factory=dict)
    samples: SeenSamples = field(default_factory=SeenSamples)
    chunks: set[tuple[int, int]] = field(default_factory=set)


def rewrite(path: Path, seen: SeenContent) -> Salvage:
    """Rewrite a file with what is intact in it; it is left alone if nothing is.

    Args:
        path: of the file.
        seen: what the files before it had, and is left out here; brought up to date.
    """
    remove_abandoned(path.parent)
    temporary = temporary_name(path, "recovering")
    with suppress(FileNotFoundError):
        temporary.unlink()
    writer = McapWriter(temporary)
    try:
        salvage = _Rewriter(path, writer, seen).run()
        writer.close()
        if salvage.samples or not salvage.damaged:
            temporary.replace(path)
    finally:
        writer.abandon()
        with suppress(FileNotFoundError):
            temporary.unlink()
    return salvage


_OWN = (RECORD_NAME, GAP_RECORD_NAME, PROGRAM_RECORD_NAME)


@dataclass
class _Metadata:
    """Metadata of a file: about the recording, gaps, and that of other writers."""

    custom: dict[str, str] = field(default_factory=dict)
    gaps: list[Gap] = field(default_factory=list)
    programs: list[tuple[int, str | None]] = field(default_factory=list)
    """Of samples that are not copied yet."""
    others: list[tuple[str, Mapping[str, str]]] = field(default_factory=list)
    left_out: int = 0

    def keep(self, records: Iterable[tuple[str, Mapping[str, str]]]) -> None:
        """Keep what is within the limits, count the rest."""
        for name, values in records:
            gap = gap_of_custom(values) if name == GAP_RECORD_NAME else None
            program = program_of_custom(values) if name == PROGRAM_RECORD_NAME else None
            if name == RECORD_NAME and len(self.custom) + len(values) <= MAX_PROVENANCE:
                self.custom.update(values)
            elif gap is not None and len(self.gaps) < MAX_GAPS:
                self.gaps.append(gap)
            elif program is not None and len(self.programs) < MAX_GAPS:
                self.programs.append(program)
            elif name not in _OWN and len(self.others) < MAX_OTHERS:
                self.others.append((name, values))
            else:
                self.left_out += 1


@dataclass
class _Rewriter:
    """Copies what is intact in one file to a writer.

    Attributes:
        path: of the damaged file.
        writer: of the new one.
        seen: what the bag had so far.
    """

    path: Path
    writer: McapWriter
    seen: SeenContent
    _problems: list[str] = field(default_factory=list)
    _times: SampleTimes = field(default_factory=SampleTimes)
    _offsets: dict[int, int] = field(default_factory=dict)
    _metadata: _Metadata = field(default_factory=_Metadata)
    _numbers: SampleNumbers = field(default_factory=lambda: SampleNumbers(0))
    _programs: list[tuple[int, str | None]] = field(default_factory=list)
    _more_problems: int = 0
    _repeated: int = 0
    _damaged: bool = False

    def run(self) -> Salvage:
        """Copy everything."""
        reader = McapReader(self.path)
        try:
            for op, content in IntactRecords(self.path, self._report):
                with suppress(RecordingError):
                    if op == Op.CHUNK:
                        self._copy_chunk(reader, content)
                    else:
                        reader.definitions.note(op, content)
                    self._metadata.keep(reader.definitions.take_metadata())
            return self._finish()
        finally:
            self._times.close()

    def _finish(self) -> Salvage:
        """Write metadata and gaps."""
        custom = self._metadata.custom
        if custom:
            self.writer.add_metadata(RECORD_NAME, custom)
        for index, program in (*self._programs, *self._numbers.rest(self._metadata.programs)):
            self.writer.add_metadata(PROGRAM_RECORD_NAME, custom_of_program(index, program))
        for name, values in self._metadata.others:
            self.writer.add_metadata(name, values)
        if self._metadata.left_out:
            self._report(f"{self._metadata.left_out} metadata records are left out", False)
        samples = len(self._times)
        gaps = tuple(gap for gap in self._metadata.gaps if gap.index <= samples)
        if self._repeated:
            self._report(
                f"{self._repeated} samples were in the bag twice; each is kept once", False
            )
            gaps = ()
        if (self._damaged or self._repeated) and samples:
            rate = None
            with suppress(RecordingError):  # the samples are worth saving without it
                rate = info_of_custom(custom, str(self.path)).rate
            gaps = place_gaps(self._times, self._metadata.gaps, rate)
        for gap in gaps:
            self.writer.add_metadata(GAP_RECORD_NAME, custom_of_gap(gap))
        if self._more_problems:
            self._problems.append(f"{self._more_problems} more places are damaged")
        return Salvage(self.writer.summary, custom, gaps, samples, self._problems, self._damaged)

    def _report(self, problem: str, damage: bool) -> None:
        self._damaged |= damage
        if len(self._problems) < MAX_PROBLEMS:
            self._problems.append(problem)
        else:
            self._more_problems += 1

    def _copy_chunk(self, reader: McapReader, body: bytes) -> None:
        try:
            places = reader.message_positions(body)
            lost = [n for n in places if not self._know_channel(reader.definitions, n)]
            if lost:
                body = _without(body, [places[n] for n in lost])
                places = reader.message_positions(body)
            repeated = self._take_samples(reader, body, places)
            if repeated is not None:
                chunk = zlib.crc32(body), len(body)
                if chunk in self.seen.chunks:
                    return
                body = _without(body, [repeated])
                places = reader.message_positions(body)
            self.seen.chunks.add((zlib.crc32(body), len(body)))
            index = {}
            for channel, (starts, _) in places.items():
                times = [MESSAGE_HEAD.unpack_from(body, start)[2] for start in starts.tolist()]
                index[channel] = np.stack([np.array(times, np.int64), starts - PREFIX.size], axis=1)
        except (RecordingError, CdrError, struct.error, KeyError, OverflowError) as error:
            self._report(f"a chunk is malformed ({error})", True)
            return
        if index:
            self.writer.write_body(body, index)

    def _take_samples(
        self, reader: McapReader, body: bytes, places: Mapping[int, Positions]
    ) -> Positions | None:
        """Keep the times of the new samples of a chunk; returns the places of the repeated ones."""
        found = [
            places[number]
            for number in places
            if reader.definitions.channels[number].topic.endswith(TELEMETRY_TOPIC)
        ]
        if not found:
            return None
        starts, lengths = (np.concatenate(each) for each in zip(*found, strict=True))
        times, stamps = self._times_of(body, starts.tolist(), lengths.tolist())
        new = self.seen.samples.are_new(times, stamps)
        programs = self._metadata.programs
        if self._damaged:  # behind damage, the number of a sample is not known; that of a chunk is
            programs[:] = [(self._numbers.recorded, name) for _, name in programs]
        self._programs += self._numbers.count(programs, new, stamps)
        self._times.append(times[new])
        if new.all():
            return None
        self._repeated += int(np.count_nonzero(~new))
        return starts[~new], lengths[~new]

    def _know_channel(self, definitions: McapDefinitions, number: int) -> bool:
        """Define a channel in the new file; a lost definition of ours follows from its number.

        Returns:
            False if the definition of another topic is lost.
        """
        if number in self.writer.summary.counts:
            return True
        channel = definitions.channels.get(number)
        schema = None if channel is None else definitions.schemas.get(channel.schema_id)
        if channel is None or schema is None:
            if number not in TOPICS:
                problem = f"the definition of channel {number} is lost, with its messages"
                if problem not in self._problems:
                    self._report(problem, False)
                return False
            namespace = name_of_custom(self._metadata.custom or self.seen.custom, "namespace")
            channel, schema = topics_in(namespace)[number].definitions(number)
            definitions.channels[number], definitions.schemas[number] = channel, schema
        self.writer.add_channel(channel, schema)
        return True

    def _times_of(
        self, body: bytes, starts: list[int], lengths: list[int]
    ) -> tuple[Array, NDArray[np.int64]]:
        """Controller times [n], s, and stamps [n], ns, of telemetry messages."""
        times, stamps = np.empty(len(starts)), np.empty(len(starts), np.int64)
        for i, (start, length) in enumerate(zip(starts, lengths, strict=True)):
            first = start + MESSAGE_HEAD.size
            if length not in self._offsets:
                message = body[first : start + length]
                if len(message) > MAX_MESSAGE or len(self._offsets) == MAX_LAYOUTS:
                    raise CdrError("messages are no telemetry")
                layout = TelemetryLayout.of_message(message)
                self._offsets[length] = layout.offset_of("timestamp")
            times[i] = struct.unpack_from("<d", body, first + self._offsets[length])[0]
            seconds, nanoseconds = STAMP.unpack_from(body, first + STAMP_OFFSET)
            stamps[i] = seconds * 1_000_000_000 + nanoseconds
        return times, stamps


def _without(body: bytes, messages: Sequence[tuple[Indices, Indices]]) -> bytes:
    """Records of a chunk without some messages, given by offsets and lengths of their contents."""
    lost = sorted(
        (start - PREFIX.size, start + length)
        for starts, lengths in messages
        for start, length in zip(starts.tolist(), lengths.tolist(), strict=True)
    )
    edges = [0, *(edge for span in lost for edge in span), len(body)]
    return b"".join(body[start:stop] for start, stop in zip(edges[::2], edges[1::2], strict=True))
