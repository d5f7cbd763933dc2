"""What is believed of links and drives before the currents of a payload are seen.

Torque constants are found with the links' published weight (currents.py), so the weight of the
links and that of a payload are uncertain in different ways:

- A drive's gain against its own links was fitted in this very arm. It is wrong by what friction
  and links do not repeat. Joints that lift far more than their friction hold it well; wrists hardly
  feel their links, and there the deviation that the model states for the torque constant counts.
- The gain against a payload is wrong by what the published links are wrong by besides, in common
  (cables, covers and screws belong to no published link) and for each joint.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ur_energy_model.identification.friction.torque_constants import LINK_WEIGHT_ERROR
from ur_energy_model.identification.payload.payload_columns import PayloadColumns
from ur_energy_model.model.joint_model import JointModel
from ur_energy_model.model.payload_calibration import LINK_PARAMETERS, PayloadCalibration
from ur_energy_model.typing import Array

LINK_MASS_ERROR = 0.005
"""Relative error of a link's mass beyond what its joint's gain covers, assumed."""
LINK_CENTER_ERROR = 0.001
"""Error of a link's centre of mass [m], assumed."""
OWN_ERROR = 0.02
"""Error of the links' weight beyond what is common (LINK_WEIGHT_ERROR), joint by joint: what the
joints of the same arms differed by."""
REPEATABLE = 0.003
"""Change of a drive's gain from one recording to the next, assumed."""
_FRICTION_TAKEN = 0.01
"""Share of friction that a regression takes for weight of the links: friction repeats to about as
much (payload_columns.py)."""
_EMPTY_FLANGE = np.array([0.3, 0.03, 0.03, 0.03])
"""What may be mounted on a flange that counts as empty: mass [kg] and first moments [kg m]."""
_LEAST = 1e-9


def stated_prior(
    columns: PayloadColumns, joints: Sequence[JointModel], weight: Array, *, empty: bool = False
) -> PayloadCalibration:
    """Belief beside a model that no known payload has calibrated.

    Args:
        columns: of the arm, n joints.
        joints: of the model, n.
        weight: RMS of the bare arm's torque at each joint in the recording [n], N m; 0 for joints
            that stood still.
        empty: the flange counts as empty, whatever stays on it.
    """
    stated = np.array([j.std.get("torque_constant", 0.0) / j.torque_constant for j in joints])
    taken = _FRICTION_TAKEN * columns.typical_friction / np.maximum(weight, _LEAST)
    gain = np.minimum(np.hypot(REPEATABLE, taken), np.maximum(stated, REPEATABLE))
    links = _links(columns)
    if empty:
        links[-1] = _EMPTY_FLANGE
    return _prior(links, gain)


def another_recording(known: PayloadCalibration) -> PayloadCalibration:
    """What is known of the arm in the next recording: gains repeat only so far."""
    covariance = known.covariance.copy()
    gains = LINK_PARAMETERS * known.dof + np.arange(known.dof)
    covariance[gains, gains] += (REPEATABLE * known.link_gain) ** 2
    return PayloadCalibration(known.links, known.link_gain, known.payload_gain, covariance)


def size_prior(
    columns: PayloadColumns, gain: Array, alike: Array, spread: tuple[float, float]
) -> PayloadCalibration:
    """Belief beside torque constants of which only the arm's type is known.

    Args:
        columns: of the arm, n joints.
        gain: the model's over the type's torque constants [n].
        alike: which joints have motors of one size [n, n].
        spread: of the sizes between arms, and of the joints of one size in an arm.
    """
    between, within = spread
    n = len(gain)
    prior = _prior(_links(columns), np.ones(n))
    covariance = prior.covariance.copy()
    gains = slice(LINK_PARAMETERS * n, (LINK_PARAMETERS + 1) * n)
    relative = between**2 * alike + within**2 * np.eye(n)
    covariance[gains, gains] = np.outer(gain, gain) * relative
    return PayloadCalibration(prior.links, gain, prior.payload_gain, covariance)


def _links(columns: PayloadColumns) -> Array:
    """Standard deviations of the links' static parameters [n, 4]."""
    masses = columns.masses
    center = LINK_CENTER_ERROR * masses
    return np.column_stack([LINK_MASS_ERROR * masses, center, center, center])


def _prior(links: Array, gain: Array) -> PayloadCalibration:
    n = len(gain)
    scale = LINK_WEIGHT_ERROR**2 + OWN_ERROR**2 * np.eye(n)
    size = (LINK_PARAMETERS + 2) * n
    covariance = np.zeros((size, size))
    deviations = np.maximum(np.concatenate([links.ravel(), gain]), _LEAST)
    covariance[: size - n, : size - n] = np.diag(deviations**2)
    covariance[size - n :, size - n :] = scale
    return PayloadCalibration(np.zeros_like(links), np.ones(n), np.ones(n), covariance)
