"""RecordingLines: what happens to the bags of a recorder, as lines for the operator."""

from __future__ import annotations

import time
from collections.abc import Callable

from ur_energy_model.nodes.terminal.line import Level, Line, RateLimit, count, without_numbers
from ur_energy_model.telemetry.recording.options_and_status import RecorderStatus
from ur_energy_model.terminal_text import span


class RecordingLines:
    """Lines about bags that begin and end, and about the disk.

    Bags that end between two lines are added up in the next one.

    Args:
        clock: time [s].
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._limit = RateLimit(clock)
        self._seen = RecorderStatus()
        self._begun: list[RecorderStatus] = []
        self._ended: list[RecorderStatus] = []
        self._failing_since: float | None = None
        self._failure_told = False
        self._retry_problem: str | None = None

    def update(self, status: RecorderStatus) -> list[Line]:
        """Lines due now."""
        self._follow(status)
        lines = (self._end_line(), self._begin_line(), self._disk_line(status))
        return [line for line in lines if line is not None]

    def refused(self, problem: str) -> list[Line]:
        """The line where no bag can be begun; the caller tries again."""
        subject = without_numbers(problem)  # each attempt has another name
        if not self._limit.ready("refused", again=subject == self._retry_problem):
            return []
        self._retry_problem = subject
        text = f"not recording: {problem}; it is tried again"
        return [self._limit.line("refused", Level.ERROR, text)]

    def end(self, status: RecorderStatus | None) -> list[Line]:
        """Lines at the end: the bags that no line has told yet."""
        if status is not None:
            self._follow(status)
        line = self._end_line(at_once=True)
        return [] if line is None else [line]

    def _follow(self, status: RecorderStatus) -> None:
        """Note which bags have begun and ended since the last status."""
        before, self._seen = self._seen, status
        active = status.state in ("recording", "failing")
        was_active = before.state in ("recording", "failing")
        if was_active and (not active or status.bag != before.bag):
            self._ended.append(before if status.bag != before.bag else status)
        if status.bag is not None and status.bag != before.bag:
            self._retry_problem = None
            if active:
                self._begun.append(status)
            else:  # it has begun and ended since
                self._ended.append(status)

    def _begin_line(self) -> Line | None:
        if not self._begun or not self._limit.ready("begin"):
            return None
        newest, more = self._begun[-1], len(self._begun) - 1
        self._begun.clear()
        text = f"recording {newest.bag}" + (f" (and {count(more, 'bag')} before)" if more else "")
        return self._limit.line("begin", Level.INFO, text)

    def _end_line(self, *, at_once: bool = False) -> Line | None:
        if not self._ended or not (at_once or self._limit.ready("end")):
            return None
        ended, self._ended = self._ended, []
        last = ended[-1]
        samples, lost = (sum(getattr(each, name) for each in ended) for name in ("samples", "lost"))
        size = sum(each.bytes for each in ended)
        seconds = sum(each.seconds for each in ended)
        name = f"{last.bag}" + (f" and {count(len(ended) - 1, 'bag')} before" if ended[1:] else "")
        text = (
            f"finished {name}: {count(samples, 'sample')}, {lost:,} lost, {span(seconds)}, "
            f"{size / 1e6:.1f} MB"
        )
        level = Level.WARN if lost else Level.INFO
        if last.stopped_because is not None:
            level, text = Level.ERROR, f"{text}; it ended because: {last.stopped_because}"
        return self._limit.line("end", level, text)

    def _disk_line(self, status: RecorderStatus) -> Line | None:
        now = self._clock()
        if status.state == "failing":
            if self._failing_since is None:
                self._failing_since, self._failure_told = now, False
            if not self._limit.ready("failing", again=self._failure_told):
                return None
            self._failure_told = True
            text = f"{status.bag}: {status.last_error} ({count(status.waiting, 'sample')}"
            text += f", {status.lost:,} lost so far)" if status.lost else ")"
            return self._limit.line("failing", Level.ERROR, text)
        if self._failing_since is None or status.state != "recording":
            self._failing_since = None
            return None
        if not self._limit.ready("working"):
            return None
        failed, self._failing_since = now - self._failing_since, None
        lost = status.unreadable + status.overflow
        text = f"{status.bag} can be written again after {span(failed)}"
        text += f"; {count(lost, 'sample')} lost to the disk" if lost else "; nothing is lost"
        return self._limit.line("working", Level.WARN if lost else Level.INFO, text)
