"""ControllerCounter: the controller's own energy counter, accumulated over its restarts."""

from __future__ import annotations

import numpy as np

from ur_energy_model.energy.rated_limits import MOST_POWER
from ur_energy_model.telemetry.runs import changes
from ur_energy_model.telemetry.samples import Telemetry

FIELD = "actual_robot_energy_consumed"
LARGEST = 1.0e12
"""Largest value of the counter that is possible."""
LEAST_SECONDS = 0.1
"""Least time between two values [s]: the controller may update the counter slowly."""


class ControllerCounter:
    """Sum of the increments of the controller's energy counter.

    Values that are not finite, and increments beyond any arm's power, do not count.

    Attributes:
        total: energy since the first batch, in the counter's unit; None before any batch has it.
    """

    def __init__(self) -> None:
        self.total: float | None = None
        self._last = self._last_time = 0.0

    def update(self, batch: Telemetry) -> None:
        """Add the increments of a batch; does nothing where the controller has no counter."""
        values, time = batch.columns.get(FIELD), batch.time
        if values is None:
            return
        known = np.abs(values) <= LARGEST
        if not known.all():
            values, time = values[known], time[known]
        if not len(values):
            return
        if self.total is None:
            self.total, self._last, self._last_time = 0.0, float(values[0]), float(time[0])
        steps, seconds = changes(values, self._last), changes(time, self._last_time)
        possible = (steps > 0.0) & (steps <= MOST_POWER * np.maximum(seconds, LEAST_SECONDS))
        self.total += float(steps[possible].sum())
        self._last, self._last_time = float(values[-1]), float(time[-1])
