"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from ur_energy_model.errors import InputError


def write_text(path: str | Path, text: str, refusal: type[InputError] = InputError) -> None:
    """Write a file atomically: the old one stays whole until the new one is complete.

    Args:
        path: folders above it are made.
        text: written as UTF-8.
        refusal: error to raise.

    Raises:
        InputError: (or the subclass asked for) the place cannot be written.
    """
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        temporary = Path(name)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            umask = os.umask(0)
            os.umask(umask)
            temporary.chmod(0o666 & ~umask)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise refusal(
            path, f"cannot be written ({error.strerror})", "choose another place"
        ) from error
