# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""StorageBudget: keeps the bags of a folder within a budget while others are recorded."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from ur_energy_model.errors import RecordingError
from ur_energy_model.files import real_path
from ur_energy_model.telemetry.bag.metadata import read_metadata
from ur_energy_model.telemetry.bag.recovery import bag_state
from ur_energy_model.telemetry.bag.retention import (
    DAY,
    BagFile,
    Retention,
    delete_file,
    file_contents,
    stored_files,
)

PERIOD = 10.0  # time between readings of the folder [s]
_CLOSE_TIMEOUT = 5.0  # longest wait for the end of the thread [s]
_MARKED = "it is marked"
_WRITTEN = "it is being written"


@dataclass(frozen=True)
class StorageUse:
    """Bags of a folder under a budget.

    Attributes:
        bytes: size of all storage files.
        files: number of storage files.
        oldest_days: age of the oldest file that may be deleted [days], None without one.
        marked: number of files that are kept because of their marks.
        removed_files: number of files that were deleted so far.
        removed_bytes: size of these files.
        problem: why the budget cannot be kept, None while it is.
    """

    bytes: int = 0
    files: int = 0
    oldest_days: float | None = None
    marked: int = 0
    removed_files: int = 0
    removed_bytes: int = 0
    problem: str | None = None


class StorageBudget:
    """Deletes whole storage files, oldest first, in a thread of its own.

    Files with marks, the file being written, and bags that another process writes are
    never deleted; files that cannot be read are not either, since they might be marked,
    and those that metadata.yaml does not list, since they come from elsewhere.

    Args:
        folder: folder of the bags.
        retention: the budget.
        recording: returns the bag that this process records, None if there is none.
        release: takes a file out of that bag, and returns whether it may be deleted.

    Attributes:
        use: what the bags take at present.
    """

    def __init__(
        self,
        folder: Path,
        retention: Retention,
        recording: Callable[[], Path | None],
        release: Callable[[Path], bool],
    ) -> None:
        self.use = StorageUse()
        self._folder = folder
        self._retention = retention
        self._recording = recording
        self._release = release
        self._own: dict[Path, bool] = {}  # whether each bag of the folder counts
        # Files that are never deleted as they are now, and why; they are not read again.
        self._kept: dict[BagFile, str] = {}
        self._closing = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name="storage budget", daemon=True
        )

    def start(self) -> None:
        """Start the thread; the folder is read for the first time after PERIOD."""
        self._thread.start()

    def close(self) -> None:
        """Stop the thread; a file that is being deleted is finished."""
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join(_CLOSE_TIMEOUT)

    def _run(self) -> None:
        """The thread of the budget."""
        while not self._closing.wait(PERIOD):
            self.enforce()

    def enforce(self) -> None:
        """Delete what exceeds the budget now, and bring `use` up to date.

        A file that cannot be deleted stays, and the next one is tried: `use.problem` has
        the first reason once the budget is exceeded.
        """
        files = stored_files(self._folder, self._own)
        now = time.time()
        total = sum(file.bytes for file in files)
        left: dict[BagFile, str | None] = {}  # and why each must not be deleted
        for file in files:
            if self._closing.is_set():
                return
            reason = self._kept.get(file)
            if reason is None and self._retention.is_due(file, total, now):
                reason = self._delete(file)
                if reason is None:
                    total -= file.bytes
                    self._count_removed(file)
                    continue
            left[file] = reason
        free = [file for file, reason in left.items() if reason is None]
        problem: str | None = None
        for file, reason in left.items():
            if problem is None and reason not in (None, _MARKED):
                problem = f"{file.path}: {reason}"
        self._kept = {file: self._kept[file] for file in left if file in self._kept}
        limit = self._retention.bytes
        if limit is not None and total > limit:
            why = problem or "the rest is marked, or still being written"
            problem = f"{total / 1e9:.3g} GB instead of {limit / 1e9:.3g} GB: {why}"
        self.use = replace(
            self.use,
            bytes=total,
            files=len(left),
            oldest_days=(now - free[0].modified) / DAY if free else None,
            marked=sum(reason == _MARKED for reason in self._kept.values()),
            problem=problem,
        )

    def _count_removed(self, file: BagFile) -> None:
        """Count a file that was deleted."""
        self.use = replace(
            self.use,
            removed_files=self.use.removed_files + 1,
            removed_bytes=self.use.removed_bytes + file.bytes,
        )

    def _delete(self, file: BagFile) -> str | None:
        """Delete a file, if nothing speaks against it.

        Args:
            file: file of a bag under the budget.

        Returns:
            Why it was not deleted, None if it was.
        """
        bag = self._recording()
        folder = file.path.parent
        is_own = bag is not None and real_path(bag) == real_path(folder)
        try:
            if not is_own:
                state, writer = bag_state(folder)
                if state == "unknown":
                    return f"{writer} may still write it"
                if state == "written":
                    return _WRITTEN
            listed = [entry.name for entry in read_metadata(folder).files]
            if file.path.name not in listed:
                return self._keep(file, "metadata.yaml does not list it; it is kept")
            contents = file_contents(file.path)
            if contents.marked:
                return self._keep(file, _MARKED)
            if is_own and not self._release(file.path):
                return _WRITTEN
            delete_file(file.path, contents)
        except RecordingError as error:
            return self._keep(file, f"{error.problem}; it is kept")
        except OSError as error:
            return f"cannot be deleted ({error.strerror or error})"
        return None

    def _keep(self, file: BagFile, reason: str) -> str:
        """Read a file no more while it stays as it is; returns the reason."""
        self._kept[file] = reason
        return reason
