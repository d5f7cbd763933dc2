"""Child processes that ignore Ctrl-C and use one thread each."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.process import BaseProcess

from ur_energy_model.interrupts import postponed

_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


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


@contextmanager
def single_threaded_children() -> Iterator[None]:
    """Limit child processes to one BLAS thread each, as there is one process per core."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
