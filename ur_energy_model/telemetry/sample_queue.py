# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""SampleQueue: a bounded queue between threads; what finds no place becomes a gap."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TypeAlias

from ur_energy_model.telemetry.gaps import Gap, Losses
from ur_energy_model.telemetry.samples import DroppedSamples, Event, Telemetry

MEMORY_BYTES = 64 << 20
"""Samples that may wait; all fields at 500 Hz fill it in 140 s."""
OVERFLOW = "recorder overflow"
MOST_EVENTS = 1000
"""Events that may wait; later ones are dropped."""


@dataclass
class QueuedAction:
    """An action for the reading thread, in order with the samples, and its outcome.

    Attributes:
        action: called without arguments in the reading thread.
        result: what it returned, or the exception that it raised.
    """

    action: Callable[[], object]
    result: Future[object] = field(default_factory=Future)

    def execute(self) -> None:
        """Run the action, and set its result; an exception is passed to who waits for it."""
        try:
            self.result.set_result(self.action())
        except BaseException as error:
            self.result.set_exception(error)


Item: TypeAlias = Telemetry | Event | QueuedAction | Gap
"""Content of a queue; a gap stands for samples that were dropped at its place."""


class SampleQueue:
    """Samples, events and commands, first in, first out.

    Samples beyond `memory_bytes` are dropped. The next samples carry a gap for them; if a
    command comes first, the gap is an item of its own before the command.

    Args:
        memory_bytes: bound of the samples that wait [bytes].
        cause: cause of the gaps.

    Attributes:
        awaited: number of samples for which `get` waits, so that its thread wakes up for
            many together; for events and commands it does not wait. Set by the reading
            side.
        samples: number of samples that wait.
    """

    def __init__(self, memory_bytes: int = MEMORY_BYTES, cause: str = OVERFLOW) -> None:
        self.awaited = 1
        self.samples = 0
        self._memory_bytes = memory_bytes
        self._cause = cause
        self._items: deque[Item] = deque()
        # Of the items: bytes of the samples, number of the events, and number of commands
        # and gaps.
        self._bytes = 0
        self._events = 0
        self._urgent = 0
        self._dropped = DroppedSamples()
        self._changed = threading.Condition()

    @property
    def losses(self) -> Losses:
        """Samples that were dropped so far."""
        return self._dropped.losses

    @property
    def open_gap(self) -> Gap | None:
        """The gap of samples that were dropped last, while none have followed them."""
        return self._dropped.gap

    def put(self, item: Telemetry | Event | QueuedAction) -> None:
        """Append an item; never blocks."""
        with self._changed:
            if isinstance(item, Telemetry):
                self._put_samples(item)
            elif isinstance(item, Event):
                if self._events < MOST_EVENTS:
                    self._events += 1
                    self._items.append(item)
            else:
                gap = self._dropped.take()
                if gap is not None:
                    self._urgent += 1
                    self._items.append(gap)
                self._urgent += 1
                self._items.append(item)
            if self._has_enough():
                self._changed.notify()

    def get(self, timeout: float) -> Item | None:
        """Remove and return the next item; None if none comes in time.

        It waits until there is a command, an event or as many samples as are `awaited`,
        and returns what there is after the timeout.

        Args:
            timeout: longest time to wait [s]; with 0 it does not wait at all.
        """
        with self._changed:
            if timeout > 0.0 and not self._has_enough():
                self._changed.wait(timeout)
            if not self._items:
                return None
            item = self._items.popleft()
            if isinstance(item, Telemetry):
                self.samples -= len(item)
                self._bytes -= _bytes_of(item)
            elif isinstance(item, Event):
                self._events -= 1
            else:
                self._urgent -= 1
            return item

    def _has_enough(self) -> bool:
        """Whether what waits is worth waking up for."""
        return self.samples >= self.awaited or self._events > 0 or self._urgent > 0

    def _put_samples(self, batch: Telemetry) -> None:
        """Append samples, with the gap of samples dropped before; without room, drop them too."""
        if not len(batch):
            return
        size = _bytes_of(batch)
        if self._bytes + size > self._memory_bytes:
            self._dropped.add(batch, self._cause)
            return
        self._bytes += size
        self.samples += len(batch)
        self._items.append(self._dropped.in_front_of(batch))


def _bytes_of(batch: Telemetry) -> int:
    """Size of the arrays of a batch [bytes]."""
    return sum(array.nbytes for array in (batch.time, *batch.columns.values()))
