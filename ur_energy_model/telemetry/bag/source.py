# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""BagSource: a recorded bag as a TelemetrySource."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.telemetry.gaps import NO_LOSSES
from ur_energy_model.telemetry.samples import (
    Event,
    RecordingInfo,
    Telemetry,
)
from ur_energy_model.telemetry.source import LinkStatus
from ur_energy_model.typing import ClosedOnExit, Self

DEFAULT_PERIOD = 0.002
"""Assumed period of a bag with a single sample [s]."""
LONGEST_PAUSE = 1.0  # longest time between two batches in real time [s]
_FIRST_SAMPLES = 100
"""Samples from which the period of a bag is measured: not every bag states its rate."""


class BagSource(ClosedOnExit):
    """A bag as a TelemetrySource.

    Args:
        path: the bag, as in `read_bag`.
        fields: RTDE names to read, as in `read_bag`.
        real_time: return samples at the rate they were recorded at (pauses last a second
            at most).
        batch_seconds: time span of a batch [s], by the period of the first samples.

    Attributes:
        info: robot and recording, known once the source is entered.
        fields: names of the fields of the samples, known once the source is entered.

    Raises:
        RecordingError: raised on entering: the bag cannot be read, see `read_bag`.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        fields: Sequence[str] | None = None,
        real_time: bool = False,
        batch_seconds: float = 0.05,
    ) -> None:
        self.info: RecordingInfo
        self.fields: tuple[str, ...]
        self._path = Path(path)
        self._chosen = fields
        self._batch_seconds = batch_seconds
        self._real_time = real_time
        self._next: Telemetry | None = None  # the batch that `read` returns next
        self._losses = NO_LOSSES

    def __enter__(self) -> Self:
        steps = np.diff(next(iterate_bag(self._path, (), _FIRST_SAMPLES)).time)
        steps = steps[steps > 0.0]
        period = float(np.median(steps)) if steps.size else DEFAULT_PERIOD
        samples = max(1, round(self._batch_seconds / period))
        self._batches = iterate_bag(self._path, self._chosen, samples)
        self._next = next(self._batches)
        self.info = self._next.info
        self.fields = tuple(self._next.columns)
        # When the last batch was due, by the monotonic clock, and its last sample, by the
        # controller's clock [s].
        self._due = time.monotonic()
        self._last = float(self._next.time[0])
        return self

    @property
    def status(self) -> LinkStatus:
        """A bag is always connected; what it lacks so far are its recorded gaps."""
        return LinkStatus(losses=self._losses)

    def take_events(self) -> list[Event]:
        """No events: those recorded in a bag are for people who open it in a viewer."""
        return []

    def read(self, timeout: float) -> Telemetry | None:
        """Next batch; None if it is not due within the timeout [s].

        Raises:
            EOFError: the bag has ended or is closed.
            RecordingError: the bag is damaged.
        """
        batch = self._next
        if batch is None:
            raise EOFError
        if self._real_time:
            end = float(batch.time[-1])
            due = self._due + min(max(end - self._last, 0.0), LONGEST_PAUSE)
            wait = due - time.monotonic()
            time.sleep(max(min(wait, timeout), 0.0))
            if wait > timeout:
                return None
            self._due = due
            self._last = end
        self._next = next(self._batches, None)
        self._losses = self._losses.after(batch.gaps)
        return batch

    def close(self) -> None:
        """Release the bag."""
        self._next = None
