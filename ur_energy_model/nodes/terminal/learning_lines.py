"""LearningLines: what an operator needs to know of a model that learns."""

from __future__ import annotations

import time
from collections.abc import Callable

from ur_energy_model.learning.history import Change
from ur_energy_model.nodes.terminal.line import Level, Line, RateLimit, without_numbers
from ur_energy_model.nodes.terminal.problem_lines import ProblemLines, RepeatedLines


class LearningLines:
    """Lines about learned models, what they lack, changes of the arm and problems of learning.

    Args:
        clock: time [s].
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = RateLimit(clock)
        self._lacking: str | None = None
        """What the last line about it names, without numbers."""
        self._models = RepeatedLines()
        self._troubles = RepeatedLines(Level.WARN)
        self._file = ProblemLines("learned models are written again", Level.WARN)
        self._disk = ProblemLines("what is learned is saved again", Level.WARN)

    def taken_over(self, version: int, minutes: float, reason: str | None) -> list[Line]:
        """The line about a learned model that is used from now on, if it is due.

        Args:
            version: number of the model.
            minutes: of the arm's work that it was learned from.
            reason: why it is better, in words; None where it was learned before a restart.
        """
        text = f"model version {version} is used, learned from {minutes:.1f} min of work"
        return self._models.happened(text if reason is None else f"{text}: {reason}")

    def lacks(self, need: str, minutes: float) -> list[Line]:
        """The line about what would improve the model most: when it changes, once a minute at most.

        Args:
            need: in words, "nothing" included.
            minutes: of the arm's work that were learned from.
        """
        subject = without_numbers(need)
        if not minutes or subject == self._lacking or not self._limit.ready("lacks", again=True):
            return []
        self._lacking = subject
        text = f"after {minutes:.1f} min of work the model lacks: {need}"
        return [self._limit.line("lacks", Level.INFO, text)]

    def change(self, change: Change) -> Line:
        """The line about a change of the arm, which comes once each."""
        return Line(Level.WARN, f"change of the arm: {change.words}")

    def trouble(self, text: str) -> list[Line]:
        """The line about what went wrong, if it is due; the energy counters are not concerned."""
        return self._troubles.happened(f"{text}; energies are counted as before")

    def problems(self, model_file: str | None, state: str | None) -> list[Line]:
        """Lines due now about files that cannot be written, None for no problem."""
        if model_file is not None:
            model_file = f"the learned model is not kept: {model_file}"
        if state is not None:
            state = f"what is learned is not saved: {state}"
        return [*self._file.update(model_file), *self._disk.update(state)]
