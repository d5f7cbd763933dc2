# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The MCAP container: its records, and its messages as arrays.

The library `mcap` packs and unpacks the records. Two things are done here, because it
handles one message at a time and holds whatever a file states in memory: messages of one
size are arrays (`MessageBlock`), and the contents of records are bounded before they are
unpacked (`McapReader`). The specification is at https://mcap.dev/spec.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeAlias

import numpy as np
from mcap.data_stream import ReadDataStream, RecordBuilder
from mcap.exceptions import EndOfFile
from mcap.opcode import Opcode
from mcap.records import (
    Channel,
    Chunk,
    ChunkIndex,
    DataEnd,
    Footer,
    Header,
    McapRecord,
    Metadata,
    MetadataIndex,
    Schema,
    Statistics,
    SummaryOffset,
)
from numpy.typing import NDArray

from ur_energy_model.files import open_regular
from ur_energy_model.telemetry.samples import equal_runs
from ur_energy_model.typing import Bytes, Indices

RECOVER = "keep what is intact with 'ur_energy recover'"
"""Remedy for a damaged file."""
MAGIC = b"\x89MCAP0\r\n"
PREFIX = struct.Struct("<BQ")
"""Type and length of a record."""
RECORD_HEAD = struct.Struct("<BQH")
"""The same and the first number of the content, which is the channel of a message."""
MESSAGE_HEAD = 22
"""Size of channel, sequence number, log time and publish time of a message [bytes]."""
_LOG_TIME_PLACE = 6
"""Place of the log time in the content of a message: behind channel and sequence number."""
_BLOCK_ROWS = 4096  # most messages of a block
Places: TypeAlias = tuple[Indices, Indices]
"""Offsets [n] and lengths [n] of the contents of messages in the records of a chunk."""

_PARSERS: Mapping[int, Callable[[ReadDataStream], McapRecord]] = {
    Opcode.HEADER: Header.read,
    Opcode.SCHEMA: Schema.read,
    Opcode.CHANNEL: Channel.read,
    Opcode.CHUNK: Chunk.read,
    Opcode.CHUNK_INDEX: ChunkIndex.read,
    Opcode.STATISTICS: Statistics.read,
    Opcode.METADATA: Metadata.read,
    Opcode.METADATA_INDEX: MetadataIndex.read,
}


def packed(records: Iterable[McapRecord]) -> bytes:
    """Records as they are in a file, one behind the other."""
    builder = RecordBuilder()
    for record in records:
        record.write(builder)
    content: bytes = builder.end()  # type: ignore[no-untyped-call]
    return content


class _Content(ReadDataStream):
    """Content of a record, which ends where it ends: the library returns what there is."""

    def read(self, length: int) -> bytes:
        """The next bytes.

        Raises:
            EndOfFile: there are fewer.
        """
        data = super().read(length)
        if len(data) < length:
            raise EndOfFile
        return data


def parsed(op: int, content: bytes) -> McapRecord:
    """The record of a type with this content.

    Args:
        op: header, schema, channel, chunk, chunk index, statistics, metadata, or index of
            metadata.
        content: content of the record, without its prefix.

    Raises:
        ValueError: malformed.
    """
    try:
        return _PARSERS[op](_Content(BytesIO(content)))
    except (struct.error, ValueError, EndOfFile):
        raise ValueError(f"a malformed record (type {op})") from None


@lru_cache(maxsize=1000)
def record_type(size: int) -> np.dtype[Any]:
    """The record of a message whose payload has this size [bytes], with its prefix."""
    return np.dtype([
        ("op", "u1"), ("length", "<u8"), ("channel", "<u2"), ("sequence", "<u4"),
        ("log_time", "<u8"), ("publish_time", "<u8"), ("payload", "u1", (size,)),
    ])  # fmt: skip


class MessageBlock(NamedTuple):
    """Messages of one channel and one size, in order.

    Attributes:
        channel: number of the channel in the file.
        records: records of the messages [n], see `record_type`.
    """

    channel: int
    records: NDArray[np.void]

    @classmethod
    def of(cls, channel: int, time: NDArray[np.int64], payload: Bytes) -> MessageBlock:
        """Messages without sequence numbers.

        Args:
            channel: number of the channel in the file.
            time: log times [n], ns since the epoch, which are the publish times too.
            payload: contents of the messages [n, size].
        """
        count, size = payload.shape
        records = np.zeros(count, record_type(size))
        records["op"] = Opcode.MESSAGE
        records["length"] = MESSAGE_HEAD + size
        records["channel"] = channel
        records["payload"] = payload
        records["log_time"] = time
        records["publish_time"] = time
        return cls(channel, records)

    @property
    def time(self) -> NDArray[np.int64]:
        """Log times [n], ns."""
        return self.records["log_time"].astype(np.int64)

    @property
    def payload(self) -> Bytes:
        """The messages themselves [n, size]."""
        payload: Bytes = self.records["payload"]
        return payload


@dataclass
class Summary:
    """Contents of a file, as stated at its end.

    Attributes:
        schemas: schemas by their numbers.
        channels: channels by their numbers.
        chunks: indexes of the chunks, in the order of the file.
        metadata: places of the metadata records, in the order of the file.
        counts: number of messages by the number of the channel.
    """

    schemas: dict[int, Schema] = field(default_factory=dict)
    channels: dict[int, Channel] = field(default_factory=dict)
    chunks: list[ChunkIndex] = field(default_factory=list)
    metadata: list[MetadataIndex] = field(default_factory=list)
    counts: dict[int, int] = field(default_factory=dict)

    @property
    def messages(self) -> int:
        """Number of messages."""
        return sum(self.counts.values())

    @property
    def start_time(self) -> int:
        """Log time of the earliest message [ns], 0 if there is none."""
        return min((chunk.message_start_time for chunk in self.chunks), default=0)

    @property
    def end_time(self) -> int:
        """Log time of the latest message [ns], 0 if there is none."""
        return max((chunk.message_end_time for chunk in self.chunks), default=0)

    def tail(self, offset: int) -> bytes:
        """The end of the file, from its data-end record at `offset` to the closing magic."""
        statistics = Statistics(
            attachment_count=0,
            channel_count=len(self.channels),
            channel_message_counts=dict(sorted(self.counts.items())),
            chunk_count=len(self.chunks),
            message_count=self.messages,
            message_end_time=self.end_time,
            message_start_time=self.start_time,
            metadata_count=len(self.metadata),
            schema_count=len(self.schemas),
        )
        groups: dict[Opcode, Iterable[McapRecord]] = {
            Opcode.SCHEMA: self.schemas.values(),
            Opcode.CHANNEL: self.channels.values(),
            Opcode.CHUNK_INDEX: self.chunks,
            Opcode.METADATA_INDEX: self.metadata,
            Opcode.STATISTICS: [statistics],
        }
        data_end = packed([DataEnd(0)])
        start = offset + len(data_end)
        body = b""
        offsets = []
        for op, records in groups.items():
            group = packed(records)
            if group:
                offsets.append(SummaryOffset(op, start + len(body), len(group)))
                body += group
        footer = Footer(start, start + len(body), 0)
        body += packed(offsets)
        before_checksum = packed([footer])[:-4]
        footer.summary_crc = zlib.crc32(body + before_checksum)
        return data_end + body + packed([footer]) + MAGIC


PROVISIONAL_TAIL = packed([DataEnd(0), Footer(0, 0, 0)]) + MAGIC
"""End of a growing file, without summary, so that every reader opens it."""


# Records of an open file, and the content of its summary, without reading its chunks.


def read_at(file: BinaryIO, place: int, count: int) -> bytes:
    """Bytes of a file from a place on; fewer than `count` at its end."""
    file.seek(place)
    return file.read(count)


_NO_RECORD = (0, 0, 0)


def record_at(file: BinaryIO, place: int, stop: int) -> tuple[int, int, int]:
    """The record of a file that begins at a place.

    Args:
        file: file that is read.
        place: place of the prefix of the record [bytes].
        stop: place behind which the record must not reach [bytes].

    Returns:
        Type of the record, and start and end of its content in the file [bytes]; zeros if
        the record does not fit in front of `stop`.
    """
    head = read_at(file, place, PREFIX.size)
    if len(head) < PREFIX.size:
        return _NO_RECORD
    op, length = PREFIX.unpack(head)
    start = place + PREFIX.size
    if start + length > stop:
        return _NO_RECORD
    return op, start, start + length


_SUMMARY = frozenset({
    Opcode.SCHEMA, Opcode.CHANNEL, Opcode.CHUNK_INDEX, Opcode.METADATA_INDEX, Opcode.STATISTICS,
})  # fmt: skip
_MOST_SUMMARY = 32 << 20
"""Largest summary that is read [bytes]; files with a larger one are read without it."""
_FOOTER_SIZE = 20  # size of the content of a footer [bytes]
_END = PREFIX.size + _FOOTER_SIZE + len(MAGIC)  # size of footer and magic [bytes]


def summary_of(path: Path) -> Summary | None:
    """The summary of a file, without reading its chunks.

    Args:
        path: path of the file.

    Returns:
        The summary; None of a file without a complete end, or whose summary is malformed
        or too large.

    Raises:
        OSError: it cannot be read.
    """
    summary = Summary()
    with open_regular(path) as file:
        stop = file.seek(0, os.SEEK_END) - _END
        place = _summary_place(file, stop)
        if place is None:
            return None
        known = 0
        try:
            while place < stop:
                op, start, place = record_at(file, place, stop)
                if not place:
                    return None
                if op in _SUMMARY:
                    known += 1
                    record = parsed(op, read_at(file, start, place - start))
                    _add_to_summary(summary, record, stop)
        except ValueError:
            return None
    return summary if known else None


def _summary_place(file: BinaryIO, footer: int) -> int | None:
    """Place of the summary by the footer at this place [bytes]; None without a usable one."""
    if footer <= len(MAGIC):
        return None
    tail = read_at(file, footer, _END)
    if PREFIX.unpack_from(tail) != (Opcode.FOOTER, _FOOTER_SIZE):
        return None
    place = int.from_bytes(tail[PREFIX.size : PREFIX.size + 8], "little")
    if not tail.endswith(MAGIC) or not 0 < place < footer <= place + _MOST_SUMMARY:
        return None
    return place


def _add_to_summary(summary: Summary, record: McapRecord, stop: int) -> None:
    """Add a record to a summary, unless the record refers to a place behind its end.

    Args:
        summary: summary of the file.
        record: record in the part of the file that summarizes the file.
        stop: place of the footer [bytes], in front of which all other records are.
    """
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


# Messages in the records of a chunk, as arrays.


def merged_blocks(channel: int, blocks: Sequence[MessageBlock]) -> Iterator[MessageBlock]:
    """Messages of a channel in order of their log times.

    Args:
        channel: number of the channel in the file.
        blocks: messages of one or several sizes; messages of equal times stay in order.

    Yields:
        Blocks of messages of one size, some thousands at most.
    """
    times = np.concatenate([block.time for block in blocks])
    sizes = np.repeat(
        [block.payload.shape[1] for block in blocks],
        [len(block.records) for block in blocks],
    )
    order = np.argsort(times, kind="stable")
    of_size: dict[int, list[NDArray[np.void]]] = {}
    for block in blocks:
        of_size.setdefault(block.payload.shape[1], []).append(block.records)
    records = {size: np.concatenate(parts) for size, parts in of_size.items()}
    numbers = {size: np.flatnonzero(sizes == size) for size in records}
    for run in equal_runs(sizes[order]):
        size = int(sizes[order[run.start]])
        for first in range(run.start, run.stop, _BLOCK_ROWS):
            chosen = order[first : min(first + _BLOCK_ROWS, run.stop)]
            rows = np.searchsorted(numbers[size], chosen)
            yield MessageBlock(channel, records[size][rows])


def _in_order_of_log_time(data: Bytes, places: Places) -> Places:
    """Places of messages in the records of a chunk, in order of their log times."""
    starts, lengths = places
    if len(starts) < 2:
        return places
    first_bytes = starts + _LOG_TIME_PLACE
    bytes_of_times = data[first_bytes[:, None] + np.arange(8)]
    times = bytes_of_times.copy().view("<u8")[:, 0]
    if (times[1:] >= times[:-1]).all():
        return places
    order = np.argsort(times, kind="stable")
    return starts[order], lengths[order]


def blocks_at(body: bytes, channel: int, places: Places) -> Iterator[MessageBlock]:
    """The messages of a channel at these places in a chunk, in order of their log times.

    Args:
        body: records of the chunk.
        channel: number of the channel in the file.
        places: places of the channel's messages in the chunk.

    Yields:
        Blocks of messages of one size, some thousands at most.
    """
    data = np.frombuffer(body, np.uint8)
    starts, lengths = _in_order_of_log_time(data, places)
    for part in equal_runs(lengths):
        length = int(lengths[part.start])
        size = PREFIX.size + length  # size of a whole record [bytes]
        kind = record_type(length - MESSAGE_HEAD)
        for first in range(part.start, part.stop, _BLOCK_ROWS):
            heads = starts[first : min(first + _BLOCK_ROWS, part.stop)] - PREFIX.size
            records = np.empty((len(heads), size), np.uint8)
            # Stretches without other records are copied at once.
            for run in equal_runs(heads - size * np.arange(len(heads))):
                place = int(heads[run.start])
                count = run.stop - run.start
                records[run] = data[place : place + count * size].reshape(-1, size)
            yield MessageBlock(channel, records.view(kind)[:, 0])
