"""The MCAP container: records, chunks and definitions, in bounded memory and time."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

import numpy as np
import zstandard
from numpy.typing import NDArray

from ur_energy_model.errors import RecordingError, optional_import
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


# ChunkUnpacker: unpacks the chunks of an MCAP file in bounded memory and time.

MAX_CHUNK = 64 << 20
"""Largest unpacked size of a chunk; writers make chunks of 1 to 8 MB."""
MAX_RATIO = 200
"""Largest ratio of unpacked to packed size of a file (that of an arm at rest is below 50)."""
_FREE = 512 << 20
"""Unpacked size up to which the ratio of a small file does not matter."""
_HEAD = struct.Struct("<3QI")


class ChunkUnpacker:
    """Unpacks the chunks of one file.

    Args:
        path: of the file, for error messages.
        size: of the file in bytes.
    """

    def __init__(self, path: Path, size: int) -> None:
        self._path = path
        self._left = max(_FREE, MAX_RATIO * size)

    @property
    def exhausted(self) -> bool:
        """Whether chunks unpacked to more than any recording does."""
        return self._left < 0

    def unpack(self, content: bytes) -> bytes:
        """Records of a chunk, at most MAX_CHUNK bytes.

        Raises:
            RecordingError: damaged, too large, or with an unknown compression; the file is small
                and unpacks to far more than a recording.
        """
        size, checksum, compression, packed = self._parts(content)
        if size > MAX_CHUNK:
            raise RecordingError(
                self._path,
                f"has a chunk of {size} bytes, the limit is {MAX_CHUNK}",
                "convert the bag to smaller chunks",
            )
        self._left -= size
        if self.exhausted:
            raise RecordingError(
                self._path,
                f"unpacks to more than {MAX_RATIO} times its size, which no recording does",
                "use a bag from a source you trust",
            )
        body = self._decompressed(packed, compression, size)
        if len(body) != size or (checksum and zlib.crc32(body) != checksum):
            raise RecordingError(self._path, "has a chunk whose checksum is wrong", RECOVER)
        return body

    def _parts(self, content: bytes) -> tuple[int, int, str, memoryview]:
        """Unpacked size, checksum, name of the compression, and packed records."""
        view = memoryview(content)
        try:
            _, _, size, checksum = _HEAD.unpack_from(view)
            (length,) = struct.unpack_from("<I", view, _HEAD.size)
            start = _HEAD.size + 4 + length
            compression = bytes(view[_HEAD.size + 4 : start]).decode()
            (packed,) = struct.unpack_from("<Q", view, start)
        except (struct.error, UnicodeDecodeError):
            raise RecordingError(self._path, "has a malformed chunk", RECOVER) from None
        return size, checksum, compression, view[start + 8 : start + 8 + packed]

    def _decompressed(self, packed: memoryview, compression: str, size: int) -> bytes:
        """At most one byte more than `size`."""
        if compression == "":
            return bytes(packed)
        try:
            if compression == "zstd":
                unpacker = zstandard.ZstdDecompressor(max_window_size=MAX_CHUNK)
                if zstandard.frame_content_size(packed) == size:
                    return unpacker.decompress(packed, max_output_size=size)
                with unpacker.stream_reader(packed) as reader:
                    return reader.read(size + 1)
            if compression == "lz4":
                with optional_import():
                    import lz4.frame  # type: ignore[import-untyped]

                data: bytes = lz4.frame.LZ4FrameDecompressor().decompress(packed, size + 1)
                return data
        except (zstandard.ZstdError, RuntimeError, MemoryError):
            problem = "has a chunk that cannot be unpacked"
            raise RecordingError(self._path, problem, RECOVER) from None
        raise RecordingError(
            self._path, f"has a chunk compressed by {compression[:20]!r}", "convert the bag to zstd"
        )


# McapDefinitions: schemas, channels and metadata of an MCAP file, in bounded memory.

DEFINITIONS = frozenset({Op.SCHEMA, Op.CHANNEL, Op.METADATA, Op.HEADER})
"""Records that `McapDefinitions` keeps; others are only counted."""
MAX_DEFINITION = 4 << 20
"""Largest schema, channel or metadata record in bytes."""
MAX_DEFINITIONS = 32 << 20
"""Largest size of all schemas and channels of a file, and of metadata that waits, in bytes."""
MAX_RECORDS = 1_000_000
"""Most records of a file that are neither messages nor chunks nor indexes."""


@dataclass
class McapDefinitions:
    """What a file states about its messages, as far as it was read.

    Attributes:
        path: of the file.
        schemas, channels: by number.
        library: the software that wrote the file.
    """

    path: Path
    schemas: dict[int, Schema] = field(default_factory=dict)
    channels: dict[int, Channel] = field(default_factory=dict)
    library: str = ""
    _sizes: dict[tuple[int, int], int] = field(default_factory=dict)
    _size: int = 0
    _records: int = 0
    _metadata: list[bytes] = field(default_factory=list)
    _waiting: int = 0

    def note(self, op: int, content: bytes) -> None:
        """Keep a schema, channel, metadata or header record; others are only counted.

        Raises:
            RecordingError: a malformed record, or more than a recording has.
        """
        self._records += 1
        if self._records > MAX_RECORDS:
            raise self.refuse(f"has more than {MAX_RECORDS} records that are no messages")
        if op not in DEFINITIONS:
            return
        if len(content) > MAX_DEFINITION:
            raise self.refuse(f"has a record (type {op}) of {len(content)} bytes")
        try:
            self._keep(op, content)
        except (struct.error, UnicodeDecodeError):
            raise self.refuse(f"has a malformed record (type {op})") from None

    def take_metadata(self) -> Iterator[tuple[str, Mapping[str, str]]]:
        """Named key-value pairs read since the last call, in order.

        Raises:
            RecordingError: a malformed record.
        """
        taken, self._metadata, self._waiting = self._metadata, [], 0
        try:
            for stream in map(BytesIO, taken):
                yield _text(stream), _map(stream)
        except (struct.error, UnicodeDecodeError):
            raise self.refuse(f"has a malformed record (type {Op.METADATA:d})") from None

    def refuse(self, problem: str, remedy: str = RECOVER) -> RecordingError:
        """Error that names the file."""
        return RecordingError(self.path, problem, remedy)

    def _keep(self, op: int, content: bytes) -> None:
        stream = BytesIO(content)
        if op == Op.HEADER:
            _text(stream)
            self.library = _text(stream)
        elif op == Op.METADATA:
            self._waiting += len(content)
            if self._waiting > MAX_DEFINITIONS:
                raise self.refuse(f"has more than {MAX_DEFINITIONS} bytes of metadata in one place")
            self._metadata.append(content)
        elif op == Op.SCHEMA:
            number = _number(stream, "<H")
            schema = Schema(number, _text(stream), _text(stream), _bytes(stream))
            self._count(op, number, len(content))
            self.schemas[number] = schema
        else:
            number, schema_id = _number(stream, "<H"), _number(stream, "<H")
            channel = Channel(number, schema_id, _text(stream), _text(stream), _map(stream))
            self._count(op, number, len(content))
            self.channels[number] = channel

    def _count(self, op: int, number: int, size: int) -> None:
        """Count the bytes of a definition, which replaces one of the same number."""
        total = self._size + size - self._sizes.get((op, number), 0)
        if total > MAX_DEFINITIONS:
            raise self.refuse(f"has more than {MAX_DEFINITIONS} bytes of schemas and channels")
        self._size, self._sizes[op, number] = total, size


def _number(stream: BinaryIO, code: str) -> int:
    return int(struct.unpack(code, stream.read(struct.calcsize(code)))[0])


def _text(stream: BinaryIO) -> str:
    return _bytes(stream).decode()


def _bytes(stream: BinaryIO) -> bytes:
    size = _number(stream, "<I")
    data = stream.read(size)
    if len(data) != size:
        raise struct.error
    return data


def _map(stream: BinaryIO) -> dict[str, str]:
    end = _number(stream, "<I") + stream.tell()
    values = {}
    while stream.tell() < end:
        key = _text(stream)
        values[key] = _text(stream)
    return values
