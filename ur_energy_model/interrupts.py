# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""SIGINT (Ctrl-C), SIGTERM and SIGHUP (a closed terminal) end a program without a traceback.

All three are requests to end in an orderly way. This chapter is about the time in which a
program runs and ends; `scripts` is about its start, and `processes` about its children.

A signal that the program was started with as ignored remains ignored: `nohup` does this
with SIGHUP, and a shell with the SIGINT of its background jobs.

A handler that raises can raise anywhere, also in the clean-up after the first signal. One
Ctrl-C often arrives as several signals: ros2 launch, make and npm forward it to processes
that receive it from the terminal, too. `timeout` and closed terminals also send their
signals twice.
"""

from __future__ import annotations

import _thread
import errno
import os
import signal
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

END_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that ask a program to end."""
SIGNAL_EXIT = 128  # exit codes after a signal are this plus its number, as in a shell
PARENT = "UR_ENERGY_PARENT"
"""Variable of the environment: number of the parent process, and grace of the child [s]."""
ECHO = 1.0  # signals within this time after another one belong to the same request [s]
MOMENT = 0.01  # time by which an interrupt is postponed that cannot be raised [s]


class EndRequest(KeyboardInterrupt):
    """The program was asked to end by a signal of this number."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def exit_code(interrupt: KeyboardInterrupt) -> int:
    """Exit code of a command that an interrupt ends: 130 after SIGINT, 143, 129."""
    number = interrupt.number if isinstance(interrupt, EndRequest) else signal.SIGINT
    return SIGNAL_EXIT + number


def is_ignored(number: int) -> bool:
    """Whether a signal is ignored, as `nohup` ignores SIGHUP."""
    return signal.getsignal(number) is signal.SIG_IGN


# From the start to the end of a program.


def exit_at_once(code: int | None = None) -> None:
    """Let a signal end the process at once, without clean-up, until another handler is set.

    Args:
        code: exit code; None for 128 plus the number of the signal.
    """

    def end(number: int, frame: FrameType | None) -> None:
        """Handler of the signals."""
        os._exit(SIGNAL_EXIT + number if code is None else code)

    for number in END_SIGNALS:
        if not is_ignored(number):
            signal.signal(number, end)


def ignore() -> None:
    """Ignore the signals from now on, at the end of a program."""
    # Block the signals first: Python reports one that arrives while it sets SIG_IGN.
    signal.pthread_sigmask(signal.SIG_BLOCK, END_SIGNALS)
    for number in END_SIGNALS:
        signal.signal(number, signal.SIG_IGN)


# Signals as exceptions.


@contextmanager
def raised_once(echo: float = ECHO) -> Iterator[None]:
    """A context in which each request to end raises one EndRequest, even if it is many signals.

    Where the exception would only be printed, as in the callback of a weak reference, it
    is raised a moment later. The context does nothing outside the main thread.

    Args:
        echo: signals within this time after another one belong to the same request [s];
            with an infinite time only the first request raises, so that nothing
            interrupts the clean-up.
    """
    last: float | None = None
    due = float("-inf")

    def interrupt(number: int, frame: FrameType | None) -> None:
        """Handler of the signals."""
        nonlocal last
        if number == signal.SIGHUP:
            leave_closed_terminal()
        now = time.monotonic()
        is_echo = last is not None and now - last <= echo
        last = now
        if not is_echo:
            raise EndRequest(number)

    def swallowed(unraisable: sys.UnraisableHookArgs) -> None:
        """Hook for exceptions that Python would only print."""
        nonlocal last
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            last = None
            error = unraisable.exc_value
            number = error.number if isinstance(error, EndRequest) else signal.SIGINT
            postpone(number, time.monotonic())
        else:
            hook(unraisable)

    def postpone(number: int, now: float) -> None:
        """Send the signal again in a moment, unless that is due already."""
        nonlocal due
        if now >= due:
            due = now + MOMENT
            # Unlike threading, this acquires no lock.
            _thread.start_new_thread(_interrupt_soon, (number,))

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    hook = sys.unraisablehook
    sys.unraisablehook = swallowed
    numbers = [number for number in END_SIGNALS if not is_ignored(number)]
    outside = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in outside.items():
            signal.signal(number, handler)
        sys.unraisablehook = hook


@contextmanager
def postponed() -> Iterator[None]:
    """A context in which a request to end waits; it is raised at the end.

    To block the signals does not suffice: another thread can receive one, and Python then
    raises in the main thread. The context does nothing outside the main thread, and
    without handlers. Not for ROS nodes: it would replace the handlers of rclpy, which
    Python does not see.
    """
    waiting: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        """Handler of the signals."""
        waiting.append(number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [number for number in END_SIGNALS if callable(signal.getsignal(number))]
    outside = {number: signal.signal(number, note) for number in numbers}
    try:
        yield
    finally:
        for number, handler in outside.items():
            signal.signal(number, handler)
        if waiting:
            signal.raise_signal(waiting[0])


def _interrupt_soon(number: int) -> None:
    """Send the main thread a signal in a moment."""
    time.sleep(MOMENT)
    main = threading.main_thread().ident
    if main is not None:
        signal.pthread_kill(main, number)  # interrupts waits of that thread


# Signals as requests.


@contextmanager
def on_stop_signal(stop: Callable[[], None]) -> Iterator[None]:
    """Within the block the signals call `stop` and have no other effect.

    This also applies where SIGINT was ignored before, as in background jobs of a shell:
    what records until it is stopped is stopped by it. SIGHUP remains ignored.
    """

    def handle(number: int, frame: FrameType | None) -> None:
        """Handler of the signals."""
        if number == signal.SIGHUP:
            leave_closed_terminal()
        stop()

    numbers = [n for n in END_SIGNALS if n != signal.SIGHUP or not is_ignored(n)]
    before = {number: signal.signal(number, handle) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def forward(number: int, to: int) -> None:
    """From now on send this process another signal in place of one.

    For programs whose main thread waits outside Python, where handlers of Python are not
    called: the byte that Python writes for each signal wakes up a thread.

    Args:
        number: number of the signal that arrives; nothing happens where it is ignored.
        to: number of the signal that is sent.
    """
    if is_ignored(number):
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    signal.signal(number, lambda *_: None)

    def pass_on() -> None:
        """Send the other signal for each one that arrives."""
        while True:
            if number in os.read(reading, 64):
                leave_closed_terminal()
                os.kill(os.getpid(), to)

    threading.Thread(target=pass_on, name="signals", daemon=True).start()


# Terminals that are closed.

_STREAMS = (0, 1, 2)  # file descriptors of stdin, stdout and stderr


def leave_closed_terminal() -> bool:
    """Discard what is printed from now on where it goes to a terminal that is closed.

    Every read and write of such a terminal fails, so that a line about the end would be
    an error.

    Returns:
        Whether there was such a terminal.
    """
    closed = [stream for stream in _STREAMS if _is_closed_terminal(stream)]
    for stream in closed:
        with suppress(OSError):
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, stream)
            os.close(null)
    return bool(closed)


def _is_closed_terminal(descriptor: int) -> bool:
    """Whether an open file is a terminal whose other side is closed."""
    try:
        termios.tcgetattr(descriptor)
    except termios.error as error:
        return bool(error.args[0] == errno.EIO)
    return False
