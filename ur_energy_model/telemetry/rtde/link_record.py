"""LinkRecord: what happened to a live source's connection, and what was lost with it."""

from __future__ import annotations

import time

from ur_energy_model.telemetry.event import INFORMATION, WARNING, Event
from ur_energy_model.telemetry.host_clock import HostClock
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.telemetry.source import LinkStatus

OUTAGE_SECONDS = 0.5
"""Time without samples from which on an outage is reported [s]."""
OUTAGE_PERIODS = 5.0
"""Least number of sample periods of a reported outage."""
MAX_EVENTS = 200
NOT_CONNECTED = "no connection to the controller yet"
STALLED = "the controller is connected, but sends no new samples"
WAITING = "connected, but sends no samples yet"


class LinkRecord:
    """Events, problems and losses of one source, over all its connections.

    Args:
        clock: of the events.

    Attributes:
        reconnects: connections after the first one.
        last_error: why the connection was last lost or refused.
        identity: how the controller is told from another one.
    """

    def __init__(self, clock: HostClock) -> None:
        self.reconnects = 0
        self.last_error: str | None = None
        self.identity: str | None = None
        self._clock = clock
        self._events: list[Event] = []
        self._problem: str | None = NOT_CONNECTED
        self._said: set[str] = set()
        self._returning = False
        self._lost, self._lost_seconds = 0, 0.0
        self._last_samples: float | None = None
        self._closed: float | None = None

    def report(self, kind: str, text: str, level: int = INFORMATION) -> None:
        """Keep an event, unless too many are waiting already."""
        if len(self._events) < MAX_EVENTS:
            self._events.append(Event(self._clock.now(), kind, text, level))

    def take_events(self) -> list[Event]:
        """Events since the last call."""
        events, self._events = self._events, []
        return events

    def fail(self, problem: str, level: int) -> None:
        """The connection was lost or refused; each reason is one event until samples arrive."""
        if problem not in self._said:
            self._said.add(problem)
            self.report("connection", problem, level)
        self._problem = self.last_error = problem

    def connected(self, *, again: bool) -> None:
        """A connection was made, for the first time or again; no samples have come yet."""
        self.reconnects += again
        self._returning = again
        self._problem = WAITING

    def samples(self, batch: Telemetry) -> None:
        """Samples arrived: the present outage is over, and the gaps tell what it cost."""
        for gap in batch.gaps:
            self._lost += gap.missing
            self._lost_seconds += gap.seconds
            self.report("gap", f"{gap.missing} samples missing ({gap.cause})", WARNING)
        if self._returning:
            self.report("connection", "connected again")
            self._returning = False
        self._last_samples = time.monotonic()
        self._problem = None
        self._said.clear()

    def unsure(self, *, moved: bool) -> None:
        """The controller restarted, and it is unknown whether it is the same one.

        Args:
            moved: whether a joint stands elsewhere than before.
        """
        hint = ", and a joint stands elsewhere than before" if moved else ""
        self.identity = f"not known: the controller restarted and has no serial number{hint}"
        text = f"whether this is still the same arm is {self.identity}"
        self.report("connection", text, WARNING)

    def close(self) -> None:
        """The source was closed: an outage lasts no longer."""
        if self._closed is None:
            self._closed = time.monotonic()

    def status(self, *, connected: bool, duplicates: int, rate: float | None) -> LinkStatus:
        """State of the connection, now.

        Args:
            connected: as in LinkStatus.
            duplicates: as in LinkStatus.
            rate: of the samples [Hz], to estimate what an outage costs; None if unknown.
        """
        last, problem = self._last_samples, self._problem
        now = time.monotonic() if self._closed is None else self._closed
        outage = 0.0 if last is None else now - last
        if outage < max(OUTAGE_SECONDS, OUTAGE_PERIODS / (rate or 1000.0)):
            outage = 0.0
        elif problem is None:
            problem = STALLED
        return LinkStatus(
            connected=connected,
            reconnects=self.reconnects,
            duplicates=duplicates,
            last_error=self.last_error,
            problem=problem,
            lost=self._lost + round(outage * (rate or 0.0)),
            lost_seconds=self._lost_seconds + outage,
            outage=outage,
            identity=self.identity,
        )
