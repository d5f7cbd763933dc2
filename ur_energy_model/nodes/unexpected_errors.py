"""Unexpected exceptions: one line for the operator, the traceback in a file, the process ends."""

from __future__ import annotations

import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import rclpy
from rclpy.logging import get_logger, get_logging_directory

from ur_energy_model.terminal_text import printable

EXIT_CODE = 1
END_TIMEOUT = 30.0
"""Longest time that a process with an unexpected error takes to end [s]."""


class UnexpectedErrors:
    """Takes the exceptions that nothing in this package expects, from any thread.

    The first one is logged as one line and ends the process; all tracebacks go into a file. After
    a signal has shut ROS down, only the clean-up is of interest (`while_ending`): what else fails
    then fails because of the shutdown.

    Args:
        end: ends the process with an exit code, from any thread.
        timeout: time after which the process ends even if a thread waits for the failed one [s].

    Attributes:
        told: whether an error was logged.
    """

    def __init__(self, end: Callable[[int], None], *, timeout: float = END_TIMEOUT) -> None:
        self._end, self._timeout = end, timeout
        self._lock = threading.Lock()
        self.told = False
        self._over = threading.Event()

    def report(self, error: BaseException, place: str) -> None:
        """Log the error if it is the first, keep its traceback, and end the process.

        Args:
            error: with its traceback.
            place: where it was raised, such as "thread 'telemetry reader'".
        """
        if rclpy.ok() and self._tell(error, place, "; the process ends"):
            threading.Thread(target=self._force, name="forced end", daemon=True).start()
            self._end(EXIT_CODE)

    @contextmanager
    def while_ending(self, place: str) -> Iterator[None]:
        """A context whose exception is logged, so that the clean-up continues after it."""
        try:
            yield
        except Exception as error:
            self._tell(error, place, "")

    @contextmanager
    def of_threads(self) -> Iterator[None]:
        """A context in which exceptions that end a thread are reported."""

        def hook(arguments: threading.ExceptHookArgs) -> None:
            error, thread = arguments.exc_value, arguments.thread
            if error is not None and not isinstance(error, SystemExit):
                self.report(error, f"thread {'unknown' if thread is None else thread.name!r}")

        outside, threading.excepthook = threading.excepthook, hook
        try:
            yield
        finally:
            threading.excepthook = outside
            self._over.set()

    def _tell(self, error: BaseException, place: str, consequence: str) -> bool:
        """Log the error if it is the first, and keep its traceback; returns whether it was."""
        file = keep_traceback(error, place)
        with self._lock:
            first, self.told = not self.told, True
        if first:
            details = "" if file is None else f"; details in {file}"
            text = f"unexpected error in {place}: {described(error)}{consequence}{details}"
            get_logger(_program()).fatal(text)
        return first

    def _force(self) -> None:
        if not self._over.wait(self._timeout):
            os._exit(EXIT_CODE)


def described(error: BaseException) -> str:
    """Class and text of an exception, in one line."""
    return printable(" ".join(f"{type(error).__name__}: {error}".split())[:500])


def keep_traceback(error: BaseException, place: str) -> Path | None:
    """Append a traceback to a file in the log folder of ROS; None if it cannot be written."""
    text = "".join(traceback.format_exception(error))
    get_logger(_program()).debug(text)
    with suppress(OSError, RuntimeError):
        file = Path(get_logging_directory()) / f"{_program()}_{os.getpid()}_errors.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a", encoding="utf-8", errors="replace") as out:
            out.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {place}\n{text}\n")
        return file
    return None


def _program() -> str:
    return Path(sys.argv[0]).stem or "node"
