"""Rewrites a damaged or unfinished storage file with what is intact in it."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ur_energy_model.errors import RecordingError
from ur_energy_model.telemetry.bag.cdr import CdrError
from ur_energy_model.telemetry.bag.intact_records import IntactRecords
from ur_energy_model.telemetry.bag.layout import TELEMETRY_TOPIC, TelemetryLayout
from ur_energy_model.telemetry.bag.mcap_definitions import McapDefinitions
from ur_energy_model.telemetry.bag.mcap_format import MESSAGE_HEAD, PREFIX, Op, Summary
from ur_energy_model.telemetry.bag.mcap_reader import McapReader
from ur_energy_model.telemetry.bag.mcap_writer import McapWriter
from ur_energy_model.telemetry.bag.message_decoder import MAX_LAYOUTS, MAX_MESSAGE
from ur_energy_model.telemetry.bag.message_encoder import TOPICS, channel_of
from ur_energy_model.telemetry.bag.provenance import (
    GAP_RECORD_NAME,
    MAX_GAPS,
    MAX_PROVENANCE,
    RECORD_NAME,
    custom_of_gap,
    gap_of_custom,
    info_of_custom,
)
from ur_energy_model.telemetry.bag.recovered_gaps import SampleTimes, place_gaps
from ur_energy_model.telemetry.samples import Gap
from ur_energy_model.temporary_files import remove_abandoned, temporary_name
from ur_energy_model.typing import Indices

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


def rewrite(path: Path) -> Salvage:
    """Rewrite a file with what is intact in it; it is left alone if nothing is."""
    remove_abandoned(path.parent)
    temporary = temporary_name(path, "recovering")
    with suppress(FileNotFoundError):
        temporary.unlink()
    writer = McapWriter(temporary)
    try:
        salvage = _Rewriter(path, writer).run()
        writer.close()
        if salvage.samples or not salvage.damaged:
            temporary.replace(path)
    finally:
        writer.abandon()
        with suppress(FileNotFoundError):
            temporary.unlink()
    return salvage


@dataclass
class _Metadata:
    """Metadata of a file: about the recording, gaps, and that of other writers."""

    custom: dict[str, str] = field(default_factory=dict)
    gaps: list[Gap] = field(default_factory=list)
    others: list[tuple[str, Mapping[str, str]]] = field(default_factory=list)
    left_out: int = 0

    def keep(self, records: Iterable[tuple[str, Mapping[str, str]]]) -> None:
        """Keep what is within the limits, count the rest."""
        for name, values in records:
            gap = gap_of_custom(values) if name == GAP_RECORD_NAME else None
            if name == RECORD_NAME and len(self.custom) + len(values) <= MAX_PROVENANCE:
                self.custom.update(values)
            elif gap is not None and len(self.gaps) < MAX_GAPS:
                self.gaps.append(gap)
            elif name not in (RECORD_NAME, GAP_RECORD_NAME) and len(self.others) < MAX_OTHERS:
                self.others.append((name, values))
            else:
                self.left_out += 1


@dataclass
class _Rewriter:
    """Copies what is intact in one file to a writer.

    Attributes:
        path: of the damaged file.
        writer: of the new one.
    """

    path: Path
    writer: McapWriter
    _problems: list[str] = field(default_factory=list)
    _times: SampleTimes = field(default_factory=SampleTimes)
    _offsets: dict[int, int] = field(default_factory=dict)
    _metadata: _Metadata = field(default_factory=_Metadata)
    _more_problems: int = 0
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
        for name, values in self._metadata.others:
            self.writer.add_metadata(name, values)
        if self._metadata.left_out:
            self._report(f"{self._metadata.left_out} metadata records are left out", False)
        samples = len(self._times)
        gaps = tuple(gap for gap in self._metadata.gaps if gap.index <= samples)
        if self._damaged and samples:
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
            index = {}
            for channel, (starts, lengths) in places.items():
                times = [MESSAGE_HEAD.unpack_from(body, start)[2] for start in starts.tolist()]
                index[channel] = np.stack([np.array(times, np.int64), starts - PREFIX.size], axis=1)
                if reader.definitions.channels[channel].topic == TELEMETRY_TOPIC:
                    self._keep_times(body, starts.tolist(), lengths.tolist())
        except (RecordingError, CdrError, struct.error, KeyError, OverflowError) as error:
            self._report(f"a chunk is malformed ({error})", True)
            return
        if index:
            self.writer.write_body(body, index)

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
            channel, schema = channel_of(number)
            definitions.channels[number], definitions.schemas[number] = channel, schema
        self.writer.add_channel(channel, schema)
        return True

    def _keep_times(self, body: bytes, starts: list[int], lengths: list[int]) -> None:
        """Controller timestamps of telemetry messages."""
        times = np.empty(len(starts))
        for i, (start, length) in enumerate(zip(starts, lengths, strict=True)):
            first = start + MESSAGE_HEAD.size
            if length not in self._offsets:
                message = body[first : start + length]
                if len(message) > MAX_MESSAGE or len(self._offsets) == MAX_LAYOUTS:
                    raise CdrError("messages are no telemetry")
                layout = TelemetryLayout.of_message(message)
                self._offsets[length] = layout.offset_of("timestamp")
            times[i] = struct.unpack_from("<d", body, first + self._offsets[length])[0]
        self._times.append(times)


def _without(body: bytes, messages: Sequence[tuple[Indices, Indices]]) -> bytes:
    """Records of a chunk without some messages, given by offsets and lengths of their contents."""
    lost = sorted(
        (start - PREFIX.size, start + length)
        for starts, lengths in messages
        for start, length in zip(starts.tolist(), lengths.tolist(), strict=True)
    )
    edges = [0, *(edge for span in lost for edge in span), len(body)]
    return b"".join(body[start:stop] for start, stop in zip(edges[::2], edges[1::2], strict=True))
