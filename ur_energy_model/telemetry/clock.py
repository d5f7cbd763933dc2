"""Host time of samples, from the controller's clock and the times at which packets arrived.

Packets arrive late but never early, by scheduling and network delays of any size. So the offset
between the clocks is the lower envelope of arrival minus controller time: the earliest arrival of
each second is kept, a line through these minima (Theil-Sen, so that outliers do not count) gives
offset and drift, and the stamps are steered towards it so gently that they stay smooth. Source of
the estimator: H. Theil (1950) and P. K. Sen (1968), "Estimates of the regression coefficient based
on Kendall's tau".
"""

from __future__ import annotations

import time
from collections import deque

import numpy as np
from numpy.typing import NDArray

WINDOW = 1.0
WINDOWS = 120
MIN_WINDOWS_FOR_DRIFT = 10
MAX_DRIFT = 500e-6
SLEW_TIME = 5.0
MAX_SLEW = 1e-3
START_SLEW_TIME = 0.5
MAX_START_SLEW = 1e-2
RESTART_ERROR = 0.5


class HostClock:
    """Wall-clock time that does not jump when somebody sets the clock."""

    def __init__(self) -> None:
        self._offset = time.time_ns() - time.monotonic_ns()

    def now(self) -> int:
        """Nanoseconds since the epoch."""
        return time.monotonic_ns() + self._offset


class ClockMap:
    """Maps controller timestamps to host stamps, online.

    Stamps never go back, and follow the controller's clock within 0.1 % (1 % in the first
    seconds), across reconnects too. After a restart of the controller, whose timestamps start
    again, the map starts again behind the last stamp.
    """

    def __init__(self) -> None:
        self._minima: deque[tuple[float, float]] = deque(maxlen=WINDOWS)
        self._window_start = 0.0
        self._lowest: tuple[float, float] | None = None
        self._anchor = (0.0, 0)
        self._slope = 0.0
        self._drift = 0.0
        self._started = False
        self._last_time = 0.0
        self._last_stamp: int | None = None

    @property
    def drift(self) -> float:
        """How much faster the host's clock runs, relative."""
        return self._drift

    def stamp(self, times: NDArray[np.float64], arrival: int) -> NDArray[np.int64]:
        """Stamps of a batch.

        Args:
            times: controller timestamps [n >= 1], s.
            arrival: host time at which the batch was read [ns since the epoch].

        Returns:
            [n], ns since the epoch, not decreasing.
        """
        restarts = np.flatnonzero(np.diff(times) < 0) + 1
        if len(restarts):
            cut = int(restarts[-1])
            early = self.stamp(times[:cut], arrival)
            return np.concatenate([early, self.stamp(times[cut:], arrival)])
        newest = float(times[-1])
        if self._started:
            late = (arrival - self._map(newest)) * 1e-9
            if times[0] < self._last_time or late < -RESTART_ERROR:
                self._started = False
        if not self._started:
            self._start(newest, arrival)
        self._observe(newest, arrival)
        stamps = self._map_array(times)
        if self._last_stamp is not None:
            stamps = np.maximum(stamps, self._last_stamp + 1)
        stamps = np.maximum.accumulate(stamps)
        self._last_time, self._last_stamp = newest, int(stamps[-1])
        self._steer(newest)
        return stamps

    def _start(self, newest: float, arrival: int) -> None:
        self._minima.clear()
        self._lowest = None
        self._anchor, self._slope, self._drift = (newest, arrival), 0.0, 0.0
        self._window_start = newest
        self._started = True

    def _map(self, at: float) -> int:
        start, stamp = self._anchor
        return stamp + round((at - start) * (1.0 + self._slope) * 1e9)

    def _map_array(self, times: NDArray[np.float64]) -> NDArray[np.int64]:
        start, stamp = self._anchor
        elapsed = (times - start) * (1.0 + self._slope) * 1e9
        return stamp + np.rint(elapsed).astype(np.int64)

    def _observe(self, newest: float, arrival: int) -> None:
        """Keep the smallest arrival delay of each window, relative to the anchor."""
        offset = (arrival - self._anchor[1]) * 1e-9 - (newest - self._anchor[0])
        if self._lowest is None or offset < self._lowest[1]:
            self._lowest = (newest, offset)
        if newest - self._window_start >= WINDOW:
            self._minima.append(self._lowest)
            self._lowest = None
            self._window_start = newest

    def _steer(self, newest: float) -> None:
        """Move the anchor to now, and turn the slope towards the estimated offset."""
        target = self._estimate(newest)
        stamp = self._map(newest)
        error = target - ((stamp - self._anchor[1]) * 1e-9 - (newest - self._anchor[0]))
        young = len(self._minima) < MIN_WINDOWS_FOR_DRIFT
        limit = MAX_START_SLEW if young else MAX_SLEW
        pace = START_SLEW_TIME if young else SLEW_TIME
        slope = self._drift + float(np.clip(error / pace, -limit, limit))
        self._move_anchor(newest, stamp)
        self._slope = slope

    def _move_anchor(self, newest: float, stamp: int) -> None:
        """Offsets are relative to the anchor, so they move along with it."""
        shift = (stamp - self._anchor[1]) * 1e-9 - (newest - self._anchor[0])
        self._anchor = (newest, stamp)
        self._minima = deque(((c, o - shift) for c, o in self._minima), maxlen=WINDOWS)
        if self._lowest is not None:
            self._lowest = (self._lowest[0], self._lowest[1] - shift)

    def _estimate(self, newest: float) -> float:
        """Offset at controller time `newest`, relative to the anchor [s]."""
        points = list(self._minima)
        if len(points) < MIN_WINDOWS_FOR_DRIFT:
            if self._lowest is not None:
                points.append(self._lowest)
            return min(offset for _, offset in points)
        c, o = np.array(points).T
        i, j = np.triu_indices(len(c), 1)
        slopes = (o[j] - o[i]) / (c[j] - c[i])
        self._drift = float(np.clip(np.median(slopes), -MAX_DRIFT, MAX_DRIFT))
        level = float(np.quantile(o - self._drift * c, 0.25))
        return level + self._drift * newest
