"""LearnerProcess: learning in a child process, seen from its parent, which it never delays."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
import time
from collections import deque
from contextlib import suppress
from multiprocessing.connection import Connection

from ur_energy_model.learning.messages import (
    BeginLearning,
    FinishLearning,
    LearnerState,
    Progress,
    Trouble,
)
from ur_energy_model.telemetry.samples import Telemetry, concatenate

LEARNER = "ur_energy_model.learning.learner:Learner"
SEND_PERIOD = 1.0
"""Samples are sent to the process in blocks of this length [s]."""
MOST_WAITING = 30_000
"""Largest number of samples that wait for the process, a minute at 500 Hz."""
FINISH_SECONDS = 3.0
"""Longest wait for the last state at the end [s]."""
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

Report = Progress | LearnerState | Trouble
Order = BeginLearning | Telemetry


class LearnerProcess:
    """One run of the process that learns.

    Samples wait in memory until the process takes them; those that find no room are left out and
    counted, so that offering never blocks. A thread sends them.

    Args:
        begin: what to learn about.
        learner: class of the learner as "module:name".

    Attributes:
        left_out: samples that found no room.
    """

    def __init__(self, begin: BeginLearning, learner: str = LEARNER) -> None:
        self.left_out = 0
        self._orders: deque[Order] = deque([begin])
        self._waiting = 0
        self._lock = threading.Lock()
        self._due = threading.Event()
        self._finishing = False
        self._pipe, theirs = multiprocessing.Pipe()
        self._process = _started(theirs, learner)
        theirs.close()
        self._thread = threading.Thread(target=self._send, name="learning", daemon=True)
        self._thread.start()

    @property
    def pid(self) -> int:
        """Number of the process."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """Exit code of the process, negative for the signal that killed it; None while it runs."""
        return self._process.poll()

    def offer(self, batch: Telemetry) -> None:
        """Learn from samples that follow the previous ones, if there is room."""
        with self._lock:
            if self._waiting + len(batch) > MOST_WAITING:
                self.left_out += len(batch)
                return
            self._waiting += len(batch)
            self._orders.append(batch)

    def begin(self, begin: BeginLearning) -> None:
        """Learn about another arm from now on; the state of the last one is reported."""
        with self._lock:
            self._orders.append(begin)

    def reports(self) -> list[Report]:
        """What the process has sent since the last call; does not wait."""
        found: list[Report] = []
        with suppress(EOFError, OSError):  # it has ended
            while self._pipe.poll():
                found.append(self._pipe.recv())
        return found

    def finish(self, seconds: float = FINISH_SECONDS) -> list[Report]:
        """End the process; returns its last reports, with its state if it came in time."""
        self._finishing = True
        self._due.set()
        deadline = time.monotonic() + seconds
        found: list[Report] = []
        with suppress(EOFError, OSError):
            while (rest := deadline - time.monotonic()) > 0:
                if self._pipe.poll(rest):
                    found.append(self._pipe.recv())
        try:
            self._process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._thread.join()  # the pipe has no reader any more
        self._pipe.close()
        return found

    def _send(self) -> None:
        with suppress(OSError):  # the process has ended
            while not self._finishing:
                self._due.wait(SEND_PERIOD)
                for order in _joined(self._take()):
                    self._pipe.send(order)
            self._pipe.send(FinishLearning())

    def _take(self) -> list[Order]:
        with self._lock:
            orders = list(self._orders)
            self._orders.clear()
            self._waiting = 0
        return orders


def _started(pipe: Connection, learner: str) -> subprocess.Popen[bytes]:
    """The process; it imports nothing of the parent's main module, which may be a ROS node."""
    handle = pipe.fileno()
    search = os.pathsep.join(path for path in sys.path if path)
    return subprocess.Popen(
        [sys.executable, "-m", "ur_energy_model.learning.worker", str(handle), learner],
        pass_fds=(handle,),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": search, **dict.fromkeys(_THREADS, "1")},
        start_new_session=True,  # Ctrl-C in a terminal is for the parent
    )


def _joined(orders: list[Order]) -> list[Order]:
    """The same orders with consecutive batches of equal fields joined."""
    out: list[Order] = []
    run: list[Telemetry] = []

    def close() -> None:
        if run:
            out.append(concatenate(run))
            run.clear()

    for order in orders:
        if isinstance(order, BeginLearning):
            close()
            out.append(order)
            continue
        if run and (order.columns.keys() != run[0].columns.keys() or order.info != run[0].info):
            close()
        run.append(order)
    close()
    return out
