"""WritingThread: writes what a queue holds into the current bag, through disk errors."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from ur_energy_model.errors import RecordingError, UrEnergyError
from ur_energy_model.robot_modes import ROBOT_MODES, SAFETY_MODES
from ur_energy_model.telemetry.bag.extra_messages import Messages
from ur_energy_model.telemetry.bag.files import FileSplit, remove_abandoned_in_bags
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.telemetry.clock import HOST_CLOCK
from ur_energy_model.telemetry.recording.reception import (
    Command,
    RecorderOptions,
    RecorderStatus,
    SampleQueue,
)
from ur_energy_model.telemetry.samples import ERROR, WARNING, Event, Gap, RecordingInfo, Telemetry

# FaultTolerantWriter: keeps recording through disk errors.

FLUSH_SECONDS = 0.5
METADATA_SECONDS = 2.0
"""Period of metadata.yaml, so that of a killed recorder states what can be read [s]."""
METADATA_SHARE = 0.01
"""Largest share of the time that is spent on it; a bag of many files takes longer periods."""
ROOM_SECONDS = 10.0
MIN_FREE_BYTES = 64 << 20
MIN_FREE_FRACTION = 0.1
_MODES = (("robot_mode", ROBOT_MODES), ("safety_mode", SAFETY_MODES))


class DiskNearlyFullError(RecordingError):
    """The disk has too little room for a recording."""


class FaultTolerantWriter:
    """Writes one bag; after a failure of the disk it continues in a new file.

    Args:
        path: directory to make.
        info: robot and recording.
        fields: RTDE names to write.
        split: when to start a new file.
        resume: never give up a full disk.
        messages: returns messages of other topics since its last call.
        in_budget: whether files may be deleted later for the budget of the folder.

    Attributes:
        bag: the writer of the bag.
        failure: why the disk fails, None if it works. No samples must be written before `retry`
            has cleared it.
        last_failure: the last failure, also if it is over.
        reason: of that failure, in a few words.

    Raises:
        RecordingError: the path exists, or the disk fails.
    """

    def __init__(
        self,
        path: Path,
        info: RecordingInfo,
        fields: Sequence[str],
        *,
        split: FileSplit | None = None,
        resume: bool = False,
        messages: Callable[[], Iterable[Messages]] = tuple,
        in_budget: bool = False,
    ) -> None:
        self.failure: str | None = None
        self.last_failure: str | None = None
        self.reason = ""
        self._full_since: float | None = None
        self._using_reserve = False
        self._resume, self._messages = resume, messages
        self._modes: dict[str, float] = {}
        now = time.monotonic()
        self._next_flush = now + FLUSH_SECONDS
        self._next_metadata = now + METADATA_SECONDS
        remove_abandoned_in_bags(path.parent)
        check_room(path)
        try:
            self.bag = BagWriter(path, info, fields, durable=True, split=split, in_budget=in_budget)
        except OSError as error:
            raise _refusal(path, error) from None
        messages()  # those from before the bag

    def write(self, item: Telemetry | Event | None) -> None:
        """Write samples, an event or nothing; twice a second flush and check file and disk."""
        try:
            if isinstance(item, Telemetry):
                self._note_modes(item)
                self.bag.write(item)
            elif isinstance(item, Event):
                self.bag.write_event(item)
            if time.monotonic() >= self._next_flush:
                self._maintain()
        except OSError as error:
            self._fail(error)

    def retry(self) -> None:
        """After a failure: try to continue in the next file of the bag.

        Raises:
            DiskNearlyFullError: the disk has been full for too long; the bag must be finished.
        """
        try:
            if not self._has_room():
                return
            self.bag.split()
        except OSError as error:
            self._fail(error)
            return
        self.failure = None
        self.bag.write_event(Event(HOST_CLOCK.stamp(), "recorder", "writing again, in a new file"))

    def split(self) -> None:
        """Continue in the next file.

        Raises:
            RecordingError: the disk fails.
        """
        try:
            self.bag.split()
        except OSError as error:
            self._fail(error)
            raise _refusal(self.bag.path, error) from None

    def release(self, path: Path) -> bool:
        """Take a complete file out of the bag; returns whether it no longer belongs to it."""
        try:
            return self.bag.release(path)
        except OSError as error:
            self._fail(error)
            return False

    def use_reserve(self) -> None:
        """Write from now on even on a nearly full disk: the bag is about to be finished."""
        self._using_reserve, self.failure = True, None

    def finish(self, outages: Sequence[Gap] = ()) -> str | None:
        """Close the bag; returns why that failed, None if it worked.

        What is on the disk stays readable.

        Args:
            outages: samples that are missing behind the last one.
        """
        for gap in outages:
            text = f"{gap.missing} samples missing at the end ({gap.cause})"
            self.bag.write_event(Event(self.bag.last_stamp, "gap", text, WARNING))
            self.bag.end_with(gap)
        self._take_messages()
        try:
            self.bag.close()
        except OSError as error:
            self.bag.abandon()
            with suppress(OSError):
                self.bag.write_metadata()
            return f"the bag cannot be finished ({error.strerror or error})"
        return None

    def _maintain(self) -> None:
        """Flush, check that the file exists and the disk has room, update metadata."""
        now = time.monotonic()
        self._next_flush = now + FLUSH_SECONDS
        self._take_messages()
        self.bag.flush()
        self.bag.check_file()
        if now >= self._next_metadata:
            began = time.thread_time()
            self.bag.write_metadata()
            spent = time.thread_time() - began
            self._next_metadata = now + max(METADATA_SECONDS, spent / METADATA_SHARE)
        self._has_room()

    def _take_messages(self) -> None:
        for messages in self._messages():
            self.bag.write_messages(messages)

    def _has_room(self) -> bool:
        """Whether the disk has room; if not, samples wait for up to ROOM_SECONDS."""
        try:
            check_room(self.bag.path)
        except DiskNearlyFullError as error:
            now = time.monotonic()
            if self._using_reserve:
                return True
            if self._full_since is None:
                self._full_since = now
            if now - self._full_since > ROOM_SECONDS and not self._resume:
                raise
            self._fail(OSError(error.problem))
            return False
        self._full_since = None
        return True

    def _fail(self, error: OSError) -> None:
        self.reason = error.strerror or str(error)
        text = f"writing failed ({self.reason}), samples wait in memory"
        if self.failure is None:
            self.bag.write_event(Event(HOST_CLOCK.stamp(), "recorder", text, ERROR))
        self.failure = self.last_failure = text

    def _note_modes(self, batch: Telemetry) -> None:
        """Write an event for each change of robot mode and safety mode."""
        for name, known in _MODES:
            values = batch.columns.get(name)
            if values is None:
                continue
            before = self._modes.get(name, values[0])
            for i in np.flatnonzero(np.diff(values, prepend=before)):
                code = int(values[i]) if np.isfinite(values[i]) else -1
                stamp = HOST_CLOCK.stamp() if batch.stamp is None else int(batch.stamp[i])
                text = f"{name}: {known.get(code, code)}"
                self.bag.write_event(Event(stamp, "mode", text))
            self._modes[name] = float(values[-1])


def check_room(path: Path) -> None:
    """Check that the disk has room for a recording.

    Raises:
        DiskNearlyFullError: less than 64 MB, and less than a tenth of a small disk, are left.
    """
    folder = path
    try:
        while not folder.exists() and folder != folder.parent:
            folder = folder.parent
        usage = shutil.disk_usage(folder)
    except OSError:
        return  # writing will report the problem
    if usage.free < min(MIN_FREE_BYTES, MIN_FREE_FRACTION * usage.total):
        raise DiskNearlyFullError(
            path,
            f"the disk is nearly full ({usage.free / 1e6:.1f} MB are left)",
            "make room, or record elsewhere",
        )


def _refusal(path: Path, error: OSError) -> RecordingError:
    reason = error.strerror or str(error)
    return RecordingError(path, f"cannot be written ({reason})", "check the disk")


WRITE_TIMEOUT = 0.25
RETRY_SECONDS = 0.5
GIVE_UP_SECONDS = 3.0
CLOSE_TIMEOUT = 10.0


class WritingThread:
    """The writing side of a recorder.

    `open`, `split` and `finish` run in the thread: they reach it as commands in the queue, in
    order with the samples.

    Args:
        queue: of samples, events and commands.
        options: of the recorder.
        on_failure: called in the thread when a bag has to end; no more samples must be queued.

    Attributes:
        finished: set when a bag has ended.
    """

    def __init__(
        self, queue: SampleQueue, options: RecorderOptions, on_failure: Callable[[], None]
    ) -> None:
        self.finished = threading.Event()
        self._queue, self._options, self._on_failure = queue, options, on_failure
        self._closing = threading.Event()
        self._writer: FaultTolerantWriter | None = None
        self._status = RecorderStatus()
        self._began = 0.0
        self._overflow_before = self._spilled_before = 0
        self._thread = threading.Thread(target=self._run, name="bag writer", daemon=True)

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
    def seconds(self) -> float:
        """Time since the bag began [s]."""
        return time.monotonic() - self._began

    @property
    def status(self) -> RecorderStatus:
        """State of the bag and the queue; what concerns the source keeps its defaults."""
        status = self._status
        return replace(
            status,
            seconds=status.seconds if self._writer is None else self.seconds,
            waiting=self._queue.samples,
            spilled=self._queue.spilled - self._spilled_before,
            overflow=self._queue.overflow - self._overflow_before,
        )

    def open(self, bag: Path, info: RecordingInfo, fields: tuple[str, ...]) -> None:
        """Begin a bag.

        Raises:
            RecordingError: the path exists, or the disk fails.
        """
        options = self._options
        info = replace(info, namespace=options.namespace, tf_prefix=options.tf_prefix)
        self._writer = FaultTolerantWriter(
            bag,
            info,
            fields,
            split=options.split,
            resume=options.resume,
            messages=options.messages,
            in_budget=options.retention is not None,
        )
        HOST_CLOCK.hold()  # no step of the clock within a bag
        self._began = time.monotonic()
        self._overflow_before, self._spilled_before = self._queue.overflow, self._queue.spilled
        self._status = RecorderStatus(state="recording", bag=bag)

    def split(self) -> None:
        """Continue in the next file.

        Raises:
            RecordingError: nothing is being recorded, or the disk fails.
        """
        if self._writer is None:
            raise RecordingError("split", "nothing is being recorded", "start recording first")
        self._writer.split()

    def release(self, path: Path) -> bool:
        """Take a complete file out of the bag; returns whether it may be deleted."""
        return self._writer is None or self._writer.release(path)

    def finish(self, state: str, error: str | None = None, outage: Gap | None = None) -> str | None:
        """Close the bag, if there is one.

        Args:
            state: of the recorder from now on.
            error: why the bag ends early.
            outage: in which it ends.

        Returns:
            Why the bag could not be closed, None if it was.
        """
        writer = self._writer
        if writer is None:
            return None
        ends = (self._queue.take_gap(), outage)
        try:
            problem = writer.finish([gap for gap in ends if gap is not None])
            self._publish(writer)
        finally:
            self._writer = None
            HOST_CLOCK.release()
            self._queue.problem = None
        self._status = replace(
            self._status,
            state=state,
            samples=writer.bag.readable_samples,
            seconds=self.seconds,
            last_error=error or problem or self._status.last_error,
            stopped_because=error or problem,
        )
        self.finished.set()
        return problem

    def _run(self) -> None:
        failing_since: float | None = None
        while not self._closing.is_set():
            writer = self._writer
            failing = writer is not None and writer.failure is not None
            item = self._queue.get(WRITE_TIMEOUT, commands_only=failing)
            if isinstance(item, Command):
                item.execute()
            elif writer is not None:
                if not failing:
                    failing_since = None
                    self._write(writer, item)
                    continue
                now = time.monotonic()
                failing_since = now if failing_since is None else failing_since
                self._closing.wait(RETRY_SECONDS - WRITE_TIMEOUT)
                self._retry(writer)
                if now - failing_since > GIVE_UP_SECONDS:
                    self._queue.drop_before_command()

    def _write(self, writer: FaultTolerantWriter, item: Telemetry | Event | None) -> None:
        try:
            writer.write(item)
        except UrEnergyError as error:
            self._end(str(error))
            return
        except Exception as fault:  # the thread must go on executing commands
            self._end(f"writing failed ({type(fault).__name__}: {fault})")
            return
        self._publish(writer)

    def _end(self, reason: str) -> None:
        """End the bag: these samples cannot be written."""
        self._on_failure()
        try:
            self.finish("stopped", reason)
        except Exception:
            self._status = replace(self._status, state="stopped", stopped_because=reason)
            self.finished.set()

    def _retry(self, writer: FaultTolerantWriter) -> None:
        try:
            writer.retry()
        except UrEnergyError as error:
            writer.use_reserve()  # the samples that wait are written before the bag ends
            reason = str(error)
            self._on_failure()
            self._queue.put(Command(lambda: self.finish("stopped", reason)))
        except Exception as fault:
            self._end(f"writing failed ({type(fault).__name__}: {fault})")
            return
        self._publish(writer)

    def _publish(self, writer: FaultTolerantWriter) -> None:
        """Bring the status up to date."""
        bag = writer.bag
        self._queue.problem = None if writer.failure is None else writer.reason
        if len(bag.gaps) != len(self._status.gaps):
            self._status = replace(self._status, gaps=tuple(bag.gaps))
        self._status = replace(
            self._status,
            state="recording" if writer.failure is None else "failing",
            samples=bag.samples,
            unreadable=bag.unreadable_samples,
            removed=bag.released_samples,
            bytes=bag.size,
            last_error=writer.last_failure,
        )
