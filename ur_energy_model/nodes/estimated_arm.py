"""What the estimator node has once the arm is identified: its model, counters and history."""

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
from ur_energy_model.learning.background import BackgroundLearning
from ur_energy_model.learning.needs import next_needed
from ur_energy_model.learning.state import StateStore, save_learned
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.generic import generic_model, model_words
from ur_energy_model.model.model_file import load_model
from ur_energy_model.model.robots import RobotDescription, load_robot
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

# The parameters of the node: which of them belong together, and the options that they mean.


def check_parameters(parameters: EstimatorParameters) -> None:
    """Refuse parameters without which the estimator cannot work.

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
        problem = "is not set, and neither is model_file: joint_states does not name the arm"
        raise InputError("estimator", problem, "name the arm, such as ur5e", field="robot_model")


def live_options(parameters: EstimatorParameters) -> LiveOptions:
    """Options of the live estimator."""
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


# ArmModel: the model of a running estimator: a file, loaded again after each change, or generic;
# and, with the parameter `learn`, what is learned beside it.

CHANGE_SHOWN = 60.0
"""Time for which a change of the arm is a warning on /diagnostics [s]."""


class ArmModel:
    """A model file that is checked for changes, or the generic model of an arm; and learning.

    With learn:=keep, a file that does not exist is no error: the model is the generic one until a
    learned one is written.

    Args:
        parameters: of the node.
        robot: name or path of the robot description; empty for the robot of the model file.

    Attributes:
        path: path of the model file, None for the generic model.
        base: the model of the file, or the generic one, that learning begins with.
        robot: description of its arm.
        problem: why the present content of the file is not used; None if it is used.
        learning: the process that learns; None with learn:=off.

    Raises:
        ModelFileError: the file cannot be used, or the robot has no generic model.
        WrongRobotError: the model is of another arm than `robot`.
        RobotFileError: no such robot.
    """

    def __init__(self, parameters: EstimatorParameters, robot: str) -> None:
        self.path: Path | None = parameters.model_file
        self.problem: str | None = None
        self.learning: BackgroundLearning | None = None
        self._keep, self._played = parameters.learn == "keep", parameters.source == "bag"
        self._period, self._due = parameters.reload_period, 0.0
        self._modified = self._modification_time()
        if self.path is None or (self._keep and self._modified is None):
            self.robot = load_robot(robot)
            self.base = generic_model(self.robot)
        else:
            self.base = load_model(self.path)
            self.robot = load_robot(robot or self.base.robot)
            self._check_robot(self.base)
        self._limit = RateLimit()
        self._lacking: str | None = None
        """Subject of the last line about what the model lacks."""
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
        self._owner: object = self.base.provenance.get("serial")
        if parameters.learn != "off":
            # A bag that is played again would count twice.
            state = None if self._played else parameters.state_file
            store = None if state is None else StateStore(state)
            self.learning = BackgroundLearning(self.robot, self.base, store=store)

    @property
    def version(self) -> int:
        """Of the model in use; 0 while nothing was learned."""
        return 0 if self.learning is None else self.learning.version

    @property
    def words(self) -> str:
        """The model in use, in words."""
        words = model_words(self.base, self.path)
        if not self.version:
            return words
        words = words.removesuffix(", not identified")
        return f"{words}, version {self.version} learned from {self._minutes:.1f} min of work"

    @property
    def warning(self) -> str | None:
        """A change of the arm that was noticed a moment ago, in words."""
        return self._change if time.monotonic() < self._change_until else None

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
        self._modified, self.problem = modified, None
        try:
            model = load_model(self.path)
            self._check_robot(model)
        except UrEnergyError as error:
            self.problem = str(error)
            return None
        return model

    def begin_again(self, model: EnergyModel) -> None:
        """Learn from another first model from now on: the model file was changed."""
        self.base, self._owner = model, model.provenance.get("serial")
        if self.learning is not None:
            self.learning.begin_again(model)

    def offer(self, batch: Telemetry, attempt: int) -> None:
        """Learn from samples; never waits.

        Args:
            batch: follows the previous one.
            attempt: number of times that the source was opened; a bag is learned from once.
        """
        if self.learning is not None and (attempt <= 1 or not self._played):
            self.learning.offer(batch)

    def poll(self) -> tuple[EnergyModel | None, list[Line]]:
        """The model to use from now on, None for the present one, and lines about the news."""
        learning, lines = self.learning, list[Line]()
        if learning is None:
            return None, lines
        news = learning.poll()
        for trouble in news.troubles:
            lines += self._troubles.happened(f"{trouble}; energies are counted as before")
        for change in news.changes:
            self._change, self._change_until = change.words, time.monotonic() + CHANGE_SHOWN
            lines.append(Line(Level.WARN, f"change of the arm: {change.words}"))
        accepted = [attempt for attempt in news.attempts if attempt.accepted]
        if accepted:
            self._reason = accepted[-1].reason
        if (model := news.model) is not None:
            learned = model.provenance.get("learned")
            self._minutes = learning.learned_minutes
            if isinstance(learned, dict):  # of the arm's work before this state, too
                self._minutes = float(learned["minutes"])
            text = f"model version {self.version} is used, "
            text += f"learned from {self._minutes:.1f} min of work"
            text += "" if self._reason is None else f": {self._reason}"
            lines += self._models.happened(text)
        need, minutes = next_needed(learning.needs), learning.learned_minutes
        if minutes and (subject := without_numbers(need)) != self._lacking:
            text = f"after {minutes:.1f} min of work the model lacks: {need}"
            due = self._limit.line("lacks", Level.INFO, text, again=True)
            self._lacking = subject if due else self._lacking
            lines += due
        if model is not None and accepted and self._keep:  # not one of before a restart
            self._write(model)
        file, disk = self._write_problem, learning.disk_problem
        lines += self._file.update(file and f"the learned model is not kept: {file}")
        lines += self._disk.update(disk and f"what is learned is not saved: {disk}")
        return self.base if model is None and news.other_arm else model, lines

    def values(self) -> dict[str, object]:
        """Figures for /diagnostics."""
        learning = self.learning
        if learning is None:
            return {"learned_minutes": 0.0, "next_needed": "learn is off"}
        because = self._reason or "learned before the last start"
        friction, words = learning.friction, "that of the model"
        if friction is not None and not np.isnan(friction.scale).all():
            percent = zip(100.0 * friction.scale, 100.0 * CONFIDENCE * friction.std, strict=True)
            words = ", ".join(
                "unknown" if np.isnan(scale) else f"{scale:.0f} +-{half:.0f} %"
                for scale, half in percent
            )
        return {
            "model_version": learning.version,
            "learned_minutes": learning.learned_minutes,
            "next_needed": next_needed(learning.needs),
            "learned_because": because if learning.version else "nothing learned yet",
            "friction_now": words,
            "last_change": self._change or "none",
            "learning_cpu_percent": 100.0 * learning.cpu_share,
            "learning_left_out": learning.left_out,
            "learning_restarts": learning.failures,
            "learning_problem": learning.problem or self._write_problem or "none",
        }

    def _write(self, model: EnergyModel) -> None:
        """Write a learned model to the model file."""
        path, learning = self.path, self.learning
        assert path is not None  # see check_parameters
        assert learning is not None
        owner, serial = self._owner, learning.serial
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
        self._modified = self._modification_time()  # no change to be loaded
        learning.note_written(written)

    def _check_robot(self, model: EnergyModel) -> None:
        """Raises WrongRobotError if the model is of another arm.

        A model may name the path of a robot file that has been moved since.
        """
        try:
            same = model.robot == self.robot.name or model.robot_name == self.robot.name
        except RobotFileError:
            same = True  # the file was moved; the estimator compares the joints
        if not same:
            raise WrongRobotError(
                self.path or "",
                f"is a model of {model.robot}, not of {self.robot.name}",
                "give a model of this robot",
            )

    def _modification_time(self) -> int | None:
        try:
            return None if self.path is None else self.path.stat().st_mtime_ns
        except OSError:
            return None


def first_model(parameters: EstimatorParameters, robot: str) -> ArmModel | None:
    """The model that the estimator begins with; None if the arm must be known first.

    Args:
        parameters: of the node.
        robot: name of the arm or path of its robot file; empty if it is not known.

    Raises:
        UrEnergyError: as `ArmModel`.
    """
    path, keep = parameters.model_file, parameters.learn == "keep"
    if not robot and (path is None or (keep and not path.exists())):
        return None
    return ArmModel(parameters, robot)


def arm_of(
    info: RecordingInfo, parameters: EstimatorParameters, joints: tuple[str, ...]
) -> ArmModel:
    """The model for the arm that the samples are of.

    Args:
        info: of the samples.
        parameters: of the node.
        joints: joint names that the node has assumed.

    Raises:
        ControllerError: the controller does not name its arm; it may do so later.
        InputError: a bag does not name it, or the package has no model of this arm.
    """
    remedy = "name the arm in robot_model, such as ur5e"
    if info.robot is None and parameters.source == "bag":
        raise InputError(str(parameters.bag), "does not name its arm", remedy)
    if info.robot is None:
        problem = "its dashboard server does not name the arm"
        raise ControllerError(parameters.robot_ip, problem, remedy)
    model = ArmModel(parameters, info.robot)
    if model.robot.joint_names != joints:
        raise InputError(info.source, f"is a {info.robot} with other joints", remedy)
    return model


class EstimatedArm:
    """The arm of an estimator: model, counters, and its history.

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
        model: ArmModel,
        parameters: EstimatorParameters,
        lock: threading.Lock,
        on_cycle: Callable[[Cycle], None],
    ) -> None:
        self.model, self._lock = model, lock
        self.history: LiveHistory | None = None
        if parameters.history_store:
            with optional_import():
                from ur_energy_model.plant.live_history import LiveHistory
                from ur_energy_model.plant.schema import model_key

            self._model_key = model_key
            self.history = LiveHistory(
                parameters.history_store,
                model.robot.name,
                model_key(model.path),
                path=model.path,
            )
        try:
            # Last, since it locks the state file.
            self.estimator = LiveEstimator(
                model.base,
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
    def warning(self) -> str | None:
        """Why the intervals of another arm's model are wider; None for the arm's own."""
        warning = self.estimator.arm_warning
        return None if warning is None else warning.replace("--same-arm", "same_arm:=true")

    def reload(self) -> bool:
        """Use a changed model file; returns whether it is used.

        The present model stays in use if the new one cannot be used, see `ArmModel.problem`.
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
        self.model.begin_again(model)
        self._name_model()
        return True

    def follow_learning(self) -> list[Line]:
        """Use what was learned since the last call; returns lines about it."""
        model, lines = self.model.poll()
        if self.model.learning is not None:
            with self._lock:
                if model is not None:
                    self.estimator.use_model(model)
                self.estimator.calculator.use_friction(self.model.learning.friction)
        if model is not None:
            self._name_model()
        return lines

    def stop_learning(self) -> None:
        """End the process that learns, and save its state."""
        if self.model.learning is not None:
            self.model.learning.stop()

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
        """The rows of the history name the model that is in use."""
        if self.history is not None:
            key, version = self._model_key(self.model.path), self.model.version
            self.history.use_model(f"{key}+learned{version}" if version else key)
