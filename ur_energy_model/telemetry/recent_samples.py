# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The last minutes of telemetry, in bounded memory: what was seen live can be examined as a bag."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from pathlib import Path

import numpy as np

from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.telemetry.samples import Telemetry, common_columns, concatenate

KEPT_SECONDS = 300.0  # duration of the samples that are kept [s]
KEPT_RATE = 125.0  # highest rate of the kept samples [Hz]; about 25 MB at that rate
# time of samples that are kept as one batch: many small ones take more memory [s]
JOINED = 1.0


class RecentSamples:
    """The last samples of a source, thinned to `KEPT_RATE`.

    Args:
        seconds: duration of the kept samples [s].
        rate: highest rate of the kept samples [Hz].
    """

    def __init__(self, seconds: float = KEPT_SECONDS, rate: float = KEPT_RATE) -> None:
        self._seconds = seconds
        self._rate = rate
        self._parts: deque[Telemetry] = deque()
        self._pending: list[Telemetry] = []  # behind them, not joined yet
        self._cell = -np.inf  # period of the grid in which the last kept sample is
        self._last = -np.inf  # controller time of the last sample [s]

    def add(self, batch: Telemetry) -> None:
        """Add the next samples; where the clock goes back, all earlier samples are dropped."""
        if not len(batch):
            return
        if batch.time[0] < self._last:
            self._parts.clear()
            self._pending.clear()
            self._cell = -np.inf
        self._last = float(batch.time[-1])
        thinned = self._thinned(batch)
        if thinned is None:
            return
        self._pending.append(thinned)
        if self._last - self._pending[0].time[0] < JOINED:
            return
        self._join()
        while self._parts[0].time[-1] < self._last - self._seconds:
            self._parts.popleft()

    def write(self, bag: Path, joint_names: tuple[str, ...]) -> bool:
        """Write the samples into a new bag; returns whether there were any.

        Raises:
            RecordingError: the bag cannot be written.
        """
        self._join()
        parts = list(self._parts)
        if not parts:
            return False
        fields = common_columns([part.columns for part in parts])
        with BagWriter(
            bag, parts[0].info, tuple(fields), joint_names=joint_names
        ) as writer:
            for part in parts:
                writer.write(part)
        return True

    def _join(self) -> None:
        """Keep the pending samples as one batch."""
        if self._pending:
            self._parts.append(concatenate(self._pending))
            self._pending.clear()

    def _thinned(self, batch: Telemetry) -> Telemetry | None:
        """The first sample of each period of the grid; None if no period begins in the batch."""
        rate = batch.info.rate
        if rate is not None and rate <= self._rate:
            return batch
        # A little more than the time: the periods of a controller are not exact in
        # binary.
        cells = np.floor(batch.time * self._rate + 1e-3)
        first = np.diff(cells, prepend=self._cell) > 0.0
        if not first.any():
            return None
        self._cell = float(cells[-1])
        thinned = batch.select(first)
        return replace(thinned, info=replace(batch.info, rate=self._rate))
