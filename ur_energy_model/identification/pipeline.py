"""The whole way from bags to a model.

Order: read and judge every bag once (signals filtered, power accumulated) - setup and reflected
inertia from target_moment, or what is believed of them - torque constants, friction and the
inertias not known yet from current, with the torque of the actual motion - power at the supply,
which tells torque constants more exactly - what the bus keeps of braking energy, friction at
standstill - metrics of the bags fitted and of those held out - what these bags leave open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ur_energy_model.identification.assembly import assemble
from ur_energy_model.identification.dynamics.dynamics_estimate import DynamicsEstimate
from ur_energy_model.identification.dynamics.dynamics_stage import (
    estimate_setups,
    inertia_from_torque,
    inertia_with_currents,
)
from ur_energy_model.identification.dynamics.mounting_search import find_mounting
from ur_energy_model.identification.dynamics.recording_dynamics import RecordingDynamics
from ur_energy_model.identification.dynamics.reflected_inertia import InertiaEstimate
from ur_energy_model.identification.dynamics.stated_setup import StatedSetup
from ur_energy_model.identification.evaluation.evaluation import measure
from ur_energy_model.identification.evaluation.metrics import Metrics
from ur_energy_model.identification.friction.current_regression import CurrentRegression
from ur_energy_model.identification.friction.joint_estimate import JointEstimate
from ur_energy_model.identification.friction.law_candidates import AUTO, WARMTH
from ur_energy_model.identification.friction.presliding_fit import PreslidingFit
from ur_energy_model.identification.friction.torque_constants import (
    with_load_error,
    with_shared_sizes,
)
from ur_energy_model.identification.identifiability_warnings import identifiability_warnings
from ur_energy_model.identification.payload.payload_check import (
    IDENTIFIED,
    PayloadCheck,
    check_payloads,
    with_payload_found,
)
from ur_energy_model.identification.power.bus_capacitance import with_storage
from ur_energy_model.identification.power.power_fit import PowerFitResult
from ur_energy_model.identification.power.session_stages import fit_power
from ur_energy_model.identification.recording import Recording
from ur_energy_model.identification.recording_reader import read_recording
from ur_energy_model.identification.regression.narrow_filter import NarrowFilter
from ur_energy_model.identification.session_spread import session_spread
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription, load_robot
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.typing import Progress


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
    joints: tuple[JointEstimate, ...]
    power: PowerFitResult
    setups: DynamicsEstimate | None
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
        fallback = None if estimate is None else estimate.setup
        setups = [
            RecordingDynamics(arm, recording.info, estimate, setup, fallback)
            for recording in (*fitted, *held_out)
        ]
        stated = setups[0].stated(fitted[0].told_payload)
        mounting = find_mounting(arm, fitted, stated.setup) if estimate is None else None
        if mounting is not None and mounting.contradicted and setup is None:
            stated = StatedSetup(mounting.setup, "estimated")
            setups = [replace(own, configured=mounting.setup) for own in setups]
        believed = inertia_from_torque(arm, estimate)
        powers = [recording.power for recording in fitted]

        def fitted_with(carried: Payload | None) -> _Fitted:
            own = [replace(entry, carried=carried) for entry in setups[: len(fitted)]]
            joints = _fit_currents(fitted, own, arm, believed, friction)
            if mounting is not None:
                joints = with_load_error(joints, mounting.load_error)
            joints = with_shared_sizes(joints, arm)
            joints, result, standby = fit_power(powers, power_model, joints)
            spread = session_spread(joints, standby, len(fitted))
            inertia = inertia_with_currents(believed, joints)
            model = assemble(arm, estimate, joints, inertia, result, fitted, stated, spread)
            model = model if carried is None else model.with_payload(carried)
            return _Fitted(model, joints, result)

        def check(found: _Fitted, carried: Payload | None) -> tuple[PayloadCheck, ...]:
            own = [replace(entry, carried=carried) for entry in setups[: len(fitted)]]
            return check_payloads(found.model, arm, fitted, own)

        found, carried, checks = with_payload_found(fitted_with, check, payload)
        joints, result = found.joints, found.power
        setups = [replace(entry, carried=carried) for entry in setups]
        model = with_storage(found.model, fitted)
        model = _fit_standstill(model, fitted, setups[: len(fitted)])
        metrics = [
            measure(model, recording, own, anchor=k >= len(fitted) or len(fitted) > 1)
            for k, (recording, own) in enumerate(zip((*fitted, *held_out), setups, strict=True))
        ]
        fit, validation = tuple(metrics[: len(fitted)]), tuple(metrics[len(fitted) :])
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
    warnings += identifiability_warnings(model, arm, torque=estimate is not None, mounting=mounting)
    return Identification(
        described,
        model,
        joints,
        result,
        estimate,
        fit,
        validation,
        tuple(dict.fromkeys(warnings)),
        checks,
    )


@dataclass(frozen=True)
class _Fitted:
    """What currents and bus power give with one payload."""

    model: EnergyModel
    joints: tuple[JointEstimate, ...]
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
    recordings: Sequence[Recording],
    setups: Sequence[RecordingDynamics],
    robot: RobotDescription,
    inertia: InertiaEstimate,
    friction: str,
) -> tuple[JointEstimate, ...]:
    """The current stage; a second time where it finds inertias, of which the load is made."""
    low = np.fmin.reduce([recording.warmth[:, 0] for recording in recordings])
    high = np.fmax.reduce([recording.warmth[:, 1] for recording in recordings])
    warm = bool((high - low > WARMTH).any())
    nominal = inertia.value
    fits: tuple[JointEstimate, ...] = ()
    for _ in range(1 + bool(inertia.unknown.any())):
        fit = CurrentRegression(robot, friction, warm=warm, inertia=inertia, nominal=nominal)
        for recording, own in zip(recordings, setups, strict=True):
            fit.start_session()
            narrow = NarrowFilter(recording.cutoff)
            for motion in recording.motions():
                for part, dynamics in own.parts(motion):
                    link = dynamics.inverse_dynamics(part.q, part.qd, part.qdd)
                    fit.accumulate(part, link + nominal * part.qdd, narrow)
        fits = fit.fit()
        nominal = inertia_with_currents(inertia, fits).value
    return fits


def _fit_standstill(
    model: EnergyModel, recordings: Sequence[Recording], setups: Sequence[RecordingDynamics]
) -> EnergyModel:
    fit = PreslidingFit(model)
    for recording, own in zip(recordings, setups, strict=True):
        fit.start_recording()
        narrow = NarrowFilter(recording.cutoff)
        for motion in recording.motions():
            for part, dynamics in own.parts(motion):
                fit.accumulate(part, dynamics.inverse_dynamics(part.q, part.qd, part.qdd), narrow)
    return fit.fitted()
