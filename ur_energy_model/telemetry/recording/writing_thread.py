# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The writing side of a recorder: a thread that survives failures of the disk.

What the queue holds is written into the current bag. While the disk fails, samples wait:
in memory, then in a temporary file; those that find no place there are counted, and a gap
of the bag.
"""

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
    Retention,
    remove_abandoned_in_bags,
)
from ur_energy_model.telemetry.bag.messages import Messages
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.telemetry.clock import HOST_CLOCK
from ur_energy_model.telemetry.gaps import NO_LOSSES, Gap, Losses
from ur_energy_model.telemetry.recording.storage_budget import StorageUse
from ur_energy_model.telemetry.sample_queue import Command, Item, SampleQueue
from ur_energy_model.telemetry.samples import (
    ERROR,
    WARNING,
    Event,
    RecordingInfo,
    Telemetry,
)

FLUSH_SECONDS = 0.5
METADATA_SECONDS = 2.0
"""Period of metadata.yaml, so that of a killed recorder states what can be read [s]."""
METADATA_SHARE = 0.01
"""Largest share of the time that is spent on it; a bag of many files takes longer periods."""
ROOM_SECONDS = 10.0
"""Time for which a disk may be nearly full before the bag ends, unless it resumes [s]."""
MIN_FREE_BYTES = 64 << 20
MIN_FREE_FRACTION = 0.1
WRITTEN_TOGETHER = 0.1
"""Time span of the samples for which the thread wakes up [s]: to wake up for each batch that was
read takes twice the processor time."""
WRITE_TIMEOUT = 0.25
RETRY_SECONDS = 0.5
GIVE_UP_SECONDS = 3.0
"""Time of a failure after which samples in front of a command are dropped for it [s]."""
CLOSE_TIMEOUT = 10.0
_MODES = (("robot_mode", ROBOT_MODES), ("safety_mode", SAFETY_MODES))


@dataclass(frozen=True)
class RecorderOptions:
    """How to record bags."""

    # RTDE names to write; None for all the source has
    fields: tuple[str, ...] | None = None
    name: str = DEFAULT_NAME  # template of bag names, see `bag_name`
    # namespace, tf_prefix: of topics and joints in bags, see RecordingInfo
    namespace: str = ""
    tf_prefix: str = ""
    # when to start a new file of a bag
    split: FileSplit = field(default_factory=FileSplit)
    pretrigger: float = 0.0  # time before `start` with which a bag begins [s]
    # length after which a bag ends by itself, by the controller's clock [s]
    duration: float | None = None
    # budget for all bags in the folder; None keeps all
    retention: Retention | None = None
    # continue when a full disk has room again; otherwise a disk that is full for ten
    # seconds ends the bag
    resume: bool = False
    # called in the writing thread about twice a second while a bag is open, for messages
    # of other topics since its last call; it must not wait
    messages: Callable[[], Iterable[Messages]] = tuple


@dataclass(frozen=True)
class RecorderStatus:
    """State of a recorder at one moment."""

    # "idle", "recording", "failing" (the disk fails; samples wait in memory), "stopped"
    # (by itself: the duration is over, the source ended, or the disk is nearly full)
    state: str = "idle"
    bag: Path | None = None  # being recorded, or recorded last
    # written, or accepted for the next chunk; once the bag is finished, what can be read
    # back from it
    samples: int = 0
    # samples that are known to be missing in the bag: those of its gaps, `overflow` and
    # `unreadable` ones, and once it has ended those of the outage in which it ended
    losses: Losses = NO_LOSSES
    # length of the present outage of the source [s], 0 while samples arrive
    outage: float = 0.0
    # samples that were written but cannot be read back (file deleted, replaced or cut,
    # bag renamed, disk full)
    unreadable: int = 0
    # samples of this bag that were deleted to keep within the budget; not lost ones
    removed: int = 0
    # packets left out because the controller sent the same tick again
    duplicates: int = 0
    skipped: int = 0  # packets left out because they could not be used
    gaps: tuple[Gap, ...] = ()  # in this bag
    bytes: int = 0  # size of the bag so far
    seconds: float = 0.0  # since recording began
    waiting: int = 0  # samples in the queue between reading and writing
    spilled: int = 0  # samples that waited in a temporary file because the queue was full
    overflow: int = 0  # samples dropped because that file was full too
    connected: bool = True  # False while a live source has lost its robot
    last_error: str | None = None  # the last error, None if there was none
    # what ended the recording too early, None if nothing did
    stopped_because: str | None = None
    # what all bags of the folder take, None without a budget
    storage: StorageUse | None = None


class WritingThread:
    """Writes what a queue holds into the current bag; continues in a new file after a failure.

    `open`, `split`, `release` and `finish` run in the thread: they reach it as commands
    in the queue, in order with the samples. `on_failure` is called in it when a bag has
    to end: no more samples must be queued. `finished` is set when a bag has ended; `bag`
    is being written.
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
        """Begin the state of a bag."""
        # Why the disk fails now, and what it was last.
        self._failure: str | None = None
        self._last_failure: str | None = None
        self._failing_since: float | None = None
        self._full_since: float | None = None
        self._using_reserve = False
        self._modes: dict[str, float] = {}
        self._began = now = time.monotonic()
        self._next_flush = now + FLUSH_SECONDS
        self._next_metadata = now + METADATA_SECONDS
        self._overflow_before = self._queue.dropped.samples
        self._spilled_before = self._queue.spilled

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
        status = self._status
        bag = self.bag
        queue = self._queue
        if bag is not None and status.state == "recording":
            status = self._status_of(bag)
        return replace(
            status,
            waiting=queue.samples,
            spilled=queue.spilled - self._spilled_before,
            overflow=queue.dropped.samples - self._overflow_before,
        )

    def _status_of(self, bag: BagWriter) -> RecorderStatus:
        return RecorderStatus(
            state="recording" if self._failure is None else "failing",
            bag=bag.path,
            samples=bag.samples,
            unreadable=bag.unreadable_samples,
            removed=bag.released_samples,
            gaps=tuple(bag.gaps),
            bytes=bag.size,
            seconds=time.monotonic() - self._began,
            last_error=self._last_failure,
        )

    def open(self, path: Path, info: RecordingInfo, fields: tuple[str, ...]) -> None:
        """Begin a bag; raises RecordingError if the path exists, or the disk fails."""
        self._queue.awaited = max(1, round(WRITTEN_TOGETHER * (info.rate or 1.0)))
        options = self._options
        info = replace(info, namespace=options.namespace, tf_prefix=options.tf_prefix)
        in_budget = options.retention is not None
        remove_abandoned_in_bags(path.parent)
        shortage = _shortage(path)
        if shortage is not None:
            raise shortage
        try:
            bag = BagWriter(
                path, info, fields, durable=True, split=options.split, in_budget=in_budget
            )
        except OSError as error:
            raise _refusal(path, error) from None
        options.messages()  # those from before the bag
        HOST_CLOCK.hold()  # no step of the clock within a bag
        self._forget()
        self._status = RecorderStatus(state="recording", bag=path)
        self.bag = bag

    def split(self) -> None:
        """Continue in the next file; raises RecordingError without a bag, or if the disk fails."""
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

        `error` is why it ends early, `outage` the one in which it ends. Returns why the
        bag could not be closed, None if it was.
        """
        bag = self.bag
        problem = None
        if bag is None:
            return None
        try:
            for gap in (self._queue.take_gap(), outage):
                if gap is not None:
                    text = f"{gap.missing} samples missing at the end ({gap.cause})"
                    bag.write_event(Event(bag.last_stamp, "gap", text, WARNING))
                    bag.add_gap(replace(gap, index=bag.samples))
            self._take_messages(bag)
            try:
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
                last_error=error or problem or status.last_error,
                stopped_because=error or problem,
            )
            self.bag = self._queue.problem = None
            HOST_CLOCK.release()
            self.finished.set()
        return problem

    def _run(self) -> None:
        item: Item | None = None
        while not self._closing.is_set():
            bag = self.bag
            failing = bag is not None and self._failure is not None
            # Where something was taken, what waits behind it is taken without waiting for
            # more.
            timeout = WRITE_TIMEOUT if item is None or failing else 0.0
            item = self._queue.get(timeout, commands_only=failing)
            if isinstance(item, Command):
                item.execute()
            elif bag is not None:
                try:
                    if failing:
                        self._retry(bag)
                    else:
                        self._write(bag, item)
                except OSError as error:
                    self._fail(bag, error)
                except UrEnergyError as error:
                    self._end(str(error))
                except Exception as fault:  # the thread must go on executing commands
                    self._end(f"writing failed ({type(fault).__name__}: {fault})")

    def _write(self, bag: BagWriter, item: Item | None) -> None:
        """Write samples, an event or nothing; twice a second flush and check file and disk."""
        self._failing_since = None
        if isinstance(item, Telemetry):
            self._note_modes(bag, item)
            bag.write(item)
        elif isinstance(item, Event):
            bag.write_event(item)
        now = time.monotonic()
        if now < self._next_flush:
            return
        self._next_flush = now + FLUSH_SECONDS
        self._take_messages(bag)
        bag.flush()
        bag.check_file()
        if now >= self._next_metadata:
            began = time.thread_time()
            bag.write_metadata()
            spent = time.thread_time() - began
            self._next_metadata = now + max(METADATA_SECONDS, spent / METADATA_SHARE)
        self._has_room(bag)

    def _retry(self, bag: BagWriter) -> None:
        """After a failure: try to continue in the next file of the bag."""
        if self._failing_since is None:
            self._failing_since = time.monotonic()
        self._closing.wait(RETRY_SECONDS - WRITE_TIMEOUT)
        if self._has_room(bag):
            bag.split()
            self._failure = self._queue.problem = None
            bag.write_event(
                Event(HOST_CLOCK.stamp(), "recorder", "writing again, in a new file")
            )

    def _has_room(self, bag: BagWriter) -> bool:
        """Whether the disk has room; if not, samples wait for up to ROOM_SECONDS."""
        shortage = _shortage(bag.path)
        if shortage is None:
            self._full_since = None
            return True
        now = time.monotonic()
        if self._full_since is None:
            self._full_since = now
        if self._using_reserve:
            return True
        if now - self._full_since <= ROOM_SECONDS or self._options.resume:
            raise OSError(shortage.problem)
        # The samples that wait are still written, even on a nearly full disk; then it
        # ends.
        self._using_reserve = True
        self._failure = None
        self._queue.problem = None
        self._on_failure()
        reason = str(shortage)
        self._queue.put(Command(lambda: self.finish("stopped", reason)))
        return False

    def _fail(self, bag: BagWriter, error: OSError) -> None:
        reason = error.strerror or str(error)
        text = f"writing failed ({reason}), samples wait in memory"
        if self._failure is None:
            bag.write_event(Event(HOST_CLOCK.stamp(), "recorder", text, ERROR))
        self._failure = self._last_failure = text
        self._queue.problem = reason
        since = self._failing_since
        if since is not None and time.monotonic() - since > GIVE_UP_SECONDS:
            self._queue.drop_before_command()

    def _end(self, reason: str) -> None:
        """End the bag: these samples cannot be written."""
        self._on_failure()
        with suppress(Exception):
            self.finish("stopped", reason)

    def _take_messages(self, bag: BagWriter) -> None:
        for messages in self._options.messages():
            bag.write_messages(messages)

    def _note_modes(self, bag: BagWriter, batch: Telemetry) -> None:
        """Write an event for each change of robot mode and safety mode."""
        for name, known in _MODES:
            values = batch.columns.get(name)
            if values is None:
                continue
            for i in np.flatnonzero(
                np.diff(values, prepend=self._modes.get(name, values[0]))
            ):
                code = int(values[i]) if np.isfinite(values[i]) else -1
                stamp = HOST_CLOCK.stamp() if batch.stamp is None else int(batch.stamp[i])
                bag.write_event(Event(stamp, "mode", f"{name}: {known.get(code, code)}"))
            self._modes[name] = float(values[-1])


def _shortage(path: Path) -> RecordingError | None:
    """Refusal of a disk with less than 64 MB, and less than a tenth of a small one, left."""
    try:
        usage = shutil.disk_usage(
            next(each for each in (path, *path.parents) if each.exists())
        )
    except (OSError, StopIteration):
        return None  # writing will report the problem
    if usage.free >= min(MIN_FREE_BYTES, MIN_FREE_FRACTION * usage.total):
        return None
    problem = f"the disk is nearly full ({usage.free / 1e6:.1f} MB are left)"
    return RecordingError(path, problem, "make room, or record elsewhere")


def _refusal(path: Path, error: OSError) -> RecordingError:
    reason = error.strerror or str(error)
    return RecordingError(path, f"cannot be written ({reason})", "check the disk")
