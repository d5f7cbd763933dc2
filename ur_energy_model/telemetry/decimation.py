"""Decimator: selects moments of a stream at a lower rate."""

from __future__ import annotations

import math

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

    def due(self, now: float) -> bool:
        """Whether it is due at the time of the newest sample [s]; True schedules the next time."""
        early = self._next - now
        if EARLY * self.period < early <= 2.0 * self.period:
            return False
        # A clock that went back, or jumped ahead, starts a new grid.
        follows = abs(early) <= self.period
        self._next = (self._next if follows else now) + self.period
        return True
