# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The information about an arm: bounded data of its sessions, and the model fitted to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ur_energy_model.errors import IdentificationError
from ur_energy_model.identification.arm_fit import ArmFit, IdentificationOptions
from ur_energy_model.identification.dynamics import (
    DynamicsEstimate,
    RecordingDynamics,
    estimate_dynamics,
)
from ur_energy_model.identification.filtered_motion import (
    FilteredMotion,
    ParallelFilter,
)
from ur_energy_model.identification.payload_check import PayloadCheck, check_payload
from ur_energy_model.identification.power_fit import PowerFit
from ur_energy_model.identification.power_stage import CapacitorFit, with_capacitor
from ur_energy_model.identification.power_structures import power_prior, power_rows
from ur_energy_model.identification.presliding import with_presliding
from ur_energy_model.learning.session import MOST_MOTION, Session
from ur_energy_model.learning.stated_constants import StatedConstants
from ur_energy_model.model.arm_at_hand import with_controller_constants
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.model_file import document, model_from_document
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.robot_modes import BRAKES_RELEASED
from ur_energy_model.telemetry.samples import Telemetry

MOST_SESSIONS = 30  # largest number of sessions whose data are kept
_TOTAL = 400.0
"""Motion that is kept of all sessions together [s]; it determines the size of a state."""
_LEAST_SHARE = 50.0
"""Least motion that is kept of one long session [s]; with MOST_MOTION, two to eight long sessions
are kept, or more short ones."""
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
        self._sessions = list[Session]()
        self._estimate: DynamicsEstimate | None = None
        self._estimated_from = 0
        """Samples of the present session at the last estimate of its setup."""
        self._checks: dict[str, tuple[int, tuple[PayloadCheck, ...]]] = {}
        """Last check of payloads by name of the session: its samples then, and the result."""
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
        before: list[Session] = []
        least = _LEAST_SHARE  # least motion that is kept, the new session included [s]
        for session in reversed(self._sessions):
            if forget or not session.samples:
                continue
            least += min(session.motions.kept, _LEAST_SHARE)
            if least > _TOTAL or len(before) == MOST_SESSIONS - 1:
                break
            before.insert(0, session)
        self._sessions = [*before, Session(f"session {self._number}", power)]
        share = np.clip(_TOTAL / len(self._sessions), _LEAST_SHARE, MOST_MOTION)
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
        self._sessions = [Session.restored(each, power) for each in saved["sessions"]]
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
            Filtered motions of the window, with the dynamics that hold in them.
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

    def _fit_of(self, used: list[Session]) -> tuple[ArmFit, EnergyModel]:
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
        """Estimate mounting and payload of the session again as its samples grow.

        An estimate that the samples of the session determine is final.
        """
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
