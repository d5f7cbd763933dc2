"""SharedSource: one connection for several consumers."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace

from ur_energy_model.errors import ControllerError
from ur_energy_model.telemetry.dropped_samples import DroppedSamples
from ur_energy_model.telemetry.event import Event
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry, concatenate
from ur_energy_model.telemetry.source import LinkStatus, TelemetrySource
from ur_energy_model.typing import Self

READ_TIMEOUT = 0.2
MOST_WAITING = 50_000
"""Samples that may wait for a consumer; those that find no place are a gap in its samples."""
LAG = "the reader of these samples was too slow"


class SharedSource:
    """Reads a source in one thread and passes every batch to all its consumers.

    The source is entered with the first consumer and closed with the last one. After a failure,
    the next consumer that is entered makes a new source.
    """

    def __init__(self, make: Callable[[], TelemetrySource]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._consumers: list[Consumer] = []
        self._thread: threading.Thread | None = None
        self._entering: Consumer | None = None
        self.source: TelemetrySource | None = None
        """The source, while there are consumers."""

    def consumer(self, samples: int = 1) -> Consumer:
        """A source for one consumer.

        Args:
            samples: number of samples that each read waits for; 1 for the smallest latency.
        """
        return Consumer(self, samples)

    def join(self, consumer: Consumer) -> TelemetrySource:
        """Connect if there is no connection yet, and pass batches to this consumer from now on.

        Raises:
            UrEnergyError: the source cannot be entered.
            ControllerError: also if the consumer was closed meanwhile.
        """
        while not self._lock.acquire(timeout=READ_TIMEOUT):  # another one is connecting
            consumer.check_open()
        try:
            if self.source is None or self._thread is None or not self._thread.is_alive():
                source = self._enter(consumer)
                self._thread = threading.Thread(
                    target=self._read, args=(source,), name="shared source", daemon=True
                )
                self._consumers = [consumer]
                self._thread.start()
            else:
                source = self.source
                self._consumers = [*self._consumers, consumer]
            return source
        finally:
            self._lock.release()

    def _enter(self, consumer: Consumer) -> TelemetrySource:
        """Make a source and enter it; closing this consumer ends the attempt."""
        self.source = source = self._make()
        self._entering = consumer
        try:
            consumer.check_open()
            source.__enter__()
        except BaseException:
            self.source = None
            raise
        finally:
            self._entering = None
        return source

    def cancel(self, consumer: Consumer) -> None:
        """End an attempt to connect that this consumer waits for."""
        source = self.source
        if self._entering is consumer and source is not None:
            source.close()

    def leave(self, consumer: Consumer) -> None:
        """Pass no more batches to this consumer; disconnect after the last one."""
        with self._lock:
            self._consumers = [other for other in self._consumers if other is not consumer]
            if self._consumers or self.source is None:
                return
            thread, source = self._thread, self.source
            self.source = self._thread = None
            if thread is not None:
                thread.join()
            source.close()

    def _read(self, source: TelemetrySource) -> None:
        try:
            while self._consumers:
                batch = source.read(READ_TIMEOUT)
                if batch is not None:
                    for consumer in self._consumers:
                        consumer.put(batch)
        except BaseException as error:
            for consumer in self._consumers:
                consumer.fail(error)


class Consumer:
    """One consumer's view of a shared source; a TelemetrySource itself."""

    def __init__(self, shared: SharedSource, samples: int) -> None:
        self._shared, self._samples = shared, samples
        self._waiting: deque[Telemetry] = deque()
        self._count = 0
        self._error: BaseException | None = None
        self._changed = threading.Condition()
        self._source: TelemetrySource | None = None
        self._joined = self._closed = False
        self._dropped: DroppedSamples | None = None
        self._lost, self._lost_seconds = 0, 0.0

    def __enter__(self) -> Self:
        self._source = self._shared.join(self)
        self._joined = True
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def info(self) -> RecordingInfo:
        """Robot and recording."""
        return self._entered.info

    @property
    def fields(self) -> tuple[str, ...]:
        """RTDE names of the columns."""
        return self._entered.fields

    @property
    def status(self) -> LinkStatus:
        """State of the shared connection, and what this consumer lost beyond it."""
        source = self._shared.source if self._source is None else self._source
        if source is None:
            return LinkStatus(connected=False, problem="not connected yet")
        status = source.status
        return replace(
            status,
            lost=status.lost + self._lost,
            lost_seconds=status.lost_seconds + self._lost_seconds,
        )

    def take_events(self) -> list[Event]:
        """Events of the source since the last call; each event goes to one consumer only."""
        source = self._source
        return [] if source is None else source.take_events()

    def read(self, timeout: float) -> Telemetry | None:
        """Next samples, None if too few came in time.

        Raises:
            EOFError: the source has ended.
            UrEnergyError: the source failed for good.
        """
        end = time.monotonic() + timeout
        with self._changed:
            while self._count < self._samples and self._error is None:
                left = end - time.monotonic()
                if left <= 0 or not self._changed.wait(left):
                    return None
            if not self._waiting:
                assert self._error is not None
                raise self._error
            batches = list(self._waiting)
            self._waiting.clear()
            self._count = 0
        return concatenate(batches)

    def put(self, batch: Telemetry) -> None:
        """Append samples; called in the thread of the shared source."""
        with self._changed:
            if self._error is not None:
                return
            if self._count + len(batch) > MOST_WAITING:
                self._dropped = self._dropped or DroppedSamples()
                self._dropped.count(batch, LAG)
                self._lost += len(batch)
                self._lost_seconds += batch.duration
            else:
                if self._dropped is not None:
                    batch, self._dropped = self._dropped.in_front_of(batch), None
                self._waiting.append(batch)  # shared: consumers must not write to it
                self._count += len(batch)
            self._changed.notify()

    def fail(self, error: BaseException) -> None:
        """Raise this error in `read` after the samples that wait."""
        with self._changed:
            self._error = error
            self._changed.notify()

    def close(self) -> None:
        """Leave the shared source, or end the attempt to connect."""
        self._closed = True
        if not self._joined:
            self._shared.cancel(self)
        else:
            self._joined = False
            self._shared.leave(self)

    def check_open(self) -> None:
        """Check that the consumer was not closed.

        Raises:
            ControllerError: it was.
        """
        if self._closed:
            raise ControllerError(
                "the shared connection", "was closed before it was made", "connect again"
            )

    @property
    def _entered(self) -> TelemetrySource:
        if self._source is None:
            raise RuntimeError("enter the source before using it")
        return self._source
