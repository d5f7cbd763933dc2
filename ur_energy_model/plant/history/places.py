"""Places: where the files of a history store are, a folder or a bucket of an S3 server."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from ur_energy_model.errors import InputError

if TYPE_CHECKING:
    import pyarrow.fs


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
