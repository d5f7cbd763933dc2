"""Spread of friction and standby power between sessions of an arm."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ur_energy_model.identification.friction.joint_estimate import JointEstimate
from ur_energy_model.model.sessions import FRICTION_SPREAD, STANDBY_SPREAD, SessionSpread
from ur_energy_model.typing import Array

PRIOR_FREEDOM = 4.0
"""Degrees of freedom of the prior spread: it weighs as much as five compared sessions."""


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
