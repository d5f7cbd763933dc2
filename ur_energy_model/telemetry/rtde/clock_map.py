# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""ClockMap: the times of a controller's clock as times of the host's clock."""

from __future__ import annotations

import math
from collections import deque

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.typing import Array

WINDOW = 1.0  # length of a window, whose smallest delay counts [s]
WINDOWS = 120  # number of the last windows that count
MIN_WINDOWS_FOR_DRIFT = 10  # windows from which the drift is known
MAX_DRIFT = 500e-6  # largest drift between two clocks, relative
LEVEL_QUANTILE = 0.25  # quantile of the smallest delays that counts as the usual delay
STEER_SECONDS = 0.1  # time between two corrections of the map [s]
SLEW = (5.0, 1e-3)
"""Time in which an error of the offset decays [s], and largest change of the slope for it."""
START_SLEW = (0.5, 1e-2)
"""The same before the drift is known."""
RESTART_ERROR = 0.5
"""Difference from the mapped clock that a delay of packets alone does not explain [s]."""
LATE_NS = 15_000_000_000
"""Time after which a clock that is behind is followed: it stood still for good [ns]."""


class ClockMap:
    """Maps controller timestamps to host stamps, online.

    Stamps always increase and follow the controller's clock within 0.1 % (1 % in the
    first seconds), also across reconnections. After a restart of the controller's clock
    the map starts again after the last stamp.

    Packets arrive late, and never early: the smallest delay of each window shows the
    offset between the clocks. The median slope between all pairs of windows is the drift
    (Theil and Sen).

    Attributes:
        drift: how much faster the host's clock runs than the controller's, relative.
    """

    def __init__(self) -> None:
        self._started = False
        self._last_stamp = 0  # [ns]
        self._last_time = math.nan  # controller time of the last stamp [s]
        self._begin(0.0, 0)

    def _begin(self, newest: float, arrival: int) -> None:
        """Forget everything that was learned, and map this controller time to its arrival.

        Args:
            newest: controller time of the newest packet [s].
            arrival: host time at which it was read [ns].
        """
        self._origin = newest, arrival
        # The map: a controller time [s] and its host time [ns], and by how much more the
        # host's clock advances.
        self._anchor = newest, arrival
        self._slope = 0.0
        self.drift = 0.0
        self._level: float | None = None  # usual offset at controller time 0 [s]
        # (controller time, offset) of the smallest delay [s]: in the present window, which
        # began at a controller time, and in the windows before.
        self._lowest = (newest, math.inf)
        self._window_start = newest
        self._minima: deque[tuple[float, float]] = deque(maxlen=WINDOWS)
        self._late_since: int | None = None  # host time since which the clock is behind

    def restart(self) -> None:
        """Start again: the controller's clock was restarted."""
        self._started = False

    def lateness(self, at: float, arrival: int) -> float:
        """How much later than expected a packet arrived [s]; 0 before the first packet."""
        return (arrival - int(self._map(at))) * 1e-9 if self._started else 0.0

    def stamp(self, times: Array, arrival: int) -> NDArray[np.int64]:
        """Host stamps of a batch.

        Args:
            times: controller timestamps [n >= 1], s.
            arrival: host time at which the batch was read [ns since the epoch].

        Returns:
            Increasing stamps [n], ns since the epoch.
        """
        back = times[1:] < times[:-1]
        if back.any():
            cut = int(back.nonzero()[0][-1]) + 1
            early = self.stamp(times[:cut], arrival)
            return np.concatenate([early, self.stamp(times[cut:], arrival)])
        newest = float(times[-1])
        if not self._started or self._has_restarted(float(times[0]), newest, arrival):
            self._started = True
            self._begin(newest, arrival)
        self._observe(newest, arrival)
        stamps = self._map(times)
        if int(stamps[0]) <= self._last_stamp:
            stamps = np.maximum(stamps, self._last_stamp + 1 + np.arange(len(stamps)))
        self._last_time = newest
        self._last_stamp = int(stamps[-1])
        anchor_time, _ = self._anchor
        if newest - anchor_time >= STEER_SECONDS:
            self._steer(newest)
        return stamps

    def _map(self, times: Array | float) -> NDArray[np.int64]:
        """Host time [ns] of controller times [s] by the anchor and the slope."""
        anchor_time, anchor_stamp = self._anchor
        passed = (times - anchor_time) * (1.0 + self._slope)
        return anchor_stamp + np.rint(passed * 1e9).astype(np.int64)

    def _offset(self, at: float, stamp: int) -> float:
        """Host time [ns] minus controller time [s], relative to the origin [s]."""
        origin_time, origin_stamp = self._origin
        return (stamp - origin_stamp) * 1e-9 - (at - origin_time)

    def _has_restarted(self, oldest: float, newest: float, arrival: int) -> bool:
        """Whether the clock went back, is ahead of the host's, or stays behind it.

        A backlog of packets or a busy controller is late too, but not for long.

        Args:
            oldest: controller time of the first sample of a batch [s].
            newest: controller time of its last sample [s].
            arrival: host time at which the batch was read [ns].
        """
        late = self.lateness(newest, arrival)
        if oldest < self._last_time or late < -RESTART_ERROR:
            return True
        if late < RESTART_ERROR:
            self._late_since = None
        elif self._late_since is None:
            self._late_since = arrival
        return self._late_since is not None and arrival - self._late_since > LATE_NS

    def _observe(self, newest: float, arrival: int) -> None:
        """Keep the smallest delay of each window; fit drift, and offset at controller time 0.

        Args:
            newest: controller time of the newest packet [s].
            arrival: host time at which it was read [ns].
        """
        offset = self._offset(newest, arrival)
        _, lowest = self._lowest
        if offset < lowest:
            self._lowest = (newest, offset)
        if newest - self._window_start < WINDOW:
            return
        self._minima.append(self._lowest)
        self._lowest = (newest, math.inf)
        self._window_start = newest
        if len(self._minima) < MIN_WINDOWS_FOR_DRIFT:
            return
        at, offsets = np.array(self._minima).T
        earlier, later = np.triu_indices(len(at), 1)  # all pairs of windows
        slopes = (offsets[later] - offsets[earlier]) / (at[later] - at[earlier])
        self.drift = float(np.clip(np.median(slopes), -MAX_DRIFT, MAX_DRIFT))
        self._level = float(np.quantile(offsets - self.drift * at, LEVEL_QUANTILE))

    def _steer(self, newest: float) -> None:
        """Move the anchor to this controller time [s], and let the offset's error decay."""
        stamp = int(self._map(newest))
        if self._level is None:
            expected = min(offset for _, offset in (self._lowest, *self._minima))
            pace, limit = START_SLEW
        else:
            expected = self._level + self.drift * newest
            pace, limit = SLEW
        error = expected - self._offset(newest, stamp)
        self._slope = self.drift + min(max(error / pace, -limit), limit)
        self._anchor = newest, stamp
