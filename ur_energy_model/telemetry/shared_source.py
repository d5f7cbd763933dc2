"""One connection for several consumers: a source whose batches go to each of them."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from typing_extensions import Self

from ur_energy_model.errors import RecordingError
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry, concatenate
from ur_energy_model.telemetry.source import TelemetrySource

READ_TIMEOUT = 0.2
MOST_WAITING = 50_000
"""Samples that may wait for a consumer; one that lags further behind is told so."""


class SharedSource:
    """Reads a source in one thread and hands every batch to all its consumers.

    The source is entered with the first consumer and closed with the last; where it has failed,
    the next consumer that is entered makes it anew.

    Args:
        make: makes the source.
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
            samples: that it waits for before it returns them; 1 for the smallest latency.
        """
        return Consumer(self, samples)

    def join(self, consumer: Consumer) -> TelemetrySource:
        """Connect, if nobody has yet, and hand batches to this consumer from now on.

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
        """Stop handing batches to this consumer; disconnect after the last."""
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

    def __enter__(self) -> Self:
        self._source = self._shared.join(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def info(self) -> RecordingInfo:
        """What is known of the robot."""
        return self._entered.info

    @property
    def fields(self) -> tuple[str, ...]:
        """RTDE names of the columns."""
        return tuple(self._entered.fields)

    @property
    def status(self) -> Any:
        """State of the connection, where the source tells it."""
        return getattr(self._source, "status", None)

    def take_events(self) -> list[Any]:
        """Events of the source since the last call; each goes to one consumer only."""
        take = getattr(self._source, "take_events", None)
        return [] if take is None else list(take())

    def read(self, timeout: float) -> Telemetry | None:
        """Next samples, None where too few came in time.

        Raises:
            EOFError: the source has ended.
            RecordingError: this consumer has lagged too far behind.
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
        """Samples have arrived (in the shared source's thread)."""
        with self._changed:
            if self._error is not None:
                return
            if self._count + len(batch) > MOST_WAITING:
                self._error = RecordingError(
                    batch.info.source,
                    "sends faster than its samples are taken",
                    "use a connection of its own",
                )
            else:
                self._waiting.append(batch)  # shared by all: consumers do not write to it
                self._count += len(batch)
            self._changed.notify()

    def fail(self, error: BaseException) -> None:
        """The source has ended or failed."""
        with self._changed:
            self._error = error
            self._changed.notify()

    def close(self) -> None:
        """Leave the shared source."""
        if self._source is not None:
            self._source = None
            self._shared.leave(self)

    @property
    def _entered(self) -> TelemetrySource:
        if self._source is None:
            raise RuntimeError("enter the source before using it")
        return self._source
