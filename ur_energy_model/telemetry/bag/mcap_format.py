# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The MCAP container: its records, packed and unpacked.

The library `mcap` has the same records. It is not used here, for three reasons: it reads
each entry of a message index in Python (which takes a third of the time to read a bag),
reads records of any size into memory, and is not packaged for Ubuntu, while every
recorder needs this chapter.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.typing import Bytes

RECOVER = "keep what is intact with 'ur_energy recover'"
"""What a user can do with a damaged file."""
MAGIC = b"\x89MCAP0\r\n"
PREFIX = struct.Struct("<BQ")  # type and length of a record
RECORD_HEAD = struct.Struct("<BQH")
"""The same and the first number of the content, which is the channel of a message."""
MESSAGE_HEAD = 22
"""Size of channel, sequence number, log time and publish time of a message [bytes]."""


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


_FIELDS: Mapping[Op, str] = {
    Op.HEADER: "ss",  # profile, library
    Op.FOOTER: "QQI",  # starts of the summary and of its offsets, checksum
    Op.SCHEMA: "Hssb",
    Op.CHANNEL: "HHssm",
    # first and last log time, unpacked size, checksum, compression, records
    Op.CHUNK: "QQQIsr",
    Op.MESSAGE_INDEX: "Hb",  # channel, log times and offsets
    Op.CHUNK_INDEX: "QQQQpQsQQ",
    Op.STATISTICS: "QHIIIIQQp",
    Op.METADATA: "sm",
    Op.METADATA_INDEX: "QQs",
    Op.SUMMARY_OFFSET: "BQQ",
    Op.DATA_END: "I",
}
"""Kinds of the fields of records: numbers by their codes in `struct`, s text, b bytes, r bytes with
a long length, m a map of texts, p pairs of a channel and a number."""
_NUMBERS = {code: struct.Struct(f"<{code}") for code in "BHIQ"}
_LENGTH = _NUMBERS["I"]
_LONG = _NUMBERS["Q"]
_PAIR = struct.Struct("<HQ")


def pack(op: Op, *values: Any) -> bytes:
    """One record with these values of its fields."""
    kinds = _FIELDS[op]
    content = b"".join(
        _packed(kind, value) for kind, value in zip(kinds, values, strict=True)
    )
    return PREFIX.pack(op, len(content)) + content


def _packed(kind: str, value: Any) -> bytes:
    if kind in _NUMBERS:
        return _NUMBERS[kind].pack(value)
    if kind == "s":
        value = value.encode()
    elif kind == "m":
        value = b"".join(_packed("s", text) for item in value.items() for text in item)
    elif kind == "p":
        value = b"".join(_PAIR.pack(*item) for item in value.items())
    return b"".join([(_LONG if kind == "r" else _LENGTH).pack(len(value)), value])


def unpack(op: int, content: bytes | memoryview) -> list[Any]:
    """Values of a record's fields; those of a chunk are not copied. ValueError: malformed."""
    view = memoryview(content)
    position = 0
    values = []
    try:
        for kind in _FIELDS[Op(op)]:
            value, position = _unpacked(kind, view, position)
            values.append(value)
    except (struct.error, UnicodeDecodeError):
        raise ValueError(f"a malformed record (type {op})") from None
    return values


def _unpacked(kind: str, view: memoryview, position: int) -> tuple[Any, int]:
    """Value of a field at a position, and the position behind it."""
    head = _NUMBERS.get(kind, _LONG if kind == "r" else _LENGTH)
    number = head.unpack_from(view, position)[0]
    start = position + head.size
    if kind in _NUMBERS:
        return number, start
    stop = start + number
    if stop > len(view):
        raise struct.error
    part = view[start:stop]
    if kind == "s":
        return bytes(part).decode(), stop
    if kind == "p":
        return dict(_PAIR.iter_unpack(part)), stop
    if kind == "m":
        values = {}
        at = 0
        while at < len(part):
            key, at = _unpacked("s", part, at)
            values[key], at = _unpacked("s", part, at)
        return values, stop
    return part if kind == "r" else bytes(part), stop


class Schema(NamedTuple):
    """A message definition in a file."""

    id: int
    name: str
    encoding: str
    data: bytes


class Channel(NamedTuple):
    """A topic in a file."""

    id: int
    schema_id: int
    topic: str
    message_encoding: str = "cdr"
    metadata: Mapping[str, str] = {}


class ChunkIndex(NamedTuple):
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


@lru_cache(maxsize=1000)
def record_type(size: int) -> np.dtype[Any]:
    """The record of a message whose payload has this size."""
    return np.dtype([
        ("op", "u1"), ("length", "<u8"), ("channel", "<u2"), ("sequence", "<u4"),
        ("log_time", "<u8"), ("publish_time", "<u8"), ("payload", "u1", (size,)),
    ])  # fmt: skip


class MessageBlock(NamedTuple):
    """Messages of one channel and size in order: their records [n], see `record_type`."""

    channel: int
    records: NDArray[np.void]

    @classmethod
    def of(cls, channel: int, time: NDArray[np.int64], payload: Bytes) -> MessageBlock:
        """Messages with log times [n], ns, and payload [n, size]."""
        count, size = payload.shape
        records = np.zeros(count, record_type(size))
        records["op"] = Op.MESSAGE
        records["length"] = MESSAGE_HEAD + size
        records["channel"] = channel
        records["payload"] = payload
        records["log_time"] = records["publish_time"] = time
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
    """Summary section of a file; metadata are (place, length, name) of its records."""

    schemas: list[Schema] = field(default_factory=list)
    channels: list[Channel] = field(default_factory=list)
    chunks: list[ChunkIndex] = field(default_factory=list)
    metadata: list[tuple[int, int, str]] = field(default_factory=list)
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
        sizes = (
            len(self.schemas),
            len(self.channels),
            0,
            len(self.metadata),
            len(self.chunks),
        )
        times = (self.start_time, self.end_time)
        counts = dict(sorted(self.counts.items()))
        groups: dict[Op, Sequence[tuple[Any, ...]]] = {
            Op.SCHEMA: self.schemas,
            Op.CHANNEL: self.channels,
            Op.CHUNK_INDEX: self.chunks,
            Op.METADATA_INDEX: self.metadata,
            Op.STATISTICS: [(self.messages, *sizes, *times, counts)],
        }
        data_end = pack(Op.DATA_END, 0)
        start = position = offset + len(data_end)
        summary = []
        offsets = []
        for op, records in groups.items():
            group = b"".join(pack(op, *record) for record in records)
            if group:
                summary.append(group)
                offsets.append(pack(Op.SUMMARY_OFFSET, op, position, len(group)))
            position += len(group)
        body = b"".join([*summary, *offsets]) + pack(Op.FOOTER, start, position, 0)[:-4]
        return data_end + body + _LENGTH.pack(zlib.crc32(body)) + MAGIC


PROVISIONAL_TAIL = pack(Op.DATA_END, 0) + pack(Op.FOOTER, 0, 0, 0) + MAGIC
"""End of a growing file, without summary, so that every reader opens it."""
