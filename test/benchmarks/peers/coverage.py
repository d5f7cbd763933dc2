"""Whether stated 95 % intervals hold the truth: errors counted against standard deviations."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from ur_energy_model.typing import Mask

HALF_WIDTH = NormalDist().inv_cdf(0.975)
"""Half width of a 95 % interval in standard deviations."""


def covered(error: ArrayLike, std: ArrayLike) -> Mask:
    """Whether 95 % intervals hold the truth, element by element.

    Args:
        error: stated value minus truth, any shape.
        std: stated standard deviation, same shape and unit.
    """
    return np.asarray(np.abs(error) <= HALF_WIDTH * np.asarray(std))


@dataclass
class Coverage:
    """Counts of intervals.

    Attributes:
        inside: how many hold the truth.
        count: how many there are.
        squares: sum of squared errors over variances.
    """

    inside: float = 0.0
    count: float = 0.0
    squares: float = 0.0

    def add(self, error: ArrayLike, std: ArrayLike, *, as_one: bool = False) -> None:
        """Count intervals; those without a finite error or deviation do not count.

        Args:
            error: stated values minus truths, any shape.
            std: stated standard deviations, same shape.
            as_one: all of them together count as one interval, as samples of one signal do.
        """
        off, spread = np.broadcast_arrays(np.asarray(error, float), np.asarray(std, float))
        known = np.isfinite(off) & np.isfinite(spread)
        off, spread = off[known], spread[known]
        if not off.size:
            return
        weight = 1.0 / off.size if as_one else 1.0
        with np.errstate(divide="ignore", invalid="ignore"):
            deviations = np.where(off == 0.0, 0.0, off / spread)
        self.inside += weight * float(covered(off, spread).sum())
        self.count += weight * off.size
        self.squares += weight * float(np.square(deviations).sum())

    @property
    def share(self) -> float:
        """Share of the intervals that hold the truth, 0.95 where right; NaN without any."""
        return self.inside / self.count if self.count else float("nan")

    @property
    def rms(self) -> float:
        """RMS of errors over standard deviations, 1 where they are right; NaN without any."""
        return float(np.sqrt(self.squares / self.count)) if self.count else float("nan")
