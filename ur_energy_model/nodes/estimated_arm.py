# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What the estimator node has once the arm is identified: its model, counters and history."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ur_energy_model.consistency.arm_type import ArmTypeMonitor
from ur_energy_model.energy.cycle_energies import Cycle
from ur_energy_model.energy.cycles import Marks
from ur_energy_model.energy.live import LiveEstimator, LiveOptions, Snapshot
from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.energy.powers import PowerOptions, PowerTable
from ur_energy_model.energy.program import read_script
from ur_energy_model.errors import (
    InputError,
    ModelFileError,
    RobotFileError,
    UrEnergyError,
    WrongRobotError,
    optional_import,
)
from ur_energy_model.learning.background import BackgroundLearning
from ur_energy_model.learning.needs import next_needed
from ur_energy_model.learning.state import save_learned
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.generic import generic_model, model_words
from ur_energy_model.model.model_file import load_model
from ur_energy_model.model.robots import load_robot
from ur_energy_model.nodes.lines import INFO, WARN, OperatorLines, without_numbers
from ur_energy_model.nodes.parameters import EstimatorParameters
from ur_energy_model.telemetry.samples import Telemetry, concatenate

if TYPE_CHECKING:  # its packages are needed for a history only
    from ur_energy_model.plant.live_history import LiveHistory

COMPARED_TOGETHER = 1.0
"""Time span of the samples that are compared with the type of the arm together [s]."""
CHANGE_SHOWN = 60.0  # time for which a change of the arm is a warning on /diagnostics [s]


def check_parameters(parameters: EstimatorParameters) -> None:
    """Refuse parameters without which the estimator cannot work."""
    if parameters.source == "bag" and parameters.bag is None:
        remedy = "give the path of the bag to play, or another source"
        raise InputError(
            "estimator", "is not set, but source is bag", remedy, field="bag"
        )
    if parameters.model_file:
        return
    if parameters.learn == "keep":
        remedy = "give the path where the learned model is to be kept, or learn:=on"
        raise InputError(
            "estimator", "is not set, but learn is keep", remedy, field="model_file"
        )
    if parameters.source == "joint_states" and not parameters.robot_model:
        problem = (
            "is not set, and neither is model_file: joint_states does not name the arm"
        )
        raise InputError(
            "estimator", problem, "name the arm, such as ur5e", field="robot_model"
        )


def names_the_arm(parameters: EstimatorParameters) -> bool:
    """Whether the parameters state which arm it is; else the source must."""
    path = parameters.model_file
    keep = parameters.learn == "keep"
    return bool(parameters.robot_model) or not (
        path is None or (keep and not path.exists())
    )


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


class EstimatedArm:
    """The arm of an estimator: model file or generic model, learning, counters and history.

    The model file is checked for changes. With learn:=keep, a file that does not exist is
    no error: the model is the generic one until a learned one is written. `robot` is a
    name or path, empty for the robot of the model file; `lock` guards the estimator
    against the thread that reads the samples; `on_cycle` is called with each completed
    cycle.

    Raises:
        UrEnergyError: the model file, the state file, the robot or the history cannot be
            used.
    """

    def __init__(
        self,
        parameters: EstimatorParameters,
        robot: str,
        lines: OperatorLines,
        lock: threading.Lock,
        on_cycle: Callable[[Cycle], None],
    ) -> None:
        self._parameters = parameters
        self._lines = lines
        self._lock = lock
        self.path = parameters.model_file
        self._keep = parameters.learn == "keep"
        self.problem: str | None = None
        self._due = 0.0
        self._modified = self._modification_time()
        if self.path is None or (self._keep and self._modified is None):
            self.robot = load_robot(robot)
            self.base = generic_model(self.robot)
        else:
            self.base = load_model(self.path)
            self.robot = load_robot(robot or self.base.robot)
            self._check_robot(self.base)
        self._notes: tuple[str | None, ...] = ()
        # subject of the last line about what the model lacks
        self._lacking: str | None = None
        self._reason: str | None = None
        self._minutes = 0.0  # of work that the model in use was learned from
        self._change: str | None = None
        self._change_until = 0.0
        self._write_problem: str | None = None
        self._owner: object = self.base.provenance.get("serial")
        self.history: LiveHistory | None = None
        if parameters.history_store:
            with optional_import():
                from ur_energy_model.plant.live_history import LiveHistory
                from ur_energy_model.plant.schema import model_key

            self._model_key = model_key
            self.history = LiveHistory(
                parameters.history_store,
                self.robot.name,
                model_key(self.path),
                path=self.path,
                script=None
                if parameters.script is None
                else read_script(parameters.script),
            )
        self._arm_type = ArmTypeMonitor(self.robot)
        self._not_compared: list[Telemetry] = []
        try:  # last, since it locks the state file
            self.estimator = LiveEstimator(
                self.base,
                self.robot,
                live_options(parameters),
                on_cycle=on_cycle,
                on_powers=None if self.history is None else self._keep_powers,
            )
        except UrEnergyError:
            if self.history is not None:
                self.history.close()
            raise
        self.learning: BackgroundLearning | None = None
        if parameters.learn != "off":
            # A bag that is played again would count twice.
            file = None if parameters.source == "bag" else self.estimator.state_file
            self.learning = BackgroundLearning(self.robot, self.base, file=file)

    @property
    def version(self) -> int:
        """Of the model in use; 0 while nothing was learned."""
        return 0 if self.learning is None else self.learning.progress.version

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
        """What is wrong with the model now, in words: its file, a change of the arm, its arm."""
        change = self._change if time.monotonic() < self._change_until else None
        return self.problem or change or self.arm_warning

    @property
    def arm_warning(self) -> str | None:
        """That the samples are of another type of arm, or the model of another arm; else None."""
        if self._arm_type.contradiction is not None:
            return self._arm_type.contradiction.words().replace(
                "--robot ", "robot_model:="
            )
        warning = self.estimator.arm_warning
        return (
            None if warning is None else warning.replace("--same-arm", "same_arm:=true")
        )

    def reload(self) -> bool:
        """Use the model file if it has changed; returns whether it is used.

        The present model stays in use if the new one cannot be used, see `problem`.
        """
        now = time.monotonic()
        period = self._parameters.reload_period
        if self.path is None or period == 0 or now < self._due:
            return False
        self._due = now + period
        modified = self._modification_time()
        if modified is None or modified == self._modified:
            return False
        self._modified = modified
        self.problem = None
        try:
            model = load_model(self.path)
            self._check_robot(model)
            self._use(model)
        except UrEnergyError as error:
            self.problem = str(error)
            return False
        self.base = model
        self._owner = model.provenance.get("serial")
        if self.learning is not None:
            self.learning.begin_again(model)
        self._name_model()
        return True

    def offer(self, batch: Telemetry, attempt: int) -> None:
        """Compare the arm with the next samples, and learn from them; never waits.

        `attempt` is how many times the source was opened; a bag is learned from once.
        """
        self._not_compared.append(batch)
        waited = float(batch.time[-1] - self._not_compared[0].time[0])
        if not 0.0 <= waited < COMPARED_TOGETHER:
            self._arm_type.observe(concatenate(self._not_compared))
            self._not_compared = []
        if self.learning is not None and (
            attempt <= 1 or self._parameters.source != "bag"
        ):
            self.learning.offer(batch)

    def follow_learning(self) -> None:
        """Use what was learned since the last call."""
        learning = self.learning
        lines = self._lines
        if learning is None:
            return
        news = learning.poll()
        for trouble in news.troubles:
            lines.event("learning", WARN, f"{trouble}; energies are counted as before")
        for change in news.changes:
            self._change = change.words
            self._change_until = time.monotonic() + CHANGE_SHOWN
            lines.log(WARN, f"change of the arm: {change.words}")
        accepted = [attempt for attempt in news.attempts if attempt.accepted]
        if accepted:
            self._reason = accepted[-1].reason
        model = news.model
        if model is not None:
            learned = model.provenance.get("learned")
            self._minutes = learning.progress.learned_minutes
            if isinstance(learned, dict):  # of the arm's work before this state, too
                self._minutes = float(learned["minutes"])
            text = f"model version {self.version} is used, "
            text += f"learned from {self._minutes:.1f} min of work"
            lines.event(
                "learned", INFO, text + (f": {self._reason}" if self._reason else "")
            )
        need = next_needed(learning.progress.needs)
        minutes = learning.progress.learned_minutes
        if minutes and (subject := without_numbers(need)) != self._lacking:
            text = f"after {minutes:.1f} min of work the model lacks: {need}"
            if lines.write("lacks", INFO, text, again=True):
                self._lacking = subject
        if model is not None and accepted and self._keep:  # not one of before a restart
            self._write(model)
        file = self._write_problem
        file = file and f"the learned model is not kept: {file}"
        lines.problem("learned file", file, "learned models are written again", WARN)
        if model is None and news.other_arm:
            model = self.base
        if model is not None:
            self._use(model)
            self._name_model()
        with self._lock:
            self.estimator.calculator.use_friction(learning.progress.friction)

    def write_lines(self, snapshot: Snapshot | None) -> None:
        """Write lines about counters or a model of another arm, and about files."""
        if snapshot is not None:
            before = self._notes
            self._notes = (snapshot.note, self.arm_warning)
            for note in self._notes:
                if note is not None and note not in before:
                    self._lines.log(WARN, note)
        problem = self._lines.problem
        history = None
        if self.history is not None and self.history.problem is not None:
            history = f"history: {self.history.problem}"
        model = self.problem and f"keeping the old model: {self.problem}"
        problem("model file", model, "the model file can be used again", WARN)
        problem(
            "counters", self.estimator.disk_problem, "the energy counters are saved again"
        )
        problem("log", self.estimator.log_problem, "the cycle log is written again")
        problem("history", history, "the history is written again", WARN)

    def learning_values(self) -> dict[str, object]:
        """Figures of learning for /diagnostics."""
        learning = self.learning
        if learning is None:
            return {"learned_minutes": 0.0, "next_needed": "learn is off"}
        because = self._reason or "learned before the last start"
        friction = learning.progress.friction
        words = "that of the model"
        if friction is not None and not np.isnan(friction.scale).all():
            percent = zip(
                100.0 * friction.scale, 100.0 * CONFIDENCE * friction.std, strict=True
            )
            words = ", ".join(
                "unknown" if np.isnan(scale) else f"{scale:.0f} +-{half:.0f} %"
                for scale, half in percent
            )
        return {
            "model_version": learning.progress.version,
            "learned_minutes": learning.progress.learned_minutes,
            "next_needed": next_needed(learning.progress.needs),
            "learned_because": because
            if learning.progress.version
            else "nothing learned yet",
            "friction_now": words,
            "last_change": self._change or "none",
            "learning_cpu_percent": 100.0 * learning.progress.cpu_share,
            "learning_left_out": learning.left_out,
            "learning_restarts": learning.failures,
            "learning_problem": learning.problem or self._write_problem or "none",
        }

    def close(self) -> None:
        """Save the counters, release the state file and finish the history."""
        self.estimator.close()
        if self.history is not None:
            self.history.close()

    def _keep_powers(self, table: PowerTable, starts: Marks) -> None:
        """Powers for the history (called in the reading thread, with the lock held)."""
        if self.history is not None:
            self.history.update(table, starts, self.estimator.calculator)

    def _use(self, model: EnergyModel) -> None:
        with self._lock:
            self.estimator.use_model(model)

    def _name_model(self) -> None:
        """The rows of the history name the model that is in use."""
        if self.history is not None:
            key = self._model_key(self.path)
            version = self.version
            self.history.use_model(f"{key}+learned{version}" if version else key)

    def _write(self, model: EnergyModel) -> None:
        """Write a learned model to the model file."""
        path = self.path
        learning = self.learning
        assert path is not None  # see check_parameters
        assert learning is not None
        owner = self._owner
        serial = learning.serial
        if None not in (owner, serial) and str(owner) != serial:
            self._write_problem = (
                f"{path} is the model of arm {owner}, and this is arm {serial}"
            )
            return
        try:
            save_learned(model, path)
            written = load_model(path)
        except ModelFileError as error:
            self._write_problem = str(error)
            return
        self._write_problem = None
        self._owner = serial or owner
        self._modified = self._modification_time()  # no change to be loaded
        learning.note_written(written)

    def _check_robot(self, model: EnergyModel) -> None:
        """Refuse the model of another arm."""
        try:
            same = model.robot == self.robot.name or model.robot_name == self.robot.name
        except RobotFileError:
            same = True  # the file was moved; the estimator compares the joints
        if not same:
            problem = f"is a model of {model.robot}, not of {self.robot.name}"
            raise WrongRobotError(self.path or "", problem, "give a model of this robot")

    def _modification_time(self) -> int | None:
        try:
            return None if self.path is None else self.path.stat().st_mtime_ns
        except OSError:
            return None
