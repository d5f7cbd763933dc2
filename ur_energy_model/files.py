"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from ur_energy_model.errors import InputError


@contextmanager
def new_file(path: str | Path, mode: str = "w") -> Iterator[IO[Any]]:
    """A file that takes its place at `path` when all went well; until then the old one stays.

    Args:
        path: in a folder that is there.
        mode: text is written as UTF-8.

    Raises:
        OSError: the place cannot be written.
    """
    path = Path(path)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
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
    """Write a file atomically: the old one stays whole until the new one is complete.

    Args:
        path: folders above it are made.
        text: written as UTF-8.
        refusal: error to raise.

    Raises:
        InputError: (or the subclass asked for) the place cannot be written.
    """
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        with new_file(path) as file:
            file.write(text)
    except OSError as error:
        raise refusal(
            path, f"cannot be written ({error.strerror})", "choose another place"
        ) from error
