"""Records a source into bags: one thread reads, another writes, nothing is lost in between."""

from __future__ import annotations

import shutil
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType

import numpy as np
from typing_extensions import Self

from ur_energy_model.errors import RecordingError, UrEnergyError
from ur_energy_model.telemetry.bag_layout import Event
from ur_energy_model.telemetry.bag_naming import DEFAULT_NAME, Retention, bag_name
from ur_energy_model.telemetry.bag_writer import BagWriter
from ur_energy_model.telemetry.modes import ROBOT_MODES, SAFETY_MODES
from ur_energy_model.telemetry.samples import Gap, Telemetry
from ur_energy_model.telemetry.source import TelemetrySource

READ_TIMEOUT = 0.2
FLUSH_SECONDS = 0.5
METADATA_SECONDS = 10.0
RETRY_SECONDS = 0.5
GIVE_UP_SECONDS = 3.0
QUEUE_BYTES = 256 << 20
MIN_FREE_BYTES = 64 << 20
MIN_FREE_FRACTION = 0.1
OVERFLOW = "recorder overflow"
ERROR = 40


@dataclass(frozen=True)
class RecorderStatus:
    """How recording goes; a snapshot.

    Attributes:
        state: "idle", "recording", "failing" (the disk refuses; samples wait in memory), "stopped"
            (by itself: the source ended, or the disk is nearly full).
        bag: being recorded, or recorded last.
        samples: written or on their way to the disk.
        lost: samples that the gaps account for.
        duplicates: packets left out because the controller sent the same tick again.
        gaps: in this bag.
        bytes: of the bag so far.
        seconds: since recording began.
        waiting: samples in the queue between reading and writing.
        overflow: samples given up because that queue was full; they are in `lost` too.
        connected: False while a live source has lost its robot.
        last_error: the last thing that went wrong, None if nothing did.
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
    overflow: int = 0
    connected: bool = True
    last_error: str | None = None


@dataclass
class _Order:
    """Something the writing thread shall do, in its place among the samples."""

    do: Callable[[], object]
    done: Future[object] = field(default_factory=Future)
    since: float = field(default_factory=time.monotonic)


_Item = Telemetry | Event | _Order


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
        retention: which old bags of `folder` to delete; None for none.
        tap: is given every batch in the reading thread; it must be quick.
        queue_bytes: most memory for samples that wait to be written.
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
        queue_bytes: int = QUEUE_BYTES,
    ) -> None:
        self._source, self._folder, self._fields = source, Path(folder), fields
        self._name, self._retention, self._tap = name, retention, tap
        self._split_ns = None if split_seconds is None else round(split_seconds * 1e9)
        self._split_bytes, self._duration = split_bytes, duration
        self._pretrigger, self._queue_bytes = pretrigger, queue_bytes
        self._queue: deque[_Item] = deque()
        self._changed = threading.Condition()
        self._held_bytes = 0
        self._held_samples = 0
        self._recent: deque[Telemetry] = deque()
        self._taking = False
        self._stop_reading = threading.Event()
        self._stop_writing = False
        self._writer: BagWriter | None = None
        self._status = RecorderStatus()
        self._overflow_gap: Gap | None = None
        self._overflow = 0
        self._started = 0.0
        self._first_time: float | None = None
        self._modes: dict[str, float] = {}
        self._next_upkeep = self._next_metadata = 0.0
        self._finished = threading.Event()
        self._reading = threading.Thread(target=self._read, name="telemetry reader", daemon=True)
        self._writing = threading.Thread(target=self._write, name="bag writer", daemon=True)

    def __enter__(self) -> Self:
        self._reading.start()
        self._writing.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def start(self, path: Path | str | None = None) -> Path:
        """Begin a bag.

        Returns:
            Its path, by the name template where none is given.

        Raises:
            RecordingError: a bag is being recorded, the path exists, or the disk refuses.
        """
        with self._changed:
            if self._taking:
                raise RecordingError(
                    str(self._status.bag), "is still being recorded", "stop it first"
                )
            if not self._reading.is_alive():
                raise RecordingError(
                    self._source.info.source, "sends no more samples", "connect it again"
                )
            bag = Path(path) if path is not None else self._folder / self._bag_name()
            order = _Order(lambda: self._open(bag))
            self._queue.append(order)
            for batch in self._recent:
                self._hold(batch)
            self._recent.clear()
            self._taking = True
            self._first_time = None
            self._finished.clear()
            self._changed.notify()
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
        with self._changed:
            self._taking = False
        self._command(self._finish)
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
        """Wait until the bag ends by itself: duration over, source at its end, disk full."""
        return self._finished.wait(timeout)

    def close(self) -> None:
        """Stop recording and reading; the source stays open."""
        self._stop_reading.set()
        with suppress(UrEnergyError):
            if self._writing.is_alive():
                self.stop()
        self._stop_writing = True
        with self._changed:
            self._changed.notify()
        for thread in (self._reading, self._writing):
            if thread.is_alive():
                thread.join(timeout=10.0)

    @property
    def status(self) -> RecorderStatus:
        """How recording goes, now."""
        link = getattr(self._source, "status", None)
        seconds = self._status.seconds
        if self._writer is not None:
            seconds = time.monotonic() - self._started
        return replace(
            self._status,
            seconds=seconds,
            waiting=self._held_samples,
            overflow=self._overflow,
            duplicates=getattr(link, "duplicates", 0),
            connected=getattr(link, "connected", True),
            last_error=self._status.last_error or getattr(link, "last_error", None),
        )

    # -- reading thread ------------------------------------------------------------------------

    def _read(self) -> None:
        error: str | None = None
        try:
            while not self._stop_reading.is_set():
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
        if not self._stop_reading.is_set():
            self._end_bag(error)

    def _source_events(self) -> list[Event]:
        take = getattr(self._source, "take_events", None)
        return [] if take is None else take()

    def _take(self, batch: Telemetry) -> None:
        if self._tap is not None:
            self._tap(batch)
        over = False
        with self._changed:
            if self._taking:
                batch, over = self._within_duration(batch)
                self._hold(batch)
            elif self._pretrigger > 0:
                self._remember(batch)
            self._changed.notify()
        if over:
            self._end_bag(None)

    def _within_duration(self, batch: Telemetry) -> tuple[Telemetry, bool]:
        """The part of a batch that belongs into the bag, and whether the bag ends with it."""
        if self._duration is None:
            return batch, False
        if self._first_time is None or batch.time[0] < self._first_time:
            self._first_time = float(batch.time[0])
        half = 0.5 / (self._source.info.rate or 1000.0)
        keep = int(np.searchsorted(batch.time, self._first_time + self._duration - half))
        return (batch, False) if keep == len(batch) else (batch.cut(slice(0, keep)), True)

    def _remember(self, batch: Telemetry) -> None:
        """Keep the last seconds for a bag that may begin soon."""
        self._recent.append(batch)
        while (
            len(self._recent) > 1 and batch.time[-1] - self._recent[0].time[-1] > self._pretrigger
        ):
            self._recent.popleft()

    def _hold(self, batch: Telemetry) -> None:
        """Queue samples, or count and report them where memory is full."""
        if len(batch) == 0:
            return
        size = sum(values.nbytes for values in batch.columns.values())
        if self._held_bytes + size > self._queue_bytes:
            self._overflow += len(batch)
            before = self._overflow_gap
            start = batch.time[0] if before is None else before.start
            missing = len(batch) + (0 if before is None else before.missing)
            self._overflow_gap = Gap(0, float(start), float(batch.time[-1]), missing, OVERFLOW)
            return
        if self._overflow_gap is not None:
            gap = replace(self._overflow_gap, end=float(batch.time[0]))
            rest = tuple(each for each in batch.gaps if each.index > 0)
            batch = replace(batch, gaps=(gap, *rest))
            self._overflow_gap = None
        self._held_bytes += size
        self._held_samples += len(batch)
        self._queue.append(batch)

    def _put(self, event: Event) -> None:
        with self._changed:
            if self._taking:
                self._queue.append(event)
                self._changed.notify()

    def _end_bag(self, error: str | None) -> None:
        """End the bag from within."""
        with self._changed:
            self._taking = False
            self._queue.append(_Order(lambda: self._finish("stopped", error)))
            self._changed.notify()

    # -- writing thread ------------------------------------------------------------------------

    def _write(self) -> None:
        while True:
            with self._changed:
                if not self._queue and not self._stop_writing:
                    self._changed.wait(FLUSH_SECONDS)
                if self._stop_writing and not self._queue:
                    return
                item = None
                self._give_up_waiting()
                if self._queue and not self._must_wait(self._queue[0]):
                    item = self._pop()
            if item is None and self._status.state == "failing":
                time.sleep(RETRY_SECONDS)
            if isinstance(item, _Order):
                self._obey(item)
            else:
                self._guarded(item)

    def _pop(self) -> _Item:
        item = self._queue.popleft()
        if isinstance(item, Telemetry):
            self._held_bytes -= sum(values.nbytes for values in item.columns.values())
            self._held_samples -= len(item)
        return item

    def _give_up_waiting(self) -> None:
        """An order does not wait for ever behind samples that the disk refuses."""
        now = time.monotonic()
        orders = [item for item in self._queue if isinstance(item, _Order)]
        if self._status.state != "failing" or not orders or now - orders[0].since < GIVE_UP_SECONDS:
            return
        while self._queue[0] is not orders[0]:
            item = self._pop()
            self._overflow += len(item) if isinstance(item, Telemetry) else 0

    def _must_wait(self, item: _Item) -> bool:
        """While the disk refuses, samples stay in the queue; orders are obeyed."""
        return self._status.state == "failing" and not isinstance(item, _Order)

    def _obey(self, order: _Order) -> None:
        try:
            order.done.set_result(order.do())
        except OSError as error:
            reason = f"cannot be written ({error.strerror or error})"
            order.done.set_exception(
                RecordingError(str(self._status.bag), reason, "check the disk")
            )
        except BaseException as error:
            order.done.set_exception(error)

    def _guarded(self, item: Telemetry | Event | None) -> None:
        """Write, and survive what the disk does."""
        writer = self._writer
        if writer is None:
            return
        try:
            if self._status.state == "failing":
                writer.split()
                self._note_recovery()
            if isinstance(item, Telemetry):
                self._note_modes(item)
                writer.write(item)
            elif isinstance(item, Event):
                writer.write_event(item)
            if time.monotonic() >= self._next_upkeep:
                self._upkeep(writer)
        except OSError as error:
            self._fail(error)
        except UrEnergyError as error:
            self._finish("stopped", str(error))
        self._publish()

    def _upkeep(self, writer: BagWriter) -> None:
        """Twice a second: everything to the disk, and is there room for more."""
        now = time.monotonic()
        self._next_upkeep = now + FLUSH_SECONDS
        writer.flush()
        if now >= self._next_metadata:
            self._next_metadata = now + METADATA_SECONDS
            writer.write_metadata()
            if self._retention is not None:
                self._retention.apply(self._folder, spare=writer.path)
        problem = disk_problem(writer.path)
        if problem is not None:
            self._taking = False
            self._finish("stopped", problem)

    def _fail(self, error: OSError) -> None:
        text = f"writing failed ({error.strerror or error}); samples wait in memory"
        if self._status.state != "failing":
            self._queue.appendleft(Event(time.time_ns(), "recorder", text, ERROR))
        self._status = replace(self._status, state="failing", last_error=text)

    def _note_recovery(self) -> None:
        self._status = replace(self._status, state="recording")
        if self._writer is not None:
            self._writer.write_event(
                Event(time.time_ns(), "recorder", "writing again, in a new file")
            )

    def _note_modes(self, batch: Telemetry) -> None:
        """An event for each change of the robot's and the safety mode."""
        if self._writer is None:
            return
        for name, known in (("robot_mode", ROBOT_MODES), ("safety_mode", SAFETY_MODES)):
            values = batch.columns.get(name)
            if values is None:
                continue
            before = self._modes.get(name, values[0])
            for i in np.flatnonzero(np.diff(values, prepend=before)):
                code = int(values[i]) if np.isfinite(values[i]) else -1
                stamp = time.time_ns() if batch.stamp is None else int(batch.stamp[i])
                text = f"{name}: {known.get(code, code)}"
                self._writer.write_event(Event(stamp, "mode", text))
            self._modes[name] = float(values[-1])

    def _open(self, bag: Path) -> None:
        info = self._source.info
        problem = disk_problem(bag.parent)
        if problem is not None:
            raise RecordingError(bag, problem, "make room, or record elsewhere")
        if self._retention is not None:
            self._retention.apply(self._folder, spare=bag)
        self._writer = BagWriter(
            bag, info, self._fields if self._fields is not None else self._source.fields,
            durable=True, split_ns=self._split_ns, split_bytes=self._split_bytes,
        )  # fmt: skip
        self._started = time.monotonic()
        self._next_upkeep = self._started + FLUSH_SECONDS
        self._next_metadata = self._started + METADATA_SECONDS
        self._modes, self._overflow = {}, 0
        self._status = RecorderStatus(state="recording", bag=bag)

    def _split(self) -> None:
        if self._writer is None:
            raise RecordingError("split", "nothing is being recorded", "start recording first")
        self._writer.split()

    def _finish(self, state: str = "idle", error: str | None = None) -> None:
        """Close the bag; where the disk refuses, what is on it stays readable."""
        writer = self._writer
        if writer is None:
            return
        self._publish()
        try:
            writer.close()
        except OSError as refusal:
            error = f"the bag could not be finished ({refusal.strerror or refusal})"
            writer.abandon()
            with suppress(OSError):
                writer.write_metadata()
        self._publish()
        self._writer = None
        self._status = replace(
            self._status,
            state=state,
            seconds=time.monotonic() - self._started,
            last_error=error or self._status.last_error,
        )
        self._finished.set()
        if error is not None and state == "idle":
            raise RecordingError(str(writer.path), error, "check the disk")

    def _publish(self) -> None:
        writer = self._writer
        if writer is not None:
            self._status = replace(
                self._status,
                samples=writer.samples,
                gaps=tuple(writer.gaps),
                lost=sum(gap.missing for gap in writer.gaps),
                bytes=writer.size,
            )

    def _command(self, do: Callable[[], object]) -> None:
        order = _Order(do)
        with self._changed:
            self._queue.append(order)
            self._changed.notify()
        order.done.result()

    def _bag_name(self) -> str:
        return bag_name(self._name, self._source.info, self._folder)


def disk_problem(path: Path) -> str | None:
    """Why the disk of a path has no room for a recording, None where it has."""
    try:
        while not path.exists() and path != path.parent:
            path = path.parent
        usage = shutil.disk_usage(path)
    except OSError:
        return None  # writing will say what is wrong
    if usage.free < min(MIN_FREE_BYTES, MIN_FREE_FRACTION * usage.total):
        return f"the disk is nearly full ({usage.free >> 20} MB are left)"
    return None
