# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The writing side of a recorder: a thread that keeps recording through disk errors."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from ur_energy_model.errors import RecordingError, UrEnergyError
from ur_energy_model.robot_modes import ROBOT_MODES, SAFETY_MODES
from ur_energy_model.telemetry.bag.files import (
    DEFAULT_NAME,
    FileSplit,
    remove_abandoned_in_bags,
)
from ur_energy_model.telemetry.bag.messages import Messages
from ur_energy_model.telemetry.bag.retention import Retention
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.telemetry.clock import HOST_CLOCK
from ur_energy_model.telemetry.gaps import NO_LOSSES, Gap, Losses
from ur_energy_model.telemetry.recording.storage_budget import StorageUse
from ur_energy_model.telemetry.sample_queue import (
    OVERFLOW,
    Item,
    QueuedAction,
    SampleQueue,
)
from ur_energy_model.telemetry.samples import (
    ERROR,
    WARNING,
    Event,
    RecordingInfo,
    Telemetry,
)

FLUSH_SECONDS = 0.5
"""Period in which all samples are written, and file and disk are checked [s]."""
METADATA_SECONDS = 2.0
"""Period of rewriting metadata.yaml [s], which so describes also the bag of a killed recorder."""
METADATA_SHARE = 0.01
"""Largest share of the time spent on writing metadata.yaml; large bags have longer periods."""
MIN_FREE_BYTES = 64 << 20
MIN_FREE_FRACTION = 0.1
"""A disk is full if less is free than both limits: a number of bytes, and a share of its size."""
WRITTEN_TOGETHER = 0.1
"""Time span of the samples for which the thread wakes up [s]: waking up for each batch
that was read takes twice the processor time."""
WRITE_TIMEOUT = 0.25  # longest time that the thread waits for samples [s]
WAITING_BYTES = 64 << 20
"""Size of the samples that may wait in memory while the disk is full or fails."""
CLOSE_TIMEOUT = 10.0
_MODES = (("robot_mode", ROBOT_MODES), ("safety_mode", SAFETY_MODES))


@dataclass(frozen=True)
class RecorderOptions:
    """Options of recording bags.

    Attributes:
        fields: RTDE names to write; None for all fields of the source.
        name: template of bag names, see `bag_name`.
        namespace: namespace of the topics in bags, see RecordingInfo.
        tf_prefix: prefix of the names of joints in bags, see RecordingInfo.
        split: extent at which a new file of a bag starts.
        pretrigger: time before `start` with which a bag begins [s].
        duration: length after which a bag ends by itself, by the controller's clock [s].
        retention: budget for all bags in the folder; None keeps all.
        messages: called in the writing thread about twice a second while a bag is open,
            for messages of other topics since its last call; it must not wait.
    """

    fields: tuple[str, ...] | None = None
    name: str = DEFAULT_NAME
    namespace: str = ""
    tf_prefix: str = ""
    split: FileSplit = field(default_factory=FileSplit)
    pretrigger: float = 0.0
    duration: float | None = None
    retention: Retention | None = None
    messages: Callable[[], Iterable[Messages]] = tuple


@dataclass(frozen=True)
class RecorderStatus:
    """State of a recorder at one moment.

    Attributes:
        state: "idle"; "recording"; "failing": the disk is full or fails, and recording
            goes on as soon as it does not; "stopped": the bag ended by itself (its
            duration is over, or the source ended).
        bag: being recorded, or recorded last.
        samples: number of samples written, or accepted for the next chunk; once the bag
            is finished, number of samples that can be read back.
        losses: samples that are known to be missing in the bag: in its gaps.
        outage: length of the present outage of the source [s], 0 while samples arrive.
        unreadable: number of samples that were accepted but cannot be read back (file
            deleted, replaced or cut, bag renamed, disk full at the end).
        removed: number of samples of this bag that were deleted to keep within the
            budget; they are not lost.
        duplicates: number of packets left out because the controller sent the same tick
            again.
        skipped: number of packets left out because they could not be used.
        gaps: gaps of the present bag.
        bytes: size of the bag so far.
        seconds: time since recording began [s].
        waiting: number of samples that are read and not written yet.
        overflow: number of samples that were dropped because too many waited for the
            disk.
        connected: False while a live source has lost its robot.
        last_error: the last error, None if there was none.
        stopped_because: what ended the recording too early, None if nothing did.
        storage: room that all bags of the folder take; None without a budget.
    """

    state: str = "idle"
    bag: Path | None = None
    samples: int = 0
    losses: Losses = NO_LOSSES
    outage: float = 0.0
    unreadable: int = 0
    removed: int = 0
    duplicates: int = 0
    skipped: int = 0
    gaps: tuple[Gap, ...] = ()
    bytes: int = 0
    seconds: float = 0.0
    waiting: int = 0
    overflow: int = 0
    connected: bool = True
    last_error: str | None = None
    stopped_because: str | None = None
    storage: StorageUse | None = None


class WritingThread:
    """Writes what a queue holds into the current bag.

    While the disk works, samples become chunks. While it is full or fails, samples wait
    in memory, up to WAITING_BYTES. Further samples are dropped, counted, and become a gap
    of the bag; twice a second the thread tries to write again. Once the disk works again,
    the waiting samples are written into the next file of the bag.

    `open`, `split`, `release` and `finish` run in the thread: they reach it as commands
    in the queue, in order with the samples.

    Args:
        queue: queue of samples, events and commands.
        options: how to record.
        on_failure: called in the thread when a bag has to end: no more samples must be
            queued.

    Attributes:
        finished: set when a bag has ended.
        bag: bag that is being written; None if there is none.
    """

    def __init__(
        self, queue: SampleQueue, options: RecorderOptions, on_failure: Callable[[], None]
    ) -> None:
        self.finished = threading.Event()
        self.bag: BagWriter | None = None
        self._queue = queue
        self._options = options
        self._on_failure = on_failure
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="bag writer", daemon=True)
        self._status = RecorderStatus()
        self._forget()

    def _forget(self) -> None:
        """Forget the state of the bag before, for the next bag."""
        # Why the disk fails now, and why it failed last.
        self._failure: str | None = None
        self._last_failure: str | None = None
        self._modes: dict[str, float] = {}  # last value of each mode
        now = time.monotonic()
        self._began = now
        self._next_flush = now + FLUSH_SECONDS
        self._next_metadata = now + METADATA_SECONDS
        # Numbers of dropped samples: by the queue in earlier bags, and by this thread.
        self._overflow_before = self._queue.losses.samples
        self._dropped = 0

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """Stop the thread; the bag must be finished."""
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join(CLOSE_TIMEOUT)

    @property
    def alive(self) -> bool:
        """Whether the thread executes commands."""
        return self._thread.is_alive()

    @property
    def status(self) -> RecorderStatus:
        """State of the bag and the queue; what concerns the source keeps its defaults."""
        bag = self.bag
        status = self._status
        if bag is None or status.state != "recording":
            return status
        status = self._status_of(bag)
        open_gap = self._queue.open_gap
        if open_gap is not None:
            status = replace(status, losses=status.losses.after([open_gap]))
        return status

    def _status_of(self, bag: BagWriter) -> RecorderStatus:
        """State of a bag that is being recorded, now."""
        waiting = self._queue.samples
        if self._failure is not None:
            waiting += bag.pending_samples
        overflow = self._queue.losses.samples - self._overflow_before
        return RecorderStatus(
            state="recording" if self._failure is None else "failing",
            bag=bag.path,
            samples=bag.samples,
            losses=bag.losses,
            unreadable=bag.unreadable_samples,
            removed=bag.released_samples,
            gaps=tuple(bag.gaps),
            bytes=bag.size,
            seconds=time.monotonic() - self._began,
            waiting=waiting,
            overflow=overflow + self._dropped,
            last_error=self._last_failure,
        )

    def open(self, path: Path, info: RecordingInfo, fields: tuple[str, ...]) -> None:
        """Begin a bag.

        Args:
            path: directory to make.
            info: robot and recording; the options add namespace and prefix.
            fields: RTDE names to write.

        Raises:
            RecordingError: the path exists, or the disk is full or fails.
        """
        self._queue.awaited = max(1, round(WRITTEN_TOGETHER * (info.rate or 1.0)))
        options = self._options
        info = replace(info, namespace=options.namespace, tf_prefix=options.tf_prefix)
        in_budget = options.retention is not None
        remove_abandoned_in_bags(path.parent)
        shortage = _shortage(path)
        if shortage is not None:
            raise RecordingError(path, shortage, "make room, or record elsewhere")
        try:
            bag = BagWriter(
                path, info, fields, durable=True, split=options.split, in_budget=in_budget
            )
        except OSError as error:
            raise _refusal(path, error) from None
        options.messages()  # leaves out the messages from before the bag
        HOST_CLOCK.hold()  # no step of the clock within a bag
        self._forget()
        self._status = RecorderStatus(state="recording", bag=path)
        self.bag = bag

    def split(self) -> None:
        """Continue in the next file.

        Raises:
            RecordingError: there is no bag, or the disk fails.
        """
        if self.bag is None:
            raise RecordingError(
                "split", "nothing is being recorded", "start recording first"
            )
        try:
            self.bag.split()
        except OSError as error:
            self._fail(self.bag, error)
            raise _refusal(self.bag.path, error) from None

    def release(self, path: Path) -> bool:
        """Take a complete file out of the bag; returns whether it may be deleted."""
        bag = self.bag
        try:
            return bag is None or bag.release(path)
        except OSError as error:
            assert bag is not None
            self._fail(bag, error)
            return False

    def finish(
        self, state: str, error: str | None = None, outage: Gap | None = None
    ) -> str | None:
        """Close the bag, if there is one; what is on the disk stays readable.

        Args:
            state: state of the recorder from now on.
            error: why the bag ends early, None if it does not.
            outage: outage of the source in which the bag ends; None if samples arrive.

        Returns:
            Why the bag could not be closed, None if it was.
        """
        bag = self.bag
        problem = None
        if bag is None:
            return None
        try:
            if outage is not None:
                text = f"{outage.missing} samples missing at the end ({outage.cause})"
                bag.write_event(Event(bag.last_stamp, "gap", text, WARNING))
                bag.add_gap(replace(outage, index=bag.samples))
            self._take_messages(bag)
            try:
                if self._failure is not None:
                    bag.split()
                bag.close()
            except OSError as refusal:
                bag.abandon()
                with suppress(OSError):
                    bag.write_metadata()
                problem = f"the bag cannot be finished ({refusal.strerror or refusal})"
        finally:
            status = self._status_of(bag)
            self._status = replace(
                status,
                state=state,
                samples=bag.readable_samples,
                waiting=0,
                last_error=error or problem or status.last_error,
                stopped_because=error or problem,
            )
            self.bag = None
            HOST_CLOCK.release()
            self.finished.set()
        return problem

    def _run(self) -> None:
        """The writing thread."""
        item: Item | None = None
        while not self._closing.is_set():
            # Where something was taken, what is behind it is taken without waiting for
            # more.
            item = self._queue.get(WRITE_TIMEOUT if item is None else 0.0)
            bag = self.bag
            if isinstance(item, QueuedAction):
                item.execute()
            elif bag is not None:
                try:
                    self._take(bag, item)
                    self._flush_when_due(bag)
                except OSError as error:
                    self._fail(bag, error)
                except UrEnergyError as error:
                    self._end(str(error))
                except Exception as fault:  # the thread must go on executing commands
                    self._end(f"writing failed ({type(fault).__name__}: {fault})")

    def _take(self, bag: BagWriter, item: Item | None) -> None:
        """Write samples or an event; while the disk fails, keep them in memory."""
        if isinstance(item, Event):
            bag.write_event(item)
        elif isinstance(item, Gap):
            bag.drop_gap(item)
        elif isinstance(item, Telemetry):
            self._note_modes(bag, item)
            if self._failure is None:
                bag.write(item)
            elif bag.pending_samples < WAITING_BYTES // _bytes_of_sample(item):
                bag.append(item)
            else:
                bag.drop(item, f"{OVERFLOW}: {self._failure}")
                self._dropped += len(item)

    def _flush_when_due(self, bag: BagWriter) -> None:
        """Twice a second: flush, and check file and disk; after a failure, try to go on.

        Raises:
            OSError: the disk is full or fails.
        """
        now = time.monotonic()
        if now < self._next_flush:
            return
        self._next_flush = now + FLUSH_SECONDS
        self._take_messages(bag)
        shortage = _shortage(bag.path)
        if shortage is not None:
            raise OSError(shortage)
        if self._failure is not None:
            bag.split()
            self._failure = None
            text = "writing again, in a new file"
            bag.write_event(Event(HOST_CLOCK.stamp(), "recorder", text))
        bag.flush()
        bag.check_file()
        if now >= self._next_metadata:
            began = time.thread_time()
            bag.write_metadata()
            spent = time.thread_time() - began
            self._next_metadata = now + max(METADATA_SECONDS, spent / METADATA_SHARE)

    def _fail(self, bag: BagWriter, error: OSError) -> None:
        """Note that the disk is full or fails; an event of the bag where this begins.

        Args:
            bag: bag that cannot be written.
            error: error of the disk.
        """
        reason = error.strerror or str(error)
        text = f"writing failed ({reason}), samples wait in memory"
        if self._failure is None:
            bag.write_event(Event(HOST_CLOCK.stamp(), "recorder", text, ERROR))
        self._failure = reason
        self._last_failure = text

    def _end(self, reason: str) -> None:
        """End the bag early, for a reason in words: its samples cannot be written."""
        self._on_failure()
        with suppress(Exception):
            self.finish("stopped", reason)

    def _take_messages(self, bag: BagWriter) -> None:
        """Append the messages of other topics that have come since the last call."""
        for messages in self._options.messages():
            bag.write_messages(messages)

    def _note_modes(self, bag: BagWriter, batch: Telemetry) -> None:
        """Write an event for each change of robot mode and safety mode."""
        for name, known in _MODES:
            values = batch.columns.get(name)
            if values is None:
                continue
            before = self._modes.get(name, values[0])
            for i in np.flatnonzero(np.diff(values, prepend=before)):
                code = int(values[i]) if np.isfinite(values[i]) else -1
                text = f"{name}: {known.get(code, code)}"
                stamp = HOST_CLOCK.stamp() if batch.stamp is None else int(batch.stamp[i])
                bag.write_event(Event(stamp, "mode", text))
            self._modes[name] = float(values[-1])


def _bytes_of_sample(batch: Telemetry) -> int:
    """Size of a sample in memory [bytes]."""
    values = sum(column.nbytes for column in batch.columns.values())
    return max(1, values // len(batch))


def _shortage(path: Path) -> str | None:
    """Why a disk counts as full: less than 64 MB, and less than a tenth of a small one, is left.

    None if it has room, or if how much it has cannot be read: writing reports that.
    """
    existing = (each for each in (path, *path.parents) if each.exists())
    try:
        usage = shutil.disk_usage(next(existing))
    except (OSError, StopIteration):
        return None
    if usage.free >= min(MIN_FREE_BYTES, MIN_FREE_FRACTION * usage.total):
        return None
    return f"the disk is nearly full ({usage.free / 1e6:.1f} MB are left)"


def _refusal(path: Path, error: OSError) -> RecordingError:
    """The error about a bag that the disk does not take."""
    reason = error.strerror or str(error)
    return RecordingError(path, f"cannot be written ({reason})", "check the disk")
