"""BagFolder: a folder in which bags appear and grow, and what of them can be added to a history."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from ur_energy_model.telemetry.bag.files import file_number
from ur_energy_model.telemetry.bag.metadata import FILE_NAME

QUIET = 5.0
"""A bag that has not changed for this time is not being recorded or copied [s]."""
State = tuple[tuple[str, int, int], ...]
"""Names, sizes [bytes] and times of the last change [ns] of files."""


class BagFolder:
    """Finds finished bags in a folder.

    Of a bag that is being recorded, all storage files but the last are complete; they are
    recordings of their own, so that a bag of days is followed, and old files of it may be deleted
    meanwhile.

    Args:
        folder: of bags, or one bag.
        quiet: time without change after which a bag is complete [s].
    """

    def __init__(self, folder: Path, quiet: float = QUIET) -> None:
        self._folder, self._quiet = folder, quiet
        self._taken: dict[Path, State] = {}

    def take(self) -> list[Path]:
        """Recordings that are complete and were not taken as they are now, in order of names."""
        found = {path: _state(path) for path in self._recordings()}
        ready = sorted(path for path, state in found.items() if state != self._taken.get(path))
        self._taken = {path: state for path, state in self._taken.items() if path in found}
        self._taken |= {path: found[path] for path in ready}
        return ready

    def put_back(self, path: Path) -> None:
        """Let a recording be taken again."""
        self._taken.pop(path, None)

    def _recordings(self) -> list[Path]:
        found: list[Path] = []
        folders = [self._folder]
        with suppress(OSError):
            folders += [path for path in self._folder.iterdir() if path.is_dir()]
        for folder in folders:
            if folder.name.startswith("."):  # on its way to its name
                continue
            if (folder / FILE_NAME).is_file() and self._is_quiet(folder):
                found.append(folder)
            else:
                found += sorted(folder.glob("*.mcap"), key=file_number)[:-1]
        return found

    def _is_quiet(self, folder: Path) -> bool:
        newest = max((changed for _, _, changed in _state(folder)), default=0)
        return time.time() - newest / 1e9 >= self._quiet


def _state(path: Path) -> State:
    """State of a bag or file; files that vanish meanwhile are left out."""
    states = []
    with suppress(OSError):
        for file in sorted(path.iterdir()) if path.is_dir() else [path]:
            status = file.stat()
            states.append((file.name, status.st_size, status.st_mtime_ns))
    return tuple(states)
