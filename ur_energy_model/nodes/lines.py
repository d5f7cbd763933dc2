"""Lines for the operator: connection, recording, clock and problems that come and go.

Each class notes events and has the lines that are due now; `clock` is the time [s] of a test.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

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


@dataclass(frozen=True)
class Line:
    """One line for the operator, without a line break."""

    level: Level
    text: str


def without_numbers(text: str) -> str:
    """What a line is about: "sent nothing for 3.2 s" is no new reason after 2.8 s."""
    return _NUMBERS.sub("", text)


def count(number: int, thing: str) -> str:
    """A number with a noun, such as "1 sample" or "2,000 samples"."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


class RateLimit:
    """At most one line of each kind in PERIOD.

    What cannot be written yet is kept by the caller, and put into a later line.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._written: dict[str, float] = {}

    def line(
        self, kind: str, level: Level, text: str, *, again: bool = False, at_once: bool = False
    ) -> list[Line]:
        """The line, if one of its kind may be written now.

        Args:
            kind: of the line.
            level: its severity.
            text: its content.
            again: True for a line that only repeats the last one, after REMINDER.
            at_once: True to write it whatever came before.
        """
        now, period = self._clock(), REMINDER if again else PERIOD
        if not at_once and now - self._written.get(kind, -float("inf")) < period:
            return []
        self._written[kind] = now
        return [Line(level, text)]


class ProblemLines(RateLimit):
    """Lines about one problem: when it begins or changes, from time to time, and when it is over.

    Args:
        over: text once the problem is over, such as "counters are saved again".
        level: of the problem.
        clock: time [s].
    """

    def __init__(
        self, over: str, level: Level = Level.ERROR, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(clock)
        self._over, self._level = over, level
        self._since: float | None = None
        self._lasted, self._times = 0.0, 0
        self._last: str | None = None

    def update(self, problem: str | None) -> list[Line]:
        """Lines due now; None for no problem."""
        now = self._clock()
        if problem is not None:
            self._since = now if self._since is None else self._since
            lines = self.line("problem", self._level, problem, again=problem == self._last)
            self._last = problem if lines else self._last
            return lines
        if self._since is not None:
            self._lasted += now - self._since
            self._times += 1
            self._since = None
        if not self._times:
            return []
        times = f" in {count(self._times, 'interruption')}" if self._times > 1 else ""
        text = f"{self._over}, after {span(self._lasted)}{times}"
        if lines := self.line("over", Level.INFO, text):
            self._last, self._lasted, self._times = None, 0.0, 0
        return lines


class RepeatedLines(RateLimit):
    """Lines about one event that may come often: those left out are counted in the next one."""

    def __init__(
        self, level: Level = Level.INFO, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(clock)
        self._level, self._left_out = level, 0

    def happened(self, text: str) -> list[Line]:
        """The line about one more event, if it is due."""
        if self._left_out:
            text += f" (and {count(self._left_out, 'more time')} since the last line)"
        lines = self.line("event", self._level, text)
        self._left_out = 0 if lines else self._left_out + 1
        return lines


class ClockLines(RepeatedLines):
    """Lines about steps of the system's clock, which a HostClock notices."""

    def __init__(
        self, host_clock: HostClock = HOST_CLOCK, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(Level.WARN, clock)
        self._host_clock, self._steps = host_clock, host_clock.check()

    def update(self) -> list[Line]:
        """Lines due now."""
        if self._host_clock.check() == self._steps:
            return []
        self._steps = self._host_clock.steps
        return self.happened(self._host_clock.describe_step())


class ConnectionLines(RateLimit):
    """Lines about waiting for a controller, its connection, losses and its return.

    `update` may be called as often as the caller likes. Interruptions and losses that fall between
    two lines are added up in the next one.

    Args:
        address: of the controller, for the texts.
        clock: time [s].
    """

    def __init__(self, address: str, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(clock)
        self._address, self._began = address, clock()
        self._seen = LinkStatus()
        self._connected_before = False
        self._away_since: float | None = None
        self._reason: str | None = None
        self._interruptions, self._lost, self._lost_seconds = 0, 0, 0.0

    def begin(self) -> list[Line]:
        """The line at the start."""
        self._began = self._clock()
        return self.line("begin", Level.INFO, f"connecting to {self._address}", at_once=True)

    def update(self, link: LinkStatus, info: RecordingInfo | None) -> list[Line]:
        """Lines due now.

        Args:
            link: state of the connection.
            info: robot and recording, None while they are unknown.
        """
        here = link.connected and link.problem is None
        self._count(link, here=here)
        if not here:
            return self._waiting(link.problem or link.last_error or "no answer yet")
        self._reason = None
        if self._connected_before:
            return self._losses()
        self._connected_before = True
        self._interruptions, self._lost, self._lost_seconds = 0, 0, 0.0
        text = f"connected to {self._address}{'' if info is None else identity(info)}"
        return self.line("connected", Level.INFO, text, at_once=True)

    def end(self, link: LinkStatus | None = None) -> list[Line]:
        """The line at the end: what no line has reported yet.

        Args:
            link: last state, of a connection that the program itself has closed; None if unknown.
        """
        if link is not None:
            self._count(link, here=self._away_since is None)
        return self._losses(at_once=True)

    def _count(self, link: LinkStatus, *, here: bool) -> None:
        """Add up interruptions and losses."""
        before, self._seen = self._seen, link
        if link.reconnects < before.reconnects or link.lost == 0 < before.lost:
            before = LinkStatus()  # another source, which counts from zero
        returned = here and self._away_since is not None
        if here:
            self._away_since = None
        elif self._away_since is None:
            self._away_since = self._clock()
        self._interruptions += max(int(returned), link.reconnects - before.reconnects)
        self._lost += link.lost - before.lost  # negative where an estimate was too large
        self._lost_seconds += link.lost_seconds - before.lost_seconds

    def _waiting(self, reason: str) -> list[Line]:
        """The line while no samples come: with a new reason, and again from time to time."""
        now, reason = self._clock(), reason.removeprefix(f"{self._address}: ")
        since, kind, text = self._began, "waiting", f"waiting for {self._address}: {reason}"
        if self._connected_before:
            since, kind = now if self._away_since is None else self._away_since, "lost"
            text = f"no samples from {self._address}: {reason}"
        elif now - since < PATIENCE:
            return []
        if self._reason is not None:
            text += f" (for {span(now - since)} now)"
        again = (subject := without_numbers(reason)) == self._reason
        lines = self.line(kind, Level.WARN, text, again=again)
        self._reason = subject if lines else self._reason
        return lines

    def _losses(self, *, at_once: bool = False) -> list[Line]:
        """The line after interruptions, or after losses without one."""
        if not self._interruptions and self._lost <= 0:
            return []
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
        if lines := self.line(kind, Level.WARN, text, at_once=at_once):
            self._interruptions, self._lost, self._lost_seconds = 0, 0, 0.0
        return lines


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


class RecordingLines(RateLimit):
    """Lines about bags that begin and end, and about the disk.

    Bags that end between two lines are added up in the next one.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(clock)
        self._seen = RecorderStatus()
        self._begun: list[RecorderStatus] = []
        self._ended: list[RecorderStatus] = []
        self._failing_since: float | None = None
        self._failure_written = False
        self._refusal: str | None = None

    def update(self, status: RecorderStatus) -> list[Line]:
        """Lines due now."""
        self._follow(status)
        lines = self._ends()
        if self._begun:
            text, more = f"recording {self._begun[-1].bag}", len(self._begun) - 1
            text += f" (and {count(more, 'bag')} before)" if more else ""
            if begun := self.line("begin", Level.INFO, text):
                self._begun.clear()
                lines += begun
        return lines + self._disk(status)

    def refused(self, problem: str) -> list[Line]:
        """The line where no bag can be begun; the caller tries again."""
        subject = without_numbers(problem)  # each attempt has another name
        text = f"not recording: {problem}; it is tried again"
        lines = self.line("refused", Level.ERROR, text, again=subject == self._refusal)
        self._refusal = subject if lines else self._refusal
        return lines

    def end(self, status: RecorderStatus | None) -> list[Line]:
        """Lines at the end: the bags that no line has reported yet."""
        if status is not None:
            self._follow(status)
        return self._ends(at_once=True)

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

    def _ends(self, *, at_once: bool = False) -> list[Line]:
        if not self._ended:
            return []
        *before, last = self._ended
        samples, lost, size = (
            sum(getattr(each, name) for each in self._ended)
            for name in ("samples", "lost", "bytes")
        )
        name = f"{last.bag}" + (f" and {count(len(before), 'bag')} before" if before else "")
        seconds = sum(each.seconds for each in self._ended)
        text = (
            f"finished {name}: {count(samples, 'sample')}, {lost:,} lost, {span(seconds)}, "
            f"{size / 1e6:.1f} MB"
        )
        level = Level.WARN if lost else Level.INFO
        if last.stopped_because is not None:
            level, text = Level.ERROR, f"{text}; it ended because: {last.stopped_because}"
        if lines := self.line("end", level, text, at_once=at_once):
            self._ended = []
        return lines

    def _disk(self, status: RecorderStatus) -> list[Line]:
        now = self._clock()
        if status.state == "failing":
            if self._failing_since is None:
                self._failing_since, self._failure_written = now, False
            text = f"{status.bag}: {status.last_error} ({count(status.waiting, 'sample')}"
            text += f", {status.lost:,} lost so far)" if status.lost else ")"
            lines = self.line("failing", Level.ERROR, text, again=self._failure_written)
            self._failure_written |= bool(lines)
            return lines
        if self._failing_since is None or status.state != "recording":
            self._failing_since = None
            return []
        lost = status.unreadable + status.overflow
        text = f"{status.bag} can be written again after {span(now - self._failing_since)}"
        text += f"; {count(lost, 'sample')} lost to the disk" if lost else "; nothing is lost"
        lines = self.line("working", Level.WARN if lost else Level.INFO, text)
        self._failing_since = None if lines else self._failing_since
        return lines
