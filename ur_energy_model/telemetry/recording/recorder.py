# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Recorder: records a telemetry source into bags, reading in one thread and writing in another."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from ur_energy_model.errors import RecordingError, UrEnergyError
from ur_energy_model.telemetry.bag.files import bag_name
from ur_energy_model.telemetry.clock import HOST_CLOCK
from ur_energy_model.telemetry.gaps import Gap
from ur_energy_model.telemetry.recording.storage_budget import StorageBudget
from ur_energy_model.telemetry.recording.writing_thread import (
    CLOSE_TIMEOUT,
    RecorderOptions,
    RecorderStatus,
    WritingThread,
)
from ur_energy_model.telemetry.sample_queue import QueuedAction, SampleQueue
from ur_energy_model.telemetry.samples import WARNING, Event, Telemetry
from ur_energy_model.telemetry.source import LinkStatus, TelemetrySource
from ur_energy_model.typing import ClosedOnExit, Self

READ_TIMEOUT = 0.2  # longest time of a read of the source [s]
LATE_SECONDS = 0.4
"""Time since the source was last read to its end from which the end of a bag waits for it [s]: two
reads in vain."""
# longest time that the end of a bag waits for the reading thread [s]
CATCH_UP_SECONDS = 2.0


class Recorder(ClosedOnExit):
    """Records a telemetry source; entering it starts reading, `start` begins a bag.

    Of what the source sends while a bag is recorded, every sample is in the bag or
    counted as lost; see RecorderStatus.

    Args:
        source: entered already; from now on only the recorder reads it.
        folder: folder for bags for which `start` gets no path.
        options: what to record.
        tap: called with every batch in the reading thread; it must be quick.
        record: begin a bag on entering, with the first sample of the source: at this
            path, or True for one that is named by the template.

    Attributes:
        fault: unexpected exception that ended the reading, None if there was none.
    """

    def __init__(
        self,
        source: TelemetrySource,
        folder: Path | str = ".",
        *,
        options: RecorderOptions | None = None,
        tap: Callable[[Telemetry], None] | None = None,
        record: Path | bool = False,
    ) -> None:
        self.fault: Exception | None = None
        self._source = source
        self._folder = Path(folder)
        self._tap = tap
        self._at_once = record
        self._options = RecorderOptions() if options is None else options
        self._queue = SampleQueue()
        # The lock guards which samples belong to a bag: whether one takes them, its
        # reception, and the seconds before the next bag.
        self._lock = threading.Lock()
        self._taking = False
        self._reception = _Reception()
        self._recent: deque[Telemetry] = deque()
        self._clock_steps = HOST_CLOCK.check()
        self._up_to_date = time.monotonic()  # when all that the source had sent was read
        self._closing = threading.Event()
        self._writing = WritingThread(self._queue, self._options, self._stop_taking)
        self._reading = threading.Thread(
            target=self._read, name="telemetry reader", daemon=True
        )
        self._budget: StorageBudget | None = None
        if self._options.retention is not None:
            self._budget = StorageBudget(
                self._folder,
                self._options.retention,
                recording=self._present_bag,
                release=self._release,
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

    def start(self, path: Path | str | None = None) -> Path:
        """Begin a bag; returns its path, made from the name template if none is given.

        Raises:
            RecordingError: a bag is being recorded, the path exists, the source has
                ended, or the disk fails.
        """
        if not self._reading.is_alive():
            raise RecordingError(
                self._source.info.source, "sends no more samples", "connect it again"
            )
        return self._begin(path)

    def _begin(self, path: Path | str | None) -> Path:
        """Begin a bag between two samples, without a pause in reading.

        Order makes the bag exact: what enters the queue from here on belongs to it. First
        the command that opens it, then the seconds before the start, then every sample
        that is read, as the reading thread waits for the lock in `_take`. Opening takes a
        while (a disk may be slow) and is waited for outside the lock; meanwhile samples
        queue up. If it fails, none are taken, and `status` reports the bag before as if
        nothing had been.
        """
        source = self._source
        options = self._options
        # The clock is held, so that the bag's name and its first stamps agree; the bag
        # holds it from then on.
        with HOST_CLOCK.held():
            with self._lock:
                if self._taking:
                    present = str(self._writing.status.bag)
                    problem = "is still being recorded"
                    raise RecordingError(present, problem, "stop it first")
                if path is None:
                    now = HOST_CLOCK.stamp() * 1e-9
                    name = bag_name(options.name, source.info, self._folder, now)
                    path = self._folder / name
                bag = Path(path)
                fields = source.fields if options.fields is None else options.fields
                self._writing.finished.clear()
                command = QueuedAction(
                    lambda: self._writing.open(bag, source.info, fields)
                )
                self._queue.put(command)
                before = self._reception
                self._reception = _Reception(options.duration, source.info.rate)
                self._put_recent()
                self._taking = True
            try:
                command.result.result()
            except BaseException:
                self._taking = False
                self._reception = before
                raise
        return bag

    def stop(self) -> RecorderStatus:
        """Finish the bag with every sample read so far; does nothing if there is none.

        Raises:
            RecordingError: the disk fails; what is on it is readable.
        """
        self._catch_up()
        self._stop_taking()
        outage = self._reception.outage
        problem = self._run_command(lambda: self._writing.finish("idle", outage=outage))
        if problem is not None:
            raise RecordingError(
                str(self._writing.status.bag), str(problem), "check the disk"
            )
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
            raise RecordingError(
                "mark", "nothing is being recorded", "start recording first"
            )
        self._put(Event(HOST_CLOCK.now(), "mark", label))

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the bag ends by itself: its duration is over, or the source has ended.

        Args:
            timeout: longest time to wait [s]; None waits for ever.

        Returns:
            Whether the bag has ended.
        """
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

    @property
    def reading(self) -> bool:
        """Whether the source is being read; False once it ended or failed for good."""
        return self._reading.is_alive()

    @property
    def status(self) -> RecorderStatus:
        """State of recording, now."""
        reception = self._reception
        link = self._source.status
        status = self._writing.status
        return replace(
            status,
            outage=min(link.outage, reception.age) if self._taking else 0.0,
            duplicates=link.duplicates,
            skipped=link.skipped,
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
                steps = HOST_CLOCK.check()
                if steps != self._clock_steps:
                    self._clock_steps = steps
                    text = HOST_CLOCK.describe_step()
                    self._put(Event(HOST_CLOCK.now(), "clock", text, WARNING))
                for event in self._source.take_events():
                    self._put(event)
                if batch is not None and len(batch):
                    self._take(batch)
                self._note_reading(batch)
        except EOFError:
            pass
        except UrEnergyError as refusal:
            error = str(refusal)
        except Exception as fault:  # the bag must be finished in any case
            self.fault = fault
            error = f"reading failed ({type(fault).__name__}: {fault})"
        if not self._closing.is_set():
            self._end_bag(error)

    def _take(self, batch: Telemetry) -> None:
        """Pass a batch to the tap, and to the bag or to the seconds before the next one."""
        if self._tap is not None:
            self._tap(HOST_CLOCK.corrected(batch))
        is_over = False
        cut: Gap | None = None
        with self._lock:
            if self._taking:
                is_over, cut = self._put_samples(batch)
            elif self._options.pretrigger > 0:
                self._recent.append(batch)
                oldest = batch.time[-1] - self._options.pretrigger
                while self._recent[0].time[-1] < oldest:
                    self._recent.popleft()
        if is_over:
            self._end_bag(None, cut)

    def _put_samples(self, batch: Telemetry) -> tuple[bool, Gap | None]:
        """Put the samples of a batch that belong into the bag into the queue.

        Args:
            batch: samples to record, at least one.

        Returns:
            Whether the duration of the bag is over, and the gap in which it ends; None if
            it ends with a sample.
        """
        reception = self._reception
        inside, is_over = reception.within_duration(batch)
        self._queue.put(HOST_CLOCK.corrected(reception.accept(inside)))
        if not is_over:
            return False, None
        cut: Gap | None = None
        for gap in batch.gaps:
            if gap.index == len(inside):
                cut = reception.gap_behind(math.inf, gap.cause)
        if cut is not None and reception.rate and not cut.missing:
            cut = None  # shorter than a sample period
        return True, cut

    def _put_recent(self) -> None:
        """Put the seconds before the start into the queue."""
        for number, batch in enumerate(self._recent):
            gaps = batch.gaps
            if number == 0:  # the gap in front of the first sample is not in the bag
                gaps = tuple(gap for gap in gaps if gap.index > 0)
            accepted = self._reception.accept(replace(batch, gaps=gaps))
            self._queue.put(HOST_CLOCK.corrected(accepted))
        self._recent.clear()

    def _present_bag(self) -> Path | None:
        """The bag that is being recorded, None if there is none."""
        bag = self._writing.bag
        return None if bag is None else bag.path

    def _release(self, path: Path) -> bool:
        """Take a complete file out of the bag; returns whether it may be deleted."""
        return bool(self._run_command(lambda: self._writing.release(path)))

    def _put(self, event: Event) -> None:
        """Pass an event to the bag, if one is recorded."""
        with self._lock:
            if self._taking:
                self._queue.put(replace(event, stamp=event.stamp + HOST_CLOCK.correction))

    def _catch_up(self) -> None:
        """Wait until what the source has sent by now is read, CATCH_UP_SECONDS at most.

        After a time in which this process did not run, samples wait in the socket.
        Usually the reading thread is up to date.
        """
        end = time.monotonic() + CATCH_UP_SECONDS
        while self._taking and self._reading.is_alive() and time.monotonic() < end:
            if time.monotonic() - self._up_to_date < LATE_SECONDS:
                return
            time.sleep(READ_TIMEOUT / 10.0)

    def _note_reading(self, batch: Telemetry | None) -> None:
        """Note whether what was read is all that the source has sent."""
        late = 0.0  # age of the newest sample [s]; 0 where nothing waited in the source
        if batch is not None and batch.stamp is not None:
            late = 1e-9 * (HOST_CLOCK.now() - int(batch.stamp[-1]))
        if late < LATE_SECONDS:
            self._up_to_date = time.monotonic()

    def _stop_taking(self) -> None:
        """Take no more samples into the bag; an outage that lasts is the gap at its end."""
        with self._lock:
            if self._taking:
                self._reception.outage = self._reception.present_outage(
                    self._source.status
                )
            self._taking = False

    def _end_bag(self, error: str | None, cut: Gap | None = None) -> None:
        """End the bag by itself.

        Args:
            error: error that ended the source; None if the duration is over.
            cut: gap in which the bag ends, None if there is none.
        """
        self._stop_taking()
        if cut is not None:
            self._reception.outage = cut
        outage = self._reception.outage
        self._queue.put(
            QueuedAction(lambda: self._writing.finish("stopped", error, outage))
        )

    def _run_command(self, action: Callable[[], object]) -> object:
        """Result of an action in the writing thread, which runs behind what the queue holds."""
        command = QueuedAction(action)
        self._queue.put(command)
        return command.result.result()


@dataclass
class _Reception:
    """Which samples belong to one bag.

    Attributes:
        duration: length after which the bag ends by itself, by the controller's clock
            [s]; None if it does not.
        rate: rate of the samples [Hz]; None if it is unknown.
        samples: number of samples accepted so far.
        first_time: controller time of the first sample [s], by the present clock if the
            controller restarted.
        last_time: controller time of the last sample [s].
        began: host's monotonic time at which the bag began [s].
        outage: outage of the source in which the bag ended; None if it did not end in
            one.
    """

    duration: float | None = None
    rate: float | None = None
    samples: int = 0
    first_time: float = math.nan
    last_time: float = math.nan
    began: float = field(default_factory=time.monotonic)
    outage: Gap | None = None

    @property
    def age(self) -> float:
        """Time since the bag began, by the host's clock [s]."""
        return time.monotonic() - self.began

    def accept(self, batch: Telemetry) -> Telemetry:
        """Take a batch into the bag; the gap in front of its first sample began with the bag."""
        if not len(batch):
            return batch
        if not self.samples:
            self.first_time = float(batch.time[0])
            seconds = self.age
            for gap in batch.gaps:
                if gap.index == 0 and gap.seconds > seconds:
                    missing = round(seconds / gap.seconds * gap.missing)
                    first = replace(gap, missing=missing, away=seconds)
                    batch = replace(batch, gaps=(first, *batch.gaps[1:]))
        self.samples += len(batch)
        self.last_time = float(batch.time[-1])
        return batch

    def within_duration(self, batch: Telemetry) -> tuple[Telemetry, bool]:
        """The part of a batch that belongs into the bag, and whether the bag ends with it."""
        if self.duration is None:
            return batch, False
        first = float(batch.time[0])
        period = 1.0 / (self.rate or 1000.0)
        away = [gap.away for gap in batch.gaps if gap.index == 0 and gap.away is not None]
        if not self.samples:
            self.first_time = first
        elif away:  # another clock: the begin of the bag as a time of this clock
            recorded = self.last_time - self.first_time
            self.first_time = first - recorded - max(away[0], period)
        end = self.first_time + self.duration - 0.5 * period
        keep = int(np.searchsorted(batch.time, end))
        # `cut` would leave out a gap in front of the batch.
        gaps = tuple(gap for gap in batch.gaps if gap.index < keep)
        return replace(batch.cut(slice(0, keep)), gaps=gaps), keep < len(batch)

    def present_outage(self, link: LinkStatus) -> Gap | None:
        """The outage of a source as a gap behind the last sample, None if samples arrive.

        It begins with the bag at the earliest and ends with its duration at the latest.
        """
        away = min(link.outage, self.age)
        what = "no samples" if link.connected else "connection lost"
        return self.gap_behind(away, f"{what}: {link.problem}")

    def gap_behind(self, away: float, cause: str) -> Gap | None:
        """A gap behind the last sample that ends with the bag's duration at the latest.

        Args:
            away: time without samples [s].
            cause: cause of the gap.

        Returns:
            The gap; None if it has no length.
        """
        rate = self.rate or 0.0
        periods = round(min(away * rate, 2**53)) if rate else 0
        start = self.last_time if self.samples else 0.0
        if self.duration is not None and start >= self.first_time:
            rest = self.first_time + self.duration - start
            if rest <= away:  # the next sample would be the first behind the bag
                away = rest
                periods = round(rest * rate) - 1
        if not math.isfinite(away) or away <= 0.0:
            return None
        return Gap(self.samples, start, start + away, max(periods, 0), cause, away)
