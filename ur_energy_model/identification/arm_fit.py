# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The fit of one arm to its recordings: mounting and payloads, then the drives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ur_energy_model.identification.assembly import (
    OF_TYPE,
    ArmPrior,
    BodyResults,
    FittedDrives,
    fit_drives,
)
from ur_energy_model.identification.dynamics import (
    RecordingDynamics,
    estimate_setups,
    inertia_from_torque,
)
from ur_energy_model.identification.friction_data import AUTO
from ur_energy_model.identification.friction_fit import (
    CurrentRegression,
    current_regression,
)
from ur_energy_model.identification.joint_meter import JointMeter, meter_of
from ur_energy_model.identification.mounting_search import FoundMounting, find_mounting
from ur_energy_model.identification.null_models import (
    KEY,
    fit_current_null,
    fit_power_null,
)
from ur_energy_model.identification.payload_check import PayloadCheck, check_together
from ur_energy_model.identification.power_structures import PHYSICAL, JointPowerEvidence
from ur_energy_model.identification.recording import SessionData
from ur_energy_model.identification.target_moment import SetupPrior
from ur_energy_model.identification.torque_constants import JointEstimate
from ur_energy_model.model.controller_constants import ControllerConstants
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.typing import Array


@dataclass(frozen=True)
class IdentificationOptions:
    """Scope of an identification, and statements of the user.

    Attributes:
        friction: name of a friction law, or "auto" to choose one per joint.
        power_model: name of the power model: "physical", or the name of a model that a
            room adds.
        setup: mounting and payload as stated, which are a prior for the estimate; None for
            no statement.
        payload: payload on the flange, if another one is set in the controller; None for
            the one in target_moment, or the one identified where the currents contradict
            that.
        identify_tensors: whether link tensors are identified; else the robot file has them.
        prior: prior from other arms of a fleet.
        same_arm: whether the recordings are of one arm, whatever the serial numbers are.
    """

    friction: str = AUTO
    power_model: str = PHYSICAL
    setup: Setup | None = None
    payload: Payload | None = None
    identify_tensors: bool = False
    prior: ArmPrior = OF_TYPE
    same_arm: bool = False


class CheckedFit(NamedTuple):
    """The drives of an arm, and the payloads that were checked for them.

    Attributes:
        drives: drives as fitted with the payloads that the currents show.
        checks: payload of each fitted recording that shows it, compared with the
            currents.
        meter: joint voltages of the fitted recordings with the model of `drives`; None
            where they were not read with this model.
    """

    drives: FittedDrives
    checks: list[PayloadCheck]
    meter: JointMeter | None


_MOST_PAYLOADS = 3  # number of rounds in which payloads and drives are identified in turn


class ArmFit:
    """Mounting, payload and inertias of the arm in every recording, and the fit of its drives.

    The mounting follows from target_moment, or from the currents where target_moment was
    not recorded. The results do not depend on the order in which the bags are given:
    recordings are ordered by length, the longest first, and recordings of equal length by
    their hash. The order matters because it changes the rounding of sums and the blocks of
    cross-validation, and because some choices are made by the first recording alone.

    Args:
        robot: the arm as its robot file describes it.
        given: recordings to fit.
        held_out: further recordings whose mounting and payload are needed.
        options: what to identify, and what the user states.
        known: an earlier model of the arm, for `CurrentRegression` and for the mounting
            that no recording shows; None without one.

    Attributes:
        fitted: the given recordings in the order of the fit.
        body: setups, inertias and link tensors.
        mounting: mounting as found in the currents; None with target_moment.
        contradicted: payloads that the currents contradict, with the identified ones that
            replace them, by the path of the recording.
        null: null model of the currents; None beside an earlier model.
        power_null: coefficients of the null model of the power; None without bus power.
        stated: torque constants that the controller states in any of the recordings.
    """

    def __init__(
        self,
        robot: RobotDescription,
        given: Sequence[SessionData],
        held_out: Sequence[SessionData],
        options: IdentificationOptions,
        known: EnergyModel | None = None,
    ) -> None:
        self.given = given
        self.options = options
        self._known = known
        self.fitted = sorted(given, key=lambda recording: recording.rank)
        self._recordings = [*self.fitted, *held_out]
        robot, estimate = estimate_setups(
            self._recordings, self.fitted, robot, options.setup, options.identify_tensors
        )
        fallback = None if known is None else known.setup
        if estimate is not None:
            fallback = estimate.setup
        dynamics = [
            RecordingDynamics(robot, recording.info, estimate, options.setup, fallback)
            for recording in self._recordings
        ]
        stated = dynamics[0].stated(self.fitted[0].controller_payload)
        self.mounting: FoundMounting | None = None
        if estimate is None:
            self.mounting = find_mounting(robot, self.fitted, stated.setup)
        if self.mounting and self.mounting.contradicted and options.setup is None:
            stated = SetupPrior(self.mounting.setup, "estimated")
            dynamics = [replace(own, configured=self.mounting.setup) for own in dynamics]
        self._dynamics = dynamics
        self._carried: dict[SessionData, Payload | None]
        self._carried = dict.fromkeys(self._recordings, options.payload)
        self.contradicted: dict[str, PayloadCheck] = {}
        inertia = inertia_from_torque(robot, estimate, options.prior.inertia)
        self.body = BodyResults(robot, estimate, stated, inertia)
        # Learning compares with the model in use instead.
        self.null = fit_current_null(self.fitted) if known is None else None
        self.power_null = fit_power_null(self.fitted, robot)
        found = [each.constants for each in self.fitted if each.constants is not None]
        self.stated = ControllerConstants.joined(found, robot.dof)

    def checked_fit(
        self, check: Callable[[EnergyModel], Sequence[PayloadCheck]]
    ) -> CheckedFit:
        """The drives, and the payloads as the currents of each recording show them.

        Friction and torque constants depend on the payload, and the payload depends on
        them: the two are identified in turn, a few times. Meanwhile the arm has the
        controller's inertias. Fitted inertias would explain the currents for accelerating
        an unknown payload.

        Args:
            check: `check_payload` of every fitted recording with a model.
        """
        is_free = self.options.payload is None
        checks: list[PayloadCheck] = []
        for _ in range(1 + _MOST_PAYLOADS if is_free else 1):
            self._carry(checks)
            currents = self._currents()
            alone = check(self._drives(currents.fit(own_inertia=False)).model)
            checks = check_together(alone, self.contradicted)
            if not any(entry.contradicts for entry in checks):
                break
        joints = currents.fit()
        drives = self._drives(joints)
        if drives.model.bus.kind != PHYSICAL:
            return CheckedFit(drives, checks, None)
        meter = meter_of(drives.model, self.fitted)
        evidence = meter.evidence()
        if evidence is None:
            return CheckedFit(drives, checks, meter)
        return CheckedFit(self._drives(joints, evidence), checks, None)

    def _carry(self, checks: Sequence[PayloadCheck]) -> None:
        """Replace payloads that the currents contradict by the identified ones.

        If a single recording is fitted, its payload is used for the held-out recordings
        with the same setting in the controller, too.
        """
        first = self.fitted[0].controller_payload
        is_single = len(self.given) == 1
        for check in checks:
            if not check.contradicts:
                continue
            earlier = self.contradicted.pop(check.source, check)
            doubt = replace(check, controller_mass=earlier.controller_mass)
            payload = None
            if doubt.contradicts:
                self.contradicted[check.source] = doubt
                payload = check.payload
            for recording in self._recordings:
                same_setting = np.array_equal(
                    recording.controller_payload, first, equal_nan=True
                )
                is_checked = str(recording.path) == check.source
                if is_checked or (is_single and same_setting):
                    self._carried[recording] = payload

    def dynamics(self) -> list[RecordingDynamics]:
        """Dynamics of the fitted recordings in the order of the fit, then of those held out."""
        pairs = zip(self._recordings, self._dynamics, strict=True)
        return [
            replace(own, carried=self._carried[recording]) for recording, own in pairs
        ]

    def compared(self) -> list[RecordingDynamics]:
        """Dynamics of the given recordings in the order of the user, then of those held out."""
        dynamics = self.dynamics()
        places = [self.fitted.index(recording) for recording in self.given]
        of_given = [dynamics[place] for place in places]
        return [*of_given, *dynamics[len(self.fitted) :]]

    def _currents(self) -> CurrentRegression:
        """Regression of the currents of the fitted recordings, with the payloads carried."""
        body = self.body
        law = self.options.friction
        dynamics = self.dynamics()[: len(self.fitted)]
        return current_regression(
            self.fitted, dynamics, body.robot, body.inertia, law, self._known
        )

    def _drives(
        self, joints: tuple[JointEstimate, ...], meter: JointPowerEvidence | None = None
    ) -> FittedDrives:
        """The model of the joints as fitted to the currents, and of the power at the supply.

        Args:
            joints: results of the current regression.
            meter: what the joint voltages show; None for nothing.
        """
        if self.null is not None:
            joints = _beside_null_model(joints, self.null.held_out)
        places = [self.given.index(recording) for recording in self.fitted]
        joints = tuple(joint.in_order(places) for joint in joints)
        if self.mounting is not None:
            errors = self.mounting.load_error.tolist()
            joints = tuple(
                replace(joint, load_error=error)
                for joint, error in zip(joints, errors, strict=True)
            )
        drives = fit_drives(
            self.body,
            joints,
            [recording.power for recording in self.fitted],
            self.options.power_model,
            self.options.prior.torque_constant,
            self._order(),
            self.stated,
            meter=meter,
        )
        model = drives.model
        payload = self._carried[self.fitted[0]]
        if payload is not None:
            model = model.with_payload(payload)
        bags = [{"duration": recording.duration} for recording in self.given]
        provenance = {"bags": bags, **model.provenance}
        return drives._replace(model=replace(model, provenance=provenance))

    def _order(self) -> list[int] | None:
        """Numbers of the given recordings in order of time; None where it is not known."""
        began = [recording.began for recording in self.given]
        if None in began:
            return None
        return [int(number) for number in np.argsort(np.array(began), kind="stable")]

    @property
    def null_models(self) -> dict[str, Any]:
        """The null models of currents and power, for the provenance of a model."""
        found = {}
        if self.null is not None:
            found["current"] = self.null.coefficients
        if self.power_null is not None:
            found["power"] = self.power_null
        return {KEY: found}


def _beside_null_model(
    joints: Sequence[JointEstimate], held_out: Array
) -> tuple[JointEstimate, ...]:
    """The joints with the error of the null model in their comparison and reason.

    Args:
        joints: results of the current regression [n].
        held_out: held-out errors of the null model [n], A; NaN where unknown.
    """
    compared = []
    for joint, error in zip(joints, held_out.tolist(), strict=True):
        if np.isfinite(error):
            joint = replace(
                joint,
                comparison={**joint.comparison, "null": error},
                reason=f"{joint.reason}; the null model has {error:.4g} A",
            )
        compared.append(joint)
    return tuple(compared)
