# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What the live estimator accumulates beside its energies: a counter, and a running mean."""

from __future__ import annotations

import math

import numpy as np

from ur_energy_model.energy.telemetry_checks import MOST_POWER
from ur_energy_model.telemetry.samples import Telemetry, changes

LARGEST = 1.0e12
"""Largest value of the controller's energy counter that is possible."""
LEAST_SECONDS = 0.1
"""Least time between two values [s]: the controller may update the counter slowly."""


class ControllerCounter:
    """Sum of the increments of the controller's energy counter, over its restarts.

    Values that are not finite, and increments beyond any arm's power, do not count.

    Attributes:
        total: energy since the first batch, in the counter's unit, J; None before any
            batch has the counter.
    """

    def __init__(self) -> None:
        self.total: float | None = None
        self._last = 0.0
        self._last_time = 0.0

    def update(self, batch: Telemetry) -> None:
        """Add the increments of a batch; does nothing where the controller has no counter."""
        values = batch.columns.get("actual_robot_energy_consumed")
        time = batch.time
        if values is None:
            return
        known = np.abs(values) <= LARGEST
        if not known.all():
            values = values[known]
            time = time[known]
        if not len(values):
            return
        if self.total is None:
            self.total = 0.0
            self._last = float(values[0])
            self._last_time = float(time[0])
        steps = changes(values, self._last)
        seconds = changes(time, self._last_time)
        possible = (steps > 0.0) & (
            steps <= MOST_POWER * np.maximum(seconds, LEAST_SECONDS)
        )
        self.total += float(steps[possible].sum())
        self._last = float(values[-1])
        self._last_time = float(time[-1])


class RunningMean:
    """Exponentially weighted mean and variance of a slow quantity, unbiased from the first value.

    Up to one time constant the mean is arithmetic; the recursion for the variance is that
    of Welford, with weights of the durations.

    Args:
        time_constant: time constant of the weights [s].

    Attributes:
        mean: mean of the values.
        variance: variance of the values about it.
        elapsed: time observed [s].
    """

    def __init__(self, time_constant: float) -> None:
        self.time_constant = time_constant
        self.mean = 0.0
        self.variance = 0.0
        self.elapsed = 0.0

    def update(self, duration: float, value: float) -> float:
        """Include a value.

        Args:
            duration: how long the value lasted [s]; without any it does not count.
            value: mean value over the time, in the unit of the quantity.

        Returns:
            The weight of the value in the mean, 0 to 1.
        """
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
