"""Journal: the newest energy counters between two savings of a state file, and its lock.

Two checksummed slots, overwritten in turn before every publication, without syncing 50 times a
second. An entry belongs to the state file whose number it carries: the journal of a file that was
moved away, or of another arm, counts nothing.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ur_energy_model.typing import Array

_HEAD = struct.Struct("<QQ")
"""Of a slot: number of the state file, sequence number."""
_OWN = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Journal:
    """Two slots of numbers in a file; locked by one process at a time.

    Args:
        path: of the file; made if it is missing.

    Attributes:
        writable: whether it is open for writing; `write` and `check` try to open it again.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.writable = False
        self._file: int | None = None

    def open(self) -> None:
        """Open and lock the file; for reading only on a file system that is read-only.

        Raises:
            BlockingIOError: another process has locked it.
            OSError: it cannot be opened, or only for reading, or is no file of its own: a symbolic
                link would let it overwrite another file, a pipe could block.
        """
        self.close()
        refusal: OSError | None = None
        try:
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | _OWN, 0o644)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise OSError(errno.EINVAL, f"{self.path.name} is a symbolic link") from None
            if error.errno != errno.EROFS:
                raise
            refusal = error
            try:
                file = os.open(self.path, os.O_RDONLY | _OWN)
            except OSError:
                raise error from None
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise OSError(errno.EINVAL, f"{self.path.name} is not a regular file")
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(file)
            raise
        self._file, self.writable = file, refusal is None
        if refusal is not None:
            raise refusal

    def check(self) -> None:
        """Open the file again if it is not writable or was deleted.

        Raises:
            OSError: it cannot be opened.
        """
        if self._file is None or not self.writable or os.fstat(self._file).st_nlink == 0:
            self.open()

    def write(self, number: int, sequence: int, values: Array) -> None:
        """Overwrite the older slot: a few microseconds, safe against a kill.

        Args:
            number: of the state file, 64 bit.
            sequence: of the entry.
            values: to keep [values].

        Raises:
            OSError: the disk cannot be written.
        """
        if self._file is None or not self.writable:
            self.open()
        payload = _HEAD.pack(number, sequence) + values.astype("<f8", copy=False).tobytes()
        self._overwrite(sequence, payload)

    def entries(self, count: int, number: int | None) -> Iterator[tuple[int, list[float]]]:
        """Valid entries: sequence and values.

        Args:
            count: of values.
            number: of the state file; None for entries without one, of earlier versions.

        Raises:
            OSError: the disk cannot be read.
        """
        if self._file is None:
            return
        form = struct.Struct(f"<Q{count}d" if number is None else f"<QQ{count}d")
        size = form.size + 4
        for slot in range(2):
            record = os.pread(self._file, size, slot * size)
            if len(record) < size or zlib.crc32(record[:-4]) != int.from_bytes(
                record[-4:], "little"
            ):
                continue  # interrupted write: the other slot is valid
            head = form.unpack(record[:-4])
            if number is None:
                yield int(head[0]), list(head[1:])
            elif head[0] == number:
                yield int(head[1]), list(head[2:])

    def close(self) -> None:
        """Release the lock."""
        file, self._file = self._file, None
        self.writable = False
        if file is not None:
            with suppress(OSError):
                os.close(file)

    def _overwrite(self, sequence: int, payload: bytes) -> None:
        assert self._file is not None
        record = payload + struct.pack("<I", zlib.crc32(payload))
        if os.fstat(self._file).st_size < 2 * len(record):
            os.posix_fallocate(self._file, 0, 2 * len(record))  # while the disk has room
        written = os.pwrite(self._file, record, (sequence % 2) * len(record))
        if written < len(record):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
