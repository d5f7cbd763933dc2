"""LearningLines: what an operator needs to know of a model that learns."""

from __future__ import annotations

from ur_energy_model.learning.history import Change
from ur_energy_model.nodes.terminal.line import Level, Line
from ur_energy_model.nodes.terminal.problem_lines import ProblemLines, RepeatedLines


class LearningLines:
    """Lines about learned models, changes of the arm and troubles of learning."""

    def __init__(self) -> None:
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
