# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""State of a running program: values by key in an SQLite file, over restarts and kills.

The estimator keeps its energy counters in such a file, and what was learned about each
arm. Two rules hold for its disk:

- At the start, a file that exists must be readable: to count from zero instead would take
  back what was published. A file that cannot be used is refused.
- Later, a disk that fails ends nothing. The values are in memory, too; `problem` is why
  they are not on the disk, and every `save` tries again.
"""

from __future__ import annotations

import errno
import os
import secrets
import sqlite3
import stat
import threading
import time
from contextlib import suppress
from pathlib import Path

LARGEST = 64 << 20
"""Largest value that is read [bytes]."""
CHECK_PERIOD = 0.5
"""Time between two checks whether the file was deleted, and the time for which a disk that
has failed is left alone [s]: what failed may take long."""
PAGE_SIZE = 16384
"""Size of a page of the file [bytes]: the counters of an arm fit into one or two."""
ROOM = 65536
"""Bytes that a file without sync and its rollback journal take in advance, so that later
writes find room on a full disk."""
IDENTITY = "identity"
"""Key of 16 random bytes by which a file is recognised after its disk was away."""
_IN_USE = ("-wal", "-journal")
"""Endings of the names of the two kinds of logs that SQLite writes beside a file."""


class StateFile:
    """Values by key in an SQLite file, of one process at a time and safe against its end.

    A synced file (the default) has a write-ahead log, each `save` waits for one sync of
    the disk, and a power cut takes back nothing that was saved. A file that is not synced
    is overwritten in place together with its rollback journal: a `save` takes 15 us,
    wears no flash memory and needs no room on a full disk; a kill takes back nothing, and
    a power cut may damage the file.

    Threads may `put` and `save` at the same time.

    Args:
        path: path of the file, without symbolic links; its folder is made by `open`.
        synced: whether each save waits for the disk.

    Attributes:
        path: path of the file.
        problem: why the last `save` failed, with the path; None if it did not.
    """

    def __init__(self, path: Path, *, synced: bool = True) -> None:
        self.path = path
        self.problem: str | None = None
        self._synced = synced
        self._identity: bytes | None = None  # None before the file was read or made
        self._values: dict[str, bytes] = {}
        self._unsaved: dict[str, None] = {}  # keys, in the order of `put`
        self._bulk: set[str] = set()  # keys that are written last
        self._connection: sqlite3.Connection | None = None
        self._inode: int | None = None
        self._check_due = 0.0  # time by the monotonic clock [s]
        self._mutex = threading.Lock()  # guards the connection

    def open(self) -> None:
        """Lock the file and read its values; a missing file is made.

        Raises:
            BlockingIOError: another process has locked it.
            OSError: it cannot be opened, or is a link, a pipe or a folder; or it does not
                exist and the disk has no room for it, after which the values are in
                memory and `save` tries again.
            ValueError: it is no file of this kind, or damaged.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._refuse_irregular()
        if os.statvfs(self.path.parent).f_flag & os.ST_RDONLY:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        if self.path.exists() and not os.access(self.path, os.R_OK | os.W_OK):
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))
        try:
            self._connect()
        except (sqlite3.Error, OSError, ValueError) as error:
            self._disconnect()
            raise _as_disk_error(error) from error

    @property
    def is_loaded(self) -> bool:
        """Whether the values of the file are known, or there were none."""
        return self._identity is not None

    def get(self, key: str) -> bytes | None:
        """The last value that was put or read; None without one, or after an empty one."""
        return self._values.get(key) or None

    def put(self, key: str, value: bytes, *, bulk: bool = False) -> None:
        """Change a value in memory; `save` writes it.

        Args:
            key: key of the value.
            value: an empty one counts as none.
            bulk: whether it is large, and is written after all others: these do not wait
                for room that a full disk has for them alone.
        """
        self._values[key] = value
        self._unsaved[key] = None
        if bulk:
            self._bulk.add(key)

    def save(self) -> None:
        """Write what has changed, in the order of `put`; a failure becomes the `problem`."""
        now = time.monotonic()
        if self._connection is None and now < self._check_due:
            return
        try:
            with self._mutex:
                if self._connection is None or now >= self._check_due:
                    self._check_due = now + CHECK_PERIOD
                    if not self._is_in_place():
                        self._disconnect()
                        self.open()
                self._write_unsaved()
                self.problem = None
        except (sqlite3.Error, OSError, ValueError) as failure:
            if isinstance(failure, sqlite3.Error):
                self._disconnect()
            error = _as_disk_error(failure)
            reason = error.strerror if isinstance(error, OSError) else str(error)
            self.problem = f"{self.path}: cannot be written ({reason})"

    def close(self) -> None:
        """Release the lock."""
        with self._mutex:
            self._disconnect()

    def _refuse_irregular(self) -> None:
        """Refuse links, by which other files would be overwritten, pipes and folders."""
        for end in ("", *_IN_USE):
            path = self.path.with_name(self.path.name + end)
            with suppress(FileNotFoundError):
                mode = path.lstat().st_mode
                if stat.S_ISLNK(mode):
                    raise OSError(errno.EINVAL, f"{path.name} is a symbolic link")
                if not stat.S_ISREG(mode):
                    raise OSError(errno.EINVAL, f"{path.name} is not a regular file")

    def _connect(self) -> None:
        """Open and lock the file, check its content and take its values.

        Raises:
            sqlite3.Error: it cannot be opened, or is locked or damaged.
            OSError: it has the state of another program run.
            ValueError: it is a database of another kind.
        """
        self._connection = sqlite3.connect(
            self.path, timeout=0.0, isolation_level=None, check_same_thread=False
        )
        execute = self._connection.execute
        # The lock is held as long as the file is open; then the write-ahead log needs no
        # shared memory, which a failing disk could take away under the process.
        execute("PRAGMA locking_mode = EXCLUSIVE")
        execute("PRAGMA trusted_schema = OFF")
        execute(f"PRAGMA page_size = {PAGE_SIZE}")
        execute(f"PRAGMA journal_mode = {'WAL' if self._synced else 'PERSIST'}")
        execute(f"PRAGMA synchronous = {'FULL' if self._synced else 'OFF'}")
        execute("PRAGMA wal_autocheckpoint = 64")
        execute("BEGIN IMMEDIATE")
        tables = execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        if tables not in ([], [("state",)]):
            raise ValueError("a database of another program")
        execute(
            "CREATE TABLE IF NOT EXISTS state (key TEXT PRIMARY KEY, value BLOB NOT NULL)"
        )
        (largest,) = execute("SELECT max(length(value)) FROM state").fetchone()
        if (largest or 0) > LARGEST:
            raise ValueError(f"a value of {largest} bytes")
        found: dict[str, bytes] = dict(execute("SELECT key, value FROM state").fetchall())
        execute("COMMIT")
        self._take(found)
        if not self._synced:
            self._take_room()
        self._inode = self.path.stat().st_ino

    def _take(self, found: dict[str, bytes]) -> None:
        """Use the values of a file that was opened, or write the values in memory to it.

        Raises:
            OSError: the file is another one than at the start.
            ValueError: a value is of another type.
        """
        if not all(isinstance(value, bytes) for value in found.values()):
            raise ValueError("values that are no bytes")
        if self._identity is None and not self._unsaved:
            self._values = found
            self._identity = found.get(IDENTITY)
        elif found and found.get(IDENTITY) != self._identity:
            # Such as the file on a disk that was not mounted when the program started.
            reason = "another state is there now, which a restart continues"
            raise OSError(errno.EEXIST, reason)
        else:
            self._unsaved |= dict.fromkeys(self._values)
        if self._identity is None:
            self._identity = secrets.token_bytes(16)
            self.put(IDENTITY, self._identity)

    def _take_room(self) -> None:
        """Let the file and its rollback journal grow while there is room on the disk."""
        assert self._connection is not None
        execute = self._connection.execute
        with suppress(sqlite3.OperationalError):
            execute(f"REPLACE INTO state VALUES ('room', zeroblob({ROOM}))")
            execute(f"UPDATE state SET value = randomblob({ROOM}) WHERE key = 'room'")
            execute("DELETE FROM state WHERE key = 'room'")

    def _is_in_place(self) -> bool:
        """Whether the file is open, and still the one at its path."""
        try:
            inode = self.path.stat().st_ino
        except OSError:
            return False
        return self._connection is not None and inode == self._inode

    def _write_unsaved(self) -> None:
        """Write the changed values, large ones last."""
        assert self._connection is not None
        keys = list(self._unsaved)  # other threads may put more meanwhile
        keys.sort(key=self._bulk.__contains__)
        changed = [(key, self._values[key]) for key in keys]
        self._connection.executemany("REPLACE INTO state VALUES (?, ?)", changed)
        for key, value in changed:
            if self._values[key] is value:  # it was not put again meanwhile
                self._unsaved.pop(key, None)

    def _disconnect(self) -> None:
        """Close the file, if it is open."""
        connection = self._connection
        self._connection = None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()


def _as_disk_error(error: Exception) -> Exception:
    """An error of SQLite as one of the file system, or a ValueError for a damaged file."""
    if not isinstance(error, sqlite3.Error):
        return error
    text = str(error)
    known = {"locked": errno.EAGAIN, "full": errno.ENOSPC, "readonly": errno.EROFS}
    for part, number in known.items():
        if part in text:
            return OSError(number, os.strerror(number))  # EAGAIN: a BlockingIOError
    if type(error) is sqlite3.DatabaseError or "no such column" in text:
        return ValueError(text)
    return OSError(errno.EIO, text)
