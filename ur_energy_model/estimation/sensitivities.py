"""Sensitivities of the powers to the model's parameter errors, worked out now and then."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.model.drive import Prediction

Array = NDArray[np.float64]

PERIOD = 0.05
"""How often they are worked out anew [s]; they are held in between."""


class HeldSensitivities:
    """The newest sensitivities, in the order of the power matrix's last columns.

    Args:
        joints: n.
        errors: number of parameter errors of a joint's power, and of the total's.

    Attributes:
        values: those of the joints, then those of the total [n * errors[0] + errors[1]], W.
    """

    def __init__(self, joints: int, errors: tuple[int, int]) -> None:
        each, whole = errors
        self.values = np.zeros(joints * each + whole)
        self._joints = self.values[: joints * each].reshape(joints, each)
        self._total = self.values[joints * each :]
        self._time = -np.inf

    def due(self, now: float) -> bool:
        """Whether it is time to work them out anew, at a time [s] of the samples' clock."""
        if abs(now - self._time) < PERIOD:
            return False
        self._time = now
        return True

    def hold(self, split: Prediction) -> None:
        """Keep those of the last sample of a prediction that has them."""
        joints, total = split.sensitivity[-1], split.total_sensitivity[-1]
        self.values[:] = 0.0
        self._joints[:, : joints.shape[1]] = joints
        self._total[: len(total)] = total
