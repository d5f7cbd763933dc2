"""Systematic part of a residual, and how far it limits the torque constant."""

from __future__ import annotations

import numpy as np

from ur_energy_model.identification.friction.current_columns import ACCELERATION, LOAD
from ur_energy_model.identification.regression.least_squares import Solution
from ur_energy_model.typing import Array


def systematic_rms(solution: Solution, memory: float) -> float:
    """RMS of the residual's systematic part [A].

    Residuals correlated for longer than filtered white noise would be count as systematic.

    Args:
        solution: of the fit.
        memory: samples over which the filter correlates white noise.
    """
    share = 1.0 - memory * solution.effective_samples / solution.samples
    return float(solution.residual * np.sqrt(max(share, 0.0)))


def load_share_unexplained(
    solution: Solution, gram: Array, systematic: float, inertia_spread: float | None
) -> float:
    """Systematic residual (RMS) over the current that determines the scale of the load (RMS).

    Args:
        solution: of the fit.
        gram: Gram matrix of all samples.
        systematic: RMS of the residual's systematic part [A].
        inertia_spread: relative prior deviation of the inertia where it is fitted too, else None.
            If it is fitted, the scale follows from the load that acceleration does not explain,
            or from the prior of the inertia, whichever is more exact.
    """
    scale = solution.coefficients[0] / np.sqrt(solution.samples)
    ratio = float(systematic / max(scale * np.sqrt(gram[LOAD, LOAD]), 1e-9))
    if inertia_spread is None:
        return ratio
    shared = gram[LOAD, ACCELERATION] ** 2 / max(gram[ACCELERATION, ACCELERATION], 1e-30)
    own = scale * np.sqrt(max(gram[LOAD, LOAD] - shared, 0.0))
    return min(float(systematic / max(own, 1e-9)), float(np.hypot(ratio, inertia_spread)))
