"""The whole way from bags to a model.

Order: read and judge every bag once (signals filtered, power accumulated) - setup and reflected
inertia from target_moment - torque constants and friction from current, with the torque of the
actual motion - power at the supply, which tells torque constants more exactly - what the bus keeps
of braking energy, friction at standstill - metrics of the bags fitted and of those held out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.identification.assembly import assemble
from ur_energy_model.identification.comparison import Setups
from ur_energy_model.identification.currents import CurrentFit
from ur_energy_model.identification.evaluation import measure
from ur_energy_model.identification.friction_choice import AUTO, WARMTH
from ur_energy_model.identification.joint_fit import JointFit
from ur_energy_model.identification.metrics import Metrics
from ur_energy_model.identification.payload_check import (
    IDENTIFIED,
    PayloadCheck,
    check_payloads,
    with_payload_found,
)
from ur_energy_model.identification.power import MODEL_ERROR, PowerFit, PowerFitResult
from ur_energy_model.identification.recording import Progress, Recording, read_recording
from ur_energy_model.identification.setup_estimation import SetupEstimate
from ur_energy_model.identification.setups import estimate_setups
from ur_energy_model.identification.signals import NarrowFilter
from ur_energy_model.identification.standstill import StandstillFit
from ur_energy_model.identification.storage import with_storage
from ur_energy_model.identification.torque_constants import with_shared_sizes, with_torque_constant
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription, load_robot
from ur_energy_model.model.setup import Payload, Setup

Array = NDArray[np.float64]

_TOLD = 0.8
"""Bus power tells a torque constant where it narrows its deviation to this share or less."""


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
        payload_checks: payload that the currents of each recording show.
        warnings: for the user, one line each.
    """

    robot: RobotDescription
    model: EnergyModel
    joints: tuple[JointFit, ...]
    power: PowerFitResult
    setups: SetupEstimate | None
    fit: tuple[Metrics, ...]
    validation: tuple[Metrics, ...]
    warnings: tuple[str, ...]
    payload_checks: tuple[PayloadCheck, ...] = ()


def identify(
    bags: Sequence[str | Path],
    robot: RobotDescription | str,
    *,
    validate: Sequence[str | Path] = (),
    friction: str = AUTO,
    power_model: str = "physical",
    setup: Setup | None = None,
    payload: Payload | str | None = None,
    identify_tensors: bool = False,
    progress: Progress | None = None,
) -> Identification:
    """Identify an arm from one or more bags; memory does not grow with their length.

    Args:
        bags: recordings to fit, together.
        robot: description or name of the arm.
        validate: recordings held out, for metrics only.
        friction: name of a friction law, or "auto" to choose per joint.
        power_model: "physical" or "ecbot".
        setup: mounting and payload as the user states them, a prior for the estimate.
        payload: what was really on the flange, where the controller may have been told otherwise,
            or IDENTIFIED to find it from the currents; None believes what target_moment says.
        identify_tensors: identify the link tensors too, in place of the robot file's.
        progress: called with fraction (NaN if unknown) and text.

    Raises:
        UrEnergyError: input that cannot be used, with place and remedy.
    """
    described = load_robot(robot) if isinstance(robot, str) else robot
    with _Readings(described, progress) as read:
        fitted = [read(bag) for bag in bags]
        held_out = [read(bag) for bag in validate]
        for recording in (*fitted, *held_out):
            recording.quality.require_usable()
        arm, estimate = estimate_setups(
            [*fitted, *held_out], fitted, described, setup, identify_tensors
        )
        power = PowerFit(arm)
        for recording in fitted:
            power.merge(recording.power)

        def fitted_with(carried: Payload | None) -> _Fitted:
            joints = _fit_currents(fitted, arm, estimate, setup, friction, carried)
            joints, result = _fit_power(power, power_model, joints)
            model = assemble(arm, estimate, joints, result, fitted, setup)
            return _Fitted(
                model if carried is None else model.with_payload(carried), joints, result
            )

        def check(found: _Fitted, carried: Payload | None) -> tuple[PayloadCheck, ...]:
            return check_payloads(found.model, arm, fitted, estimate, setup, carried)

        found, carried, checks = with_payload_found(fitted_with, check, payload)
        joints, result = found.joints, found.power
        model = with_storage(found.model, fitted)
        model = _fit_standstill(model, fitted, arm, estimate, setup, carried)
        fit, validation = (
            tuple(
                measure(model, recording, Setups(arm, recording.info, estimate, setup, carried))
                for recording in recordings
            )
            for recordings in (fitted, held_out)
        )
    model = replace(
        model,
        fit=tuple(entry.as_json() for entry in fit),
        validation=tuple(entry.as_json() for entry in validation),
    )
    warnings = [w for recording in fitted for w in recording.quality.warnings]
    warnings += [] if estimate is None else list(estimate.warnings)
    warnings += [line for entry in checks for line in entry.warnings]
    if payload == IDENTIFIED and carried is not None:
        warnings.append(f"the payload identified, {carried.mass:.2f} kg, is used for the currents")
    if estimate is None:
        warnings.append(
            "no target_moment recorded: nominal motor inertia, and mounting and payload as stated"
        )
    return Identification(
        described, model, joints, result, estimate, fit, validation,
        tuple(dict.fromkeys(warnings)), checks,
    )  # fmt: skip


@dataclass(frozen=True)
class _Fitted:
    """What currents and bus power give with one payload."""

    model: EnergyModel
    joints: tuple[JointFit, ...]
    power: PowerFitResult


class _Readings:
    """Recordings that are released together."""

    def __init__(self, robot: RobotDescription, progress: Progress | None) -> None:
        self.robot, self.progress = robot, progress
        self._open: list[Recording] = []

    def __call__(self, bag: str | Path) -> Recording:
        self._open.append(read_recording(bag, self.robot, progress=self.progress))
        return self._open[-1]

    def __enter__(self) -> _Readings:
        return self

    def __exit__(self, *_: object) -> None:
        for recording in self._open:
            recording.close()


def _fit_currents(
    recordings: Sequence[Recording], robot: RobotDescription, estimate: SetupEstimate | None,
    configured: Setup | None, friction: str, carried: Payload | None,
) -> tuple[JointFit, ...]:  # fmt: skip
    inertia = robot.reflected_inertia if estimate is None else estimate.reflected_inertia
    low = np.fmin.reduce([recording.warmth[:, 0] for recording in recordings])
    high = np.fmax.reduce([recording.warmth[:, 1] for recording in recordings])
    warm = bool((high - low > WARMTH).any())
    fit = CurrentFit(robot, friction, warm=warm)
    for recording in recordings:
        setups = Setups(robot, recording.info, estimate, configured, carried)
        narrow = NarrowFilter(recording.cutoff)
        for motion in recording.motions():
            for part, dynamics in setups.parts(motion):
                link = dynamics.inverse_dynamics(part.q, part.qd, part.qdd)
                fit.add(part, link + inertia * part.qdd, narrow)
    return with_shared_sizes(fit.fit(), robot)


def _fit_power(
    power: PowerFit, kind: str, joints: tuple[JointFit, ...]
) -> tuple[tuple[JointFit, ...], PowerFitResult]:
    """The power stage, and the joints with the torque constants that it tells more exactly."""
    constant = np.array([joint.torque_constant for joint in joints])
    std = np.array([joint.torque_constant_std for joint in joints])
    result = power.fit(kind, constant, std)
    if kind != "physical" or result.source != "bus_power":
        return joints, result
    updated = list(joints)
    for j, joint in enumerate(joints):
        told, told_std = float(result.torque_constant[j]), float(result.torque_constant_std[j])
        if told_std < _TOLD * std[j]:
            whole = float(np.hypot(told_std, MODEL_ERROR * told))
            updated[j] = with_torque_constant(joint, told, whole, "current and bus_power")
    return tuple(updated), result


def _fit_standstill(
    model: EnergyModel, recordings: Sequence[Recording], robot: RobotDescription,
    estimate: SetupEstimate | None, configured: Setup | None, carried: Payload | None,
) -> EnergyModel:  # fmt: skip
    fit = StandstillFit(model)
    for recording in recordings:
        fit.start_recording()
        setups = Setups(robot, recording.info, estimate, configured, carried)
        narrow = NarrowFilter(recording.cutoff)
        for motion in recording.motions():
            for part, dynamics in setups.parts(motion):
                fit.add(part, dynamics.inverse_dynamics(part.q, part.qd, part.qdd), narrow)
    return fit.fitted()
