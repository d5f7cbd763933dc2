"""Small operations on batches of a stream."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ur_energy_model.telemetry.samples import Telemetry


class ControllerCounter:
    """The controller's own energy counter, over its restarts."""

    FIELD = "actual_robot_energy_consumed"

    def __init__(self) -> None:
        self.total: float | None = None
        self._last = 0.0

    def update(self, batch: Telemetry) -> None:
        """Take in a batch; does nothing where the controller has no such counter."""
        values = batch.columns.get(self.FIELD)
        if values is None:
            return
        if self.total is None:
            self.total, self._last = 0.0, float(values[0])
        steps = np.diff(values, prepend=self._last)
        self.total += float(np.maximum(steps, 0.0).sum())
        self._last = float(values[-1])


def merged(batches: Sequence[Telemetry]) -> Telemetry:
    """Consecutive batches of one source as one (gaps are left to the clock)."""
    if len(batches) == 1:
        return batches[0]
    first = batches[0]
    columns = {
        name: np.concatenate([batch.columns[name] for batch in batches]) for name in first.columns
    }
    return Telemetry(np.concatenate([batch.time for batch in batches]), columns, first.info)
