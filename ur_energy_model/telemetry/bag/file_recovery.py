"""Rewrites a damaged or unfinished storage file with what is intact in it."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from ur_energy_model.errors import RecordingError
from ur_energy_model.telemetry.bag.cdr import CdrError
from ur_energy_model.telemetry.bag.layout import TELEMETRY_TOPIC, TelemetryLayout
from ur_energy_model.telemetry.bag.mcap_format import MAGIC, MESSAGE_HEAD, PREFIX, Op, Summary
from ur_energy_model.telemetry.bag.mcap_reader import MAX_RECORD, McapReader, unpack_chunk
from ur_energy_model.telemetry.bag.mcap_writer import McapWriter
from ur_energy_model.telemetry.bag.message_encoder import channel_of
from ur_energy_model.telemetry.bag.provenance import (
    GAP_RECORD_NAME,
    RECORD_NAME,
    custom_of_gap,
    gap_of_custom,
    info_of_custom,
)
from ur_energy_model.telemetry.samples import Gap, find_gaps
from ur_energy_model.temporary_files import remove_abandoned, temporary_name
from ur_energy_model.typing import Array

DAMAGED = "damaged file"
_CHUNK_MARK = b"\x04\x00\x00\x00zstd"
_MARK_OFFSET = PREFIX.size + 28
_KNOWN = frozenset(Op)


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
class _Rewriter:
    """Copies what is intact in one file to a writer.

    Attributes:
        path: of the damaged file.
        writer: of the new one.
    """

    path: Path
    writer: McapWriter
    _problems: list[str] = field(default_factory=list)
    _times: list[Array] = field(default_factory=list)
    _layouts: dict[int, TelemetryLayout] = field(default_factory=dict)
    _damaged: bool = False

    def run(self) -> Salvage:
        """Copy everything."""
        reader = McapReader(self.path)
        with self.path.open("rb") as file:
            size = file.seek(0, 2)
            data: mmap.mmap | bytes = b""
            if size:
                data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            for op, content in self._intact_records(data):
                if op == Op.CHUNK:
                    self._copy_chunk(reader, content)
                else:
                    with suppress(RecordingError):
                        reader.note(op, content)
        custom: dict[str, str] = {}
        for name, values in reader.metadata:
            if name == RECORD_NAME:
                custom.update(values)
        self._copy_metadata(reader, custom)
        old = [gap_of_custom(values) for name, values in reader.metadata if name == GAP_RECORD_NAME]
        gaps = self._place_gaps([gap for gap in old if gap is not None], custom)
        for gap in gaps:
            self.writer.add_metadata(GAP_RECORD_NAME, custom_of_gap(gap))
        samples = sum(map(len, self._times))
        return Salvage(self.writer.summary, custom, gaps, samples, self._problems, self._damaged)

    def _intact_records(self, data: mmap.mmap | bytes) -> Iterator[tuple[int, bytes]]:
        """Type and content of plausible records outside chunks, and of intact chunks."""
        size = len(data)
        position = len(MAGIC)
        if data[: len(MAGIC)] != MAGIC:
            position = self._resume(data, 0, "the beginning is damaged")
        while position + PREFIX.size <= size:
            op, length = PREFIX.unpack_from(data, position)
            start = position + PREFIX.size
            if op == Op.DATA_END and length == 4:
                return
            if op not in _KNOWN or length > min(MAX_RECORD, size - start):
                reason = f"damaged or cut off at byte {position}"
                position = self._resume(data, position + 1, reason)
                continue
            content = bytes(data[start : start + length])
            if op == Op.CHUNK:
                try:
                    unpack_chunk(content, self.path)
                except RecordingError:
                    reason = f"the chunk at byte {position} is damaged"
                    position = self._resume(data, position + 1, reason)
                    continue
            yield op, content
            position = start + length
        if position < size:
            self._problems.append("the last record is incomplete")
        elif size and not self._problems:
            self._problems.append("the file was not finished")

    def _resume(self, data: mmap.mmap | bytes, position: int, problem: str) -> int:
        """Offset at which the next chunk may begin, the size of the data if there is none."""
        self._problems.append(problem)
        self._damaged = True
        found = data.find(_CHUNK_MARK, position + _MARK_OFFSET)
        return len(data) if found < 0 else found - _MARK_OFFSET

    def _copy_chunk(self, reader: McapReader, content: bytes) -> None:
        body = unpack_chunk(content, self.path)
        try:
            places = reader.message_positions(body)
            index = {}
            for channel, (starts, lengths) in places.items():
                self._know_channel(reader, channel)
                times = [MESSAGE_HEAD.unpack_from(body, start)[2] for start in starts]
                offsets = np.array(starts, np.int64) - PREFIX.size
                index[channel] = np.stack([np.array(times, np.int64), offsets], axis=1)
                if reader.channels[channel].topic == TELEMETRY_TOPIC:
                    self._keep_times(body, starts, lengths)
        except (RecordingError, CdrError, struct.error, KeyError, OverflowError) as error:
            self._problems.append(f"a chunk is malformed ({error})")
            self._damaged = True
            return
        if index:
            self.writer.write_body(body, index)

    def _know_channel(self, reader: McapReader, number: int) -> None:
        """Define a channel in the new file; a lost definition of ours follows from its number."""
        if any(channel.id == number for channel in self.writer.summary.channels):
            return
        channel = reader.channels.get(number)
        schema = None if channel is None else reader.schemas.get(channel.schema_id)
        if channel is None or schema is None:
            channel, schema = channel_of(number)
            reader.channels[number], reader.schemas[number] = channel, schema
        self.writer.add_channel(channel, schema)

    def _keep_times(self, body: bytes, starts: list[int], lengths: list[int]) -> None:
        """Controller timestamps of telemetry messages."""
        times = np.empty(len(starts))
        for i, (start, length) in enumerate(zip(starts, lengths, strict=True)):
            message = body[start + MESSAGE_HEAD.size : start + length]
            if len(message) not in self._layouts:
                self._layouts[len(message)] = TelemetryLayout.of_message(message)
            layout = self._layouts[len(message)]
            times[i] = struct.unpack_from("<d", message, layout.offset_of("timestamp"))[0]
        self._times.append(times)

    def _copy_metadata(self, reader: McapReader, custom: Mapping[str, str]) -> None:
        if custom:
            self.writer.add_metadata(RECORD_NAME, custom)
        for name, values in reader.metadata:
            if name not in (RECORD_NAME, GAP_RECORD_NAME):
                self.writer.add_metadata(name, values)

    def _place_gaps(self, old: list[Gap], custom: Mapping[str, str]) -> tuple[Gap, ...]:
        """Gaps of the new file: the old ones at their new indexes, and those of the damage."""
        samples = sum(map(len, self._times))
        if not self._damaged or samples == 0:
            return tuple(gap for gap in old if gap.index <= samples)
        time = np.concatenate(self._times)
        known = {(gap.start, gap.end): gap for gap in old}
        rate = None
        with suppress(RecordingError):  # the samples are worth saving without it
            rate = info_of_custom(custom, str(self.path)).rate
        found = {gap.index: gap for gap in find_gaps(time, None if rate is None else 1.0 / rate)}
        steps = zip(time[:-1].tolist(), time[1:].tolist(), strict=True)
        for i, step in enumerate(steps, 1):
            if step in known:
                found[i] = replace(known[step], index=i)
            elif i in found:
                found[i] = replace(found[i], cause=DAMAGED)
        at_end = [gap for gap in old if gap.start == time[-1]]
        return (*(found[i] for i in sorted(found)), *(replace(g, index=samples) for g in at_end))
