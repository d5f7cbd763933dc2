# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The MCAP container: its records, and its messages as arrays.

The library `mcap` packs and unpacks the records. Two things are done here, because it
handles one message at a time and holds whatever a file states in memory: messages of one
size are arrays (`MessageBlock`), and the contents of records are bounded before they are
unpacked (`McapReader`). The specification is at https://mcap.dev/spec.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from io import BytesIO
from typing import Any, NamedTuple

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

from ur_energy_model.typing import Bytes

RECOVER = "keep what is intact with 'ur_energy recover'"
"""What a user can do with a damaged file."""
MAGIC = b"\x89MCAP0\r\n"
PREFIX = struct.Struct("<BQ")
"""Type and length of a record."""
RECORD_HEAD = struct.Struct("<BQH")
"""The same and the first number of the content, which is the channel of a message."""
MESSAGE_HEAD = 22
"""Size of channel, sequence number, log time and publish time of a message [bytes]."""

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
        content: of the record, without its prefix.

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
        channel: its number in the file.
        records: of the messages [n], see `record_type`.
    """

    channel: int
    records: NDArray[np.void]

    @classmethod
    def of(cls, channel: int, time: NDArray[np.int64], payload: Bytes) -> MessageBlock:
        """Messages with log times [n], ns, and payload [n, size]."""
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
    """What the end of a file states about it.

    Attributes:
        schemas: by their numbers.
        channels: by their numbers.
        chunks: in the order of the file.
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
