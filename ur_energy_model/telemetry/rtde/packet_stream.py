"""PacketStream: data packages as telemetry without duplicates, with stamps, gaps and causes.

After a lost connection there are four hypotheses, and only clocks to tell them apart where the
dashboard server gives no serial number:

- the same controller ran on: its clock advanced like the host's;
- the same controller stood still (suspended, overloaded): its clock is behind, but not younger
  than the outage, and may catch up;
- it restarted: its clock went back, or is behind and younger than the outage;
- another controller is at this address: its clock is ahead of what the first one's can be. Only
  this one is refused, as the samples of two arms must never be in one recording.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.errors import ProtocolError, WrongRobotError
from ur_energy_model.telemetry.clock import RESTART_ERROR, ClockMap
from ur_energy_model.telemetry.rtde.protocol import Recipe
from ur_energy_model.telemetry.samples import Gap, RecordingInfo, Telemetry, find_gaps
from ur_energy_model.typing import Array, Mask

MAX_TIMESTAMP = 1e9
AHEAD_SECONDS = 5.0
"""How far a controller's clock may have gained on the host's by the end of an outage [s]."""
AHEAD_SHARE = 0.01
"""The same, as a share of the outage."""
MOVED = 0.1
"""Difference of a joint angle that a restart of the controller does not explain [rad]."""


class PacketStream:
    """The packages of one controller, over all its connections.

    Args:
        peer: address, for error messages.

    Attributes:
        clock: maps controller time to host time.
        duplicates: packages left out because the controller sent the same tick again.
        loss: why the connection was lost, until the next package arrives.
        restarted: whether the controller's clock started again with the last packages, so that
            it does not tell whether the controller is the same.
        moved: whether a joint stands elsewhere than before that restart.
        same_serial: set by the owner where a serial number shows that the controller is the same,
            so that its clock need not tell.
        fault: why packages after the last ones returned were refused; None if none were.
    """

    def __init__(self, peer: str) -> None:
        self.clock = ClockMap()
        self.duplicates = 0
        self.loss: str | None = None
        self._peer = peer
        self.restarted = self.moved = self.same_serial = False
        self.fault: ProtocolError | None = None
        self._last_time, self._last_arrival = math.nan, 0
        self._leads = (-math.inf, -math.inf)
        self._last_q: Array | None = None

    def telemetry(
        self, recipe: Recipe, records: NDArray[np.void], arrival: int, info: RecordingInfo
    ) -> Telemetry | None:
        """Telemetry of the next packages; None if all of them are duplicates.

        Args:
            recipe: of the packages.
            records: [n >= 1].
            arrival: host time at which they were read [ns since the epoch].
            info: provenance; its rate defines what a gap is.

        Packages before one with an impossible timestamp are returned; `fault` has the rest.

        Raises:
            ProtocolError: the first timestamp is impossible.
            WrongRobotError: after a lost connection, the clock is that of another controller.
        """
        self.fault, self.restarted = None, False
        columns = recipe.columns(records)
        times = columns["timestamp"]
        gaps: tuple[Gap, ...] = ()
        period = 1.0 / (info.rate or 1.0)
        if not self._in_step(times, 1.5 * period):
            possible = _possible(times)
            if not possible.all():
                count = int(np.argmin(possible))
                self.check_times(times[: max(count, 1)])
                self.fault = self._impossible()
                columns = {name: values[:count] for name, values in columns.items()}
                times = columns["timestamp"]
            new = np.diff(times, prepend=self._last_time) != 0
            if not new.all():
                self.duplicates += int(np.sum(~new))
                columns = {name: values[new] for name, values in columns.items()}
                times = columns["timestamp"]
                if len(times) == 0:
                    return None
            gaps = self._gaps(times, arrival, period)
        q = columns.get("actual_q")
        if q is not None:
            if self.restarted and self._last_q is not None:
                self.moved = bool((np.abs(q[0] - self._last_q) > MOVED).any())
            self._last_q = q[-1]
        newest = float(times[-1])
        self._note_lead(newest, arrival, again=self.restarted or newest < self._last_time)
        self._last_time, self._last_arrival, self.loss = newest, arrival, None
        return Telemetry(times, columns, info, gaps, self.clock.stamp(times, arrival))

    def check_times(self, times: Array) -> None:
        """Refuse impossible timestamps [packets], s.

        Raises:
            ProtocolError: not finite, negative, or decades after the controller's start.
        """
        if not _possible(times).all():
            raise self._impossible()

    def _impossible(self) -> ProtocolError:
        return ProtocolError(self._peer, "sent an impossible timestamp", "restart the controller")

    def _in_step(self, times: Array, longest: float) -> bool:
        """Whether every package follows the previous one without gap: the usual, fast case."""
        if not 0.0 < float(times[0]) - self._last_time < longest:
            return False
        if len(times) > 1:
            steps = times[1:] - times[:-1]
            if not (steps.min() > 0.0 and steps.max() < longest):
                return False
        return float(times[-1]) < MAX_TIMESTAMP

    def _gaps(self, times: Array, arrival: int, period: float) -> tuple[Gap, ...]:
        """Gaps in front of and between packages."""
        if math.isnan(self._last_time):
            return find_gaps(times, period)
        found = find_gaps(np.concatenate([[self._last_time], times]), period)
        gaps = [replace(gap, index=gap.index - 1) for gap in found]
        if gaps and gaps[0].index == 0:
            # Before the first of the packages, which arrived earlier than the last one.
            away = (arrival - self._last_arrival) * 1e-9 - float(times[-1] - times[0])
            gaps[0] = self._explain(gaps[0], max(away, 0.0), period, arrival)
            if self.loss is not None and not self.restarted and not self.same_serial:
                self._check_ahead(float(times[-1]), max(away, 0.0), arrival)
        return tuple(gaps)

    def _explain(self, gap: Gap, away: float, period: float, arrival: int) -> Gap:
        """A gap in front of packages, with its cause.

        Args:
            gap: found from the controller's clock.
            away: time without packages by the host's clock [s].
            period: of the samples [s].
            arrival: host time of the packages [ns since the epoch].
        """
        loss = self.loss
        went_back = gap.end < gap.start
        if loss is None and not went_back:
            return gap
        behind = self.clock.lateness(gap.end, arrival) > RESTART_ERROR
        if went_back or (behind and gap.end < away):
            self.clock.restart()
            self.restarted = True
            cause = "controller restarted" if loss is None else f"controller restarted: {loss}"
            return replace(gap, missing=max(0, round(away / period) - 1), cause=cause, away=away)
        return replace(gap, cause=f"connection lost: {loss}")

    def _check_ahead(self, newest: float, away: float, arrival: int) -> None:
        """Refuse a clock that has gained on the host's more than one controller's can.

        Packets that waited while this program or the controller stood still arrive late, and say
        nothing about the clock: what counts is the largest lead it ever had.

        Args:
            newest: timestamp of the last package [s].
            away: time without packages by the host's clock [s].
            arrival: host time of the packages [ns since the epoch].

        Raises:
            WrongRobotError: it is the clock of another controller.
        """
        now, before = _leads(newest, arrival), self._leads
        gained = min(now[0] - before[0], now[1] - before[1])
        if gained > AHEAD_SECONDS + AHEAD_SHARE * away:
            raise WrongRobotError(
                self._peer,
                "is another controller: its clock is ahead of that of the one before",
                "connect the robot that the recording began with, or start another",
            )

    def _note_lead(self, newest: float, arrival: int, *, again: bool) -> None:
        """Keep the largest lead of the controller's clock; again means that the clock is new."""
        leads = _leads(newest, arrival)
        first, second = leads if again else self._leads
        self._leads = max(leads[0], first), max(leads[1], second)


def _leads(newest: float, arrival: int) -> tuple[float, float]:
    """By how much a controller's clock is ahead of the host's monotonic and wall clock [s].

    The first stands still while the host is suspended, the second may be set.
    """
    return newest - arrival * 1e-9, newest - time.time()


def _possible(times: Array) -> Mask:
    """Whether timestamps [packets], s, are finite and within decades of a controller's start."""
    return np.asarray((times >= 0.0) & (times < MAX_TIMESTAMP))
