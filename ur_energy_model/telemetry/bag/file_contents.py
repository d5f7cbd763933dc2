"""What a storage file holds: number of messages by topic, and whether it is marked."""

from __future__ import annotations

import os
import struct
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ur_energy_model.errors import RecordingError
from ur_energy_model.files import open_regular
from ur_energy_model.telemetry.bag.cdr import CdrError
from ur_energy_model.telemetry.bag.layout import EVENTS_TOPIC, decode_event
from ur_energy_model.telemetry.bag.mcap_format import (
    DEFINITIONS,
    MAGIC,
    MAX_DEFINITION,
    PREFIX,
    ChunkUnpacker,
    McapDefinitions,
    Op,
)
from ur_energy_model.telemetry.bag.mcap_reader import McapReader

MARK = "mark"
"""Kind of the events that a user puts into a bag."""
_MOST_SUMMARY = 32 << 20
"""Largest summary that is read [bytes]; larger files are read as a whole."""
_FOOTER = PREFIX.size + 20
_STATISTICS = struct.Struct("<QHIIIIQQI")
_CHUNK_INDEX = struct.Struct("<4QI")


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
    try:
        summary = _summary(path)
    except OSError as error:
        raise RecordingError(path, f"cannot be read ({error.strerror})", "check the file") from None
    try:
        return _summarised(path, summary) if summary else _scanned(path)
    except (struct.error, CdrError) as error:
        raise RecordingError(path, f"is damaged ({error})", "recover the bag") from None


def metadata_behind_chunks(path: Path) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Metadata that follows the last chunk of a file, as in recovered ones; none without a summary.

    Raises:
        RecordingError: it cannot be read, or a record is malformed.
    """
    definitions, last, places = McapDefinitions(path), 0, []
    try:
        for op, content in _records(_summary(path)):
            if op == Op.CHUNK_INDEX:
                last = max(last, _CHUNK_INDEX.unpack_from(content)[2])
            elif op == Op.METADATA_INDEX:
                places.append(struct.unpack_from("<2Q", content))
        places = [place for place in places if place[0] > last]
        if not places:
            return
        with open_regular(path) as file:
            for offset, length in places:
                record = os.pread(file.fileno(), min(length, MAX_DEFINITION), offset)
                if record[:1] == bytes([Op.METADATA]):
                    definitions.note(Op.METADATA, record[PREFIX.size :])
                yield from definitions.take_metadata()
    except (struct.error, OverflowError):
        return
    except OSError as error:
        raise definitions.refuse(f"cannot be read ({error.strerror})", "check the file") from None


def has_summary(path: Path) -> bool:
    """Whether a file was finished; a recorder that was killed leaves one without summary.

    Raises:
        OSError: it cannot be read.
    """
    return bool(_summary(path, most=1))


def _summary(path: Path, most: int = _MOST_SUMMARY) -> bytes:
    """The first `most` bytes of the records between data and footer; empty if there are none."""
    with open_regular(path) as file:
        size = file.seek(0, os.SEEK_END)
        place = size - len(MAGIC) - _FOOTER
        if place < 0:
            return b""
        end = os.pread(file.fileno(), _FOOTER + len(MAGIC), place)
        op, length = PREFIX.unpack_from(end)
        (start,) = struct.unpack_from("<Q", end, PREFIX.size)
        if not end.endswith(MAGIC) or op != Op.FOOTER or length != 20 or not 0 < start < place:
            return b""
        if place - start > _MOST_SUMMARY:
            return b""
        return os.pread(file.fileno(), min(place - start, most), start)


def _summarised(path: Path, summary: bytes) -> FileContents:
    """Contents by the summary; the chunks with events are read."""
    reader, counts = McapReader(path), Counter[int]()
    chunks: list[tuple[int, int, frozenset[int]]] = []
    for op, content in _records(summary):
        if op in DEFINITIONS:
            reader.definitions.note(op, content)
        elif op == Op.STATISTICS:
            counts.update(dict(struct.iter_unpack("<HQ", content[_STATISTICS.size :])))
        elif op == Op.CHUNK_INDEX:
            _, _, offset, length, entries = _CHUNK_INDEX.unpack_from(content)
            head = _CHUNK_INDEX.size
            places = struct.iter_unpack("<HQ", content[head : head + entries])
            chunks.append((offset, length, frozenset(number for number, _ in places)))
    topics = {number: channel.topic for number, channel in reader.definitions.channels.items()}
    events = {number for number, topic in topics.items() if topic.endswith(EVENTS_TOPIC)}
    unpacker = ChunkUnpacker(path, path.stat().st_size)
    marked = False
    with open_regular(path) as file:
        for offset, length, numbers in chunks:
            if marked or not events & numbers:
                continue
            content = os.pread(file.fileno(), length, offset)[PREFIX.size :]
            marked = _has_mark(reader, unpacker.unpack(content))
    return FileContents(
        {topics[number]: count for number, count in counts.items() if number in topics}, marked
    )


def _scanned(path: Path) -> FileContents:
    """Contents by reading the whole file."""
    reader, counts, marked = McapReader(path), Counter[str](), False
    for body in reader.bodies():
        for block in reader.blocks_of(body, ""):
            counts[reader.definitions.channels[block.channel].topic] += len(block.payload)
        marked = marked or _has_mark(reader, body)
    return FileContents(counts, marked)


def _has_mark(reader: McapReader, body: bytes) -> bool:
    """Whether the records of a chunk contain a mark."""
    return any(
        decode_event(row.tobytes()).kind == MARK
        for block in reader.blocks_of(body, EVENTS_TOPIC)
        for row in block.payload
    )


def _records(data: bytes) -> Iterator[tuple[int, bytes]]:
    position = 0
    while position + PREFIX.size <= len(data):
        op, length = PREFIX.unpack_from(data, position)
        position += PREFIX.size
        yield op, data[position : position + length]
        position += length
