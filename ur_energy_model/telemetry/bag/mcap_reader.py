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
    Schema,
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
    Places,
    Summary,
    blocks_at,
    merged_blocks,
    parsed,
    read_at,
    record_at,
    summary_of,
)
from ur_energy_model.telemetry.bag.storage import budget_of
from ur_energy_model.telemetry.samples import equal_runs

MAX_DEFINITION = 4 << 20  # largest schema, channel or metadata record [bytes]
_DEFINITIONS = frozenset({Opcode.SCHEMA, Opcode.CHANNEL, Opcode.METADATA, Opcode.HEADER})
_INDEXES = frozenset({Opcode.MESSAGE_INDEX, Opcode.CHUNK_INDEX})
_LAST_RECORDS = ((Opcode.DATA_END, 4), (Opcode.FOOTER, 20))
"""Records with which the messages of a file end, and the sizes of their contents [bytes]."""
_KNOWN = frozenset(Opcode)
_CHUNK_MARK = re.compile(rb"\x04\x00\x00\x00zstd|\x03\x00\x00\x00lz4")
"""The name of the compression, by which a chunk is found among arbitrary bytes."""
_LONGEST_MARK = 8  # longest of these names, with its length in front of it [bytes]
_CHUNK_HEAD = 28
"""Size of what a chunk has in front of the name: times, unpacked size and checksum [bytes]."""
_MARK_OFFSET = PREFIX.size + _CHUNK_HEAD  # place of the name in a chunk record [bytes]
_PACKED_SIZE = 8  # size of the number behind the name, the packed size [bytes]
_WINDOW = 64 << 10
_MOST_WINDOW = 16 << 20
"""Part of a file that is searched at once, at first and at most [bytes]."""
_LOOSE = 1 << 20  # messages outside chunks are read in groups of about this size [bytes]
_MOST_SORTED = 128 << 20  # largest volume of messages that are sorted together [bytes]


class McapReader:
    """Reads one file, once.

    The lengths of records are checked here before the library parses the contents. Its
    StreamReader has no such bounds: it makes a tuple of each entry of a message index, so
    that an index of 64 MB takes half a gigabyte, and it unpacks chunks to any size.

    Args:
        path: path of the file.
        budget: memory budget of the bag that the file belongs to; None for a budget of
            its own.
        report: called with each problem and whether it is damage (and not only a missing
            end), and reading continues behind it; None raises RecordingError, in every
            method.

    Attributes:
        path: path of the file.
        budget: what reading it may still cost.
        schemas: schemas by number, as far as the file was read.
        channels: channels by number, as far as the file was read.
        library: the software that wrote the file.

    Raises:
        RecordingError: raised by every method: the file is no MCAP file, or beyond the
            budget.
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
        # Metadata records that were read and not yet taken; whether the summary lists
        # them, so that they were read before everything else.
        self._metadata: list[bytes] = []
        self._is_indexed = False
        # Content of the last definition of each type and number.
        self._contents: dict[tuple[int, int], bytes] = {}

    def blocks(self, end: str = "") -> Iterator[MessageBlock]:
        """Messages of some topics, some thousands of one size at once.

        The messages of one channel are in order of their log times, as rosbag2 reads
        them: chunks that overlap in time are sorted together. Files without an index are
        sorted chunk by chunk.

        Args:
            end: end of the names of the topics; with "" all topics.
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
        if summary is None:
            return None
        chunks = [each for each in summary.chunks if each.message_end_time]
        chunks.sort(key=lambda each: (each.message_start_time, each.chunk_start_offset))
        groups: list[list[ChunkIndex]] = []
        latest = -1
        for chunk in chunks:
            if groups and chunk.message_start_time < latest:
                groups[-1].append(chunk)
            else:
                groups.append([chunk])
            latest = max(latest, chunk.message_end_time)
        offsets = [chunk.chunk_start_offset for chunk in chunks]
        none_overlap = len(groups) == len(chunks)
        return None if none_overlap and offsets == sorted(offsets) else groups

    def _sorted_blocks(
        self, chunks: Sequence[ChunkIndex], end: str
    ) -> Iterator[MessageBlock]:
        """Messages of chunks that overlap in time, in order of their log times.

        Args:
            chunks: chunks that overlap.
            end: end of the names of the topics, as in `blocks`.

        Raises:
            RecordingError: the messages are too many to be sorted in memory.
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
            if summary is None:
                return None
            with open_regular(self.path) as file:
                stop = file.seek(0, os.SEEK_END)
                op, start, end = record_at(file, len(MAGIC), stop)
                if op == Opcode.HEADER:
                    self.note(op, _definition(file, start, end))
        except OSError:  # whoever reads the records meets the error again
            return None
        self.schemas.update(summary.schemas)
        self.channels.update(summary.channels)
        return summary

    def bodies(self) -> Iterator[bytes]:
        """The records of each chunk, and groups of messages outside chunks, in order of the file.

        Yields:
            Bytes of records one behind the other, at most MAX_CHUNK.

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
            place: place of the chunk's prefix in the file [bytes], as the summary states
                it.

        Returns:
            Its unpacked records; empty if no chunk is there.

        Raises:
            RecordingError: it is damaged, or too large.
        """
        with open_regular(self.path) as file:
            stop = file.seek(0, os.SEEK_END)
            op, start, end = record_at(file, place, stop)
            return self._content(file, op, start, end)

    def _scan(self, file: BinaryIO, size: int) -> Iterator[tuple[int, bytes]]:
        """Types and contents of the records of a file, see `_content`.

        With `report`, reading continues at the next chunk behind damage: chunks have
        checksums, and a mark by which they are found among arbitrary bytes.

        Args:
            file: file that is read.
            size: size of the file [bytes].
        """
        report = self._report
        place, intact = self._first_record(file, size)
        while size - place >= PREFIX.size:
            op, start, end = record_at(file, place, size)
            fits = end > 0  # into the file
            if fits and (op, end - start) in _LAST_RECORDS:
                return
            if not fits and report is None:
                return
            content: bytes | None = b""
            damaged = f"the record at byte {place}"
            if fits:
                content, damaged = self._content_or_damage(file, op, start, end)
            if content is None:
                return
            if content:
                yield op, content
            if damaged:
                intact = False
                place = self._next_chunk(file, place + 1, size, damaged)
            else:
                place = end
        if report is not None and place < size:
            report("the last record is incomplete", False)
        elif report is not None and intact:
            report("the file was not finished", False)

    def _first_record(self, file: BinaryIO, size: int) -> tuple[int, bool]:
        """Place of the first record [bytes], and whether the file begins as MCAP files do.

        Args:
            file: file that is read.
            size: size of the file [bytes].

        Raises:
            RecordingError: the file begins otherwise, and `report` is missing.
        """
        if read_at(file, 0, len(MAGIC)) == MAGIC:
            return len(MAGIC), True
        if self._report is None:
            raise self.refuse("is not an MCAP file", "name a bag that ur_energy recorded")
        return self._next_chunk(file, 0, size, "the beginning"), False

    def _content_or_damage(
        self, file: BinaryIO, op: int, start: int, end: int
    ) -> tuple[bytes | None, str]:
        """Content of a record, see `_content`, and what is damaged; "" if nothing is.

        A damaged definition is passed over: its loss shows at its messages. The content is
        None where the budget is exhausted, behind which nothing more is read.

        Raises:
            RecordingError: the record is damaged, and `report` is missing.
        """
        try:
            return self._content(file, op, start, end), ""
        except RecordingError:
            if self._report is None:
                raise
        place = start - PREFIX.size
        if self.budget.exhausted:
            self._report(f"more than any recording holds, from byte {place} on", True)
            return None, ""
        if op in _DEFINITIONS:
            return b"", ""
        kind = "chunk" if op == Opcode.CHUNK else "record"
        return b"", f"the {kind} at byte {place}"

    def _content(self, file: BinaryIO, op: int, start: int, end: int) -> bytes:
        """The records of a chunk, or a whole message record; empty for other records.

        A definition is noted, and everything else is passed over.

        Args:
            file: file that is read.
            op: type of the record.
            start: place at which the content of the record starts in the file [bytes].
            end: place at which the content ends [bytes].

        Raises:
            RecordingError: the record is damaged, too large or beyond the budget; with
                `report` also if its type is unknown.
        """
        length = end - start
        if op == Opcode.CHUNK:
            if length > MAX_CHUNK:
                problem = f"has a chunk of {length} bytes"
                raise self.refuse(problem, "convert it to smaller chunks")
            return self._unpacked(read_at(file, start, length))
        if op == Opcode.MESSAGE:
            if length > MAX_CHUNK:
                return b""
            place = start - PREFIX.size
            return read_at(file, place, end - place)
        if op not in _KNOWN and self._report is not None:
            raise self.refuse(f"has a record of the unknown type {op}")
        is_taken_already = op == Opcode.METADATA and self._is_indexed
        if op in _DEFINITIONS:
            if not is_taken_already:
                self.note(op, _definition(file, start, end))
        elif op not in _INDEXES:
            self.note(op, b"")
        return b""

    def _next_chunk(self, file: BinaryIO, place: int, stop: int, damaged: str) -> int:
        """Report damage, and find the next chunk behind it by the name of its compression.

        A name counts only where a chunk fits whose stated sizes agree, so that data which
        looks like one costs nothing.

        Args:
            file: file that is read.
            place: place from which on a chunk is searched [bytes].
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
            searched = size + _LONGEST_MARK
            window = read_at(file, mark, searched + _PACKED_SIZE)
            for found in _CHUNK_MARK.finditer(window, 0, searched):
                chunk = mark + found.start() - _MARK_OFFSET
                op, start, end = record_at(file, chunk, stop)
                number = window[found.end() : found.end() + _PACKED_SIZE]
                packed = int.from_bytes(number, "little")
                head = _CHUNK_HEAD + len(found.group()) + _PACKED_SIZE
                if op == Opcode.CHUNK and end and end - start == packed + head:
                    return chunk
            mark += size
            size = min(4 * size, _MOST_WINDOW)
        return stop

    def _unpacked(self, content: bytes) -> bytes:
        """The records of a chunk, one behind the other.

        Args:
            content: content of the chunk record, without its prefix.

        Raises:
            RecordingError: the chunk is malformed, larger than MAX_CHUNK or than the size
                that it states, packed by an unknown compression, has a wrong checksum, or
                is beyond the budget.
        """
        try:
            chunk = parsed(Opcode.CHUNK, content)
        except ValueError:
            raise self.refuse("has a malformed chunk") from None
        assert isinstance(chunk, Chunk)
        size = chunk.uncompressed_size
        compression = chunk.compression
        if size > MAX_CHUNK:
            problem = f"has a chunk of {size} bytes, the limit is {MAX_CHUNK}"
            raise self.refuse(problem, "convert the bag to smaller chunks")
        self.budget.spend(volume=size)
        try:
            body = unpacked(compression, chunk.data, size)
        except KeyError:
            problem = f"has a chunk compressed by {compression[:20]!r}"
            raise self.refuse(problem, "convert the bag to zstd") from None
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
            content: content of the record, without its prefix; it may be empty for a
                record of no interest.

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
        number = int.from_bytes(content[:2], "little")  # number of a schema or channel
        key = op, number
        if self._contents.get(key) == content:
            return
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
        if self.summary is None:
            return
        # An error of the disk comes again where the records are read.
        with suppress(OSError), open_regular(self.path) as file:
            for each in self.summary.metadata:
                stop = each.offset + each.length
                op, start, end = record_at(file, each.offset, stop)
                self._is_indexed = op == Opcode.METADATA and end == stop
                if not self._is_indexed:
                    self._metadata.clear()
                    return
                self.note(op, _definition(file, start, end))

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
        """The record of a type with this content; RecordingError if it is malformed."""
        try:
            return parsed(op, content)
        except ValueError as error:
            raise self.refuse(f"has {error}") from None

    def blocks_of(self, body: bytes, end: str) -> Iterator[MessageBlock]:
        """Messages of some topics in the records of a chunk.

        Args:
            body: records of a chunk.
            end: end of the names of the topics, as in `blocks`.

        Yields:
            Messages of one channel and one size; the messages of a channel are in order
            of their log times.
        """
        for number, places in self.message_places(body).items():
            channel = self.channels.get(number)
            if channel is not None and channel.topic.endswith(end):
                yield from blocks_at(body, number, places)

    def message_places(self, body: bytes) -> dict[int, Places]:
        """Places of the messages of each channel in the records of a chunk.

        The other records of the chunk are noted.

        Args:
            body: records of a chunk.

        Returns:
            Offsets and lengths of messages by channel, the channels in order of their
            first message.

        Raises:
            RecordingError: the records do not fit into the chunk.
        """
        channels = array("q")
        starts = array("q")
        lengths = array("q")
        # Every message of a recording passes through this loop, a hundred thousand for
        # three minutes of samples, so it does nothing but step from record to record.
        # Comparing arrays of heads where records repeat in a pattern was no faster, and
        # needed a hundred lines.
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
        channel_of = np.frombuffer(channels, np.int64)
        start_of = np.frombuffer(starts, np.int64)
        length_of = np.frombuffer(lengths, np.int64)
        if (length_of < MESSAGE_HEAD).any():
            raise self.refuse("has a message without header")
        by_channel = np.argsort(channel_of, kind="stable")
        messages = [by_channel[run] for run in equal_runs(channel_of[by_channel])]
        messages.sort(key=lambda rows: int(rows[0]))  # by the first message
        places: dict[int, Places] = {}
        for rows in messages:
            places[int(channel_of[rows[0]])] = start_of[rows], length_of[rows]
        return places


def _definition(file: BinaryIO, start: int, end: int) -> bytes:
    """Content of a record from `start` to `end`, cut one byte beyond MAX_DEFINITION.

    The further byte shows that the record is too large (`McapReader.note`).
    """
    return read_at(file, start, min(end - start, MAX_DEFINITION + 1))
