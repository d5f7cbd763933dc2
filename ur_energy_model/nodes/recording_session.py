# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The recording of a logger over all connections to a controller: `RecordingSession`.

A session has one source of samples after the other, each until it fails, and while a
recording is wanted, one bag after the other. `Recorder` does the rest: one source, one
bag at a time.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from ur_energy_model.errors import ControllerError, RecordingError, UrEnergyError
from ur_energy_model.nodes import lines
from ur_energy_model.nodes.lines import Level
from ur_energy_model.telemetry.bag.recovery import recover_killed
from ur_energy_model.telemetry.gaps import NO_LOSSES, Losses
from ur_energy_model.telemetry.recording.recorder import Recorder
from ur_energy_model.telemetry.recording.writing_thread import (
    RecorderOptions,
    RecorderStatus,
)
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry
from ur_energy_model.telemetry.source import LinkStatus, TelemetrySource

T = TypeVar("T")

RECONNECT_PERIOD = 1.0  # pause before a failed source is replaced [s]
RESUME_PERIOD = 5.0
"""Pause before a new bag after one that could not be begun, or ended by itself [s]."""
RECOVERY_TIMEOUT = 5.0
"""Longest wait at the end for the recovery of a bag, which the next start repeats [s]."""
STATE_PERIOD = 0.2  # period of checks whether the source or the bag has ended [s]


@dataclass(frozen=True)
class _PresentSource:
    """The source that a session reads, replaced as a whole by the thread of the session.

    Attributes:
        source: source of samples, connected to the controller.
        lost_before: what the sources before it have lost.
    """

    source: TelemetrySource
    lost_before: Losses


class RecordingSession:
    """Connects in a thread, so that the controller may start later than the program.

    A source that ends or fails is replaced. While a recording is wanted (`record`, or
    after `start_bag` until `stop_bag`), a bag that ended by itself is followed by a new
    one, as soon as that is possible.

    Three threads use a session. Its own one connects and records; one recovers bags whose
    recorder was killed; the callers of services begin and end bags, for which they hold
    the lock of commands, as does the own thread.

    Args:
        make_source: called for the first source, and for each that replaces one.
        folder: folder for bags.
        options: options of the recorder.
        tap: called with every batch in the reading thread; must be quick.
        record: whether a recording is wanted from the start.

    Attributes:
        failure: what ended the session for good, such as a wrong robot; None while it
            goes on.
        refusal: why no bag can be recorded although one is wanted; None if one can.
        recovered: lines about recovered bags, oldest first; the reader takes them.
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
        self._make_source = make_source
        self._folder = folder
        self._options = options
        self._tap = tap
        self._wanted = record
        self.failure: UrEnergyError | None = None
        self.refusal: str | None = None
        self.recovered: deque[tuple[Level, str]] = deque()
        self._problem: str | None = None  # why there is no recorder
        self._recorder: Recorder | None = None  # recorder of the present source
        self._last = RecorderStatus()  # status of the last recorder
        self._final: LinkStatus | None = None  # once the session is stopped
        self._next_bag = -float(
            "inf"
        )  # when a bag may be begun, by the monotonic clock [s]
        self._commands = threading.Lock()
        self._stopping = threading.Event()
        self._present = _PresentSource(make_source(), NO_LOSSES)
        self._thread = threading.Thread(target=self._run, name="logger session")
        self._recovery = threading.Thread(
            target=self._recover, name="bag recovery", daemon=True
        )

    def start(self) -> None:
        """Start connecting, and recover bags whose recorder was killed."""
        self._thread.start()
        self._recovery.start()

    def stop(self) -> None:
        """Finish the bag and disconnect."""
        self._stopping.set()
        if self._recorder is None:
            self._present.source.close()  # it may still be trying to connect
        self._thread.join()
        self._recovery.join(RECOVERY_TIMEOUT)

    @property
    def link(self) -> LinkStatus:
        """State of the connection, or of the last one once the session is stopped.

        Without a connection, the status has the reason. The losses include the losses of
        all earlier sources.
        """
        if self._final is not None:
            return self._final
        if self._problem is None or self._recorder is not None:
            return self._status()
        problem = self._problem
        losses = self._status().losses
        return LinkStatus(
            connected=False, problem=problem, last_error=problem, losses=losses
        )

    def _status(self) -> LinkStatus:
        """State of the present source's connection, with the losses of all so far."""
        present = self._present  # read once: the session's thread replaces it
        status = present.source.status
        return replace(status, losses=present.lost_before + status.losses)

    @property
    def info(self) -> RecordingInfo | None:
        """Robot and recording, None before the controller was connected."""
        return None if self._recorder is None else self._present.source.info

    @property
    def status(self) -> RecorderStatus:
        """State of the bag that is recorded, or of the last one."""
        recorder = self._recorder
        return self._last if recorder is None else recorder.status

    @property
    def recorder(self) -> Recorder:
        """The recorder of the present source, for commands that need one.

        Raises:
            RecordingError: the session is not connected.
        """
        if self._recorder is None:
            problem = "is not connected to the controller yet"
            remedy = "try again once it is"
            raise RecordingError("logger", problem, remedy)
        return self._recorder

    def start_bag(self) -> Path:
        """Begin a bag; from now on a recording is wanted.

        Returns:
            Its folder.

        Raises:
            RecordingError: the session is not connected, a bag is being recorded, or the
                disk fails.
        """
        with self._commands:
            bag = self.recorder.start()
            self._wanted = True
            self.refusal = None
        return bag

    def stop_bag(self) -> RecorderStatus:
        """Finish the bag, if there is one; from now on no recording is wanted.

        Returns:
            Status of the recorder, with the content of the bag.

        Raises:
            RecordingError: the session is not connected.
        """
        with self._commands:
            self._wanted = False
            self.refusal = None
            return self.recorder.stop()

    def _recover(self) -> None:
        """Make bags whole whose recorder was killed, or lost its power."""

        def report(line: str, attention: bool) -> None:
            """Keep a line about a bag, a warning where the bag needs attention."""
            level = lines.WARN if attention else lines.INFO
            self.recovered.append((level, line))

        recover_killed(self._folder, report, self._stopping.is_set)

    def _run(self) -> None:
        """Record until the session is stopped; replace the source whenever it fails."""
        while not self._stopping.is_set():
            try:
                self._read_source()
                if not self._stopping.is_set():
                    self._problem = (
                        "the data of the controller could not be read; connecting again"
                    )
            except ControllerError as error:
                self._problem = str(error)
            except UrEnergyError as error:
                self.failure = None if self._stopping.is_set() else error
                return
            if not self._stopping.wait(RECONNECT_PERIOD):
                losses = self._status().losses
                self._present = _PresentSource(self._make_source(), losses)

    def _read_source(self) -> None:
        """Read and record until the session is stopped or the source ends.

        Raises:
            ControllerError: the controller cannot be read; another source may be.
            UrEnergyError: no source of this kind can be used.
        """
        with self._present.source as source:
            if self._stopping.is_set():  # while it connected: a bag would have no sample
                return
            make = partial(
                Recorder, source, self._folder, options=self._options, tap=self._tap
            )
            recorder: Recorder | None = None
            if self._wanted:  # from the first sample
                recorder = self._begun(lambda: make(record=True).__enter__())
            if recorder is None:
                recorder = make(record=False).__enter__()
            try:
                self._recorder = recorder
                self._problem = None
                while recorder.reading and not self._stopping.wait(STATE_PERIOD):
                    self._begin_wanted_bag(recorder)
            finally:
                recorder.close()
                if self._stopping.is_set():
                    self._final = self.link
                self._last = recorder.status
                self._recorder = None
        if recorder.fault is not None:
            raise recorder.fault

    def _begin_wanted_bag(self, recorder: Recorder) -> None:
        """Begin a bag if one is wanted and none is recorded."""
        with self._commands:
            status = recorder.status
            if not self._wanted or status.state in ("recording", "failing"):
                return
            if status.stopped_because is not None:
                self.refusal = self.refusal or status.stopped_because
            if time.monotonic() >= self._next_bag:
                self._begun(recorder.start)

    def _begun(self, action: Callable[[], T]) -> T | None:
        """Result of an action that begins a bag; None, with `refusal`, if it fails."""
        self._next_bag = time.monotonic() + RESUME_PERIOD
        try:
            begun = action()
        except RecordingError as error:
            self.refusal = str(error)
            return None
        self.refusal = None
        return begun
