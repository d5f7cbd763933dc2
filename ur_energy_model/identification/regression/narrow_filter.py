"""Second, narrow low-pass filter of measurement and model columns (parallel filtering)."""

from __future__ import annotations

import numpy as np

from ur_energy_model.identification.regression.filtered_motion import FilteredMotion
from ur_energy_model.low_pass import low_pass
from ur_energy_model.typing import Array, Mask

SHORTEST = 12
"""Samples of the shortest stretch that is filtered."""
_STILL_SHARE = 0.1
_PADDING = 1.5
"""Extension at either end, in periods of the cut-off."""


class NarrowFilter:
    """Low-pass filter for measurement and model columns of one recording alike.

    Args:
        cutoff: [Hz].
    """

    def __init__(self, cutoff: float) -> None:
        self.cutoff = cutoff

    def inside(self, motion: FilteredMotion) -> slice:
        """Samples out of reach of the ends of the stretch, thinned to what the cut-off needs."""
        if len(motion) < SHORTEST:
            return slice(0, 0)
        rate = 1 / motion.period
        edge = int(np.ceil(0.5 * rate / self.cutoff))
        return slice(edge, max(edge, len(motion) - edge), max(1, int(rate / (8 * self.cutoff))))

    def __call__(self, motion: FilteredMotion, values: Array) -> Array:
        """Values [samples, ...] of a motion's samples, filtered along time."""
        return low_pass(values, round(motion.period, 9), self.cutoff, padding=_PADDING)

    def moving(self, motion: FilteredMotion, speed: float) -> Mask:
        """Samples [samples, n] of joints that move, clear of standstill by the filter's reach.

        At standstill friction takes any value up to its limit, and the filter carries that into
        the neighbouring motion.
        """
        still = self(motion, (np.abs(motion.qd) < speed).astype(float))
        return np.asarray((np.abs(motion.qd) >= speed) & (still < _STILL_SHARE))
