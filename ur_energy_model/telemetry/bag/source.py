"""BagSource: a recorded bag as a TelemetrySource."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.telemetry.event import Event
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry
from ur_energy_model.telemetry.source import LinkStatus
from ur_energy_model.typing import Array, Self

DEFAULT_PERIOD = 0.002
"""Assumed period of a bag with a single sample [s]."""
_FIRST_SAMPLES = 100
"""Samples from which the period of a bag is measured: not every bag states its rate."""


class BagSource:
    """A bag as a TelemetrySource.

    Args:
        path: of the bag.
        fields: names wanted, None for all.
        real_time: return samples at the rate they were recorded at (pauses last a second at
            most); otherwise at once.
        batch_seconds: time span of a batch, by the period of the first samples.

    Attributes:
        info: robot and recording; known once the source is entered.
        fields: RTDE names of the columns; known once the source is entered.

    Raises:
        RecordingError: on entering: not a bag, or one that cannot be read.
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
        self._path, self._wanted, self._batch_seconds = Path(path), fields, batch_seconds
        self._real_time = real_time
        self._next: Telemetry | None = None
        self._due = 0.0
        self._last: float | None = None

    def __enter__(self) -> Self:
        first = next(iterate_bag(self._path, (), _FIRST_SAMPLES))
        samples = max(1, round(self._batch_seconds / _period(first.time)))
        self._batches = iterate_bag(self._path, self._wanted, samples)
        self._next = next(self._batches)
        self.info, self.fields = self._next.info, tuple(self._next.columns)
        self._due = time.monotonic()
        return self

    @property
    def status(self) -> LinkStatus:
        """A bag is always connected."""
        return LinkStatus()

    def take_events(self) -> list[Event]:
        """No events; `read_events` returns those recorded in the bag."""
        return []

    def read(self, timeout: float) -> Telemetry | None:
        """Next batch; None if it is not due within the timeout.

        Raises:
            EOFError: the bag has ended or is closed.
            RecordingError: the bag is damaged.
        """
        if self._next is None:
            raise EOFError
        if self._real_time:
            batch = self._next
            start = self._last if self._last is not None else float(batch.time[0])
            due = self._due + min(max(float(batch.time[-1]) - start, 0.0), 1.0)
            wait = due - time.monotonic()
            if wait > timeout:
                time.sleep(max(timeout, 0.0))
                return None
            time.sleep(max(wait, 0.0))
            self._due = due
            self._last = float(batch.time[-1])
        batch, self._next = self._next, next(self._batches, None)
        return batch

    def close(self) -> None:
        """Release the bag."""
        self._next = None

    def __exit__(self, *_: object) -> None:
        self.close()


def _period(time: Array) -> float:
    """Median step of timestamps [n], s; DEFAULT_PERIOD if there is none."""
    steps = np.diff(time)
    steps = steps[steps > 0.0]
    return float(np.median(steps)) if steps.size else DEFAULT_PERIOD
