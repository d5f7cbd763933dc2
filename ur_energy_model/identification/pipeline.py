"""Identification of an arm: from bags to a model with its metrics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.energy.telemetry_checks import serials
from ur_energy_model.identification.assembly import (
    OF_TYPE,
    ArmPrior,
    BodyResults,
    ManyRecordings,
    assemble,
    fit_drives,
    longest_first,
    recorded_provenance,
)
from ur_energy_model.identification.dynamics import (
    DynamicsEstimate,
    RecordingDynamics,
    estimate_setups,
    inertia_from_torque,
)
from ur_energy_model.identification.evaluation import Metrics
from ur_energy_model.identification.friction_data import AUTO
from ur_energy_model.identification.friction_stages import fit_currents, with_presliding
from ur_energy_model.identification.mounting_search import FoundMounting, find_mounting
from ur_energy_model.identification.parts import KeptTime
from ur_energy_model.identification.payload import IDENTIFIED, PayloadCheck, fit_with_payload
from ur_energy_model.identification.power_fit import PowerFitResult
from ur_energy_model.identification.power_stage import with_capacitor_energy
from ur_energy_model.identification.power_structures import expected_resistance
from ur_energy_model.identification.quality import MOTION_WORDS
from ur_energy_model.identification.recording import Recording
from ur_energy_model.identification.reflected_inertia import InertiaEstimate
from ur_energy_model.identification.target_moment import SetupPrior
from ur_energy_model.identification.torque_constants import JointEstimate, with_load_error
from ur_energy_model.many_bags import BagExecutor, BagResult
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription, load_robot
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.telemetry.samples import same_serial
from ur_energy_model.typing import Mask, Progress

# Warnings about what the recordings do not determine: priors used in place of data.

_VAGUE = 0.3
"""Relative standard deviation from which a constant counts as not identifiable."""
_UNEXPLAINED = 0.8
"""R2 of a current in motion below which the stated setup is probably wrong."""
_MOUNTINGS = {
    "default": "are assumed, upright and without payload",
    "rtde": "are assumed upright and as recorded",
    "given": "are as stated",
}


def identifiability_warnings(
    model: EnergyModel, robot: RobotDescription, *, torque: bool, mounting: FoundMounting | None
) -> Iterator[str]:
    """Lines for the user, one for each quantity that these recordings do not determine.

    Args:
        model: with the metrics of the fitted recordings.
        robot: its arm.
        torque: whether target_moment was recorded.
        mounting: searched in the currents; None where it was not.
    """
    if mounting is not None and mounting.contradicted:
        vector = ", ".join(f"{value:.2f}" for value in mounting.setup.gravity)
        yield (
            "no target_moment recorded; currents show the base tilted by "
            f"{np.degrees(mounting.tilt):.0f} degrees from what was stated or assumed (gravity "
            f"{vector} m/s^2, payload {mounting.setup.payload.mass:.1f} kg); "
            + (
                "the setup stated with --gravity and --payload is used all the same: check it"
                if model.setup_source == "given"
                else "that is used; state what you know with --gravity and --payload"
            )
        )
    elif not torque:
        yield (
            "no target_moment recorded: mounting and payload "
            f"{_MOUNTINGS.get(model.setup_source, model.setup_source)} (others: --gravity and "
            "--payload), motor inertias come from currents or priors"
        )
    if not torque:
        yield from _poor_fits(model)
    yield from _inertias(model, robot)
    vague = np.array([j.std["torque_constant"] > _VAGUE * j.torque_constant for j in model.joints])
    if vague.any():
        yield (
            f"{_names(model, vague)}: torque constant not identifiable from these recordings (the "
            "links need too little torque); record target_moment or add it to the robot file"
        )
    if model.bus.source != "bus_power":
        yield from _supply(robot)


def _inertias(model: EnergyModel, robot: RobotDescription) -> Iterator[str]:
    prior = np.array([joint.source["reflected_inertia"] == "prior" for joint in model.joints])
    nominal = np.isfinite(robot.reflected_inertia)
    if (prior & nominal).any():
        yield (
            f"{_names(model, prior & nominal)}: motor inertia not identifiable; the robot "
            f"file's value is used, {_intervals(model, prior & nominal)}"
        )
    if (prior & ~nominal).any():
        yield (
            f"{_names(model, prior & ~nominal)}: motor inertia not identifiable and not in the "
            f"robot file; a typical one is used, {_intervals(model, prior & ~nominal)}"
        )


def _supply(robot: RobotDescription) -> Iterator[str]:
    yield (
        "no bus power recorded: winding resistances, driver losses and standby power are priors "
        "(source prior), so electrical energy has wide intervals"
    )
    missing = ~np.isfinite(robot.winding_resistance)
    if missing.any():
        value, spread = expected_resistance(robot)
        share = 100 * CONFIDENCE * float((spread / value)[missing].max())
        yield (
            f"robot file {robot.name} has no winding resistance: typical ones are used, "
            f"± {share:.0f} %"
        )


def _poor_fits(model: EnergyModel) -> Iterator[str]:
    for entry in model.fit:
        rows = entry["current"] or []
        poor = np.array([row["r2"] is not None and row["r2"] < _UNEXPLAINED for row in rows])
        if poor.any():
            yield (
                f"{entry['bag']}: {_names(model, poor)}: the model explains little of the current; "
                "is the arm mounted and loaded as assumed? State both with --gravity and --payload"
            )


def _names(model: EnergyModel, which: Mask | Sequence[bool]) -> str:
    return ", ".join(j.name for j, named in zip(model.joints, which, strict=True) if named)


def _intervals(model: EnergyModel, which: Mask) -> str:
    shares = [
        100 * CONFIDENCE * joint.std["reflected_inertia"] / max(joint.reflected_inertia, 1e-9)
        for joint, named in zip(model.joints, which, strict=True)
        if named
    ]
    low, high = min(shares), max(shares)
    return f"± {high:.0f} %" if high - low < 1 else f"± {low:.0f} to {high:.0f} %"


# What a user is told of a long recording: how much of it the fits use.

_MINUTE = 60.0
_WHOLE = 0.99
"""Share of a recording that counts as all of it: steps between its parts are not counted."""


def used_time_notes(recordings: Iterable[Recording]) -> Iterator[str]:
    """A line for each recording that is longer than what the fits use of it."""
    for recording in recordings:
        kept, whole = recording.kept, recording.duration
        if kept is not None and kept.samples < _WHOLE * whole:
            yield (
                f"{recording.path}: uses {_minutes(kept.motions)} of {_minutes(whole)} minutes for "
                f"torque constants and friction, {_minutes(kept.samples)} for the bus capacitor "
                "and the errors of the fit: parts spread over the recording and those with the "
                "most varied motion and temperature; standby and winding losses use all of it"
            )


def _minutes(seconds: float) -> str:
    minutes = seconds / _MINUTE
    return f"{minutes:.0f}" if minutes >= 9.5 else f"{minutes:.1f}"


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
    each: BagExecutor | None = None,
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
    stated: SetupPrior
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
        stated = SetupPrior(mounting.setup, "estimated")
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
