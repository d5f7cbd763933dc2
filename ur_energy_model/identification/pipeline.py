"""The whole way from bags to a model, and from a model and a bag to figures.

Order of identify: read and judge every bag once (signals filtered, power accumulated) - setup and
reflected inertia from target_moment - torque constants and friction from current, with the torque
of the actual motion - power at the supply - metrics of the bags fitted and of those held out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ur_energy_model import __version__
from ur_energy_model.errors import WrongRobotError
from ur_energy_model.identification.currents import (
    AUTO,
    MOVING_SPEED,
    WARMTH,
    CurrentFit,
)
from ur_energy_model.identification.joint_fit import JointFit
from ur_energy_model.identification.metrics import ErrorStatistics, Metrics, PowerStatistics
from ur_energy_model.identification.power import PowerFit, PowerFitResult, current_rate
from ur_energy_model.identification.recording import (
    Progress,
    Recording,
    check_robot,
    digest,
    read_recording,
)
from ur_energy_model.identification.setup_data import stated_setup
from ur_energy_model.identification.setup_estimation import (
    SetupEstimate,
    estimate_setup_and_inertia,
)
from ur_energy_model.identification.signals import Motion, NarrowFilter
from ur_energy_model.identification.standstill import DirectionMemory, StandstillFit
from ur_energy_model.identification.torque_constants import with_shared_sizes, with_torque_constant
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel, JointModel
from ur_energy_model.model.robots import RobotDescription, load_robot
from ur_energy_model.model.setup import Setup
from ur_energy_model.telemetry.samples import Telemetry

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Identification:
    """Result of `identify`.

    Attributes:
        model: ready to save.
        joints: current stage per joint (comparison of laws, sources).
        power: power stage.
        setups: setup stage, None where no target_moment was recorded.
        fit, validation: metrics.
        warnings: for the user, one line each.
    """

    model: EnergyModel
    joints: tuple[JointFit, ...]
    power: PowerFitResult
    setups: SetupEstimate | None
    fit: tuple[Metrics, ...]
    validation: tuple[Metrics, ...]
    warnings: tuple[str, ...]


def identify(
    bags: Sequence[str | Path],
    robot: RobotDescription | str,
    *,
    validate: Sequence[str | Path] = (),
    friction: str = AUTO,
    power_model: str = "physical",
    setup: Setup | None = None,
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
        progress: called with fraction (NaN if unknown) and text.

    Raises:
        UrEnergyError: input that cannot be used, with place and remedy.
    """
    arm = load_robot(robot) if isinstance(robot, str) else robot
    with _Readings(arm, progress) as read:
        fitted = [read(bag) for bag in bags]
        held_out = [read(bag) for bag in validate]
        for recording in (*fitted, *held_out):
            recording.quality.require_usable()
        estimate = _estimate_setups([*fitted, *held_out], fitted, arm, setup)
        joints = _fit_currents(fitted, arm, estimate, setup, friction)
        power = PowerFit(arm)
        for recording in fitted:
            power.merge(recording.power)
        joints, result = _fit_power(power, power_model, joints)
        model = _assemble(arm, estimate, joints, result, fitted, setup)
        model = _fit_standstill(model, fitted, arm, estimate, setup)
        fit = tuple(_measure(model, recording, arm, estimate, setup) for recording in fitted)
        validation = tuple(
            _measure(model, recording, arm, estimate, setup) for recording in held_out
        )
    model = replace(
        model,
        fit=tuple(entry.as_json() for entry in fit),
        validation=tuple(entry.as_json() for entry in validation),
    )
    warnings = [w for recording in fitted for w in recording.quality.warnings]
    warnings += [] if estimate is None else list(estimate.warnings)
    if estimate is None:
        warnings.append(
            "no target_moment recorded: nominal motor inertia, and mounting and payload as stated"
        )
    return Identification(
        model, joints, result, estimate, fit, validation, tuple(dict.fromkeys(warnings))
    )


def evaluate(model: EnergyModel, bag: str | Path, *, progress: Progress | None = None) -> Metrics:
    """How well a model describes a recording, METRICS; mounting and payload are the bag's own.

    Raises:
        UrEnergyError: input that cannot be used, with place and remedy.
    """
    robot = load_robot(model.robot)
    check_model(model, robot, bag)
    with _Readings(robot, progress) as read:
        recording = read(bag)
        estimate = _estimate_setups([recording], [recording], robot, None)
        return _measure(model, recording, robot, estimate, None)


def check_model(model: EnergyModel, robot: RobotDescription, bag: str | Path) -> None:
    """Refuse a model whose joints are not those of its robot.

    Raises:
        WrongRobotError: names the bag.
    """
    if tuple(joint.name for joint in model.joints) != robot.joint_names:
        raise WrongRobotError(
            bag, f"the model's joints are not those of a {robot.name}", "identify the model again"
        )


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


def _estimate_setups(
    recordings: Sequence[Recording], fitted: Sequence[Recording], robot: RobotDescription,
    setup: Setup | None,
) -> SetupEstimate | None:  # fmt: skip
    """Setups of all recordings; the inertia comes from the fitted ones alone."""
    usable = [r for r in recordings if r.torque_reference != "none"]
    if not any(recording in usable for recording in fitted):
        return None
    estimate = estimate_setup_and_inertia(_torques(fitted), robot, configured=setup)
    others = [r for r in usable if r not in fitted]
    if not others:
        return estimate
    entries = list(estimate.recordings)
    for recording in others:
        entries.extend(
            estimate_setup_and_inertia(_torques([recording]), robot, configured=setup).recordings
        )
    return replace(estimate, recordings=tuple(entries))


def _torques(recordings: Sequence[Recording]) -> Iterator[Telemetry]:
    for recording in recordings:
        if recording.torque_reference != "none":
            yield from recording.torque_telemetry()


@dataclass(frozen=True)
class _Setups:
    """Setup and its dynamics by the payload that the controller was told of."""

    robot: RobotDescription
    recording: Recording
    estimate: SetupEstimate | None
    configured: Setup | None

    def parts(self, motion: Motion) -> Iterator[tuple[Motion, ArmDynamics]]:
        """Parts of a motion with one payload each, and the dynamics that belong to it."""
        told = np.round(np.nan_to_num(motion.payload), 4)
        changes = np.flatnonzero((np.diff(told, axis=0) != 0).any(axis=1)) + 1
        for start, stop in zip([0, *changes], [*changes, len(motion)], strict=True):
            setup, _ = self.of(told[start])
            part = motion.cut(slice(int(start), int(stop)))
            yield part, ArmDynamics(self.robot, setup)

    def delay(self, motion: Motion) -> float:
        """Delay of target_moment behind the measured motion [s]."""
        return self.of(np.nan_to_num(motion.payload[0]))[1]

    def of(self, told: Array) -> tuple[Setup, float]:
        """Setup and torque delay [s] that belong to a payload told to the controller [4]."""
        source = self.recording.info.source
        entries = (
            [] if self.estimate is None
            else [e for e in self.estimate.recordings if e.source == source]
        )  # fmt: skip
        if not entries:
            here = Telemetry(np.zeros(0), {}, self.recording.info)
            return stated_setup(here, self.robot, self.configured).setup, 0.0

        def distance(index: int) -> tuple[float, int]:
            payload = entries[index].stated.setup.payload
            stated = np.array([payload.mass, *payload.center_of_mass])
            return float(np.abs(stated - told).max()), -entries[index].samples

        nearest = min(range(len(entries)), key=distance)
        return entries[nearest].setup, entries[nearest].delay


def _fit_currents(
    recordings: Sequence[Recording], robot: RobotDescription, estimate: SetupEstimate | None,
    configured: Setup | None, friction: str,
) -> tuple[JointFit, ...]:  # fmt: skip
    inertia = robot.reflected_inertia if estimate is None else estimate.reflected_inertia
    low = np.fmin.reduce([recording.warmth[:, 0] for recording in recordings])
    high = np.fmax.reduce([recording.warmth[:, 1] for recording in recordings])
    warm = bool((high - low > WARMTH).any())
    fit = CurrentFit(robot, friction, warm=warm)
    for recording in recordings:
        setups = _Setups(robot, recording, estimate, configured)
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
    factor, _ = result.factors["conversion"]
    updated = list(joints)
    for j, joint in enumerate(joints):
        told_std = result.factors[f"k_{j}"][1] / factor
        if told_std < _TOLD * std[j]:
            told = float(result.back_emf_constant[j] / factor)
            source = "current and bus_power"
            updated[j] = with_torque_constant(joint, told, told_std, source)
    return tuple(updated), result


def _fit_standstill(
    model: EnergyModel, recordings: Sequence[Recording], robot: RobotDescription,
    estimate: SetupEstimate | None, configured: Setup | None,
) -> EnergyModel:  # fmt: skip
    fit = StandstillFit(model)
    for recording in recordings:
        fit.start_recording()
        setups = _Setups(robot, recording, estimate, configured)
        narrow = NarrowFilter(recording.cutoff)
        for motion in recording.motions():
            for part, dynamics in setups.parts(motion):
                fit.add(part, dynamics.inverse_dynamics(part.q, part.qd, part.qdd), narrow)
    return fit.fitted()


def _assemble(
    robot: RobotDescription, estimate: SetupEstimate | None, joints: Sequence[JointFit],
    power: PowerFitResult, recordings: Sequence[Recording], configured: Setup | None,
) -> EnergyModel:  # fmt: skip
    models = []
    for j, fit in enumerate(joints):
        identified = estimate is not None and bool(estimate.identified[j])
        if estimate is not None and identified:
            inertia, inertia_std = float(estimate.reflected_inertia[j]), float(estimate.std[j])
        else:
            inertia = float(np.nan_to_num(robot.reflected_inertia[j]))
            inertia_std = 0.2 * inertia
        power_source = power.source
        models.append(
            JointModel(
                name=robot.joint_names[j],
                gear_ratio=float(robot.gear_ratio[j]),
                reflected_inertia=inertia,
                torque_constant=fit.torque_constant,
                winding_resistance=float(power.winding_resistance[j]),
                back_emf_constant=float(power.back_emf_constant[j]),
                friction=fit.friction,
                std={
                    "reflected_inertia": inertia_std,
                    "torque_constant": fit.torque_constant_std,
                    "winding_resistance": float(power.resistance_std[j]),
                    "back_emf_constant": float(power.back_emf_std[j]),
                    **fit.friction_std,
                },
                source={
                    "gear_ratio": "robot file",
                    "reflected_inertia": "target_moment" if identified else "prior",
                    "winding_resistance": power_source,
                    "back_emf_constant": power_source,
                    **fit.source,
                },
                current_covariance=fit.covariance,
                current_residual=float(np.nan_to_num(fit.residual)),
                friction_reason=fit.reason,
            )
        )
    if estimate is None:
        here = Telemetry(np.zeros(0), {}, recordings[0].info)
        stated = stated_setup(here, robot, configured)
        setup, source = stated.setup, stated.source
    else:
        setup, source = estimate.setup, estimate.setup_source
    return EnergyModel(
        robot=robot.name,
        setup=setup,
        setup_source=_SETUP_SOURCES.get(source, source),
        joints=tuple(models),
        bus=power.bus,
        provenance=_provenance(recordings, power),
    )


_TOLD = 0.8
"""Bus power tells a torque constant where it narrows its deviation to this share or less."""
_SETUP_SOURCES = {"configured": "given"}


def _provenance(recordings: Sequence[Recording], power: PowerFitResult) -> dict[str, Any]:
    first = recordings[0].info
    return {
        "package_version": __version__,
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "serial": first.serial,
        "firmware": first.controller_version,
        "simulated": any(recording.info.simulated for recording in recordings),
        "bags": [
            {
                "path": str(recording.path),
                "sha256": digest(recording.path),
                "samples": recording.samples,
                "duration": recording.duration,
                "rate": recording.rate,
                "cutoff": recording.cutoff,
                "position_delay": recording.delay,
            }
            for recording in recordings
        ],
        "power_factors": {
            name: {"value": value, "std": std} for name, (value, std) in power.factors.items()
        },
    }


def _measure(
    model: EnergyModel, recording: Recording, robot: RobotDescription,
    estimate: SetupEstimate | None, configured: Setup | None,
) -> Metrics:  # fmt: skip
    """METRICS of a recording under a model."""
    setups = _Setups(robot, recording, estimate, configured)
    n = model.dof
    everything, moving, torque = ErrorStatistics(n), ErrorStatistics(n), ErrorStatistics(n)
    inertia = np.array([joint.reflected_inertia for joint in model.joints])
    narrow = NarrowFilter(recording.cutoff)
    memory = DirectionMemory(np.array([joint.friction.presliding for joint in model.joints]))
    for motion in recording.motions():
        for part, dynamics in setups.parts(motion):
            if not len(part.time[narrow.inside(part)]):
                continue
            link = dynamics.inverse_dynamics(part.q, part.qd, part.qdd)
            temperature = part.temperature if np.isfinite(part.temperature).all() else None
            predicted = model.from_link_torque(
                link, part.qd, part.qdd, temperature=temperature, direction=memory(part), std=False
            ).current
            inside = narrow.inside(part)
            both = narrow(part, np.column_stack([part.current, predicted]))[inside]
            everything.add(both[:, :n], both[:, n:])
            moving.add(both[:, :n], both[:, n:], narrow.moving(part, MOVING_SPEED)[inside])
            if recording.torque_reference == "actual" and np.isfinite(part.moment).all():
                moment = _shifted(part.time, part.moment, setups.delay(part))
                both = narrow(part, np.column_stack([moment, link + inertia * part.qdd]))[inside]
                torque.add(both[:, :n], both[:, n:])
    if recording.torque_reference == "target":
        _measure_target_torque(recording, setups, inertia, torque)
    power = PowerStatistics()
    for time, speed, amperes, watts in recording.supply():
        rate = current_rate(time, amperes) if model.bus.inductance.any() else None
        total = model.joint_power(speed, amperes, current_rate=rate, std=False).total_power
        power.add(time, watts, total)
    return Metrics(
        bag=str(recording.path),
        samples=recording.samples,
        torque=torque.entries() if torque.count.any() else None,
        current=moving.entries() if everything.count.any() else None,
        current_all=everything.entries() if everything.count.any() else None,
        power=power.entry() if power.samples else None,
        remarks={"cutoff": recording.cutoff, "duration": recording.duration},
    )


def _shifted(time: Array, values: Array, delay: float) -> Array:
    """Columns [samples, n] as they are `delay` seconds later."""
    later = time + delay
    return np.stack([np.interp(later, time, column) for column in values.T], axis=1)


def _measure_target_torque(
    recording: Recording, setups: _Setups, inertia: Array, torque: ErrorStatistics
) -> None:
    """The controller's torque against the model, both of the recorded targets."""
    for batch in recording.torque_telemetry():
        n = len(batch)
        told: Array = np.zeros((n, 4))
        if "payload" in batch:
            told[:, 0] = batch["payload"]
        if "payload_cog" in batch:
            told[:, 1:] = batch["payload_cog"]
        told = np.asarray(np.round(np.nan_to_num(told), 4))
        changes = np.flatnonzero((np.diff(told, axis=0) != 0).any(axis=1)) + 1
        for start, stop in zip([0, *changes], [*changes, n], strict=True):
            setup, delay = setups.of(told[start])
            rows = slice(int(start), int(stop))
            q, qd, qdd, moment = (
                batch[name][rows]
                for name in ("target_q", "target_qd", "target_qdd", "target_moment")
            )
            dynamics = ArmDynamics(setups.robot, setup)
            link = dynamics.inverse_dynamics(q - delay * qd + 0.5 * delay**2 * qdd, qd, qdd)
            torque.add(moment, link + inertia * qdd)


def identification_json(result: Identification) -> Mapping[str, Any]:
    """`ur_energy identify --json`."""
    model = result.model
    payload = model.setup.payload
    return {
        "robot": model.robot,
        "setup": {
            "gravity": model.setup.gravity,
            "payload_mass": payload.mass,
            "payload_center_of_mass": payload.center_of_mass,
        },
        "setup_source": model.setup_source,
        "joints": [
            _joint_json(joint, fit) for joint, fit in zip(model.joints, result.joints, strict=True)
        ],
        "bus_power": _bus_json(result) if result.power.source == "bus_power" else None,
        "fit": model.fit[0] if len(model.fit) == 1 else _together(model.fit),
        "validation": list(model.validation),
        "warnings": list(result.warnings),
    }


def _together(fit: Sequence[Mapping[str, Any]]) -> Any:
    return list(fit)


def _joint_json(joint: JointModel, fit: JointFit) -> dict[str, Any]:
    direct, reverse = joint.friction.coulomb
    return {
        "name": joint.name,
        "reflected_inertia": joint.reflected_inertia,
        "torque_constant": joint.torque_constant,
        "viscous": joint.friction.parameters.get("viscous"),
        "coulomb_direct": direct,
        "coulomb_reverse": reverse,
        "friction_law": joint.friction.law.name,
        "friction_parameters": dict(joint.friction.parameters),
        "friction_reason": joint.friction_reason,
        "friction_comparison": fit.comparison,
        "winding_resistance": joint.winding_resistance,
        "back_emf_constant": joint.back_emf_constant,
        "std": dict(joint.std),
        "source": dict(joint.source),
    }


def _bus_json(result: Identification) -> dict[str, Any]:
    bus = result.model.bus
    return {
        "kind": bus.kind,
        "standby": bus.standby,
        "standby_std": bus.std.get("standby"),
        "driver": bus.driver,
        "residual": bus.residual,
        "mode_power": dict(bus.mode_power),
        "factors": {
            name: {"value": value, "std": std}
            for name, (value, std) in result.power.factors.items()
        },
        "comparison": result.power.comparison,
        "reason": bus.reason,
    }


__all__ = [
    "Identification",
    "check_model",
    "check_robot",
    "evaluate",
    "identification_json",
    "identify",
]
