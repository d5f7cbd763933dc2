"""Identification stage of mounting, payload, link tensors and reflected inertia."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ur_energy_model.errors import MissingFieldError
from ur_energy_model.identification.dynamics.dynamics_estimate import (
    DynamicsEstimate,
    estimate_dynamics,
)
from ur_energy_model.identification.dynamics.reflected_inertia import (
    InertiaEstimate,
    expected_inertia,
)
from ur_energy_model.identification.friction.joint_estimate import JointEstimate
from ur_energy_model.identification.friction.torque_constants import reflected_inertia
from ur_energy_model.identification.recording import Recording
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Setup
from ur_energy_model.telemetry.samples import Telemetry

MEASURED_MOTION_ERROR = 0.003
"""Relative error of an inertia from filtered measured motion instead of recorded targets, from
recordings of a UR10e without targets."""


def estimate_setups(
    recordings: Sequence[Recording],
    fitted: Sequence[Recording],
    robot: RobotDescription,
    setup: Setup | None,
    identify_tensors: bool = False,
) -> tuple[RobotDescription, DynamicsEstimate | None]:
    """Setups of all recordings from target_moment, and the arm with identified link tensors.

    Inertias and tensors come from the fitted recordings alone.

    Args:
        recordings: all, held-out ones included.
        fitted: those to fit.
        robot: the arm.
        setup: mounting and payload as stated by the user.
        identify_tensors: identify the link tensors too.

    Returns:
        The arm, and the estimate; None if no fitted recording has target_moment.

    Raises:
        MissingFieldError: link tensors requested without target_moment.
    """
    usable = [r for r in recordings if r.torque_reference != "none"]
    if not any(recording in usable for recording in fitted):
        if identify_tensors:
            raise MissingFieldError(
                fitted[0].path,
                "was not recorded, but link tensors can only be identified from it",
                "record it or use the robot file's tensors",
                field="target_moment",
            )
        return robot, None
    estimate = estimate_dynamics(
        _torques(fitted), robot, configured=setup, identify_tensors=identify_tensors
    )
    if estimate.link_tensors is not None:
        robot = estimate.link_tensors.applied_to(robot)
    others = [r for r in usable if r not in fitted]
    if not others:
        return robot, estimate
    entries = list(estimate.recordings)
    for recording in others:
        entries.extend(estimate_dynamics(_torques([recording]), robot, configured=setup).recordings)
    return robot, replace(estimate, recordings=tuple(entries))


def inertia_from_torque(
    robot: RobotDescription,
    estimate: DynamicsEstimate | None,
    prior: InertiaEstimate | None = None,
) -> InertiaEstimate:
    """Reflected inertias from target_moment, priors for the others.

    Args:
        robot: the arm.
        estimate: from target_moment; None without.
        prior: from other arms; None for that of the robot file.
    """
    expected = expected_inertia(robot) if prior is None else prior
    if estimate is None:
        return expected
    seen = np.isfinite(estimate.std)
    exact = any(entry.reference == "target" for entry in estimate.recordings)
    left_out = 0.0 if exact else MEASURED_MOTION_ERROR
    return InertiaEstimate(
        np.where(seen, estimate.reflected_inertia, expected.value),
        np.where(seen, np.hypot(estimate.std, left_out * estimate.reflected_inertia), expected.std),
        tuple("target_moment" if told else "prior" for told in estimate.identified),
    )


def inertia_with_currents(
    before: InertiaEstimate, joints: Sequence[JointEstimate]
) -> InertiaEstimate:
    """Reflected inertias with those unknown before updated by the currents.

    An inertia counts as identified from currents if they halve its standard deviation.
    """
    value, std, source = before.value.copy(), before.std.copy(), list(before.source)
    for j, joint in enumerate(joints):
        told = reflected_inertia(joint, float(before.value[j]), float(before.std[j]))
        if told is not None:
            value[j], std[j] = told
            source[j] = "current" if std[j] < 0.5 * before.std[j] else "prior"
    return InertiaEstimate(value, std, tuple(source))


def _torques(recordings: Sequence[Recording]) -> Iterator[Telemetry]:
    for recording in recordings:
        if recording.torque_reference != "none":
            yield from recording.torque_telemetry()
