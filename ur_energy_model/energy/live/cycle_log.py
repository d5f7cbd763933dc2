"""CycleLog: a CSV file with one row per cycle."""

from __future__ import annotations

import csv
import io
import os
from collections import deque
from contextlib import suppress
from pathlib import Path

from ur_energy_model.energy.channels import Channels
from ur_energy_model.energy.live.cycles import Cycle
from ur_energy_model.files import cell_text, check_target, user_path

MOST_WAITING = 10_000
"""Rows that wait in memory while the disk cannot be written; older ones are dropped."""


class CycleLog:
    """Appends a row when a cycle ends; rows that cannot be written wait.

    Args:
        path: of the CSV file; its folder is created if missing.

    Attributes:
        problem: why rows wait or are lost, None if all are written.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = user_path(path)
        self.problem: str | None = None
        self._waiting: deque[dict[str, object]] = deque()
        self._dropped = 0

    def append(self, cycle: Cycle, channels: Channels, ended: str) -> None:
        """Append a cycle that ended at an ISO 8601 time."""
        row = {"cycle": cycle.number, "ended": ended, **cycle.summary(channels)}
        self._waiting.append(
            {
                cell_text(name): cell_text(value) if isinstance(value, str) else value
                for name, value in row.items()
            }
        )
        if len(self._waiting) > MOST_WAITING:
            self._waiting.popleft()
            self._dropped += 1
        self.write()

    def write(self) -> None:
        """Write the rows that wait; a disk that cannot be written is a `problem`."""
        if not self._waiting:
            return
        try:
            self._write()
        except OSError as error:
            self.problem = f"{self.path}: cannot be written ({error.strerror or error})"
            if self._dropped:
                self.problem += f", {self._dropped} cycles are lost"
        else:
            self.problem = None

    def _write(self) -> None:
        check_target(self.path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab", buffering=0) as file:
            size = file.seek(0, os.SEEK_END)
            text = io.StringIO(newline="")
            names = list(self._waiting[0])
            if size:  # a log of an earlier version keeps its columns
                with self.path.open("rb") as before:
                    header = before.readline(MOST_WAITING).decode(errors="replace").split(",")
                known = [name.strip() for name in header]
                names = known if set(known) <= set(names) else names
            writer = csv.DictWriter(text, names, extrasaction="ignore")
            if size == 0:
                writer.writeheader()
            writer.writerows(self._waiting)
            data = text.getvalue().encode("utf-8")
            try:
                written = file.write(data)
                if written is not None and written < len(data):
                    file.write(data[written:])  # raises the error that cut the first part short
            except OSError:
                with suppress(OSError):
                    file.truncate(size)  # no half row
                raise
        self._waiting.clear()
