"""The intact records of a damaged MCAP file."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator
from pathlib import Path

from ur_energy_model.errors import RecordingError
from ur_energy_model.files import open_regular
from ur_energy_model.telemetry.bag.mcap_chunk import ChunkUnpacker
from ur_energy_model.telemetry.bag.mcap_definitions import DEFINITIONS, MAX_DEFINITION, MAX_RECORDS
from ur_energy_model.telemetry.bag.mcap_format import MAGIC, PREFIX, Op
from ur_energy_model.telemetry.bag.mcap_reader import MAX_RECORD

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
