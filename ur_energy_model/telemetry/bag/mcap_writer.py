# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

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
from mcap.opcode import Opcode
from mcap.records import (
    Channel,
    Chunk,
    ChunkIndex,
    Header,
    MessageIndex,
    Metadata,
    MetadataIndex,
    Schema,
)
from numpy.typing import NDArray

from ur_energy_model import __version__
from ur_energy_model.files import open_regular
from ur_energy_model.telemetry.bag.compression import available_packing
from ur_energy_model.telemetry.bag.mcap_format import (
    MAGIC,
    PREFIX,
    PROVISIONAL_TAIL,
    MessageBlock,
    Summary,
    packed,
)
from ur_energy_model.telemetry.samples import equal_runs

LIBRARY = f"ur_energy_model {__version__}"


class McapWriter:
    """One new MCAP file that is valid after every chunk.

    The last chunk is always followed by a footer, which the next chunk overwrites in the
    same system call: a killed process leaves a file that every reader opens. While it is
    open, the file is locked (`is_locked`), where the file system has locks.

    Args:
        path: file to create; it must not exist.
        durable: wait until each chunk is on the disk, so that a power cut loses little.
        profile: "ros2" for bags, "" for files with messages of other kinds.

    Attributes:
        path: path of the file.
        summary: summary of the records that were written so far.

    Raises:
        OSError: raised by every method: the disk fails.
    """

    def __init__(
        self, path: Path, *, durable: bool = False, profile: str = "ros2"
    ) -> None:
        self.path = path
        self.summary = Summary()
        self._durable = durable
        self._packing = available_packing()
        self._file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
        self._end = 0
        self._opened = os.fstat(self._file)
        self._closed: os.stat_result | None = None
        with suppress(OSError):
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        try:
            self._append(MAGIC + packed([Header(profile, LIBRARY)]))
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
        """Add a topic, and its schema if the file lacks it.

        Args:
            channel: channel of the topic; its messages may follow.
            schema: schema of the topic's messages.

        Raises:
            OSError: the disk fails; the file is as it was.
        """
        is_known = self.summary.schemas.get(schema.id) == schema
        self._append(packed([channel] if is_known else [schema, channel]))
        self.summary.schemas[schema.id] = schema
        self.summary.channels[channel.id] = channel
        self.summary.counts[channel.id] = 0

    def add_metadata(self, name: str, values: Mapping[str, str]) -> None:
        """Append named key-value pairs.

        Args:
            name: name of the record.
            values: texts by key.

        Raises:
            OSError: the disk fails; the file is as it was.
        """
        data = packed([Metadata(name, dict(values))])
        place = self._end
        self._append(data)
        self.summary.metadata.append(MetadataIndex(place, len(data), name))

    def write_chunk(
        self, blocks: Sequence[MessageBlock], *, numbered: bool = False
    ) -> None:
        """Write messages as one chunk, in order of their log times.

        Args:
            blocks: messages of channels that were added; messages of equal times stay in
                order.
            numbered: whether messages have sequence numbers already; else they get them.

        Raises:
            OSError: the disk fails; the file is as it was.
        """
        blocks = [block for block in blocks if len(block.records)]
        if not blocks:
            return
        if not numbered:
            self._number(blocks)
        # Of each message: its block, its number in the block, and its log time.
        counts = np.array([len(block.records) for block in blocks])
        firsts = np.cumsum(counts) - counts
        block_of = np.repeat(np.arange(len(blocks)), counts)
        number_of = np.arange(len(block_of)) - np.repeat(firsts, counts)
        times = np.concatenate([block.time for block in blocks])
        # The same in the order of the chunk.
        order = np.argsort(times, kind="stable")
        blocks_in_order = block_of[order]
        numbers_in_order = number_of[order]
        # Consecutive messages of one block are copied at once.
        offsets = numbers_in_order - np.arange(len(order))
        parts: list[bytes] = []
        for run in equal_runs(np.stack([blocks_in_order, offsets], axis=1)):
            records = blocks[blocks_in_order[run.start]].records
            first = int(numbers_in_order[run.start])
            parts.append(records[first : first + run.stop - run.start].tobytes())
        sizes = np.array([block.records.itemsize for block in blocks])[blocks_in_order]
        places = np.empty(len(order), np.int64)
        places[order] = np.cumsum(sizes) - sizes
        entries = np.stack([times, places], axis=1)
        channels = np.array([block.channel for block in blocks])[block_of]
        index: dict[int, NDArray[np.int64]] = {}
        for block in blocks:
            index[block.channel] = entries[channels == block.channel]
        self.write_body(b"".join(parts), index)

    def _number(self, blocks: Sequence[MessageBlock]) -> None:
        """Give messages sequence numbers, which continue the numbers of their channels."""
        sequence = dict(self.summary.counts)
        for channel, records in blocks:
            records["sequence"] = sequence[channel] + np.arange(len(records))
            sequence[channel] += len(records)

    def write_body(self, body: bytes, index: Mapping[int, NDArray[np.int64]]) -> None:
        """Write message records as one chunk, with its message indexes, in one system call.

        Args:
            body: records one behind the other.
            index: log times [ns] and offsets in the body of the messages of each channel
                [n, 2].

        Raises:
            OSError: the disk fails; the file is as it was.
        """
        chunk = Chunk(
            compression=self._packing.name,
            data=self._packing.pack(body),
            message_end_time=max(int(each[:, 0].max()) for each in index.values()),
            message_start_time=min(int(each[:, 0].min()) for each in index.values()),
            uncompressed_crc=zlib.crc32(body),
            uncompressed_size=len(body),
        )
        data = packed([chunk])
        indexes = b""
        places = {}
        for channel, entries in index.items():
            places[channel] = self._end + len(data) + len(indexes)
            indexes += packed([MessageIndex(channel, entries.tolist())])
        chunk_index = ChunkIndex(
            chunk_length=len(data),
            chunk_start_offset=self._end,
            compression=chunk.compression,
            compressed_size=len(chunk.data),
            message_end_time=chunk.message_end_time,
            message_index_length=len(indexes),
            message_index_offsets=places,
            message_start_time=chunk.message_start_time,
            uncompressed_size=chunk.uncompressed_size,
        )
        self._append(data + indexes)
        self.summary.chunks.append(chunk_index)
        for channel, entries in index.items():
            self.summary.counts[channel] += len(entries)

    def check(self) -> None:
        """Check that what was written so far can be read back at the path.

        Of a file that is still open, only the beginning is compared; `close` compares the
        rest.

        Raises:
            OSError: the file was deleted, moved, replaced, cut or overwritten, or its
                mount disappeared.
        """
        now = self.path.stat()
        if not os.path.samestat(self._opened, now):
            raise FileNotFoundError(
                errno.ENOENT, "the file has disappeared", str(self.path)
            )
        closed = self._closed
        if closed is not None:
            has_same_size = closed.st_size == now.st_size
            if has_same_size and closed.st_mtime_ns == now.st_mtime_ns:
                return
        is_open = self._file >= 0
        chunks = self.summary.chunks
        self._compare(chunks[:1] if is_open else chunks)

    def is_intact(self) -> bool:
        """Whether what was written so far can be read back at the path, see `check`."""
        try:
            self.check()
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Write the summary and close the file; it is closed even if writing fails.

        Raises:
            OSError: the disk fails, or another program changed the file.
        """
        if self._file < 0:
            return
        try:
            self._compare(self.summary.chunks)
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

    def _compare(self, chunks: Sequence[ChunkIndex]) -> None:
        """Check that the file at the path begins as MCAP does, and these chunks as written."""
        heads = {0: MAGIC}
        for each in chunks:
            prefix = PREFIX.pack(Opcode.CHUNK, each.chunk_length - PREFIX.size)
            times = struct.pack("<2Q", each.message_start_time, each.message_end_time)
            size = struct.pack("<Q", each.uncompressed_size)
            heads[each.chunk_start_offset] = prefix + times + size
        with open_regular(self.path) as file:
            for place, head in heads.items():
                if os.pread(file.fileno(), len(head), place) != head:
                    reason = "another program changed the file"
                    raise OSError(errno.EIO, reason, str(self.path))

    def _append(self, data: bytes) -> None:
        """Write further records, and the provisional tail behind them."""
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
        """Write bytes at the present end, however many the system takes at once."""
        view = memoryview(data)
        place = self._end
        while view:
            written = os.pwrite(self._file, view, place)
            view = view[written:]
            place += written
