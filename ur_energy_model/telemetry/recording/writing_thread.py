"""WritingThread: writes what a queue holds into the current bag, through disk errors."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ur_energy_model.errors import RecordingError, UrEnergyError
from ur_energy_model.telemetry.event import Event
from ur_energy_model.telemetry.host_clock import HOST_CLOCK
from ur_energy_model.telemetry.recording.fault_tolerant_writer import FaultTolerantWriter
from ur_energy_model.telemetry.recording.options_and_status import RecorderOptions, RecorderStatus
from ur_energy_model.telemetry.recording.sample_queue import Command, SampleQueue
from ur_energy_model.telemetry.samples import Gap, RecordingInfo, Telemetry

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
