# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""SampleQueue: a bounded queue between threads; what finds no place becomes a gap."""

from __future__ import annotations

import pickle
import tempfile
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import IO

from ur_energy_model.telemetry.gaps import NO_LOSSES, Gap, Losses
from ur_energy_model.telemetry.samples import Event, Telemetry

MEMORY_BYTES = 64 << 20
SPILL_BYTES = 512 << 20
OVERFLOW = "recorder overflow"
MOST_EVENTS = 1000  # events that may wait; later ones are dropped


@dataclass
class Command:
    """An action for the reading thread, in order with the samples, and its outcome."""

    action: Callable[[], object]
    result: Future[object] = field(default_factory=Future)

    def execute(self) -> None:
        """Run the action."""
        try:
            self.result.set_result(self.action())
        except BaseException as error:
            self.result.set_exception(error)


Item = Telemetry | Event | Command


class SampleQueue:
    """Samples, events and commands, first in, first out.

    Samples beyond `memory_bytes` wait in a temporary file; beyond `spill_bytes` more they
    are dropped, counted in `dropped`, and the next samples carry a gap for them.

    Args:
        memory_bytes: bound of the memory.
        spill_bytes: bound of the file.
        cause: of that gap.

    Attributes:
        awaited: number of samples for which `get` waits, so that its thread wakes up for
            many together; for events and commands it does not wait. Set by the reading
            side.
        samples: number of samples that wait.
        spilled: number of samples so far that went through the file.
        dropped: samples that were dropped so far, without those of the gaps in front of
            them.
        problem: why samples have to wait, for the cause of the gap; None if nothing is
            wrong.
    """

    def __init__(
        self,
        memory_bytes: int = MEMORY_BYTES,
        spill_bytes: int = SPILL_BYTES,
        cause: str = OVERFLOW,
    ) -> None:
        self.awaited = 1
        self.samples = 0
        self.spilled = 0
        self.dropped = NO_LOSSES
        self.problem: str | None = None
        self._memory_bytes = memory_bytes
        self._spill_bytes = spill_bytes
        self._cause = cause
        self._bytes = 0
        self._events = 0
        self._commands = 0
        # Samples in the file are the place where they are. Dropped samples have their
        # place in the order too, as a gap; once taken, it is held for the samples that
        # follow.
        self._items: deque[Item | int | Gap] = deque()
        self._gap: Gap | None = None
        self._file: IO[bytes] | None = None
        self._file_end = self._in_file = 0
        self._changed = threading.Condition()

    def put(self, item: Item) -> None:
        """Append; never blocks."""
        with self._changed:
            if isinstance(item, Telemetry):
                if len(item):
                    self._put_samples(item)
            elif not isinstance(item, Event) or self._events < MOST_EVENTS:
                self._events += isinstance(item, Event)
                self._commands += isinstance(item, Command)
                self._items.append(item)
            if self._has_enough():
                self._changed.notify()

    def get(self, timeout: float, *, commands_only: bool = False) -> Item | None:
        """Remove and return the next item (or only a command), None if none comes in time [s].

        It waits until there is a command, an event or as many samples as are `awaited`;
        with a timeout of 0 not at all.
        """
        with self._changed:
            enough = self._ready(commands_only) and (commands_only or self._has_enough())
            if timeout > 0.0 and not enough:
                self._changed.wait(timeout)
            return self._take() if self._ready(commands_only) else None

    def drop_before_command(self) -> None:
        """Drop the samples in front of the first command, which cannot be written.

        The samples that follow carry a gap for them.
        """
        with self._changed:
            if not any(isinstance(item, Command) for item in self._items):
                return
            while self._ready() and not isinstance(self._items[0], Command):
                gap = self._gap
                self._gap = None
                item = self._take()
                self._gap = (
                    self._dropped(item, gap) if isinstance(item, Telemetry) else gap
                )

    def take_gap(self) -> Gap | None:
        """The samples that were dropped last, where none have followed them yet."""
        with self._changed:
            self._ready()
            gap = self._gap
            self._gap = None
            return gap

    def close(self) -> None:
        """Release the spill file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _has_enough(self) -> bool:
        """Whether what waits is worth waking up for."""
        return self.samples >= self.awaited or self._events > 0 or self._commands > 0

    def _ready(self, commands_only: bool = False) -> bool:
        """Whether an item can be taken; gaps in front of it are held."""
        while self._items and isinstance(head := self._items[0], Gap):
            self._gap = _joined(self._gap, head)
            self._items.popleft()
        return bool(self._items) and (
            not commands_only or isinstance(self._items[0], Command)
        )

    def _dropped(self, batch: Telemetry, before: Gap | None) -> Gap:
        """Count a batch that is dropped; a gap from its first to its last sample, and `before`."""
        rate = batch.info.rate
        seconds = len(batch) / rate if rate else 0.0
        self.dropped += Losses(len(batch), seconds, 1 if before is None else 0)
        away = None
        if any(gap.away is not None for gap in batch.gaps):
            away = batch.duration + sum(gap.seconds for gap in batch.gaps)
        cause = self._cause + ("" if self.problem is None else f": {self.problem}")
        start = float(batch.time[0])
        end = float(batch.time[-1])
        return _joined(before, Gap(0, start, end, len(batch) + batch.lost, cause, away))

    def _put_samples(self, batch: Telemetry) -> None:
        size = _bytes_of(batch)
        if self._bytes + size <= self._memory_bytes and not self._in_file:
            self._items.append(batch)
            self._bytes += size
        elif not self._spill(batch):
            last = self._items[-1] if self._items else None
            if isinstance(last, Gap):
                self._items[-1] = self._dropped(batch, last)
            else:
                self._items.append(self._dropped(batch, None))
            return
        self.samples += len(batch)

    def _spill(self, batch: Telemetry) -> bool:
        """Write samples to the file; False if that is not possible."""
        if not self._spill_bytes:
            return False
        data = pickle.dumps(batch, pickle.HIGHEST_PROTOCOL)
        if self._file_end + len(data) > self._spill_bytes:
            return False
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="ur_energy_", buffering=0)  # noqa: SIM115 (open as long as the queue)
            self._file.seek(self._file_end)
            if self._file.write(data) != len(data):
                return False
        except OSError:
            return False
        self._items.append(self._file_end)
        self._file_end += len(data)
        self._in_file += 1
        self.spilled += len(batch)
        return True

    def _take(self) -> Item:
        item = self._items.popleft()
        assert not isinstance(item, Gap)
        if isinstance(item, int):
            assert self._file is not None
            self._file.seek(item)
            batch: Telemetry = pickle.load(self._file)
            self._in_file -= 1
            if not self._in_file:
                self._file.truncate(0)
                self._file_end = 0
        elif isinstance(item, Telemetry):
            batch = item
            self._bytes -= _bytes_of(batch)
        else:
            self._events -= isinstance(item, Event)
            self._commands -= isinstance(item, Command)
            return item
        self.samples -= len(batch)
        if self._gap is None:
            return batch
        # The gap includes the one that is in front of the batch.
        whole = self._gap
        cause = self._gap.cause
        self._gap = None
        for each in batch.gaps:
            if each.index == 0:
                whole = _joined(whole, each)
        whole = replace(whole, end=float(batch.time[0]), cause=cause)
        return replace(
            batch, gaps=(whole, *(each for each in batch.gaps if each.index > 0))
        )


def _bytes_of(batch: Telemetry) -> int:
    return sum(array.nbytes for array in (batch.time, *batch.columns.values()))


def _joined(first: Gap | None, second: Gap) -> Gap:
    """One gap for two that follow each other; the longer cause counts."""
    if first is None:
        return second
    away = None
    if first.away is not None or second.away is not None:
        away = first.seconds + second.seconds
    cause = max(first.cause, second.cause, key=len)
    missing = first.missing + second.missing
    return replace(first, end=second.end, missing=missing, cause=cause, away=away)
