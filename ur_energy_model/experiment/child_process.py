"""Child processes that ignore Ctrl-C."""

from __future__ import annotations

import signal
from multiprocessing import resource_tracker
from multiprocessing.process import BaseProcess

from ur_energy_model.interrupts import postponed


def start_ignoring_interrupts(process: BaseProcess) -> None:
    """Start a process with SIGINT blocked; its parent handles Ctrl-C.

    Otherwise a child that is interrupted during its imports, or during its start by the parent,
    prints a traceback.
    """
    with postponed():
        resource_tracker.ensure_running()  # starting it later would unblock SIGINT
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
