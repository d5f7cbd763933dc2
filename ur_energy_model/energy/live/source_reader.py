"""A thread that reads a telemetry source and hands every batch on, over lost connections."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from ur_energy_model.errors import ControllerError, UrEnergyError
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry
from ur_energy_model.telemetry.source import TelemetrySource

RETRY_PERIOD = 1.0
"""Pause before a controller that cannot be reached is tried again [s]."""
READ_TIMEOUT = 0.2
"""Longest wait for samples before the thread looks whether it should stop [s]."""


class SourceReader:
    """Reads a source in a thread of its own until it is stopped.

    A controller that is away is tried again; other errors end the thread and stay in `failure`.

    Args:
        open_source: makes the source; called again for every new attempt.
        consume: takes each batch, in the thread.
        loop: open a recorded source again when it ends.
        on_end: called in the thread when a recorded source has ended.
    """

    def __init__(
        self,
        open_source: Callable[[], TelemetrySource],
        consume: Callable[[Telemetry], None],
        *,
        loop: bool = False,
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        self._open_source = open_source
        self._consume = consume
        self._loop = loop
        self._on_end = on_end
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="telemetry reader", daemon=True)
        self.info: RecordingInfo | None = None
        """What is known of the robot, once the source was opened."""
        self.problem: str | None = None
        """Why there are no samples at the moment."""
        self.failure: BaseException | None = None
        """What ended the thread."""
        self.ended = False
        """Whether a recorded source has no more samples."""
        self._link: Any = None
        self.attempts = 0
        """How often the source was opened."""

    @property
    def reconnects(self) -> int:
        """How often the source was opened again, or made its lost connection again by itself."""
        return max(0, self.attempts - 1) + getattr(self._link, "reconnects", 0)

    @property
    def why_silent(self) -> str | None:
        """Why there are no samples at the moment, as far as is known."""
        if self.problem is None and self._link is not None and not self._link.connected:
            return str(self._link.last_error)
        return self.problem

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def stop(self) -> None:
        """Cease to read; returns when the thread has ended."""
        self._stopping.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
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
            self.problem, self.failure = str(error), error
        except Exception as error:
            self.problem, self.failure = repr(error), error

    def _read_all(self) -> None:
        with self._open_source() as source:
            self.info = source.info
            self._link = getattr(source, "status", None)
            while not self._stopping.is_set():
                batch = source.read(READ_TIMEOUT)
                if batch is not None:
                    self.problem = None
                    self._consume(batch)
