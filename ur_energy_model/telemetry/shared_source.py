# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""SharedSource: one connection for several consumers, each of which is a source itself."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace

from ur_energy_model.errors import ControllerError
from ur_energy_model.telemetry.sample_queue import QueuedAction, SampleQueue
from ur_energy_model.telemetry.samples import Event, RecordingInfo, Telemetry, concatenate
from ur_energy_model.telemetry.source import LinkStatus, TelemetrySource
from ur_energy_model.typing import ClosedOnExit, Self

READ_TIMEOUT = 0.2  # longest time of a read, and of a wait for the lock [s]
MOST_WAITING = 40 << 20
"""Bytes of samples that may wait for a consumer; samples without a place are a gap."""
LAG = "the reader of these samples was too slow"
"""Cause of such a gap."""


class SharedSource:
    """Reads a source in one thread and passes every batch to all its consumers.

    The source is entered with the first consumer and closed with the last one. After a
    failure, the next consumer that is entered makes a new source.

    Args:
        make: makes the source.

    Attributes:
        source: source that is being read or entered; None without consumers.
        consumers: consumers to which every batch is passed.
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
        self._end: QueuedAction | None = None  # raises the error that ended the source
        self._source: TelemetrySource | None = None
        self._joined = False
        self._closed = False

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
        """The shared source; only once the consumer was entered."""
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
