"""Child processes that leave Ctrl-C to their parent."""

from __future__ import annotations

import signal
from multiprocessing import resource_tracker
from multiprocessing.process import BaseProcess


def start_ignoring_interrupts(process: BaseProcess) -> None:
    """Start a process that never sees SIGINT, which is its parent's to handle.

    Without this, a child that is still being imported when Ctrl-C comes from the terminal, or
    whose parent is interrupted while it starts it, prints a traceback.
    """
    resource_tracker.ensure_running()  # its start would let SIGINT through
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
