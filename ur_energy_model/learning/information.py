# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The information about an arm: bounded data of its sessions, and the model fitted to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from ur_energy_model.codec import built, plain
from ur_energy_model.errors import IdentificationError
from ur_energy_model.identification.arm_fit import ArmFit, IdentificationOptions
from ur_energy_model.identification.buffers import Buffer, TorqueBuffer
from ur_energy_model.identification.dynamics import (
    DynamicsEstimate,
    RecordingDynamics,
    estimate_dynamics,
)
from ur_energy_model.identification.filtered_motion import (
    FilteredMotion,
    MotionStream,
    ParallelFilter,
    choose_cutoff,
    merged_ranges,
    sample_period,
)
from ur_energy_model.identification.kept_parts import KeptTime, Segment, SegmentSelector
from ur_energy_model.identification.payload_check import PayloadCheck, check_payload
from ur_energy_model.identification.power_fit import PowerData, PowerFit
from ur_energy_model.identification.power_stage import CapacitorFit, with_capacitor
from ur_energy_model.identification.power_structures import power_prior, power_rows
from ur_energy_model.identification.presliding import with_presliding
from ur_energy_model.identification.recording import SessionData
from ur_energy_model.learning.stated_constants import StatedConstants
from ur_energy_model.model.arm_at_hand import with_controller_constants
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.model_file import document, model_from_document
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.robot_modes import BRAKES_RELEASED
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry
from ur_energy_model.typing import Array

MOST_SESSIONS = 30  # largest number of sessions whose data are kept
_TOTAL = 400.0
"""Motion that is kept of all sessions together [s]; it determines the size of a state."""
_LEAST_SHARE = 50.0
_LARGEST_SHARE = 200.0
"""Least and most motion that is kept of one long session [s]: eight long sessions are kept, or more
short ones."""
_MOST_TARGETS = 600  # number of samples of noise-free targets that are kept of a session
_GROWTH = 1.3  # growth of a session after which an undecided setup is estimated again
_LEAST_CHECKED = 20.0  # motion after which the payload of a session is checked [s]
_CHECKED_AGAIN = 2.0
"""Growth of a session after which its payload is checked again: a check takes as long as a fit."""


@dataclass(frozen=True)
class ArmMotion:
    """A filtered motion with one payload, and the dynamics that predict its currents.

    Attributes:
        motion: positions, velocities, accelerations and currents, filtered alike.
        dynamics: links and payload of the arm in that motion.
        narrow: filter that makes modelled currents as narrow as the motion's.
    """

    motion: FilteredMotion
    dynamics: ArmDynamics
    narrow: ParallelFilter


class _Session:
    """Data of a session: motions with the most information, targets, sums of bus power.

    Args:
        name: name of the session.
        power: fit of the power model, which takes the sums of this session.

    Attributes:
        dof: number of joints n.
        motions: parts of the motion with the most information, of bounded length.
        targets: samples of the controller's noise-free target moments.
        info: metadata of the recording, with the session's name as its source.
        cutoff: cut-off frequency of the filter for all motions of the session [Hz]; None
            before it moves.
        samples: number of samples so far.
        seconds: duration of the samples [s].
        warmth: lowest and highest temperature of each joint in motion [n, 2], degC.
        payload: mass [kg] and centre of mass [3], m, that the controller states first.
        payloads: up to two different masses that the controller states [kg].
        begin: controller time of the first sample [s].
    """

    def __init__(self, name: str, power: PowerFit) -> None:
        self.name = name
        self.power = power
        self.dof = power.robot.dof
        self.motions = SegmentSelector(_LARGEST_SHARE)
        self.targets = TorqueBuffer(0.0, _MOST_TARGETS)
        self.info = RecordingInfo(source=name)
        self.cutoff: float | None = None
        self.samples = 0
        self.seconds = 0.0
        self.warmth = np.full((self.dof, 2), np.nan)
        self.payload = np.full(4, np.nan)
        self.payloads: list[float] = []
        self.begin = np.nan

    def add(self, window: Telemetry) -> list[FilteredMotion]:
        """Add a window of usable samples.

        Args:
            window: samples without gaps and without impossible values.

        Returns:
            Its motions, filtered; none before the arm moves.
        """
        self.info = replace(window.info, source=self.name)
        self.begin = self.begin if self.samples else float(window.time[0])
        self.power.accumulate(window)
        self.targets.append(window)
        self.samples += len(window)
        self.seconds += window.duration
        if self.cutoff is None:
            if np.abs(np.nan_to_num(window["actual_qd"])).max() < 0.05:
                return []
            self.cutoff = choose_cutoff(window)
        stream = MotionStream(self.dof, self.cutoff, sample_period(window.time))
        motions = [*stream.process(window), *stream.finish()]
        for motion in motions:
            self.warmth = merged_ranges(self.warmth, motion.temperature_range)
            if not self.motions.parts:
                self.payload = motion.payload[0]
            masses = np.unique(motion.payload[:, 0][np.isfinite(motion.payload[:, 0])])
            all_masses = {*self.payloads, *masses.round(4).tolist()}
            self.payloads = sorted(all_masses)[:2]
        if any(len(motion) > 1 for motion in motions):
            self.motions.add(Segment(self.dof, tuple(motions), None))
        return motions

    def data(self, place: int = 0) -> SessionData:
        """The session in the form that the fits of the identification use, in memory.

        Args:
            place: place of the session in the order of time, from 0.
        """
        motions = Buffer[FilteredMotion](most=0)
        for segment in self.motions.parts:
            for motion in segment.motions:
                motions.append(motion)
        assert self.cutoff is not None
        torque = self.targets
        period = 1.0
        if torque.reference == "none":  # without noise-free targets: the filtered motion
            torque = TorqueBuffer()
            for motion in motions:
                if len(motion) > 1 and np.isfinite(motion.moment).all():
                    period = motion.period
                    torque.append(self._with_moments(motion))
        return SessionData(
            path=Path(self.name),
            info=replace(self.info, gravity=None),
            cutoff=self.cutoff,
            rate=1.0 / period,
            power=self.power,
            samples=self.samples,
            duration=self.seconds,
            warmth=self.warmth,
            controller_payload=self.payload,
            payloads=tuple(self.payloads),
            kept=KeptTime(self.motions.kept, 0.0),
            motions=motions,
            samples_kept=Buffer(),
            _torque=torque,
            began=float(place),
        )

    def _with_moments(self, motion: FilteredMotion) -> Telemetry:
        """Target moments of a filtered motion with their positions, speeds and payload."""
        columns = {
            "target_moment": motion.moment,
            "actual_q": motion.q,
            "actual_qd": motion.qd,
        }
        if np.isfinite(motion.payload).all():
            columns["payload"] = motion.payload[:, 0]
            columns["payload_cog"] = motion.payload[:, 1:]
        return Telemetry(motion.time, columns, self.info)

    _KEPT = (
        "name",
        "cutoff",
        "samples",
        "seconds",
        "warmth",
        "payload",
        "payloads",
        "begin",
    )

    def saved(self) -> dict[str, Any]:
        """Everything that `restored` needs: numbers, text and arrays."""
        return {
            **{name: getattr(self, name) for name in self._KEPT},
            "limit": self.motions.limit,
            "motions": _packed([part.motions for part in self.motions.parts]),
            "targets": self.targets.saved(),
            "power": plain(self.power.data, arrays=True),
        }

    @classmethod
    def restored(cls, saved: Mapping[str, Any], power: PowerFit) -> _Session:
        """A session as it was saved.

        Args:
            saved: what `saved` gave.
            power: fit of the power model, whose arm and known values hold.
        """
        power = PowerFit(power.robot, power.known, built(PowerData, saved["power"]))
        session = cls(saved["name"], power)
        for name in cls._KEPT:
            setattr(session, name, saved[name])
        session.motions.limit = saved["limit"]
        session.motions.parts = [
            Segment(session.dof, motions, None) for motions in _unpacked(saved["motions"])
        ]
        session.targets.restore(saved["targets"])
        return session


class ArmInformation:
    """Data of the last sessions of one arm, and the model that they determine.

    Up to MOST_SESSIONS sessions are kept. Each has a standby power, a friction level and
    a separate payload; links, torque constants, friction laws and the power model are
    common to all.

    Args:
        robot: the arm, n joints.
        prior: the first model; its values are kept where the data do not determine them.

    Attributes:
        constants: torque constants that the controller states.
        doubts: payloads that the currents contradict, by name of the session, from the
            last fit.
    """

    def __init__(self, robot: RobotDescription, prior: EnergyModel) -> None:
        self.robot = robot
        self.prior = prior
        self.constants = StatedConstants(robot, prior.controller_constants)
        self.doubts: dict[str, PayloadCheck] = {}
        self._known_power = power_prior(robot, prior)
        self._number = 0
        self._sessions = list[_Session]()
        self._estimate: DynamicsEstimate | None = None
        # samples of the session in the last estimate of its setup
        self._estimated_from = 0
        # By name of the session: its samples at the last check of payloads, and the result.
        self._checks: dict[str, tuple[int, tuple[PayloadCheck, ...]]] = {}
        self._use(prior, fitted=False)
        self.start_session()

    def _use(self, model: EnergyModel, *, fitted: bool) -> None:
        """Accumulate errors of candidates for the bus capacitor with a model.

        The errors are not linear in the capacity. The next model takes the candidate with
        the least error.

        Args:
            model: model of the arm.
            fitted: whether it was fitted to data; only then the errors count.
        """
        self._model = model
        self._fitted = fitted
        self._capacitor = CapacitorFit(model)

    @property
    def session(self) -> str:
        """Name of the present session."""
        return self._sessions[-1].name

    def begin_of(self, name: str) -> float:
        """Controller time at which a session began [s]."""
        return next(each.begin for each in self._sessions if each.name == name)

    def start_session(self, *, forget: bool = False) -> None:
        """Start another session, with its own standby power, friction level and payload.

        Args:
            forget: whether earlier sessions count no longer, as after a new mounting.
        """
        self._number += 1
        power = PowerFit(self.robot, self._known_power)
        before: list[_Session] = []
        least = _LEAST_SHARE  # least motion that is kept, the new session included [s]
        for session in reversed(self._sessions):
            if forget or not session.samples:
                continue
            least += min(session.motions.kept, _LEAST_SHARE)
            if least > _TOTAL or len(before) == MOST_SESSIONS - 1:
                break
            before.insert(0, session)
        self._sessions = [*before, _Session(f"session {self._number}", power)]
        share = np.clip(_TOTAL / len(self._sessions), _LEAST_SHARE, _LARGEST_SHARE)
        for session in self._sessions:
            session.motions.limit = float(share)
        for session in before:
            session.motions.choose(session.motions.limit)
        self._estimated_from = 0
        self.constants.start_session()

    def restart(self, prior: EnergyModel) -> None:
        """Continue with the present session alone, for instance after an exchange of joints.

        Args:
            prior: the first model from now on.
        """
        self.prior = prior
        self._known_power = power_prior(self.robot, prior)
        session = self._sessions[-1]
        session.power = PowerFit(self.robot, self._known_power, session.power.data)
        self._sessions = [session]
        self._use(prior, fitted=False)
        self._checks = {}

    def saved(self) -> dict[str, Any]:
        """Everything needed to continue with `restore`: numbers, text and arrays."""
        return {
            "sessions": [session.saved() for session in self._sessions],
            "number": self._number,
            "model": document(self._model),
            "learned": self._fitted,
            "capacitor": self._capacitor.errors,
            "constants": self.constants.saved(),
        }

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Continue with saved data.

        Args:
            saved: what `saved` gave.

        Raises:
            KeyError, TypeError, ValueError: the data are damaged.
        """
        power = PowerFit(self.robot, self._known_power)
        self._sessions = [_Session.restored(each, power) for each in saved["sessions"]]
        self._number = saved["number"]
        self._use(model_from_document(saved["model"], "state"), fitted=saved["learned"])
        self._capacitor.errors = saved["capacitor"]
        self.constants.restore(saved["constants"])
        self._decide_setup()

    def add(self, window: Telemetry) -> list[ArmMotion]:
        """Add a window of usable samples to the present session.

        Args:
            window: samples without gaps and without impossible values.

        Returns:
            Its motions, filtered, with the dynamics that hold in them.
        """
        session = self._sessions[-1]
        self.constants.observe(window)
        motions = session.add(window)
        self._decide_setup()
        if self._fitted and session.power.supply_rested:
            self._add_to_capacitor(window)
        if session.cutoff is None:
            return []
        narrow = ParallelFilter(session.cutoff)
        dynamics = self._dynamics()
        with_dynamics = []
        for motion in motions:
            for part, arm in dynamics.parts(motion):
                with_dynamics.append(ArmMotion(part, arm, narrow))
        return with_dynamics

    def _add_to_capacitor(self, window: Telemetry) -> None:
        """Accumulate errors of the bus capacitor over samples with brakes released."""
        rows = power_rows(window)
        if rows is None:
            return
        use = np.isin(rows.mode, BRAKES_RELEASED)
        self._capacitor.start_recording()
        self._capacitor.accumulate(
            rows.time[use], rows.qd[use], rows.current[use], rows.power[use]
        )

    def fit(self) -> EnergyModel | None:
        """The model fitted to all data, as `identify` does; None if no joint has moved yet.

        A session whose payload the currents contradict is fitted with the payload by the
        currents. If that fit fails, such sessions are left out.

        Raises:
            IdentificationError: currents contradict the torques.
            ModelFileError: the fit has values that no arm can have.
        """
        used = [session for session in self._sessions if session.motions.parts]
        if not used:
            return None
        self.doubts = {}
        try:
            arm, found = self._fit_of(used)
        except IdentificationError:
            trusted = [session for session in used if session.name not in self.doubts]
            if len(trusted) in (0, len(used)):
                raise
            arm, found = self._fit_of(trusted)
        names = {session.name for session in used}
        for name in set(self._checks) - names:
            del self._checks[name]
        if arm.body.estimate is not None:
            estimate = self._of_this_session(arm.body.estimate)
            self._estimate = estimate
            found = replace(
                found, setup=estimate.setup, setup_source=estimate.setup_source
            )
        errors = self._capacitor.errors
        if not self._fitted:
            errors = np.zeros_like(errors)
        found = with_capacitor(found, errors)
        found = with_presliding(found, arm.fitted, arm.dynamics())
        found = replace(found, wall=self.prior.wall)
        # Rounded as in a file, so that a restart from the file changes nothing.
        model = model_from_document(document(found), "learned model")
        self._use(model, fitted=True)
        return model

    def _fit_of(self, used: list[_Session]) -> tuple[ArmFit, EnergyModel]:
        """The fit of these sessions and its model; `doubts` are set even if the fit fails.

        Raises:
            IdentificationError: currents contradict the torques.
        """
        options = IdentificationOptions()
        stated = self.constants.known
        data = [each.data(place) for place, each in enumerate(used)]
        data[-1] = replace(data[-1], constants=stated)  # of all sessions
        known = with_controller_constants(self.prior, stated)
        arm = ArmFit(self.robot, data, (), options, known=known)

        def check(model: EnergyModel) -> list[PayloadCheck]:
            """Payload checks of all sessions; the earlier result for sessions that hardly grew."""
            found: list[PayloadCheck] = []
            for session, given, own in zip(used, arm.given, arm.compared(), strict=True):
                samples, checks = self._checks.get(session.name, (0, ()))
                grown = session.samples >= _CHECKED_AGAIN * samples
                enough = session.motions.kept >= _LEAST_CHECKED
                if enough and (own.carried or grown):
                    checks = check_payload(model, arm.body.robot, given, own.alone())
                    if own.carried is None:
                        self._checks[session.name] = (session.samples, checks)
                found += checks
            return found

        try:
            return arm, arm.checked_fit(check)[0].model
        finally:
            self.doubts |= arm.contradicted

    def _decide_setup(self) -> None:
        """Estimate mounting and payload of the session as its samples grow, until decided."""
        session = self._sessions[-1]
        enough = max(1, _GROWTH * self._estimated_from)
        if session.cutoff is None or session.samples < enough:
            return
        if self._estimate is not None:
            for entry in self._estimate.recordings:
                if entry.source == session.name and entry.setup_source == "estimated":
                    return
        self._estimated_from = session.samples
        data = session.data()
        if data.torque_reference == "none":
            return
        try:
            found = estimate_dynamics(data.torque_telemetry(), self.robot)
        except IdentificationError:
            return
        self._estimate = self._of_this_session(found)

    def _of_this_session(self, estimate: DynamicsEstimate) -> DynamicsEstimate:
        """An estimate with the setup of the present session, if the session has one."""
        own = [entry for entry in estimate.recordings if entry.source == self.session]
        if not own:
            return estimate
        longest = max(own, key=lambda entry: entry.samples)
        return replace(estimate, setup=longest.setup, setup_source=longest.setup_source)

    def _dynamics(self) -> RecordingDynamics:
        """Dynamics of the arm in this session."""
        info = self._sessions[-1].info
        estimate = self._estimate
        if estimate is None:
            return RecordingDynamics(self.robot, info, None, None, self.prior.setup)
        info = replace(info, gravity=None)
        return RecordingDynamics(self.robot, info, estimate, None, estimate.setup)


# Filtered motions are saved with two bytes per value: 16-bit numbers over the range of each
# column, whose steps are far below the noise of filtered measurements. The differences of
# consecutive numbers are stored, since they compress better.

_CHANNELS = ("q", "qd", "qdd", "current", "moment")  # columns with 16-bit numbers
_STEPS = 65535  # largest 16-bit number


def _packed(segments: Sequence[Sequence[FilteredMotion]]) -> dict[str, Any]:
    """Motions of segments as arrays, for `_unpacked`."""
    motions = list(chain.from_iterable(segments))
    if not motions:
        return {"segments": []}
    packed: dict[str, Any] = {
        "segments": [len(segment) for segment in segments],
        "lengths": np.array([len(motion) for motion in motions]),
        "time": np.array([motion.time[[0, -1]] for motion in motions]),
    }
    for name in ("temperature", "payload"):
        values = np.concatenate([getattr(motion, name) for motion in motions])
        packed[name] = values.astype(np.float32)
    for name in _CHANNELS:
        values = np.concatenate([getattr(motion, name) for motion in motions])
        low = np.fmin.reduce(values)
        step = np.maximum(np.fmax.reduce(values) - low, 1e-12) / _STEPS
        if not np.isfinite(values).all():  # not recorded, or not in all of the session
            low = np.full_like(low, np.nan)
            step = np.ones_like(step)
            values = values[:0]
        codes = np.rint((values - low) / step).astype(np.uint16)
        differences = np.diff(codes.T, prepend=np.uint16(0))
        packed[name] = {"low": low, "step": step, "codes": differences}
    return packed


def _unpacked(packed: Mapping[str, Any]) -> Iterator[tuple[FilteredMotion, ...]]:
    """Motions of each segment, from what `_packed` gave."""
    if not packed["segments"]:
        return
    ends = np.cumsum(packed["lengths"])
    channels: dict[str, Array] = {}
    for name in _CHANNELS:
        low = packed[name]["low"]
        step = packed[name]["step"]
        codes = np.cumsum(packed[name]["codes"], axis=1, dtype=np.uint16).T
        codes = codes if len(codes) else np.zeros((ends[-1], len(low)))
        channels[name] = low + step * codes
    for name in ("temperature", "payload"):
        channels[name] = packed[name].astype(float)
    motions = []
    start = 0
    for (first, last), end in zip(packed["time"].tolist(), ends.tolist(), strict=True):
        columns = {name: values[start:end] for name, values in channels.items()}
        time = np.linspace(first, last, end - start)
        motions.append(FilteredMotion(time=time, **columns))
        start = end
    remaining = iter(motions)
    for count in packed["segments"]:
        yield tuple(islice(remaining, count))
