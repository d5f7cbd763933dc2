"""Learner: a model that improves while the arm does its ordinary work."""

from __future__ import annotations

import zipfile
from collections import deque
from dataclasses import asdict, replace

import numpy as np

from ur_energy_model.energy.rated_limits import rated_limits
from ur_energy_model.errors import IdentificationError, InputError, ModelFileError
from ur_energy_model.identification.recording_reader import REQUIRED
from ur_energy_model.identification.regression.filtered_motion import MOVING_SPEED
from ur_energy_model.learning.arm_watch import ArmWatch
from ur_energy_model.learning.history import Attempt, Change, Need, attempt_from_json
from ur_energy_model.learning.information import ArmInformation
from ur_energy_model.learning.model_record import ModelRecord
from ur_energy_model.learning.options import LearningOptions, next_refit
from ur_energy_model.learning.provenance import LearnedTime, with_provenance
from ur_energy_model.learning.saved_samples import restored_samples, saved_samples
from ur_energy_model.learning.state_codec import decoded, encoded
from ur_energy_model.learning.trial import Trial, Verdict
from ur_energy_model.learning.windows import Windows
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.file.document import document
from ur_energy_model.model.file.model_file import model_from_document
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.sessions import SessionFriction, begins_session
from ur_energy_model.telemetry.clock_check import possible_times
from ur_energy_model.telemetry.modes import BRAKES_RELEASED
from ur_energy_model.telemetry.plausibility import possible
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry

_MOST_QUEUED = 12
"""Windows that wait for `step`; older ones are left out."""
_NUMBERS = (
    "version",
    "left_out",
    "_due",
    "_fitted_until",
    "_last_time",
    "_end_of_session",
)
"""Attributes of a learner that are kept as they are."""


class Learner:
    """Learns the model of one arm from its telemetry.

    Args:
        robot: the arm, n joints.
        model: to start from, the prior.
        options: the defaults if None.
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
        options: LearningOptions | None = None,
        *,
        state: bytes | None = None,
    ) -> None:
        self.robot, self.model, self.version = robot, model, 0
        self.options = LearningOptions() if options is None else options
        self.serial = self.options.serial
        self.left_out = 0
        self.learned = LearnedTime()
        self.information = ArmInformation(robot, model, self.options.friction)
        self.watch = ArmWatch(robot, model)
        self._limits = rated_limits(robot)
        self._windows = Windows()
        self._queue: deque[Telemetry] = deque()
        self._attempts: deque[Attempt] = deque()
        self._due = next_refit(0.0)
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
        return self.watch.needs()

    def friction(self) -> SessionFriction:
        """Friction of the joints at present, over that of the model in use."""
        return self.watch.monitor.friction_now()

    def take_changes(self) -> tuple[Change, ...]:
        """Changes of the arm since the last call."""
        return self.watch.take_changes()

    def state(self) -> bytes:
        """Everything needed to continue, bound to the arm; at most a few megabytes."""
        waiting = [*self._queue, *([] if self._windows.open is None else [self._windows.open])]
        return encoded(
            {
                "robot": self.robot.name,
                "serial": self.serial,
                "model": document(self.model),
                "prior": document(self.information.prior),
                "friction": self.options.friction,
                "numbers": {name: getattr(self, name) for name in _NUMBERS},
                "learned": asdict(self.learned),
                "information": self.information.saved(),
                "watch": self.watch.saved(),
                "trial": None if self._trial is None else self._trial.saved(),
                "attempts": [attempt.as_json() for attempt in self._attempts],
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
            self.information = ArmInformation(self.robot, prior, self.options.friction)
            self.information.restore(saved["information"])
            self.watch = ArmWatch.restored(saved["watch"], self.robot, self.model)
            self.learned = LearnedTime(**saved["learned"])
            for name in _NUMBERS:
                setattr(self, name, saved["numbers"][name])
            trial = saved["trial"]
            self._trial = None if trial is None else Trial.restored(trial, self.robot)
            self._attempts = deque(map(attempt_from_json, saved["attempts"]))
            waiting = [restored_samples(samples) for samples in saved["waiting"]]
            self._windows.pending = [waiting.pop()] if saved["window_open"] else []
            self._windows.origin = float(saved["origin"])
            self._queue = deque(waiting)
        except (ValueError, KeyError, TypeError, IndexError, zipfile.BadZipFile) as error:
            raise _refusal(f"cannot be used ({error})") from error

    def _check_arm(self, robot: str, serial: str | None) -> None:
        if robot != self.robot.name:
            raise _refusal(f"is of a {robot}, not a {self.robot.name}")
        if None not in (serial, self.options.serial) and serial != self.options.serial:
            raise _refusal(f"is of the arm {serial}, not {self.options.serial}")
        self.serial = serial if self.options.serial is None else self.options.serial

    def _of_this_arm(self, batch: Telemetry) -> bool:
        """Whether samples are of this arm, as far as they say; the first serial number binds."""
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
        self.watch.observe(window, motions)
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
        verdict = self._trial.verdict()
        record = self._trial.candidate if verdict.accepted else self._trial.present
        if verdict.accepted:
            self.version += 1
            self.model = self.watch.use_model(record.model)
        self._attempts.append(self._attempt(verdict, record))
        self._trial = None

    def _attempt(self, verdict: Verdict, record: ModelRecord) -> Attempt:
        error = record.supply_energy_error
        return Attempt(
            time=self._fitted_until,
            samples=self.learned.samples,
            version=self.version,
            supply_energy_error_percent=None if error is None else 100.0 * error,
            joint_energy_interval_percent=tuple((100.0 * record.joint_intervals).tolist()),
            accepted=verdict.accepted,
            reason=verdict.reason,
        )

    def _fit(self) -> None:
        """Fit a candidate to all data and put it on trial."""
        try:
            candidate = self.information.fit()
        except (IdentificationError, ModelFileError, np.linalg.LinAlgError):
            return  # the next one has more data
        if candidate is None or self._last_time is None:
            return
        self._fitted_until = self._last_time
        info = replace(self._info, serial=self.serial)
        version = self.version + 1
        candidate = with_provenance(candidate, self.model, self.learned, version, info)
        self._trial = Trial(self.model, candidate, self.robot)


def _refusal(problem: str) -> InputError:
    return InputError("the state of learning", problem, "move it away to learn from the start")
