"""McapReader: reads MCAP files, damaged or hostile ones too, in bounded memory and time."""

from __future__ import annotations

import os
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import zstandard
from numpy.typing import NDArray

from ur_energy_model.errors import RecordingError, optional_import
from ur_energy_model.files import Budget, open_regular
from ur_energy_model.telemetry.bag.cdr import CdrError
from ur_energy_model.telemetry.bag.layout import EVENTS_TOPIC, decode_event
from ur_energy_model.telemetry.bag.mcap_format import (
    MAGIC,
    MESSAGE_HEAD,
    PREFIX,
    RECOVER,
    Channel,
    ChunkIndex,
    MessageBlock,
    Op,
    Scanner,
    Schema,
    unpack,
)
from ur_energy_model.telemetry.samples import equal_runs
from ur_energy_model.typing import Indices

Places = tuple[Indices, Indices]
"""Offsets [n] and lengths [n] of the contents of messages in a chunk."""
Report = Callable[[str, bool], None]
"""Called with each problem of a file, and whether it is damage (and not only a missing end)."""
MAX_CHUNK = 64 << 20
"""Largest chunk, packed or unpacked; writers make chunks of 1 to 8 MB."""
MAX_DEFINITION = 4 << 20
"""Largest schema, channel or metadata record [bytes]."""
MAX_RATIO = 200
"""Largest ratio of unpacked to packed size of large files (that of an arm at rest is below 50)."""
_FREE, _MEMORY, _ITEMS = 512 << 20, 128 << 20, 500_000
_DEFINITIONS = frozenset({Op.SCHEMA, Op.CHANNEL, Op.METADATA, Op.HEADER})
_INDEXES = frozenset({Op.MESSAGE_INDEX, Op.CHUNK_INDEX})
_KNOWN = frozenset(Op)
_CHUNK_MARK = b"\x04\x00\x00\x00zstd"
_MARK_OFFSET = PREFIX.size + 28
_CHUNK_HEAD = 28 + len(_CHUNK_MARK) + 8
"""Size of a chunk record without its packed records [bytes]."""
_WINDOW, _MOST_WINDOW = 64 << 10, 16 << 20
"""Part of a file that is searched at once, at first and at most [bytes]."""
_LOOSE = 1 << 20
"""Messages outside chunks are read in groups of about this size [bytes]."""
_BLOCK_ROWS = 4096
_PATTERN = 32
"""Consecutive messages in which a pattern that repeats is looked for."""
_GROWTH = 8
_HEAD = PREFIX.size + 2
"""Bytes of a message record that hold its type, length and channel."""
_TIME = slice(PREFIX.size + 6, PREFIX.size + 14)
"""Log time in a message record."""


def budget_of(source: Path, files: Sequence[Path]) -> Budget:
    """What reading the files of a bag may cost; files that cannot be read count nothing."""
    size = sum(file.stat().st_size for file in files if file.is_file())
    items = _ITEMS + 20 * len(files)
    return Budget(source, RecordingError, max(_FREE, MAX_RATIO * size), _MEMORY, items)


class McapReader:
    """Reads one file, once.

    Args:
        path: of the file.
        budget: of the bag that the file belongs to; None for the file's own.
        report: called with problems, behind which reading continues; None for errors instead.

    Attributes:
        schemas, channels: by number, as far as the file was read.
        library: the software that wrote the file.

    Raises:
        RecordingError: from every method: not an MCAP file, a damaged one, or one beyond the
            budget.
    """

    def __init__(
        self, path: Path, budget: Budget | None = None, report: Report | None = None
    ) -> None:
        self.path, self._report = path, report
        self.budget = budget_of(path, [path]) if budget is None else budget
        self.schemas: dict[int, Schema] = {}
        self.channels: dict[int, Channel] = {}
        self.library = ""
        self._metadata: list[bytes] = []
        self._contents: dict[tuple[int, int], bytes] = {}

    def blocks(self, end: str = "") -> Iterator[MessageBlock]:
        """Messages of the topics whose names end so, some thousands of one size at once."""
        for body in self.bodies():
            yield from self.blocks_of(body, end)

    def bodies(self, chunks: Sequence[int] | None = None) -> Iterator[bytes]:
        """The records of each chunk, and groups of messages outside chunks.

        Args:
            chunks: places of the chunks to read; None for the whole file.
        """
        try:
            with open_regular(self.path) as file:
                scanner = Scanner(_reads(file), len(MAGIC), file.seek(0, os.SEEK_END))
                if chunks is None:
                    yield from _grouped(self._scan(scanner))
                for place in chunks or ():
                    scanner.position = place
                    op, start, length = next(iter(scanner), (0, 0, 0))
                    yield from (body for _, body in self._record(scanner, op, start, length))
        except OSError as error:
            raise self.refuse(f"cannot be read ({error.strerror})", "check the file") from None

    def _scan(self, scanner: Scanner) -> Iterator[tuple[int, bytes]]:
        """Unpacked chunks, and message records outside of them; definitions are noted.

        With `report`, reading continues at the next chunk behind damage: chunks have checksums,
        and a mark by which they are found among arbitrary bytes.
        """
        report, intact = self._report, True
        if scanner.read(0, len(MAGIC)) != MAGIC:
            if report is None:
                remedy = "name a bag that ur_energy recorded"
                raise self.refuse("is not an MCAP file", remedy)
            scanner.position, intact = self._next_chunk(scanner, 0, "the beginning"), False
        while True:
            for op, start, length in scanner:
                if (op, length) in ((Op.DATA_END, 4), (Op.FOOTER, 20)):
                    return
                try:
                    yield from self._record(scanner, op, start, length)
                except RecordingError:
                    if report is None:
                        raise
                    place = start - PREFIX.size
                    if self.budget.exhausted:
                        report(f"more than any recording holds, from byte {place} on", True)
                        return
                    if op not in _DEFINITIONS:
                        what = "the chunk" if op == Op.CHUNK else "the record"
                        what = f"{what} at byte {place}"
                        scanner.position = self._next_chunk(scanner, place + 1, what)
                        intact = False
            if report is None:
                return
            if scanner.stop - scanner.position < PREFIX.size:
                break
            what, intact = f"the record at byte {scanner.position}", False
            scanner.position = self._next_chunk(scanner, scanner.position + 1, what)
        if scanner.position < scanner.stop:
            report("the last record is incomplete", False)
        elif intact:
            report("the file was not finished", False)

    def _record(
        self, scanner: Scanner, op: int, start: int, length: int
    ) -> Iterator[tuple[int, bytes]]:
        """A chunk or message; a definition is noted, and everything else passed over."""
        if op == Op.CHUNK:
            if length > MAX_CHUNK:
                raise self.refuse(f"has a chunk of {length} bytes", "convert it to smaller chunks")
            yield op, self._unpacked(scanner.read(start, length))
        elif op == Op.MESSAGE:
            if length <= MAX_CHUNK:
                yield op, scanner.read(start - PREFIX.size, PREFIX.size + length)
        elif op in _DEFINITIONS:
            self._expect_bounded(op, length)
            self.note(op, scanner.read(start, length))
        elif op not in _KNOWN and self._report is not None:
            raise self.refuse(f"has a record of the unknown type {op}")
        elif op not in _INDEXES:
            self.budget.spend(items=1)

    def _next_chunk(self, scanner: Scanner, place: int, damaged: str) -> int:
        """Report damage; returns where the next chunk may begin, or the end if there is none."""
        assert self._report is not None
        self._report(f"{damaged} is damaged or cut off", True)
        mark, size = place + _MARK_OFFSET, _WINDOW
        while mark < scanner.stop:
            window, found = scanner.read(mark, size + len(_CHUNK_MARK) + 8), -1
            while (found := window.find(_CHUNK_MARK, found + 1, size + len(_CHUNK_MARK))) >= 0:
                start = mark + found - _MARK_OFFSET
                op, length = PREFIX.unpack(scanner.read(start, PREFIX.size))
                packed = int.from_bytes(window[found + 8 : found + 16], "little")
                stop = start + PREFIX.size + length
                if op == Op.CHUNK and length == packed + _CHUNK_HEAD and stop <= scanner.stop:
                    return start
            mark, size = mark + size, min(4 * size, _MOST_WINDOW)
        return scanner.stop

    def _unpacked(self, content: bytes) -> bytes:
        """Records of a chunk."""
        try:
            _, _, size, checksum, compression, packed = unpack(Op.CHUNK, content)
        except ValueError:
            raise self.refuse("has a malformed chunk") from None
        if size > MAX_CHUNK:
            remedy = "convert the bag to smaller chunks"
            raise self.refuse(f"has a chunk of {size} bytes, the limit is {MAX_CHUNK}", remedy)
        self.budget.spend(volume=size)
        try:
            body = _decompressed(packed, compression, size)
        except (zstandard.ZstdError, RuntimeError, MemoryError):
            raise self.refuse("has a chunk that cannot be unpacked") from None
        if body is None:
            remedy = "convert the bag to zstd"
            raise self.refuse(f"has a chunk compressed by {compression[:20]!r}", remedy)
        if len(body) != size or (checksum and zlib.crc32(body) != checksum):
            raise self.refuse("has a chunk whose checksum is wrong")
        return body

    def note(self, op: int, content: bytes) -> None:
        """Keep a schema, channel, metadata or header record; others are only counted."""
        self._expect_bounded(op, len(content))
        if op == Op.METADATA:
            self.budget.spend(items=1, memory=len(content))
            self._metadata.append(content)
            return
        key = op, int.from_bytes(content[:2], "little")
        if op in _DEFINITIONS and self._contents.get(key) == content:
            return  # some writers repeat them in each chunk
        self.budget.spend(items=1, memory=len(content) if op in _DEFINITIONS else 0)
        if op not in _DEFINITIONS:
            return
        try:
            values = unpack(op, content)
        except ValueError as error:
            raise self.refuse(f"has {error}") from None
        self._contents[key] = content
        if op == Op.HEADER:
            self.library = values[1]
        elif op == Op.SCHEMA:
            self.schemas[values[0]] = Schema(*values)
        else:
            self.channels[values[0]] = Channel(*values)

    def take_metadata(self) -> Iterator[tuple[str, Mapping[str, str]]]:
        """Named key-value pairs read since the last call, in order."""
        taken, self._metadata = self._metadata, []
        for content in taken:
            try:
                name, values = unpack(Op.METADATA, content)
            except ValueError as error:
                raise self.refuse(f"has {error}") from None
            yield name, values

    def refuse(self, problem: str, remedy: str = RECOVER) -> RecordingError:
        """Error that names the file."""
        return RecordingError(self.path, problem, remedy)

    def _expect_bounded(self, op: int, length: int) -> None:
        if op in _DEFINITIONS and length > MAX_DEFINITION:
            raise self.refuse(f"has a record (type {op}) of {length} bytes")

    def blocks_of(self, body: bytes, end: str) -> Iterator[MessageBlock]:
        """Such messages in the records of a chunk; those of one channel stay in order."""
        for channel, (starts, lengths) in self.message_places(body).items():
            if channel in self.channels and self.channels[channel].topic.endswith(end):
                for part in equal_runs(lengths):
                    for first in range(part.start, part.stop, _BLOCK_ROWS):
                        rows = slice(first, min(first + _BLOCK_ROWS, part.stop))
                        yield _message_block(body, channel, int(lengths[first]), starts[rows])

    def message_places(self, body: bytes) -> dict[int, Places]:
        """Places of the messages of each channel in the records of a chunk; others are noted."""
        found, scanner, seen = _FoundMessages(body), Scanner.of(body), 0
        for op, start, length in scanner:
            if op != Op.MESSAGE:
                seen = 0
                self.note(op, body[start : start + length] if op in _DEFINITIONS else b"")
                continue
            if length < MESSAGE_HEAD.size:
                raise self.refuse("has a message without header")
            found.add(body[start] | body[start + 1] << 8, start, length)
            seen += 1
            if seen == _PATTERN:
                scanner.position, seen = found.repeat(scanner.position, seen), 0
        if scanner.position != len(body):
            raise self.refuse("has a chunk whose records do not fit")
        return found.by_channel()


def _reads(file: BinaryIO) -> Callable[[int, int], bytes]:
    def read(position: int, count: int) -> bytes:
        file.seek(position)
        return file.read(count)

    return read


def _grouped(records: Iterator[tuple[int, bytes]]) -> Iterator[bytes]:
    """Chunks, and messages outside of them joined to groups."""
    loose = bytearray()
    for op, body in records:
        if op == Op.MESSAGE:
            loose += body
        if loose and (op != Op.MESSAGE or len(loose) > _LOOSE):
            yield bytes(loose)
            loose.clear()
        if op == Op.CHUNK:
            yield body
    if loose:
        yield bytes(loose)


def _decompressed(packed: memoryview, compression: str, size: int) -> bytes | None:
    """At most one byte more than `size`; None for an unknown compression."""
    if compression == "":
        return bytes(packed)
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
    return None


class _FoundMessages:
    """Collects the places of the messages of a chunk, in order.

    Args:
        body: records of the chunk.
    """

    def __init__(self, body: bytes) -> None:
        self._body = np.frombuffer(body, np.uint8)
        self._last: list[tuple[int, int, int]] = []
        self._parts: list[NDArray[np.int64]] = []

    def add(self, channel: int, start: int, length: int) -> None:
        """Add one message: its channel, and offset and length of its content."""
        self._last.append((channel, start, length))

    def repeat(self, position: int, last: int) -> int:
        """Add the messages that repeat the pattern of the last ones added.

        Recorders write the same topics at the same rates, so a chunk is one pattern of messages
        over and over, and to step through it record by record would take most of the time of
        reading a bag. Two rounds of the pattern were read record by record. Where the bytes one
        round further on are again the types, lengths and channels of the pattern, each record
        there ends where the next one begins, since the lengths are the same: so comparing these
        heads at all rounds, as one array, finds what reading record by record would find. The
        first round with another head ends it, and is read record by record.

        Args:
            position: behind the last message added.
            last: number of messages added last that have no other records between them.

        Returns:
            Position behind the last message that belongs to the pattern.
        """
        pattern = np.array(_pattern(self._last[-last:]), np.int64).reshape(-1, 3)
        if not len(pattern):
            return position
        heads = pattern[:, 1] - PREFIX.size
        stride = position - int(heads[0])
        expected = self._heads(heads)
        count, step, limit = 0, 1, (len(self._body) - position) // stride
        while count < limit:  # compared in growing parts, so that short repeats cost little
            rounds = np.arange(count, min(count + step, limit))[:, None] + 1
            fits = (self._heads(heads + stride * rounds) == expected).all(axis=(1, 2))
            count += len(fits) if fits.all() else int(np.argmin(fits))
            if not fits.all():
                break
            step *= _GROWTH
        self._flush()
        repeated = np.tile(pattern, (count, 1))
        repeated[:, 1] += np.repeat(stride * np.arange(1, count + 1), len(pattern))
        self._parts.append(repeated)
        return position + stride * count

    def by_channel(self) -> dict[int, Places]:
        """Offsets and lengths of the messages of each channel, in order."""
        self._flush()
        if not self._parts:
            return {}
        channels, starts, lengths = np.concatenate(self._parts).T
        return {
            channel: (starts[channels == channel], lengths[channels == channel])
            for channel in dict.fromkeys(channels.tolist())
        }

    def _flush(self) -> None:
        """Move messages added one by one to the arrays."""
        if self._last:
            self._parts.append(np.array(self._last, np.int64))
            self._last = []

    def _heads(self, places: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Type, length and channel of the records at these offsets [..., bytes]."""
        heads: NDArray[np.uint8] = self._body[places[..., None] + np.arange(_HEAD)]
        return heads


def _pattern(messages: Sequence[tuple[int, int, int]]) -> Sequence[tuple[int, int, int]]:
    """The last messages, if those before them have the same channels and lengths; else none.

    Patterns are a quarter to a half of the messages long, so that they hold rare topics too.
    """
    kinds = [(channel, length) for channel, _, length in messages]
    count = len(kinds)
    for size in range(max(1, count // 4), count // 2 + 1):
        if kinds[count - size :] == kinds[count - 2 * size : count - size]:
            return messages[count - size :]
    return ()


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
    time = out[:, _TIME].copy().view("<i8")[:, 0]
    return MessageBlock(channel, time.astype(np.int64), out[:, PREFIX.size + MESSAGE_HEAD.size :])


# What the summary of a file holds, without reading its chunks.

MARK = "mark"
"""Kind of the events that a user puts into a bag."""
_MOST_SUMMARY = 32 << 20
"""Largest summary that is read [bytes]; larger files are read as a whole."""
_END = PREFIX.size + 20 + len(MAGIC)
"""Size of footer and magic [bytes]."""


def summary_of(path: Path) -> list[tuple[int, bytes]]:
    """Types and contents of the records in a file's summary; none of a file without an end.

    Raises:
        OSError: it cannot be read.
    """
    with open_regular(path) as file:
        read, place = _reads(file), file.seek(0, os.SEEK_END) - _END
        if place < len(MAGIC):
            return []
        end = read(place, _END)
        start = int.from_bytes(end[PREFIX.size : PREFIX.size + 8], "little")
        intact = PREFIX.unpack_from(end) == (Op.FOOTER, 20) and end.endswith(MAGIC)
        if not intact or not 0 < start < place or place - start > _MOST_SUMMARY:
            return []
        data = read(start, place - start)
    return [(op, data[start : start + length]) for op, start, length in Scanner.of(data)]


def metadata_behind_chunks(path: Path, budget: Budget) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Metadata that follows the last chunk of a file, as in recovered ones; none without a summary.

    Raises:
        RecordingError: it cannot be read, or a record is malformed.
    """
    reader, last = McapReader(path, budget), 0
    try:
        summary = summary_of(path)
        chunks = [content for op, content in summary if op == Op.CHUNK_INDEX]
        places = [unpack(op, content)[:2] for op, content in summary if op == Op.METADATA_INDEX]
        if chunks:
            last = unpack(Op.CHUNK_INDEX, chunks[-1])[2]
        with open_regular(path) as file:
            for offset, length in places:
                if offset > last:
                    record = os.pread(file.fileno(), min(length, MAX_DEFINITION), offset)
                    if record[:1] == bytes([Op.METADATA]):
                        reader.note(Op.METADATA, record[PREFIX.size :])
    except (ValueError, OverflowError):
        return
    except OSError as error:
        raise reader.refuse(f"cannot be read ({error.strerror})", "check the file") from None
    yield from reader.take_metadata()


@dataclass(frozen=True)
class FileContents:
    """What a storage file holds.

    Attributes:
        messages: number of messages by topic.
        marked: whether a user put a mark into it.
    """

    messages: Mapping[str, int]
    marked: bool


def file_contents(path: Path) -> FileContents:
    """What a storage file holds; only its summary and its events are read, if it has a summary.

    Raises:
        RecordingError: it cannot be read.
    """
    reader, counts, marked = McapReader(path), Counter[int](), False
    try:
        summary = summary_of(path)
        for op, content in summary:
            if op in _DEFINITIONS:
                reader.note(op, content)
            elif op == Op.STATISTICS:
                counts.update(unpack(op, content)[-1])
        events = {n for n, each in reader.channels.items() if each.topic.endswith(EVENTS_TOPIC)}
        chunks = [ChunkIndex(*unpack(op, data)) for op, data in summary if op == Op.CHUNK_INDEX]
        places = [each.offset for each in chunks if events & each.message_index_offsets.keys()]
        for body in reader.bodies(places if summary else None):
            for block in reader.blocks_of(body, "" if not summary else EVENTS_TOPIC):
                if not summary:
                    counts[block.channel] += len(block.payload)
                if reader.channels[block.channel].topic.endswith(EVENTS_TOPIC):
                    kinds = (decode_event(row.tobytes()).kind for row in block.payload)
                    marked = marked or MARK in kinds
    except OSError as error:
        raise reader.refuse(f"cannot be read ({error.strerror})", "check the file") from None
    except (ValueError, CdrError) as error:
        raise reader.refuse(f"is damaged ({error})", "recover the bag") from None
    topics = {number: channel.topic for number, channel in reader.channels.items()}
    return FileContents({topics[n]: count for n, count in counts.items() if n in topics}, marked)
