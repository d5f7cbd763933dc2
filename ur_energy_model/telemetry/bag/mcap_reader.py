"""McapReader: reads MCAP files, damaged or hostile ones too, in bounded memory."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.errors import RecordingError
from ur_energy_model.files import open_regular
from ur_energy_model.telemetry.bag.mcap_format import (
    DEFINITIONS,
    MAGIC,
    MAX_CHUNK,
    MAX_DEFINITION,
    MAX_RECORDS,
    MESSAGE_HEAD,
    PREFIX,
    ChunkUnpacker,
    McapDefinitions,
    MessageBlock,
    Op,
)
from ur_energy_model.telemetry.samples import equal_runs

# Places of the messages in a chunk, found a pattern at a time.
#
# Recorders write the same topics in the same order over and over. Once a pattern of messages has
# come twice, the rest of the chunk is compared with it as an array, which finds the same places as
# reading record by record.

Positions = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Offsets [n] and lengths [n] of messages in a chunk."""
_HEAD = PREFIX.size + 2
"""Bytes of a record that name its type, length and channel."""
_GROWTH = 8


class _Place(NamedTuple):
    channel: int
    start: int
    length: int


class MessagePlaces:
    """Collects the places of messages, in order."""

    def __init__(self) -> None:
        self._single: list[_Place] = []
        self._channels: list[NDArray[np.int64]] = []
        self._starts: list[NDArray[np.int64]] = []
        self._lengths: list[NDArray[np.int64]] = []

    def add(self, channel: int, start: int, length: int) -> None:
        """Add one message: its channel, and offset and length of its content."""
        self._single.append(_Place(channel, start, length))

    def repeat(self, body: bytes, position: int, last: int) -> int:
        """Add the messages that repeat the pattern of the last ones added.

        Args:
            body: records of a chunk.
            position: behind the last message added.
            last: number of messages added last that have no other records between them.

        Returns:
            Position behind the last message that belongs to the pattern.
        """
        pattern = _pattern(self._single[-last:])
        if not pattern:
            return position
        begin = pattern[0].start - PREFIX.size
        stride = position - begin
        heads = np.array([place.start - PREFIX.size for place in pattern])
        expected = _heads(body, heads)
        count, limit = 0, (len(body) - position) // stride
        step = 1
        while count < limit:  # compared in growing parts, so that short repeats cost little
            rounds = np.arange(count, min(count + step, limit))
            same = _heads(body, position + stride * rounds[:, None] + heads - begin) == expected
            fits = same.all(axis=(1, 2))
            if not fits.all():
                count += int(np.argmin(fits))
                break
            count, step = count + len(rounds), _GROWTH * step
        self._flush()
        rounds = np.arange(count)[:, None]
        starts = position + stride * rounds + heads - begin + PREFIX.size
        self._starts.append(starts.ravel())
        self._channels.append(np.tile([place.channel for place in pattern], count))
        self._lengths.append(np.tile([place.length for place in pattern], count))
        return position + stride * count

    def by_channel(self) -> dict[int, Positions]:
        """Offsets and lengths of the messages of each channel, in order."""
        self._flush()
        if not self._channels:
            return {}
        channels, starts, lengths = map(
            np.concatenate, (self._channels, self._starts, self._lengths)
        )
        return {
            int(channel): (starts[channels == channel], lengths[channels == channel])
            for channel in dict.fromkeys(channels.tolist())
        }

    def _flush(self) -> None:
        """Move messages added one by one to the arrays."""
        if self._single:
            channel, start, length = np.array(self._single, np.int64).T
            self._channels.append(channel)
            self._starts.append(start)
            self._lengths.append(length)
            self._single = []


def _pattern(places: Sequence[_Place]) -> Sequence[_Place]:
    """The last messages, if those before them have the same channels and lengths; else none.

    Patterns are a quarter to a half of the messages long, so that they hold rare topics too.
    """
    kinds = [(place.channel, place.length) for place in places]
    count = len(kinds)
    for size in range(max(1, count // 4), count // 2 + 1):
        if kinds[count - size :] == kinds[count - 2 * size : count - size]:
            return places[count - size :]
    return ()


def _heads(body: bytes, places: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Type, length and channel of the records at these offsets [..., bytes]."""
    data = np.frombuffer(body, np.uint8)
    heads: NDArray[np.uint8] = data[places[..., None] + np.arange(_HEAD)]
    return heads


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


# The intact records of a damaged MCAP file.

_CHUNK_MARK = b"\x04\x00\x00\x00zstd"
_MARK_OFFSET = PREFIX.size + 28
_CHUNK_HEAD = 28 + len(_CHUNK_MARK) + 8
"""Size of a chunk record without its packed records [bytes]."""
_KNOWN = frozenset(Op)
_WINDOW = 32 << 20
"""Part of a file that is kept in memory [bytes]."""

Report = Callable[[str, bool], None]
"""Called with each problem found, and whether it is damage (and not only a missing end)."""


class IntactRecords:
    """Iterates over definitions outside chunks, and unpacked chunks, that are intact.

    Args:
        path: of the file.
        report: told of the problems.

    Raises:
        OSError: from iterating: the file cannot be read.
    """

    def __init__(self, path: Path, report: Report) -> None:
        self._path, self._report = path, report
        self._released = 0

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        with open_regular(self._path) as file:
            size = file.seek(0, 2)
            if not size:
                self._report("the file is empty", True)
                return
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                yield from self._records(data, size)

    def _records(self, data: mmap.mmap, size: int) -> Iterator[tuple[int, bytes]]:
        unpacker, complete = ChunkUnpacker(self._path, size), True
        position, definitions = len(MAGIC), 0
        if data[: len(MAGIC)] != MAGIC:
            complete = False
            position = self._resume(data, 0, "the beginning is damaged")
        while position + PREFIX.size <= size:
            op, length = PREFIX.unpack_from(data, position)
            start, stop = position + PREFIX.size, position + PREFIX.size + length
            if op == Op.DATA_END and length == 4:
                return
            problem = None
            if op not in _KNOWN or stop > size:
                problem = f"damaged or cut off at byte {position}"
            elif op == Op.CHUNK:
                try:
                    if length > MAX_RECORD:
                        raise RecordingError(self._path, "has too large a chunk", "")
                    yield op, unpacker.unpack(data[start:stop])
                except RecordingError:
                    problem = f"the chunk at byte {position} is damaged"
            elif op in DEFINITIONS and length <= MAX_DEFINITION and definitions < MAX_RECORDS:
                definitions += 1
                yield op, data[start:stop]
            if unpacker.exhausted:
                self._report(f"more than any recording holds, from byte {position} on", True)
                return
            if problem is not None:
                complete = False
                position = self._resume(data, position + 1, problem)
            else:
                position = stop
            self._release(data, position)
        if position < size:
            self._report("the last record is incomplete", False)
        elif complete:
            self._report("the file was not finished", False)

    def _resume(self, data: mmap.mmap, position: int, problem: str) -> int:
        """Offset at which the next chunk may begin, the size of the data if there is none."""
        self._report(problem, True)
        size, mark = len(data), position + _MARK_OFFSET
        while mark < size:
            stop = min(mark + _WINDOW, size)
            found = data.find(_CHUNK_MARK, mark, stop + len(_CHUNK_MARK))
            if found < 0:
                mark = stop
                self._release(data, mark)
                continue
            place = found - _MARK_OFFSET
            op, length = PREFIX.unpack_from(data, place)
            packed = int.from_bytes(data[found + 8 : found + 16], "little")
            if op == Op.CHUNK and length == packed + _CHUNK_HEAD and length <= size - place:
                return place
            mark = found + 1
        return size

    def _release(self, data: mmap.mmap, position: int) -> None:
        """Give back the memory of what was read."""
        if position - self._released > _WINDOW and hasattr(data, "madvise"):
            stop = position // mmap.PAGESIZE * mmap.PAGESIZE
            data.madvise(mmap.MADV_DONTNEED, self._released, stop - self._released)
            self._released = stop
