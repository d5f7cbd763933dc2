"""LocalPlace: a folder of this machine, or one that is mounted."""

from __future__ import annotations

import fcntl
import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ur_energy_model.files import new_file
from ur_energy_model.missing_packages import needed_here

if TYPE_CHECKING:
    import pyarrow.fs

LOCK, WRITING = ".lock", ".writing"


class LocalPlace:
    """A folder; files are replaced atomically, and are on the disk once `write` returns.

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
        path, written = self.folder / name, self.folder / WRITING / uuid.uuid4().hex
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
            return (self.folder / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def names(self, folder: str) -> list[str]:
        """See Place."""
        try:
            entries = list(os.scandir(self.folder / folder))
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(entry.name for entry in entries if entry.is_file())

    def remove(self, name: str) -> None:
        """See Place."""
        (self.folder / name).unlink(missing_ok=True)

    @contextmanager
    def exclusive(self) -> Iterator[Callable[[], bool]]:
        """See Place; the lock ends with the process, however that ends.

        Everything is written in such a block: what is half written at its begin was abandoned.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(self.folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            shutil.rmtree(self.folder / WRITING, ignore_errors=True)
            yield lambda: True
        finally:
            os.close(handle)

    def filesystem(self) -> tuple[pyarrow.fs.FileSystem, str]:
        """See Place."""
        with needed_here():
            import pyarrow.fs
        return pyarrow.fs.LocalFileSystem(), str(self.folder)


def _sync(folder: Path) -> None:
    """Let the names of a folder be on the disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
