"""ConnectionLines: what happens to the connection of a source, as lines for the operator."""

from __future__ import annotations

import time
from collections.abc import Callable

from ur_energy_model.nodes.terminal.line import Level, Line, RateLimit, count, without_numbers
from ur_energy_model.telemetry.samples import RecordingInfo
from ur_energy_model.telemetry.source import LinkStatus
from ur_energy_model.terminal_text import span

PATIENCE = 1.0
"""Time for which a connection may take to be made before it is reported [s]."""
UNKNOWN = "no answer yet"


class ConnectionLines:
    """Lines about waiting for a controller, its connection, losses and its return.

    `update` may be called as often as the caller likes. Interruptions and losses that fall between
    two lines are added up in the next one.

    Args:
        address: of the controller, for the texts.
        clock: time [s].
    """

    def __init__(self, address: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._address, self._clock = address, clock
        self._limit = RateLimit(clock)
        self._began = clock()
        self._seen = LinkStatus()
        self._connected_before = False
        self._away_since: float | None = None
        self._told_reason: str | None = None
        self._forget_losses()

    def begin(self) -> list[Line]:
        """The line at the start."""
        self._began = self._clock()
        return [self._limit.line("begin", Level.INFO, f"connecting to {self._address}")]

    def update(self, link: LinkStatus, info: RecordingInfo | None) -> list[Line]:
        """Lines due now.

        Args:
            link: state of the connection.
            info: robot and recording, None while they are unknown.
        """
        here = link.connected and link.problem is None
        self._count(link, here=here)
        line: Line | None
        if not here:
            line = self._without(link.problem or link.last_error or UNKNOWN)
        elif not self._connected_before:
            self._connected_before, self._told_reason = True, None
            self._forget_losses()
            text = f"connected to {self._address}{'' if info is None else identity(info)}"
            line = self._limit.line("connected", Level.INFO, text)
        else:
            self._told_reason = None
            line = self._losses()
        return [] if line is None else [line]

    def end(self, link: LinkStatus | None = None) -> list[Line]:
        """The line at the end: what no line has told yet.

        Args:
            link: last state, of a connection that the program itself has closed; None if unknown.
        """
        if link is not None:
            self._count(link, here=self._away_since is None)
        line = self._losses(at_once=True)
        return [] if line is None else [line]

    def _count(self, link: LinkStatus, *, here: bool) -> None:
        """Add up interruptions and losses."""
        now, before = self._clock(), self._seen
        self._seen = link
        if link.reconnects < before.reconnects or link.lost == 0 < before.lost:
            before = LinkStatus()  # another source, which counts from zero
        returned = 0
        if here and self._away_since is not None:
            returned, self._away_since = 1, None
        elif not here and self._away_since is None:
            self._away_since = now
        self._interruptions += max(returned, link.reconnects - before.reconnects)
        self._lost += link.lost - before.lost  # negative where an estimate was too large
        self._lost_seconds += link.lost_seconds - before.lost_seconds

    def _forget_losses(self) -> None:
        self._interruptions, self._lost, self._lost_seconds = 0, 0, 0.0

    def _without(self, reason: str) -> Line | None:
        """The line while no samples come: with a new reason, and again from time to time."""
        now = self._clock()
        reason = reason.removeprefix(f"{self._address}: ")
        since = self._began if not self._connected_before else self._away_since or now
        kind = "lost" if self._connected_before else "waiting"
        patient = kind == "waiting" and now - since < PATIENCE
        subject = without_numbers(reason)
        if patient or not self._limit.ready(kind, again=subject == self._told_reason):
            return None
        first, self._told_reason = self._told_reason is None, subject
        if kind == "waiting":
            text = f"waiting for {self._address}: {reason}"
        else:
            text = f"no samples from {self._address}: {reason}"
        if not first:
            text += f" (for {span(now - since)} now)"
        return self._limit.line(kind, Level.WARN, text)

    def _losses(self, *, at_once: bool = False) -> Line | None:
        """The line after interruptions, or after losses without one."""
        if not self._interruptions and self._lost <= 0:
            return None
        kind = "back" if self._interruptions else "missing"
        if not at_once and not self._limit.ready(kind):
            return None
        lost = f"{count(max(self._lost, 0), 'sample')} lost"
        if self._lost_seconds > 0:
            lost += f" in {span(self._lost_seconds)}"
        if self._away_since is not None:
            text = f"still no samples from {self._address} at the end: {lost}"
        elif self._interruptions:
            text = f"samples of {self._address} come again: {lost}"
            if self._interruptions > 1:
                text += f", {self._interruptions} interruptions"
        else:
            text = f"{lost} of {self._address}, while connected"
        self._forget_losses()
        return self._limit.line(kind, Level.WARN, text)


def identity(info: RecordingInfo) -> str:
    """What is known of the controller, such as ": ur5e, serial 20195599999, software 5.11.1.0"."""
    if info.controller_version is None:  # not a controller
        return ""
    parts = [
        info.robot or "robot model unknown (set robot_model)",
        "serial number unknown" if info.serial is None else f"serial {info.serial}",
        f"software {info.controller_version}",
        None if info.rate is None else f"{info.rate:g} Hz",
        "simulated" if info.simulated else None,
    ]
    return ": " + ", ".join(part for part in parts if part is not None)
