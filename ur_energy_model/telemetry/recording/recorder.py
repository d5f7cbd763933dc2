"""Recorder: records a telemetry source into bags, reading in one thread and writing in another."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from ur_energy_model.errors import RecordingError, UrEnergyError
from ur_energy_model.telemetry.bag.files import bag_name
from ur_energy_model.telemetry.clock import HOST_CLOCK
from ur_energy_model.telemetry.recording.reception import (
    Command,
    Reception,
    RecorderOptions,
    RecorderStatus,
    SampleQueue,
)
from ur_energy_model.telemetry.recording.storage_budget import StorageBudget
from ur_energy_model.telemetry.recording.writing_thread import CLOSE_TIMEOUT, WritingThread
from ur_energy_model.telemetry.samples import WARNING, Event, Gap, Telemetry
from ur_energy_model.telemetry.source import TelemetrySource
from ur_energy_model.typing import Self

READ_TIMEOUT = 0.2


class Recorder:
    """Records a telemetry source; entering it starts reading, `start` begins a bag.

    Of what the source sends while a bag is recorded, every sample is in the bag or counted as
    lost; see RecorderStatus.

    Args:
        source: entered already; from now on only the recorder reads it.
        folder: where bags go for which `start` gets no path.
        options: what to record.
        tap: called with every batch in the reading thread; it must be quick.
        queue: between the threads; None for one of the usual size.
        record: begin a bag on entering, with the first sample of the source: at this path, or
            True for one that is named by the template.
    """

    def __init__(
        self,
        source: TelemetrySource,
        folder: Path | str = ".",
        *,
        options: RecorderOptions | None = None,
        tap: Callable[[Telemetry], None] | None = None,
        queue: SampleQueue | None = None,
        record: Path | bool = False,
    ) -> None:
        self._source, self._folder, self._tap = source, Path(folder), tap
        self._options = RecorderOptions() if options is None else options
        self._queue = SampleQueue() if queue is None else queue
        self._lock = threading.Lock()
        self._recent: deque[Telemetry] = deque()
        self._taking = False
        self._at_once = record
        self._reception = Reception()
        self._outage: Gap | None = None
        self._clock_steps = HOST_CLOCK.check()
        self.fault: Exception | None = None
        """Unexpected exception that ended the reading, None if there was none."""
        self._closing = threading.Event()
        self._writing = WritingThread(self._queue, self._options, self._stop_taking)
        self._reading = threading.Thread(target=self._read, name="telemetry reader", daemon=True)
        retention = self._options.retention
        self._budget = (
            None
            if retention is None
            else StorageBudget(self._folder, retention, self._bag_in_work, self._release)
        )

    def __enter__(self) -> Self:
        self._writing.start()
        if self._budget is not None:
            self._budget.start()
        if self._at_once is not False:
            try:
                self._begin(None if self._at_once is True else self._at_once)
            except BaseException:
                self.close()
                raise
        self._reading.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self, path: Path | str | None = None) -> Path:
        """Begin a bag.

        Returns:
            Its path, made from the name template if none is given.

        Raises:
            RecordingError: a bag is being recorded, the path exists, the source has ended, or the
                disk fails.
        """
        if not self._reading.is_alive():
            raise RecordingError(
                self._source.info.source, "sends no more samples", "connect it again"
            )
        return self._begin(path)

    def _begin(self, path: Path | str | None) -> Path:
        with HOST_CLOCK.held():  # name and first stamps agree; the bag holds it from then on
            return self._begin_bag(path)

    def _begin_bag(self, path: Path | str | None) -> Path:
        """Begin a bag between two samples, without a pause in reading."""
        source, options = self._source, self._options
        with self._lock:
            if self._taking:
                raise RecordingError(
                    str(self._writing.status.bag), "is still being recorded", "stop it first"
                )
            if path is None:
                now = HOST_CLOCK.stamp() * 1e-9
                path = self._folder / bag_name(options.name, source.info, self._folder, now)
            bag = Path(path)
            fields = source.fields if options.fields is None else options.fields
            # Order makes the bag exact: what enters the queue from here on belongs to it. First the
            # command that opens it, then the seconds before the start, then every sample that is
            # read, as the reading thread waits for the lock in `_take`. Opening takes a while (a
            # disk may be slow) and is waited for outside the lock; meanwhile samples queue up. If
            # it fails, none are taken, and `status` reports the bag before as if nothing had been.
            command = Command(lambda: self._writing.open(bag, source.info, fields))
            self._writing.finished.clear()
            self._queue.put(command)
            before = self._reception, self._outage
            self._reception, self._outage = Reception(options.duration), None
            for i, batch in enumerate(self._recent):
                # The gap in front of the first sample is not in the bag.
                inside = tuple(gap for gap in batch.gaps if i or gap.index)
                accepted = self._reception.accept(replace(batch, gaps=inside))
                self._queue.put(HOST_CLOCK.corrected(accepted))
            self._recent.clear()
            self._taking = True
        try:
            command.result.result()
        except BaseException:
            self._taking = False
            self._reception, self._outage = before
            raise
        return bag

    def stop(self) -> RecorderStatus:
        """Finish the bag with every sample read so far; does nothing if there is none.

        Raises:
            RecordingError: the disk fails; what is on it is readable.
        """
        self._stop_taking()
        problem = self._run_command(lambda: self._writing.finish("idle", outage=self._outage))
        if problem is not None:
            raise RecordingError(str(self._writing.status.bag), str(problem), "check the disk")
        return self.status

    def split(self) -> None:
        """Continue in the next file of the bag.

        Raises:
            RecordingError: nothing is being recorded, or the disk fails.
        """
        self._run_command(self._writing.split)

    def mark(self, label: str) -> None:
        """Put a labelled event into the bag, at this moment.

        Raises:
            RecordingError: nothing is being recorded.
        """
        if not self._taking:
            raise RecordingError("mark", "nothing is being recorded", "start recording first")
        self._put(Event(HOST_CLOCK.now(), "mark", label))

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the bag ends by itself: duration over, source ended, disk nearly full."""
        return self._writing.finished.wait(timeout)

    def close(self) -> None:
        """Finish the bag and stop reading; the source stays open."""
        if self._budget is not None:
            self._budget.close()
        if self._writing.alive:
            with suppress(UrEnergyError):
                self.stop()
        self._closing.set()
        if self._reading.is_alive():
            self._reading.join(CLOSE_TIMEOUT)
        self._writing.close()
        self._queue.close()

    @property
    def reading(self) -> bool:
        """Whether the source is being read; False once it ended or failed for good."""
        return self._reading.is_alive()

    @property
    def status(self) -> RecorderStatus:
        """State of recording, now."""
        link, rate, outage = self._source.status, self._source.info.rate, self._outage
        if self._taking:
            outage = self._reception.outage(link, rate)
        status = self._reception.counted(self._writing.status, outage, rate)
        return replace(
            status,
            duplicates=link.duplicates,
            connected=link.connected,
            last_error=status.last_error or link.last_error,
            storage=None if self._budget is None else self._budget.use,
        )

    def _read(self) -> None:
        """The reading thread."""
        error: str | None = None
        try:
            while not self._closing.is_set():
                batch = self._source.read(READ_TIMEOUT)
                self._note_clock_steps()
                for event in self._source.take_events():
                    self._put(event)
                if batch is not None and len(batch):
                    self._take(batch)
        except EOFError:
            pass
        except UrEnergyError as refusal:
            error = str(refusal)
        except Exception as fault:  # the bag must be finished in any case
            self.fault = fault
            error = f"reading failed ({type(fault).__name__}: {fault})"
        if not self._closing.is_set():
            self._end_bag(error)

    def _note_clock_steps(self) -> None:
        """Put an event into the bag if the system's clock was set."""
        steps = HOST_CLOCK.check()
        if steps != self._clock_steps:
            self._clock_steps = steps
            self._put(Event(HOST_CLOCK.now(), "clock", HOST_CLOCK.describe_step(), WARNING))

    def _take(self, batch: Telemetry) -> None:
        if self._tap is not None:
            self._tap(HOST_CLOCK.corrected(batch))
        over, cut = False, None
        with self._lock:
            if self._taking:
                inside, over = self._reception.within_duration(batch, self._source.info.rate)
                self._queue.put(HOST_CLOCK.corrected(self._reception.accept(inside)))
                for gap in batch.gaps:
                    if over and gap.index == len(inside):
                        cut = self._reception.cut_gap(gap, self._source.info.rate)
            elif self._options.pretrigger > 0:
                self._remember(batch)
        if over:
            self._end_bag(None, cut)

    def _remember(self, batch: Telemetry) -> None:
        """Keep the last seconds for a bag that may begin soon."""
        self._recent.append(batch)
        newest = batch.time[-1]
        while newest - self._recent[0].time[-1] > self._options.pretrigger:
            self._recent.popleft()

    def _put(self, event: Event) -> None:
        with self._lock:
            if self._taking:
                stamp = event.stamp + HOST_CLOCK.correction
                self._queue.put(replace(event, stamp=stamp))

    def _stop_taking(self) -> None:
        with self._lock:
            if self._taking:
                self._outage = self._reception.outage(self._source.status, self._source.info.rate)
            self._taking = False

    def _end_bag(self, error: str | None, cut: Gap | None = None) -> None:
        """End the bag by itself, perhaps within a gap."""
        self._stop_taking()
        if cut is not None:
            self._outage = cut
        outage = self._outage
        self._queue.put(Command(lambda: self._writing.finish("stopped", error, outage)))

    def _bag_in_work(self) -> Path | None:
        """The bag being recorded, None if there is none."""
        status = self._writing.status
        return status.bag if status.state in ("recording", "failing") else None

    def _release(self, path: Path) -> bool:
        """Take a file out of the bag being recorded; returns whether it may be deleted."""
        return bool(self._run_command(lambda: self._writing.release(path)))

    def _run_command(self, action: Callable[[], object]) -> object:
        """Run an action in the writing thread, after what the queue holds."""
        command = Command(action)
        self._queue.put(command)
        return command.result.result()
