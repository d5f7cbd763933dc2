"""Atomic writing of files."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from ur_energy_model.errors import InputError
from ur_energy_model.temporary_files import remove_abandoned, temporary_name


def check_target(path: str | Path) -> None:
    """Refuse what `new_file` cannot replace, also before a long computation.

    Raises:
        OSError: a device, a pipe, a folder, or a name that is too long.
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        # root could replace /dev/null by a file
        raise OSError(errno.EINVAL, "not a regular file", str(path))


@contextmanager
def new_file(path: str | Path, mode: str = "w") -> Iterator[IO[Any]]:
    """A new file that replaces the one at `path` at the end of the block, unless it raises.

    Args:
        path: in an existing folder; of a symbolic link, what it points to is replaced.
        mode: "w" for UTF-8 text, "wb" for bytes.

    Raises:
        OSError: the path cannot be written, or is a device, a pipe or a folder.
    """
    check_target(path)
    path = Path(os.path.realpath(path)) if Path(path).is_symlink() else Path(path)
    remove_abandoned(path.parent)
    handle, name = tempfile.mkstemp(prefix=f"{temporary_name(path, 'new').name}-", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, mode, encoding="utf-8" if mode == "w" else None) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_text(path: str | Path, text: str, refusal: type[InputError] = InputError) -> None:
    """Write a file atomically.

    Args:
        path: its parent folders are created if necessary.
        text: written as UTF-8.
        refusal: class of the error.

    Raises:
        InputError: (of class `refusal`) the path cannot be written.
    """
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        with new_file(path) as file:
            file.write(text)
    except OSError as error:
        raise refusal(
            path, f"cannot be written ({error.strerror})", "choose another place"
        ) from error
