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
from dataclasses import dataclass
from multiprocessing.connection import Connection

from ur_energy_model.learning.history import Attempt, Change, Need
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.sessions import SessionFriction
from ur_energy_model.telemetry.samples import Telemetry, concatenate

# What the process that learns and its parent send each other.


@dataclass(frozen=True)
class BeginLearning:
    """Learn from now on about this arm, instead of any other.

    Attributes:
        run: number that reports about it carry.
        robot: description of the arm.
        model: that learning begins with.
        state: where learning continues, as a learner gave it; None to begin anew.
    """

    run: int
    robot: RobotDescription
    model: EnergyModel
    state: bytes | None


@dataclass(frozen=True)
class FinishLearning:
    """Send the state, then end."""


@dataclass(frozen=True)
class Progress:
    """Where learning is.

    Attributes:
        run: see BeginLearning.
        version: number of the model in use; 0 is the first one.
        model: the model in use if it is another one than in the last Progress, else None.
        learned_minutes: of the arm's work, over all its sessions.
        attempts: refits since the last Progress.
        changes: of the arm, noticed since the last Progress.
        needs: what ordinary work has not shown yet.
        friction: of the joints at present, over that of the model in use.
        left_out: samples left out so far because of the limit on computing time.
        cpu_share: mean share of a core that the process has used.
    """

    run: int
    version: int
    model: EnergyModel | None
    learned_minutes: float
    attempts: tuple[Attempt, ...]
    changes: tuple[Change, ...]
    needs: tuple[Need, ...]
    friction: SessionFriction
    left_out: int
    cpu_share: float


@dataclass(frozen=True)
class LearnerState:
    """All that a learner needs to continue after a restart.

    Attributes:
        run, content: see BeginLearning, `state` for the content.
    """

    run: int
    content: bytes


@dataclass(frozen=True)
class LearnerError:
    """Something went wrong.

    Attributes:
        text: what, in words.
        fatal: whether the process ends.
    """

    text: str
    fatal: bool


LEARNER = "ur_energy_model.learning.learner:Learner"
SEND_PERIOD = 1.0
"""Samples are sent to the process in blocks of this length [s]."""
MOST_WAITING = 30_000
"""Largest number of samples that wait for the process, a minute at 500 Hz."""
FINISH_SECONDS = 3.0
"""Longest wait for the last state at the end [s]."""
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

Report = Progress | LearnerState | LearnerError
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
