# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""TelemetrySource: the interface that live and recorded telemetry share."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Protocol

from ur_energy_model.errors import ControllerError
from ur_energy_model.telemetry.gaps import NO_LOSSES, Losses
from ur_energy_model.telemetry.sample_queue import QueuedAction, SampleQueue
from ur_energy_model.telemetry.samples import Event, RecordingInfo, Telemetry, concatenate
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
        source: of samples.
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


# One connection for several consumers.

READ_TIMEOUT = 0.2
MOST_WAITING = 40 << 20
"""Bytes of samples that may wait for a consumer; those without a place are a gap."""
LAG = "the reader of these samples was too slow"


class SharedSource:
    """Reads a source in one thread and passes every batch to all its consumers.

    The source is entered with the first consumer and closed with the last one. After a
    failure, the next consumer that is entered makes a new source.

    Args:
        make: makes the source.

    Attributes:
        source: that is being read or entered; None without consumers.
        consumers: that get every batch.
        entering: the consumer whose entering connects the source, None if none does.
        lock: held while consumers join and leave.
    """

    def __init__(self, make: Callable[[], TelemetrySource]) -> None:
        self.source: TelemetrySource | None = None
        self.consumers: list[Consumer] = []
        self.entering: Consumer | None = None
        self.lock = threading.Lock()
        self._make = make
        self._thread: threading.Thread | None = None

    def consumer(self, batch_seconds: float = 0.0) -> Consumer:
        """A source for one consumer, whose batches have at least this time span [s]."""
        return Consumer(self, batch_seconds)

    def enter(self, consumer: Consumer) -> TelemetrySource:
        """The source, made and entered if it is not being read; the caller holds the lock."""
        is_read = self._thread is not None and self._thread.is_alive()
        if self.source is not None and is_read:
            self.consumers = [*self.consumers, consumer]
            return self.source
        source = self._make()
        self.source = source
        self.entering = consumer
        try:
            consumer.check_open()
            source.__enter__()
        except BaseException:
            self.source = None
            raise
        finally:
            self.entering = None
        self.consumers = [consumer]
        self._thread = threading.Thread(
            target=self._read, args=(source,), name="shared source", daemon=True
        )
        self._thread.start()
        return source

    def leave(self, consumer: Consumer) -> None:
        """Pass no more batches to this consumer; disconnect after the last one."""
        with self.lock:
            self.consumers = [other for other in self.consumers if other is not consumer]
            if self.consumers or self.source is None:
                return
            thread = self._thread
            source = self.source
            self.source = None
            self._thread = None
            if thread is not None:
                thread.join()
            source.close()

    def _read(self, source: TelemetrySource) -> None:
        """The reading thread; an error of the source reaches every consumer."""
        try:
            while self.consumers:
                batch = source.read(READ_TIMEOUT)
                if batch is not None:
                    for consumer in self.consumers:
                        # shared: consumers must not write to it
                        consumer.queue.put(batch)
        except BaseException as error:
            failed: Future[object] = Future()
            failed.set_exception(error)
            for consumer in self.consumers:
                consumer.queue.put(QueuedAction(failed.result))


class Consumer(ClosedOnExit):
    """One consumer's view of a shared source; a TelemetrySource itself.

    Args:
        shared: the shared source.
        batch_seconds: shortest time span of a batch [s]; shorter batches of the shared
            source are joined, so that the consumer's thread does not wake up for each.

    Attributes:
        queue: batches that the consumer has not read yet.
    """

    def __init__(self, shared: SharedSource, batch_seconds: float = 0.0) -> None:
        self.queue = SampleQueue(MOST_WAITING, LAG)
        self._shared = shared
        self._batch_seconds = batch_seconds
        self._end: QueuedAction | None = None
        self._source: TelemetrySource | None = None
        self._joined = self._closed = False

    def __enter__(self) -> Self:
        # another one is connecting
        while not self._shared.lock.acquire(timeout=READ_TIMEOUT):
            self.check_open()
        try:
            self._source = self._shared.enter(self)
        finally:
            self._shared.lock.release()
        samples = self._batch_seconds * (self._source.info.rate or 1.0)
        self.queue.awaited = max(1, round(samples))
        self._joined = True
        return self

    def close(self) -> None:
        """Leave the shared source, or end the attempt to connect."""
        self._closed = True
        source = self._shared.source
        if self._joined:
            self._joined = False
            self._shared.leave(self)
        elif self._shared.entering is self and source is not None:
            source.close()

    def check_open(self) -> None:
        """Raise ControllerError if the consumer was closed."""
        if self._closed:
            problem = "was closed before it was made"
            raise ControllerError("the shared connection", problem, "connect again")

    @property
    def info(self) -> RecordingInfo:
        """Robot and recording."""
        return self._entered.info

    @property
    def fields(self) -> tuple[str, ...]:
        """RTDE names of the columns."""
        return self._entered.fields

    @property
    def _entered(self) -> TelemetrySource:
        assert self._source is not None, "enter the source before using it"
        return self._source

    @property
    def status(self) -> LinkStatus:
        """State of the shared connection, and what this consumer lost beyond it."""
        source = self._shared.source if self._source is None else self._source
        if source is None:
            return LinkStatus(connected=False, problem="not connected yet")
        status = source.status
        return replace(status, losses=status.losses + self.queue.losses)

    def take_events(self) -> list[Event]:
        """Events of the source since the last call; each event goes to one consumer only."""
        return [] if self._source is None else self._source.take_events()

    def read(self, timeout: float) -> Telemetry | None:
        """Next samples, None if none came in time.

        Raises:
            EOFError: the source has ended.
            UrEnergyError: the source failed for good.
        """
        batches: list[Telemetry] = []
        while self._end is None:
            item = self.queue.get(0.0 if batches else timeout)
            if isinstance(item, QueuedAction):
                self._end = item
            elif isinstance(item, Telemetry):
                batches.append(item)
            else:
                break
        if batches:
            return concatenate(batches)
        if self._end is not None:
            self._end.action()
        return None


# Decimator: selects moments of a stream at a lower rate.

MOST_LATE = 10
MOST_LATE_SECONDS = 0.2
"""Periods whose samples came together and are still taken one by one, and time of short ones."""
# part of a period by which a moment may be early: batches end on whole samples
EARLY = 0.25


class Decimator:
    """Moments at a lower rate than samples arrive.

    It uses the clock of the samples, so that a batch that was read late shifts nothing,
    and a fixed grid, so that the mean rate is exact although batches rarely end on the
    grid.

    Args:
        rate: of the moments [Hz].
    """

    def __init__(self, rate: float) -> None:
        self.period = 1.0 / rate
        self._next = -math.inf

    def parts(self, time: Array) -> tuple[list[slice], int]:
        """Divide samples that came together after a delay into parts of one period each.

        Samples of more than MOST_LATE periods, and MOST_LATE_SECONDS, would be late: they
        stay one part.

        Args:
            time: of the samples behind the sample of the last call of `due` [n >= 1], s.

        Returns:
            The parts, and the number of periods that have samples but no part.
        """
        count = len(time)
        whole = [slice(0, count)]
        if count == 1:
            return whole, 0
        covered = float(time[-1] - time[0]) * count / (count - 1)
        since = float(time[-1]) - (self._next - self.period)
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
