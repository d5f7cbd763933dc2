"""The first model of a running estimator: a file, loaded again after each change, or generic."""

from __future__ import annotations

import time
from pathlib import Path

from ur_energy_model.errors import RobotFileError, UrEnergyError, WrongRobotError
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.file.model_file import load_model
from ur_energy_model.model.generic import generic_model
from ur_energy_model.model.robots import load_robot


class WatchedModel:
    """A model file that is checked for changes, or the generic model of an arm.

    Args:
        path: path of the model file; None for the generic model.
        robot: name or path of the robot description; empty for the robot of the model file.
        period: shortest time between two checks of the file [s]; 0 for no checks.
        to_be_written: a file that does not exist is no error: the model is the generic one until
            a learned one is written.

    Attributes:
        path: path of the model file, None for the generic model.
        first: the model as first loaded.
        robot: description of its arm.
        problem: why the present content of the file is not used; None if it is used.

    Raises:
        ModelFileError: the file cannot be used, or the robot has no generic model.
        WrongRobotError: the model is of another arm than `robot`.
    """

    def __init__(
        self, path: Path | None, robot: str, period: float, *, to_be_written: bool = False
    ) -> None:
        self.path = path
        self.problem: str | None = None
        self._period = period
        self._due = 0.0
        self._modified = self._modification_time()
        if path is None or (to_be_written and self._modified is None):
            self.robot = load_robot(robot)
            self.first = generic_model(self.robot)
            return
        self.first = load_model(path)
        self.robot = load_robot(robot or self.first.robot)
        self._check_robot(self.first, path)

    def note_written(self) -> None:
        """The file was written by this process: it is no change to be loaded."""
        self._modified = self._modification_time()

    def load_if_changed(self) -> EnergyModel | None:
        """Returns the new model if the file has changed, else None.

        If the new file cannot be used, returns None and sets `problem`.
        """
        now = time.monotonic()
        if self.path is None or self._period == 0 or now < self._due:
            return None
        self._due = now + self._period
        modified = self._modification_time()
        if modified is None or modified == self._modified:
            return None
        self._modified = modified
        try:
            model = load_model(self.path)
            self._check_robot(model, self.path)
        except UrEnergyError as error:
            self.problem = str(error)
            return None
        self.problem = None
        return model

    def _check_robot(self, model: EnergyModel, path: Path) -> None:
        """Raises WrongRobotError if the model is of another arm.

        A model may name the path of a robot file that has been moved since.
        """
        try:
            same = model.robot == self.robot.name or model.robot_name == self.robot.name
        except RobotFileError:
            same = True  # the file was moved; the estimator compares the joints
        if not same:
            raise WrongRobotError(
                path,
                f"is a model of {model.robot}, not of {self.robot.name}",
                "give a model of this robot",
            )

    def _modification_time(self) -> int | None:
        if self.path is None:
            return None
        try:
            return self.path.stat().st_mtime_ns
        except OSError:
            return None
