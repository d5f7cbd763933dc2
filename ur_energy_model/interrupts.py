"""Ctrl-C without tracebacks while a program runs and while it ends; for its start see `scripts`.

A handler that raises can raise anywhere, also in the clean-up after the first Ctrl-C. One Ctrl-C
often arrives as several signals: ros2 launch, make and npm forward it to processes that receive it
from the terminal, too.
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess
    from types import FrameType

ECHO = 1.0  # SIGINTs within this time after another one belong to the same Ctrl-C [s]
MOMENT = 0.01  # time by which an interrupt is postponed that cannot be raised [s]
_IMPORT = "<frozen importlib._bootstrap>"


def ignore() -> None:
    """Ignore SIGINT from now on, at the end of a program."""
    # Block the signal first: Python reports one that arrives while it sets SIG_IGN.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def raised_once() -> Iterator[None]:
    """A context in which each Ctrl-C raises one KeyboardInterrupt, even if it sends many signals.

    Where it would be printed or turned into another exception, it is raised a moment later: in
    the callback of a weak reference, and during imports, whose class bodies and extensions do so.
    The context does nothing outside the main thread, and if SIGINT is ignored.
    """
    last = due = float("-inf")

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last <= ECHO:
            last = now
        elif _is_import(frame):
            postpone(now)
        else:
            last = now
            raise KeyboardInterrupt

    def swallowed(unraisable: sys.UnraisableHookArgs) -> None:
        nonlocal last
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            last = float("-inf")
            postpone(time.monotonic())
        else:
            hook(unraisable)

    def postpone(now: float) -> None:
        nonlocal due
        if now >= due:
            due = now + MOMENT
            _thread.start_new_thread(_interrupt_soon, ())  # acquires no lock, unlike threading

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


@contextmanager
def postponed() -> Iterator[None]:
    """A context in which a Ctrl-C waits; it is raised at the end.

    To block the signal does not suffice: another thread can receive it, and Python then raises in
    the main thread. The context does nothing outside the main thread, and without a handler.
    """
    waiting = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal waiting
        waiting = True

    main = threading.current_thread() is threading.main_thread()
    if not main or not callable(signal.getsignal(signal.SIGINT)):
        yield
        return
    outside = signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, outside)
        if waiting:
            signal.raise_signal(signal.SIGINT)


def _is_import(frame: FrameType | None) -> bool:
    """Whether this frame or one that called it imports a module."""
    while frame is not None:
        if frame.f_code.co_filename == _IMPORT:
            return True
        frame = frame.f_back
    return False


def _interrupt_soon() -> None:
    time.sleep(MOMENT)
    main = threading.main_thread().ident
    if main is not None:
        signal.pthread_kill(main, signal.SIGINT)  # interrupts waits of that thread


# Child processes that ignore Ctrl-C and use one thread each.

ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""Environment of a process that has one core."""


def start_ignoring_interrupts(process: BaseProcess) -> None:
    """Start a process that ignores Ctrl-C, which its parent handles."""
    with deaf_children():
        process.start()


@contextmanager
def deaf_children() -> Iterator[None]:
    """Threads and processes that start in the block have SIGINT blocked; a Ctrl-C waits.

    Otherwise a child that is interrupted during its imports, or during its start by the parent,
    prints a traceback, and a start that is interrupted half-way leaves processes behind.
    """
    with postponed():
        resource_tracker.ensure_running()  # starting it later would unblock SIGINT
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def single_threaded_children() -> Iterator[None]:
    """Limit child processes to one BLAS thread each, as there is one process per core."""
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(ONE_THREAD)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
