"""Power of an arm that is switched off or has its brakes engaged."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ur_energy_model.robot_modes import ROBOT_MODES
from ur_energy_model.telemetry.modes import POWER_OFF
from ur_energy_model.typing import Array


def mode_power(known: Mapping[str, float], modes: Array, engaged: float) -> Array:
    """Power by robot mode, where it was not measured at the bus [samples], W.

    Args:
        known: power by name of the mode, W, from the model.
        modes: robot_mode of each sample [samples].
        engaged: with brakes engaged, for modes that are not known [W].
    """
    power = np.where(modes <= POWER_OFF, 0.0, engaged)
    for code, name in ROBOT_MODES.items():
        if name in known:
            power[modes == code] = known[name]
    return power
