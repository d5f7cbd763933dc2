"""Learner: a model that improves while the arm does its ordinary work."""

from __future__ import annotations

import zipfile
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path

import numpy as np

from ur_energy_model import __version__
from ur_energy_model.codec import built, plain
from ur_energy_model.energy.telemetry_checks import check_robot, check_width, rated_limits
from ur_energy_model.errors import (
    IdentificationError,
    InputError,
    ModelFileError,
    RecordingError,
    WrongRobotError,
)
from ur_energy_model.identification.assembly import BodyResults, fit_drives
from ur_energy_model.identification.dynamics import RecordingDynamics
from ur_energy_model.identification.filtered_motion import MOVING_SPEED
from ur_energy_model.identification.friction_fit import CurrentRegression
from ur_energy_model.identification.power_fit import PowerFit
from ur_energy_model.identification.recording import FIELDS, REQUIRED
from ur_energy_model.identification.reflected_inertia import expected_inertia
from ur_energy_model.learning.changes import ChangeMonitor
from ur_energy_model.learning.history import NEEDS, Attempt, Change, Need
from ur_energy_model.learning.information import ArmInformation
from ur_energy_model.learning.minute import Windows
from ur_energy_model.learning.needs import Coverage, ReferenceWork, needs, reference_work
from ur_energy_model.learning.state import (
    ORIGIN,
    decoded,
    encoded,
    learned_digest,
    restored_samples,
    saved_samples,
)
from ur_energy_model.learning.trial import ModelRecord, Trial
from ur_energy_model.model.document import document
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.generic import generic_model, generic_models
from ur_energy_model.model.model_file import model_from_document
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.sessions import SessionFriction, begins_session
from ur_energy_model.robot_modes import BRAKES_RELEASED
from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.telemetry.clock import checked_clock, possible_times
from ur_energy_model.telemetry.plausibility import possible
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry
from ur_energy_model.typing import Progress

SCHEDULE = (5.0, 10.0, 20.0, 40.0, 60.0, 120.0, 240.0, 480.0)
"""Learned time at which the model is fitted again [s]; every LATER seconds after the last."""
LATER = 600.0
_MOST_QUEUED = 12
"""Windows that wait for `step`; older ones are left out."""


def first_model(robot: RobotDescription) -> EnergyModel:
    """The generic model of the arm type; without one, that of the robot file.

    Raises:
        IdentificationError: neither a generic model nor torque constants.
    """
    known = robot.source in generic_models()
    return generic_model(robot) if known else prior_model(robot)


def prior_model(robot: RobotDescription) -> EnergyModel:
    """The model that the identification's priors give without any data.

    Raises:
        IdentificationError: the robot file has no torque constant for a joint.
    """
    joints = CurrentRegression(robot).from_priors()
    stated = RecordingDynamics(robot, RecordingInfo(), None, None).stated(np.full(4, np.nan))
    body = BodyResults(robot, None, stated, expected_inertia(robot))
    model = fit_drives(body, joints, [PowerFit(robot)], "physical").model
    return replace(model, provenance={"origin": "prior", **model.provenance})


def next_refit(learned: float) -> float:
    """Learned time of the next refit after `learned` [s]."""
    for time in SCHEDULE:
        if time > learned + 1e-6:
            return time
    return LATER * (learned // LATER + 1)


@dataclass
class LearnedTime:
    """The samples that were learned from.

    Attributes:
        samples: their number.
        seconds: work among them [s].
        since, until: host times of the first and last, ISO 8601; None where none was recorded.
    """

    samples: int = 0
    seconds: float = 0.0
    since: str | None = None
    until: str | None = None

    def add(self, window: Telemetry, seconds: float) -> None:
        """Count a window with some work [s]."""
        self.samples += len(window)
        self.seconds += seconds
        if window.stamp is not None:
            self.since = self.since or _date(int(window.stamp[0]))
            self.until = _date(int(window.stamp[-1]))


def _date(stamp: int) -> str:
    return datetime.fromtimestamp(stamp / 1e9, timezone.utc).isoformat(timespec="seconds")


_NUMBERS = ("version", "left_out", "_due", "_fitted_until", "_last_time", "_end_of_session")
"""Attributes of a learner that are kept as they are."""


class Learner:
    """Learns the model of one arm from its telemetry.

    Args:
        robot: the arm, n joints.
        model: to start from, the prior.
        serial: of the arm; samples of another one are left out. None takes that of the first
            samples that state one.
        state: of an earlier learner of the same arm, from `state`; its model is used instead.

    Raises:
        InputError: the state is damaged, or of another arm.

    Attributes:
        model: in use.
        version: of it; 0 is the model that learning started from.
        left_out: number of samples that nothing was learned from.
    """

    def __init__(
        self,
        robot: RobotDescription,
        model: EnergyModel,
        *,
        serial: str | None = None,
        state: bytes | None = None,
    ) -> None:
        self.robot, self.model, self.serial, self.version = robot, model, serial, 0
        self.left_out = 0
        self.learned = LearnedTime()
        self.information = ArmInformation(robot, model)
        self.coverage, self.monitor = Coverage(robot.dof), ChangeMonitor(model)
        self._work: ReferenceWork | None = None
        """By the model in use; None before it is needed."""
        self._limits = rated_limits(robot)
        self._windows = Windows()
        self._queue: deque[Telemetry] = deque()
        self._attempts: deque[Attempt] = deque()
        self._due = SCHEDULE[0]
        self._trial: Trial | None = None
        self._fitted_until = 0.0
        self._last_time: float | None = None
        self._end_of_session = False
        self._info = RecordingInfo()
        if state is not None:
            self._restore(state)

    @property
    def learned_minutes(self) -> float:
        """Work that was learned from [min]."""
        return self.learned.seconds / 60.0

    def update(self, batch: Telemetry) -> None:
        """Take the next samples; cheap, and never raises for bad ones."""
        if not len(batch) or not self._of_this_arm(batch):
            self.left_out += len(batch)
            return
        good = possible_times(batch.time)
        if not good.all():
            self.left_out += int(len(batch) - good.sum())
            batch = batch.select(good)
        self._queue.extend(self._windows.add(batch))
        while len(self._queue) > _MOST_QUEUED:
            self.left_out += len(self._queue.popleft())

    def step(self) -> Attempt | None:
        """Learn from the windows that are complete, until the next attempt; None without one."""
        while self._queue and not self._attempts:
            self._learn(self._queue.popleft())
        return self._attempts.popleft() if self._attempts else None

    def attempts(self) -> list[Attempt]:
        """All attempts that are due, see `step`."""
        return list(iter(self.step, None))

    def finish(self) -> None:
        """Learn from the samples of the window that is not complete, at the end of a recording.

        A candidate on trial is judged; the samples that follow begin another session.
        """
        self._queue.extend(self._windows.finish())
        while self._queue:
            self._learn(self._queue.popleft())
        self._judge()
        self._end_of_session = True

    def needs(self) -> tuple[Need, ...]:
        """What ordinary work has not shown yet, the most important first."""
        if self._work is None:
            self._work = reference_work(self.model, self.robot)
        return needs(self.model, self.coverage, self._work)

    def friction(self) -> SessionFriction:
        """Friction of the joints at present, over that of the model in use."""
        return self.monitor.friction_now()

    def take_changes(self) -> tuple[Change, ...]:
        """Changes of the arm since the last call."""
        return self.monitor.take()

    def state(self) -> bytes:
        """Everything needed to continue, bound to the arm; at most a few megabytes."""
        waiting = [*self._queue, *([] if self._windows.open is None else [self._windows.open])]
        return encoded(
            {
                "robot": self.robot.name,
                "serial": self.serial,
                "model": document(self.model),
                "prior": document(self.information.prior),
                "numbers": {name: getattr(self, name) for name in _NUMBERS},
                "learned": self.learned,
                "information": self.information.saved(),
                "watch": {
                    "coverage": self.coverage.saved(),
                    "monitor": self.monitor.saved(),
                    "changes": self.monitor.changes,
                },
                "trial": None if self._trial is None else self._trial.saved(),
                "attempts": self._attempts,
                "waiting": [saved_samples(samples) for samples in waiting],
                "window_open": self._windows.open is not None,
                "origin": self._windows.origin,
            }
        )

    def _restore(self, state: bytes) -> None:
        """Continue from a state.

        Raises:
            InputError: it is damaged, or of another arm.
        """
        try:
            saved = decoded(state)
            self._check_arm(saved["robot"], saved["serial"])
            self.model = model_from_document(saved["model"], "state")
            prior = model_from_document(saved["prior"], "state")
            self.information = ArmInformation(self.robot, prior)
            self.information.restore(saved["information"])
            watch = saved["watch"]
            self.coverage.restore(watch["coverage"])
            self.monitor = ChangeMonitor(self.model)
            self.monitor.restore(watch["monitor"])
            self.monitor.changes = built(list[Change], watch["changes"])
            self.learned = built(LearnedTime, saved["learned"])
            for name in _NUMBERS:
                setattr(self, name, saved["numbers"][name])
            trial = saved["trial"]
            self._trial = None if trial is None else Trial.restored(trial, self.robot)
            self._attempts = deque(built(list[Attempt], saved["attempts"]))
            waiting = [restored_samples(samples) for samples in saved["waiting"]]
            self._windows.pending = [waiting.pop()] if saved["window_open"] else []
            self._windows.origin = float(saved["origin"])
            self._queue = deque(waiting)
        except (ValueError, KeyError, TypeError, IndexError, zipfile.BadZipFile) as error:
            raise _refusal(f"cannot be used ({error})") from error

    def _check_arm(self, robot: str, serial: str | None) -> None:
        if robot != self.robot.name:
            raise _refusal(f"is of a {robot}, not a {self.robot.name}")
        if None not in (serial, self.serial) and serial != self.serial:
            raise _refusal(f"is of the arm {serial}, not {self.serial}")
        self.serial = serial if self.serial is None else self.serial

    def _of_this_arm(self, batch: Telemetry) -> bool:
        """Whether samples are of this arm, as far as they state one; the first serial binds."""
        info = batch.info
        if info.robot is not None and info.robot != self.robot.name:
            return False
        if "actual_qd" in batch and batch["actual_qd"].shape[1:] != (self.robot.dof,):
            return False
        if self.serial is None:
            self.serial = info.serial
        return info.serial is None or info.serial == self.serial

    def _learn(self, window: Telemetry) -> None:
        """Learn from one window, and judge or fit a model where it is due."""
        window, impossible, _ = possible(window, self._limits)
        self.left_out += int(impossible.sum())
        if not len(window) or any(name not in window for name in REQUIRED):
            self.left_out += len(window)
            return
        self._begin_session(float(window.time[0]))
        self._last_time, self._info = float(window.time[-1]), window.info
        motions = self.information.add(window)
        self.coverage.observe(window)
        self.monitor.observe(window, [(part.motion, part.dynamics) for part in motions])
        if self._trial is not None:
            self._trial.observe(window, motions)
        worked = self._worked(window)
        if worked > 0.0:
            self.learned.add(window, worked)
        if self.learned.seconds >= self._due - 0.5:
            self._due = next_refit(max(self.learned.seconds, self._due))
            self._judge()
            self._fit()

    def _begin_session(self, time: float) -> None:
        last = self._last_time
        if last is None:
            return
        if self._end_of_session or begins_session(last, time):
            self.information.start_session()
        self._end_of_session = False

    def _worked(self, window: Telemetry) -> float:
        """Time of a window with brakes released in which the arm moves at all [s]."""
        good = np.isfinite(window["actual_qd"]).all(axis=1)
        if "robot_mode" in window:
            good &= np.isin(window["robot_mode"], BRAKES_RELEASED)
        moving = good & (np.abs(np.nan_to_num(window["actual_qd"])).max(axis=1) > MOVING_SPEED)
        return window.duration * float(good.mean()) if moving.any() else 0.0

    def _judge(self) -> None:
        """Decide about the candidate on trial."""
        if self._trial is None:
            return
        accepted, reason = self._trial.verdict()
        record = self._trial.candidate if accepted else self._trial.present
        if accepted:
            self.version += 1
            self.model, self._work = record.model, None
            self.monitor.use_model(self.model)
            provenance = {**self.model.provenance, NEEDS: plain(self.needs())}
            self.model = replace(self.model, provenance=provenance)
        error = record.supply_energy_error
        self._attempts.append(
            Attempt(
                time=self._fitted_until,
                samples=self.learned.samples,
                version=self.version,
                supply_energy_error_percent=None if error is None else 100.0 * error,
                joint_energy_interval_percent=tuple((100.0 * record.joint_intervals).tolist()),
                accepted=accepted,
                reason=reason,
            )
        )
        self._trial = None

    def _fit(self) -> None:
        """Fit a candidate to all data and put it on trial."""
        try:
            candidate = self.information.fit()
        except (IdentificationError, ModelFileError, np.linalg.LinAlgError):
            return  # the next one has more data
        if candidate is None or self._last_time is None:
            return
        self._fitted_until = self._last_time
        both = (self.model, self._with_provenance(candidate))
        self._trial = Trial(*(ModelRecord(model, self.robot) for model in both))

    def _with_provenance(self, candidate: EnergyModel) -> EnergyModel:
        learned, previous = self.learned, self.model
        provenance = {
            "origin": ORIGIN,
            "package_version": __version__,
            "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "serial": self.serial,
            "firmware": self._info.controller_version,
            "simulated": self._info.simulated,
            "version": self.version + 1,
            "learned": {
                "minutes": self.learned_minutes,
                "samples": learned.samples,
                "since": learned.since,
                "until": learned.until,
            },
            "previous": {
                "origin": str(previous.provenance.get("origin", "identified")),
                "sha256": learned_digest(previous),
            },
        }
        return replace(candidate, provenance=provenance)


def _refusal(problem: str) -> InputError:
    return InputError("the state of learning", problem, "move it away to learn from the start")


@dataclass(frozen=True)
class LearningHistory:
    """What learning did and noticed.

    Attributes:
        attempts: in order of time.
        changes: of the arm.
    """

    attempts: tuple[Attempt, ...]
    changes: tuple[Change, ...]


def learn(
    learner: Learner, bags: Sequence[str | Path], *, progress: Progress | None = None
) -> LearningHistory:
    """Let a learner go through recordings in order, in constant memory.

    Args:
        learner: of the arm; its model is the result.
        bags: recordings; each is a session of its own.
        progress: called with fraction (NaN if unknown) and text.

    Raises:
        UrEnergyError: input that cannot be used, with place and remedy.
    """
    attempts: list[Attempt] = []
    changes: list[Change] = []
    for bag in map(Path, bags):
        samples = 0
        for batch in checked_clock(iterate_bag(bag, FIELDS), bag):
            if not len(batch):
                continue
            if not samples:
                check_robot(bag, batch.info, learner.robot)
                check_width(bag, batch, REQUIRED, learner.robot.dof)
                _check_serial(bag, batch.info.serial, learner.serial)
            samples += len(batch)
            learner.update(batch)
            attempts += learner.attempts()
            changes += learner.take_changes()
            if progress is not None:
                progress(float("nan"), f"learning from {bag.name}: {samples} samples")
        if not samples:
            raise RecordingError(bag, "holds no samples", "record again")
        learner.finish()
        attempts += learner.attempts()
        changes += learner.take_changes()
    return LearningHistory(tuple(attempts), tuple(changes))


def _check_serial(bag: Path, found: str | None, known: str | None) -> None:
    """Refuse a recording of another arm of the same type."""
    if None not in (found, known) and found != known:
        raise WrongRobotError(
            bag,
            f"was recorded on the arm {found}, the recordings before on {known}",
            "learn a model of each arm from its own recordings",
            field="serial",
        )
