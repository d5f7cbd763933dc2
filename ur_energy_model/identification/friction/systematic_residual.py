"""What of a fit's residual is systematic, and how much of the load it may pass for."""

from __future__ import annotations

import numpy as np

from ur_energy_model.identification.regression.least_squares import Solution
from ur_energy_model.typing import Array


def systematic_rms(solution: Solution, memory: float) -> float:
    """RMS of the residual's systematic part [A].

    Residuals that are correlated for longer than the filter makes white noise are systematic.

    Args:
        solution: of the fit.
        memory: samples over which the filter correlates white noise.
    """
    share = 1.0 - memory * solution.effective_samples / solution.samples
    return float(solution.residual * np.sqrt(max(share, 0.0)))


def load_share_unexplained(
    solution: Solution, gram: Array, systematic: float, believed: float | None
) -> float:
    """RMS of the residual's systematic part over that of the current that tells the load's scale.

    Args:
        solution: of the fit.
        gram: of all samples.
        systematic: RMS of the residual's systematic part [A].
        believed: relative deviation of the inertia, the last coefficient, before the fit; None
            where it is not fitted. Then only what acceleration does not explain tells the scale,
            or the inertia as it was believed.
    """
    scale = solution.coefficients[0] / np.sqrt(solution.samples)
    ratio = float(systematic / max(scale * np.sqrt(gram[0, 0]), 1e-9))
    if believed is None:
        return ratio
    shared = gram[0, -2] ** 2 / max(gram[-2, -2], 1e-30)
    own = scale * np.sqrt(max(gram[0, 0] - shared, 0.0))
    return min(float(systematic / max(own, 1e-9)), float(np.hypot(ratio, believed)))
