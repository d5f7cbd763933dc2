# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""TelemetrySource: the interface that live and recorded telemetry share, and work on any source."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from ur_energy_model.telemetry.gaps import NO_LOSSES, Losses
from ur_energy_model.telemetry.samples import Event, RecordingInfo, Telemetry
from ur_energy_model.typing import Array, ClosedOnExit, Self


@dataclass(frozen=True)
class LinkStatus:
    """State of a source's connection; a recorded source has the defaults.

    Attributes:
        connected: whether samples can arrive.
        reconnects: number of connections after the first one.
        duplicates: number of packets left out because the controller sent the same tick again.
        skipped: number of packets left out because they could not be used: malformed, of unknown
            type, of no clock.
        last_error: why the connection was last lost or refused, None if it never was.
        problem: why no samples arrive now, None while they do. Complete at any time: also
            while the source is being entered and waits for its controller.
        losses: samples that are known to be lost since the source was entered: the gaps
            in front of the samples that have come. Those of a recorded source are the
            gaps of the recording.
        outage: length of the present outage [s], 0 while samples arrive. Nothing is lost
            by it yet.
        identity: what distinguishes the controller from another one at its address, None
            for a recorded source.
    """

    connected: bool = True
    reconnects: int = 0
    duplicates: int = 0
    skipped: int = 0
    last_error: str | None = None
    problem: str | None = None
    losses: Losses = NO_LOSSES
    outage: float = 0.0
    identity: str | None = None


class TelemetrySource(Protocol):
    """Samples in batches, in order, each exactly once.

    A source is a context manager: entering it connects (or opens), leaving it closes.
    """

    @property
    def info(self) -> RecordingInfo:
        """Robot and recording; complete once the source is entered."""
        ...

    @property
    def fields(self) -> tuple[str, ...]:
        """RTDE names of the columns of each batch; known once the source is entered."""
        ...

    @property
    def status(self) -> LinkStatus:
        """State of the connection, at any time."""
        ...

    def take_events(self) -> list[Event]:
        """Events since the last call, in order; a recorded source has none."""
        ...

    def read(self, timeout: float) -> Telemetry | None:
        """Next batch of at least one sample, None if none came in time (or it is reconnecting).

        Args:
            timeout: longest time to wait [s].

        Raises:
            EOFError: the source is closed, or a recorded source has ended.
            UrEnergyError: the source failed for good.
        """
        ...

    def close(self) -> None:
        """Release the source, entered or not; another thread may be reading it."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class ObservedSource(ClosedOnExit):
    """A source whose batches are shown to a function before they are passed on.

    Args:
        source: source of samples.
        observe: called with each batch, in the thread that reads; must not take long.
    """

    def __init__(
        self, source: TelemetrySource, observe: Callable[[Telemetry], None]
    ) -> None:
        self._source = source
        self._observe = observe

    @property
    def info(self) -> RecordingInfo:
        """Robot and recording."""
        return self._source.info

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self._source.fields

    @property
    def status(self) -> LinkStatus:
        """State of the connection."""
        return self._source.status

    def take_events(self) -> list[Event]:
        """Events of the source since the last call."""
        return self._source.take_events()

    def read(self, timeout: float) -> Telemetry | None:
        """Next batch of the source, unchanged; see `TelemetrySource.read`."""
        batch = self._source.read(timeout)
        if batch is not None:
            self._observe(batch)
        return batch

    def __enter__(self) -> Self:
        self._source.__enter__()
        return self

    def close(self) -> None:
        """Close the source."""
        self._source.close()


# Decimator: selects moments of a stream at a lower rate.

MOST_LATE = 10  # most periods whose samples came together and are still taken one by one
MOST_LATE_SECONDS = 0.2  # time of as many short periods as are taken so [s]
EARLY = 0.25
"""Share of a period by which a moment may be early: batches end on whole samples."""


class Decimator:
    """Moments at a lower rate than samples arrive.

    It uses the clock of the samples, so that a batch that was read late shifts nothing,
    and a fixed grid, so that the mean rate is exact although batches rarely end on the
    grid.

    Args:
        rate: rate of the grid [Hz].

    Attributes:
        period: time between two moments of the grid [s].
    """

    def __init__(self, rate: float) -> None:
        self.period = 1.0 / rate
        self._next = -math.inf  # time of the next moment, by the clock of the samples [s]

    def parts(self, time: Array) -> tuple[list[slice], int]:
        """Divide samples that came together after a delay into parts of one period each.

        Samples of more than MOST_LATE periods, and MOST_LATE_SECONDS, would be late: they
        stay one part.

        Args:
            time: times of the samples behind the sample of the last call of `due` [n >=
                1], s.

        Returns:
            The parts, and the number of periods that have samples but no part.
        """
        count = len(time)
        whole = [slice(0, count)]
        if count == 1:
            return whole, 0
        newest = float(time[-1])
        covered = (newest - float(time[0])) * count / (count - 1)  # covered time [s]
        since = newest - (self._next - self.period)  # the last moment [s]
        late = min(covered, since) / self.period
        periods = min(round(late), count) if 0.0 < late < math.inf else 1
        if periods <= 1 or periods > max(MOST_LATE, MOST_LATE_SECONDS / self.period):
            return whole, max(periods - 1, 0)
        edges = [round(k * count / periods) for k in range(periods + 1)]
        return [slice(start, stop) for start, stop in pairwise(edges)], 0

    def due(self, now: float) -> bool:
        """Whether it is due at the time of the newest sample [s]; True schedules the next time."""
        early = self._next - now
        if EARLY * self.period < early <= 2.0 * self.period:
            return False
        # A clock that went back, or jumped ahead, starts a new grid.
        follows = abs(early) <= self.period
        self._next = (self._next if follows else now) + self.period
        return True
