# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Learner: a model that improves while the arm does its ordinary work."""

from __future__ import annotations

import math
import zipfile
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from time import process_time
from typing import Any

import numpy as np

from ur_energy_model import __version__
from ur_energy_model.codec import built, plain
from ur_energy_model.energy.telemetry_checks import rated_limits
from ur_energy_model.errors import (
    IdentificationError,
    InputError,
    ModelFileError,
)
from ur_energy_model.identification.assembly import BodyResults, fit_drives
from ur_energy_model.identification.dynamics import RecordingDynamics
from ur_energy_model.identification.filtered_motion import MOVING_SPEED
from ur_energy_model.identification.friction_fit import CurrentRegression
from ur_energy_model.identification.minute import WindowCollector
from ur_energy_model.identification.power_fit import PowerFit
from ur_energy_model.identification.recording import REQUIRED
from ur_energy_model.identification.reflected_inertia import expected_inertia
from ur_energy_model.learning.changes import ChangeMonitor
from ur_energy_model.learning.history import Attempt, Change
from ur_energy_model.learning.information import MOST_SESSIONS, ArmInformation
from ur_energy_model.learning.needs import Coverage, ReferenceWork, needs, reference_work
from ur_energy_model.learning.state import ORIGIN, decoded, encoded, learned_digest
from ur_energy_model.learning.stated_constants import ExchangedJoint, with_new_joints
from ur_energy_model.learning.trial import ModelRecord, verdict
from ur_energy_model.model.arm_at_hand import with_controller_constants
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.generic import generic_model, generic_models
from ur_energy_model.model.model_file import document, model_from_document
from ur_energy_model.model.needs import NEEDS, Need
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.sessions import SessionFriction, begins_session
from ur_energy_model.robot_modes import BRAKES_RELEASED
from ur_energy_model.telemetry.clock import possible_times
from ur_energy_model.telemetry.gaps import find_gaps
from ur_energy_model.telemetry.plausibility import possible
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry, concatenate

SCHEDULE = (5.0, 10.0, 20.0, 40.0, 60.0, 120.0, 240.0, 480.0)
"""Learned times at which the model is fitted again [s]."""
LATER = 600.0
"""Learned time between fits after the last of `SCHEDULE` [s]."""
_EARLY = 0.5
"""Learned time by which a fit may come before it is due [s]: windows count a little less than
their length."""
_SAME_CONSTANT = 1e-3
"""Relative change of a torque constant below which the first model stays as it is."""
_MOST_QUEUED = 12  # most windows in the queue of `step`; older ones are left out
_NUMBERS = (
    "version", "left_out", "_due", "_restarted", "_fitted_until", "_last_time", "_end_of_session",
    "_noticed",
)  # fmt: skip
"""Attributes of a learner that are kept as they are."""


def first_model(robot: RobotDescription) -> EnergyModel:
    """The generic model of the arm type; without one, a model from the identification's priors.

    Raises:
        IdentificationError: neither a generic model nor torque constants in the robot
            file.
    """
    if robot.source in generic_models():
        return generic_model(robot)
    joints = CurrentRegression(robot).from_priors()
    dynamics = RecordingDynamics(robot, RecordingInfo(), None, None)
    stated = dynamics.stated(np.full(4, np.nan))
    body = BodyResults(robot, None, stated, expected_inertia(robot))
    model = fit_drives(body, joints, [PowerFit(robot)], "physical").model
    return replace(model, provenance={"origin": "prior", **model.provenance})


@dataclass
class LearnedTime:
    """The samples that a model was learned from.

    Attributes:
        samples: number of the samples.
        seconds: time of work in the samples [s].
        since: host time of the first sample, UTC, ISO 8601; None without host times.
        until: host time of the last sample, UTC, ISO 8601; None without host times.
    """

    samples: int = 0
    seconds: float = 0.0
    since: str | None = None
    until: str | None = None


class Learner:
    """Learns the model of one arm from its telemetry.

    Args:
        robot: the arm, n joints.
        model: model to start from, the prior; later the model in use, whose number is
            `version`.
        serial: serial number of the arm; samples of another one are left out. None takes
            the number of the first samples that state one.
        state: state of an earlier learner of the same arm, from `state`; its model is
            used instead.

    Raises:
        InputError: the state is damaged, or of another arm.

    Attributes:
        left_out: number of samples that nothing was learned from.
        pause: least time of work between two fits, over the computing time of a fit; 0 for
            results that do not depend on the machine. The first model has no pause.
    """

    def __init__(
        self,
        robot: RobotDescription,
        model: EnergyModel,
        *,
        serial: str | None = None,
        state: bytes | None = None,
    ) -> None:
        self.robot = robot
        self.model = model
        self.serial = serial
        self.version = 0
        self.left_out = 0
        self.pause = 0.0
        self._learned = LearnedTime()
        self._information = ArmInformation(robot, model)
        self._coverage = Coverage(robot.dof)
        self._monitor = ChangeMonitor(model)
        self._work: ReferenceWork | None = None
        """Usual work, by the model in use; None before it is needed."""
        self._limits = rated_limits(robot)
        self._windows = WindowCollector()
        self._queue: deque[Telemetry] = deque()
        self._attempts: deque[Attempt] = deque()
        self._due = SCHEDULE[0]
        self._restarted = 0.0  # work before the last exchange of a joint [s]
        self._trial: dict[str, ModelRecord] = {}
        """Records of the "present" model and of the "candidate" that may replace it; empty
        without a candidate."""
        self._fitted_until = 0.0
        self._noticed: list[str] = []  # sessions whose undeclared payload was reported
        self._last_time: float | None = None
        self._end_of_session = False
        self._info = RecordingInfo()
        if state is not None:
            try:
                self._restore(decoded(state))
            except (
                ValueError,
                KeyError,
                TypeError,
                IndexError,
                zipfile.BadZipFile,
            ) as error:
                remedy = "learn from the start, without it"
                problem = f"cannot be used ({error})"
                raise InputError("the state of learning", problem, remedy) from error

    @property
    def learned_minutes(self) -> float:
        """Work that was learned from [min]."""
        return self._learned.seconds / 60.0

    def update(self, batch: Telemetry) -> None:
        """Take the next samples; cheap, and never raises for bad ones.

        Args:
            batch: samples that follow the samples of the last call. Samples of another arm or
                with impossible times are left out and counted.
        """
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
        """Learn from the windows that are complete, until the next attempt.

        Returns:
            The result of a candidate that was judged; None where no more is due. Between
            two calls, the caller can limit the computing time.
        """
        while self._queue and not self._attempts:
            self._learn(self._queue.popleft())
        if not self._attempts:
            return None
        return self._attempts.popleft()

    def attempts(self) -> list[Attempt]:
        """All attempts that are due, as `step` returns them."""
        return list(iter(self.step, None))

    def end_session(self) -> None:
        """Learn from the samples of the window that is not complete, at the end of a recording.

        The samples that follow begin another session.
        """
        self._queue.extend(self._windows.finish())
        while self._queue:
            self._learn(self._queue.popleft())
        self._end_of_session = True

    def finish(self) -> None:
        """End the last session, judge the candidate on trial, and take the fit of everything."""
        self.end_session()
        last = self._trial.get("candidate")
        self._judge()
        self._fit()
        if self._trial:
            self._decide(
                True, "fitted to everything up to the end of the recording", last
            )

    def needs(self) -> tuple[Need, ...]:
        """What ordinary work has not shown yet.

        Returns:
            The most important first: what leaves most of the energy of usual work open.
        """
        if self._work is None:
            self._work = reference_work(self.model, self.robot)
        return needs(self.model, self._coverage, self._work)

    def friction(self) -> SessionFriction:
        """Friction of the joints at present [n], over the friction of the model in use."""
        return self._monitor.friction_now()

    def take_changes(self) -> tuple[Change, ...]:
        """Changes of the arm that were found since the last call, in order of time."""
        return self._monitor.take()

    def state(self) -> bytes:
        """Everything needed to continue after a restart, see the argument `state`.

        Returns:
            At most a few megabytes, with a checksum. The state names the arm, and a learner
            of another arm refuses the state.
        """
        pending = self._windows.pending
        unused = list(self._queue)
        if pending:
            unused.append(concatenate(pending))
        # Without gaps, which follow from the clock.
        names = ("time", "columns", "info", "stamp")
        waiting = [{name: getattr(each, name) for name in names} for each in unused]
        trial = {name: record.saved() for name, record in self._trial.items()}
        return encoded(
            {
                "robot": self.robot.name,
                "serial": self.serial,
                "model": document(self.model),
                "prior": document(self._information.prior),
                "numbers": {name: getattr(self, name) for name in _NUMBERS},
                "learned": self._learned,
                "information": self._information.saved(),
                "watch": {
                    "coverage": self._coverage.saved(),
                    "monitor": self._monitor.saved(),
                    "changes": self._monitor.changes,
                },
                "trial": trial or None,
                "attempts": self._attempts,
                "waiting": waiting,
                "window_open": bool(pending),
                "origin": self._windows.origin,
            }
        )

    def _restore(self, saved: dict[str, Any]) -> None:
        """Continue with the values that `state` encoded.

        Raises:
            ValueError, KeyError, TypeError, IndexError: the values are damaged, or of
                another arm.
        """
        if saved["robot"] != self.robot.name:
            raise ValueError(f"it is of a {saved['robot']}, not a {self.robot.name}")
        if None not in (saved["serial"], self.serial) and saved["serial"] != self.serial:
            raise ValueError(f"it is of the arm {saved['serial']}, not {self.serial}")
        self.serial = self.serial or saved["serial"]
        self.model = model_from_document(saved["model"], "state")
        prior = model_from_document(saved["prior"], "state")
        self._information = ArmInformation(self.robot, prior)
        self._information.restore(saved["information"])
        self._coverage.restore(saved["watch"]["coverage"])
        self._monitor = ChangeMonitor(self.model)
        self._monitor.restore(saved["watch"]["monitor"])
        self._monitor.changes = built(list[Change], saved["watch"]["changes"])
        self._learned = built(LearnedTime, saved["learned"])
        for name in _NUMBERS:
            setattr(self, name, saved["numbers"][name])
        for name, record in (saved["trial"] or {}).items():
            self._trial[name] = ModelRecord.restored(record, self.robot)
        self._attempts = deque(built(list[Attempt], saved["attempts"]))
        self._queue.extend(map(_restored_window, saved["waiting"]))
        self._windows.pending = [self._queue.pop()] if saved["window_open"] else []
        self._windows.origin = float(saved["origin"])

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
        first = float(window.time[0])
        last = self._last_time
        if last is not None and (self._end_of_session or begins_session(last, first)):
            self._start_session()
        self._end_of_session = self._end_of_session and last is None
        self._last_time = float(window.time[-1])
        self._info = window.info
        motions = self._information.add(window)
        exchanged = self._information.constants.exchanged()
        if exchanged:
            self._restart(exchanged)
        self._coverage.observe(window)
        before = len(self._monitor.changes)
        self._monitor.observe(window, [(part.motion, part.dynamics) for part in motions])
        changed = {change.what for change in self._monitor.changes[before:]}
        if changed:  # data before a change and after it belong to different sessions
            self._information.start_session(forget="mounting" in changed)
        for record in self._trial.values():
            record.observe(window, motions)
        self._count_work(window)
        if self._learned.seconds >= self._due - _EARLY:
            self._judge_and_fit()

    def _count_work(self, window: Telemetry) -> None:
        """Add a window to the learned time.

        Work is time with brakes released, in a window in which the arm moves at all.
        """
        learned = self._learned
        speed = np.abs(window["actual_qd"]).max(axis=1)
        good = np.isfinite(speed)
        if "robot_mode" in window:
            good &= np.isin(window["robot_mode"], BRAKES_RELEASED)
        if not (good & (speed > MOVING_SPEED)).any():
            return
        learned.samples += len(window)
        learned.seconds += window.duration * float(good.mean())
        if window.stamp is not None:
            learned.since = learned.since or _utc(window.stamp[0])
            learned.until = _utc(window.stamp[-1])

    def _judge_and_fit(self) -> None:
        """Judge the candidate on trial, fit the next one, and schedule the fit after it."""
        learned = self._learned
        done = max(learned.seconds, self._due) - self._restarted + 1e-6  # less rounding
        later = LATER * (done // LATER + 1)
        following = next((time for time in SCHEDULE if time > done), later)
        self._due = self._restarted + following
        self._judge()
        self._use_constants()
        began = process_time()
        self._fit()
        if self.version:
            rest = self.pause * (process_time() - began)
            self._due = max(self._due, learned.seconds + rest)

    def _use_constants(self) -> None:
        """Give the first model the torque constants of the controller, until one is learned."""
        if self.version:
            return
        stated = self._information.constants.known
        model = with_controller_constants(self._information.prior, stated)
        before = np.array([joint.torque_constant for joint in self.model.joints])
        after = np.array([joint.torque_constant for joint in model.joints])
        if np.abs(after / before - 1.0).max() > _SAME_CONSTANT:
            self.model = model
            self._work = None
            self._monitor.use_model(model)

    def _restart(self, exchanged: Sequence[ExchangedJoint]) -> None:
        """Learn exchanged joints anew, from the first model of the arm type."""
        for each in exchanged:
            self._monitor.report_exchange(each)
        joints = [each.joint for each in exchanged]
        model = with_new_joints(self.model, first_model(self.robot), joints)
        model = with_controller_constants(model, self._information.constants.known)
        self._information.restart(model)
        self.version += 1
        self.model = model
        self._work = None
        self._trial = {}
        self._monitor.use_model(model)
        names = ", ".join(model.joints[joint].name for joint in joints)
        self._attempts.append(
            Attempt(
                time=float(self._last_time or 0.0),
                samples=self._learned.samples,
                version=self.version,
                supply_energy_error_percent=None,
                joint_energy_interval_percent=(math.nan,) * self.robot.dof,
                accepted=True,
                reason=f"{names} exchanged: another torque constant is stated",
            )
        )
        # The next candidate is due after the same time as after a first model.
        self._restarted = self._learned.seconds
        self._due = self._restarted + SCHEDULE[0]

    def _start_session(self) -> None:
        """Start another session of the arm, also for the models on trial."""
        self._information.start_session()
        for record in self._trial.values():
            record.start_session()

    def _judge(self) -> None:
        """Decide about the candidate on trial, if there is one."""
        if self._trial:
            self._decide(*verdict(**self._trial))

    def _decide(
        self, accepted: bool, reason: str, shown: ModelRecord | None = None
    ) -> None:
        """Record an attempt, and use the candidate if it is accepted.

        Args:
            accepted: whether the candidate replaces the model in use.
            reason: reason of the decision, a clause.
            shown: record whose errors the attempt states; None for the record of the model
                that is used from now on.
        """
        record = self._trial["candidate" if accepted else "present"]
        if accepted:
            self.version += 1
            self.model = record.model
            self._work = None
            self._monitor.use_model(self.model)
            provenance = {**self.model.provenance, NEEDS: plain(self.needs())}
            self.model = replace(self.model, provenance=provenance)
        record = shown or record
        error = record.supply_energy_error
        intervals = (100.0 * record.joint_intervals).tolist()
        self._attempts.append(
            Attempt(
                time=self._fitted_until,
                samples=self._learned.samples,
                version=self.version,
                supply_energy_error_percent=None if error is None else 100.0 * error,
                joint_energy_interval_percent=tuple(intervals),
                accepted=accepted,
                reason=reason,
            )
        )
        self._trial = {}

    def _fit(self) -> None:
        """Fit a candidate to all data and put it on trial."""
        try:
            candidate = self._information.fit()
        except (IdentificationError, ModelFileError, np.linalg.LinAlgError):
            return  # the next one has more data
        if candidate is None or self._last_time is None:
            return
        self._report_payloads()
        self._fitted_until = self._last_time
        candidate = replace(candidate, provenance=self._provenance())
        self._trial = {
            "present": ModelRecord(self.model, self.robot),
            "candidate": ModelRecord(candidate, self.robot),
        }

    def _report_payloads(self) -> None:
        """Report an undeclared payload of each session once."""
        for name, check in self._information.doubts.items():
            if name in self._noticed:
                continue
            self._noticed = [*self._noticed, name][-MOST_SESSIONS:]
            begin = self._information.begin_of(name)
            stated = check.controller_mass
            self._monitor.report_payload(begin, check.mass - stated, check.std, stated)

    def _provenance(self) -> dict[str, Any]:
        """Provenance of a candidate: the arm, the learned time, and the model before it."""
        learned = self._learned
        previous = self.model
        return {
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


def _utc(stamp: int) -> str:
    """Host time of a sample [ns since 1970] as UTC, ISO 8601, to the second."""
    return datetime.fromtimestamp(stamp / 1e9, timezone.utc).isoformat(timespec="seconds")


def _restored_window(saved: Mapping[str, Any]) -> Telemetry:
    """Samples from their saved times, columns, information and stamps, with their gaps."""
    values = dict(saved["info"])
    for name, value in values.items():
        if isinstance(value, list):
            values[name] = tuple(value)
    info = RecordingInfo(**values)
    time = saved["time"]
    gaps = find_gaps(time, None if info.rate is None else 1.0 / info.rate)
    return Telemetry(time, saved["columns"], info, gaps, saved["stamp"])
