"""McapWriter: writes MCAP files that are complete after every chunk."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import zstandard
from numpy.typing import NDArray

from ur_energy_model import __version__
from ur_energy_model.files import open_regular
from ur_energy_model.telemetry.bag.mcap_format import (
    MAGIC,
    MESSAGE_HEAD,
    PREFIX,
    PROVISIONAL_TAIL,
    Channel,
    ChunkIndex,
    MessageBlock,
    Op,
    Schema,
    Summary,
    pack,
)
from ur_energy_model.telemetry.samples import equal_runs

LIBRARY = f"ur_energy_model {__version__}"
COMPRESSION = "zstd"
_MESSAGE = [
    ("op", "u1"), ("length", "<u8"), ("channel", "<u2"), ("sequence", "<u4"),
    ("log_time", "<u8"), ("publish_time", "<u8"),
]  # fmt: skip


def is_written(path: Path) -> bool | None:
    """Whether a recorder of this computer writes a file; None on a file system without locks."""
    try:
        with open_regular(path) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return None
    return False


class McapWriter:
    """One MCAP file that is valid after every chunk.

    The last chunk is always followed by a footer, which the next chunk overwrites in the same
    system call: a killed process leaves a file that every reader opens. While it is open, the file
    is locked (`is_written`), where the file system has locks.

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
        self._compressor = zstandard.ZstdCompressor(level=1)  # higher ones cost time, save little
        self._sequence: dict[int, int] = {}
        self._file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
        self._end = 0
        self._opened = os.fstat(self._file)
        self._closed: os.stat_result | None = None
        with suppress(OSError):
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        try:
            self._append(MAGIC + pack(Op.HEADER, profile, LIBRARY))
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
        self._append((b"" if known else pack(Op.SCHEMA, *schema)) + pack(Op.CHANNEL, *channel))
        if not known:
            self.summary.schemas.append(schema)
        self.summary.channels.append(channel)
        self.summary.counts[channel.id] = self._sequence[channel.id] = 0

    def add_metadata(self, name: str, values: Mapping[str, str]) -> None:
        """Append named key-value pairs."""
        data, place = pack(Op.METADATA, name, values), self._end
        self._append(data)
        self.summary.metadata.append((place, len(data), name))

    def write_chunk(self, blocks: Sequence[MessageBlock]) -> None:
        """Write messages as one chunk, in the order of their times."""
        blocks = [block for block in blocks if len(block.time)]
        if not blocks:
            return
        rows, times = [], [block.time for block in blocks]
        for block in blocks:
            count, size = block.payload.shape
            records = np.empty(count, np.dtype([*_MESSAGE, ("payload", "u1", (size,))]))
            records["op"] = Op.MESSAGE
            records["length"] = MESSAGE_HEAD.size + size
            records["channel"] = block.channel
            records["sequence"] = self._sequence[block.channel] + np.arange(count)
            self._sequence[block.channel] += count
            records["log_time"] = records["publish_time"] = block.time
            records["payload"] = block.payload
            rows.append(records.view(np.uint8).reshape(count, -1))
        owner = np.repeat(np.arange(len(blocks)), [len(time) for time in times])
        number = np.concatenate([np.arange(len(time)) for time in times])
        order = np.argsort(np.concatenate(times), kind="stable")
        owner, number = owner[order], number[order]
        sizes = np.array([each.shape[1] for each in rows])[owner]
        starts = np.cumsum(sizes) - sizes
        runs = np.stack([owner, number - np.arange(len(order))], axis=1)
        body = b"".join(
            rows[owner[run.start]][number[run.start] : number[run.stop - 1] + 1].tobytes()
            for run in equal_runs(runs)
        )
        index: dict[int, list[NDArray[np.int64]]] = {}
        for i, block in enumerate(blocks):
            entries = np.stack([block.time, starts[owner == i]], axis=1)
            index.setdefault(block.channel, []).append(entries)
        self.write_body(body, {channel: np.concatenate(each) for channel, each in index.items()})

    def write_body(self, body: bytes, index: Mapping[int, NDArray[np.int64]]) -> None:
        """Write message records as one chunk.

        Args:
            body: the records.
            index: for each channel in it the log time [ns] and offset of its messages [n, 2].
        """
        packed = self._compressor.compress(body)
        start = min(int(entries[:, 0].min()) for entries in index.values())
        end = max(int(entries[:, 0].max()) for entries in index.values())
        head = start, end, len(body)
        chunk = pack(Op.CHUNK, *head, zlib.crc32(body), COMPRESSION, packed)
        indexes, places = b"", {}
        for channel, entries in index.items():
            places[channel] = self._end + len(chunk) + len(indexes)
            indexes += pack(Op.MESSAGE_INDEX, channel, entries.astype("<u8").tobytes())
        place = start, end, self._end, len(chunk)
        self._append(chunk + indexes)
        sizes = len(packed), len(body)
        self.summary.chunks.append(ChunkIndex(*place, places, len(indexes), COMPRESSION, *sizes))
        for channel, entries in index.items():
            self.summary.counts[channel] += len(entries)

    def check(self) -> None:
        """Check that the file still exists at its path, and begins as it was written.

        Raises:
            OSError: it was deleted or changed, or its mount disappeared.
        """
        if not os.path.samestat(self._opened, self.path.stat()):
            raise FileNotFoundError(errno.ENOENT, "the file has disappeared", str(self.path))
        if not self._has_chunks(self.summary.chunks[:1]):
            raise OSError(errno.EIO, "another program changed the file", str(self.path))

    def is_intact(self) -> bool:
        """Whether what was written so far can be read back at the path.

        It cannot where the file was deleted, moved, replaced, cut or overwritten. Of a file that is
        still open, only the beginning is compared; `close` compares the rest.
        """
        try:
            now = self.path.stat()
        except OSError:
            return False
        if not os.path.samestat(self._opened, now):
            return False
        closed = self._closed
        if closed is not None and (closed.st_size, closed.st_mtime_ns) == (
            now.st_size,
            now.st_mtime_ns,
        ):
            return True
        return self._has_chunks(self.summary.chunks[: 1 if self._file >= 0 else None])

    def close(self) -> None:
        """Write the summary and close the file; it is closed even if writing fails.

        Raises:
            OSError: the disk fails, or another program changed the file.
        """
        if self._file < 0:
            return
        try:
            if not self._has_chunks(self.summary.chunks):
                raise OSError(errno.EIO, "another program changed the file", str(self.path))
            tail = self.summary.tail(self._end)
            try:
                self._write(tail)
                os.ftruncate(self._file, self._end + len(tail))
                os.fsync(self._file)
            except OSError:
                self._restore_tail()
                raise
            self._closed = os.fstat(self._file)
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Close the file without writing."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _has_chunks(self, chunks: Sequence[ChunkIndex]) -> bool:
        """Whether the file at the path begins as MCAP does, and these chunks begin as written."""
        try:
            with open_regular(self.path) as file:
                if file.read(len(MAGIC)) != MAGIC:
                    return False
                for each in chunks:
                    head = PREFIX.pack(Op.CHUNK, each.length - PREFIX.size)
                    head += struct.pack(
                        "<3Q", each.start_time, each.end_time, each.uncompressed_size
                    )
                    if os.pread(file.fileno(), len(head), each.offset) != head:
                        return False
        except OSError:
            return False
        return True

    def _append(self, data: bytes) -> None:
        try:
            self._write(data + PROVISIONAL_TAIL)
            if self._durable:
                os.fdatasync(self._file)
        except OSError:
            self._restore_tail()
            raise
        self._end += len(data)

    def _restore_tail(self) -> None:
        """Undo a failed write, if the disk allows, so that the file stays valid."""
        with suppress(OSError):
            os.ftruncate(self._file, self._end)
            self._write(PROVISIONAL_TAIL)

    def _write(self, data: bytes) -> None:
        view, place = memoryview(data), self._end
        while view:
            written = os.pwrite(self._file, view, place)
            view, place = view[written:], place + written
