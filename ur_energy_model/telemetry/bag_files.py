"""Bags as directories on a disk: made in one piece, or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ur_energy_model.errors import RecordingError


@contextmanager
def new_bag(path: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A directory name to write a bag at, which takes its place at `path` when all went well.

    Args:
        path: where the bag shall be.
        overwrite: replace a bag that is there; anything else is never replaced.

    Yields:
        Name of a directory beside it, which does not exist yet.

    Raises:
        RecordingError: the path is taken, or the disk refuses.
    """
    if path.exists() or path.is_symlink():
        if not overwrite:
            raise RecordingError(path, "exists already", "name another output, or add --overwrite")
        if not (path / "metadata.yaml").is_file():
            raise RecordingError(path, "exists and is not a bag", "name another output")
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield partial
        if path.exists():
            old = path.with_name(f".{path.name}.{os.getpid()}.old")
            path.rename(old)
            partial.rename(path)
            shutil.rmtree(old)
        else:
            partial.rename(path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise RecordingError(path, f"cannot be written ({reason})", "check disk and path") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
