"""Opening regular files, and atomic writing of them."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO

from ur_energy_model.errors import InputError
from ur_energy_model.temporary_files import remove_abandoned, temporary_name

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


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
        raise InputError(path, "names a user who is not there", "write the whole path") from None


def xdg_folder(variable: str, default: str) -> Path:
    """Folder of this package in a base directory of the user, by the XDG specification.

    Args:
        variable: such as XDG_DATA_HOME; without effect unless it holds an absolute path.
        default: such as "~/.local/share".

    Raises:
        InputError: neither the variable nor a home folder is set.
    """
    base = os.environ.get(variable, "")
    return (Path(base) if base.startswith("/") else user_path(default)) / "ur_energy"


def real_path(path: str | Path) -> Path:
    """The absolute path without symbolic links; of links in a circle as far as they lead."""
    return Path(os.path.realpath(path))


def open_regular(path: str | Path) -> BinaryIO:
    """Open a regular file to read its bytes; a pipe is refused, where `open` could wait for ever.

    Raises:
        OSError: it cannot be opened, or is a device, a pipe, a socket or a folder.
    """
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        kind = os.fstat(file).st_mode
        if stat.S_ISDIR(kind):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(kind):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        os.pread(file, 1, 0)  # such as /proc/kmsg is regular, and has nothing to read yet
        return os.fdopen(file, "rb")
    except BaseException:
        os.close(file)
        raise


def cell_text(text: str) -> str:
    """Text for a cell of a CSV file, which a spreadsheet must not take for a formula.

    Text that begins with =, +, -, @, a tab or a line end gets an apostrophe in front of it (OWASP,
    CSV injection). Numbers are no text.
    """
    return f"'{text}" if text.startswith(_FORMULA) else text


def check_target(path: str | Path) -> None:
    """Refuse what `new_file` cannot replace, also before a long computation.

    Raises:
        OSError: a device, a pipe, a folder, a name that is too long, or a place that is no
            folder or cannot be written to.
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
        raise OSError(errno.EACCES, f"nothing can be written to {folder.absolute()}", str(path))


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
    path = real_path(path) if Path(path).is_symlink() else Path(path)
    remove_abandoned(path.parent)
    handle, name = tempfile.mkstemp(prefix=f"{temporary_name(path, 'new').name}-", dir=path.parent)
    temporary = Path(name)
    try:
        # Names of files, which may be quoted, need not be UTF-8.
        coding = ("utf-8", "backslashreplace") if mode == "w" else (None, None)
        with os.fdopen(handle, mode, encoding=coding[0], errors=coding[1]) as file:
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
        check_target(path)
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        with new_file(path) as file:
            file.write(text)
    except OSError as error:
        raise refusal(
            path, f"cannot be written ({error.strerror})", "choose another place"
        ) from error
