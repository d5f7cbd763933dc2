"""The model, assembled from the results of the identification stages, with its provenance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ur_energy_model import __version__
from ur_energy_model.errors import IdentificationError
from ur_energy_model.identification.dynamics import (
    DynamicsEstimate,
    RecordingDynamics,
    inertia_with_currents,
)
from ur_energy_model.identification.evaluation import Metrics, measure
from ur_energy_model.identification.parts import KeptTime
from ur_energy_model.identification.payload import PayloadCheck, check_payload
from ur_energy_model.identification.power_fit import PowerFit, PowerFitResult
from ur_energy_model.identification.power_stage import fit_sessions
from ur_energy_model.identification.recording import Recording
from ur_energy_model.identification.recording_reader import read_recording
from ur_energy_model.identification.reflected_inertia import InertiaEstimate
from ur_energy_model.identification.target_moment import SetupPrior
from ur_energy_model.identification.torque_constants import (
    JointEstimate,
    TorqueConstantPrior,
    own_deviation,
    stated_deviation,
    with_shared_sizes,
)
from ur_energy_model.many_bags import BagExecutor, BagResult, Result
from ur_energy_model.model.drives import JointModel
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.sessions import (
    FRICTION_SPREAD,
    STANDBY_SPREAD,
    SessionSpread,
    scaled_parameters,
)
from ur_energy_model.typing import Array, Progress

# What is known of an arm's constants before its own recordings, and what these say alone.

EVIDENCE = "evidence"
"""Key of `Evidence` in the provenance of a model."""
_LEAST_GAIN = 0.01
"""Information of the data, over that of the prior, below which they say nothing."""


@dataclass(frozen=True)
class ArmPrior:
    """Prior of an arm with n joints, from other arms.

    Attributes:
        torque_constant: of the torque constants; None for that of the type.
        inertia: reflected inertias, joint side; None for those of the type.
    """

    torque_constant: TorqueConstantPrior | None = None
    inertia: InertiaEstimate | None = None


OF_TYPE = ArmPrior()
"""Prior of an arm without others: that of its type."""


@dataclass(frozen=True)
class Evidence:
    """What the recordings of an arm with n joints say without any prior; NaN where nothing.

    Attributes:
        torque_constant, torque_constant_std: [n], N m/A. The deviation does not include the error
            of the links' weight, which all arms of a type have in common.
        inertia, inertia_std: reflected inertia, joint side [n], kg m^2.
        from_links: 1 where that error is in the torque constant, 0 where bus power decides [n].
    """

    torque_constant: Array
    torque_constant_std: Array
    inertia: Array
    inertia_std: Array
    from_links: Array

    def as_json(self) -> dict[str, list[float | None]]:
        """Entry of the provenance; None stands for NaN."""
        return {
            name: [float(value) if np.isfinite(value) else None for value in values]
            for name, values in vars(self).items()
        }


def torque_constant_evidence(
    regressed: tuple[JointEstimate, ...],
    shared: tuple[JointEstimate, ...],
    found: tuple[JointEstimate, ...],
) -> tuple[Array, Array, Array]:
    """What data alone say of the torque constants: value, std, from_links of `Evidence` [n] each.

    Args:
        regressed: from the currents.
        shared: with the prior and the information of joints of the same size.
        found: with that of bus power.
    """
    own = np.array([own_deviation(fit) for fit in regressed])
    told = np.array([fit.regressed_constant for fit in regressed])
    usable = np.isfinite(own) & np.isfinite(told)
    precision = np.where(usable, 1.0 / np.square(np.where(usable, own * told, 1.0)), 0.0)
    product = precision * np.where(usable, told, 0.0)
    links = np.ones(len(regressed))
    for j, (before, after) in enumerate(zip(shared, found, strict=True)):
        gained = after.torque_constant_std**-2 - before.torque_constant_std**-2
        if after.source["torque_constant"] != before.source["torque_constant"] and gained > 0.0:
            precision[j] += gained
            links[j] = 0.0
            product[j] += after.torque_constant * after.torque_constant_std**-2
            product[j] -= before.torque_constant * before.torque_constant_std**-2
    return (*_from_information(precision, product), links)


def inertia_evidence(before: InertiaEstimate, after: InertiaEstimate) -> tuple[Array, Array]:
    """Reflected inertias from the data alone, and standard deviations [n], kg m^2.

    Args:
        before: the prior, or from target_moment, which has no prior to speak of.
        after: with the currents.
    """
    direct = np.array([source == "target_moment" for source in before.source])
    least = _LEAST_GAIN * before.std**-2.0
    gained = after.std**-2.0 - before.std**-2.0
    gained = np.where(gained > least, gained, 0.0)
    product = after.value * after.std**-2.0 - before.value * before.std**-2.0
    value, std = _from_information(gained, np.where(gained > 0.0, product, 0.0))
    return np.where(direct, after.value, value), np.where(direct, after.std, std)


def _from_information(precision: Array, product: Array) -> tuple[Array, Array]:
    known = precision > 0.0
    safe = np.where(known, precision, 1.0)
    return np.where(known, product / safe, np.nan), np.where(known, safe**-0.5, np.nan)


# What an identification does with each recording, wherever a `BagExecutor` works.

OwnDynamics: TypeAlias = tuple[Recording, RecordingDynamics]
"""A recording and its dynamics."""


class ManyRecordings:
    """Reads the bags of an identification, checks their payloads and compares a model with them.

    Args:
        each: does so for every bag; if None it is done here, and a bag that fails is an error.
        progress: called with fraction (NaN if unknown) and text.

    Attributes:
        failed: bags that were left out, with reasons.
    """

    def __init__(self, each: BagExecutor | None, progress: Progress | None) -> None:
        self._each, self._progress = each, progress
        self.failed: list[BagResult[Any]] = []

    def read(
        self,
        bags: Sequence[Path],
        robot: RobotDescription,
        opened: ExitStack,
        kept: KeptTime | None = None,
    ) -> list[Recording]:
        """Recordings that identification can use, in the order of the bags.

        Args:
            bags: to read, perhaps none.
            robot: the arm.
            opened: closes the recordings.
            kept: time that is kept of long recordings, see `read_recording`.

        Raises:
            IdentificationError: there are bags, but none can be used.
            UrEnergyError: a bag fails, and no bag may be left out.
        """
        work = partial(_read, robot, kept, None if self._each else self._progress)
        recordings = []
        for result in self._results(work, bags):
            if result.value is not None:
                recording = opened.enter_context(closing(result.value))
                recordings.append(recording.renamed(result.bag))
        if bags and not recordings:
            others = f" (and {len(bags) - 1} more bags)" if len(bags) > 1 else ""
            raise IdentificationError(f"no bag can be used: {self.failed[0].reason}{others}")
        return recordings

    def check_payloads(
        self, model: EnergyModel, robot: RobotDescription, fitted: Sequence[OwnDynamics]
    ) -> tuple[PayloadCheck, ...]:
        """Payloads of recordings, see `check_payload`.

        Raises:
            UrEnergyError: a bag fails, and no bag may be left out.
        """
        bags = [recording.path for recording, _ in fitted]
        given = [(recording.motion_only(), own.alone()) for recording, own in fitted]
        checks = self._results(partial(_check, model, robot), bags, given)
        return tuple(
            replace(check, source=str(result.bag))
            for result in checks
            for check in result.value or ()
        )

    def measure(
        self, model: EnergyModel, compared: Sequence[OwnDynamics], anchored: Sequence[bool]
    ) -> list[Metrics | None]:
        """METRICS of recordings, in their order; None for those that failed.

        Args:
            model: of the arm.
            compared: recordings and their dynamics.
            anchored: whether the model is anchored on each of them.

        Raises:
            UrEnergyError: a bag fails, and no bag may be left out.
        """
        bags = [recording.path for recording, _ in compared]
        given = [
            (recording, own.alone(), anchor)
            for (recording, own), anchor in zip(compared, anchored, strict=True)
        ]
        return [
            None if result.value is None else replace(result.value, bag=str(result.bag))
            for result in self._results(partial(_measure, model), bags, given)
        ]

    def _results(
        self, work: partial[Result], bags: Sequence[Path], given: Sequence[Any] | None = None
    ) -> Iterator[BagResult[Result]]:
        """Results of the work; those without a value are noted as failed."""
        if self._each is None:
            for number, bag in enumerate(bags):
                yield BagResult(bag, work(bag) if given is None else work(bag, given[number]))
            return
        for result in self._each(work, bags, self._progress, given):
            if result.value is None:
                self.failed.append(result)
            yield result


def longest_first(recordings: Sequence[Recording]) -> list[Recording]:
    """Recordings by number of samples, those of equal number by hash.

    In this order sums are rounded, blocks of cross-validation cut, and what a single recording
    decides is decided, so that results do not depend on the order in which bags are named.
    """
    return sorted(recordings, key=lambda recording: (-recording.samples, recording.sha256))


def _read(
    robot: RobotDescription, kept: KeptTime | None, progress: Progress | None, path: Path
) -> Recording:
    recording = read_recording(path, robot, kept=kept, progress=progress)
    try:
        recording.quality.require_usable()
    except IdentificationError:
        recording.close()
        raise
    return recording


def _check(
    model: EnergyModel, robot: RobotDescription, path: Path, fitted: OwnDynamics
) -> tuple[PayloadCheck, ...]:
    return check_payload(model, robot, *fitted)


def _measure(
    model: EnergyModel, path: Path, compared: tuple[Recording, RecordingDynamics, bool]
) -> Metrics:
    recording, dynamics, anchor = compared
    return measure(model, recording.renamed(path), dynamics, anchor=anchor)


_SETUP_SOURCES = {"configured": "given"}
PRIOR_FREEDOM = 4.0
"""Degrees of freedom of the prior spread: it weighs as much as five compared sessions."""


@dataclass(frozen=True)
class BodyResults:
    """Rigid body of the arm before its currents are fitted.

    Attributes:
        robot: the arm, n joints.
        estimate: from target_moment, None where it was not recorded.
        stated: setup of the model without an estimate.
        inertia: reflected inertias, joint side.
    """

    robot: RobotDescription
    estimate: DynamicsEstimate | None
    stated: SetupPrior
    inertia: InertiaEstimate


@dataclass(frozen=True)
class StageResults:
    """Results of the identification stages.

    Attributes:
        body: rigid body, its inertias updated by the currents.
        joints: torque constants and friction from currents.
        power: power model.
        sessions: spread of friction and standby power between sessions.
        evidence: what the data say without any prior.
    """

    body: BodyResults
    joints: tuple[JointEstimate, ...]
    power: PowerFitResult
    sessions: SessionSpread
    evidence: Evidence


def fit_drives(
    body: BodyResults,
    joints: Sequence[JointEstimate],
    powers: Sequence[PowerFit],
    kind: str,
    prior: TorqueConstantPrior | None = None,
) -> StageResults:
    """The stages after the currents: shared torque constants, power model, spread of sessions.

    Args:
        body: rigid body of the arm.
        joints: from the currents of each joint.
        powers: bus power of each session.
        kind: of the power model, "physical" or "ecbot".
        prior: of the torque constants, from other arms; None for that of the robot file.
    """
    shared = with_shared_sizes(joints, body.robot, prior)
    found, power, standby = fit_sessions(powers, kind, shared)
    inertia = inertia_with_currents(body.inertia, found)
    sessions = session_spread(found, standby, len(powers))
    constant, std, from_links = torque_constant_evidence(tuple(joints), shared, found)
    evidence = Evidence(constant, std, *inertia_evidence(body.inertia, inertia), from_links)
    return StageResults(replace(body, inertia=inertia), found, power, sessions, evidence)


def assemble(results: StageResults, provenance: Mapping[str, Any]) -> EnergyModel:
    """The model that the stages found, without metrics."""
    body, power = results.body, results.power
    estimate = body.estimate
    setup, source = body.stated.setup, body.stated.source
    if estimate is not None:
        setup, source = estimate.setup, estimate.setup_source
    return EnergyModel(
        robot=body.robot.source or body.robot.name,
        setup=setup,
        setup_source=_SETUP_SOURCES.get(source, source),
        joints=tuple(_joint(results, j) for j in range(body.robot.dof)),
        bus=power.bus,
        current_delay=power.current_delay,
        link_tensors=None if estimate is None else estimate.link_tensors,
        sessions=results.sessions,
        provenance={**provenance, EVIDENCE: results.evidence.as_json()},
    )


def _joint(results: StageResults, j: int) -> JointModel:
    """One joint of the model.

    Standard deviations of friction parameters hold for any session of the arm, current_covariance
    for the fitted sessions.
    """
    robot, inertia = results.body.robot, results.body.inertia
    power, fit = results.power, results.joints[j]
    spread = float(results.sessions.friction_of(robot.dof)[j])
    return JointModel(
        name=robot.joint_names[j],
        gear_ratio=float(robot.gear_ratio[j]),
        reflected_inertia=float(inertia.value[j]),
        torque_constant=fit.torque_constant,
        winding_resistance=float(power.winding_resistance[j]),
        back_emf_constant=float(power.back_emf_constant[j]),
        friction=fit.friction,
        std={
            "reflected_inertia": float(inertia.std[j]),
            "torque_constant": stated_deviation(fit),
            "winding_resistance": float(power.resistance_std[j]),
            "back_emf_constant": float(power.back_emf_std[j]),
            **_friction_std(fit, spread),
        },
        source={
            "gear_ratio": "robot file",
            "reflected_inertia": inertia.source[j],
            "winding_resistance": power.source,
            "back_emf_constant": power.source,
            **fit.source,
        },
        current_covariance=fit.covariance,
        current_residual=float(np.nan_to_num(fit.residual)),
        friction_reason=fit.reason,
    )


def _friction_std(fit: JointEstimate, spread: float) -> dict[str, float]:
    """Standard deviations of friction parameters, `spread` between sessions (relative) included."""
    names = fit.friction.law.parameters
    varying = np.where(scaled_parameters(names), spread * np.abs(fit.friction.values), 0.0)
    return {
        name: float(np.hypot(fit.friction_std[name], part))
        for name, part in zip(names, varying, strict=True)
    }


def recorded_provenance(recordings: Sequence[Recording], power: PowerFitResult) -> dict[str, Any]:
    """Provenance of a model identified from recordings, its arm that of the longest one."""
    longest = longest_first(recordings)[0].info
    return {
        "package_version": __version__,
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "serial": longest.serial,
        "firmware": longest.controller_version,
        "simulated": any(recording.info.simulated for recording in recordings),
        "bags": [
            {
                "path": str(recording.path),
                "sha256": recording.sha256,
                "samples": recording.samples,
                "duration": recording.duration,
                "rate": recording.rate,
                "cutoff": recording.cutoff,
                "position_delay": recording.delay,
                **used_seconds(recording),
                "visited": recording.quality.visited.as_json(),
            }
            for recording in recordings
        ],
        "power_factors": power_factors(power),
    }


def used_seconds(recording: Recording) -> dict[str, float]:
    """Time of a recording that the fits used, for the provenance [s]."""
    if recording.kept is None:
        return {}
    return {
        "seconds_of_motion_used": recording.kept.motions,
        "seconds_of_samples_used": recording.kept.samples,
    }


def power_factors(power: PowerFitResult) -> dict[str, Any]:
    """Parameters of the power stage for the provenance."""
    return {name: {"value": value, "std": std} for name, (value, std) in power.factors.items()}


def session_spread(joints: Sequence[JointEstimate], standby: Array, count: int) -> SessionSpread:
    """Spread of friction and standby power between sessions; the priors for a single session.

    Args:
        joints: current stage.
        standby: standby powers of sessions [W].
        count: number of sessions.
    """
    if count < 2:
        return SessionSpread()
    friction = [
        spread_between_sessions(joint.session_scales, FRICTION_SPREAD)
        if len(joint.session_scales)
        else FRICTION_SPREAD
        for joint in joints
    ]
    watts = spread_between_sessions(standby, STANDBY_SPREAD) if len(standby) else STANDBY_SPREAD
    return SessionSpread(watts, np.array(friction), count)


def spread_between_sessions(values: Array, prior: float) -> float:
    """Standard deviation of a further session's value from the mean of those compared.

    The variance between sessions has a scaled inverse chi-squared prior with PRIOR_FREEDOM; its
    posterior scale is (freedom * prior variance + sum of squares) / (freedom + sessions - 1). A
    further session deviates from the mean of m by sqrt(1 + 1/m) of it.

    Args:
        values: of the sessions compared [m], one or more.
        prior: the same standard deviation where only one session is known.
    """
    m = len(values)
    single = prior**2 / 2.0
    squares = float(np.square(values - values.mean()).sum())
    variance = (PRIOR_FREEDOM * single + squares) / (PRIOR_FREEDOM + m - 1)
    return float(np.sqrt(variance * (1.0 + 1.0 / m)))
