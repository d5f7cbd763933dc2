"""Direction of Coulomb friction with presliding memory."""

from __future__ import annotations

import numpy as np

from ur_energy_model.identification.regression.filtered_motion import FilteredMotion
from ur_energy_model.model.friction.presliding import presliding
from ur_energy_model.model.friction.terms import SMOOTHING
from ur_energy_model.typing import Array


class DirectionMemory:
    """Direction of Coulomb friction with presliding over consecutive motions of one recording.

    Args:
        travel: [..., n], rad.
    """

    def __init__(self, travel: Array) -> None:
        self.travel = travel
        self._state: Array | None = None
        self._time = -np.inf

    def __call__(self, motion: FilteredMotion) -> Array:
        """Direction [samples, ..., n]; NaN where the travel is zero."""
        width = motion.q.shape[1]
        period = float(motion.time[1] - motion.time[0]) if len(motion) > 1 else 0.0
        if self._state is None or motion.time[0] - self._time > 1.5 * period:
            self._state = np.broadcast_to(np.tanh(motion.qd[0] / SMOOTHING), self.travel.shape)
        shape = (len(motion), *(1,) * (self.travel.ndim - 1), width)
        out, self._state = presliding(
            motion.q.reshape(shape), motion.qd.reshape(shape), self.travel, self._state
        )
        self._time = float(motion.time[-1])
        return out
