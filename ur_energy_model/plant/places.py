"""Places: where the files of a history store are, a folder or a bucket of an S3 server."""

from __future__ import annotations

import errno
import fcntl
import os
import random
import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import pyarrow.fs

from ur_energy_model.errors import InputError, optional_import
from ur_energy_model.files import new_file, open_regular


class StoreError(InputError):
    """A history store that cannot be read or written."""


class Place(Protocol):
    """Files by names relative to the place, with "/" between folders.

    Every method may raise OSError.
    """

    @property
    def address(self) -> str:
        """As the user states it; a folder's is absolute."""
        ...

    def write(self, name: str, data: bytes) -> None:
        """Write a file: afterwards it is there as a whole, or as it was before."""
        ...

    def read(self, name: str) -> bytes | None:
        """Content of a file; None if there is none, or something that is no file of the place."""
        ...

    def files(self, folder: str) -> dict[str, int | None]:
        """Sizes of all files below a folder [bytes], by name in the order of names.

        None stands for what is no file of the place: links, pipes, devices. Nothing if there is no
        such folder.
        """
        ...

    def settled(self) -> AbstractContextManager[None]:
        """A block while no process is in an exclusive one, where the place can make sure of it."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file, if there is one."""
        ...

    def exclusive(self) -> AbstractContextManager[Callable[[], bool]]:
        """A block in which no other process is at the same time.

        Its value returns whether that still holds: a process that was stopped for minutes may have
        lost the lock.
        """
        ...

    def filesystem(self) -> tuple[pyarrow.fs.FileSystem, str]:
        """Filesystem of Arrow, and the path of the place in it."""
        ...


# LocalPlace: a folder of this machine, or one that is mounted.

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
        with optional_import():
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


# S3Place: a prefix in a bucket of an S3 server.
#
# Object stores have no locks. To get the lock, a process writes a ticket and lists all tickets: if
# there is another one, it withdraws and tries again later. As objects are visible to everybody
# once they are written, two processes never both find theirs alone. Tickets of killed processes
# expire by the server's clock.

TURN = 120.0
"""Longest turn [s]; a ticket that is older is that of a killed process."""
MARGIN = 30.0
"""A turn counts as over this much earlier for its own process [s]."""
FIRST_PAUSE, LONGEST_S3_PAUSE = 0.05, 2.0
"""Before the next try for a turn [s]."""
TICKETS = "tickets"
ENDPOINT = "AWS_ENDPOINT_URL"
TIMEOUT = 20.0
"""Of a connection or request [s]."""


class S3Place:
    """A prefix in a bucket; an object is there as a whole or not at all.

    Credentials and region come from the environment or the files of AWS (AWS_ACCESS_KEY_ID,
    AWS_SECRET_ACCESS_KEY, AWS_REGION, ~/.aws), the server from AWS_ENDPOINT_URL.

    Args:
        path: bucket and prefix, "bucket/a/b".

    Raises:
        MissingPackageError: pyarrow is not installed.
    """

    def __init__(self, path: str) -> None:
        self.path = path.strip("/")
        self._files = _connect()

    @property
    def address(self) -> str:
        """See Place."""
        return f"s3://{self.path}"

    def write(self, name: str, data: bytes) -> None:
        """See Place."""
        with self._files.open_output_stream(f"{self.path}/{name}") as stream:
            stream.write(data)

    def read(self, name: str) -> bytes | None:
        """See Place."""
        try:
            with self._files.open_input_stream(f"{self.path}/{name}") as stream:
                return bytes(stream.read())
        except FileNotFoundError:
            return None

    def files(self, folder: str) -> dict[str, int | None]:
        """See Place."""
        start = len(self.path) + 1
        found = {info.path[start:]: info.size for info in self._list(folder)}
        return dict(sorted(found.items()))

    def settled(self) -> AbstractContextManager[None]:
        """See Place; readers take no turns here."""
        return nullcontext()

    def remove(self, name: str) -> None:
        """See Place."""
        with suppress(FileNotFoundError):
            self._files.delete_file(f"{self.path}/{name}")

    @contextmanager
    def exclusive(self) -> Iterator[Callable[[], bool]]:
        """See Place."""
        pause = FIRST_PAUSE
        while True:
            ticket, until = f"{TICKETS}/{uuid.uuid4().hex}", time.monotonic() + TURN - MARGIN
            self.write(ticket, b"turn")
            try:
                if self._alone(ticket):
                    yield partial(_not_yet, until)
                    return
            finally:
                self.remove(ticket)
            time.sleep(random.uniform(0.5, 1.5) * pause)
            pause = min(2.0 * pause, LONGEST_S3_PAUSE)

    def filesystem(self) -> tuple[pyarrow.fs.FileSystem, str]:
        """See Place."""
        return self._files, self.path

    def _alone(self, ticket: str) -> bool:
        """Whether there is no other ticket; removes those that have expired."""
        infos = {info.base_name: info.mtime_ns or 0 for info in self._list(TICKETS)}
        mine = infos.pop(ticket.rpartition("/")[2], None)
        if mine is None:
            return False
        expired = [name for name, written in infos.items() if mine - written > TURN * 1e9]
        for name in expired:
            self.remove(f"{TICKETS}/{name}")
        return len(infos) == len(expired)

    def _list(self, folder: str) -> list[pyarrow.fs.FileInfo]:
        import pyarrow.fs

        selector = pyarrow.fs.FileSelector(
            f"{self.path}/{folder}", allow_not_found=True, recursive=True
        )
        return [info for info in self._files.get_file_info(selector) if info.is_file]


def _not_yet(until: float) -> bool:
    return time.monotonic() < until


def _connect() -> pyarrow.fs.S3FileSystem:
    with optional_import():
        import pyarrow.fs
    endpoint = urlsplit(os.environ.get(ENDPOINT, ""))
    server = {"endpoint_override": endpoint.netloc, "scheme": endpoint.scheme}
    return pyarrow.fs.S3FileSystem(
        **(server if endpoint.netloc else {}),
        region=os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION"),
        connect_timeout=TIMEOUT,
        request_timeout=TIMEOUT,
    )
