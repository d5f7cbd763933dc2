# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The estimated arm of the estimator node, once it is identified, and companions from rooms.

`EstimatedArm` is a record: the arm, its first model, the live estimator, and the
companions. Each of its steps is called by the node, either in the thread that reads the
samples (`take`) or once a second in the executor's thread (`reload`, `poll`,
`write_lines`). An `EstimatorCompanion` is what a room adds to that: learning improves the
model, the history keeps the powers. Without any, the estimator works with its model file
or the generic model of the arm.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from ur_energy_model.consistency.arm_type import ArmTypeMonitor
from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.energy.cycle_energies import Cycle
from ur_energy_model.energy.cycles import Marks
from ur_energy_model.energy.live import LiveEstimator, LiveOptions
from ur_energy_model.energy.powers import PowerOptions, PowerTable
from ur_energy_model.energy.snapshot import Snapshot
from ur_energy_model.errors import (
    InputError,
    RobotFileError,
    UrEnergyError,
    WrongRobotError,
)
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.generic import generic_model, model_words
from ur_energy_model.model.model_file import load_model
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.sessions import SessionFriction
from ur_energy_model.nodes.lines import WARN, OperatorLines
from ur_energy_model.nodes.parameters import EstimatorParameters
from ur_energy_model.nodes.ros import Part
from ur_energy_model.rooms import Given, extensions
from ur_energy_model.telemetry.samples import Telemetry, concatenate

COMPARED_TOGETHER = 1.0
"""Time span of the samples that are compared with the type of the arm together [s]."""


class EstimatorCompanion:
    """Work of a room beside the estimator of an arm (extensions of "estimator").

    An extension provides a subclass. The node makes one object of the subclass at each
    configuration, before the arm is known, and closes it at clean-up. All methods but
    `take_samples` and `take_powers` are called in the thread of the executor. The methods
    of this class do nothing, so that a companion only has the methods that it needs.

    Args:
        given: parameters of the node, with the table of the room.
        lines: writer of the lines of the node, for the operator.

    Raises:
        UrEnergyError: parameters with which the room cannot work.

    Attributes:
        fields: RTDE fields that the companion needs besides the fields of the estimator.
        writes_model_file: whether `model_file` may be missing, because the companion
            writes it once it can.
        follows_arm: whether the companion adapts the model where the model drifts away
            from the arm.
        warning: what is unusual about the arm now, in words; None for nothing.
    """

    fields: tuple[str, ...] = ()
    writes_model_file = False
    follows_arm = False

    def __init__(self, given: Given, lines: OperatorLines) -> None:
        return

    @property
    def warning(self) -> str | None:
        """See the class."""
        return None

    def begin(self, arm: EstimatedArm) -> None:
        """The arm is identified, and its estimator made; no samples have come yet.

        Raises:
            UrEnergyError: the companion cannot work; the arm is not estimated.
        """

    def restart(self, arm: EstimatedArm) -> None:
        """The model file has changed: `arm.base` is another first model."""

    def model_changed(self, arm: EstimatedArm) -> None:
        """The estimator uses another model from now on, of `arm.version`."""

    def take_samples(self, batch: Telemetry) -> None:
        """Take samples that follow the previous ones; must not wait.

        Called in the thread that reads, for each sample of a bag once, however often the
        bag is played.
        """

    def take_powers(
        self, table: PowerTable, starts: Marks, calculator: EnergyCalculator
    ) -> None:
        """Take powers that follow the previous ones, and marks of cycles; must not wait.

        Called in the thread that reads, with the lock of the estimator held.

        Args:
            table: powers of all channels [n], with their samples.
            starts: marks in them at which cycles start.
            calculator: the calculator that has computed the powers.
        """

    def poll(self, arm: EstimatedArm) -> None:
        """Use what happened since the last call about a second ago, and write lines."""

    def model_values(self) -> dict[str, object]:
        """Figures for the status of the model on /diagnostics, also before `begin`."""
        return {}

    def parts(self) -> dict[str, Part]:
        """Statuses of its own on /diagnostics, by name, after `begin`."""
        return {}

    def stop(self) -> None:
        """The node is deactivated: no samples come until it is activated again."""

    def close(self) -> None:
        """Save what is to be kept, and end."""


def companions(given: Given, lines: OperatorLines) -> tuple[EstimatorCompanion, ...]:
    """The companions of all rooms that are there.

    Raises:
        UrEnergyError: parameters with which a room cannot work.
    """
    made: list[EstimatorCompanion] = []
    for extension in extensions("estimator"):
        companion: EstimatorCompanion = extension.load()(given, lines)
        made.append(companion)
    return tuple(made)


def check_parameters(parameters: EstimatorParameters) -> None:
    """Refuse parameters without which the estimator cannot work.

    Raises:
        InputError: the source is a bag and none is named, or the source does not name the
            arm and no other parameter does.
    """
    if parameters.source == "bag" and parameters.bag is None:
        remedy = "give the path of the bag to play, or another source"
        raise InputError(
            "estimator", "is not set, but source is bag", remedy, field="bag"
        )
    named = parameters.model_file is not None or parameters.robot_model
    if parameters.source == "joint_states" and not named:
        problem = (
            "is not set, and neither is model_file: joint_states does not name the arm"
        )
        raise InputError(
            "estimator", problem, "name the arm, such as ur5e", field="robot_model"
        )


def is_written_later(beside: Sequence[EstimatorCompanion]) -> bool:
    """Whether the model file may be missing now, because a companion will write it."""
    return any(companion.writes_model_file for companion in beside)


def names_the_arm(
    parameters: EstimatorParameters, beside: Sequence[EstimatorCompanion]
) -> bool:
    """Whether the parameters state which arm it is; else the source must.

    A model file that a companion will write does not name the arm while it is missing.
    """
    if parameters.robot_model:
        return True
    path = parameters.model_file
    if path is None:
        return False
    return path.exists() or not is_written_later(beside)


def live_options(parameters: EstimatorParameters) -> LiveOptions:
    """Options of the live estimator.

    A driver's joint_states carry neither program state nor outputs, only the motion, from
    which cycles are found.
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
        cycle_trigger="auto" if by_motion else parameters.cycle_trigger,
        cycle_output=parameters.cycle_output,
        state_file=parameters.state_file,
        cycle_log=parameters.cycle_log,
        same_arm=parameters.same_arm,
    )


class EstimatedArm:
    """The arm of an estimator: its model, the live estimator and the companions.

    Args:
        parameters: own parameters of the node.
        robot: name or path; empty for the robot of the model file.
        beside: companions of the estimator.
        lines: writer of the lines for the operator.
        lock: guards the estimator against the thread that reads the samples.
        on_cycle: called with each completed cycle.

    Attributes:
        robot: description of the arm.
        path: path of the model file, None for the generic model.
        base: the first model: of the file, or the generic one.
        version: version of the model in use, counted by the companion that has made it; 0
            for the first model.
        problem: why a changed model file is not used, None if it is.
        estimator: computes powers and energies.
        companions: what rooms do beside it.

    Raises:
        UrEnergyError: the model file, the state file or the robot cannot be used, or a
            companion cannot work.
    """

    def __init__(
        self,
        parameters: EstimatorParameters,
        robot: str,
        beside: Sequence[EstimatorCompanion],
        lines: OperatorLines,
        lock: threading.Lock,
        on_cycle: Callable[[Cycle], None],
    ) -> None:
        self._parameters = parameters
        self._lines = lines
        self._lock = lock
        self.companions = tuple(beside)
        self.path = parameters.model_file
        self.version = 0
        self._origin = ""  # origin of the model in use, if it is not the first one
        self.problem: str | None = None
        # When the model file is checked again, by the monotonic clock [s], and its last
        # change that was noticed [ns].
        self._check_due = 0.0
        self._modified = self._modification_time()
        self._load(robot)
        self._notes: tuple[str | None, ...] = ()  # notes that lines have reported
        self._arm_type = ArmTypeMonitor(self.robot)
        self._not_compared: list[Telemetry] = []  # samples, for the next comparison
        with ExitStack() as opened:
            self.estimator = LiveEstimator(
                self.base,
                self.robot,
                live_options(parameters),
                on_cycle=on_cycle,
                on_powers=self._take_powers,
            )
            opened.callback(self.estimator.close)
            for companion in self.companions:
                companion.begin(self)
                opened.callback(companion.close)
            opened.pop_all()

    def _load(self, robot: str) -> None:
        """Load the model file, or take the generic model where there is no file yet.

        Args:
            robot: name or path; empty for the robot of the model file.

        Raises:
            UrEnergyError: the file or the robot cannot be used.
        """
        path = self.path
        missing = self._modified is None
        if path is None or (missing and is_written_later(self.companions)):
            self.robot = load_robot(robot)
            self.base = generic_model(self.robot)
        else:
            self.base = load_model(path)
            self.robot = load_robot(robot or self.base.robot)
            self._check_robot(self.base)

    # Steps of the thread that reads the samples.

    def take(self, batch: Telemetry, attempt: int) -> None:
        """Compare the arm with the next samples, and hand them to the companions.

        Args:
            batch: samples that follow the previous batch.
            attempt: how many times the source was opened; the companions get a bag that
                is played again only once.
        """
        self._not_compared.append(batch)
        waited = float(batch.time[-1] - self._not_compared[0].time[0])
        if not 0.0 <= waited < COMPARED_TOGETHER:
            self._arm_type.observe(concatenate(self._not_compared))
            self._not_compared = []
        if self._parameters.source == "bag" and attempt > 1:
            return
        for companion in self.companions:
            companion.take_samples(batch)

    def _take_powers(self, table: PowerTable, starts: Marks) -> None:
        """Hand powers to the companions; the lock is held."""
        for companion in self.companions:
            companion.take_powers(table, starts, self.estimator.calculator)

    # Steps of the executor's thread.

    def reload(self) -> bool:
        """Use the model file if it has changed; returns whether it is used.

        The present model stays in use if the new one cannot be used, see `problem`.
        """
        now = time.monotonic()
        period = self._parameters.reload_period
        if self.path is None or period == 0 or now < self._check_due:
            return False
        self._check_due = now + period
        modified = self._modification_time()
        if modified is None or modified == self._modified:
            return False
        self._modified = modified
        self.problem = None
        try:
            model = load_model(self.path)
            self._check_robot(model)
            with self._lock:
                self.estimator.use_model(model)
        except UrEnergyError as error:
            self.problem = str(error)
            return False
        self.base = model
        for companion in self.companions:
            companion.restart(self)
        self._set_version(0, "")
        return True

    def poll(self) -> None:
        """Let the companions use what has happened since the last call."""
        for companion in self.companions:
            companion.poll(self)

    def use_model(self, model: EnergyModel, version: int, origin: str) -> None:
        """Estimate with a model that a companion has made.

        Args:
            model: model of this arm.
            version: number of the model, 0 for the first model.
            origin: how it was made, such as "learned from 12.0 min of work".
        """
        with self._lock:
            self.estimator.use_model(model)
        self._set_version(version, origin)

    def _set_version(self, version: int, origin: str) -> None:
        """Name the model that is used from now on, and inform the companions.

        Args:
            version: number of the model, 0 for the first model.
            origin: how it was made, in words; empty for the first model.
        """
        self.version = version
        self._origin = origin
        for companion in self.companions:
            companion.model_changed(self)

    def use_base(self) -> None:
        """Estimate with the first model again."""
        self.use_model(self.base, 0, "")

    def use_friction(self, friction: SessionFriction | None) -> None:
        """Compute with the present friction of the joints; None for the model's."""
        with self._lock:
            self.estimator.calculator.use_friction(friction)

    def model_was_written(self) -> None:
        """Do not load the model file again: a companion has written the model in use."""
        self._modified = self._modification_time()

    def write_lines(self, snapshot: Snapshot | None) -> None:
        """Write lines about counters or a model of another arm, and about files.

        Args:
            snapshot: powers and energies now; None before the first sample.
        """
        if snapshot is not None:
            before = self._notes
            self._notes = (snapshot.note, self.arm_warning)
            for note in self._notes:
                if note is not None and note not in before:
                    self._lines.log(WARN, note)
        problem = self._lines.problem
        model = None
        if self.problem is not None:
            model = f"keeping the old model: {self.problem}"
        problem("model file", model, "the model file can be used again", WARN)
        problem(
            "counters", self.estimator.disk_problem, "the energy counters are saved again"
        )
        problem("log", self.estimator.log_problem, "the cycle log is written again")

    def close(self) -> None:
        """Save the counters, release the state file and end the companions."""
        self.estimator.close()
        for companion in self.companions:
            companion.close()

    # What is shown of the arm.

    @property
    def words(self) -> str:
        """The model in use, in words."""
        words = model_words(self.base, self.path)
        if not self.version:
            return words
        words = words.removesuffix(", not identified")
        return f"{words}, version {self.version} {self._origin}"

    @property
    def warning(self) -> str | None:
        """Present problem of the model, in words; None without one.

        The first that applies: its file, what a companion reports, or another arm.
        """
        if self.problem is not None:
            return self.problem
        for companion in self.companions:
            if companion.warning is not None:
                return companion.warning
        return self.arm_warning

    @property
    def arm_warning(self) -> str | None:
        """Statement that samples or model are of another arm; None if they are not.

        Remedies name parameters of the node in place of options of commands.
        """
        contradiction = self._arm_type.contradiction
        if contradiction is not None:
            return contradiction.words().replace("--robot ", "robot_model:=")
        warning = self.estimator.arm_warning
        if warning is None:
            return None
        return warning.replace("--same-arm", "same_arm:=true")

    def _check_robot(self, model: EnergyModel) -> None:
        """Refuse the model of another arm.

        Raises:
            WrongRobotError: the model is the model of another arm.
        """
        try:
            same = model.robot == self.robot.name or model.robot_name == self.robot.name
        except RobotFileError:
            same = True  # the file was moved; the estimator compares the joints
        if not same:
            problem = f"is a model of {model.robot}, not of {self.robot.name}"
            raise WrongRobotError(self.path or "", problem, "give a model of this robot")

    def _modification_time(self) -> int | None:
        """Time of the last change of the model file [ns]; None without a file."""
        if self.path is None:
            return None
        try:
            return self.path.stat().st_mtime_ns
        except OSError:
            return None
