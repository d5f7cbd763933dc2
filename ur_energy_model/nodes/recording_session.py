"""RecordingSession: reads a source in a thread, and records bags while they are wanted."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from ur_energy_model.errors import ControllerError, RecordingError, UrEnergyError
from ur_energy_model.telemetry.bag.recovery import recover_killed
from ur_energy_model.telemetry.recording.options_and_status import RecorderOptions, RecorderStatus
from ur_energy_model.telemetry.recording.recorder import Recorder
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry
from ur_energy_model.telemetry.source import LinkStatus, TelemetrySource

RECONNECT_PERIOD = 1.0
"""Pause before a failed source is replaced [s]."""
RESUME_PERIOD = 5.0
"""Pause before a bag is tried again that could not be begun, or that ended by itself [s]."""
RECOVERY_TIMEOUT = 5.0
"""Longest time that the end waits for a bag to be recovered [s]; the next start does it again."""
STATE_PERIOD = 0.2
"""Period of checks whether the source or the bag has ended [s]."""


class RecordingSession:
    """Connects in a thread, so that the controller may start later than the program.

    A source that ends or fails is replaced. While a recording is wanted (`record`, or after
    `start_bag` until `stop_bag`), a bag that ended by itself is followed by a new one, as soon as
    that is possible.

    Args:
        make_source: makes the source, called again for each replacement.
        folder: where bags go.
        options: of the recorder.
        tap: called with every batch in the reading thread; it must be quick.
        record: whether a recording is wanted from the start.

    Attributes:
        failure: error that ended the session for good, None while there is none.
        recovered: lines about bags of the folder whose recorder was killed, and whether they need
            attention; whoever shows them takes them out.
        refusal: why no bag can be recorded although one is wanted, None if one can.
    """

    def __init__(
        self,
        make_source: Callable[[], TelemetrySource],
        folder: Path,
        options: RecorderOptions,
        tap: Callable[[Telemetry], None],
        *,
        record: bool = False,
    ) -> None:
        self._make_source, self._folder, self._options = make_source, folder, options
        self._tap, self._wanted = tap, record
        self.failure: UrEnergyError | None = None
        self.refusal: str | None = None
        self.recovered: deque[tuple[str, bool]] = deque()
        self._problem: str | None = None
        self._recorder: Recorder | None = None
        self._last = RecorderStatus()
        self._final: LinkStatus | None = None
        self._next_bag = -float("inf")
        self._commands = threading.Lock()
        self._stopping = threading.Event()
        self._source = make_source()
        self._thread = threading.Thread(target=self._run, name="logger session")
        self._recovery = threading.Thread(target=self._recover, name="bag recovery", daemon=True)

    def start(self) -> None:
        """Start connecting, and recover bags whose recorder was killed."""
        self._thread.start()
        self._recovery.start()

    def stop(self) -> None:
        """Finish the bag and disconnect."""
        self._stopping.set()
        if self._recorder is None:
            self._source.close()  # it may still be trying to connect
        self._thread.join()
        self._recovery.join(RECOVERY_TIMEOUT)

    @property
    def link(self) -> LinkStatus:
        """State of the connection, with the reason where there is none; once stopped, the last."""
        if self._final is not None:
            return self._final
        status = self._source.status
        if self._problem is None or self._recorder is not None:
            return status
        return LinkStatus(connected=False, problem=self._problem, last_error=self._problem)

    @property
    def info(self) -> RecordingInfo | None:
        """Robot and recording, None before the controller was connected."""
        return None if self._recorder is None else self._source.info

    @property
    def status(self) -> RecorderStatus:
        """State of the bag that is recorded, or of the last one."""
        recorder = self._recorder
        return self._last if recorder is None else recorder.status

    def start_bag(self) -> Path:
        """Begin a bag; returns its path.

        Raises:
            RecordingError: not connected, a bag is being recorded, or the disk fails.
        """
        with self._commands:
            bag = self._connected.start()
            self._wanted, self.refusal = True, None
        return bag

    def stop_bag(self) -> RecorderStatus:
        """Finish the bag; does nothing if there is none.

        Raises:
            RecordingError: not connected, or the disk fails.
        """
        with self._commands:
            self._wanted, self.refusal = False, None
            return self._connected.stop()

    def split_bag(self) -> None:
        """Continue in the next file of the bag.

        Raises:
            RecordingError: nothing is being recorded, or the disk fails.
        """
        self._connected.split()

    def mark(self, label: str) -> None:
        """Put a labelled event into the bag, at this moment.

        Raises:
            RecordingError: nothing is being recorded.
        """
        self._connected.mark(label)

    @property
    def _connected(self) -> Recorder:
        if self._recorder is None:
            raise RecordingError(
                "logger", "is not connected to the controller yet", "try again once it is connected"
            )
        return self._recorder

    def _recover(self) -> None:
        def report(line: str, attention: bool) -> None:
            self.recovered.append((line, attention))

        recover_killed(self._folder, report, self._stopping.is_set)

    def _run(self) -> None:
        """Record until the session is stopped; replace the source whenever it fails."""
        while not self._stopping.is_set():
            try:
                self._read_source()
                if not self._stopping.is_set():
                    self._problem = "the data of the controller could not be read; connecting again"
            except ControllerError as error:
                self._problem = str(error)
            except UrEnergyError as error:
                self.failure = None if self._stopping.is_set() else error
                return
            if not self._stopping.wait(RECONNECT_PERIOD):
                self._source = self._make_source()

    def _read_source(self) -> None:
        """Read and record until the session is stopped or the source ends."""
        with self._source as source:
            recorder = self._entered_recorder(source)
            try:
                self._recorder, self._problem = recorder, None
                while recorder.reading and not self._stopping.wait(STATE_PERIOD):
                    self._begin_wanted_bag(recorder)
            finally:
                if self._stopping.is_set():
                    self._final = source.status  # the time that the end takes is no loss
                recorder.close()
                self._last, self._recorder = recorder.status, None
        if recorder.fault is not None:
            raise recorder.fault

    def _entered_recorder(self, source: TelemetrySource) -> Recorder:
        """A recorder that reads the source, and records from the first sample if that is wanted."""

        def enter(*, record: bool) -> Recorder:
            recorder = Recorder(
                source, self._folder, options=self._options, tap=self._tap, record=record
            )
            return recorder.__enter__()

        if self._wanted:
            self._next_bag = time.monotonic() + RESUME_PERIOD
            try:
                recorder = enter(record=True)
            except RecordingError as error:
                self.refusal = str(error)
            else:
                self.refusal = None
                return recorder
        return enter(record=False)

    def _begin_wanted_bag(self, recorder: Recorder) -> None:
        """Begin a bag if one is wanted and none is recorded."""
        with self._commands:
            status = recorder.status
            if not self._wanted or status.state in ("recording", "failing"):
                return
            if status.stopped_because is not None:
                self.refusal = self.refusal or status.stopped_because
            if time.monotonic() < self._next_bag:
                return
            self._next_bag = time.monotonic() + RESUME_PERIOD
            try:
                recorder.start()
            except RecordingError as error:
                self.refusal = str(error)
            else:
                self.refusal = None
