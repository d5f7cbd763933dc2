"""Host time of samples, from the controller's clock and the arrival times of packets.

Scheduling and network delay packets, but never advance them. So the offset between the clocks is
the lower envelope of arrival minus controller time: a line through the earliest arrival of each
second (Theil-Sen, robust against outliers) gives offset and drift, and the stamps follow it slowly
enough to stay smooth. Source of the estimator: H. Theil (1950) and P. K. Sen (1968), "Estimates of
the regression coefficient based on Kendall's tau".
"""

from __future__ import annotations

import math
from collections import deque

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.typing import Array

WINDOW = 1.0
STEER_SECONDS = 0.1
WINDOWS = 120
MIN_WINDOWS_FOR_DRIFT = 10
MAX_DRIFT = 500e-6
SLEW_TIME = 5.0
MAX_SLEW = 1e-3
START_SLEW_TIME = 0.5
MAX_START_SLEW = 1e-2
RESTART_ERROR = 0.5
LATE_NS = 15_000_000_000
LEVEL_QUANTILE = 0.25


class ClockMap:
    """Maps controller timestamps to host stamps, online.

    Stamps always increase and follow the controller's clock within 0.1 % (1 % in the first
    seconds), also across reconnections. After a restart of the controller's clock the map starts
    again after the last stamp.

    Attributes:
        drift: how much faster the host's clock runs, relative.
    """

    def __init__(self) -> None:
        self._minima: deque[tuple[float, float]] = deque(maxlen=WINDOWS)
        self._window_start = 0.0
        self._lowest: tuple[float, float] | None = None
        self._origin = self._anchor = (0.0, 0)
        self._level: float | None = None
        self._slope = 0.0
        self.drift = 0.0
        self._started = False
        self._last_time = 0.0
        self._last_stamp = 0
        self._late_since: int | None = None

    def stamp(self, times: Array, arrival: int) -> NDArray[np.int64]:
        """Stamps of a batch.

        Args:
            times: controller timestamps [n >= 1], s.
            arrival: host time at which the batch was read [ns since the epoch].

        Returns:
            [n], ns since the epoch, increasing.
        """
        if len(times) > 1:
            restarts = np.flatnonzero(times[1:] < times[:-1]) + 1
            if len(restarts):
                cut = int(restarts[-1])
                early = self.stamp(times[:cut], arrival)
                return np.concatenate([early, self.stamp(times[cut:], arrival)])
        newest = float(times[-1])
        if not self._started or self._has_restarted(float(times[0]), newest, arrival):
            self._start(newest, arrival)
        self._observe(newest, arrival)
        stamps = self._map_all(times)
        if int(stamps[0]) <= self._last_stamp:
            stamps = np.maximum(stamps, self._last_stamp + 1 + np.arange(len(stamps)))
        self._last_time, self._last_stamp = newest, int(stamps[-1])
        if newest - self._anchor[0] >= STEER_SECONDS:
            self._steer(newest)
        return stamps

    def lateness(self, time: float, arrival: int) -> float:
        """How much later than expected a packet arrived [s]; 0 before the first packet."""
        return (arrival - self._map(time)) * 1e-9 if self._started else 0.0

    def _has_restarted(self, oldest: float, newest: float, arrival: int) -> bool:
        """Whether the controller's clock started again.

        Its time went back, is ahead of the host's, or stays behind it. A backlog of packets or a
        busy controller is late too, but not for long.
        """
        late = self.lateness(newest, arrival)
        if oldest < self._last_time or late < -RESTART_ERROR:
            return True
        if late < RESTART_ERROR:
            self._late_since = None
            return False
        if self._late_since is None:
            self._late_since = arrival
        return arrival - self._late_since > LATE_NS

    def restart(self) -> None:
        """Start again: the controller's clock was restarted."""
        self._started = False

    def _start(self, newest: float, arrival: int) -> None:
        self._minima.clear()
        self._lowest = None
        self._origin = self._anchor = (newest, arrival)
        self._slope, self.drift, self._level = 0.0, 0.0, None
        self._window_start = newest
        self._late_since = None
        self._started = True

    def _map(self, at: float) -> int:
        start, stamp = self._anchor
        return stamp + round((at - start) * (1.0 + self._slope) * 1e9)

    def _map_all(self, times: Array) -> NDArray[np.int64]:
        if len(times) == 1:
            return np.array([self._map(float(times[0]))], np.int64)
        start, stamp = self._anchor
        elapsed = (times - start) * (1.0 + self._slope) * 1e9
        return stamp + np.rint(elapsed).astype(np.int64)

    def _observe(self, newest: float, arrival: int) -> None:
        """Keep the smallest arrival delay of each window."""
        offset = self._offset(newest, arrival)
        if self._lowest is None or offset < self._lowest[1]:
            self._lowest = (newest, offset)
        if newest - self._window_start >= WINDOW:
            self._minima.append(self._lowest)
            self._lowest = None
            self._window_start = newest
            self._fit()

    def _steer(self, newest: float) -> None:
        """Move the anchor to now, and set the slope so that the offset error decays."""
        stamp = self._map(newest)
        error = self._estimate(newest) - self._offset(newest, stamp)
        young = self._level is None
        limit = MAX_START_SLEW if young else MAX_SLEW
        pace = START_SLEW_TIME if young else SLEW_TIME
        self._slope = self.drift + min(max(error / pace, -limit), limit)
        self._anchor = (newest, stamp)

    def _offset(self, at: float, stamp: int) -> float:
        """Host minus controller time, relative to the origin [s]."""
        return (stamp - self._origin[1]) * 1e-9 - (at - self._origin[0])

    def _fit(self) -> None:
        """Fit drift and offset (at controller time 0) to the minima."""
        if len(self._minima) < MIN_WINDOWS_FOR_DRIFT:
            return
        c, o = np.array(self._minima).T
        i, j = np.triu_indices(len(c), 1)
        slopes = (o[j] - o[i]) / (c[j] - c[i])
        self.drift = float(np.clip(np.median(slopes), -MAX_DRIFT, MAX_DRIFT))
        self._level = float(np.quantile(o - self.drift * c, LEVEL_QUANTILE))

    def _estimate(self, newest: float) -> float:
        """Offset at controller time `newest`, relative to the origin [s]."""
        if self._level is not None:
            return self._level + self.drift * newest
        lowest = min((offset for _, offset in self._minima), default=math.inf)
        return lowest if self._lowest is None else min(lowest, self._lowest[1])
