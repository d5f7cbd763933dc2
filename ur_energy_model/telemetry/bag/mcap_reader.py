"""McapReader: reads MCAP files, damaged or hostile ones too, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.files import open_regular
from ur_energy_model.telemetry.bag.mcap_chunk import MAX_CHUNK, ChunkUnpacker
from ur_energy_model.telemetry.bag.mcap_definitions import DEFINITIONS, McapDefinitions
from ur_energy_model.telemetry.bag.mcap_format import MAGIC, MESSAGE_HEAD, PREFIX, MessageBlock, Op
from ur_energy_model.telemetry.bag.message_places import MessagePlaces, Positions
from ur_energy_model.telemetry.runs import equal_runs

MAX_RECORD = MAX_CHUNK + (1 << 20)
"""Largest chunk or message that is read; other records are passed over."""
_LOOSE = 1 << 20
"""Messages outside chunks are read in groups of about this size in bytes."""
_BLOCK_ROWS = 4096
_PATTERN = 32
"""Consecutive messages in which a pattern that repeats is looked for."""
_TIME = slice(6, 14)
"""Log time in the head of a message."""
_INDEXES = frozenset({Op.MESSAGE_INDEX, Op.CHUNK_INDEX})


class McapReader:
    """Reads the data section of a file once.

    Args:
        path: of the file.

    Attributes:
        definitions: schemas, channels and metadata read so far.

    Raises:
        RecordingError: from iterating: not an MCAP file, a damaged one, or one beyond the limits.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.definitions = McapDefinitions(path)

    def blocks(self, end: str = "") -> Iterator[MessageBlock]:
        """Messages of the topics whose names end so, some thousands of one size at once."""
        for body in self.bodies():
            yield from self.blocks_of(body, end)

    def bodies(self) -> Iterator[bytes]:
        """The records of each chunk, and groups of messages outside chunks."""
        loose = bytearray()
        try:
            size = self.path.stat().st_size
            unpacker = ChunkUnpacker(self.path, size)
            for op, content in self._records(size):
                if op == Op.MESSAGE:
                    loose += PREFIX.pack(op, len(content)) + content
                if loose and (op != Op.MESSAGE or len(loose) > _LOOSE):
                    yield bytes(loose)
                    loose.clear()
                if op == Op.CHUNK:
                    yield unpacker.unpack(content)
        except OSError as error:
            raise self.definitions.refuse(
                f"cannot be read ({error.strerror})", "check the file"
            ) from None
        if loose:
            yield bytes(loose)

    def _records(self, size: int) -> Iterator[tuple[int, bytes]]:
        """Chunks, messages outside chunks, and definitions, which are noted too."""
        with open_regular(self.path) as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise self.definitions.refuse(
                    "is not an MCAP file", "name a bag that ur_energy recorded"
                )
            position = len(MAGIC)
            while position + PREFIX.size <= size:
                op, length = PREFIX.unpack(file.read(PREFIX.size))
                position += PREFIX.size + length
                if op in (Op.DATA_END, Op.FOOTER) or position > size:
                    return
                if op not in DEFINITIONS and op not in (Op.CHUNK, Op.MESSAGE):
                    file.seek(length, 1)
                    if op not in _INDEXES:
                        self.definitions.note(op, b"")
                    continue
                if length > MAX_RECORD:
                    if op != Op.MESSAGE:
                        raise self.definitions.refuse(f"has a record of {length} bytes")
                    file.seek(length, 1)
                    continue
                content = file.read(length)
                if op in DEFINITIONS:
                    self.definitions.note(op, content)
                yield op, content

    def blocks_of(self, body: bytes, end: str) -> Iterator[MessageBlock]:
        """Such messages in the records of a chunk; those of one channel stay in order."""
        channels = self.definitions.channels
        for channel, (starts, lengths) in self.message_positions(body).items():
            if channel in channels and channels[channel].topic.endswith(end):
                for part in equal_runs(lengths):
                    for first in range(part.start, part.stop, _BLOCK_ROWS):
                        rows = slice(first, min(first + _BLOCK_ROWS, part.stop))
                        yield _message_block(body, channel, int(lengths[first]), starts[rows])

    def message_positions(self, body: bytes) -> dict[int, Positions]:
        """Offsets and lengths of the messages of each channel; definitions are noted.

        Raises:
            RecordingError: the records do not fit into the chunk.
        """
        found = MessagePlaces()
        position, size, seen = 0, len(body), 0
        unpack, message = PREFIX.unpack_from, int(Op.MESSAGE)
        while position + PREFIX.size <= size:
            op, length = unpack(body, position)
            start = position + PREFIX.size
            position = start + length
            if position > size:
                break
            if op == message:
                if length < MESSAGE_HEAD.size:
                    raise self.definitions.refuse("has a message without header")
                found.add(body[start] | body[start + 1] << 8, start, length)
                seen += 1
                if seen == _PATTERN:
                    position, seen = found.repeat(body, position, seen), 0
            else:
                seen = 0
                self.definitions.note(op, body[start:position] if op in DEFINITIONS else b"")
        if position != size:
            raise self.definitions.refuse("has a chunk whose records do not fit")
        return found.by_channel()


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
