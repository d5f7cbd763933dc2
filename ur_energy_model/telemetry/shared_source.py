"""SharedSource: one connection for several consumers."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

from ur_energy_model.errors import RecordingError
from ur_energy_model.telemetry.event import Event
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry, concatenate
from ur_energy_model.telemetry.source import LinkStatus, TelemetrySource
from ur_energy_model.typing import Self

READ_TIMEOUT = 0.2
MOST_WAITING = 50_000
"""Samples that may wait for a consumer; reading fails for one that lags further behind."""


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
        """
        with self._lock:
            if self.source is None or self._thread is None or not self._thread.is_alive():
                self.source = self._make()
                self.source.__enter__()
                self._thread = threading.Thread(
                    target=self._read, args=(self.source,), name="shared source", daemon=True
                )
                self._consumers = [consumer]
                self._thread.start()
            else:
                self._consumers = [*self._consumers, consumer]
            return self.source

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
        self._joined = False

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
        """State of the shared connection; not connected before the consumer is entered."""
        source = self._source
        return LinkStatus(connected=False) if source is None else source.status

    def take_events(self) -> list[Event]:
        """Events of the source since the last call; each event goes to one consumer only."""
        source = self._source
        return [] if source is None else source.take_events()

    def read(self, timeout: float) -> Telemetry | None:
        """Next samples, None if too few came in time.

        Raises:
            EOFError: the source has ended.
            RecordingError: this consumer lags too far behind.
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
                self._error = RecordingError(
                    batch.info.source,
                    "sends samples faster than this consumer reads them",
                    "use a connection of its own",
                )
            else:
                self._waiting.append(batch)  # shared: consumers must not write to it
                self._count += len(batch)
            self._changed.notify()

    def fail(self, error: BaseException) -> None:
        """Raise this error in `read` after the samples that wait."""
        with self._changed:
            self._error = error
            self._changed.notify()

    def close(self) -> None:
        """Leave the shared source."""
        if self._joined:
            self._joined = False
            self._shared.leave(self)

    @property
    def _entered(self) -> TelemetrySource:
        if self._source is None:
            raise RuntimeError("enter the source before using it")
        return self._source
