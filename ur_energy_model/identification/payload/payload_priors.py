"""Priors of links and drives for payload identification.

Torque constants are identified with the links' published masses (torque_constants.py), so the
weights of the links and of a payload are uncertain in different ways:

- A drive's gain against its own links was identified in this very arm. Its error is what friction
  and links do not repeat. Joints that lift far more than their friction determine it well; wrists
  hardly lift their links, and there the stated deviation of the torque constant applies.
- The gain against a payload has, in addition, the error of the published links, common to all
  joints (cables, covers and screws belong to no published link) and for each joint.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ur_energy_model.identification.friction.torque_constants import LINK_WEIGHT_ERROR
from ur_energy_model.identification.payload.payload_columns import PayloadColumns
from ur_energy_model.model.joint_model import JointModel
from ur_energy_model.model.payload_calibration import CalibrationLayout, PayloadCalibration
from ur_energy_model.typing import Array

LINK_MASS_ERROR = 0.005
"""Relative error of a link's mass beyond what its joint's gain covers, assumed."""
LINK_CENTER_ERROR = 0.001
"""Error of a link's centre of mass [m], assumed."""
OWN_ERROR = 0.02
"""Relative error of the links' weight at each joint, beyond the common LINK_WEIGHT_ERROR: how much
the joints of one arm differed."""
REPEATABLE = 0.003
"""Relative change of a drive's gain between recordings, assumed. As a share of the links' mass it
is the smallest reported difference from the payload set in the controller."""
_FRICTION_SHARE = 0.01
"""Share of friction that a regression assigns to the links' weight: the repeatability of friction
(payload_columns.py)."""
_EMPTY_FLANGE = np.array([0.3, 0.03, 0.03, 0.03])
"""Deviation of what may be mounted on an "empty" flange: mass [kg] and first moments [kg m]."""
_LEAST = 1e-9


def stated_prior(
    columns: PayloadColumns, joints: Sequence[JointModel], weight: Array, *, empty: bool = False
) -> PayloadCalibration:
    """Prior for a model without calibration by a known payload.

    Args:
        columns: of the arm, n joints.
        joints: of the model, n.
        weight: RMS of the bare arm's torque at each joint in the recording [n], N m; 0 for joints
            that stood still.
        empty: the flange counts as empty, even if something stays mounted on it.
    """
    stated = np.array([j.std.get("torque_constant", 0.0) / j.torque_constant for j in joints])
    friction = _FRICTION_SHARE * columns.typical_friction / np.maximum(weight, _LEAST)
    gain = np.minimum(np.hypot(REPEATABLE, friction), np.maximum(stated, REPEATABLE))
    links = _links(columns)
    if empty:
        links[-1] = _EMPTY_FLANGE
    return _prior(links, gain)


def another_recording(known: PayloadCalibration) -> PayloadCalibration:
    """Prior for the next recording of a calibrated arm: gains change slightly."""
    covariance = known.covariance.copy()
    gains = CalibrationLayout(known.dof).link_gain
    covariance[gains, gains] += np.diag((REPEATABLE * known.link_gain) ** 2)
    return PayloadCalibration(known.links, known.link_gain, known.payload_gain, covariance)


def size_prior(
    columns: PayloadColumns, gain: Array, alike: Array, spread: tuple[float, float]
) -> PayloadCalibration:
    """Prior where only the torque constants of the arm's type are known.

    Args:
        columns: of the arm, n joints.
        gain: the model's over the type's torque constants [n].
        alike: which joints have motors of the same size [n, n].
        spread: relative, of a size between arms, and of the joints of one size in an arm.
    """
    between, within = spread
    n = len(gain)
    prior = _prior(_links(columns), np.ones(n))
    covariance = prior.covariance.copy()
    gains = CalibrationLayout(n).link_gain
    relative = between**2 * alike + within**2 * np.eye(n)
    covariance[gains, gains] = np.outer(gain, gain) * relative
    return PayloadCalibration(prior.links, gain, prior.payload_gain, covariance)


def _links(columns: PayloadColumns) -> Array:
    """Standard deviations of the links' masses and first moments [n, 4], kg and kg m."""
    masses = columns.masses
    center = LINK_CENTER_ERROR * masses
    return np.column_stack([LINK_MASS_ERROR * masses, center, center, center])


def _prior(links: Array, gain: Array) -> PayloadCalibration:
    """Independent links and link gains with these deviations; payload gains correlated."""
    n = len(gain)
    layout = CalibrationLayout(n)
    covariance = np.zeros((layout.size, layout.size))
    covariance[layout.links, layout.links] = np.diag(np.maximum(links.ravel(), _LEAST) ** 2)
    covariance[layout.link_gain, layout.link_gain] = np.diag(np.maximum(gain, _LEAST) ** 2)
    covariance[layout.payload_gain, layout.payload_gain] = (
        LINK_WEIGHT_ERROR** 2 + OWN_ERROR** 2 * np.eye(n)
    )
    return PayloadCalibration(np.zeros_like(links), np.ones(n), np.ones(n), covariance)
