"""McapReader: reads MCAP files, damaged or hostile ones too, in bounded memory and time."""

from __future__ import annotations

import os
import zlib
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import zstandard

from ur_energy_model.errors import RecordingError, optional_import
from ur_energy_model.files import Budget, open_regular
from ur_energy_model.telemetry.bag.cdr import CdrError
from ur_energy_model.telemetry.bag.layout import EVENTS_TOPIC, decode_event
from ur_energy_model.telemetry.bag.mcap_format import (
    MAGIC,
    MESSAGE_HEAD,
    PREFIX,
    RECORD_HEAD,
    RECOVER,
    Channel,
    ChunkIndex,
    MessageBlock,
    Op,
    Schema,
    unpack,
)
from ur_energy_model.telemetry.samples import equal_runs
from ur_energy_model.typing import Indices

Places = tuple[Indices, Indices]
"""Offsets [n] and lengths [n] of the contents of messages in a chunk."""
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
        report: called with each problem, and whether it is damage (and not only a missing end);
            reading continues behind it. None for errors instead.

    Attributes:
        schemas, channels: by number, as far as the file was read.
        library: the software that wrote the file.

    Raises:
        RecordingError: from every method: not an MCAP file, a damaged one, or one beyond the
            budget.
    """

    def __init__(
        self,
        path: Path,
        budget: Budget | None = None,
        report: Callable[[str, bool], None] | None = None,
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
        loose = bytearray()
        try:
            with open_regular(self.path) as file:
                size = file.seek(0, os.SEEK_END)
                places = (_record_at(file, place, size) for place in chunks or ())
                chosen = ((op, self._content(file, op, start, end)) for op, start, end in places)
                for op, body in self._scan(file, size) if chunks is None else chosen:
                    if op == Op.MESSAGE:
                        loose += body
                    if loose and (op != Op.MESSAGE or len(loose) > _LOOSE):
                        yield bytes(loose)
                        loose.clear()
                    if op == Op.CHUNK:
                        yield body
                if loose:
                    yield bytes(loose)
        except OSError as error:
            raise self.refuse(f"cannot be read ({error.strerror})", "check the file") from None

    def _scan(self, file: BinaryIO, size: int) -> Iterator[tuple[int, bytes]]:
        """Types and contents of the records of a file, see `_content`.

        With `report`, reading continues at the next chunk behind damage: chunks have checksums,
        and a mark by which they are found among arbitrary bytes.
        """
        report, place, intact = self._report, len(MAGIC), True
        if _read(file, 0, len(MAGIC)) != MAGIC:
            if report is None:
                raise self.refuse("is not an MCAP file", "name a bag that ur_energy recorded")
            place, intact = self._next_chunk(file, 0, size, "the beginning"), False
        while size - place >= PREFIX.size:
            op, start, end = _record_at(file, place, size)
            if end and (op, end - start) in ((Op.DATA_END, 4), (Op.FOOTER, 20)):
                return
            damaged = "" if end else f"the record at byte {place}"
            if damaged and report is None:
                return
            try:
                if end and (content := self._content(file, op, start, end)):
                    yield op, content
            except RecordingError:
                if report is None:
                    raise
                if self.budget.exhausted:
                    report(f"more than any recording holds, from byte {place} on", True)
                    return
                if op not in _DEFINITIONS:
                    damaged = f"the {'chunk' if op == Op.CHUNK else 'record'} at byte {place}"
            intact = intact and not damaged
            place = self._next_chunk(file, place + 1, size, damaged) if damaged else end
        if report is not None and place < size:
            report("the last record is incomplete", False)
        elif report is not None and intact:
            report("the file was not finished", False)

    def _content(self, file: BinaryIO, op: int, start: int, end: int) -> bytes:
        """The records of a chunk, or a whole message record; empty for other records.

        A definition is noted, and everything else is passed over.
        """
        length = end - start
        if op in _DEFINITIONS:
            self._expect_bounded(op, length)
            self.note(op, _read(file, start, length))
        elif op == Op.CHUNK:
            if length > MAX_CHUNK:
                raise self.refuse(f"has a chunk of {length} bytes", "convert it to smaller chunks")
            return self._unpacked(_read(file, start, length))
        elif op == Op.MESSAGE:
            place = start - PREFIX.size
            return _read(file, place, end - place) if length <= MAX_CHUNK else b""
        elif op not in _KNOWN and self._report is not None:
            raise self.refuse(f"has a record of the unknown type {op}")
        elif op not in _INDEXES:
            self.budget.spend(items=1)
        return b""

    def _next_chunk(self, file: BinaryIO, place: int, stop: int, damaged: str) -> int:
        """Report damage; returns where the next chunk may begin, or the end if there is none."""
        assert self._report is not None
        self._report(f"{damaged} is damaged or cut off", True)
        mark, size = place + _MARK_OFFSET, _WINDOW
        while mark < stop:
            window, found = _read(file, mark, size + len(_CHUNK_MARK) + 8), -1
            while (found := window.find(_CHUNK_MARK, found + 1, size + len(_CHUNK_MARK))) >= 0:
                chunk = mark + found - _MARK_OFFSET
                op, start, end = _record_at(file, chunk, stop)
                packed = int.from_bytes(window[found + 8 : found + 16], "little")
                if op == Op.CHUNK and end and end - start == packed + _CHUNK_HEAD:
                    return chunk
            mark, size = mark + size, min(4 * size, _MOST_WINDOW)
        return stop

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
            if compression == "zstd":
                unpacker = zstandard.ZstdDecompressor(max_window_size=MAX_CHUNK)
                if zstandard.frame_content_size(packed) == size:
                    body = unpacker.decompress(packed, max_output_size=size)
                else:  # its size is not stated, or a lie: at most one byte too many is unpacked
                    with unpacker.stream_reader(packed) as reader:
                        body = reader.read(size + 1)
            elif compression == "lz4":
                with optional_import():
                    import lz4.frame  # type: ignore[import-untyped]

                body = lz4.frame.LZ4FrameDecompressor().decompress(packed, size + 1)
            elif compression == "":
                body = bytes(packed)
            else:
                remedy = "convert the bag to zstd"
                raise self.refuse(f"has a chunk compressed by {compression[:20]!r}", remedy)
        except (zstandard.ZstdError, RuntimeError, MemoryError):
            raise self.refuse("has a chunk that cannot be unpacked") from None
        if len(body) != size or (checksum and zlib.crc32(body) != checksum):
            raise self.refuse("has a chunk whose checksum is wrong")
        return body

    def note(self, op: int, content: bytes) -> None:
        """Keep a schema, channel, metadata or header record; others are only counted."""
        self._expect_bounded(op, len(content))
        key = op, int.from_bytes(content[:2], "little")
        if op in _DEFINITIONS and self._contents.get(key) == content:
            return  # some writers repeat them in each chunk
        self.budget.spend(items=1, memory=len(content) if op in _DEFINITIONS else 0)
        if op == Op.METADATA:
            self._metadata.append(content)
        elif op in _DEFINITIONS:
            values = self._unpack(op, content)
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
            name, values = self._unpack(Op.METADATA, content)
            yield name, values

    def refuse(self, problem: str, remedy: str = RECOVER) -> RecordingError:
        """Error that names the file."""
        return RecordingError(self.path, problem, remedy)

    def _unpack(self, op: int, content: bytes) -> list[Any]:
        try:
            return unpack(op, content)
        except ValueError as error:
            raise self.refuse(f"has {error}") from None

    def _expect_bounded(self, op: int, length: int) -> None:
        if op in _DEFINITIONS and length > MAX_DEFINITION:
            raise self.refuse(f"has a record (type {op}) of {length} bytes")

    def blocks_of(self, body: bytes, end: str) -> Iterator[MessageBlock]:
        """Such messages in the records of a chunk; those of one channel stay in order."""
        data = np.frombuffer(body, np.uint8)
        for channel, (starts, lengths) in self.message_places(body).items():
            if channel not in self.channels or not self.channels[channel].topic.endswith(end):
                continue
            for part in equal_runs(lengths):
                step = PREFIX.size + int(lengths[part.start])
                for first in range(part.start, part.stop, _BLOCK_ROWS):
                    places = starts[first : min(first + _BLOCK_ROWS, part.stop)] - PREFIX.size
                    out = np.empty((len(places), step), np.uint8)
                    # Stretches without other records are copied at once.
                    for run in equal_runs(places - step * np.arange(len(places))):
                        place, count = int(places[run.start]), run.stop - run.start
                        out[run] = data[place : place + count * step].reshape(-1, step)
                    time = out[:, _TIME].copy().view("<i8")[:, 0].astype(np.int64)
                    yield MessageBlock(channel, time, out[:, PREFIX.size + MESSAGE_HEAD.size :])

    def message_places(self, body: bytes) -> dict[int, Places]:
        """Places of the messages of each channel in the records of a chunk; others are noted."""
        channels, starts, lengths = array("q"), array("q"), array("q")
        # Every message of a recording passes through this loop, a hundred thousand in three
        # minutes, so it does nothing but step from record to record: comparing arrays of heads
        # where records repeat in a pattern was no faster, and needed a hundred lines.
        unpack_head, message, prefix = RECORD_HEAD.unpack_from, int(Op.MESSAGE), PREFIX.size
        place, last, stop = 0, len(body) - RECORD_HEAD.size, len(body)
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
        number, start_of, length_of = (
            np.frombuffer(each, np.int64) for each in (channels, starts, lengths)
        )
        if (length_of < MESSAGE_HEAD.size).any():
            raise self.refuse("has a message without header")
        order = np.argsort(number, kind="stable")
        runs = sorted(equal_runs(number[order]), key=lambda run: int(order[run.start]))
        return {
            int(number[order[run.start]]): (start_of[order[run]], length_of[order[run]])
            for run in runs
        }


def _read(file: BinaryIO, position: int, count: int) -> bytes:
    file.seek(position)
    return file.read(count)


def _record_at(file: BinaryIO, place: int, stop: int) -> tuple[int, int, int]:
    """Type, start and end of the content of a record; zeros if it does not fit before `stop`."""
    file.seek(place)
    head, start = file.read(PREFIX.size), place + PREFIX.size
    if len(head) < PREFIX.size:
        return 0, 0, 0
    op, length = PREFIX.unpack(head)
    return (op, start, start + length) if start + length <= stop else (0, 0, 0)


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
    found: list[tuple[int, bytes]] = []
    with open_regular(path) as file:
        place = file.seek(0, os.SEEK_END) - _END
        if place < len(MAGIC):
            return []
        end = _read(file, place, _END)
        start = int.from_bytes(end[PREFIX.size : PREFIX.size + 8], "little")
        intact = PREFIX.unpack_from(end) == (Op.FOOTER, 20) and end.endswith(MAGIC)
        if not intact or not 0 < start < place or place - start > _MOST_SUMMARY:
            return []
        while start < place:
            op, content, start = _record_at(file, start, place)
            if not start:
                break
            found.append((op, _read(file, content, start - content)))
    return found


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


class FileContents(NamedTuple):
    """Number of messages of a storage file by topic, and whether a user put a mark into it."""

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
