# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""PacketStream: data packages as telemetry without duplicates, with stamps, gaps and causes.

After a lost connection there are four hypotheses, and only clocks to distinguish them
where the dashboard server gives no serial number:

- the same controller ran on: its clock advanced like the host's;
- the same controller stood still (suspended, overloaded): its clock is behind, but not
  younger than the outage, and may catch up; `ClockMap` follows it where it does not;
- it restarted: its clock went back, or is behind and younger than the outage;
- another controller is at this address: its clock is ahead of what the first one's can
  be. Only this one is refused, as the samples of two arms must never be in one recording.

Within a connection a clock that goes back or is ahead of the host's is another clock of
the same controller. How long samples are missing before the change is measured by the
host's clock. Single packets with such times are damaged, and left out (`packet_order`).
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.errors import WrongRobotError
from ur_energy_model.telemetry.gaps import CLOCK_JUMPED, RESTARTED, Gap, GapRule
from ur_energy_model.telemetry.rtde.packet_order import (
    MAX_TIMESTAMP,
    is_possible,
    order_of_packets,
)
from ur_energy_model.telemetry.rtde.protocol import Recipe, Records
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry, changes
from ur_energy_model.typing import Array, Mask

AHEAD_OF_HOST = 0.5
"""How far a controller's clock may gain on the host's from packet to packet [s]."""
AHEAD_SECONDS = 5.0
AHEAD_SHARE = 0.01
"""How far a controller's clock may have gained on the host's by the end of an outage: seconds, and
a share of the outage."""
RESTART_ERROR = 0.5
"""Difference from the mapped clock that a delay of packets alone does not explain [s]."""


class PacketStream:
    """The packages of one controller, over all its connections.

    Attributes:
        duplicates: packets left out because the controller sent the same tick again.
        skipped: packets left out because their times are impossible, or belong to no
            clock.
        unreadable: packets that the owner has left out since the packages before, because
            they could not be read; set by the owner, for the cause of gaps.
        loss: why the connection was lost, until the next package arrives.
        same_serial: set by the owner where a serial number shows that the controller is
            the same.
    """

    def __init__(self, peer: str) -> None:
        self.clock = ClockMap()
        self.duplicates = self.skipped = self.unreadable = 0
        self.loss: str | None = None
        self.same_serial = False
        self._peer = peer
        self._last_time = math.nan
        self._last_arrival = 0
        self._leads = np.full(2, -np.inf)
        self._waiting: Records | None = None
        self._unusable_before = 0  # packages left out in the call before

    def telemetry(
        self, recipe: Recipe, records: Records, arrival: int, info: RecordingInfo
    ) -> list[Telemetry]:
        """Telemetry of the next packages, one batch for each clock.

        Args:
            recipe: of the packages.
            records: the packages [n >= 1].
            arrival: host time at which they were read [ns].
            info: of the recording; its rate defines which steps are gaps.

        Returns:
            Batches in order; a gap at index 0 with `away` begins another clock.

        Raises:
            WrongRobotError: after a lost connection, the clock belongs to another
                controller.
        """
        if self._waiting is not None:
            records = recipe.join([self._waiting, records])
            self._waiting = None
        columns = recipe.columns(records)
        times = columns["timestamp"]
        period = 1.0 / (info.rate or 1.0)
        rule = GapRule.of_period(period)
        # The gap of a package that was left out shows with the next one, perhaps in the
        # next call.
        unusable = self.unreadable + self._unusable_before
        self._unusable_before = self.unreadable
        self.unreadable = 0
        steps = changes(times, self._last_time)
        # In the usual case every package follows the one before without a gap.
        in_order = steps.min() > 0.0 and steps.max() < rule.limit
        if in_order and times[-1] < MAX_TIMESTAMP:
            return [self._batch(columns, (), arrival, info)]
        # The time away lies in front of all packages of the call, which arrived together.
        elapsed = (arrival - self._last_arrival) * 1e-9
        away = max(0.0, elapsed - (len(times) - 1) * period)
        ahead = self._is_ahead(times, arrival, away)
        order = order_of_packets(times, self._last_time, ahead, period)
        self.duplicates += order.duplicates
        self.skipped += order.skipped
        if order.waiting:
            self._waiting = records[order.waiting]
        unusable += order.skipped
        self._unusable_before += order.skipped
        batches = list[Telemetry]()
        for number, rows in enumerate(order.stretches):
            part = {name: values[rows] for name, values in columns.items()}
            times = part["timestamp"]
            jumps = number > 0 or order.first_jumps
            if not jumps:
                jumps = self._is_restarted(times, away, arrival)
            if jumps and not math.isnan(self._last_time):
                self._refuse_another_controller(times, away, arrival)
                front = self._begin_another_clock(float(times[0]), away, rule)
                gaps = [front, *_with_unusable(rule.find(times), unusable)]
            else:
                gaps = self._gaps_of_same_clock(times, rule, unusable)
            batches.append(self._batch(part, tuple(gaps), arrival, info))
            away = 0.0
        return batches

    def _gaps_of_same_clock(
        self, times: Array, rule: GapRule, unusable: int
    ) -> list[Gap]:
        """Gaps in and in front of packages [n], s, whose clock goes on.

        Args:
            times: of the packages.
            rule: of the recording.
            unusable: number of packets that came and could not be used.
        """
        found = rule.find_behind(self._last_time, times)
        gaps = _with_unusable(found, unusable)
        if gaps and gaps[0].index == 0 and self.loss is not None:
            gaps[0] = replace(gaps[0], cause=f"connection lost: {self.loss}")
        return gaps

    def note_loss(self, problem: str) -> None:
        """Note that the connection is lost; its suspect packets are left out."""
        self.loss = problem
        if self._waiting is not None:
            self.skipped += len(self._waiting)
            self._waiting = None

    def _batch(
        self,
        columns: dict[str, Array],
        gaps: tuple[Gap, ...],
        arrival: int,
        info: RecordingInfo,
    ) -> Telemetry:
        """Telemetry of packages that follow the last ones, which they are from now on."""
        times = columns["timestamp"]
        newest = float(times[-1])
        # Packets that waited while this program or the controller stood still arrive
        # late, and show nothing about the clock: what counts is the largest lead that it
        # ever had, less what its drift may have taken from it.
        leads = _leads(newest, arrival)
        if not any(gap.index == 0 and gap.away is not None for gap in gaps):
            drift = MAX_DRIFT * max(0.0, (arrival - self._last_arrival) * 1e-9)
            leads = np.maximum(leads, self._leads - drift)
        self._leads = leads
        self._last_time = newest
        self._last_arrival = arrival
        self.loss = None
        return Telemetry(times, columns, info, gaps, self.clock.stamp(times, arrival))

    def _gain(self, times: Array, arrival: int) -> Array:
        """By how much the controller's clock has gained on the host's at packages [n], s.

        The smaller one of two clocks counts: the monotonic one stands still while the
        host is suspended, the wall clock may be set.
        """
        return np.asarray((_leads(times, arrival).T - self._leads).min(axis=-1))

    def _is_ahead(self, times: Array, arrival: int, away: float) -> Mask:
        """Which packages [n] are from a time that the host's clock has not reached.

        Args:
            times: of the packages [n], s; some may be impossible.
            arrival: host time at which they were read [ns].
            away: time without packages by the host's clock [s].
        """
        limit = AHEAD_OF_HOST if self.loss is None else AHEAD_SECONDS + AHEAD_SHARE * away
        possible = np.where(is_possible(times), times, 0.0)
        return np.asarray(self._gain(possible, arrival) > limit)

    def _is_restarted(self, times: Array, away: float, arrival: int) -> bool:
        """Whether the clock after a lost connection belongs to a restarted controller.

        Args:
            times: of the packages [n], s.
            away: time without packages by the host's clock [s].
            arrival: host time at which they were read [ns].
        """
        first = float(times[0])
        if self.loss is None or first >= away:
            return False
        return self.clock.lateness(first, arrival) > RESTART_ERROR

    def _refuse_another_controller(self, times: Array, away: float, arrival: int) -> None:
        """Raise WrongRobotError where the clock of packages after a lost connection is ahead."""
        if self.loss is None or self.same_serial or times[0] < self._last_time:
            return
        if self._is_ahead(times[-1:], arrival, away)[0]:
            problem = (
                "is another controller: its clock is ahead of that of the one before"
            )
            remedy = "connect the robot that the recording began with, or start another"
            raise WrongRobotError(self._peer, problem, remedy)

    def _begin_another_clock(self, first: float, away: float, rule: GapRule) -> Gap:
        """The gap in front of the first package of another clock.

        Args:
            first: time of the package [s].
            away: time without packages by the host's clock [s].
            rule: of the recording.
        """
        self.clock.restart()
        step = first - self._last_time
        is_restarted = step < 0.0 or first < away
        cause = RESTARTED if is_restarted else f"{CLOCK_JUMPED} by {step:.0f} s"
        if self.loss is not None:
            cause = f"{cause}: {self.loss}"
        return Gap(0, self._last_time, first, rule.missing(away), cause, away)


UNUSABLE = "packets that could not be used"
"""Cause of a gap of as many packets as came and could not be read."""


def _with_unusable(gaps: Iterable[Gap], unusable: int) -> list[Gap]:
    """The gaps, with the cause UNUSABLE for gaps that unusable packets explain.

    Args:
        gaps: found by the clock.
        unusable: number of packets that came and could not be used.
    """
    explained: list[Gap] = []
    for gap in gaps:
        is_explained = 0 < gap.missing <= unusable
        explained.append(replace(gap, cause=UNUSABLE) if is_explained else gap)
    return explained


def _leads(times: Array | float, arrival: int) -> Array:
    """Times minus the host's monotonic and wall clock times: [2] or [2, n], s."""
    return np.array([np.asarray(times) - arrival * 1e-9, np.asarray(times) - time.time()])


WINDOW = 1.0
WINDOWS = 120
"""The smallest delay of each window counts: length of a window [s], number of windows."""
MIN_WINDOWS_FOR_DRIFT = 10  # windows from which the drift is known
MAX_DRIFT = 500e-6  # largest drift between two clocks, relative
LEVEL_QUANTILE = 0.25  # of the smallest delays, which counts as the usual one
STEER_SECONDS = 0.1  # time between two corrections of the map [s]
SLEW = (5.0, 1e-3)
START_SLEW = (0.5, 1e-2)
"""Time in which an error of the offset decays [s] and largest slope for it; the second before the
drift is known."""
LATE_NS = 15_000_000_000
"""Time after which a clock that is behind is followed: it stood still for good [ns]."""


class ClockMap:
    """Maps controller timestamps to host stamps, online.

    Stamps always increase and follow the controller's clock within 0.1 % (1 % in the
    first seconds), also across reconnections. After a restart of the controller's clock
    the map starts again after the last stamp.
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
            self._late_since: int | None = None
            self._origin = self._anchor = newest, arrival
            self._slope = 0.0
            self.drift = 0.0
            self._level: float | None = None
            # (controller time, offset) of the smallest delay in the present window and
            # before.
            self._lowest = (newest, math.inf)
            self._window_start = newest
            self._minima: deque[tuple[float, float]] = deque(maxlen=WINDOWS)
        self._observe(newest, arrival)
        stamps = self._map(times)
        if int(stamps[0]) <= self._last_stamp:
            stamps = np.maximum(stamps, self._last_stamp + 1 + np.arange(len(stamps)))
        self._last_time = newest
        self._last_stamp = int(stamps[-1])
        if newest - self._anchor[0] >= STEER_SECONDS:
            self._steer(newest)
        return stamps

    def _map(self, times: Array | float) -> NDArray[np.int64]:
        """Host time [ns] of controller times [s] by the anchor and the slope."""
        start, stamp = self._anchor
        passed = (times - start) * (1.0 + self._slope)
        return stamp + np.rint(passed * 1e9).astype(np.int64)

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
        self._lowest = (newest, math.inf)
        self._window_start = newest
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
