"""S3Place: a prefix in a bucket of an S3 server.

Object stores have no locks. To get the lock, a process writes a ticket and lists all tickets: if
there is another one, it withdraws and tries again later. As objects are visible to everybody once
they are written, two processes never both find theirs alone. Tickets of killed processes expire by
the server's clock.
"""

from __future__ import annotations

import os
import random
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ur_energy_model.missing_packages import needed_here

if TYPE_CHECKING:
    import pyarrow.fs

TURN = 120.0
"""Longest turn [s]; a ticket that is older is that of a killed process."""
MARGIN = 30.0
"""A turn counts as over this much earlier for its own process [s]."""
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0
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
            pause = min(2.0 * pause, LONGEST_PAUSE)

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
    with needed_here():
        import pyarrow.fs
    endpoint = urlsplit(os.environ.get(ENDPOINT, ""))
    server = {"endpoint_override": endpoint.netloc, "scheme": endpoint.scheme}
    return pyarrow.fs.S3FileSystem(
        **(server if endpoint.netloc else {}),
        region=os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION"),
        connect_timeout=TIMEOUT,
        request_timeout=TIMEOUT,
    )
