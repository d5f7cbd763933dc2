"""LocalPlace: a folder of this machine, or one that is mounted."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ur_energy_model.files import new_file, open_regular
from ur_energy_model.missing_packages import needed_here

if TYPE_CHECKING:
    import pyarrow.fs

LOCK, WRITING = ".lock", ".writing"
_OWN = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


LONGEST_PAUSE = 5.0
"""Time for which a reader leaves a writer to finish [s]; after it, it reads what is there."""


class LocalPlace:
    """A folder; files are replaced atomically, and are on the disk once `write` returns.

    Nothing outside of the folder is read, written or removed, also where a link leads there.

    Args:
        folder: made by the first `write`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def address(self) -> str:
        """See Place."""
        return str(self.folder)

    def write(self, name: str, data: bytes) -> None:
        """See Place."""
        path, written = self._path(name), self._path(f"{WRITING}/{uuid.uuid4().hex}")
        for folder in (path.parent, written.parent):
            folder.mkdir(parents=True, exist_ok=True)
        # Not beside its place: some readers take every file of a folder.
        with new_file(written, "wb") as file:
            file.write(data)
        written.replace(path)
        _sync(path.parent)

    def read(self, name: str) -> bytes | None:
        """See Place."""
        try:
            path = self._path(name)
            if path.is_symlink() or not path.is_file():
                return None
            with open_regular(path) as file:
                return file.read()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def files(self, folder: str) -> dict[str, int | None]:
        """See Place."""
        found: dict[str, int | None] = {}

        def look(name: str) -> None:
            try:
                entries = list(os.scandir(self.folder / name))
            except (FileNotFoundError, NotADirectoryError):
                return
            for entry in sorted(entries, key=lambda each: each.name):
                inside = f"{name}/{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    look(inside)
                elif entry.is_file(follow_symlinks=False):
                    found[inside] = entry.stat(follow_symlinks=False).st_size
                else:
                    found[inside] = None

        if (self.folder / folder).is_symlink():
            return {folder: None}
        look(folder)
        return found

    def remove(self, name: str) -> None:
        """See Place."""
        self._path(name).unlink(missing_ok=True)

    @contextmanager
    def settled(self) -> Iterator[None]:
        """See Place; a store that cannot be locked is read as it is."""
        handle: int | None = None
        with suppress(OSError):
            handle = os.open(self.folder / LOCK, os.O_RDONLY | _OWN)
        try:
            until = time.monotonic() + LONGEST_PAUSE
            while handle is not None and time.monotonic() < until:
                try:
                    fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
                    break
                except OSError:
                    time.sleep(0.01)
            yield
        finally:
            if handle is not None:
                os.close(handle)

    @contextmanager
    def exclusive(self) -> Iterator[Callable[[], bool]]:
        """See Place; the lock ends with the process, however that ends.

        Everything is written in such a block: what is half written at its begin was abandoned.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(self.folder / LOCK, os.O_RDWR | os.O_CREAT | _OWN, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            shutil.rmtree(self.folder / WRITING, ignore_errors=True)  # does not follow links
            yield lambda: True
        finally:
            os.close(handle)

    def filesystem(self) -> tuple[pyarrow.fs.FileSystem, str]:
        """See Place."""
        with needed_here():
            import pyarrow.fs
        return pyarrow.fs.LocalFileSystem(), str(self.folder)

    def _path(self, name: str) -> Path:
        """Where a file is.

        Raises:
            OSError: that is not in this folder.
        """
        path = self.folder / name
        home = os.path.realpath(self.folder)
        folder = os.path.realpath(path.parent)
        if path.name in ("", ".", "..") or os.path.commonpath([home, folder]) != home:
            raise OSError(errno.EPERM, f"{name} leads out of the store")
        return path


def _sync(folder: Path) -> None:
    """Let the names of a folder be on the disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
