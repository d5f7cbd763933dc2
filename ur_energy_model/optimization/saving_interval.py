"""Uncertainty of energies and of a saving: the model's errors, not its parameters' alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.optimization.cycle_energy import StretchEnergy

MOTION_ERROR = 0.14
"""Relative error of the predicted energy of motion (RMS over held-out recordings of real arms)."""
CORRELATION = 0.95
"""Correlation of that error between two time laws of the same paths. The part that each law has of
its own is then 4 % of the energy of motion; on simulated arms it was 2 %."""


def energy_std(energy: StretchEnergy) -> float:
    """Standard deviation of a stretch's energy [J]: parameters, and the error of its motion."""
    return float(np.hypot(energy.energy_std, MOTION_ERROR * abs(energy.motion)))


def saving_interval(
    before: Sequence[StretchEnergy], after: Sequence[StretchEnergy]
) -> tuple[float, float]:
    """95 % interval (low, high) of the saving, percent of the energy before.

    Parameter errors are the same before and after. The model's error in the energy of motion is a
    relative one, with a common part and a part of each time law.

    Args:
        before: stretches of the recorded cycle.
        after: stretches of the new cycle.
    """
    energy, new = (sum(part.energy for part in parts) for parts in (before, after))
    motion, new_motion = (abs(sum(part.motion for part in parts)) for parts in (before, after))
    ratio = new / energy
    by_parameter = sum(part.sensitivity for part in after) - ratio * sum(
        part.sensitivity for part in before
    )
    own, other = MOTION_ERROR * new_motion, MOTION_ERROR * ratio * motion
    by_motion = own**2 + other**2 - 2 * CORRELATION * own * other
    deviation = 100.0 * float(np.sqrt(np.sum(np.square(by_parameter)) + by_motion)) / energy
    saving = 100.0 * (1.0 - ratio)
    return saving - CONFIDENCE * deviation, saving + CONFIDENCE * deviation
