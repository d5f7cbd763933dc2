"""The motor constant k_m, and the drive constants that Clochiatti et al. 2024 (S0) assume."""

from __future__ import annotations

import numpy as np

from ur_energy_model.errors import InputError
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.typing import Array

KT_OVER_KB = 0.89
"""k_t/k_b that S0 takes from the catalogue."""
CATALOGUE_MOTOR_CONSTANT = {3: 0.27426, 1: 0.06632}
"""Motor constants k_m that S0 takes from the catalogue, by joint size [N m/sqrt(W)]."""

_RATED_TORQUE = {3: 150.0, 1: 28.0}
"""Rated torque of these joint sizes [N m]: S0 finds the catalogue motors by it."""


def catalogue_motor_constants(robot: RobotDescription) -> Array:
    """Motor constants [n] that S0 takes from the catalogue, N m/sqrt(W).

    Raises:
        InputError: a joint has none of the two sizes of a UR5e.
    """
    known = {_RATED_TORQUE[size]: value for size, value in CATALOGUE_MOTOR_CONSTANT.items()}
    rated = robot.max_torque.tolist()
    if any(torque not in known for torque in rated):
        raise InputError(
            "--power-model catalogue",
            f"the paper chose motors for joints of 150 and 28 N m only, not for a {robot.name}",
            "use physical or ecbot",
        )
    return np.array([known[torque] for torque in rated])


def motor_constant(torque_constant: float, winding_resistance: float) -> float:
    """k_m = k_t / sqrt(R): torque per square root of copper loss [N m/sqrt(W)]; NaN without R."""
    if not winding_resistance > 0:
        return float("nan")
    return float(torque_constant / np.sqrt(winding_resistance))
