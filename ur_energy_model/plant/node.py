# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The history in the estimator node: its parameters `history_store` and `script`.

A store that cannot be written stops nothing: the node reports it, keeps the rows in
memory and writes them later, see `LiveHistory`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.energy.cycles import Marks
from ur_energy_model.energy.powers import PowerTable
from ur_energy_model.energy.program import read_script
from ur_energy_model.errors import optional_import
from ur_energy_model.nodes.estimated_arm import EstimatedArm, EstimatorCompanion
from ur_energy_model.nodes.lines import WARN, OperatorLines
from ur_energy_model.nodes.ros import OK, Part
from ur_energy_model.nodes.ros import WARN as LEVEL_WARN
from ur_energy_model.plant.room import HistoryParameters
from ur_energy_model.rooms import Given

if TYPE_CHECKING:  # its packages are needed only where a history is written
    from ur_energy_model.plant.live_history import LiveHistory


class HistoryCompanion(EstimatorCompanion):
    """Writes the powers of an estimator into a history, if the user names one.

    Args:
        given: parameters of the node.
        lines: lines that the node prints for its operator.

    Raises:
        MissingPackageError: a history is named, and its packages are not installed.
        UrEnergyError: there is no such store or script (at `begin`).
    """

    def __init__(self, given: Given, lines: OperatorLines) -> None:
        self._parameters = given.of(HistoryParameters)
        self._lines = lines
        self._history: LiveHistory | None = None

    def begin(self, arm: EstimatedArm) -> None:
        """Start the thread that writes the history of an arm.

        Args:
            arm: the arm with its first model.
        """
        if not self._parameters.history_store:
            return
        with optional_import():
            from ur_energy_model.plant.live_history import LiveHistory
            from ur_energy_model.plant.schema import model_key
        script = None
        if self._parameters.script is not None:
            script = read_script(self._parameters.script)
        self._model_key = model_key
        self._history = LiveHistory(
            self._parameters.history_store,
            arm.robot.name,
            model_key(arm.path),
            path=arm.path,
            script=script,
        )

    def model_changed(self, arm: EstimatedArm) -> None:
        """Let the rows from now on name the model in use: its file, and the version learned."""
        if self._history is None:
            return
        key = self._model_key(arm.path)
        if arm.version:
            key = f"{key}+learned{arm.version}"
        self._history.use_model(key)

    def take_powers(
        self, table: PowerTable, starts: Marks, calculator: EnergyCalculator
    ) -> None:
        """Add powers to the rows of their seconds, cycles and minutes.

        Args:
            table: powers that follow the powers of the last call.
            starts: marks of cycles in these samples.
            calculator: calculator that has computed the powers.
        """
        if self._history is not None:
            self._history.update(table, starts, calculator)

    def poll(self, arm: EstimatedArm) -> None:
        """Write a line where the store cannot be written, or can be written again."""
        problem = None
        if self._history is not None and self._history.problem is not None:
            problem = f"history: {self._history.problem}"
        self._lines.problem("history", problem, "the history is written again", WARN)

    def parts(self) -> dict[str, Part]:
        """The part "history" of the node's diagnostics.

        There is none where no history is written.
        """
        if self._history is None:
            return {}
        values: dict[str, object] = {"history_store": self._history.address}
        problem = self._history.problem
        if problem is not None:
            return {"history": (LEVEL_WARN, problem, values)}
        return {"history": (OK, "written each minute", values)}

    def close(self) -> None:
        """Write the last rows."""
        if self._history is not None:
            self._history.close()
            self._history = None
