"""EstimatedArm: what the estimator node has once the arm is identified."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ur_energy_model.energy.live.cycles import Cycle, Marks
from ur_energy_model.energy.live.estimator import LiveEstimator
from ur_energy_model.energy.power_table import PowerTable
from ur_energy_model.errors import ControllerError, InputError, UrEnergyError
from ur_energy_model.missing_packages import needed_here
from ur_energy_model.model.generic import model_words
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.nodes.estimator_options import first_model, live_options
from ur_energy_model.nodes.model_learning import ModelLearning
from ur_energy_model.nodes.terminal.line import Line
from ur_energy_model.nodes.watched_model import WatchedModel
from ur_energy_model.plant.history.source_keys import model_key
from ur_energy_model.telemetry.samples import RecordingInfo

if TYPE_CHECKING:
    from ur_energy_model.plant.history.live_history import LiveHistory


class EstimatedArm:
    """The arm of an estimator: model, counters, and what is learned about it.

    Args:
        model: that the estimator begins with.
        value: returns the value of a parameter by its name.
        lock: guards the estimator against the thread that reads the samples.
        on_cycle: called with each completed cycle.

    Raises:
        InputError: the state file is damaged, in use or belongs to another robot; the history's
            address is none.
        MissingPackageError: a package for the history is not installed.
        WrongRobotError: model and description have different joints.
    """

    def __init__(
        self,
        model: WatchedModel,
        value: Callable[[str], Any],
        lock: threading.Lock,
        on_cycle: Callable[[Cycle], None],
    ) -> None:
        self.model, self._lock = model, lock
        self.base = model.first
        """The model of the file, or the generic one, that learning begins with."""
        self.learning: ModelLearning | None = None
        if value("learn") != "off":
            self.learning = ModelLearning(model, value)
        self.history: LiveHistory | None = None
        if value("history_store"):
            with needed_here():
                from ur_energy_model.plant.history.live_history import LiveHistory

            self.history = LiveHistory(
                value("history_store"),
                model.robot.name,
                model_key(model.path),
                path=model.path,
            )
        try:
            # Last, since it locks the state file.
            self.estimator = LiveEstimator(
                model.first,
                model.robot,
                live_options(value),
                on_cycle=on_cycle,
                on_powers=None if self.history is None else self._keep_powers,
            )
        except UrEnergyError:
            self._close_history()
            raise

    @property
    def robot(self) -> RobotDescription:
        """Description of the arm."""
        return self.model.robot

    @property
    def model_words(self) -> str:
        """The model in use, in words."""
        words = model_words(self.base, self.model.path)
        learned = "" if self.learning is None else self.learning.words
        return words.removesuffix(", not identified") + learned if learned else words

    @property
    def warning(self) -> str | None:
        """Why the intervals of another arm's model are wider; None for the arm's own."""
        warning = self.estimator.arm_warning
        return None if warning is None else warning.replace("--same-arm", "same_arm:=true")

    def problems(self, disk: str | None) -> tuple[str | None, str | None, str | None, str | None]:
        """What is wrong with model file, counters, cycle log and history; None for nothing.

        Args:
            disk: problem of the counters.
        """
        history = None if self.history is None else self.history.problem
        return self.model.problem, disk, self.estimator.log_problem, history

    def reload(self) -> bool:
        """Use a changed model file; returns whether it is used.

        The present model stays in use if the new one cannot be used, see `WatchedModel.problem`.
        """
        model = self.model.load_if_changed()
        if model is None:
            return False
        try:
            with self._lock:
                self.estimator.use_model(model)
        except UrEnergyError as error:
            self.model.problem = str(error)
            return False
        self.base = model
        if self.learning is not None:
            self.learning.begin_again(model)
        self._name_model()
        return True

    def follow_learning(self) -> list[Line]:
        """Use what was learned since the last call; returns lines about it."""
        if self.learning is None:
            return []
        model, lines = self.learning.look(self.base)
        with self._lock:
            if model is not None:
                self.estimator.use_model(model)
            self.estimator.calculator.use_friction(self.learning.friction)
        if model is not None:
            self._name_model()
        return lines

    def stop_learning(self) -> None:
        """End the process that learns, and save its state."""
        if self.learning is not None:
            self.learning.stop()

    def close(self) -> None:
        """Save the counters, release the state file and finish the history."""
        self.estimator.close()
        self._close_history()

    def _keep_powers(self, table: PowerTable, starts: Marks) -> None:
        """Powers for the history (called in the reading thread, with the lock held)."""
        if self.history is not None:
            self.history.update(table, starts, self.estimator.calculator)

    def _close_history(self) -> None:
        if self.history is not None:
            self.history.close()

    def _name_model(self) -> None:
        """Tell the history which model is in use."""
        if self.history is not None:
            version = 0 if self.learning is None else self.learning.version
            key = model_key(self.model.path)
            self.history.use_model(f"{key}+learned{version}" if version else key)


def arm_of(
    info: RecordingInfo, value: Callable[[str], Any], joints: tuple[str, ...]
) -> WatchedModel:
    """The model for the arm that the samples are of.

    Args:
        info: of the samples.
        value: returns the value of a parameter by its name.
        joints: joint names that the node has assumed.

    Raises:
        ControllerError: the controller does not say which arm it is; it may do so later.
        InputError: a bag does not say it, or the package has no model of this arm.
    """
    remedy = "name the arm in robot_model, such as ur5e"
    if info.robot is None and value("source") == "bag":
        raise InputError(value("bag"), "does not say which arm it is of", remedy)
    if info.robot is None:
        problem = "its dashboard server does not say which arm it is"
        raise ControllerError(value("robot_ip"), problem, remedy)
    model = first_model(value, info.robot)
    assert model is not None
    if model.robot.joint_names != joints:
        raise InputError(info.source, f"is a {info.robot} with other joints", remedy)
    return model
