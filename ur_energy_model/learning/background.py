"""BackgroundLearning: learning beside a live estimator, in a process of its own.

The process is `learning.worker`. `BackgroundLearning` never delays the thread that offers samples,
starts the process again after a crash, and keeps what was learned of each arm apart.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from multiprocessing.connection import Connection

from ur_energy_model.learning.history import Attempt, Change, Need
from ur_energy_model.learning.state import KeptState, StateStore, fingerprint
from ur_energy_model.learning.worker import BeginLearning, LearnerError, LearnerState, Progress
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.sessions import SessionFriction
from ur_energy_model.telemetry.samples import Telemetry, concatenate

FIRST_PAUSE = 1.0
LONGEST_PAUSE = 60.0
"""Pauses before a process that has ended by itself is started again [s]."""
MOST_FAILURES = 3
"""A state with which the process has ended this often in a row is given up."""
LEARNER = "ur_energy_model.learning.learner:Learner"
SEND_PERIOD = 1.0
"""Samples are sent to the process in blocks of this length [s]."""
MOST_WAITING = 30_000
"""Largest number of samples that wait for the process, a minute at 500 Hz."""
FINISH_SECONDS = 3.0
"""Longest wait for the last state at the end [s]."""
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass
class LearningUpdate:
    """What has happened since the last call of `poll`.

    Attributes:
        model: to be used from now on; None for the present one.
        attempts: refits.
        changes: of the arm.
        troubles: lines about what went wrong.
        other_arm: the samples are of another arm than before.
    """

    model: EnergyModel | None = None
    attempts: list[Attempt] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)
    other_arm: bool = False


@dataclass
class _Run:
    """Learning about one arm from one first model: its number, and the last state of the learner.

    The serial number is None where it is unknown; see `KeptState.models` for the models.
    """

    number: int
    serial: str | None
    models: tuple[str, ...]
    content: bytes | None = None


class BackgroundLearning:
    """Learns about the arm that samples come from, in a process of its own.

    One thread offers samples; another one polls for updates about once a second. What is learned
    about an arm is kept apart from what is learned about others (by serial number), and survives
    the end of the process and, with a store, of the program.

    Args:
        robot: description of the arm.
        model: that learning begins with.
        store: keeps the states on the disk; None for none.
        learner: class of the learner as "module:name".
        now: returns the time [s].

    Attributes:
        version: number of the model in use; 0 is the first one.
        learned_minutes: of the arm's work, over all its sessions.
        needs: what ordinary work has not shown yet.
        friction: at present, over that of the model in use; None before it is known.
        cpu_share: mean share of a core that the process has used.
        failures: how often the process has ended by itself.
        problem: why nothing is learned at present, None while it is.
    """

    def __init__(
        self,
        robot: RobotDescription,
        model: EnergyModel,
        *,
        store: StateStore | None = None,
        learner: str = LEARNER,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._robot, self._model, self._store = robot, model, store
        self._learner, self._now = learner, now
        self._process: LearnerProcess | None = None
        self._lock = threading.Lock()  # guards the process and the run
        self._arrived = False
        self._serial: str | None = None
        self._run = _Run(0, None, (fingerprint(model),))
        self._before: _Run | None = None
        self._pause, self._due = FIRST_PAUSE, 0.0
        self._failures_with_state = 0
        self._fatal: str | None = None
        self._left_out = 0
        self._left_out_there = 0
        self.failures = 0
        self.problem: str | None = None
        self.cpu_share = 0.0
        self.version, self.learned_minutes = 0, 0.0
        self.needs: tuple[Need, ...] = ()
        self.friction: SessionFriction | None = None

    @property
    def left_out(self) -> int:
        """Samples not learned from because the process had no time for them."""
        process = self._process
        waiting = 0 if process is None else process.left_out
        return self._left_out + waiting + self._left_out_there

    @property
    def disk_problem(self) -> str | None:
        """Why the last state is not on the disk, None if it is."""
        return None if self._store is None else self._store.problem

    @property
    def serial(self) -> str | None:
        """Serial number of the arm that is learned about, None where unknown."""
        return self._run.serial

    @property
    def pid(self) -> int | None:
        """Number of the process, None while there is none."""
        return None if self._process is None else self._process.pid

    def offer(self, batch: Telemetry) -> None:
        """Learn from samples that follow the previous ones; never waits."""
        with self._lock:
            serial = batch.info.serial
            if serial is not None:
                self._serial = serial
            self._arrived = True
            if self._process is not None and self._serial == self._run.serial:
                self._process.offer(batch)

    def poll(self) -> LearningUpdate:
        """Start what is to be started, save the state, and return what has happened."""
        update = LearningUpdate()
        if self._process is not None:
            self._take(self._process.reports(), update)
            if self._process.exit_code is not None:
                self._note_failure(self._process.exit_code, update)
        if not self._arrived:
            return update
        if self._run.number == 0 or self._serial != self._run.serial:
            update.other_arm = self._run.number > 0
            update.model = None  # of the arm before
            run = _Run(self._run.number + 1, self._serial, self._run.models[:1])
            self._load(run, update)
            self._switch(run)
        if self._process is None and self._now() >= self._due:
            self._start(update)
        return update

    def begin_again(self, model: EnergyModel) -> None:
        """Learn from another first model from now on, such as a newly identified one."""
        self._model = model
        self._switch(_Run(self._run.number + 1, self._run.serial, (fingerprint(model),)))
        self._before = None  # its state continues the old model

    def note_written(self, model: EnergyModel) -> None:
        """A learned model was written to the model file; the state continues with it, too."""
        self._run.models = (self._run.models[0], fingerprint(model))
        self._save(self._run)

    def stop(self) -> None:
        """End the process and save the state."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            self._take(process.finish(), LearningUpdate())
            self._left_out += process.left_out
        self._arrived = False

    def _start(self, update: LearningUpdate) -> None:
        try:
            process = LearnerProcess(self._order(self._run), self._learner)
        except OSError as error:
            self._wait(f"the process that learns cannot be started ({error})", update)
            return
        with self._lock:
            self._process = process

    def _switch(self, run: _Run) -> None:
        """Learn for another run; samples offered from now on belong to it."""
        self.version, self.learned_minutes, self.needs = 0, 0.0, ()
        self.friction = None
        with self._lock:
            self._before, self._run = self._run, run
            if self._process is not None:
                self._process.begin(self._order(run))

    def _order(self, run: _Run) -> BeginLearning:
        return BeginLearning(run.number, self._robot, self._model, run.content)

    def _load(self, run: _Run, update: LearningUpdate) -> None:
        """Continue from the state on the disk, if it is one of this arm and model."""
        if self._store is None:
            return
        try:
            kept = self._store.load(run.serial)
        except ValueError as error:
            update.troubles.append(f"learning begins anew: {error}")
            return
        if kept is None:
            return
        arm, first = (kept.robot, kept.serial), run.models[0]
        if arm != (self._robot.name, run.serial) or first not in kept.models:
            path = self._store.path(run.serial)
            update.troubles.append(f"learning begins anew: {path} continues another model")
            return
        run.content = kept.content
        run.models = (first, *(each for each in kept.models if each != first))

    def _save(self, run: _Run) -> None:
        if self._store is not None and run.content is not None:
            self._store.save(KeptState(self._robot.name, run.serial, run.models, run.content))

    def _take(self, reports: list[_Report], update: LearningUpdate) -> None:
        for report in reports:
            if isinstance(report, LearnerState):
                self._keep(report)
            elif isinstance(report, Progress):
                self._follow(report, update)
            elif report.fatal:
                self._fatal = report.text
            else:
                update.troubles.append(report.text)

    def _keep(self, report: LearnerState) -> None:
        for run in (self._run, self._before):
            if run is None or run.number != report.run:
                continue
            run.content = report.content
            self._save(run)
            if run is self._run:
                self._failures_with_state = 0

    def _follow(self, report: Progress, update: LearningUpdate) -> None:
        self.cpu_share, self._left_out_there = report.cpu_share, report.left_out
        if report.run != self._run.number:
            return
        self.problem, self._pause = None, FIRST_PAUSE
        self.version, self.learned_minutes = report.version, report.learned_minutes
        self.needs, self.friction = report.needs, report.friction
        update.attempts += report.attempts
        update.changes += report.changes
        if report.model is not None:
            update.model = report.model

    def _note_failure(self, code: int, update: LearningUpdate) -> None:
        """Note that the process has ended by itself; it is started again after a pause."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            self._take(process.finish(), update)
            self._left_out += process.left_out + self._left_out_there
            self._left_out_there = 0
        self.failures += 1
        self._failures_with_state += 1
        reason, self._fatal = self._fatal or _words(code), None
        text = f"the process that learns has ended ({reason}) and is started again"
        if self._run.content is not None and self._failures_with_state >= MOST_FAILURES:
            self._run.content, self._failures_with_state = None, 0
            if self._store is not None:
                self._store.set_aside(self._run.serial)
            text += "; learning begins anew"
        self._wait(text, update)

    def _wait(self, problem: str, update: LearningUpdate) -> None:
        self.problem = problem
        update.troubles.append(problem)
        self._due = self._now() + self._pause
        self._pause = min(2 * self._pause, LONGEST_PAUSE)


def _words(code: int) -> str:
    names = {-number: number.name for number in signal.Signals}
    return names.get(code, f"exit code {code}" if code >= 0 else f"signal {-code}")


_Report = Progress | LearnerState | LearnerError
_Order = BeginLearning | Telemetry


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
        self._orders: deque[_Order] = deque([begin])
        self._waiting = 0
        self._lock = threading.Lock()
        self._due = threading.Event()
        self._finishing = False
        self._pipe, theirs = multiprocessing.Pipe()
        with theirs:
            self._process = _started(theirs, learner)
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

    def reports(self) -> list[_Report]:
        """What the process has sent since the last call; does not wait."""
        found: list[_Report] = []
        with suppress(EOFError, OSError):  # it has ended
            while self._pipe.poll():
                found.append(self._pipe.recv())
        return found

    def finish(self) -> list[_Report]:
        """End the process; returns its last reports, with its state if it came in time."""
        self._finishing = True
        self._due.set()
        deadline = time.monotonic() + FINISH_SECONDS
        found: list[_Report] = []
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
                for order in self._take():
                    self._pipe.send(order)
            self._pipe.send(None)

    def _take(self) -> list[_Order]:
        """The waiting orders, consecutive batches of equal fields joined."""
        with self._lock:
            orders, self._orders = list(self._orders), deque()
            self._waiting = 0
        out: list[_Order] = []
        for _, group in groupby(orders, key=_fields):
            parts = list(group)
            batches = [order for order in parts if isinstance(order, Telemetry)]
            out += [concatenate(batches)] if batches else parts
        return out


def _fields(order: _Order) -> object:
    """What batches that can be joined have in common."""
    return (set(order.columns), order.info) if isinstance(order, Telemetry) else id(order)


def _started(pipe: Connection, learner: str) -> subprocess.Popen[bytes]:
    """The process; unlike those of multiprocessing it does not import the main module again.

    That may be a ROS node.
    """
    handle = pipe.fileno()
    search = os.pathsep.join(path for path in sys.path if path)
    code = f"from ur_energy_model.learning.worker import main; main({handle}, {learner!r})"
    return subprocess.Popen(
        [sys.executable, "-c", code],
        pass_fds=(handle,),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": search, **dict.fromkeys(_THREADS, "1")},
        start_new_session=True,  # Ctrl-C in a terminal is for the parent
    )
