"""The model file of a running estimator: read once, and again whenever it was replaced."""

from __future__ import annotations

import time
from pathlib import Path

from ur_energy_model.errors import RobotFileError, UrEnergyError, WrongRobotError
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.file.model_file import load_model
from ur_energy_model.model.robots import RobotDescription, load_robot


class WatchedModel:
    """A model file and the arm it is of.

    Args:
        path: of the model file.
        robot: name or path of the robot description; empty takes the model's.
        period: how often `replaced` looks at the file [s]; 0 for never.

    Attributes:
        path: of the model file.
        first: the model as it was first read.
        robot: description of its arm.
        problem: why the file as it is now is not in use; None where it is.

    Raises:
        ModelFileError: the file cannot be used.
        WrongRobotError: it is of another arm than `robot`.
    """

    def __init__(self, path: Path, robot: str, period: float) -> None:
        self.path = path
        self.problem: str | None = None
        self._period = period
        self._due = 0.0
        self._modified = self._modification_time()
        self.first = load_model(path)
        self.robot = self._described(self.first, load_robot(robot or self.first.robot))

    def replaced(self) -> EnergyModel | None:
        """The new model where the file was replaced by one of the same arm.

        One that cannot be used leaves its reason in `problem`.
        """
        now = time.monotonic()
        if self._period == 0 or now < self._due:
            return None
        self._due = now + self._period
        modified = self._modification_time()
        if modified is None or modified == self._modified:
            return None
        self._modified = modified
        try:
            model = load_model(self.path)
            self._described(model, self.robot)
        except UrEnergyError as error:
            self.problem = str(error)
            return None
        self.problem = None
        return model

    def _described(self, model: EnergyModel, robot: RobotDescription) -> RobotDescription:
        """The description, once it is sure that the model is of this arm.

        A model names the path where its arm's file was; the same arm may lie elsewhere now.
        """
        try:
            same = model.robot == robot.name or model.robot_name == robot.name
        except RobotFileError:
            same = True  # moved: the joints will tell
        if not same:
            raise WrongRobotError(
                self.path,
                f"is a model of {model.robot}, not of {robot.name}",
                "give a model of this robot",
            )
        return robot

    def _modification_time(self) -> int | None:
        try:
            return self.path.stat().st_mtime_ns
        except OSError:
            return None
