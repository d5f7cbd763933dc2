"""Lines for the operator: connection, recording, clock and problems that come and go.

Each kind of line is written at most every PERIOD; what falls between two is added up.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from ur_energy_model.errors import span
from ur_energy_model.telemetry.clock import HOST_CLOCK, HostClock
from ur_energy_model.telemetry.recording.writing_thread import RecorderStatus
from ur_energy_model.telemetry.samples import RecordingInfo
from ur_energy_model.telemetry.source import LinkStatus

PERIOD = 10.0
"""Shortest time between two lines of one kind [s]."""
REMINDER = 60.0
"""Period in which a state that lasts is written again [s]."""
PATIENCE = 1.0
"""Time for which a connection may take to be made before it is reported [s]."""
_NUMBERS = re.compile(r"\d+(\.\d+)?")


class Level(Enum):
    """Severity of a line."""

    INFO = "info"
    WARN = "warn"
    ERROR = "error"


INFO, WARN, ERROR = Level
Log: TypeAlias = Callable[[Level, str], object]
"""Writes a line without a line break."""


def without_numbers(text: str) -> str:
    """What a line is about: "sent nothing for 3.2 s" is no new reason after 2.8 s."""
    return _NUMBERS.sub("", text)


def count(number: int, thing: str) -> str:
    """A number with a noun, such as "1 sample" or "2,000 samples"."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


@dataclass
class _Problem:
    """One that was reported: its last line, since when it is there, and how long it was before."""

    last: str | None = None
    since: float | None = None
    lasted: float = 0.0
    times: int = 0


class OperatorLines:
    """Writes the lines of a node, each kind of them seldom enough.

    Args:
        log: writes a line at once.
        clock: time [s].
        host_clock: whose steps are reported.
    """

    def __init__(
        self,
        log: Log,
        clock: Callable[[], float] = time.monotonic,
        host_clock: HostClock = HOST_CLOCK,
    ) -> None:
        self.log, self.clock, self._host_clock = log, clock, host_clock
        self._steps = host_clock.check()
        self._written: dict[str, float] = {}
        self._left_out: Counter[str] = Counter()
        self._problems: dict[str, _Problem] = {}

    def write(
        self, kind: str, level: Level, text: str, *, again: bool = False, at_once: bool = False
    ) -> bool:
        """Write a line unless one of its kind was written a moment ago; returns whether it was.

        A line that only repeats the last one (`again`) is due after REMINDER.
        """
        now, period = self.clock(), REMINDER if again else PERIOD
        if not at_once and now - self._written.get(kind, -float("inf")) < period:
            return False
        self._written[kind] = now
        self.log(level, text)
        return True

    def event(self, kind: str, level: Level, text: str) -> None:
        """Write a line about an event that may come often; those left out are counted."""
        if left_out := self._left_out[kind]:
            text += f" (and {count(left_out, 'more time')} since the last line)"
        self._left_out[kind] = 0 if self.write(kind, level, text) else left_out + 1

    def problem(self, kind: str, problem: str | None, over: str, level: Level = ERROR) -> None:
        """Write when a problem begins or changes, from time to time, and when it is over.

        The problem is None while there is none; `over` is such as "counters are saved again".
        """
        known, now = self._problems.setdefault(kind, _Problem()), self.clock()
        if problem is not None:
            known.since = now if known.since is None else known.since
            if self.write(kind, level, problem, again=problem == known.last):
                known.last = problem
            return
        if known.since is not None:
            known.lasted, known.times = known.lasted + now - known.since, known.times + 1
            known.since = None
        if known.times:
            times = f" in {count(known.times, 'interruption')}" if known.times > 1 else ""
            if self.write(f"{kind} over", INFO, f"{over}, after {span(known.lasted)}{times}"):
                del self._problems[kind]

    def clock_steps(self) -> None:
        """Write about a step of the system's clock since the last call."""
        if self._host_clock.check() != self._steps:
            self._steps = self._host_clock.steps
            self.event("clock", WARN, self._host_clock.describe_step())


class ConnectionLines:
    """Lines about waiting for a controller, its connection, losses and its return.

    `update` may be called as often as the caller likes. Interruptions and losses that fall between
    two lines are added up in the next one.

    Args:
        lines: of the node.
        address: of the controller, for the texts.
    """

    def __init__(self, lines: OperatorLines, address: str) -> None:
        self._lines, self._address, self._began = lines, address, lines.clock()
        self._seen = LinkStatus()
        self._connected_before = False
        self._away_since: float | None = None
        self._reason: str | None = None
        self._interruptions, self._lost, self._lost_seconds = 0, 0, 0.0
        lines.log(INFO, f"connecting to {address}")

    def update(self, link: LinkStatus, info: RecordingInfo | None) -> None:
        """Write what is due.

        Args:
            link: state of the connection.
            info: robot and recording, None while they are unknown.
        """
        here = link.connected and link.problem is None
        self._count(link, here=here)
        if not here:
            self._write_absence(link.problem or link.last_error or "no answer yet")
            return
        self._reason = None
        if self._connected_before:
            self._write_losses()
            return
        self._connected_before = True
        self._interruptions, self._lost, self._lost_seconds = 0, 0, 0.0
        known = "" if info is None else identity(info)
        self._lines.log(INFO, f"connected to {self._address}{known}")

    def end(self, link: LinkStatus | None = None) -> None:
        """Write at the end what no line has reported yet.

        Args:
            link: last state, of a connection that the program itself has closed; None if unknown.
        """
        if link is not None:
            self._count(link, here=self._away_since is None)
        self._write_losses(at_once=True)

    def _count(self, link: LinkStatus, *, here: bool) -> None:
        before, self._seen = self._seen, link
        if link.reconnects < before.reconnects or link.lost == 0 < before.lost:
            before = LinkStatus()  # another source, which counts from zero
        returned = here and self._away_since is not None
        if here:
            self._away_since = None
        elif self._away_since is None:
            self._away_since = self._lines.clock()
        self._interruptions += max(int(returned), link.reconnects - before.reconnects)
        self._lost += link.lost - before.lost  # negative where an estimate was too large
        self._lost_seconds += link.lost_seconds - before.lost_seconds

    def _write_absence(self, reason: str) -> None:
        now, reason = self._lines.clock(), reason.removeprefix(f"{self._address}: ")
        since, kind, text = self._began, "waiting", f"waiting for {self._address}: {reason}"
        if self._connected_before:
            since, kind = self._away_since or now, "lost"
            text = f"no samples from {self._address}: {reason}"
        elif now - since < PATIENCE:
            return
        if self._reason is not None:
            text += f" (for {span(now - since)} now)"
        subject = without_numbers(reason)
        if self._lines.write(kind, WARN, text, again=subject == self._reason):
            self._reason = subject

    def _write_losses(self, *, at_once: bool = False) -> None:
        """Write after interruptions, or after losses without one."""
        if not self._interruptions and self._lost <= 0:
            return
        kind, lost = "missing", f"{count(max(self._lost, 0), 'sample')} lost"
        if self._lost_seconds > 0:
            lost += f" in {span(self._lost_seconds)}"
        text = f"{lost} of {self._address}, while connected"
        if self._interruptions:
            kind, text = "back", f"samples of {self._address} come again: {lost}"
            if self._interruptions > 1:
                text += f", {self._interruptions} interruptions"
        if self._away_since is not None:
            text = f"still no samples from {self._address} at the end: {lost}"
        if self._lines.write(kind, WARN, text, at_once=at_once):
            self._interruptions, self._lost, self._lost_seconds = 0, 0, 0.0


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


class RecordingLines:
    """Lines about bags that begin and end, and about the disk.

    Bags that end between two lines are added up in the next one.
    """

    def __init__(self, lines: OperatorLines) -> None:
        self._lines = lines
        self._seen = RecorderStatus()
        self._begun: list[RecorderStatus] = []
        self._ended: list[RecorderStatus] = []
        self._failing_since: float | None = None
        self._failure_written = False
        self._refusal: str | None = None

    def update(self, status: RecorderStatus) -> None:
        """Write what is due."""
        self._follow(status)
        self._write_ends()
        if self._begun:
            text, more = f"recording {self._begun[-1].bag}", len(self._begun) - 1
            text += f" (and {count(more, 'bag')} before)" if more else ""
            if self._lines.write("begin", INFO, text):
                self._begun.clear()
        self._write_disk(status)

    def refused(self, problem: str) -> None:
        """Write that no bag can be begun; the caller tries again."""
        subject = without_numbers(problem)  # each attempt has another name
        text = f"not recording: {problem}; it is tried again"
        if self._lines.write("refused", ERROR, text, again=subject == self._refusal):
            self._refusal = subject

    def end(self, status: RecorderStatus | None) -> None:
        """Write at the end about the bags that no line has reported yet."""
        if status is not None:
            self._follow(status)
        self._write_ends(at_once=True)

    def _follow(self, status: RecorderStatus) -> None:
        """Note which bags have begun and ended since the last status."""
        before, self._seen = self._seen, status
        active, was_active = (each.state in ("recording", "failing") for each in (status, before))
        if was_active and (not active or status.bag != before.bag):
            self._ended.append(before if status.bag != before.bag else status)
        if status.bag is not None and status.bag != before.bag:
            self._refusal = None
            # One that is not active any more has begun and ended since.
            (self._begun if active else self._ended).append(status)

    def _write_ends(self, *, at_once: bool = False) -> None:
        if not self._ended:
            return
        *before, last = self._ended
        samples, lost, size, seconds = (
            sum(getattr(each, name) for each in self._ended)
            for name in ("samples", "lost", "bytes", "seconds")
        )
        name = f"{last.bag}" + (f" and {count(len(before), 'bag')} before" if before else "")
        text = (
            f"finished {name}: {count(samples, 'sample')}, {lost:,} lost, {span(seconds)}, "
            f"{size / 1e6:.1f} MB"
        )
        level = WARN if lost else INFO
        if last.stopped_because is not None:
            level, text = ERROR, f"{text}; it ended because: {last.stopped_because}"
        if self._lines.write("end", level, text, at_once=at_once):
            self._ended.clear()

    def _write_disk(self, status: RecorderStatus) -> None:
        now = self._lines.clock()
        if status.state == "failing":
            if self._failing_since is None:
                self._failing_since, self._failure_written = now, False
            text = f"{status.bag}: {status.last_error} ({count(status.waiting, 'sample')}"
            text += f", {status.lost:,} lost so far)" if status.lost else ")"
            self._failure_written |= self._lines.write(
                "failing", ERROR, text, again=self._failure_written
            )
        elif self._failing_since is None or status.state != "recording":
            self._failing_since = None
        else:
            lost = status.unreadable + status.overflow
            text = f"{status.bag} can be written again after {span(now - self._failing_since)}"
            text += f"; {count(lost, 'sample')} lost to the disk" if lost else "; nothing is lost"
            if self._lines.write("working", WARN if lost else INFO, text):
                self._failing_since = None
