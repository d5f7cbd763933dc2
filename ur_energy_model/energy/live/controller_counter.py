"""ControllerCounter: the controller's own energy counter, accumulated over its restarts."""

from __future__ import annotations

import numpy as np

from ur_energy_model.telemetry.samples import Telemetry

FIELD = "actual_robot_energy_consumed"


class ControllerCounter:
    """Sum of the increments of the controller's energy counter.

    Attributes:
        total: energy since the first batch, in the counter's unit; None before any batch has it.
    """

    def __init__(self) -> None:
        self.total: float | None = None
        self._last = 0.0

    def update(self, batch: Telemetry) -> None:
        """Add the increments of a batch; does nothing where the controller has no counter."""
        values = batch.columns.get(FIELD)
        if values is None:
            return
        if self.total is None:
            self.total, self._last = 0.0, float(values[0])
        steps = np.diff(values, prepend=self._last)
        self.total += float(np.maximum(steps, 0.0).sum())
        self._last = float(values[-1])
