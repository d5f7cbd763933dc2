"""McapWriter: writes MCAP files that are complete after every chunk."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import zstandard
from numpy.typing import NDArray

from ur_energy_model import __version__
from ur_energy_model.files import open_regular
from ur_energy_model.telemetry.bag.mcap_format import (
    MAGIC,
    PREFIX,
    Channel,
    ChunkIndex,
    MessageBlock,
    Op,
    Schema,
    Summary,
    metadata_record,
    provisional_tail,
    record,
    text,
)
from ur_energy_model.telemetry.samples import equal_runs
from ur_energy_model.typing import Bytes

# FileState: whether a file that was written is still there as it was written, or still written.

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


LIBRARY = f"ur_energy_model {__version__}"
COMPRESSION = "zstd"
_MESSAGE = [
    ("op", "u1"), ("length", "<u8"), ("channel", "<u2"), ("sequence", "<u4"),
    ("log_time", "<u8"), ("publish_time", "<u8"),
]  # fmt: skip


class McapWriter:
    """One MCAP file that is valid after every chunk.

    The last chunk is always followed by a footer, which the next chunk overwrites in the same
    system call: a killed process leaves a file that every reader opens. While it is open, the file
    is locked (`file_state.is_written`).

    Args:
        path: file to create; it must not exist.
        durable: wait until each chunk is on the disk, so that a power cut loses little.
        profile: "ros2" for bags, empty for files with messages of other kinds.

    Raises:
        OSError: from every method, if the disk fails.
    """

    def __init__(self, path: Path, *, durable: bool = False, profile: str = "ros2") -> None:
        self.path = path
        self.summary = Summary()
        self._durable = durable
        self._compressor = zstandard.ZstdCompressor(
            level=1
        )  # higher levels cost time and save little
        self._sequence: dict[int, int] = {}
        self._file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
        self._end = 0
        self._state: FileState | None = FileState.of(os.fstat(self._file))
        lock_for_writing(self._file)
        head = MAGIC + record(Op.HEADER, text(profile) + text(LIBRARY))
        try:
            self._append(head)
        except OSError:
            self.abandon()
            with suppress(OSError):
                path.unlink()
            raise

    @property
    def size(self) -> int:
        """Bytes written so far, without the footer."""
        return self._end

    def add_channel(self, channel: Channel, schema: Schema) -> None:
        """Add a topic."""
        known = schema in self.summary.schemas
        self._append((b"" if known else schema.encode()) + channel.encode())
        if not known:
            self.summary.schemas.append(schema)
        self.summary.channels.append(channel)
        self.summary.counts[channel.id] = 0
        self._sequence[channel.id] = 0

    def add_metadata(self, name: str, values: Mapping[str, str]) -> None:
        """Append named key-value pairs."""
        data = metadata_record(name, values)
        place = self._end
        self._append(data)
        self.summary.metadata.append((name, place, len(data)))

    def write_chunk(self, blocks: Sequence[MessageBlock]) -> None:
        """Write messages as one chunk, in the order of their times."""
        blocks = [block for block in blocks if len(block.time)]
        if not blocks:
            return
        body, offsets = self._interleave(blocks)
        entries: dict[int, list[NDArray[np.int64]]] = {}
        for block, offset in zip(blocks, offsets, strict=True):
            entries.setdefault(block.channel, []).append(np.stack([block.time, offset], axis=1))
        self.write_body(body, {channel: np.concatenate(each) for channel, each in entries.items()})

    def write_body(self, body: bytes, index: Mapping[int, NDArray[np.int64]]) -> None:
        """Write message records as one chunk.

        Args:
            body: the records.
            index: for each channel in it the log time [ns] and offset of its messages [n, 2].
        """
        packed = self._compressor.compress(body)
        start = min(int(entries[:, 0].min()) for entries in index.values())
        end = max(int(entries[:, 0].max()) for entries in index.values())
        chunk = record(
            Op.CHUNK,
            struct.pack("<3QI", start, end, len(body), zlib.crc32(body))
            + text(COMPRESSION)
            + struct.pack("<Q", len(packed))
            + packed,
        )
        indexes, places = b"", {}
        for channel, entries in index.items():
            places[channel] = self._end + len(chunk) + len(indexes)
            content = entries.astype("<u8").tobytes()
            head = struct.pack("<HI", channel, len(content))
            indexes += record(Op.MESSAGE_INDEX, head + content)
        place = self._end
        self._append(chunk + indexes)
        self.summary.chunks.append(
            ChunkIndex(
                start,
                end,
                place,
                len(chunk),
                places,
                len(indexes),
                COMPRESSION,
                len(packed),
                len(body),
            )
        )
        for channel, entries in index.items():
            self.summary.counts[channel] += len(entries)

    def check(self) -> None:
        """Check that the file still exists at its path, as far as the first chunk as written.

        Raises:
            OSError: it was deleted or changed, or its mount disappeared.
        """
        opened, named = os.fstat(self._file), self.path.stat()
        if (opened.st_dev, opened.st_ino) != (named.st_dev, named.st_ino):
            raise FileNotFoundError(errno.ENOENT, "the file has disappeared", str(self.path))
        self._expect_unchanged()
        if not chunks_in_place(self.path, self.summary.chunks[:1]):
            raise self._changed()

    def is_intact(self) -> bool:
        """Whether what was written so far can be read back at the path.

        It cannot where the file was deleted, moved, replaced, cut or overwritten.
        """
        return self._is_unchanged(FileState.at(self.path))

    def close(self) -> None:
        """Write the summary and close the file; it is closed even if writing fails."""
        if self._file < 0:
            return
        try:
            self._expect_unchanged()
            if not chunks_in_place(self.path, self.summary.chunks):
                raise self._changed()
        except OSError:
            self.abandon()
            raise
        try:
            tail = self.summary.tail(self._end)
            self._write(tail)
            os.ftruncate(self._file, self._end + len(tail))
            os.fsync(self._file)
            self._state = FileState.of(os.fstat(self._file))
        except OSError:
            self._restore_tail()
            raise
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Close the file without writing."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _append(self, data: bytes) -> None:
        self._expect_unchanged()
        try:
            self._write(data + provisional_tail())
            if self._durable:
                os.fdatasync(self._file)
            self._state = FileState.of(os.fstat(self._file))
        except OSError:
            self._restore_tail()
            raise
        self._end += len(data)

    def _expect_unchanged(self) -> None:
        """Refuse to write into what another program has put there."""
        if not self._is_unchanged(FileState.of(os.fstat(self._file))):
            raise self._changed()

    def _changed(self) -> OSError:
        self._state = None
        return OSError(errno.EIO, "another program changed the file", str(self.path))

    def _is_unchanged(self, now: FileState | None) -> bool:
        """Whether no one else changed the file; the time of a change alone proves nothing."""
        known = self._state
        if known is None or now is None:
            return False
        if known == now:
            return True
        return known.is_same_file(now) and chunks_in_place(self.path, self.summary.chunks)

    def _restore_tail(self) -> None:
        """Undo a failed write, if the disk allows, so that the file stays valid."""
        with suppress(OSError):
            os.ftruncate(self._file, self._end)
            self._write(provisional_tail())
        with suppress(OSError):
            self._state = FileState.of(os.fstat(self._file))

    def _write(self, data: bytes) -> None:
        view, place = memoryview(data), self._end
        while view:
            written = os.pwrite(self._file, view, place)
            view, place = view[written:], place + written

    def _interleave(self, blocks: Sequence[MessageBlock]) -> tuple[bytes, list[NDArray[np.int64]]]:
        """Message records of all blocks in order of time, and the offset of each record."""
        rows = [self._records(block) for block in blocks]
        if len(blocks) == 1:
            size = rows[0].shape[1]
            return rows[0].tobytes(), [np.arange(len(rows[0]), dtype=np.int64) * size]
        owner = np.repeat(np.arange(len(blocks)), [len(row) for row in rows])
        number = np.concatenate([np.arange(len(row)) for row in rows])
        order = np.argsort(np.concatenate([block.time for block in blocks]), kind="stable")
        owner, number = owner[order], number[order]
        sizes = np.array([row.shape[1] for row in rows])[owner]
        starts = np.cumsum(sizes) - sizes
        step = number - np.arange(len(order))
        body = b"".join(
            rows[owner[part.start]][number[part.start] : number[part.stop - 1] + 1].tobytes()
            for part in equal_runs(np.stack([owner, step], axis=1))
        )
        return body, [starts[owner == i] for i in range(len(blocks))]

    def _records(self, block: MessageBlock) -> Bytes:
        """Message records [n, size]."""
        count, size = block.payload.shape
        records = np.empty(count, np.dtype([*_MESSAGE, ("payload", "u1", (size,))]))
        records["op"] = Op.MESSAGE
        records["length"] = 22 + size
        records["channel"] = block.channel
        records["sequence"] = self._sequence[block.channel] + np.arange(count)
        self._sequence[block.channel] += count
        records["log_time"] = records["publish_time"] = block.time
        records["payload"] = block.payload
        return records.view(np.uint8).reshape(count, -1)
