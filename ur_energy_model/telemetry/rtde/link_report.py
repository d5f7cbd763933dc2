# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""LinkReport: what a live source reports about its connection, as a status and as events."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from dataclasses import replace

from ur_energy_model.telemetry.clock import HOST_CLOCK
from ur_energy_model.telemetry.gaps import Gap
from ur_energy_model.telemetry.rtde.connection import MAX_MESSAGES
from ur_energy_model.telemetry.samples import INFORMATION, WARNING, Event
from ur_energy_model.telemetry.source import LinkStatus

OUTAGE_SECONDS = 0.5
OUTAGE_PERIODS = 5.0
"""Shortest time without samples that is reported as an outage: in seconds, and sample periods."""
MAX_EVENTS = MAX_MESSAGES  # most events that are kept, of which most are messages
NOT_CONNECTED = "no connection to the controller yet"
STALLED = "the controller is connected, but sends no new samples"
UNUSABLE = "the controller is connected, but sends nothing that can be used"
WAITING = "connected, but sends no samples yet"


class LinkReport:
    """Status and events of one source, over all its connections."""

    def __init__(self) -> None:
        self._status = LinkStatus(connected=False, problem=NOT_CONNECTED)
        self._events: list[Event] = []
        self._problems = set[str]()  # problems that were events since samples came last
        # Why packets were left out last, and which kinds of reasons were events.
        self._skip_reason: str | None = None
        self._skip_kinds = set[str]()
        self._is_returning = False  # connected again, and no samples came yet
        # When samples came last, and until when certainly none have come since [s]. After
        # this process was stopped for a while, samples wait in its socket: these are
        # neither late nor lost.
        self._last_samples: float | None = None
        self._silent_until = 0.0

    def status(self, period: float, *, is_away: bool) -> LinkStatus:
        """State of the connection, now.

        Args:
            period: period of the samples [s].
            is_away: whether samples cannot come, because the connection is lost.

        Returns:
            The status, without the number of packets and whether there is a connection.
        """
        # Before the status is read: an outage that is over has its losses in the status.
        outage = self._outage(period, is_away=is_away)
        status = self._status
        problem = status.problem
        if problem is None and outage > 0.0:
            problem = STALLED
            if self._skip_reason is not None:
                problem = f"{UNUSABLE}: {self._skip_reason}"
        return replace(status, problem=problem, outage=outage)

    def _outage(self, period: float, *, is_away: bool) -> float:
        """Time for which certainly no samples have come [s]; 0 while samples come."""
        if self._last_samples is None:
            return 0.0
        until = time.monotonic() if is_away else self._silent_until
        silence = until - self._last_samples
        shortest = max(OUTAGE_SECONDS, OUTAGE_PERIODS * period)
        return silence if silence >= shortest else 0.0

    def take_events(self) -> list[Event]:
        """The events since the last call."""
        events = self._events
        self._events = []
        return events

    def add_event(self, kind: str, text: str, level: int = INFORMATION) -> None:
        """Keep an event, unless too many are waiting already.

        Args:
            kind: kind of the event, such as "connection" or "gap".
            text: text for the reader of a bag.
            level: INFORMATION, WARNING or ERROR.
        """
        if len(self._events) < MAX_EVENTS:
            self._events.append(Event(HOST_CLOCK.now(), kind, text, level))

    def note_connection(self, identity: str, *, again: bool) -> None:
        """Note a new connection, whose samples are still to come.

        Args:
            identity: identity of the controller, for people.
            again: whether it is not the first connection.
        """
        self._is_returning = again
        self._status = replace(
            self._status,
            reconnects=self._status.reconnects + again,
            problem=WAITING,
            identity=identity,
        )

    def note_failure(self, problem: str, level: int) -> None:
        """Note that the connection was lost or refused.

        Each problem is one event until samples arrive.

        Args:
            problem: reason of the loss or refusal, in words.
            level: level of the event.
        """
        if problem not in self._problems:
            self._problems.add(problem)
            self.add_event("connection", problem, level)
        self._status = replace(self._status, problem=problem, last_error=problem)

    def note_skipped(self, reason: str) -> None:
        """Note why packets are left out; reasons that differ in numbers only are one event."""
        self._skip_reason = reason
        kind = re.sub(r"\d+", "", reason)
        if kind not in self._skip_kinds and len(self._skip_kinds) < MAX_EVENTS:
            self._skip_kinds.add(kind)
            text = f"{reason}; such packets are left out"
            self.add_event("connection", text, WARNING)

    def note_silence(self, until: float) -> None:
        """Note that certainly no samples have come until this time by the monotonic clock [s]."""
        self._silent_until = until

    def note_samples(self, gaps: Iterable[Gap], doubt: str | None = None) -> None:
        """Note that samples arrived: the present outage is over, and its gaps are the loss.

        Args:
            gaps: gaps in and in front of the samples.
            doubt: why the samples may come from another arm than before; None if they do
                not.
        """
        gaps = tuple(gaps)
        # Assigned at the end, at once: whoever sees in the status that the outage is over
        # sees its losses, too.
        status = replace(self._status, losses=self._status.losses.after(gaps))
        for gap in gaps:
            text = f"{gap.missing} samples missing ({gap.cause})"
            self.add_event("gap", text, WARNING)
        if self._is_returning:
            self.add_event("connection", "connected again")
            self._is_returning = False
        if doubt is not None:
            status = replace(status, identity=doubt)
            text = f"whether this is still the same arm is {doubt}"
            self.add_event("connection", text, WARNING)
        if status.problem is not None:
            status = replace(status, problem=None)
            self._problems.clear()
        self._status = status
        self._last_samples = time.monotonic()
        self._skip_reason = None
