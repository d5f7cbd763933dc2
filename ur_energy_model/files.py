# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Opening regular files, and atomic writing of them."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO

from ur_energy_model.errors import InputError

# Names of temporary files and directories, and removal of those that a killed process
# left. What takes long to write is locked (flock) by the process that writes it, and the
# lock ends with the process, however it ends: also where the process runs in another
# container, whose numbers of processes mean nothing here. Without a lock, as on file
# systems that have none, age decides.

UNLOCKED_AGE = 60.0
"""Least age of what is removed where no lock shows that its process has ended [s]."""
_LOCK = "lock"  # file in a temporary folder that is locked
_LOCKED_BY = 1.0  # age at which what is locked is locked for certain [s]
_MARK = "ur_energy-"
_LONGEST = 50
"""Characters of the name of the target that the name of a temporary file has."""
_NAME = re.compile(
    rf"\.(?P<target>.+)\.{_MARK}(?P<pid>\d+)-(?P<use>[a-z]+)(-\w+)?", re.DOTALL
)
_cleaned: set[Path] = set()  # folders from which this process has removed such files
_START = time.time() - 1.0
"""Time before this process has made a file; clocks of file systems may be late by some ms."""


def temporary_name(path: Path, use: str) -> Path:
    """Name beside a path, of this process, for what replaces the path once it is complete.

    Args:
        path: what is to be made.
        use: "new" for a file that is written in a moment, "replaced" for what is removed
            once its successor is in place; another word for a file that is locked while
            it is written (`is_locked`), or for a `temporary_folder`.

    Raises:
        IsADirectoryError: a path without a name: "", "." or "/".
    """
    if not path.name:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    return path.with_name(f".{path.name[:_LONGEST]}.{_MARK}{os.getpid()}-{use}")


@contextmanager
def temporary_folder(path: Path, use: str) -> Iterator[Path]:
    """A new folder beside a path, removed at the end of the block, or by a later run.

    Args:
        path: what is to be made, or any name; its folder exists.
        use: a word for the content.

    Raises:
        OSError: it cannot be made.
    """
    remove_abandoned(path.parent)
    folder = _unique(temporary_name(path, use))
    try:
        folder.mkdir(mode=0o700)
        lock = os.open(folder / f"new_{_LOCK}", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            with suppress(OSError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                (folder / f"new_{_LOCK}").rename(folder / _LOCK)
            yield folder
        finally:
            os.close(lock)
    finally:
        _remove_folder(folder)


def _unique(path: Path) -> Path:
    """A name that no other file has, for what is made inside a try block.

    `tempfile` makes the file before it returns its name: an interrupt in between leaves
    it behind.
    """
    return path.with_name(f"{path.name}-{os.urandom(4).hex()}")


def _remove_folder(folder: Path) -> None:
    """Remove a folder with its content, also if an interrupt comes meanwhile."""
    try:
        shutil.rmtree(folder, ignore_errors=True)
    except KeyboardInterrupt:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def is_locked(path: Path) -> bool | None:
    """Whether a process of this computer has locked a file; None on a file system without locks."""
    try:
        with open_regular(path) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return None
    return False


def remove_abandoned(folder: Path) -> None:
    """Remove temporary files of killed processes, once per process and folder.

    Only names made by `temporary_name` count, and only what nobody writes any more. What
    was moved aside, and has no successor, is moved back.
    """
    if folder in _cleaned:
        return
    _cleaned.add(folder)
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            found = _NAME.fullmatch(entry.name)
            if found is None:
                continue
            with suppress(OSError):
                if _is_abandoned(entry, int(found["pid"]), found["use"]):
                    _remove(Path(entry.path), found["target"], found["use"])


def _is_abandoned(entry: os.DirEntry[str], pid: int, use: str) -> bool:
    """Whether nobody writes a temporary file or directory any more.

    In a container that starts again, the process that left a file may have had the number
    of this one.

    Args:
        entry: the file or directory.
        pid: number of the process that has made it, by its name.
        use: see `temporary_name`.
    """
    modified = entry.stat(follow_symlinks=False).st_mtime
    age = time.time() - modified
    if use == "new":  # it is written in a moment, without a lock
        own = pid == os.getpid()
        return modified < _START if own else not _runs(pid)
    path = Path(entry.path)
    locked = is_locked(path / _LOCK if entry.is_dir(follow_symlinks=False) else path)
    if locked is None or use == "replaced":
        return age >= UNLOCKED_AGE and not _runs(pid)
    return not locked and (age >= _LOCKED_BY or not _runs(pid))


def _remove(path: Path, target: str, use: str) -> None:
    """Remove a temporary file or folder; what was moved aside goes back if its place is free.

    Args:
        path: path of the temporary file or folder.
        target: name of what it was to replace, or its beginning.
        use: see `temporary_name`.
    """
    if use == "replaced" and not path.with_name(target).exists():
        if len(target) < _LONGEST:  # otherwise it is only the beginning of the name
            path.rename(path.with_name(target))
    elif path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink()


def _runs(pid: int) -> bool:
    """Whether there is a process of this number."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
"""Characters with which a spreadsheet takes a text for a formula."""


def user_path(path: str | Path) -> Path:
    """The path, "~" and "~user" at its begin replaced.

    Raises:
        InputError: there is no such user, or it is no path.
    """
    if "\0" in str(path):
        raise InputError(path, "contains a null character", "write another path")
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise InputError(
            path, "names a user who is not there", "write the whole path"
        ) from None


def xdg_folder(variable: str, default: str) -> Path:
    """Folder of this package in a base directory of the user, by the XDG specification.

    Args:
        variable: such as XDG_DATA_HOME; without effect unless it holds an absolute path.
        default: such as "~/.local/share".

    Raises:
        InputError: neither the variable nor a home folder is set.
    """
    stated = os.environ.get(variable, "")
    base = Path(stated) if stated.startswith("/") else user_path(default)
    return base / "ur_energy"


def real_path(path: str | Path) -> Path:
    """The absolute path without symbolic links; of links in a circle as far as they lead."""
    return Path(os.path.realpath(path))


def open_regular(path: str | Path) -> BinaryIO:
    """Open a regular file to read its bytes; a pipe is refused, where `open` could wait for ever.

    Raises:
        OSError: it cannot be opened, or is a device, a pipe, a socket or a folder.
    """
    return open(path, "rb", opener=_open_regular)


def _open_regular(path: str, flags: int) -> int:
    """Opener of `open`, which closes the file from then on, also if Ctrl-C comes between."""
    file = os.open(path, flags | os.O_NONBLOCK)
    try:
        kind = os.fstat(file).st_mode
        if stat.S_ISDIR(kind):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if not stat.S_ISREG(kind):
            raise OSError(errno.EINVAL, "not a regular file", path)
        os.pread(file, 1, 0)  # such as /proc/kmsg is regular, and has nothing to read yet
    except BaseException:
        os.close(file)
        raise
    return file


def file_digest(path: str | Path) -> str | None:
    """SHA-256 of a file's content, as hexadecimal digits; None if it cannot be read."""
    import hashlib  # takes 3 ms, which a list of commands does without

    try:
        with open_regular(path) as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return None


def cell_text(text: str) -> str:
    """Text for a cell of a CSV file, which a spreadsheet must not take for a formula.

    Text that begins with =, +, -, @, a tab or a line end gets an apostrophe in front of
    it (OWASP, CSV injection). Numbers are no text.
    """
    return f"'{text}" if text.startswith(_FORMULA) else text


def check_target(path: str | Path) -> None:
    """Refuse what `new_file` cannot replace, also before a long computation.

    Raises:
        OSError: a device, a pipe, a folder, a name that is too long, or a place that is
            no folder or cannot be written to.
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        # root could replace /dev/null by a file
        what = "is a folder, name a file" if path.is_dir() else "not a regular file"
        raise OSError(errno.EINVAL, what, str(path))
    folder = next(each for each in (*path.parents, Path()) if each.exists())
    if not folder.is_dir():
        raise OSError(errno.ENOTDIR, f"{folder} is a file, not a folder", str(path))
    if not os.access(folder, os.W_OK):
        raise OSError(
            errno.EACCES, f"nothing can be written to {folder.absolute()}", str(path)
        )


# The one rule for outputs of commands: nothing that exists is replaced unless the user
# asks for it.

TAKEN = "name another output, or add --overwrite"
"""Remedy where an output exists already."""


def check_output(path: str | Path, *, overwrite: bool) -> None:
    """Refuse a file that a command cannot write, or that exists, before the work for it begins.

    Args:
        path: file to be written.
        overwrite: whether the user wants an existing file replaced.

    Raises:
        InputError: the file exists.
        OSError: the file cannot be written, see `check_target`.
    """
    check_target(path)
    if not overwrite and os.path.lexists(path):
        raise InputError(path, "exists already", TAKEN)


def check_output_folder(path: str | Path, *, overwrite: bool) -> None:
    """Refuse a folder that a command cannot write to, or that has files, before the work begins.

    Args:
        path: folder to be made, or an empty one.
        overwrite: whether files of the same names are replaced; all others are left alone
            anyway.

    Raises:
        InputError: it is not empty.
        OSError: it is a file, or nothing can be written to it.
    """
    folder = Path(path)
    check_target(folder / "file")
    if not overwrite and folder.is_dir() and any(folder.iterdir()):
        raise InputError(folder, "has files already", TAKEN)


@contextmanager
def new_file(path: str | Path, mode: str = "w") -> Iterator[IO[Any]]:
    """A new file that replaces the one at `path` at the end of the block, unless it raises.

    Args:
        path: path of the file in an existing folder; of a symbolic link, the target is
            replaced.
        mode: "w" for UTF-8 text, "wb" for bytes.

    Raises:
        OSError: the path cannot be written, or is a device, a pipe or a folder.
    """
    check_target(path)
    path = real_path(path) if Path(path).is_symlink() else Path(path)
    remove_abandoned(path.parent)
    temporary = _unique(temporary_name(path, "new"))
    try:
        is_text = mode == "w"
        mode = mode.replace("w", "x")  # no other process may have made it
        with open(
            temporary,
            mode,
            encoding="utf-8" if is_text else None,
            # Names of files, which may be quoted, need not be UTF-8.
            errors="backslashreplace" if is_text else None,
            opener=_open_private,
        ) as file:
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


def _open_private(path: str, flags: int) -> int:
    """Opener of `open` for a file that only its owner may read until it is complete."""
    return os.open(path, flags, 0o600)


def write_text(
    path: str | Path, text: str, refusal: type[InputError] = InputError
) -> None:
    """Write a file atomically.

    Args:
        path: the file; its parent folders are created if necessary.
        text: written as UTF-8.
        refusal: class of the error.

    Raises:
        InputError: (of class `refusal`) the path cannot be written.
    """
    try:
        check_target(path)
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        with new_file(path) as file:
            file.write(text)
    except OSError as error:
        raise refusal(
            path, f"cannot be written ({error.strerror})", "choose another place"
        ) from error


# Paths of the package's own files (config/, launch/), in a checkout or an installation.

PACKAGE = "ur_energy_model"


def share_directory() -> Path:
    """Folder that contains package.xml, config/ and launch/.

    In a checkout this is the root of the repository. After an installation with colcon or
    pip it is `<prefix>/share/ur_energy_model`, found relative to this file, without
    environment variables.

    Raises:
        FileNotFoundError: the installation lacks the package's share folder.
    """
    here = Path(__file__).resolve()
    if (here.parents[1] / "package.xml").is_file():
        return here.parents[1]
    for prefix in here.parents:
        share = prefix / "share" / PACKAGE
        if (share / "package.xml").is_file():
            return share
    raise FileNotFoundError(
        f"no share/{PACKAGE} beside {here}; reinstall the package with 'make setup' or colcon"
    )


def config_file(*parts: str) -> Path:
    """Path of a file below config/."""
    return share_directory().joinpath("config", *parts)


@dataclass
class Budget:
    """Budget for reading one input, which only a hostile input exceeds.

    Attributes:
        source: the input, for the error.
        error: class of the error.
        volume: bytes that may still be read or unpacked.
        memory: bytes that may still be kept.
        items: records, rows or values that may still come.
    """

    source: Path
    error: type[InputError]
    volume: int
    memory: int
    items: int

    @property
    def exhausted(self) -> bool:
        """Whether more was spent than allowed."""
        return min(self.volume, self.memory, self.items) < 0

    def spend(self, *, volume: int = 0, memory: int = 0, items: int = 0) -> None:
        """Count what comes next.

        Raises:
            InputError: (of class `error`) it is more than allowed.
        """
        self.volume -= volume
        self.memory -= memory
        self.items -= items
        if self.exhausted:
            problem = "holds more than is read of one file"
            remedy = "split it, or take one of a source you trust"
            raise self.error(self.source, problem, remedy)


# Kinds of files, by their names.

BAG_SUFFIXES = (".mcap", ".db3", ".zstd")
"""Suffixes of files that are recordings, or parts of one."""


def is_recording(path: Path) -> bool:
    """Whether a path leads to a bag, or to a file of a bag, by names alone."""
    return path.suffix in BAG_SUFFIXES or (path / "metadata.yaml").is_file()
