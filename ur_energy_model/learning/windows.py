"""Samples cut into windows of the controller's clock, whatever batches they arrive in."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ur_energy_model.telemetry.runs import slices_between
from ur_energy_model.telemetry.samples import Telemetry, concatenate, find_gaps

WINDOW = 5.0
"""Length of a window [s]."""


class Windows:
    """Collects batches and returns the windows that are complete.

    A window ends WINDOW seconds of the controller's clock after the first one began, twice
    WINDOW seconds after, and so on, or where the clock goes back, from where it counts anew.
    """

    def __init__(self) -> None:
        self.origin = 0.0
        """Time at which the first window began [s]."""
        self.pending: list[Telemetry] = []
        """Batches of the window that is not complete yet."""

    def add(self, batch: Telemetry) -> list[Telemetry]:
        """Windows completed by a batch with finite times."""
        if not len(batch):
            return []
        done = []
        for run in slices_between(
            (np.flatnonzero(np.diff(batch.time) < 0) + 1).tolist(), len(batch)
        ):
            done += self._add_run(batch.cut(run))
        return done

    def _add_run(self, batch: Telemetry) -> list[Telemetry]:
        """Windows completed by a batch whose clock does not go back."""
        done: list[Telemetry] = []
        if self.pending and batch.time[0] < self.pending[-1].time[-1]:
            done += self.finish()
        if not self.pending:
            self.origin = float(batch.time[0])
        last = self.pending[-1].time[-1] if self.pending else batch.time[0]
        number = np.floor((np.append(last, batch.time) - self.origin) / WINDOW)
        cuts = np.flatnonzero(np.diff(number)).tolist()
        for part in slices_between(cuts, len(batch)):
            if part.start in cuts:
                done.append(_joined(self.pending))
                self.pending = []
            self.pending.append(batch.cut(part))
        return done

    @property
    def open(self) -> Telemetry | None:
        """The samples of the window that is not complete."""
        return _joined(self.pending) if self.pending else None

    def finish(self) -> list[Telemetry]:
        """The window that is not complete, if there is one."""
        done = [_joined(self.pending)] if self.pending else []
        self.pending = []
        return done


def _joined(parts: list[Telemetry]) -> Telemetry:
    """Batches as one, with the gaps of the clock."""
    window = concatenate(parts)
    rate = window.info.rate
    return replace(window, gaps=find_gaps(window.time, None if rate is None else 1.0 / rate))
