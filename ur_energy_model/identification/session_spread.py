"""Spread of friction and standby power between sessions of one arm."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ur_energy_model.identification.friction.joint_fit import JointFit
from ur_energy_model.identification.friction.session_scales import spread_of
from ur_energy_model.model.sessions import FRICTION_SPREAD, STANDBY_SPREAD, SessionSpread
from ur_energy_model.typing import Array


def session_spread(joints: Sequence[JointFit], standby: Array, count: int) -> SessionSpread:
    """Spread between the sessions of an arm; the priors for a single session.

    Args:
        joints: results of the friction stage, with the scale of each session.
        standby: standby power of each session [W].
        count: number of sessions.
    """
    if count < 2:
        return SessionSpread()
    friction = [
        spread_of(joint.session_scales, FRICTION_SPREAD)
        if len(joint.session_scales)
        else FRICTION_SPREAD
        for joint in joints
    ]
    watts = spread_of(standby, STANDBY_SPREAD) if len(standby) else STANDBY_SPREAD
    return SessionSpread(watts, np.array(friction), count)
