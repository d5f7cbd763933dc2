"""Identification of an arm: from bags to a model with its metrics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ur_energy_model.energy.recording_checks import serials
from ur_energy_model.identification.arm_prior import OF_TYPE, ArmPrior
from ur_energy_model.identification.assembly import (
    BodyResults,
    assemble,
    fit_drives,
    recorded_provenance,
)
from ur_energy_model.identification.dynamics.dynamics_estimate import DynamicsEstimate
from ur_energy_model.identification.dynamics.dynamics_stage import (
    estimate_setups,
    inertia_from_torque,
)
from ur_energy_model.identification.dynamics.mounting_search import FoundMounting, find_mounting
from ur_energy_model.identification.dynamics.recording_dynamics import RecordingDynamics
from ur_energy_model.identification.dynamics.reflected_inertia import InertiaEstimate
from ur_energy_model.identification.dynamics.stated_setup import StatedSetup
from ur_energy_model.identification.evaluation.evaluation import Metrics
from ur_energy_model.identification.friction.current_stage import fit_currents, with_presliding
from ur_energy_model.identification.friction.joint_estimate import JointEstimate
from ur_energy_model.identification.friction.law_selection import AUTO
from ur_energy_model.identification.friction.torque_constants import with_load_error
from ur_energy_model.identification.identifiability_warnings import identifiability_warnings
from ur_energy_model.identification.long_recordings.part_pool import KeptTime
from ur_energy_model.identification.long_recordings.used_time import used_time_notes
from ur_energy_model.identification.many_recordings import ManyRecordings, longest_first
from ur_energy_model.identification.payload.payload_check import (
    IDENTIFIED,
    PayloadCheck,
    fit_with_payload,
)
from ur_energy_model.identification.power.power_fit_result import PowerFitResult
from ur_energy_model.identification.power.power_stage import with_capacitor_energy
from ur_energy_model.identification.quality.recording_quality import MOTION_WORDS
from ur_energy_model.identification.recording import Recording
from ur_energy_model.many_bags import BagResult, ForEachBag
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription, load_robot
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.telemetry.arm_identity import same_serial
from ur_energy_model.typing import Progress


@dataclass(frozen=True)
class IdentificationOptions:
    """What to identify, and what the user states.

    Attributes:
        friction: name of a friction law, or "auto" to choose one per joint.
        power_model: "physical", "ecbot" or "catalogue" (Clochiatti et al. 2024, eq. 23).
        setup: mounting and payload as stated by the user, a prior for the estimate.
        payload: actually on the flange, if the controller was told another one; IDENTIFIED to find
            it from the currents; None to use the one in target_moment.
        identify_tensors: identify the link tensors instead of using the robot file's.
        prior: what other arms of a fleet tell.
    """

    friction: str = AUTO
    power_model: str = "physical"
    setup: Setup | None = None
    payload: Payload | str | None = None
    identify_tensors: bool = False
    prior: ArmPrior = OF_TYPE


@dataclass(frozen=True)
class Identification:
    """Result of `identify`.

    Attributes:
        robot: the arm as its robot file describes it.
        model: ready to save.
        joints: current stage per joint (comparison of laws, sources).
        power: power stage.
        setups: setup stage, None where no target_moment was recorded.
        fit, validation: metrics.
        warnings: for the user, one line each.
        payload_checks: payload that the currents of each recording show.
        failed: bags that were left out, with reasons.
        notes: how much of long recordings was used, one line each.
    """

    robot: RobotDescription
    model: EnergyModel
    joints: tuple[JointEstimate, ...]
    power: PowerFitResult
    setups: DynamicsEstimate | None
    fit: tuple[Metrics, ...]
    validation: tuple[Metrics, ...]
    warnings: tuple[str, ...]
    payload_checks: tuple[PayloadCheck, ...] = ()
    failed: tuple[BagResult[Any], ...] = ()
    notes: tuple[str, ...] = ()


def identify(
    bags: Sequence[str | Path],
    robot: RobotDescription | str,
    options: IdentificationOptions | None = None,
    *,
    validate: Sequence[str | Path] = (),
    progress: Progress | None = None,
    each: ForEachBag | None = None,
) -> Identification:
    """Identify an arm from one or more bags; memory does not grow with their length.

    The model depends neither on the order of the bags nor on what reads them.

    Args:
        bags: recordings to fit, together.
        robot: description or name of the arm.
        options: the defaults if None.
        validate: held-out recordings, for metrics only.
        progress: called with fraction (NaN if unknown) and text.
        each: reads and compares bags, leaving out those that fail; if None this is done here, and
            a bag that fails is an error.

    Raises:
        UrEnergyError: unusable input, with place and remedy.
    """
    options = options or IdentificationOptions()
    described = load_robot(robot) if isinstance(robot, str) else robot
    with ExitStack() as opened:
        work, kept = ManyRecordings(each, progress), KeptTime.of_each(len(bags))
        fitted = work.read([Path(bag) for bag in bags], described, opened, kept)
        held_out = work.read([Path(bag) for bag in validate], described, opened)
        arm = _identify_rigid_body(described, fitted, held_out, options)
        drives, payload, checks = _identify_drives(arm, options, work)
        arm = arm.carrying(payload)
        model = with_capacitor_energy(drives.model, arm.fitted)
        model = with_presliding(model, arm.fitted, arm.fitted_dynamics)
        fit, validation = _measure(model, arm, work)
        model = replace(
            model,
            fit=tuple(entry.for_model_file() for entry in fit),
            validation=tuple(entry.for_model_file() for entry in validation),
        )
        warnings = (
            *_warnings(model, arm, options, payload, checks),
            *_validation_warnings(model, arm.held_out, validation),
        )
    return Identification(
        robot=described,
        model=model,
        joints=drives.joints,
        power=drives.power,
        setups=arm.estimate,
        fit=fit,
        validation=validation,
        warnings=warnings,
        payload_checks=checks,
        failed=tuple(work.failed),
        notes=tuple(used_time_notes(fitted)),
    )


@dataclass(frozen=True)
class _RigidBody:
    """Mounting, payload and inertias of the arm in every recording.

    Attributes:
        robot: the arm, with identified link tensors where these were asked for.
        given: fitted recordings in the order of the user.
        fitted: the same in the order in which they are fitted.
        held_out: further recordings.
        dynamics: of the recordings, fitted ones first.
        estimate: from target_moment, None where it was not recorded.
        stated: setup of the model where nothing was estimated.
        mounting: from currents, None where target_moment was recorded.
        inertia: reflected inertias before the currents are fitted.
    """

    robot: RobotDescription
    given: list[Recording]
    fitted: list[Recording]
    held_out: list[Recording]
    dynamics: list[RecordingDynamics]
    estimate: DynamicsEstimate | None
    stated: StatedSetup
    mounting: FoundMounting | None
    inertia: InertiaEstimate

    @property
    def fitted_dynamics(self) -> list[RecordingDynamics]:
        """Dynamics of the fitted recordings."""
        return self.dynamics[: len(self.fitted)]

    @property
    def compared(self) -> list[tuple[Recording, RecordingDynamics]]:
        """Recordings and their dynamics, in the order of the user, held-out ones last."""
        order = [*map(self.fitted.index, self.given), *range(len(self.fitted), len(self.dynamics))]
        recordings = (*self.fitted, *self.held_out)
        return [(recordings[k], self.dynamics[k]) for k in order]

    def carrying(self, payload: Payload | None) -> _RigidBody:
        """The arm with a payload other than the controller was told; None keeps that one."""
        return replace(self, dynamics=[replace(own, carried=payload) for own in self.dynamics])


@dataclass(frozen=True)
class _Drives:
    """What currents and bus power show with one payload."""

    model: EnergyModel
    joints: tuple[JointEstimate, ...]
    power: PowerFitResult


def _identify_rigid_body(
    robot: RobotDescription,
    given: list[Recording],
    held_out: list[Recording],
    options: IdentificationOptions,
) -> _RigidBody:
    """Setups and reflected inertias from target_moment; without it, mounting from currents."""
    fitted = longest_first(given)
    recordings = [*fitted, *held_out]
    robot, estimate = estimate_setups(
        recordings, fitted, robot, options.setup, options.identify_tensors
    )
    fallback = None if estimate is None else estimate.setup
    known = (estimate, options.setup, fallback)
    dynamics = [RecordingDynamics(robot, recording.info, *known) for recording in recordings]
    stated = dynamics[0].stated(fitted[0].told_payload)
    mounting = find_mounting(robot, fitted, stated.setup) if estimate is None else None
    if mounting is not None and mounting.contradicted and options.setup is None:
        stated = StatedSetup(mounting.setup, "estimated")
        dynamics = [replace(own, configured=mounting.setup) for own in dynamics]
    inertia = inertia_from_torque(robot, estimate, options.prior.inertia)
    return _RigidBody(robot, given, fitted, held_out, dynamics, estimate, stated, mounting, inertia)


def _identify_drives(
    arm: _RigidBody, options: IdentificationOptions, work: ManyRecordings
) -> tuple[_Drives, Payload | None, tuple[PayloadCheck, ...]]:
    """Drives, the payload used instead of the told one, and the payload checks."""

    def fit(payload: Payload | None) -> _Drives:
        return _fit_drives(arm.carrying(payload), payload, options)

    def check(found: _Drives, payload: Payload | None) -> tuple[PayloadCheck, ...]:
        fitted = arm.carrying(payload).compared[: len(arm.given)]
        return work.check_payloads(found.model, arm.robot, fitted)

    return fit_with_payload(fit, check, options.payload)


def _fit_drives(
    arm: _RigidBody, payload: Payload | None, options: IdentificationOptions
) -> _Drives:
    """Torque constants and friction from currents, then the power model from bus power."""
    joints = fit_currents(arm.fitted, arm.fitted_dynamics, arm.robot, arm.inertia, options.friction)
    places = [arm.given.index(recording) for recording in arm.fitted]
    joints = tuple(joint.in_order(places) for joint in joints)
    if arm.mounting is not None:
        joints = with_load_error(joints, arm.mounting.load_error)
    body = BodyResults(arm.robot, arm.estimate, arm.stated, arm.inertia)
    powers = [recording.power for recording in arm.fitted]
    results = fit_drives(body, joints, powers, options.power_model, options.prior.torque_constant)
    model = assemble(results, recorded_provenance(arm.given, results.power))
    model = model if payload is None else model.with_payload(payload)
    return _Drives(model, results.joints, results.power)


def _measure(
    model: EnergyModel, arm: _RigidBody, work: ManyRecordings
) -> tuple[tuple[Metrics, ...], tuple[Metrics, ...]]:
    """Metrics of the fitted and of the held-out recordings.

    A single fitted recording defines the model's session; all others are anchored on their own.
    """
    count = len(arm.fitted)
    anchored = [k >= count or count > 1 for k in range(len(arm.dynamics))]
    metrics = work.measure(model, arm.compared, anchored)
    fit, validation = (
        tuple(entry for entry in part if entry) for part in (metrics[:count], metrics[count:])
    )
    return fit, validation


def _validation_warnings(
    model: EnergyModel, held_out: Sequence[Recording], metrics: Sequence[Metrics]
) -> Iterator[str]:
    """Where recordings to validate with are of another arm, or repeat a fitted motion."""
    for recording in held_out:
        known = serials(model, recording.info)
        if same_serial(*known.values()) is False:
            yield (
                f"{recording.path} is of arm {known['recording']}, the fitted recordings of arm "
                f"{known['model']}: it does not validate the model"
            )
    for entry in metrics:
        if entry.motion in ("fitted", "same motion again"):
            yield f"{entry.bag}: {MOTION_WORDS[entry.motion]}"


def _warnings(
    model: EnergyModel,
    arm: _RigidBody,
    options: IdentificationOptions,
    payload: Payload | None,
    checks: Sequence[PayloadCheck],
) -> tuple[str, ...]:
    """Lines for the user, each once."""
    lines = [line for recording in arm.given for line in recording.quality.warnings]
    lines += [] if arm.estimate is None else arm.estimate.warnings
    lines += [line for entry in checks for line in entry.warnings]
    if options.payload == IDENTIFIED and payload is not None:
        lines.append(f"the payload identified, {payload.mass:.2f} kg, is used for the currents")
    torque = arm.estimate is not None
    lines += identifiability_warnings(model, arm.robot, torque=torque, mounting=arm.mounting)
    return tuple(dict.fromkeys(lines))
