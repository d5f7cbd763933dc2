"""ReadingStore: readings that the broker does not have yet, bounded."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice

from ur_energy_model.sinks.mqtt.stored_reading import StoredReading

MOST_STORED = 36_000
"""Readings kept while the broker is away: an hour at 10 a second, 15 MB."""


@dataclass(frozen=True)
class Batch:
    """Readings to send.

    Attributes:
        readings: the oldest ones, in order.
        newest: newest reading of each arm at the same moment.
        mark: number of readings ever stored up to the last of these.
    """

    readings: tuple[StoredReading, ...]
    newest: Mapping[str, StoredReading]
    mark: int


class ReadingStore:
    """A queue from which readings are removed only once the broker has them.

    Any thread may add; one thread sends.

    Args:
        most: length at which the oldest is dropped for a new one.
    """

    def __init__(self, most: int = MOST_STORED) -> None:
        self._most = most
        self._readings: deque[StoredReading] = deque()
        self._lock = threading.Lock()
        self._removed = 0
        self.newest: dict[str, StoredReading] = {}
        """The newest reading of each arm, also once the broker has it."""
        self.delivered = self.dropped = 0
        """Number of readings that the broker has, and of those lost because the store was full."""

    def __len__(self) -> int:
        return len(self._readings)

    def add(self, reading: StoredReading) -> None:
        """Keep a reading; the oldest is dropped if the store is full."""
        with self._lock:
            if len(self._readings) >= self._most:
                self._readings.popleft()
                self._removed += 1
                self.dropped += 1
            self._readings.append(reading)
            self.newest[reading.arm] = reading

    def oldest(self, most: int) -> Batch:
        """The oldest readings, at most this number."""
        with self._lock:
            readings = tuple(islice(self._readings, most))
            return Batch(readings, dict(self.newest), self._removed + len(readings))

    def confirm(self, batch: Batch) -> None:
        """Remove the readings of a batch: the broker has them."""
        with self._lock:
            while self._removed < batch.mark:  # some may have been dropped meanwhile
                self._readings.popleft()
                self._removed += 1
                self.delivered += 1
