"""SampleQueue: the bounded queue between a recorder's reading and writing threads."""

from __future__ import annotations

import tempfile
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import IO, Any

import numpy as np

from ur_energy_model.telemetry.dropped_samples import DroppedSamples
from ur_energy_model.telemetry.event import Event
from ur_energy_model.telemetry.samples import Gap, Telemetry

MEMORY_BYTES = 64 << 20
SPILL_BYTES = 512 << 20
OVERFLOW = "recorder overflow"
MOST_EVENTS = 1000
"""Events that may wait; later ones are dropped."""


@dataclass
class Command:
    """An action for the writing thread, in order with the samples.

    Attributes:
        action: what to run.
        result: receives its return value or exception.
    """

    action: Callable[[], object]
    result: Future[object] = field(default_factory=Future)

    def execute(self) -> None:
        """Run the action."""
        try:
            self.result.set_result(self.action())
        except BaseException as error:
            self.result.set_exception(error)


@dataclass(frozen=True)
class _Spilled:
    """Samples whose values wait in the spill file."""

    place: int
    bare: Telemetry
    layout: tuple[tuple[str, tuple[int, ...]], ...]


Item = Telemetry | Event | Command


class SampleQueue:
    """Samples, events and commands, first in, first out.

    Samples beyond `memory_bytes` wait in a temporary file; beyond `spill_bytes` more they are
    dropped, counted in `overflow`, and the next samples carry a gap for them.

    Attributes:
        samples: number of samples that wait.
        spilled: number of samples so far that went through the file.
        overflow: number of samples dropped so far.
        problem: why samples have to wait, for the cause of the gap; None if nothing is wrong.
    """

    def __init__(self, memory_bytes: int = MEMORY_BYTES, spill_bytes: int = SPILL_BYTES) -> None:
        self.samples = self.spilled = self.overflow = 0
        self.problem: str | None = None
        self._events = 0
        self._memory_bytes, self._spill_bytes = memory_bytes, spill_bytes
        self._items: deque[Item | _Spilled] = deque()
        self._changed = threading.Condition()
        self._bytes = 0
        self._file: IO[bytes] | None = None
        self._file_end = 0
        self._in_file = 0
        self._dropped: DroppedSamples | None = None

    def put(self, item: Item) -> None:
        """Append; never blocks."""
        with self._changed:
            if isinstance(item, Telemetry):
                self._put_samples(item)
            elif not isinstance(item, Event) or self._events < MOST_EVENTS:
                self._events += isinstance(item, Event)
                self._items.append(item)
            self._changed.notify()

    def get(self, timeout: float, *, commands_only: bool = False) -> Item | None:
        """Remove and return the next item, None if none comes in time.

        Args:
            timeout: longest time to wait [s].
            commands_only: return the next item only if it is a command.
        """
        with self._changed:
            if not self._ready(commands_only):
                self._changed.wait(timeout)
            if not self._ready(commands_only):
                return None
            return self._take()

    def drop_before_command(self) -> None:
        """Drop the samples in front of the first command, which cannot be written.

        The samples that follow carry a gap for them.
        """
        with self._changed:
            if not any(isinstance(item, Command) for item in self._items):
                return
            dropped = DroppedSamples()
            while not isinstance(self._items[0], Command):
                item = self._take()
                if isinstance(item, Telemetry):
                    self.overflow += len(item)
                    dropped.count(item, self._overflow_cause)
            if dropped.missing:
                self._note_in_front(dropped)

    def _note_in_front(self, dropped: DroppedSamples) -> None:
        """Put a gap in front of the first samples that wait, or that come next."""
        for i, item in enumerate(self._items):
            if isinstance(item, Telemetry):
                self._items[i] = dropped.in_front_of(item)
                return
            if isinstance(item, _Spilled):
                self._items[i] = replace(item, bare=dropped.in_front_of(item.bare))
                return
        if self._dropped is not None:
            dropped.join(self._dropped)
        self._dropped = dropped

    @property
    def _overflow_cause(self) -> str:
        return OVERFLOW + ("" if self.problem is None else f": {self.problem}")

    def take_gap(self) -> Gap | None:
        """The samples that were dropped last, where none have followed them yet."""
        with self._changed:
            dropped, self._dropped = self._dropped, None
            return None if dropped is None else dropped.gap()

    def close(self) -> None:
        """Release the spill file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _ready(self, commands_only: bool) -> bool:
        return bool(self._items) and (not commands_only or isinstance(self._items[0], Command))

    def _put_samples(self, batch: Telemetry) -> None:
        if len(batch) == 0:
            return
        whole = batch if self._dropped is None else self._dropped.in_front_of(batch)
        size = _bytes_of(whole)
        if self._bytes + size <= self._memory_bytes and not self._in_file:
            self._items.append(whole)
            self._bytes += size
        elif not self._spill(whole):
            if self._dropped is None:
                self._dropped = DroppedSamples()
            self._dropped.count(batch, self._overflow_cause)
            self.overflow += len(batch)
            return
        self._dropped = None
        self.samples += len(batch)

    def _spill(self, batch: Telemetry) -> bool:
        """Write the values of samples to the file; False if that is not possible."""
        values = np.hstack([each.reshape(len(batch), -1) for each in batch.columns.values()])
        if self._file_end + values.nbytes > self._spill_bytes:
            return False
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="ur_energy_", buffering=0)  # noqa: SIM115 (open as long as the queue)
            self._file.seek(self._file_end)
            if self._file.write(values.tobytes()) != values.nbytes:
                return False
        except OSError:
            return False
        layout = tuple((name, each.shape[1:]) for name, each in batch.columns.items())
        self._items.append(_Spilled(self._file_end, replace(batch, columns={}), layout))
        self._file_end += values.nbytes
        self._in_file += 1
        self.spilled += len(batch)
        return True

    def _unspill(self, spilled: _Spilled) -> Telemetry:
        bare, count = spilled.bare, len(spilled.bare)
        widths = [int(np.prod(shape)) for _, shape in spilled.layout]
        if self._file is None:
            raise RuntimeError("the spill file is closed")
        self._file.seek(spilled.place)
        data = self._file.read(8 * count * sum(widths))
        table = np.frombuffer(data, np.float64).reshape(count, -1)
        columns, start = {}, 0
        for (name, shape), width in zip(spilled.layout, widths, strict=True):
            part = table[:, start : start + width]
            columns[name] = np.ascontiguousarray(part).reshape(count, *shape)
            start += width
        self._in_file -= 1
        if not self._in_file:
            self._file.truncate(0)
            self._file_end = 0
        return replace(bare, columns=columns)

    def _take(self) -> Item:
        item = self._items.popleft()
        if isinstance(item, _Spilled):
            batch = self._unspill(item)
            self.samples -= len(batch)
            return batch
        if isinstance(item, Telemetry):
            self._bytes -= _bytes_of(item)
            self.samples -= len(item)
        self._events -= isinstance(item, Event)
        return item


def _bytes_of(batch: Telemetry) -> int:
    arrays: list[Any] = [batch.time, *batch.columns.values()]
    return sum(array.nbytes for array in arrays)
