"""Ctrl-C without tracebacks, while a program works and while it ends; `scripts` has the start.

A handler that raises can raise anywhere, also in the clean-up that the first Ctrl-C began, and
one Ctrl-C often arrives as several signals: ros2 launch, make and npm pass it on to processes
that have it from the terminal already.
"""

from __future__ import annotations

import _thread
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ECHO = 1.0
"""SIGINTs that follow another within this time are the same Ctrl-C [s]."""


def ignore() -> None:
    """From now on SIGINT does nothing: for programs that have done their work and end."""
    # Python reports signals that arrive between its two steps of ignoring them: hold them back.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def raised_once() -> Iterator[None]:
    """Within the block a Ctrl-C raises one KeyboardInterrupt, and its echoes none.

    One that Python cannot raise where it arrives, as in a weak reference's callback, is raised a
    moment later instead of being printed. Outside the main thread, and where SIGINT is ignored,
    nothing changes.
    """
    last = float("-inf")

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal last
        before, last = last, time.monotonic()
        if last - before > ECHO:
            raise KeyboardInterrupt

    def swallowed(unraisable: sys.UnraisableHookArgs) -> None:
        nonlocal last
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            last = float("-inf")
            _thread.start_new_thread(_interrupt_soon, ())  # locks nothing, unlike threading's
        else:
            hook(unraisable)

    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield
        return
    hook, sys.unraisablehook = sys.unraisablehook, swallowed
    outside = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, outside)
        sys.unraisablehook = hook


def _interrupt_soon() -> None:
    time.sleep(0.01)
    main = threading.main_thread().ident
    if main is not None:
        signal.pthread_kill(main, signal.SIGINT)  # to that thread, so that its waits end
