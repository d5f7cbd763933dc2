"""Records and summary of the MCAP container, shared by writer, reader and recovery.

Source: the MCAP specification, version 0. All numbers are little-endian.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.typing import Bytes

RECOVER = "keep what is intact with 'ur_energy recover'"
"""What a user can do with a damaged file."""
MAGIC = b"\x89MCAP0\r\n"
PREFIX = struct.Struct("<BQ")
MESSAGE_HEAD = struct.Struct("<HIQQ")


class Op(IntEnum):
    """Record types."""

    HEADER = 0x01
    FOOTER = 0x02
    SCHEMA = 0x03
    CHANNEL = 0x04
    MESSAGE = 0x05
    CHUNK = 0x06
    MESSAGE_INDEX = 0x07
    CHUNK_INDEX = 0x08
    ATTACHMENT = 0x09
    ATTACHMENT_INDEX = 0x0A
    STATISTICS = 0x0B
    METADATA = 0x0C
    METADATA_INDEX = 0x0D
    SUMMARY_OFFSET = 0x0E
    DATA_END = 0x0F


def record(op: int, content: bytes) -> bytes:
    """One record: type, length, content."""
    return PREFIX.pack(op, len(content)) + content


def text(value: str | bytes) -> bytes:
    """A string, or bytes, prefixed with the length."""
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<I", len(data)) + data


def text_map(values: Mapping[str, str]) -> bytes:
    """A map of strings prefixed with its length in bytes."""
    body = b"".join(text(key) + text(value) for key, value in values.items())
    return struct.pack("<I", len(body)) + body


def metadata_record(name: str, values: Mapping[str, str]) -> bytes:
    """A metadata record."""
    return record(Op.METADATA, text(name) + text_map(values))


@dataclass(frozen=True)
class Schema:
    """A message definition in a file."""

    id: int
    name: str
    encoding: str
    data: str | bytes

    def encode(self) -> bytes:
        """The record."""
        head = struct.pack("<H", self.id)
        return record(Op.SCHEMA, head + text(self.name) + text(self.encoding) + text(self.data))


@dataclass(frozen=True)
class Channel:
    """A topic in a file."""

    id: int
    schema_id: int
    topic: str
    message_encoding: str = "cdr"
    metadata: Mapping[str, str] = field(default_factory=dict)

    def encode(self) -> bytes:
        """The record."""
        head = struct.pack("<HH", self.id, self.schema_id)
        names = text(self.topic) + text(self.message_encoding)
        return record(Op.CHANNEL, head + names + text_map(self.metadata))


@dataclass(frozen=True)
class MessageBlock:
    """Consecutive messages of one channel and one size.

    Attributes:
        channel: number of the channel.
        time: log times [n], ns, not decreasing.
        payload: encoded messages [n, size].
    """

    channel: int
    time: NDArray[np.int64]
    payload: Bytes


@dataclass(frozen=True)
class ChunkIndex:
    """Position and content of a chunk."""

    start_time: int
    end_time: int
    offset: int
    length: int
    message_index_offsets: Mapping[int, int]
    message_index_length: int
    compression: str
    compressed_size: int
    uncompressed_size: int

    def encode(self) -> bytes:
        """The record."""
        offsets = b"".join(struct.pack("<HQ", *item) for item in self.message_index_offsets.items())
        return record(
            Op.CHUNK_INDEX,
            struct.pack(
                "<4QI", self.start_time, self.end_time, self.offset, self.length, len(offsets)
            )
            + offsets
            + struct.pack("<Q", self.message_index_length)
            + text(self.compression)
            + struct.pack("<2Q", self.compressed_size, self.uncompressed_size),
        )


@dataclass
class Summary:
    """Summary section of a file."""

    schemas: list[Schema] = field(default_factory=list)
    channels: list[Channel] = field(default_factory=list)
    chunks: list[ChunkIndex] = field(default_factory=list)
    metadata: list[tuple[str, int, int]] = field(default_factory=list)
    counts: dict[int, int] = field(default_factory=dict)

    @property
    def messages(self) -> int:
        """Number of messages."""
        return sum(self.counts.values())

    @property
    def start_time(self) -> int:
        """Log time of the earliest message [ns], 0 if there is none."""
        return min((chunk.start_time for chunk in self.chunks), default=0)

    @property
    def end_time(self) -> int:
        """Log time of the latest message [ns], 0 if there is none."""
        return max((chunk.end_time for chunk in self.chunks), default=0)

    def tail(self, offset: int) -> bytes:
        """The end of the file, from its data-end record at `offset` to the closing magic."""
        groups = {
            Op.SCHEMA: b"".join(schema.encode() for schema in self.schemas),
            Op.CHANNEL: b"".join(channel.encode() for channel in self.channels),
            Op.CHUNK_INDEX: b"".join(chunk.encode() for chunk in self.chunks),
            Op.METADATA_INDEX: b"".join(
                record(Op.METADATA_INDEX, struct.pack("<2Q", place, length) + text(name))
                for name, place, length in self.metadata
            ),
            Op.STATISTICS: self._statistics(),
        }
        end_of_data = record(Op.DATA_END, bytes(4))
        start = position = offset + len(end_of_data)
        offsets = b""
        for op, group in groups.items():
            if group:
                offsets += record(Op.SUMMARY_OFFSET, struct.pack("<B2Q", op, position, len(group)))
            position += len(group)
        summary = b"".join(groups.values()) + offsets
        return end_of_data + _close(summary, start, position)

    def _statistics(self) -> bytes:
        counts = b"".join(struct.pack("<HQ", *item) for item in sorted(self.counts.items()))
        return record(
            Op.STATISTICS,
            struct.pack(
                "<QHIIIIQQI",
                self.messages,
                len(self.schemas),
                len(self.channels),
                0,
                len(self.metadata),
                len(self.chunks),
                self.start_time,
                self.end_time,
                len(counts),
            )
            + counts,
        )


def provisional_tail() -> bytes:
    """End of a growing file, without summary, so that every reader opens it."""
    return record(Op.DATA_END, bytes(4)) + record(Op.FOOTER, bytes(20)) + MAGIC


def _close(summary: bytes, start: int, offsets_start: int) -> bytes:
    """Summary, footer with its checksum, magic."""
    footer = record(Op.FOOTER, struct.pack("<2QI", start, offsets_start, 0))
    checksum = zlib.crc32(summary + footer[:-4])
    return summary + footer[:-4] + struct.pack("<I", checksum) + MAGIC
