"""FileState: whether a file that was written is still there as it was written, or still written."""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ur_energy_model.files import open_regular
from ur_energy_model.telemetry.bag.mcap_format import MAGIC, PREFIX, ChunkIndex, Op

MOST_CHECKED = 256
"""Chunks of a file whose beginnings are compared."""


@dataclass(frozen=True)
class FileState:
    """State of a file after it was written last.

    Attributes:
        device, inode: of the file.
        size: [bytes].
        modified: time of the last change [ns since the epoch].
    """

    device: int
    inode: int
    size: int
    modified: int

    @classmethod
    def of(cls, status: os.stat_result) -> FileState:
        """State by the result of `stat`."""
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)

    @classmethod
    def at(cls, path: Path) -> FileState | None:
        """State of the file at a path, None if there is none that can be read."""
        try:
            return cls.of(path.stat())
        except OSError:
            return None

    def is_same_file(self, other: FileState) -> bool:
        """Whether both are states of one file of one size, changed or not."""
        mine, its = ((each.device, each.inode, each.size) for each in (self, other))
        return mine == its


def lock_for_writing(file: int) -> None:
    """Lock an open file (descriptor) until it is closed, or its process ends in any way.

    File systems without locks have none.
    """
    with suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def is_written(path: Path) -> bool | None:
    """Whether a recorder of this computer writes a file; None if the file system does not tell."""
    try:
        with open_regular(path) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return None
    return False


def chunks_in_place(path: Path, chunks: Sequence[ChunkIndex]) -> bool:
    """Whether a file begins as MCAP does, and its chunks begin where they were written.

    At most MOST_CHECKED chunks are compared, the first and the last among them. Without
    reading the file, it finds one that was cut, emptied or overwritten in place.
    """
    chosen = np.unique(np.linspace(0, len(chunks) - 1, min(len(chunks), MOST_CHECKED)).astype(int))
    try:
        with open_regular(path) as file:
            if file.read(len(MAGIC)) != MAGIC:
                return False
            for i in chosen.tolist() if len(chunks) else ():
                chunk = chunks[i]
                head = PREFIX.pack(Op.CHUNK, chunk.length - PREFIX.size)
                head += struct.pack(
                    "<3Q", chunk.start_time, chunk.end_time, chunk.uncompressed_size
                )
                if os.pread(file.fileno(), len(head), chunk.offset) != head:
                    return False
    except OSError:
        return False
    return True
