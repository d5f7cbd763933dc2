# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""SourceReader: a thread that reads a telemetry source, reopening it after lost connections."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace

from ur_energy_model.errors import ControllerError, UrEnergyError
from ur_energy_model.telemetry.clock import HostClock
from ur_energy_model.telemetry.gaps import Losses
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry
from ur_energy_model.telemetry.source import LinkStatus, TelemetrySource

RETRY_PERIOD = 1.0  # pause before a controller that cannot be reached is tried again [s]
READ_TIMEOUT = 0.1
"""Longest wait for samples before the thread checks whether to stop [s]. A wait that took longer
was none for samples, but one for the processor."""


class SourceReader:
    """Reads a source in a separate thread until it is stopped.

    A controller that cannot be reached is tried again; other errors end the thread and
    are kept in `failure`. `consume` takes each batch, in the thread, where `on_end` is
    called when a recorded source has ended; with `loop` it is opened again. The
    corrections of the clock that a live source stamps with are added to the stamps.

    Attributes:
        info: robot and recording, None before the source was opened.
        problem: why the source cannot be read now, None while it can.
        failure: the error that ended the thread.
        ended: whether a recorded source has no more samples.
        attempts: number of times the source was opened.
        samples: number of samples read.
        waited: time for which the source had nothing before the present batch [s]: with
            samples of a longer time in it, they were late.
    """

    def __init__(
        self,
        open_source: Callable[[], TelemetrySource],
        consume: Callable[[Telemetry], None],
        *,
        loop: bool = False,
        on_end: Callable[[], None] = lambda: None,
        clock: HostClock | None = None,
    ) -> None:
        self._open_source = open_source
        self._consume = consume
        self._loop = loop
        self._on_end = on_end
        self._clock = clock
        self._stopping = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name="telemetry reader", daemon=True
        )
        self.info: RecordingInfo | None = None
        self.problem: str | None = None
        self.failure: BaseException | None = None
        self.ended = False
        self.attempts = 0
        self.samples = 0
        self.waited = 0.0
        # The last source that was opened, and the losses of the sources before it.
        self._source: tuple[TelemetrySource, Losses] | None = None
        self._final: LinkStatus | None = None

    @property
    def reconnects(self) -> int:
        """Number of connections after the first one."""
        return max(0, self.attempts - 1) + self._status().reconnects

    @property
    def why_silent(self) -> str | None:
        """Why no samples come now, None if they do or the reason is unknown."""
        status = self._status()
        reason = self.problem or status.problem
        return status.last_error if reason is None and not status.connected else reason

    @property
    def link(self) -> LinkStatus:
        """State of the connection, with the reason where there is none; once stopped, the last.

        The losses of all sources that were opened one after the other are summed.
        """
        if self._final is not None:
            return self._final
        if self._source is None or self.problem is not None:
            return replace(self._status(), connected=False, problem=self.problem)
        return self._status()

    def _status(self) -> LinkStatus:
        """State of the last source's connection; a source not opened yet has no problem."""
        if self._source is None:
            return LinkStatus()
        source, lost_before = self._source
        status = source.status
        return replace(status, losses=lost_before + status.losses)

    def start(self) -> None:
        """Start reading."""
        self._thread.start()

    def stop(self) -> None:
        """Stop reading; returns when the thread has ended."""
        self._stopping.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        """Read until the reader is stopped; what the thread runs."""
        try:
            while not self._stopping.is_set():
                self.attempts += 1
                try:
                    self._read_all()
                except ControllerError as error:
                    self.problem = str(error)
                    self._stopping.wait(RETRY_PERIOD)
                except EOFError:
                    self._on_end()
                    if not self._loop:
                        self.ended = True
                        return
        except UrEnergyError as error:
            self.problem = str(error)
            self.failure = error
        except Exception as error:
            self.problem = repr(error)
            self.failure = error

    def _read_all(self) -> None:
        """Open the source, and read it until the reader is stopped or the source ends.

        Raises:
            ControllerError: the controller cannot be reached.
            EOFError: a recorded source has ended.
        """
        with self._open_source() as source:
            self.info = source.info
            self._source = source, self._status().losses
            waited = 0.0
            while not self._stopping.is_set():
                began = time.monotonic()
                batch = source.read(READ_TIMEOUT)
                waited += min(time.monotonic() - began, READ_TIMEOUT)
                if self._clock is not None:
                    self._clock.check()
                    batch = None if batch is None else self._clock.corrected(batch)
                if batch is not None:
                    self.problem = None
                    self.samples += len(batch)
                    self.waited = waited
                    waited = 0.0
                    self._consume(batch)
            self._final = self._status()  # status before the source is closed
