"""Names of temporary files and directories, and removal of those that a killed process left."""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
import time
from contextlib import suppress
from pathlib import Path

DIRECTORY_AGE = 60.0
"""Least age of an abandoned directory or rewritten bag file that is removed [s]."""
_MARK = "ur_energy-"
_LONGEST = 50
_NAME = re.compile(rf"\.(?P<target>.+)\.{_MARK}(?P<pid>\d+)-(?P<use>[a-z]+)(-\w+)?", re.DOTALL)
_cleaned: set[Path] = set()
_START = time.time() - 1.0
"""Before this process has made a file; clocks of file systems may be late by some ms."""


def temporary_name(path: Path, use: str) -> Path:
    """Name beside a path, of this process, for what replaces the path once it is complete.

    Args:
        path: what is to be made.
        use: "new" for a file that is written in a moment, "replaced" for what is removed once
            its successor is in place; another word for what takes longer.

    Raises:
        IsADirectoryError: a path without a name: "", "." or "/".
    """
    if not path.name:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    return path.with_name(f".{path.name[:_LONGEST]}.{_MARK}{os.getpid()}-{use}")


def remove_abandoned(folder: Path) -> None:
    """Remove temporary files of killed processes, once per process and folder.

    Only names made by `temporary_name` count, and only those of processes that have ended; in a
    container that starts again, the process that left a file may have had the number of this one.
    What takes longer to write must also be a minute old: its process may run in another container.
    What was moved aside, and has no successor, is moved back.
    """
    if folder in _cleaned:
        return
    _cleaned.add(folder)
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            found = _NAME.fullmatch(entry.name)
            if found is not None and not _runs(int(found["pid"]), found["use"], entry):
                with suppress(OSError):
                    _remove(Path(entry.path), found["target"], found["use"])


def _remove(path: Path, target: str, use: str) -> None:
    status = path.lstat()
    if use != "new" and time.time() - status.st_mtime < DIRECTORY_AGE:
        return
    if use == "replaced" and not path.with_name(target).exists():
        if len(target) < _LONGEST:  # otherwise it is only the beginning of the name
            path.rename(path.with_name(target))
    elif stat.S_ISDIR(status.st_mode):
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink()


def _runs(pid: int, use: str, entry: os.DirEntry[str]) -> bool:
    """Whether the process exists that made a file or directory."""
    try:
        if pid == os.getpid() and use == "new":
            return entry.stat(follow_symlinks=False).st_mtime >= _START
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True
