"""CpuBudget: keeps the computing time of a background process below a share of a core."""

from __future__ import annotations

import time
from collections.abc import Callable


class CpuBudget:
    """Counts computing time against a budget that grows with the time that passes.

    Args:
        share: of one core that may be used on average.
        reserve: computing time that may be used in advance [s].
        used: returns the computing time of the process [s].
        now: returns the time [s].
    """

    def __init__(
        self,
        share: float,
        reserve: float,
        *,
        used: Callable[[], float] = time.process_time,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._share, self._reserve = share, reserve
        self._used, self._now = used, now
        self._used_before, self._began = used(), now()

    @property
    def spent(self) -> float:
        """Computing time so far [s]."""
        return self._used() - self._used_before

    @property
    def mean_share(self) -> float:
        """Share of one core that was used on average."""
        return self.spent / max(self._now() - self._began, 1.0)

    @property
    def left(self) -> float:
        """Computing time that may be used now [s]; negative if too much was used."""
        return self._reserve + self._share * (self._now() - self._began) - self.spent
