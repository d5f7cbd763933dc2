"""Decimator: selects moments of a stream at a lower rate."""

from __future__ import annotations

import math
from itertools import pairwise

from ur_energy_model.typing import Array

MOST_LATE = 10
"""Periods whose samples came together and are still taken one by one."""
EARLY = 0.25
"""Part of a period by which a moment may be early: batches end on whole samples."""


class Decimator:
    """Tells when something is due that happens at a lower rate than samples arrive.

    It uses the clock of the samples, so that a batch that was read late shifts nothing, and a
    fixed grid, so that the mean rate is exact although batches rarely end on the grid.

    Args:
        rate: wanted [Hz].
    """

    def __init__(self, rate: float) -> None:
        self.period = 1.0 / rate
        self._next = -math.inf

    def parts(self, time: Array) -> tuple[list[slice], int]:
        """Parts of samples that came together after a delay, with one period each.

        More than MOST_LATE periods would be late: they stay one part.

        Args:
            time: of samples behind those of the last call of `due` [samples], s; at least one.

        Returns:
            slices of the samples, and how many periods have samples but no part of their own.
        """
        count, whole = len(time), [slice(0, len(time))]
        if count == 1:
            return whole, 0
        covered = float(time[-1] - time[0]) * count / (count - 1)
        since = float(time[-1]) - (self._next - self.period)
        late = min(covered, since) / self.period
        periods = min(round(late), count) if 0.0 < late < math.inf else 1
        if periods <= 1 or periods > MOST_LATE:
            return whole, max(periods - 1, 0)
        edges = [round(k * count / periods) for k in range(periods + 1)]
        return [slice(*edge) for edge in pairwise(edges)], 0

    def due(self, now: float) -> bool:
        """Whether it is due at the time of the newest sample [s]; True schedules the next time."""
        early = self._next - now
        if EARLY * self.period < early <= 2.0 * self.period:
            return False
        # A clock that went back, or jumped ahead, starts a new grid.
        follows = abs(early) <= self.period
        self._next = (self._next if follows else now) + self.period
        return True
