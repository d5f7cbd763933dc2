"""The motor constant k_m, and the drive constants that Clochiatti et al. 2024 (S0) assume."""

from __future__ import annotations

import numpy as np

KT_OVER_KB = 0.89
"""k_t/k_b that S0 takes from the catalogue."""
CATALOGUE_MOTOR_CONSTANT = {3: 0.27426, 1: 0.06632}
"""Motor constants k_m that S0 takes from the catalogue, by joint size [N m/sqrt(W)]."""


def motor_constant(torque_constant: float, winding_resistance: float) -> float:
    """k_m = k_t / sqrt(R): torque per square root of copper loss [N m/sqrt(W)]; NaN without R."""
    if not winding_resistance > 0:
        return float("nan")
    return float(torque_constant / np.sqrt(winding_resistance))
