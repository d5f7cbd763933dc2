"""PacketStream: data packages as telemetry without duplicates, with stamps, gaps and causes.

After a lost connection there are four hypotheses, and only clocks to distinguish them where the
dashboard server gives no serial number:

- the same controller ran on: its clock advanced like the host's;
- the same controller stood still (suspended, overloaded): its clock is behind, but not younger
  than the outage, and may catch up; `ClockMap` follows it where it does not;
- it restarted: its clock went back, or is behind and younger than the outage;
- another controller is at this address: its clock is ahead of what the first one's can be. Only
  this one is refused, as the samples of two arms must never be in one recording.
"""

from __future__ import annotations

import math
import time
from collections import deque
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.errors import ProtocolError, WrongRobotError
from ur_energy_model.telemetry.rtde.protocol import Recipe
from ur_energy_model.telemetry.samples import Gap, RecordingInfo, Telemetry, changes, find_gaps
from ur_energy_model.typing import Array

MAX_TIMESTAMP = 1e9  # decades after a controller's start [s]
AHEAD_SECONDS, AHEAD_SHARE = 5.0, 0.01
"""How far a controller's clock may have gained on the host's by the end of an outage: seconds, and
a share of the outage."""
RESTART_ERROR = 0.5
"""Difference from the mapped clock that a delay of packets alone does not explain [s]."""


class PacketStream:
    """The packages of one controller, over all its connections.

    Attributes:
        duplicates: packages left out because the controller sent the same tick again.
        loss: why the connection was lost, until the next package arrives.
        restarted: whether the controller's clock started again with the last packages.
        same_serial: set by the owner where a serial number shows that the controller is the same.
        fault: why packages after the last ones returned were refused; None if none were.
    """

    def __init__(self, peer: str) -> None:
        self.clock = ClockMap()
        self.duplicates = 0
        self.loss: str | None = None
        self.restarted = self.same_serial = False
        self.fault: ProtocolError | None = None
        self._peer = peer
        self._last_time, self._last_arrival = math.nan, 0
        self._leads = np.full(2, -np.inf)

    def telemetry(
        self, recipe: Recipe, records: NDArray[np.void], arrival: int, info: RecordingInfo
    ) -> Telemetry | None:
        """Telemetry of the next packages, read at a host time [ns]; None if all are duplicates.

        Packages before one with an impossible timestamp are returned; `fault` has the rest. The
        rate of the info defines what a gap is.

        Raises:
            ProtocolError: the first timestamp is impossible.
            WrongRobotError: after a lost connection, the clock is that of another controller.
        """
        self.fault, self.restarted = None, False
        columns = recipe.columns(records)
        times = columns["timestamp"]
        steps, period = changes(times, self._last_time), 1.0 / (info.rate or 1.0)
        gaps: list[Gap] = []
        # In the usual case every package follows the one before without a gap.
        in_step = steps.min() > 0.0 and steps.max() < 1.5 * period
        if not in_step or times[-1] >= MAX_TIMESTAMP:
            possible = np.logical_and.accumulate((times >= 0.0) & (times < MAX_TIMESTAMP))
            self.check_times(times[:1])
            if not possible.all():
                self.fault = self._impossible()
            keep = possible & (steps != 0)
            self.duplicates += int(np.count_nonzero(possible & ~keep))
            if not keep.any():
                return None
            if not keep.all():
                columns = {name: values[keep] for name, values in columns.items()}
                times = columns["timestamp"]
            found = find_gaps(np.concatenate([[self._last_time], times]), period)
            gaps = [replace(gap, index=gap.index - 1) for gap in found]
        newest = float(times[-1])
        # By how much the controller's clock is ahead of the host's monotonic and wall clock. The
        # first one stands still while the host is suspended, the second one may be set.
        leads = np.array([newest - arrival * 1e-9, newest - time.time()])
        if gaps and gaps[0].index == 0:
            # Before the first of the packages, which arrived earlier than the last one.
            away = (arrival - self._last_arrival) * 1e-9 - float(times[-1] - times[0])
            gaps[0] = self._explain(gaps[0], max(away, 0.0), period, arrival, leads)
        # Packets that waited while this program or the controller stood still arrive late, and
        # show nothing about the clock: what counts is the largest lead that it ever had.
        again = self.restarted or newest < self._last_time
        self._leads = leads if again else np.maximum(leads, self._leads)
        self._last_time, self._last_arrival, self.loss = newest, arrival, None
        return Telemetry(times, columns, info, tuple(gaps), self.clock.stamp(times, arrival))

    def check_times(self, times: Array) -> None:
        """Raise ProtocolError if timestamps [packets], s, are not those of a controller."""
        if not ((times >= 0.0) & (times < MAX_TIMESTAMP)).all():
            raise self._impossible()

    def _impossible(self) -> ProtocolError:
        return ProtocolError(self._peer, "sent an impossible timestamp", "restart the controller")

    def _explain(self, gap: Gap, away: float, period: float, arrival: int, leads: Array) -> Gap:
        """A gap in front of packages with its cause; `away` is its length by the host's clock."""
        loss, went_back = self.loss, gap.end < gap.start
        if loss is None and not went_back:
            return gap
        behind = self.clock.lateness(gap.end, arrival) > RESTART_ERROR
        if went_back or (behind and gap.end < away):
            self.clock.restart()
            self.restarted = True
            cause = "controller restarted" if loss is None else f"controller restarted: {loss}"
            return replace(gap, missing=max(0, round(away / period) - 1), cause=cause, away=away)
        gained = float((leads - self._leads).min())
        if gained > AHEAD_SECONDS + AHEAD_SHARE * away and not self.same_serial:
            problem = "is another controller: its clock is ahead of that of the one before"
            remedy = "connect the robot that the recording began with, or start another"
            raise WrongRobotError(self._peer, problem, remedy)
        return replace(gap, cause=f"connection lost: {loss}")


WINDOW, WINDOWS = 1.0, 120
"""The smallest delay of each window counts: length of a window [s], number of windows."""
MIN_WINDOWS_FOR_DRIFT = 10
MAX_DRIFT = 500e-6
LEVEL_QUANTILE = 0.25
STEER_SECONDS = 0.1
SLEW = (5.0, 1e-3)
START_SLEW = (0.5, 1e-2)
"""Time in which an error of the offset decays [s] and largest slope for it; the second before the
drift is known."""
LATE_NS = 15_000_000_000
"""Time after which a clock that is behind is followed: it stood still for good [ns]."""


class ClockMap:
    """Maps controller timestamps to host stamps, online.

    Stamps always increase and follow the controller's clock within 0.1 % (1 % in the first
    seconds), also across reconnections. After a restart of the controller's clock the map starts
    again after the last stamp.
    """

    def __init__(self) -> None:
        self.drift = 0.0  # how much faster the host's clock runs, relative
        self._last_stamp = 0
        self._last_time = math.nan
        self._started = False

    def restart(self) -> None:
        """Start again: the controller's clock was restarted."""
        self._started = False

    def lateness(self, at: float, arrival: int) -> float:
        """How much later than expected a packet arrived [s]; 0 before the first packet."""
        return (arrival - int(self._map(at))) * 1e-9 if self._started else 0.0

    def stamp(self, times: Array, arrival: int) -> NDArray[np.int64]:
        """Increasing stamps [n], ns since the epoch, of controller timestamps [n >= 1], s.

        `arrival` is the host time at which the batch was read [ns since the epoch].
        """
        back = times[1:] < times[:-1]
        if back.any():
            cut = int(back.nonzero()[0][-1]) + 1
            early = self.stamp(times[:cut], arrival)
            return np.concatenate([early, self.stamp(times[cut:], arrival)])
        newest = float(times[-1])
        if not self._started or self._has_restarted(float(times[0]), newest, arrival):
            self._started = True
            self._late_since: int | None = None
            self._origin = self._anchor = newest, arrival
            self._slope, self.drift = 0.0, 0.0
            self._level: float | None = None
            # (controller time, offset) of the smallest delay in the present window and before.
            self._lowest, self._window_start = (newest, math.inf), newest
            self._minima: deque[tuple[float, float]] = deque(maxlen=WINDOWS)
        self._observe(newest, arrival)
        stamps = self._map(times)
        if int(stamps[0]) <= self._last_stamp:
            stamps = np.maximum(stamps, self._last_stamp + 1 + np.arange(len(stamps)))
        self._last_time, self._last_stamp = newest, int(stamps[-1])
        if newest - self._anchor[0] >= STEER_SECONDS:
            self._steer(newest)
        return stamps

    def _map(self, times: Array | float) -> NDArray[np.int64]:
        start, stamp = self._anchor
        return stamp + np.rint((times - start) * (1.0 + self._slope) * 1e9).astype(np.int64)

    def _offset(self, at: float, stamp: int) -> float:
        """Host minus controller time, relative to the origin [s]."""
        return (stamp - self._origin[1]) * 1e-9 - (at - self._origin[0])

    def _has_restarted(self, oldest: float, newest: float, arrival: int) -> bool:
        """Whether the clock went back, is ahead of the host's, or stays behind it.

        A backlog of packets or a busy controller is late too, but not for long.
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
        """Keep the smallest delay of each window; fit drift, and offset at controller time 0."""
        offset = self._offset(newest, arrival)
        if offset < self._lowest[1]:
            self._lowest = (newest, offset)
        if newest - self._window_start < WINDOW:
            return
        self._minima.append(self._lowest)
        self._lowest, self._window_start = (newest, math.inf), newest
        if len(self._minima) < MIN_WINDOWS_FOR_DRIFT:
            return
        at, offsets = np.array(self._minima).T
        i, j = np.triu_indices(len(at), 1)
        slopes = (offsets[j] - offsets[i]) / (at[j] - at[i])
        self.drift = float(np.clip(np.median(slopes), -MAX_DRIFT, MAX_DRIFT))
        self._level = float(np.quantile(offsets - self.drift * at, LEVEL_QUANTILE))

    def _steer(self, newest: float) -> None:
        """Move the anchor to now, and set the slope so that the offset's error decays."""
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
