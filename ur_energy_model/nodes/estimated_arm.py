"""EstimatedArm: what the estimator node has once the arm is identified."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ur_energy_model.energy.cycles import Cycle, Marks
from ur_energy_model.energy.live import LiveEstimator, LiveOptions
from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.energy.powers import PowerOptions, PowerTable
from ur_energy_model.errors import (
    ControllerError,
    InputError,
    ModelFileError,
    RobotFileError,
    UrEnergyError,
    WrongRobotError,
    optional_import,
)
from ur_energy_model.learning.background import BackgroundLearning, LearningUpdate
from ur_energy_model.learning.needs import next_needed
from ur_energy_model.learning.state import StateStore, save_learned
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.generic import generic_model, model_words
from ur_energy_model.model.model_file import load_model
from ur_energy_model.model.robots import RobotDescription, load_robot
from ur_energy_model.model.sessions import SessionFriction
from ur_energy_model.nodes.lines import (
    Level,
    Line,
    ProblemLines,
    RateLimit,
    RepeatedLines,
    without_numbers,
)
from ur_energy_model.nodes.parameters import EstimatorParameters
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry

if TYPE_CHECKING:  # its packages are needed for a history only
    from ur_energy_model.plant.live_history import LiveHistory

# The first model of a running estimator: a file, loaded again after each change, or generic.


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


# Options of the live estimator from the parameters of its node, and checks of these.


def check_parameters(parameters: EstimatorParameters) -> None:
    """Refuse parameters without which the estimator cannot work.

    Args:
        parameters: of the node.

    Raises:
        InputError: bag is empty where the source is a bag, model_file where a learned model is to
            be kept in it, or nothing names the arm.
    """
    if parameters.source == "bag" and parameters.bag is None:
        remedy = "give the path of the bag to play, or another source"
        raise InputError("estimator", "is not set, but source is bag", remedy, field="bag")
    if parameters.model_file:
        return
    if parameters.learn == "keep":
        remedy = "give the path where the learned model is to be kept, or learn:=on"
        raise InputError("estimator", "is not set, but learn is keep", remedy, field="model_file")
    if parameters.source == "joint_states" and not parameters.robot_model:
        problem = "is not set, and neither is model_file: joint_states does not tell the arm"
        raise InputError("estimator", problem, "name the arm, such as ur5e", field="robot_model")


def first_model(parameters: EstimatorParameters, robot: str) -> WatchedModel | None:
    """The model that the estimator begins with; None if the arm must be known first.

    Args:
        parameters: of the node.
        robot: name of the arm or path of its robot file; empty if it is not known.

    Raises:
        ModelFileError: the file cannot be used, or the robot has no generic model.
        WrongRobotError: the model is of another arm.
        RobotFileError: no such robot.
    """
    path, keep = parameters.model_file, parameters.learn == "keep"
    if not robot and (path is None or (keep and not path.exists())):
        return None
    return WatchedModel(path, robot, parameters.reload_period, to_be_written=keep)


def live_options(parameters: EstimatorParameters) -> LiveOptions:
    """Options of the live estimator.

    Args:
        parameters: of the node.
    """
    by_motion = parameters.source == "joint_states" and parameters.cycle_trigger != "none"
    return LiveOptions(
        power=PowerOptions(
            method=parameters.method,
            track_standby=parameters.track_standby,
            standby_limit=parameters.standby_limit,
            idle_power=parameters.idle_power or None,
            gap_limit=parameters.gap_limit,
        ),
        drift_alarm=parameters.drift_alarm,
        drift_time=parameters.drift_time,
        # A driver's joint_states carry neither program state nor outputs, but the motion.
        cycle_trigger="auto" if by_motion else parameters.cycle_trigger,
        cycle_output=parameters.cycle_output,
        state_file=parameters.state_file,
        cycle_log=parameters.cycle_log,
        same_arm=parameters.same_arm,
    )


# ModelLearning: the parameter `learn` of the estimator: what is learned, kept and reported.

CHANGE_SHOWN = 60.0
"""Time for which a change of the arm is a warning on /diagnostics [s]."""


class ModelLearning:
    """Learning beside the estimator, as the parameters say.

    Args:
        model: that learning begins with.
        parameters: of the node.
    """

    def __init__(self, model: WatchedModel, parameters: EstimatorParameters) -> None:
        self._model, self._keep = model, parameters.learn == "keep"
        state_file, played = parameters.state_file, parameters.source == "bag"
        # A bag that is played again would count twice.
        store = None if played or state_file is None else StateStore(state_file)
        self._once = played
        self._background = BackgroundLearning(model.robot, model.first, store=store)
        self._limit = RateLimit()
        self._lacking: str | None = None
        """What the last line about it names, without numbers."""
        self._models, self._troubles = RepeatedLines(), RepeatedLines(Level.WARN)
        self._file = ProblemLines("learned models are written again", Level.WARN)
        self._disk = ProblemLines("what is learned is saved again", Level.WARN)
        self._reason: str | None = None
        self._minutes = 0.0
        """Work that the model in use was learned from [min]."""
        self._change: str | None = None
        self._change_until = 0.0
        self._write_problem: str | None = None
        # Serial number of the arm of the model file.
        self._owner: object = model.first.provenance.get("serial")

    @property
    def words(self) -> str:
        """What was learned, to be added to the words about the first model; empty for nothing."""
        version = self._background.version
        if version == 0:
            return ""
        return f", version {version} learned from {self._minutes:.1f} min of work"

    @property
    def version(self) -> int:
        """Of the model in use; 0 while nothing was learned."""
        return self._background.version

    @property
    def friction(self) -> SessionFriction | None:
        """Friction at present, over that of the model in use; None before it is known."""
        return self._background.friction

    @property
    def warning(self) -> str | None:
        """A change of the arm that was noticed a moment ago, in words."""
        return self._change if time.monotonic() < self._change_until else None

    def offer(self, batch: Telemetry, attempt: int) -> None:
        """Learn from samples; never waits.

        Args:
            batch: follows the previous one.
            attempt: number of times that the source was opened; a bag is learned from once.
        """
        if not self._once or attempt <= 1:
            self._background.offer(batch)

    def poll(self, base: EnergyModel) -> tuple[EnergyModel | None, list[Line]]:
        """The model to use from now on, None for the present one, and lines about the news.

        Args:
            base: the model that is not learned.
        """
        news = self._background.poll()
        model = news.model
        if model is None and news.other_arm:
            model = base
        lines = self._lines_of(news)
        new = any(attempt.accepted for attempt in news.attempts)  # not one of before a restart
        if news.model is not None and new and self._keep:
            self._write(news.model)
        file, disk = self._write_problem, self._background.disk_problem
        lines += self._file.update(file and f"the learned model is not kept: {file}")
        lines += self._disk.update(disk and f"what is learned is not saved: {disk}")
        return model, lines

    def begin_again(self, model: EnergyModel) -> None:
        """Learn from another first model from now on: the model file was changed."""
        self._owner = model.provenance.get("serial")
        self._background.begin_again(model)

    def stop(self) -> None:
        """End the process and save the state."""
        self._background.stop()

    def values(self) -> dict[str, object]:
        """Figures for /diagnostics."""
        learning = self._background
        return {
            "model_version": learning.version,
            "learned_minutes": learning.learned_minutes,
            "next_needed": next_needed(learning.needs),
            "learned_because": self._because(),
            "friction_now": self._friction_words(),
            "last_change": self._change or "none",
            "learning_cpu_percent": 100.0 * learning.cpu_share,
            "learning_left_out": learning.left_out,
            "learning_restarts": learning.failures,
            "learning_problem": learning.problem or self._write_problem or "none",
        }

    def _because(self) -> str:
        if self._background.version == 0:
            return "nothing learned yet"
        return self._reason or "learned before the last start"

    def _friction_words(self) -> str:
        friction = self.friction
        if friction is None or np.isnan(friction.scale).all():
            return "that of the model"
        percent = zip(100.0 * friction.scale, 100.0 * CONFIDENCE * friction.std, strict=True)
        return ", ".join(
            "unknown" if np.isnan(scale) else f"{scale:.0f} +-{half:.0f} %"
            for scale, half in percent
        )

    def _lines_of(self, news: LearningUpdate) -> list[Line]:
        lines: list[Line] = []
        for trouble in news.troubles:
            lines += self._troubles.happened(f"{trouble}; energies are counted as before")
        for change in news.changes:
            self._change = change.words
            self._change_until = time.monotonic() + CHANGE_SHOWN
            lines.append(Line(Level.WARN, f"change of the arm: {change.words}"))
        accepted = [attempt for attempt in news.attempts if attempt.accepted]
        if accepted:
            self._reason = accepted[-1].reason
        if news.model is not None:
            self._minutes = _minutes(news.model, self._background.learned_minutes)
            text = f"model version {self.version} is used, "
            text += f"learned from {self._minutes:.1f} min of work"
            if self._reason is not None:
                text += f": {self._reason}"
            lines += self._models.happened(text)
        need, minutes = next_needed(self._background.needs), self._background.learned_minutes
        subject = without_numbers(need)
        if minutes and subject != self._lacking:
            text = f"after {minutes:.1f} min of work the model lacks: {need}"
            due = self._limit.line("lacks", Level.INFO, text, again=True)
            self._lacking = subject if due else self._lacking
            lines += due
        return lines

    def _write(self, model: EnergyModel) -> None:
        """Write a learned model to the model file."""
        path = self._model.path
        assert path is not None  # see check_parameters
        owner, serial = self._owner, self._background.serial
        if None not in (owner, serial) and str(owner) != serial:
            self._write_problem = f"{path} is the model of arm {owner}, and this is arm {serial}"
            return
        try:
            save_learned(model, path)
            written = load_model(path)
        except ModelFileError as error:
            self._write_problem = str(error)
            return
        self._write_problem, self._owner = None, serial or owner
        self._model.note_written()
        self._background.note_written(written)


def _minutes(model: EnergyModel, default: float) -> float:
    """Work that a learned model states to be learned from, else the default [min]."""
    learned = model.provenance.get("learned")
    return float(learned["minutes"]) if isinstance(learned, dict) else default


class EstimatedArm:
    """The arm of an estimator: model, counters, and what is learned about it.

    Args:
        model: that the estimator begins with.
        parameters: of the node.
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
        parameters: EstimatorParameters,
        lock: threading.Lock,
        on_cycle: Callable[[Cycle], None],
    ) -> None:
        self.model, self._lock = model, lock
        self.base = model.first
        """The model of the file, or the generic one, that learning begins with."""
        self.learning: ModelLearning | None = None
        if parameters.learn != "off":
            self.learning = ModelLearning(model, parameters)
        self.history: LiveHistory | None = None
        if parameters.history_store:
            with optional_import():
                from ur_energy_model.plant.live_history import LiveHistory
                from ur_energy_model.plant.schema import model_key

            self.history = LiveHistory(
                parameters.history_store,
                model.robot.name,
                model_key(model.path),
                path=model.path,
            )
        try:
            # Last, since it locks the state file.
            self.estimator = LiveEstimator(
                model.first,
                model.robot,
                live_options(parameters),
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
        model, lines = self.learning.poll(self.base)
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
            from ur_energy_model.plant.schema import model_key

            version = 0 if self.learning is None else self.learning.version
            key = model_key(self.model.path)
            self.history.use_model(f"{key}+learned{version}" if version else key)


def arm_of(
    info: RecordingInfo, parameters: EstimatorParameters, joints: tuple[str, ...]
) -> WatchedModel:
    """The model for the arm that the samples are of.

    Args:
        info: of the samples.
        parameters: of the node.
        joints: joint names that the node has assumed.

    Raises:
        ControllerError: the controller does not say which arm it is; it may do so later.
        InputError: a bag does not say it, or the package has no model of this arm.
    """
    remedy = "name the arm in robot_model, such as ur5e"
    if info.robot is None and parameters.source == "bag":
        raise InputError(str(parameters.bag), "does not say which arm it is of", remedy)
    if info.robot is None:
        problem = "its dashboard server does not say which arm it is"
        raise ControllerError(parameters.robot_ip, problem, remedy)
    model = first_model(parameters, info.robot)
    assert model is not None
    if model.robot.joint_names != joints:
        raise InputError(info.source, f"is a {info.robot} with other joints", remedy)
    return model
