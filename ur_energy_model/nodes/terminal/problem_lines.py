"""ProblemLines: problems that come and go, such as a state file that cannot be written."""

from __future__ import annotations

import time
from collections.abc import Callable

from ur_energy_model.nodes.terminal.line import Level, Line, RateLimit, count
from ur_energy_model.terminal_text import span


class ProblemLines:
    """Lines about one problem: when it begins or changes, from time to time, and when it is over.

    Args:
        over: text once the problem is over, such as "counters are saved again".
        level: of the problem.
        clock: time [s].
    """

    def __init__(
        self,
        over: str,
        level: Level = Level.ERROR,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._over, self._level, self._clock = over, level, clock
        self._limit = RateLimit(clock)
        self._since: float | None = None
        self._lasted = 0.0
        self._times = 0
        self._told: str | None = None

    def update(self, problem: str | None) -> list[Line]:
        """Lines due now; None for no problem."""
        now = self._clock()
        if problem is not None:
            self._since = now if self._since is None else self._since
            if not self._limit.ready("problem", again=problem == self._told):
                return []
            self._told = problem
            return [self._limit.line("problem", self._level, problem)]
        if self._since is not None:
            self._lasted += now - self._since
            self._times += 1
            self._since = None
        if not self._times or not self._limit.ready("over"):
            return []
        text = f"{self._over}, after {span(self._lasted)}"
        if self._times > 1:
            text += f" in {count(self._times, 'interruption')}"
        self._told, self._lasted, self._times = None, 0.0, 0
        return [self._limit.line("over", Level.INFO, text)]


class RepeatedLines:
    """Lines about one event that may come often: those left out are counted in the next one.

    Args:
        level: of the lines.
        clock: time [s].
    """

    def __init__(
        self, level: Level = Level.INFO, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._level, self._limit = level, RateLimit(clock)
        self._left_out = 0

    def happened(self, text: str) -> list[Line]:
        """The line about one more event, if it is due."""
        if not self._limit.ready("event"):
            self._left_out += 1
            return []
        if self._left_out:
            text += f" (and {count(self._left_out, 'more time')} since the last line)"
            self._left_out = 0
        return [self._limit.line("event", self._level, text)]
