"""Line: one line of a node's log; RateLimit: how often each kind of line is written."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

PERIOD = 10.0
"""Shortest time between two lines of one kind [s]."""
REMINDER = 60.0
"""Period in which a state that lasts is written again [s]."""
_NUMBERS = re.compile(r"\d+(\.\d+)?")


class Level(Enum):
    """Severity of a line."""

    INFO = "info"
    WARN = "warn"
    ERROR = "error"


@dataclass(frozen=True)
class Line:
    """One line for the operator.

    Attributes:
        level: its severity.
        text: without a line break.
    """

    level: Level
    text: str


class RateLimit:
    """At most one line of each kind in PERIOD.

    Who writes lines asks `ready` first, keeps what cannot be written yet, and puts it into a later
    line.

    Args:
        clock: time [s].
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._written: dict[str, float] = {}

    def ready(self, kind: str, *, again: bool = False) -> bool:
        """Whether a line of this kind may be written.

        Args:
            kind: of the line.
            again: True for a line that only repeats the last one, after REMINDER.
        """
        period = REMINDER if again else PERIOD
        return self._clock() - self._written.get(kind, -float("inf")) >= period

    def line(self, kind: str, level: Level, text: str) -> Line:
        """A line of this kind, which is written now."""
        self._written[kind] = self._clock()
        return Line(level, text)


def without_numbers(text: str) -> str:
    """What a line is about: "sent nothing for 3.2 s" is no new reason after 2.8 s."""
    return _NUMBERS.sub("", text)


def count(number: int, thing: str) -> str:
    """A number with a noun, such as "1 sample" or "2,000 samples"."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
