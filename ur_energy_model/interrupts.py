"""Ctrl-C without tracebacks: while a program starts, while it works, while it ends.

A handler that raises can raise anywhere, also in the clean-up that the first Ctrl-C began, and
one Ctrl-C often arrives as several signals: ros2 launch, make and npm pass it on to processes
that have it from the terminal already.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ECHO = 1.0
"""SIGINTs that follow another within this time are the same Ctrl-C [s]."""


def exit_quietly(code: int) -> None:
    """From now on SIGINT ends the process at once: for programs that are still being imported.

    Nothing is cleaned up. Where SIGINT is ignored, as a shell's background jobs have it, it stays
    so.
    """

    def end(number: int, frame: FrameType | None) -> None:
        os._exit(code)

    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, end)


def ignore() -> None:
    """From now on SIGINT does nothing: for programs that have done their work and end."""
    # Python reports signals that arrive between its two steps of ignoring them: hold them back.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def raised_once() -> Iterator[None]:
    """Within the block a Ctrl-C raises one KeyboardInterrupt, and its echoes none.

    Outside the main thread, and where SIGINT is ignored, nothing changes.
    """
    last = float("-inf")

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal last
        before, last = last, time.monotonic()
        if last - before > ECHO:
            raise KeyboardInterrupt

    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield
        return
    outside = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, outside)


@contextmanager
def held_back() -> Iterator[None]:
    """Within the block SIGINT waits; processes started there never see one.

    For children that their parent ends: one that is still being imported when Ctrl-C comes from
    the terminal would print a traceback.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
