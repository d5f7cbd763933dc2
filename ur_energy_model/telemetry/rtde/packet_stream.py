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
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from ur_energy_model.errors import WrongRobotError
from ur_energy_model.telemetry.gaps import CLOCK_JUMPED, RESTARTED, Gap, GapRule
from ur_energy_model.telemetry.rtde.clock_map import MAX_DRIFT, RESTART_ERROR, ClockMap
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
UNUSABLE = "packets that could not be used"
"""Cause of a gap of as many packets as came and could not be read."""


class PacketStream:
    """The packages of one controller, over all its connections.

    Args:
        peer: address of the controller, for errors.

    Attributes:
        clock: clock of the controller, as host stamps.
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
        self.duplicates = 0
        self.skipped = 0
        self.unreadable = 0
        self.loss: str | None = None
        self.same_serial = False
        self._peer = peer
        self._last_time = math.nan  # controller time of the last package [s]
        self._last_arrival = 0  # host time at which it was read [ns]
        self._leads = np.full(2, -np.inf)  # largest ones so far, see `_leads`
        self._waiting: Records | None = None  # suspect packages
        self._unusable_before = 0  # packages left out in the call before

    def telemetry(
        self, recipe: Recipe, records: Records, arrival: int, info: RecordingInfo
    ) -> list[Telemetry]:
        """Telemetry of the next packages, one batch for each clock.

        Args:
            recipe: recipe of the packages.
            records: the packages [n >= 1].
            arrival: host time at which they were read [ns].
            info: provenance of the recording; its rate defines which steps are gaps.

        Returns:
            Batches in order; a gap at index 0 with `away` begins another clock.

        Raises:
            WrongRobotError: the clock belongs to another controller, after a lost
                connection.
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
            if jumps or self._is_restarted(times, away, arrival):
                gaps = self._gaps_of_another_clock(times, rule, unusable, away, arrival)
            else:
                gaps = self._gaps_of_same_clock(times, rule, unusable)
            batches.append(self._batch(part, tuple(gaps), arrival, info))
            away = 0.0
        return batches

    def _gaps_of_another_clock(
        self, times: Array, rule: GapRule, unusable: int, away: float, arrival: int
    ) -> list[Gap]:
        """Gaps in and in front of packages with which another clock begins.

        Args:
            times: controller times of the packages [n], s.
            rule: rule of the recording by which steps of the time are gaps.
            unusable: number of packets that came and could not be used.
            away: time without packages by the host's clock [s].
            arrival: host time at which the packages were read [ns].

        Raises:
            WrongRobotError: the clock belongs to another controller.
        """
        if math.isnan(self._last_time):  # the very first packages
            return self._gaps_of_same_clock(times, rule, unusable)
        self._refuse_another_controller(times, away, arrival)
        front = self._begin_another_clock(float(times[0]), away, rule)
        return [front, *_with_unusable(rule.find(times), unusable)]

    def _gaps_of_same_clock(
        self, times: Array, rule: GapRule, unusable: int
    ) -> list[Gap]:
        """Gaps in and in front of packages whose clock goes on.

        Args:
            times: controller times of the packages [n], s.
            rule: rule of the recording by which steps of the time are gaps.
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
        """Telemetry of packages, which are the last ones from now on.

        Args:
            columns: values of the packages by field.
            gaps: gaps in and in front of the packages.
            arrival: host time at which they were read [ns].
            info: provenance of the recording.
        """
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

        The smaller gain on two host clocks counts: the monotonic clock stands still while
        the host is suspended, the wall clock may be set.
        """
        gains = _leads(times, arrival).T - self._leads  # [n, 2]
        return np.asarray(gains.min(axis=-1))

    def _is_ahead(self, times: Array, arrival: int, away: float) -> Mask:
        """Which packages [n] are from a time that the host's clock has not reached.

        Args:
            times: controller times of the packages [n], s; some may be impossible.
            arrival: host time at which they were read [ns].
            away: time without packages by the host's clock [s].
        """
        limit = AHEAD_OF_HOST if self.loss is None else AHEAD_SECONDS + AHEAD_SHARE * away
        possible = np.where(is_possible(times), times, 0.0)
        return np.asarray(self._gain(possible, arrival) > limit)

    def _is_restarted(self, times: Array, away: float, arrival: int) -> bool:
        """Whether the clock after a lost connection belongs to a restarted controller.

        Args:
            times: controller times of the packages [n], s.
            away: time without packages by the host's clock [s].
            arrival: host time at which they were read [ns].
        """
        first = float(times[0])
        if self.loss is None or first >= away:
            return False
        return self.clock.lateness(first, arrival) > RESTART_ERROR

    def _refuse_another_controller(self, times: Array, away: float, arrival: int) -> None:
        """Refuse packages after a lost connection whose clock is ahead of the one before.

        Args:
            times: controller times of the packages [n], s.
            away: time without packages by the host's clock [s].
            arrival: host time at which the packages were read [ns].

        Raises:
            WrongRobotError: it is ahead, and no serial number shows that the controller is
                the same.
        """
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
            rule: rule of the recording by which steps of the time are gaps.
        """
        self.clock.restart()
        step = first - self._last_time
        is_restarted = step < 0.0 or first < away
        cause = RESTARTED if is_restarted else f"{CLOCK_JUMPED} by {step:.0f} s"
        if self.loss is not None:
            cause = f"{cause}: {self.loss}"
        return Gap(0, self._last_time, first, rule.missing(away), cause, away)


def _with_unusable(gaps: Iterable[Gap], unusable: int) -> list[Gap]:
    """The gaps, with the cause UNUSABLE for gaps that unusable packets explain.

    Args:
        gaps: gaps that were found by the clock.
        unusable: number of packets that came and could not be used.
    """
    explained: list[Gap] = []
    for gap in gaps:
        is_explained = 0 < gap.missing <= unusable
        explained.append(replace(gap, cause=UNUSABLE) if is_explained else gap)
    return explained


def _leads(times: Array | float, arrival: int) -> Array:
    """Controller times minus the host's monotonic and wall clock times: [2] or [2, n], s."""
    at = np.asarray(times)
    return np.array([at - arrival * 1e-9, at - time.time()])
