"""The model, assembled from the results of the identification stages, with its provenance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any

import numpy as np

from ur_energy_model import __version__
from ur_energy_model.identification.arm_prior import (
    EVIDENCE,
    Evidence,
    inertia_evidence,
    torque_constant_evidence,
)
from ur_energy_model.identification.dynamics.dynamics_estimate import DynamicsEstimate
from ur_energy_model.identification.dynamics.dynamics_stage import inertia_with_currents
from ur_energy_model.identification.dynamics.reflected_inertia import InertiaEstimate
from ur_energy_model.identification.dynamics.stated_setup import StatedSetup
from ur_energy_model.identification.friction.joint_estimate import JointEstimate
from ur_energy_model.identification.friction.torque_constants import (
    TorqueConstantPrior,
    stated_deviation,
    with_shared_sizes,
)
from ur_energy_model.identification.many_recordings import longest_first
from ur_energy_model.identification.power.power_fit import PowerFit
from ur_energy_model.identification.power.power_fit_result import PowerFitResult
from ur_energy_model.identification.power.power_stage import fit_sessions
from ur_energy_model.identification.recording import Recording
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.joint_model import JointModel
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.sessions import (
    FRICTION_SPREAD,
    STANDBY_SPREAD,
    SessionSpread,
    scaled_parameters,
)
from ur_energy_model.typing import Array

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
    stated: StatedSetup
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
