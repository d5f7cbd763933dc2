"""A case of the harness, what it found, and a family of cases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from test.torture.surroundings import Surroundings

MEMORY_LIMIT = 500.0
"""Most memory of a process [MB]."""


@dataclass
class Verdict:
    """What one case found.

    Attributes:
        name: the fault that was tried.
        problems: what did not hold, one line each.
        memory: largest peak memory of the processes concerned [MB].
        seconds: longest time of one action under test [s].
        skipped: why the case could not be run; empty if it was.
    """

    name: str
    problems: list[str] = field(default_factory=list)
    memory: float = 0.0
    seconds: float = 0.0
    skipped: str = ""

    def expect(self, condition: bool, problem: str) -> bool:
        """Note a problem unless the condition holds; returns the condition."""
        if not condition:
            self.problems.append(problem)
        return condition

    def weigh(self, memory: float) -> None:
        """Take the peak memory of a process into account [MB]."""
        self.memory = max(self.memory, memory)


@dataclass(frozen=True)
class Case:
    """One case of a family: what it may use, and the random numbers that determine it.

    Attributes:
        number: number of the case in its family.
        random: random numbers of this case alone, so that it can be repeated alone.
        folder: empty folder of the case.
        around: what cases share.
    """

    number: int
    random: Random
    folder: Path
    around: Surroundings


@dataclass(frozen=True)
class Family:
    """A family of faults.

    Attributes:
        name: for the table and `--only`.
        share: of the total time.
        run: runs one case.
        count: most cases, None for as many as the time allows.
        finish: checks after the last case what the cases share; None if there is nothing.
        at_once: cases that run at the same time, where they mostly wait.
    """

    name: str
    share: float
    run: Callable[[Case], Verdict]
    count: int | None = None
    finish: Callable[[Surroundings], Verdict] | None = None
    at_once: int = 1
