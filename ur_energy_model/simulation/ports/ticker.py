"""Deadlines of a periodic task, and statistics of their lateness."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

_BINS: list[float] = [0.0, *np.geomspace(1e-6, 10.0, 281).tolist()]


@dataclass(frozen=True)
class Punctuality:
    """Lateness statistics of a periodic task.

    Attributes:
        ticks: number of served deadlines.
        rate: ticks per second between the first and the last [Hz].
        lateness_p50, lateness_p99, lateness_max: time from deadline to service [s];
            percentiles within 6 %.
    """

    ticks: int
    rate: float
    lateness_p50: float
    lateness_p99: float
    lateness_max: float

    def __str__(self) -> str:
        late = [self.lateness_p50, self.lateness_p99, self.lateness_max]
        p50, p99, worst = (f"{1e3 * value:.2f}" for value in late)
        return (
            f"{self.ticks} ticks at {self.rate:.2f}/s, late by {p50} ms (median), "
            f"{p99} ms (99 %), {worst} ms (worst)"
        )


class Ticker:
    """Deadlines at start + k * period.

    Deadlines do not move when one is served late, so no tick is dropped and the mean rate is exact.

    Args:
        period: of the deadlines [s].
        clock: monotonic time [s].
    """

    def __init__(self, period: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.period = period
        self._clock = clock
        self._start = clock()
        self._served = 0
        self._first = self._last = self._start
        self._worst = 0.0
        self._histogram = [0] * len(_BINS)

    def remaining(self) -> float:
        """Time to the next deadline [s]; zero or negative if it is due."""
        return self._start + self._served * self.period - self._clock()

    def serve(self) -> None:
        """Record that the current deadline is served now."""
        now = self._clock()
        lateness = now - (self._start + self._served * self.period)
        if self._served == 0:
            self._first = now
        self._last = now
        self._served += 1
        self._worst = max(self._worst, lateness)
        self._histogram[max(bisect_left(_BINS, lateness) - 1, 0)] += 1

    def punctuality(self) -> Punctuality:
        """Statistics since the start."""
        counts = np.cumsum(self._histogram)
        p50, p99 = (
            _BINS[min(int(np.searchsorted(counts, part * counts[-1])) + 1, len(_BINS) - 1)]
            for part in (0.5, 0.99)
        )
        span = self._last - self._first
        rate = (self._served - 1) / span if self._served > 1 and span > 0 else 0.0
        return Punctuality(self._served, rate, p50, p99, self._worst)
