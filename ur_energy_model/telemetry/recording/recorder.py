"""Records a source into bags: one thread reads, another writes, nothing is lost in between."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from typing_extensions import Self

from ur_energy_model.errors import RecordingError, UrEnergyError
from ur_energy_model.telemetry.bag.naming import DEFAULT_NAME, bag_name
from ur_energy_model.telemetry.bag.retention import Retention
from ur_energy_model.telemetry.event import Event
from ur_energy_model.telemetry.recording.fault_tolerant_writer import FaultTolerantWriter
from ur_energy_model.telemetry.recording.sample_queue import Order, SampleQueue
from ur_energy_model.telemetry.samples import Gap, Telemetry
from ur_energy_model.telemetry.source import TelemetrySource

READ_TIMEOUT = 0.2
WRITE_TIMEOUT = 0.25
RETRY_SECONDS = 0.5
GIVE_UP_SECONDS = 3.0
CLOSE_TIMEOUT = 10.0


@dataclass(frozen=True)
class RecorderStatus:
    """How recording goes; a snapshot.

    Attributes:
        state: "idle", "recording", "failing" (the disk refuses; samples wait in memory), "stopped"
            (by itself: the time is over, the source ended, or the disk is nearly full).
        bag: being recorded, or recorded last.
        samples: written or on their way to the disk.
        lost: samples that the gaps account for.
        duplicates: packets left out because the controller sent the same tick again.
        gaps: in this bag.
        bytes: of the bag so far.
        seconds: since recording began.
        waiting: samples in the queue between reading and writing.
        spilled: samples that found the queue full and waited in a temporary file.
        overflow: samples given up because that was full too; they are in `lost` as well.
        connected: False while a live source has lost its robot.
        last_error: the last thing that went wrong, None if nothing did.
        stopped_because: what ended the recording too early, None where nothing did.
    """

    state: str = "idle"
    bag: Path | None = None
    samples: int = 0
    lost: int = 0
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


class Recorder:
    """Records a telemetry source; entering it starts reading, `start` starts a bag.

    Args:
        source: entered already; the recorder reads it from now on, and nobody else does.
        folder: where bags go that `start` is not given a path for.
        fields: names to write; None for all the source has.
        name: template of bag names: {robot}, {serial}, {date}, {time}, {number}.
        split_seconds, split_bytes: start a new file of the bag after that much.
        pretrigger: seconds before `start` that the bag begins with.
        duration: end the bag after this time by the controller's clock [s].
        retention: which old bags beside the new one to delete; None for none.
        tap: is given every batch in the reading thread; it must be quick.
        queue: between the threads; None for one of the usual size.
    """

    def __init__(
        self,
        source: TelemetrySource,
        folder: Path | str = ".",
        *,
        fields: tuple[str, ...] | None = None,
        name: str = DEFAULT_NAME,
        split_seconds: float | None = None,
        split_bytes: int | None = None,
        pretrigger: float = 0.0,
        duration: float | None = None,
        retention: Retention | None = None,
        tap: Callable[[Telemetry], None] | None = None,
        queue: SampleQueue | None = None,
    ) -> None:
        self._source, self._folder, self._fields = source, Path(folder), fields
        self._name, self._retention, self._tap = name, retention, tap
        self._split_ns = None if split_seconds is None else round(split_seconds * 1e9)
        self._split_bytes = split_bytes
        self._pretrigger, self._duration = pretrigger, duration
        self._queue = SampleQueue() if queue is None else queue
        self._lock = threading.Lock()
        self._recent: deque[Telemetry] = deque()
        self._taking = False
        self._first_time: float | None = None
        self._closing = threading.Event()
        self._finished = threading.Event()
        self._keeper: FaultTolerantWriter | None = None
        self._status = RecorderStatus()
        self._began = 0.0
        self._overflow_before = self._spilled_before = 0
        self._reading = threading.Thread(target=self._read, name="telemetry reader", daemon=True)
        self._writing = threading.Thread(target=self._write, name="bag writer", daemon=True)

    def __enter__(self) -> Self:
        self._reading.start()
        self._writing.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self, path: Path | str | None = None) -> Path:
        """Begin a bag.

        Returns:
            Its path, by the name template where none is given.

        Raises:
            RecordingError: a bag is being recorded, the path exists, the source has ended, or the
                disk refuses.
        """
        with self._lock:
            if self._taking:
                raise RecordingError(
                    str(self._status.bag), "is still being recorded", "stop it first"
                )
            if not self._reading.is_alive():
                source = self._source.info.source
                raise RecordingError(source, "sends no more samples", "connect it again")
            bag = Path(path) if path is not None else self._folder / self._next_name()
            order = Order(lambda: self._open(bag))
            self._finished.clear()
            self._queue.put(order)
            for batch in self._recent:
                self._queue.put(batch)
            self._recent.clear()
            self._first_time = None
            self._taking = True
        try:
            order.done.result()
        except BaseException:
            self._taking = False
            raise
        return bag

    def stop(self) -> RecorderStatus:
        """Finish the bag, with every sample read so far; does nothing where there is none.

        Raises:
            RecordingError: the disk refuses; what is on it is readable.
        """
        with self._lock:
            self._taking = False
        problem = self._command(lambda: self._finish("idle"))
        if problem is not None:
            raise RecordingError(str(self._status.bag), str(problem), "check the disk")
        return self.status

    def split(self) -> None:
        """Go on in the next file of the bag.

        Raises:
            RecordingError: nothing is being recorded, or the disk refuses.
        """
        self._command(self._split)

    def mark(self, label: str) -> None:
        """Put a labelled event into the bag, at this moment.

        Raises:
            RecordingError: nothing is being recorded.
        """
        if not self._taking:
            raise RecordingError("mark", "nothing is being recorded", "start recording first")
        self._put(Event(time.time_ns(), "mark", label))

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the bag ends by itself: time over, source at its end, disk nearly full."""
        return self._finished.wait(timeout)

    def close(self) -> None:
        """Finish the bag and stop reading; the source stays open."""
        if self._writing.is_alive():
            with suppress(UrEnergyError):
                self.stop()
        self._closing.set()
        for thread in (self._reading, self._writing):
            if thread.is_alive():
                thread.join(CLOSE_TIMEOUT)
        self._queue.close()

    @property
    def reading(self) -> bool:
        """Whether the source is still being read; False once it ended or failed for good."""
        return self._reading.is_alive()

    @property
    def status(self) -> RecorderStatus:
        """How recording goes, now."""
        link, status = getattr(self._source, "status", None), self._status
        recording = self._keeper is not None
        return replace(
            status,
            seconds=time.monotonic() - self._began if recording else status.seconds,
            waiting=self._queue.samples,
            spilled=self._queue.spilled - self._spilled_before,
            overflow=self._queue.overflow - self._overflow_before,
            duplicates=getattr(link, "duplicates", 0),
            connected=getattr(link, "connected", True),
            last_error=status.last_error or getattr(link, "last_error", None),
        )

    # The reading thread ------------------------------------------------------------------------

    def _read(self) -> None:
        error: str | None = None
        try:
            while not self._closing.is_set():
                batch = self._source.read(READ_TIMEOUT)
                for event in self._source_events():
                    self._put(event)
                if batch is not None and len(batch):
                    self._take(batch)
        except EOFError:
            pass
        except UrEnergyError as refusal:
            error = str(refusal)
        except Exception as fault:  # the bag must be finished whatever happened
            error = f"reading failed ({type(fault).__name__}: {fault})"
        if not self._closing.is_set():
            self._end_bag(error)

    def _source_events(self) -> list[Event]:
        take = getattr(self._source, "take_events", None)
        return [] if take is None else take()

    def _take(self, batch: Telemetry) -> None:
        if self._tap is not None:
            self._tap(batch)
        over = False
        with self._lock:
            if self._taking:
                batch, over = self._within_duration(batch)
                self._queue.put(batch)
            elif self._pretrigger > 0:
                self._remember(batch)
        if over:
            self._end_bag(None)

    def _within_duration(self, batch: Telemetry) -> tuple[Telemetry, bool]:
        """The part of a batch that belongs into the bag, and whether the bag ends with it."""
        if self._duration is None:
            return batch, False
        first = float(batch.time[0])
        if self._first_time is None:
            self._first_time = first
        elif first < self._first_time:  # its clock started again: ours says how long it took
            self._first_time = first - (time.monotonic() - self._began)
        half = 0.5 / (self._source.info.rate or 1000.0)
        keep = int(np.searchsorted(batch.time, self._first_time + self._duration - half))
        return (batch, False) if keep == len(batch) else (_beginning(batch, keep), True)

    def _remember(self, batch: Telemetry) -> None:
        """Keep the last seconds for a bag that may begin soon."""
        self._recent.append(batch)
        newest = batch.time[-1]
        while newest - self._recent[0].time[-1] > self._pretrigger:
            self._recent.popleft()

    def _put(self, event: Event) -> None:
        with self._lock:
            if self._taking:
                self._queue.put(event)

    def _end_bag(self, error: str | None) -> None:
        """End the bag from within."""
        with self._lock:
            self._taking = False
        self._queue.put(Order(lambda: self._finish("stopped", error)))

    # The writing thread ------------------------------------------------------------------------

    def _write(self) -> None:
        failing_since: float | None = None
        while not self._closing.is_set():
            keeper = self._keeper
            failing = keeper is not None and keeper.failure is not None
            item = self._queue.get(WRITE_TIMEOUT, orders_only=failing)
            if isinstance(item, Order):
                item.obey()
            elif keeper is not None:
                if not failing:
                    failing_since = None
                    self._keep(keeper, item)
                    continue
                now = time.monotonic()
                failing_since = now if failing_since is None else failing_since
                self._closing.wait(RETRY_SECONDS - WRITE_TIMEOUT)
                self._retry(keeper)
                if now - failing_since > GIVE_UP_SECONDS:
                    self._queue.give_up_before_order()

    def _keep(self, keeper: FaultTolerantWriter, item: Telemetry | Event | None) -> None:
        try:
            keeper.write(item)
        except UrEnergyError as error:
            with self._lock:
                self._taking = False
            self._finish("stopped", str(error))
            return
        self._publish(keeper)

    def _retry(self, keeper: FaultTolerantWriter) -> None:
        try:
            keeper.retry()
        except UrEnergyError as error:
            keeper.use_reserve()  # what waits is written before the bag ends
            self._end_bag(str(error))
        self._publish(keeper)

    def _publish(self, keeper: FaultTolerantWriter) -> None:
        writer = keeper.writer
        if len(writer.gaps) != len(self._status.gaps):
            gaps = tuple(writer.gaps)
            lost = sum(gap.missing for gap in gaps)
            self._status = replace(self._status, gaps=gaps, lost=lost)
        self._status = replace(
            self._status,
            state="recording" if keeper.failure is None else "failing",
            samples=writer.samples,
            bytes=writer.size,
            last_error=keeper.last_failure,
        )

    def _open(self, bag: Path) -> None:
        fields = self._fields if self._fields is not None else self._source.fields
        self._keeper = FaultTolerantWriter(
            bag,
            self._source.info,
            fields,
            split_ns=self._split_ns,
            split_bytes=self._split_bytes,
            retention=self._retention,
        )
        self._began = time.monotonic()
        self._overflow_before, self._spilled_before = self._queue.overflow, self._queue.spilled
        self._status = RecorderStatus(state="recording", bag=bag)

    def _split(self) -> None:
        if self._keeper is None:
            raise RecordingError("split", "nothing is being recorded", "start recording first")
        self._keeper.split()

    def _finish(self, state: str, error: str | None = None) -> str | None:
        """Close the bag; returns what went wrong with that."""
        keeper = self._keeper
        if keeper is None:
            return None
        problem = keeper.finish()
        self._publish(keeper)
        self._keeper = None
        self._status = replace(
            self._status,
            state=state,
            seconds=time.monotonic() - self._began,
            last_error=error or problem or self._status.last_error,
            stopped_because=error or problem,
        )
        self._finished.set()
        return problem

    def _command(self, do: Callable[[], object]) -> object:
        order = Order(do)
        self._queue.put(order)
        return order.done.result()

    def _next_name(self) -> str:
        return bag_name(self._name, self._source.info, self._folder)


def _beginning(batch: Telemetry, count: int) -> Telemetry:
    """The first samples of a batch, with the gap in front of it."""
    part = batch.cut(slice(0, count))
    return replace(part, gaps=tuple(gap for gap in batch.gaps if gap.index < count))
