"""What the recordings of an identified arm say, read from its model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from ur_energy_model.identification.arm_prior import EVIDENCE, Evidence
from ur_energy_model.identification.dynamics.reflected_inertia import expected_inertia
from ur_energy_model.identification.friction.torque_constants import (
    TorqueConstantPrior,
    is_from_links,
    own_part,
)
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.typing import Array, Mask

_PRIOR = "prior"


def evidence_of(model: EnergyModel, robot: RobotDescription) -> Evidence:
    """What the recordings of a model say without any prior.

    Models of versions that did not state it are taken as they are, less the prior of their type.

    Args:
        model: of an arm with n joints.
        robot: its description.
    """
    stated = model.provenance.get(EVIDENCE)
    if isinstance(stated, Mapping) and (read := _read(stated, model.dof)) is not None:
        return read
    prior = TorqueConstantPrior.of_type(robot)
    nominal = robot.torque_constant
    constant = np.array([joint.torque_constant for joint in model.joints])
    std = np.array([own_part(joint) for joint in model.joints])
    expected = expected_inertia(robot)
    inertia = np.array([joint.reflected_inertia for joint in model.joints])
    inertia_std = np.array([joint.std.get("reflected_inertia", np.nan) for joint in model.joints])
    spread = np.sqrt(np.diag(prior.covariance)) * nominal
    return Evidence(
        *_without(constant, std, nominal, spread, _told(model, "torque_constant")),
        *_without(
            inertia, inertia_std, expected.value, expected.std, _told(model, "reflected_inertia")
        ),
        np.array(
            [float(is_from_links(each.source.get("torque_constant", ""))) for each in model.joints]
        ),
    )


def _read(stated: Mapping[str, Any], n: int) -> Evidence | None:
    """Evidence from the provenance; None if it is of another form."""
    try:
        names = [field.name for field in fields(Evidence)]
        columns = [np.array(stated[name], dtype=float) for name in names]  # None becomes NaN
    except (KeyError, TypeError, ValueError):
        return None
    if any(column.shape != (n,) for column in columns):
        return None
    for std in (columns[1], columns[3]):
        std[~(std > 0)] = np.nan
    return Evidence(*columns)


def _told(model: EnergyModel, name: str) -> Mask:
    """Whether the arm's own recordings tell a constant [n]."""
    return np.array([joint.source.get(name, _PRIOR) != _PRIOR for joint in model.joints])


def _without(
    value: Array, std: Array, prior: Array, prior_std: Array, told: Mask
) -> tuple[Array, Array]:
    """A normal estimate less its normal prior, and its deviation [n] each; NaN without data."""
    with np.errstate(invalid="ignore", divide="ignore"):
        left = std**-2.0 - np.where(np.isfinite(prior_std), prior_std**-2.0, 0.0)
        known = told & (left > 0.0)
        pull = np.where(np.isfinite(prior_std), prior * prior_std**-2.0, 0.0)
        own = (value * std**-2.0 - pull) / np.where(known, left, 1.0)
        return np.where(known, own, np.nan), np.where(known, left, np.nan) ** -0.5
