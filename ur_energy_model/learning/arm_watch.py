"""What a learner notices besides the model: changes of the arm, and what work has not shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ur_energy_model.learning.changes import ChangeMonitor
from ur_energy_model.learning.coverage import Coverage
from ur_energy_model.learning.history import NEEDS, Change, Need, change_from_json
from ur_energy_model.learning.information import ArmMotion
from ur_energy_model.learning.needs import ReferenceWork, needs, reference_work
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.telemetry.samples import Telemetry


class ArmWatch:
    """Follows an arm beside the learning of its model, in constant memory.

    Args:
        robot: the arm, n joints.
        model: in use.

    Attributes:
        coverage: what work has shown so far.
        monitor: of changes; its `friction` predicts the friction of today and of a cold start.
    """

    def __init__(self, robot: RobotDescription, model: EnergyModel) -> None:
        self._robot, self._model = robot, model
        self._work: ReferenceWork | None = None
        """By that model; None before it is needed."""
        self.coverage = Coverage(robot.dof)
        self.monitor = ChangeMonitor(model)

    def observe(self, window: Telemetry, motions: Sequence[ArmMotion]) -> None:
        """Use a window of possible samples and its motions."""
        self.coverage.observe(window)
        self.monitor.observe(window, [(part.motion, part.dynamics) for part in motions])

    def use_model(self, model: EnergyModel) -> EnergyModel:
        """Go on with another model of the arm; returns it with the needs in its provenance."""
        self._model, self._work = model, None
        self.monitor.use_model(model)
        provenance = {**model.provenance, NEEDS: [need.as_json() for need in self.needs()]}
        self._model = replace(model, provenance=provenance)
        return self._model

    def needs(self) -> tuple[Need, ...]:
        """What ordinary work has not shown yet, the most important first."""
        if self._work is None:
            self._work = reference_work(self._model, self._robot)
        return needs(self._model, self.coverage, self._work)

    def take_changes(self) -> tuple[Change, ...]:
        """Changes of the arm since the last call."""
        return self.monitor.take()

    def saved(self) -> dict[str, Any]:
        """Everything needed to continue with the same model."""
        return {
            "coverage": self.coverage.state(),
            "monitor": self.monitor.state(),
            "changes": [change.as_json() for change in self.monitor.changes],
        }

    @classmethod
    def restored(
        cls, saved: Mapping[str, Any], robot: RobotDescription, model: EnergyModel
    ) -> ArmWatch:
        """The watch that `saved` describes.

        Raises:
            ValueError: it is of another arm, or damaged.
            KeyError: a part is missing.
        """
        out = cls(robot, model)
        out.coverage.restore(saved["coverage"])
        out.monitor.restore(saved["monitor"])
        out.monitor.changes = [change_from_json(values) for values in saved["changes"]]
        return out
