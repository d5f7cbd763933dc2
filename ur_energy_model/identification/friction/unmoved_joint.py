"""Torque constant and friction of a joint that hardly moved: from priors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ur_energy_model.errors import IdentificationError
from ur_energy_model.identification.friction.joint_estimate import JointEstimate, estimate_joint
from ur_energy_model.identification.friction.known_friction import KnownFriction
from ur_energy_model.identification.friction.law_selection import AUTO, candidates
from ur_energy_model.identification.friction.priors import current_prior
from ur_energy_model.identification.regression.least_squares import prior_alone
from ur_energy_model.model.friction.law import LAWS
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.typing import Array

SHORTEST_MOTION = 1.0
"""A joint that moves for less time keeps the robot file's constants [s]."""


def joint_from_robot_file(
    robot: RobotDescription, j: int, friction: str, temperature: Array
) -> JointEstimate:
    """The robot file's constants and typical friction.

    Args:
        robot: the arm.
        j: index of the joint.
        friction: law name, or "auto" for Coulomb and viscous friction.
        temperature: lowest and highest in the recordings [2], degC; NaN where not recorded.

    Raises:
        IdentificationError: the robot file has no torque constant for the joint.
    """
    name = friction if friction != AUTO else "coulomb_viscous"
    prior = current_prior(robot, LAWS[name], j)
    if not np.isfinite(prior.std).all():
        raise IdentificationError(
            f"{robot.joint_names[j]} moved for less than {SHORTEST_MOTION:g} s and the "
            f"robot file {robot.name} has no torque constant for it; record a motion of "
            "all joints or add drive.torque_constant to the robot file"
        )
    candidate = next(c for c in candidates(name, warm=True))
    found = estimate_joint(robot, j, candidate, prior, prior_alone(prior), temperature)
    reason = f"joint moved for less than {SHORTEST_MOTION:g} s: robot file and typical friction"
    return replace(found, reason=reason)


def joint_known_before(
    robot: RobotDescription, j: int, known: KnownFriction, temperature: Array
) -> JointEstimate:
    """The friction of a model known before; the torque constant has only a weak prior.

    Args:
        robot: the arm.
        j: index of the joint.
        known: from the model known before.
        temperature: lowest and highest in the recordings [2], degC; NaN where not recorded.
    """
    prior = known.prior(j)
    seen = known.temperature_range(j, temperature)
    found = estimate_joint(robot, j, known.candidate(j), prior, prior_alone(prior), seen)
    return replace(
        found, reason=f"joint moved for less than {SHORTEST_MOTION:g} s: as known before"
    )
