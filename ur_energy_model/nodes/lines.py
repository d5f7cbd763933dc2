# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Lines for the operator: connection, recording, clock and problems that come and go.

Each kind of line is written at most every PERIOD; what falls between two is counted.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from ur_energy_model.errors import counted, span
from ur_energy_model.telemetry.clock import HOST_CLOCK, HostClock
from ur_energy_model.telemetry.gaps import NO_LOSSES
from ur_energy_model.telemetry.recording.writing_thread import RecorderStatus
from ur_energy_model.telemetry.samples import RecordingInfo
from ur_energy_model.telemetry.source import LinkStatus

PERIOD = 10.0  # shortest time between two lines of one kind [s]
REMINDER = 60.0  # period in which a state that lasts is written again [s]
SHOWN_SECONDS = 0.05  # shortest time of losses that a line states [s]
# time for which a connection may take to be made before it is reported [s]
PATIENCE = 1.0
_NUMBERS = re.compile(r"\d+(\.\d+)?")


class Level(Enum):
    """Severity of a line."""

    INFO = "info"
    WARN = "warn"
    ERROR = "error"


INFO, WARN, ERROR = Level
Log: TypeAlias = Callable[[Level, str], object]  # writes a line without a line break


def without_numbers(text: str) -> str:
    """A text without its numbers, by which lines are compared.

    "sent nothing for 3.2 s" is the same problem as "sent nothing for 2.8 s".
    """
    return _NUMBERS.sub("", text)


@dataclass
class _Problem:
    """A problem of one kind.

    Attributes:
        last: last line of the problem without numbers; None before the first line.
        since: time at which the problem began, by the clock of the lines [s]; None while it is
            over.
        lasted: time for which the problem was there before [s], since its end was last
            reported.
        times: how often it was there before, since its end was last reported.
    """

    last: str | None = None
    since: float | None = None
    lasted: float = 0.0
    times: int = 0


class OperatorLines:
    """Writes the lines of a node, each kind of them seldom enough.

    Args:
        log: writes a line at once.
        clock: time [s].
        host_clock: clock of the host, whose steps are reported.
    """

    def __init__(
        self,
        log: Log,
        clock: Callable[[], float] = time.monotonic,
        host_clock: HostClock = HOST_CLOCK,
    ) -> None:
        self.log = log
        self.clock = clock
        self._host_clock = host_clock
        self._steps = host_clock.check()
        self._written: dict[str, float] = {}
        self._left_out: Counter[str] = Counter()
        self._problems: dict[str, _Problem] = {}

    def write(
        self,
        kind: str,
        level: Level,
        text: str,
        *,
        again: bool = False,
        at_once: bool = False,
    ) -> bool:
        """Write a line unless one of its kind was written less than PERIOD ago.

        Args:
            kind: kind of the line.
            level: severity of the line.
            text: text of one line.
            again: whether it only repeats the last one, and is due after REMINDER.
            at_once: whether it is written in any case.

        Returns:
            Whether the line was written.
        """
        now = self.clock()
        period = REMINDER if again else PERIOD
        if not at_once and now - self._written.get(kind, -float("inf")) < period:
            return False
        self._written[kind] = now
        self.log(level, text)
        return True

    def event(self, kind: str, level: Level, text: str, *, at_once: bool = False) -> None:
        """Write a line about an event that may come often.

        Lines that are left out are counted, and the next one states their number.

        Args:
            kind: kind of the event.
            level: severity of the line.
            text: text of one line.
            at_once: whether it is written in any case.
        """
        left_out = self._left_out[kind]
        if left_out:
            text += f" (and {counted(left_out, 'more time')} since the last line)"
        written = self.write(kind, level, text, at_once=at_once)
        self._left_out[kind] = 0 if written else left_out + 1

    def problem(
        self,
        kind: str,
        problem: str | None,
        over: str,
        level: Level = ERROR,
        over_level: Level = INFO,
    ) -> bool:
        """Write when a problem begins or changes, from time to time, and when it is over.

        Args:
            kind: kind of the problem; a line of each kind is written at most every
                PERIOD.
            problem: what is wrong; None while nothing is. A text that differs in numbers
                only is the same problem.
            over: what is right again, such as "counters are saved again".
            level: severity of the line about the problem.
            over_level: severity of the line about its end.

        Returns:
            Whether a line was written.
        """
        known = self._problems.setdefault(kind, _Problem())
        now = self.clock()
        if problem is not None:
            if known.since is None:
                known.since = now
            subject = without_numbers(problem)
            again = subject == known.last
            text = problem
            if again:
                text += f" (for {span(now - known.since)} now)"
            written = self.write(kind, level, text, again=again)
            if written:
                known.last = subject
            return written
        if known.since is not None:
            known.lasted += now - known.since
            known.times += 1
            known.since = None
        if known.times == 0:
            return False
        text = f"{over}, after {span(known.lasted)}"
        if known.times > 1:
            text += f" in {counted(known.times, 'interruption')}"
        written = self.write(f"{kind} over", over_level, text)
        if written:
            del self._problems[kind]
        return written

    def clock_steps(self) -> None:
        """Write about a step of the system's clock since the last call."""
        if self._host_clock.check() != self._steps:
            self._steps = self._host_clock.steps
            self.event("clock", WARN, self._host_clock.describe_step())


class ConnectionLines:
    """Lines about waiting for a controller, its connection, losses and its return.

    `update` may be called at any rate. Every loss is in exactly one line; losses between
    two lines are added up in the second one.

    Args:
        lines: writer of the lines of the node.
        address: address of the controller, for the texts.
    """

    def __init__(self, lines: OperatorLines, address: str) -> None:
        self._lines = lines
        self._address = address
        self._began = lines.clock()
        self._connected_before = False
        self._known = NO_LOSSES
        self._reported = NO_LOSSES
        lines.log(INFO, f"connecting to {address}")

    def update(self, link: LinkStatus, info: RecordingInfo | None) -> None:
        """Write what is due.

        Args:
            link: state of the connection now.
            info: robot and recording; None while they are unknown.
        """
        self._known = link.losses
        lines = self._lines
        address = self._address
        if not link.connected or link.problem is not None:
            reason = link.problem or link.last_error or "no answer yet"
            reason = reason.removeprefix(f"{address}: ")
            if self._connected_before:
                lines.problem(
                    "connection", f"no samples from {address}: {reason}", "", WARN
                )
            elif lines.clock() - self._began >= PATIENCE:
                lines.problem("connection", f"waiting for {address}: {reason}", "", WARN)
        elif not self._connected_before:
            self._connected_before = True
            text = f"connected to {address}"
            if info is not None:
                text += identity(info)
            if not lines.problem("connection", None, text):
                lines.log(INFO, text)
        else:
            lost = self._known.samples > self._reported.samples
            text = f"samples of {address} come again, {self._losses()}"
            level = WARN if lost else INFO
            written = lines.problem("connection", None, text, over_level=level)
            if lost and not written:
                written = lines.write("lost", WARN, f"{address}: {self._losses()}")
            if written:
                self._reported = self._known

    def end(self, link: LinkStatus | None = None) -> None:
        """Write at the end which losses no line has reported yet.

        Args:
            link: last state of a connection that the program itself has closed; None for
                the state at the last update.
        """
        if link is not None:
            self._known = link.losses
        if self._known.samples > self._reported.samples:
            self._lines.log(WARN, f"{self._address}: {self._losses()}")
            self._reported = self._known

    def _losses(self) -> str:
        """Losses that are not yet reported, in words."""
        new = self._known - self._reported
        if not new.samples:
            return "none lost"
        text = f"{counted(new.samples, 'sample')} lost"
        if new.seconds >= SHOWN_SECONDS:
            text += f" in {span(new.seconds)}"
        return text


def identity(info: RecordingInfo) -> str:
    """Identity of a controller as far as known, such as ": ur5e, serial 201955, software 5.11.1.0".

    Empty for a source that is not a controller.
    """
    if info.controller_version is None:
        return ""
    serial = "serial number unknown"
    if info.serial is not None:
        serial = f"serial {info.serial}"
    robot = info.robot or "robot model unknown (set robot_model)"
    parts = [robot, serial, f"software {info.controller_version}"]
    if info.rate is not None:
        parts.append(f"{info.rate:g} Hz")
    if info.simulated:
        parts.append("simulated")
    return f": {', '.join(parts)}"


class RecordingLines:
    """Lines about bags that begin and end, and about the disk.

    Args:
        lines: writer of the lines of the node.
    """

    def __init__(self, lines: OperatorLines) -> None:
        self._lines = lines
        self._seen = RecorderStatus()

    def update(self, status: RecorderStatus, *, last: bool = False) -> None:
        """Write what is due.

        Args:
            status: present status of the recorder.
            last: whether no update follows: the line about a finished bag is not delayed.
        """
        lines = self._lines
        before = self._seen
        self._seen = status
        active = status.state in ("recording", "failing")
        was_active = before.state in ("recording", "failing")
        begun = status.bag is not None and status.bag != before.bag
        if was_active and begun:
            self._finished(before, at_once=last)
        if begun:
            lines.problem("refused", None, "a bag could be begun")
            lines.event("begin", INFO, f"recording {status.bag}")
        if not active and (was_active or begun):
            self._finished(status, at_once=last)
        if status.state == "failing":
            waiting = f"{counted(status.waiting, 'sample')} wait"
            if status.losses.samples:
                waiting += f", {status.losses.samples:,} lost so far"
            problem = f"{status.bag}: {status.last_error} ({waiting})"
            lines.problem("disk", problem, "")
        elif status.state == "recording":
            missing = status.unreadable + status.overflow
            level = INFO
            text = "nothing is lost"
            if missing:
                level = WARN
                text = f"{counted(missing, 'sample')} lost to the disk"
            over = f"{text}; {status.bag} can be written again"
            lines.problem("disk", None, over, over_level=level)

    def refused(self, problem: str) -> None:
        """Write that no bag can be begun; the caller tries again.

        Args:
            problem: why not, in words.
        """
        text = f"not recording: {problem}; it is tried again"
        self._lines.problem("refused", text, "")

    def _finished(self, status: RecorderStatus, *, at_once: bool) -> None:
        """Write the line about a finished bag: a warning if samples are lost."""
        text = (
            f"finished {status.bag}: {counted(status.samples, 'sample')}, "
            f"{status.losses.samples:,} lost, {span(status.seconds)}, {status.bytes / 1e6:.1f} MB"
        )
        level = WARN if status.losses.samples else INFO
        if status.stopped_because is not None:
            level = ERROR
            text = f"{text}; it ended because: {status.stopped_because}"
        self._lines.event("end", level, text, at_once=at_once)
