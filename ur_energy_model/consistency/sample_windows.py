# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Windows of consecutive samples, spread evenly over a recording, in bounded memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ur_energy_model.telemetry.samples import Telemetry, concatenate, equal_runs

WINDOW = 10.0  # duration of a window [s]: filters of measured motion need some seconds
MOST_WINDOWS = 6
"""Most windows that are kept. A minute of motion decides what more would decide, too."""


class SampleWindows:
    """Keeps every second, fourth, eighth... window of a recording that is read part by part.

    Args:
        fields: names of the columns that are kept, where a part has them.
        window: duration of a window [s].
        most: most windows that are kept; above it every second one is dropped.
    """

    def __init__(
        self, fields: Sequence[str], window: float = WINDOW, most: int = MOST_WINDOWS
    ) -> None:
        self._fields = tuple(fields)
        self._window = window
        self._most = most
        self._stride = 1
        self._windows: dict[int, list[Telemetry]] = {}
        self._elapsed = 0.0
        self._last: float | None = None

    def add(self, part: Telemetry) -> None:
        """Add the next part, whose samples may be of any number of windows."""
        if not len(part):
            return
        before = part.time[0] if self._last is None else self._last
        steps = np.diff(part.time, prepend=before)
        # The clock goes back where the controller was started again.
        clock = self._elapsed + np.cumsum(np.maximum(steps, 0.0))
        self._elapsed = float(clock[-1])
        self._last = float(part.time[-1])
        numbers = np.floor(clock / self._window).astype(int)
        in_one_window = numbers[0] == numbers[-1]
        if in_one_window and numbers[0] % self._stride:
            return
        known = [name for name in self._fields if name in part.columns]
        columns = {name: part.columns[name] for name in known}
        kept = replace(part, columns=columns, stamp=None)
        for rows in equal_runs(numbers):
            number = int(numbers[rows.start])
            if number % self._stride == 0:
                self._windows.setdefault(number, []).append(kept.cut(rows))
        while len(self._windows) > self._most:
            self._stride *= 2
            for number in list(self._windows):
                if number % self._stride:
                    del self._windows[number]

    def windows(self) -> list[Telemetry]:
        """The windows so far, in order, each with the columns that all of its parts have."""
        for number, parts in self._windows.items():
            if len(parts) > 1:
                self._windows[number] = [concatenate(parts)]
        return [parts[0] for parts in self._windows.values()]

    @property
    def seconds(self) -> float:
        """Time that was added so far [s]."""
        return self._elapsed
