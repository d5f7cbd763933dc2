# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""McapReader: reads MCAP files, damaged or hostile ones too, in bounded memory and time."""

from __future__ import annotations

import os
import re
import zlib
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

import numpy as np
from mcap.opcode import Opcode
from mcap.records import (
    Channel,
    Chunk,
    ChunkIndex,
    Header,
    McapRecord,
    Metadata,
    MetadataIndex,
    Schema,
    Statistics,
)

from ur_energy_model.errors import RecordingError
from ur_energy_model.files import Budget, open_regular
from ur_energy_model.telemetry.bag.compression import MAX_CHUNK, UnpackingError, unpacked
from ur_energy_model.telemetry.bag.mcap_format import (
    MAGIC,
    MESSAGE_HEAD,
    PREFIX,
    RECORD_HEAD,
    RECOVER,
    MessageBlock,
    Summary,
    parsed,
    record_type,
)
from ur_energy_model.telemetry.samples import equal_runs
from ur_energy_model.typing import Bytes, Indices

Places = tuple[Indices, Indices]
"""Offsets [n] and lengths [n] of the contents of messages in a chunk."""
MAX_DEFINITION = 4 << 20  # largest schema, channel or metadata record [bytes]
MAX_RATIO = 200
"""Largest ratio of unpacked to packed size of large files (that of an arm at rest is below 50)."""
_FREE = 512 << 20
_MEMORY = 128 << 20
_ITEMS = 500_000
_DEFINITIONS = frozenset({Opcode.SCHEMA, Opcode.CHANNEL, Opcode.METADATA, Opcode.HEADER})
_INDEXES = frozenset({Opcode.MESSAGE_INDEX, Opcode.CHUNK_INDEX})
_KNOWN = frozenset(Opcode)
_CHUNK_MARK = re.compile(rb"\x04\x00\x00\x00zstd|\x03\x00\x00\x00lz4")
"""The name of the compression, by which a chunk is found among arbitrary bytes."""
_LONGEST_MARK = 8  # of these names with their lengths [bytes]
_MARK_OFFSET = PREFIX.size + 28
_WINDOW = 64 << 10
_MOST_WINDOW = 16 << 20
"""Part of a file that is searched at once, at first and at most [bytes]."""
_LOOSE = 1 << 20  # messages outside chunks are read in groups of about this size [bytes]
_BLOCK_ROWS = 4096
_MOST_SORTED = 128 << 20  # largest volume of messages that are sorted together [bytes]
# of the log time in the content of a message: behind channel and sequence
_LOG_TIME_OFFSET = 6


def budget_of(source: Path, files: Sequence[Path]) -> Budget:
    """What reading the files of a bag may cost: the bound against bombs.

    Unpacked volume is bounded by the size of the files, at MAX_RATIO; memory for
    definitions and the number of records have bounds of their own. Files that cannot be
    read count nothing.

    Args:
        source: bag or file, for errors.
        files: of the bag.

    Returns:
        The budget, whose `spend` raises RecordingError beyond it.
    """
    size = sum(file.stat().st_size for file in files if file.is_file())
    items = _ITEMS + 20 * len(files)
    return Budget(source, RecordingError, max(_FREE, MAX_RATIO * size), _MEMORY, items)


class McapReader:
    """Reads one file, once.

    The lengths of records are checked here before the library parses the contents. Its
    StreamReader has no such bounds: it makes a tuple of each entry of a message index, so
    that an index of 64 MB takes half a gigabyte, and it unpacks chunks to any size.

    Args:
        path: of the file.
        budget: of the bag that the file belongs to; None for one of its own.
        report: called with each problem and whether it is damage (and not only a missing
            end), and reading continues behind it; None raises RecordingError, in every
            method.

    Attributes:
        path: of the file.
        budget: what reading it may still cost.
        schemas: by number, as far as the file was read.
        channels: by number, as far as the file was read.
        library: the software that wrote the file.

    Raises:
        RecordingError: in every method: it is no MCAP file, or beyond the budget.
    """

    def __init__(
        self,
        path: Path,
        budget: Budget | None = None,
        report: Callable[[str, bool], None] | None = None,
    ) -> None:
        self.path = path
        self._report = report
        self.budget = budget_of(path, [path]) if budget is None else budget
        self.schemas: dict[int, Schema] = {}
        self.channels: dict[int, Channel] = {}
        self.library = ""
        self._metadata: list[bytes] = []
        self._is_indexed = False
        self._contents: dict[tuple[int, int], bytes] = {}

    def blocks(self, end: str = "") -> Iterator[MessageBlock]:
        """Messages of the topics whose names end so, some thousands of one size at once.

        Those of one channel are in order of their log times, as rosbag2 reads them:
        chunks that overlap in time are sorted together. Files without an index are sorted
        chunk by chunk.
        """
        groups = self._overlapping_chunks()
        if groups is None:
            for body in self.bodies():
                yield from self.blocks_of(body, end)
            return
        for group in groups:
            yield from self._sorted_blocks(group, end)

    def _overlapping_chunks(self) -> list[list[ChunkIndex]] | None:
        """Groups of chunks that overlap in time, in order; None if the file is in order itself."""
        summary = self.summary
        chunks = (
            []
            if summary is None
            else [each for each in summary.chunks if each.message_end_time]
        )
        groups: list[list[ChunkIndex]] = []
        latest = -1
        for chunk in sorted(
            chunks, key=lambda each: (each.message_start_time, each.chunk_start_offset)
        ):
            if groups and chunk.message_start_time < latest:
                groups[-1].append(chunk)
            else:
                groups.append([chunk])
            latest = max(latest, chunk.message_end_time)
        offsets = [chunk.chunk_start_offset for group in groups for chunk in group]
        in_order = all(len(group) == 1 for group in groups) and offsets == sorted(offsets)
        return None if in_order else groups

    def _sorted_blocks(
        self, chunks: Sequence[ChunkIndex], end: str
    ) -> Iterator[MessageBlock]:
        """Such messages of chunks that overlap in time, in order of their log times.

        RecordingError: they are too many to be sorted in memory.
        """
        blocks: dict[int, list[MessageBlock]] = {}
        volume = 0
        for place in sorted(each.chunk_start_offset for each in chunks):
            for block in self.blocks_of(self.chunk(place), end):
                blocks.setdefault(block.channel, []).append(block)
                volume += block.records.nbytes
            if volume > _MOST_SORTED:
                problem = (
                    "its messages are out of order over more than can be sorted here"
                )
                remedy = "sort it once: ros2 bag convert, or rosbags-convert"
                raise self.refuse(problem, remedy)
        for channel, found in blocks.items():
            yield from merged_blocks(channel, found)

    @cached_property
    def summary(self) -> Summary | None:
        """The summary of the file; None without one. Its schemas and channels are noted."""
        if self._report is not None:  # the file may be damaged
            return None
        try:
            summary = summary_of(self.path)
            if summary is not None:
                with open_regular(self.path) as file:
                    op, start, end = _record_at(
                        file, len(MAGIC), file.seek(0, os.SEEK_END)
                    )
                    if op == Opcode.HEADER:
                        self.note(
                            op, _read(file, start, min(end - start, MAX_DEFINITION + 1))
                        )
        except OSError:  # it is read again
            return None
        if summary is not None:
            self.schemas.update(summary.schemas)
            self.channels.update(summary.channels)
        return summary

    def bodies(self) -> Iterator[bytes]:
        """The records of each chunk, and groups of messages outside chunks, in order of the file.

        Yields:
            Records one behind the other, at most MAX_CHUNK bytes.

        Raises:
            RecordingError: the file cannot be read; without `report`, damage too.
        """
        loose = bytearray()
        try:
            with open_regular(self.path) as file:
                for op, body in self._scan(file, file.seek(0, os.SEEK_END)):
                    if op == Opcode.MESSAGE:
                        loose += body
                    if loose and (op != Opcode.MESSAGE or len(loose) > _LOOSE):
                        yield bytes(loose)
                        loose.clear()
                    if op == Opcode.CHUNK:
                        yield body
                if loose:
                    yield bytes(loose)
        except OSError as error:
            raise self.refuse(
                f"cannot be read ({error.strerror})", "check the file"
            ) from None

    def chunk(self, place: int) -> bytes:
        """The records of the chunk at a place.

        Args:
            place: of its prefix in the file [bytes], as the summary states it.

        Returns:
            Its unpacked records; empty if no chunk is there.

        Raises:
            RecordingError: it is damaged, or too large.
        """
        with open_regular(self.path) as file:
            return self._content(
                file, *_record_at(file, place, file.seek(0, os.SEEK_END))
            )

    def _scan(self, file: BinaryIO, size: int) -> Iterator[tuple[int, bytes]]:
        """Types and contents of the records of a file, see `_content`.

        With `report`, reading continues at the next chunk behind damage: chunks have
        checksums, and a mark by which they are found among arbitrary bytes.
        """
        report = self._report
        place = len(MAGIC)
        intact = True
        if _read(file, 0, len(MAGIC)) != MAGIC:
            if report is None:
                raise self.refuse(
                    "is not an MCAP file", "name a bag that ur_energy recorded"
                )
            place = self._next_chunk(file, 0, size, "the beginning")
            intact = False
        while size - place >= PREFIX.size:
            op, start, end = _record_at(file, place, size)
            if end and (op, end - start) in ((Opcode.DATA_END, 4), (Opcode.FOOTER, 20)):
                return
            damaged = "" if end else f"the record at byte {place}"
            if damaged and report is None:
                return
            try:
                if end and (content := self._content(file, op, start, end)):
                    yield op, content
            except RecordingError:
                if report is None:
                    raise
                if self.budget.exhausted:
                    report(f"more than any recording holds, from byte {place} on", True)
                    return
                if op not in _DEFINITIONS:
                    damaged = f"the {'chunk' if op == Opcode.CHUNK else 'record'} at byte {place}"
            intact = intact and not damaged
            place = self._next_chunk(file, place + 1, size, damaged) if damaged else end
        if report is not None and place < size:
            report("the last record is incomplete", False)
        elif report is not None and intact:
            report("the file was not finished", False)

    def _content(self, file: BinaryIO, op: int, start: int, end: int) -> bytes:
        """The records of a chunk, or a whole message record; empty for other records.

        A definition is noted, and everything else is passed over.
        """
        length = end - start
        if op == Opcode.CHUNK:
            if length > MAX_CHUNK:
                raise self.refuse(
                    f"has a chunk of {length} bytes", "convert it to smaller chunks"
                )
            return self._unpacked(_read(file, start, length))
        if op == Opcode.MESSAGE:
            place = start - PREFIX.size
            return _read(file, place, end - place) if length <= MAX_CHUNK else b""
        if op not in _KNOWN and self._report is not None:
            raise self.refuse(f"has a record of the unknown type {op}")
        if op not in _INDEXES and not (op == Opcode.METADATA and self._is_indexed):
            known = op in _DEFINITIONS
            self.note(
                op, _read(file, start, min(length, MAX_DEFINITION + 1)) if known else b""
            )
        return b""

    def _next_chunk(self, file: BinaryIO, place: int, stop: int, damaged: str) -> int:
        """Report damage, and find the next chunk behind it by the name of its compression.

        A name counts only where a chunk fits whose stated sizes agree, so that data which
        looks like one costs nothing.

        Args:
            file: that is read.
            place: from which on a chunk is searched [bytes].
            stop: end of the file [bytes].
            damaged: what is damaged, for the report.

        Returns:
            Where the next chunk begins, or the end of the file.
        """
        assert self._report is not None
        self._report(f"{damaged} is damaged or cut off", True)
        mark = place + _MARK_OFFSET
        size = _WINDOW
        while mark < stop:
            window = _read(file, mark, size + _LONGEST_MARK + 8)
            for found in _CHUNK_MARK.finditer(window, 0, size + _LONGEST_MARK):
                chunk = mark + found.start() - _MARK_OFFSET
                op, start, end = _record_at(file, chunk, stop)
                packed = int.from_bytes(window[found.end() : found.end() + 8], "little")
                head = 28 + len(found.group()) + 8
                if op == Opcode.CHUNK and end and end - start == packed + head:
                    return chunk
            mark = mark + size
            size = min(4 * size, _MOST_WINDOW)
        return stop

    def _unpacked(self, content: bytes) -> bytes:
        """Records of a chunk with this content.

        Raises:
            RecordingError: malformed, larger than MAX_CHUNK or than it says, packed by an
                unknown compression, with a wrong checksum, or beyond the budget.
        """
        try:
            chunk = parsed(Opcode.CHUNK, content)
        except ValueError:
            raise self.refuse("has a malformed chunk") from None
        assert isinstance(chunk, Chunk)
        size = chunk.uncompressed_size
        compression = chunk.compression
        if size > MAX_CHUNK:
            remedy = "convert the bag to smaller chunks"
            raise self.refuse(
                f"has a chunk of {size} bytes, the limit is {MAX_CHUNK}", remedy
            )
        self.budget.spend(volume=size)
        try:
            body = unpacked(compression, chunk.data, size)
        except KeyError:
            remedy = "convert the bag to zstd"
            raise self.refuse(
                f"has a chunk compressed by {compression[:20]!r}", remedy
            ) from None
        except UnpackingError:
            raise self.refuse("has a chunk that cannot be unpacked") from None
        if chunk.uncompressed_crc and zlib.crc32(body) != chunk.uncompressed_crc:
            raise self.refuse("has a chunk whose checksum is wrong")
        return body

    def note(self, op: int, content: bytes) -> None:
        """Keep a schema, channel, metadata or header record; others are only counted.

        Some writers repeat definitions in each chunk: equal ones cost nothing.

        Args:
            op: type of the record.
            content: of the record, without its prefix; it may be empty for a record of no
                interest.

        Raises:
            RecordingError: malformed, too large, or beyond the budget.
        """
        if op not in _DEFINITIONS:
            self.budget.spend(items=1)
            return
        if len(content) > MAX_DEFINITION:
            raise self.refuse(
                f"has a record (type {op}) of more than {MAX_DEFINITION} bytes"
            )
        key = op, int.from_bytes(content[:2], "little")
        if self._contents.get(key) == content:
            return  # some writers repeat them in each chunk
        self.budget.spend(items=1, memory=len(content))
        if op == Opcode.METADATA:
            self._metadata.append(content)
            return
        record = self._parsed(op, content)
        self._contents[key] = content
        if isinstance(record, Header):
            self.library = record.library
        elif isinstance(record, Schema):
            self.schemas[record.id] = record
        elif isinstance(record, Channel):
            self.channels[record.id] = record

    def note_indexed_metadata(self) -> None:
        """Note all metadata now, where the summary lists them, and pass over them later.

        Recovered files have their metadata behind all messages, whose gaps they describe.
        """
        summary = self.summary
        with suppress(OSError), open_regular(self.path) as file:  # it is read again
            for each in [] if summary is None else summary.metadata:
                stop = each.offset + each.length
                op, start, end = _record_at(file, each.offset, stop)
                self._is_indexed = op == Opcode.METADATA and end == stop
                if not self._is_indexed:
                    self._metadata.clear()
                    return
                self.note(op, _read(file, start, min(end - start, MAX_DEFINITION + 1)))

    def take_metadata(self) -> Iterator[tuple[str, Mapping[str, str]]]:
        """Metadata records that were read since the last call, in order of the file.

        Yields:
            The name of each, and its key-value pairs.

        Raises:
            RecordingError: one of them is malformed.
        """
        taken = self._metadata
        self._metadata = []
        for content in taken:
            record = self._parsed(Opcode.METADATA, content)
            assert isinstance(record, Metadata)
            yield record.name, record.metadata

    def refuse(self, problem: str, remedy: str = RECOVER) -> RecordingError:
        """Error that names the file."""
        return RecordingError(self.path, problem, remedy)

    def _parsed(self, op: int, content: bytes) -> McapRecord:
        try:
            return parsed(op, content)
        except ValueError as error:
            raise self.refuse(f"has {error}") from None

    def blocks_of(self, body: bytes, end: str) -> Iterator[MessageBlock]:
        """Messages in the records of a chunk, of the topics whose names end so.

        Args:
            body: records of a chunk.
            end: of the names of topics.

        Yields:
            Messages of one channel and one size; those of a channel are in order of their
            log times.
        """
        for channel, places in self.message_places(body).items():
            if channel in self.channels and self.channels[channel].topic.endswith(end):
                yield from blocks_at(body, channel, places)

    def message_places(self, body: bytes) -> dict[int, Places]:
        """Places of the messages of each channel in the records of a chunk; others are noted.

        Every message of a recording passes here, a hundred thousand in three minutes: the
        loop only steps from record to record, and the messages themselves are copied as
        arrays.

        Args:
            body: records of a chunk.

        Returns:
            Offsets and lengths of messages by channel, the channels in order of their
            first message.

        Raises:
            RecordingError: the records do not fit.
        """
        channels = array("q")
        starts = array("q")
        lengths = array("q")
        # Every message of a recording passes through this loop, a hundred thousand in
        # three minutes, so it does nothing but step from record to record: comparing
        # arrays of heads where records repeat in a pattern was no faster, and needed a
        # hundred lines.
        unpack_head = RECORD_HEAD.unpack_from
        message = int(Opcode.MESSAGE)
        prefix = PREFIX.size
        place = 0
        last = len(body) - RECORD_HEAD.size
        stop = len(body)
        while place <= last:
            op, length, channel = unpack_head(body, place)
            start = place + prefix
            place = start + length
            if place > stop:
                break
            if op != message:
                self.note(op, body[start:place] if op in _DEFINITIONS else b"")
            else:
                channels.append(channel)
                starts.append(start)
                lengths.append(length)
        if place != stop:
            raise self.refuse("has a chunk whose records do not fit")
        number, start_of, length_of = (
            np.frombuffer(each, np.int64) for each in (channels, starts, lengths)
        )
        if (length_of < MESSAGE_HEAD).any():
            raise self.refuse("has a message without header")
        order = np.argsort(number, kind="stable")
        runs = sorted(equal_runs(number[order]), key=lambda run: int(order[run.start]))
        return {
            int(number[order[run.start]]): (start_of[order[run]], length_of[order[run]])
            for run in runs
        }


def merged_blocks(channel: int, blocks: Sequence[MessageBlock]) -> Iterator[MessageBlock]:
    """Messages of a channel in order of their log times.

    Args:
        channel: its number.
        blocks: of messages of perhaps several sizes; messages of equal times stay in
            order.

    Yields:
        Blocks of messages of one size, some thousands at most.
    """
    times = np.concatenate([block.time for block in blocks])
    widths = np.concatenate(
        [np.full(len(block.records), block.payload.shape[1]) for block in blocks]
    )
    order = np.argsort(times, kind="stable")
    of_width = {
        width: np.flatnonzero(widths == width) for width in np.unique(widths).tolist()
    }
    records = {
        width: np.concatenate(
            [each.records for each in blocks if each.payload.shape[1] == width]
        )
        for width in of_width
    }
    for run in equal_runs(widths[order]):
        width = int(widths[order[run.start]])
        for first in range(run.start, run.stop, _BLOCK_ROWS):
            rows = order[first : min(first + _BLOCK_ROWS, run.stop)]
            places = np.searchsorted(of_width[width], rows)
            yield MessageBlock(channel, records[width][places])


def _in_order_of_log_time(data: Bytes, places: Places) -> Places:
    """Places of messages in the records of a chunk, in order of their log times."""
    starts, lengths = places
    if len(starts) < 2:
        return places
    bytes_of_times = data[(starts + _LOG_TIME_OFFSET)[:, None] + np.arange(8)]
    times = bytes_of_times.copy().view("<u8")[:, 0]
    if (times[1:] >= times[:-1]).all():
        return places
    order = np.argsort(times, kind="stable")
    return starts[order], lengths[order]


def blocks_at(body: bytes, channel: int, places: Places) -> Iterator[MessageBlock]:
    """The messages of a channel at these places in a chunk, in order of their log times.

    Args:
        body: records of the chunk.
        channel: its number.
        places: offsets and lengths of the contents of its messages.

    Yields:
        Blocks of messages of one size, some thousands at most.
    """
    data = np.frombuffer(body, np.uint8)
    starts, lengths = _in_order_of_log_time(data, places)
    for part in equal_runs(lengths):
        length = int(lengths[part.start])
        step = PREFIX.size + length
        for first in range(part.start, part.stop, _BLOCK_ROWS):
            heads = starts[first : min(first + _BLOCK_ROWS, part.stop)] - PREFIX.size
            out = np.empty((len(heads), step), np.uint8)
            # Stretches without other records are copied at once.
            for run in equal_runs(heads - step * np.arange(len(heads))):
                place = int(heads[run.start])
                count = run.stop - run.start
                out[run] = data[place : place + count * step].reshape(-1, step)
            yield MessageBlock(
                channel, out.view(record_type(length - MESSAGE_HEAD))[:, 0]
            )


def _read(file: BinaryIO, position: int, count: int) -> bytes:
    file.seek(position)
    return file.read(count)


def _record_at(file: BinaryIO, place: int, stop: int) -> tuple[int, int, int]:
    """Type, start and end of the content of a record; zeros if it does not fit before `stop`."""
    file.seek(place)
    head = file.read(PREFIX.size)
    start = place + PREFIX.size
    if len(head) < PREFIX.size:
        return 0, 0, 0
    op, length = PREFIX.unpack(head)
    return (op, start, start + length) if start + length <= stop else (0, 0, 0)


# What the summary of a file holds, without reading its chunks.

_SUMMARY = frozenset({
    Opcode.SCHEMA, Opcode.CHANNEL, Opcode.CHUNK_INDEX, Opcode.METADATA_INDEX, Opcode.STATISTICS,
})  # fmt: skip
_MOST_SUMMARY = 32 << 20
"""Largest summary that is read [bytes]; larger files are read as a whole."""
_END = PREFIX.size + 20 + len(MAGIC)  # size of footer and magic [bytes]


def summary_of(path: Path) -> Summary | None:
    """The summary of a file, without reading its chunks.

    Args:
        path: of the file.

    Returns:
        The summary; None of a file without a complete end, or whose summary is malformed
        or too large.

    Raises:
        OSError: it cannot be read.
    """
    summary = Summary()
    with open_regular(path) as file:
        stop = file.seek(0, os.SEEK_END) - _END
        tail = _read(file, max(stop, 0), _END)
        place = int.from_bytes(tail[PREFIX.size : PREFIX.size + 8], "little")
        intact = (
            PREFIX.unpack_from(tail) == (Opcode.FOOTER, 20)
            if stop > len(MAGIC)
            else False
        )
        if not (
            intact and tail.endswith(MAGIC) and 0 < place < stop <= place + _MOST_SUMMARY
        ):
            return None
        known = 0
        try:
            while place < stop:
                op, start, place = _record_at(file, place, stop)
                if not place:
                    return None
                if op not in _SUMMARY:
                    continue
                known += 1
                record = parsed(op, _read(file, start, place - start))
                if isinstance(record, Schema):
                    summary.schemas[record.id] = record
                elif isinstance(record, Channel):
                    summary.channels[record.id] = record
                elif isinstance(record, Statistics):
                    summary.counts.update(record.channel_message_counts)
                elif isinstance(record, ChunkIndex):
                    if record.chunk_start_offset < stop:
                        summary.chunks.append(record)
                elif isinstance(record, MetadataIndex) and record.offset < stop:
                    summary.metadata.append(record)
        except ValueError:
            return None
    return summary if known else None
