"""McapReader: reads MCAP files, damaged or hostile ones too, in bounded memory."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

import numpy as np
import zstandard
from numpy.typing import NDArray

from ur_energy_model.errors import RecordingError
from ur_energy_model.missing_packages import needed_here
from ur_energy_model.telemetry.bag.mcap_format import (
    MAGIC,
    MESSAGE_HEAD,
    PREFIX,
    Channel,
    MessageBlock,
    Op,
    Schema,
)
from ur_energy_model.telemetry.runs import equal_runs

MAX_CHUNK = 256 << 20
MAX_RECORD = 256 << 20
_TIME = slice(6, 14)
"""Log time in the head of a message."""
_RECOVER = "keep what is intact with 'ur_energy recover'"


@dataclass
class McapReader:
    """Reads the data section of a file once.

    Attributes:
        path: of the file.
        schemas, channels: read so far, by number.
        metadata: named key-value pairs read so far, in order.
        library: the software that wrote the file.

    Raises:
        RecordingError: from iterating: not an MCAP file, or a damaged one.
    """

    path: Path
    schemas: dict[int, Schema] = field(default_factory=dict)
    channels: dict[int, Channel] = field(default_factory=dict)
    metadata: list[tuple[str, Mapping[str, str]]] = field(default_factory=list)
    library: str = ""

    def blocks(self, topic: str | None = None) -> Iterator[list[MessageBlock]]:
        """Messages as lists of blocks, one list for each chunk.

        Args:
            topic: only messages of this topic; None for all.
        """
        for op, content in self.records():
            if op == Op.CHUNK:
                yield self.blocks_of_chunk(unpack_chunk(content, self.path), topic)
            elif op == Op.MESSAGE:
                body = PREFIX.pack(op, len(content)) + content
                yield self.blocks_of_chunk(body, topic)

    def records(self) -> Iterator[tuple[int, bytes]]:
        """Type and content of the records outside chunks."""
        try:
            yield from self._records()
        except OSError as error:
            raise self._refuse(f"cannot be read ({error.strerror})", "check the file") from None

    def _records(self) -> Iterator[tuple[int, bytes]]:
        with self.path.open("rb") as file:
            size = self.path.stat().st_size
            if file.read(len(MAGIC)) != MAGIC:
                raise self._refuse("is not an MCAP file", "name a bag that ur_energy recorded")
            position = len(MAGIC)
            while position + PREFIX.size <= size:
                op, length = PREFIX.unpack(file.read(PREFIX.size))
                if op in (Op.DATA_END, Op.FOOTER):
                    return
                end = position + PREFIX.size + length
                if end > size:
                    break
                if length > MAX_RECORD:
                    raise self._refuse(f"has a record of {length} bytes at {position}", _RECOVER)
                content = file.read(length)
                self.note(op, content)
                yield op, content
                position = end

    def note(self, op: int, content: bytes) -> None:
        """Keep a schema, channel, metadata or header record.

        Raises:
            RecordingError: a malformed record.
        """
        try:
            if op == Op.SCHEMA:
                stream = BytesIO(content)
                number = _number(stream, "<H")
                schema = Schema(number, _text(stream), _text(stream), _text(stream))
                self.schemas[schema.id] = schema
            elif op == Op.CHANNEL:
                stream = BytesIO(content)
                number, schema_id = _number(stream, "<H"), _number(stream, "<H")
                channel = Channel(number, schema_id, _text(stream), _text(stream), _map(stream))
                self.channels[number] = channel
            elif op == Op.METADATA:
                stream = BytesIO(content)
                self.metadata.append((_text(stream), _map(stream)))
            elif op == Op.HEADER:
                stream = BytesIO(content)
                _text(stream)
                self.library = _text(stream)
        except (struct.error, UnicodeDecodeError):
            raise self._refuse(f"has a malformed record (type {op})", _RECOVER) from None

    def blocks_of_chunk(self, body: bytes, topic: str | None) -> list[MessageBlock]:
        """Messages in the records of a chunk; those of one channel stay in order."""
        blocks = []
        for channel, (starts, lengths) in self.message_positions(body).items():
            if channel in self.channels and topic in (None, self.channels[channel].topic):
                for part in equal_runs(lengths):
                    size = lengths[part.start]
                    blocks.append(_message_block(body, channel, size, np.array(starts[part])))
        return blocks

    def message_positions(self, body: bytes) -> dict[int, tuple[list[int], list[int]]]:
        """Offsets and lengths of the messages of each channel; other records are kept by `note`.

        Raises:
            RecordingError: the records do not fit into the chunk.
        """
        places: dict[int, tuple[list[int], list[int]]] = {}
        position, size = 0, len(body)
        unpack, message = PREFIX.unpack_from, int(Op.MESSAGE)
        while position + PREFIX.size <= size:
            op, length = unpack(body, position)
            start = position + PREFIX.size
            position = start + length
            if position > size:
                break
            if op == message:
                if length < MESSAGE_HEAD.size:
                    raise self._refuse("has a message without header", _RECOVER)
                starts, lengths = places.setdefault(body[start] | body[start + 1] << 8, ([], []))
                starts.append(start)
                lengths.append(length)
            else:
                self.note(op, body[start:position])
        if position != size:
            raise self._refuse("has a chunk whose records do not fit", _RECOVER)
        return places

    def _refuse(self, problem: str, remedy: str) -> RecordingError:
        return RecordingError(self.path, problem, remedy)


def _message_block(
    body: bytes, channel: int, length: int, starts: NDArray[np.int64]
) -> MessageBlock:
    """Messages of one length at these offsets [n], copied in stretches without other records."""
    step = length + PREFIX.size
    out = np.empty((len(starts), step), np.uint8)
    for part in equal_runs(starts - step * np.arange(len(starts))):
        place = int(starts[part.start]) - PREFIX.size
        count = part.stop - part.start
        out[part] = np.frombuffer(body, np.uint8, count * step, place).reshape(-1, step)
    head = PREFIX.size + MESSAGE_HEAD.size
    time = out[:, PREFIX.size + _TIME.start : PREFIX.size + _TIME.stop].copy().view("<i8")[:, 0]
    return MessageBlock(channel, time.astype(np.int64), out[:, head:])


def unpack_chunk(content: bytes, path: Path) -> bytes:
    """Records of a chunk, at most MAX_CHUNK bytes.

    Raises:
        RecordingError: damaged, too large, or with an unknown compression.
    """
    try:
        stream = BytesIO(content)
        _, _, size, checksum = struct.unpack("<3QI", stream.read(28))
        compression = _text(stream)
        packed = stream.read(_number(stream, "<Q"))
    except (struct.error, UnicodeDecodeError, OverflowError):
        raise RecordingError(path, "has a malformed chunk", _RECOVER) from None
    if size > MAX_CHUNK:
        raise RecordingError(
            path, f"has a chunk that unpacks to {size} bytes", "use a bag from a source you trust"
        )
    body = _decompress(packed, compression, size, path)
    if len(body) != size or (checksum and zlib.crc32(body) != checksum):
        raise RecordingError(path, "has a chunk whose checksum is wrong", _RECOVER)
    return body


def _decompress(packed: bytes, compression: str, size: int, path: Path) -> bytes:
    if compression == "":
        return packed
    try:
        if compression == "zstd":
            unpacker = zstandard.ZstdDecompressor(max_window_size=1 << 27)
            if zstandard.frame_content_size(packed) == size:
                return unpacker.decompress(packed, max_output_size=size)
            with unpacker.stream_reader(packed) as reader:
                return reader.read(size + 1)
        if compression == "lz4":
            with needed_here():
                import lz4.frame  # type: ignore[import-untyped]

            data: bytes = lz4.frame.LZ4FrameDecompressor().decompress(packed, size + 1)
            return data
    except (zstandard.ZstdError, RuntimeError, MemoryError):
        raise RecordingError(path, "has a chunk that cannot be unpacked", _RECOVER) from None
    raise RecordingError(
        path, f"has a chunk compressed by {compression!r}", "convert the bag to zstd"
    )


def _number(stream: BinaryIO, code: str) -> int:
    return int(struct.unpack(code, stream.read(struct.calcsize(code)))[0])


def _text(stream: BinaryIO) -> str:
    size = _number(stream, "<I")
    data = stream.read(size)
    if len(data) != size:
        raise struct.error
    return data.decode()


def _map(stream: BinaryIO) -> dict[str, str]:
    end = _number(stream, "<I") + stream.tell()
    values = {}
    while stream.tell() < end:
        key = _text(stream)
        values[key] = _text(stream)
    return values
