"""Reception of samples by a recorder: options, the queue to the writer, what did not arrive."""

from __future__ import annotations

import math
import pickle
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

import numpy as np

from ur_energy_model.telemetry.bag.extra_messages import Messages
from ur_energy_model.telemetry.bag.files import DEFAULT_NAME, FileSplit, Retention
from ur_energy_model.telemetry.recording.storage_budget import StorageUse
from ur_energy_model.telemetry.samples import Event, Gap, Telemetry
from ur_energy_model.telemetry.source import DroppedSamples, LinkStatus


@dataclass(frozen=True)
class RecorderOptions:
    """How to record bags.

    Attributes:
        fields: RTDE names to write; None for all the source has.
        name: template of bag names, see `bag_name`.
        namespace, tf_prefix: of topics and joints in bags, see RecordingInfo.
        split: when to start a new file of a bag.
        pretrigger: time before `start` with which a bag begins [s].
        duration: length after which a bag ends by itself, by the controller's clock [s].
        retention: budget for all bags in the folder; None keeps all.
        resume: continue when a full disk has room again; otherwise a disk that is full for ten
            seconds ends the bag.
        messages: called in the writing thread about twice a second while a bag is open, for
            messages of other topics since its last call; it must not wait.
    """

    fields: tuple[str, ...] | None = None
    name: str = DEFAULT_NAME
    namespace: str = ""
    tf_prefix: str = ""
    split: FileSplit = field(default_factory=FileSplit)
    pretrigger: float = 0.0
    duration: float | None = None
    retention: Retention | None = None
    resume: bool = False
    messages: Callable[[], Iterable[Messages]] = tuple


@dataclass(frozen=True)
class RecorderStatus:
    """State of a recorder at one moment.

    Attributes:
        state: "idle", "recording", "failing" (the disk fails; samples wait in memory), "stopped"
            (by itself: the duration is over, the source ended, or the disk is nearly full).
        bag: being recorded, or recorded last.
        samples: written, or accepted for the next chunk; once the bag is finished, what can be
            read back from it.
        lost: samples missing in the bag: in gaps, in an outage that lasts, and `unreadable` ones.
        lost_seconds: time without samples, a present outage included [s].
        unreadable: samples that were written but cannot be read back (file deleted, replaced or
            cut, bag renamed, disk full).
        removed: samples of this bag that were deleted to keep within the budget; not lost ones.
        duplicates: packets left out because the controller sent the same tick again.
        gaps: in this bag.
        bytes: size of the bag so far.
        seconds: since recording began.
        waiting: samples in the queue between reading and writing.
        spilled: samples that waited in a temporary file because the queue was full.
        overflow: samples dropped because that file was full too; `lost` counts them as well.
        connected: False while a live source has lost its robot.
        last_error: the last error, None if there was none.
        stopped_because: what ended the recording too early, None if nothing did.
        storage: what all bags of the folder take, None without a budget.
    """

    state: str = "idle"
    bag: Path | None = None
    samples: int = 0
    lost: int = 0
    lost_seconds: float = 0.0
    unreadable: int = 0
    removed: int = 0
    duplicates: int = 0
    gaps: tuple[Gap, ...] = ()
    bytes: int = 0
    seconds: float = 0.0
    waiting: int = 0
    spilled: int = 0
    overflow: int = 0
    connected: bool = True
    last_error: str | None = None
    stopped_because: str | None = None
    storage: StorageUse | None = None


# Reception: what a recorder received for one bag, and what did not arrive.


@dataclass
class Reception:
    """Samples accepted for one bag, counted before anything can happen to them.

    Attributes:
        duration: length of the bag that was asked for [s], None without limit.
        samples: accepted.
        missing: samples that did not arrive, by the gaps of the batches.
        missing_seconds: time of these gaps [s].
        first_time, last_time: controller times of the first and the last sample [s]; the first one
            by the present clock, if the controller restarted.
        began: when the bag began [monotonic s].
    """

    duration: float | None = None
    samples: int = 0
    missing: int = 0
    missing_seconds: float = 0.0
    first_time: float = math.nan
    last_time: float = math.nan
    began: float = field(default_factory=time.monotonic)

    def accept(self, batch: Telemetry) -> Telemetry:
        """Count a batch, and limit the gap in front of the bag's first sample to the bag."""
        if not len(batch):
            return batch
        if not self.samples:
            batch = self._limit_first_gap(batch)
            self.first_time = float(batch.time[0])
        for gap in batch.gaps:
            self.missing += gap.missing
            self.missing_seconds += gap.seconds
        self.samples += len(batch)
        self.last_time = float(batch.time[-1])
        return batch

    def note_restart(self, batch: Telemetry) -> None:
        """Refer the bag's begin to the clock of a controller that restarted, by the host's clock.

        Args:
            batch: next one.
        """
        first = float(batch.time[0])
        away = any(gap.index == 0 and gap.away is not None for gap in batch.gaps)
        if self.samples and (away or first < self.last_time):
            self.first_time = first - (time.monotonic() - self.began)

    def within_duration(self, batch: Telemetry, rate: float | None) -> tuple[Telemetry, bool]:
        """The part of a batch that belongs into the bag, and whether the bag ends with it."""
        if self.duration is None:
            return batch, False
        self.note_restart(batch)
        begin = float(batch.time[0]) if math.isnan(self.first_time) else self.first_time
        half = 0.5 / (rate or 1000.0)
        keep = int(np.searchsorted(batch.time, begin + self.duration - half))
        gaps = tuple(gap for gap in batch.gaps if gap.index < keep)  # one may lie in front
        return replace(batch.cut(slice(0, keep)), gaps=gaps), keep < len(batch)

    def outage(self, link: LinkStatus, rate: float | None) -> Gap | None:
        """The present outage as a gap behind the last sample, None if samples arrive.

        It begins with the bag at the earliest and ends with its duration at the latest.

        Args:
            link: state of the source.
            rate: of its samples [Hz], None if unknown.
        """
        away = min(link.outage, time.monotonic() - self.began)
        if away <= 0.0:
            return None
        what = "no samples" if link.connected else "connection lost"
        return self._last_gap(away, rate, f"{what}: {link.problem}")

    def counted(
        self, status: RecorderStatus, outage: Gap | None, rate: float | None
    ) -> RecorderStatus:
        """State of a bag with the samples that are missing in it.

        Args:
            status: as on the writing side.
            outage: in which the bag ends, or that lasts; None if there is none.
            rate: of the samples [Hz], None if unknown.
        """
        dropped = status.overflow + status.unreadable
        if status.state in ("idle", "stopped"):  # now the bag counts
            dropped = max(0, self.samples - status.samples - status.removed)
            status = replace(status, unreadable=max(0, dropped - status.overflow))
        return replace(
            status,
            lost=self.missing + dropped + (0 if outage is None else outage.missing),
            lost_seconds=self.missing_seconds
            + (dropped / rate if rate else 0.0)
            + (0.0 if outage is None else outage.seconds),
        )

    def cut_gap(self, gap: Gap, rate: float | None) -> Gap | None:
        """The part within the bag of a gap at whose end the bag's duration is over."""
        cut = self._last_gap(math.inf, rate, gap.cause)
        return None if cut is None or (rate and not cut.missing) else cut

    def _last_gap(self, away: float, rate: float | None, cause: str) -> Gap | None:
        """A gap behind the last sample that ends with the bag's duration at the latest."""
        periods, start = round(min(away * (rate or 0.0), 2**53)), 0.0
        if self.samples:
            start = self.last_time
        if self.duration is not None and start >= self.first_time:
            rest = self.first_time + self.duration - start
            if rest <= away:  # the next sample would be the first behind the bag
                away, periods = rest, round(rest * (rate or 0.0)) - 1
        if not math.isfinite(away) or away <= 0.0:
            return None
        return Gap(self.samples, start, start + away, max(periods, 0), cause, away)

    def _limit_first_gap(self, batch: Telemetry) -> Telemetry:
        """A batch whose gap in front is no longer than the time since the bag began."""
        gaps = batch.gaps
        if not gaps or gaps[0].index > 0:
            return batch
        first, seconds = gaps[0], time.monotonic() - self.began
        if first.seconds > seconds:
            share = seconds / first.seconds
            first = replace(first, missing=round(share * first.missing), away=seconds)
        return replace(batch, gaps=(first, *gaps[1:]))


# SampleQueue: the bounded queue between a recorder's reading and writing threads.

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


@dataclass
class _Spilled:
    """Samples that wait in the spill file: their place in it, and what was dropped before them."""

    place: int
    samples: int
    dropped: DroppedSamples | None = None


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
                item.dropped = dropped
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
        """Write samples to the file; False if that is not possible."""
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
        self._items.append(_Spilled(self._file_end, len(batch)))
        self._file_end += len(data)
        self._in_file += 1
        self.spilled += len(batch)
        return True

    def _unspill(self, spilled: _Spilled) -> Telemetry:
        assert self._file is not None
        self._file.seek(spilled.place)
        batch: Telemetry = pickle.load(self._file)
        self._in_file -= 1
        if not self._in_file:
            self._file.truncate(0)
            self._file_end = 0
        return batch if spilled.dropped is None else spilled.dropped.in_front_of(batch)

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
    return sum(array.nbytes for array in (batch.time, *batch.columns.values()))
