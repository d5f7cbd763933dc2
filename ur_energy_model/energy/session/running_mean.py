"""Exponentially weighted mean and variance of a slow quantity."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass
class RunningMean:
    """Exponentially weighted mean and variance, unbiased from the first value on.

    Attributes:
        time_constant: s.
        mean, variance: of the values so far (0 before the first).
        elapsed: time observed [s].
    """

    time_constant: float
    mean: float = 0.0
    variance: float = 0.0
    elapsed: float = 0.0

    def update(self, duration: float, value: float) -> float:
        """Include a value that lasted `duration` [s]; returns its weight in the mean."""
        if duration <= 0:
            return 0.0
        self.elapsed += duration
        # An arithmetic mean at first, exponential once a time constant has passed.
        weight = min(1.0, duration / min(self.elapsed, self.time_constant))
        delta = value - self.mean
        self.mean += weight * delta
        self.variance = (1.0 - weight) * (self.variance + weight * delta * delta)
        return weight

    @property
    def std(self) -> float:
        """Standard deviation of the values."""
        return math.sqrt(self.variance)
