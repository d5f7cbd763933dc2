# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Learning beside a live estimator, in a separate process.

`BackgroundLearning` never delays the thread that offers samples. It starts the process again
after a crash, and keeps the learned states of different arms apart. What the process does,
and what it sends and gets, is in `worker`.

Locks: `BackgroundLearning` holds its lock while it calls `LearnerProcess.send`, which takes
the lock of the process's queue. The queue's lock is never held while the first one is taken.
"""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import groupby
from multiprocessing.connection import Pipe
from typing import Any

from ur_energy_model.learning.history import Attempt, Change
from ur_energy_model.learning.state import (
    SavedLearning,
    fingerprint,
    forget_learning,
    saved_learning,
)
from ur_energy_model.learning.worker import BeginLearning, Progress
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.processes import start_main
from ur_energy_model.state_file import StateFile
from ur_energy_model.telemetry.samples import Telemetry, concatenate

FIRST_PAUSE = 1.0
LONGEST_PAUSE = 60.0
"""Pause before a process that has ended by itself is started again [s]; it doubles from the first
to the longest."""
MOST_FAILURES = 3  # failures in a row after which the state of learning is discarded
WORKER = "ur_energy_model.learning.worker"
"""Module whose `main` is run in the process."""
LEARNER = "ur_energy_model.learning.learner:Learner"
SEND_PERIOD = 1.0  # samples are sent to the process in blocks of this length [s]
MOST_WAITING = 30_000  # largest number of samples in the queue, a minute at 500 Hz
FINISH_SECONDS = 3.0  # longest wait for the last state at the end [s]


@dataclass
class LearningUpdate:
    """Results of learning since the last call of `poll`.

    Attributes:
        model: model to be used from now on; None for the present one.
        attempts: refits and their results.
        changes: changes of the arm.
        troubles: problems of learning, a line each.
        other_arm: whether the samples are of another arm now.
    """

    model: EnergyModel | None = None
    attempts: list[Attempt] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)
    other_arm: bool = False


class BackgroundLearning:
    """Learns about the arm that samples come from, in a separate process.

    One thread offers samples; another one polls for updates about once a second. Each arm
    has a separate state, by its serial number. The states survive the end of the process
    and, with a state file, the end of the program.

    Args:
        robot: the arm, n joints.
        model: model with which learning begins.
        file: state file that keeps what was learned; None for none.
        learner: class of the learner as "module:name".

    Attributes:
        progress: progress of learning about the present arm.
        failures: number of times that the process has ended by itself.
        problem: why the arm is not learned at present; None while it is.
    """

    def __init__(
        self,
        robot: RobotDescription,
        model: EnergyModel,
        *,
        file: StateFile | None = None,
        learner: str = LEARNER,
    ) -> None:
        self._robot = robot
        self._model = model
        self._file = file
        self._learner = learner
        self._lock = threading.Lock()  # guards the process and the run
        self._process: LearnerProcess | None = None
        self._arrived = False
        self._serial: str | None = None
        self._run = 0
        first = SavedLearning(robot.name, None, (fingerprint(model),))
        # States by run: of the present run, and of the run before until its last state comes.
        self._states = {0: first}
        self._pause = FIRST_PAUSE
        self._due = 0.0  # monotonic time before which no process is started [s]
        self._failures_with_state = 0  # failures in a row with the same state
        self._left_out = 0  # samples left out by earlier processes
        self.failures = 0
        self.progress = Progress()
        self.problem: str | None = None
        self._reason: str | None = None  # why the process ends by itself

    @property
    def left_out(self) -> int:
        """Number of samples that were left out because the process had no time for them."""
        process = self._process
        waiting = 0 if process is None else process.left_out
        return self._left_out + waiting + self.progress.left_out

    @property
    def serial(self) -> str | None:
        """Serial number of the arm that is learned about, None where unknown."""
        return self._states[self._run].serial

    @property
    def pid(self) -> int | None:
        """Number of the process, None while there is none."""
        return None if self._process is None else self._process.process.pid

    def offer(self, batch: Telemetry) -> None:
        """Learn from samples that follow the previous ones; never waits.

        Args:
            batch: samples; those that find no room are counted in `left_out`.
        """
        with self._lock:
            self._serial = batch.info.serial or self._serial
            self._arrived = True
            if self._process is not None and self._serial == self.serial:
                self._process.send(batch)

    def poll(self) -> LearningUpdate:
        """Start the process where it does not run, and save the states that it has sent.

        Returns:
            Events since the last call.
        """
        update = LearningUpdate()
        if self._process is not None:
            code = self._process.process.poll()
            self._take(self._process.reports(), update)
            if code is not None:
                self._end(code, update)
        if not self._arrived:
            return update
        if self._run == 0 or self._serial != self.serial:
            update.other_arm = self._run > 0
            update.model = None  # a model that was learned of the arm before
            first = self._states[self._run].models[:1]
            state = SavedLearning(self._robot.name, self._serial, first)
            self._switch(self._continued(state, update))
        if self._process is None and time.monotonic() >= self._due:
            try:
                process = LearnerProcess(self._begin(), self._learner)
            except OSError as error:
                self._wait(f"the process that learns cannot be started ({error})", update)
            else:
                with self._lock:
                    self._process = process
        return update

    def begin_again(self, model: EnergyModel) -> None:
        """Discard what was learned of the present arm, and begin with another model.

        Args:
            model: model with which learning begins from now on, such as a newly
                identified one.
        """
        self._model = model
        serial = self.serial
        self._switch(SavedLearning(self._robot.name, serial, (fingerprint(model),)))
        del self._states[self._run - 1]  # its last state would continue the old model

    def note_written(self, model: EnergyModel) -> None:
        """Note that a learned model was written to the model file.

        Args:
            model: model as it was written. After a restart, the state of learning is used
                with this model as well as with the model that learning began with.
        """
        state = self._states[self._run]
        state.models = (state.models[0], fingerprint(model))
        if self._file is not None:
            state.save(self._file)

    def stop(self) -> None:
        """End the process and save the state."""
        if self._process is not None:
            self._finish(LearningUpdate())
        self._arrived = False

    def _switch(self, state: SavedLearning) -> None:
        """Learn for another run; samples offered from now on belong to it."""
        before = self.progress
        self.progress = Progress(left_out=before.left_out, cpu_share=before.cpu_share)
        with self._lock:
            self._states = {self._run: self._states[self._run], self._run + 1: state}
            self._run += 1
            if self._process is not None:
                self._process.send(self._begin())

    def _begin(self) -> BeginLearning:
        """The order to learn in the present run."""
        content = self._states[self._run].content
        return BeginLearning(self._run, self._robot, self._model, content)

    def _continued(self, new: SavedLearning, update: LearningUpdate) -> SavedLearning:
        """The state on the disk with which learning continues.

        Args:
            new: state with which learning begins anew.
            update: gets a line where the state on the disk cannot be used.

        Returns:
            The state on the disk, if it belongs to the arm and the model of the new state;
            else the new state.
        """
        if self._file is None:
            return new
        try:
            kept = saved_learning(self._file, new.serial)
        except ValueError as error:
            update.troubles.append(f"learning begins anew: {error}")
            return new
        if kept is None:
            return new
        (first,) = new.models
        if kept.robot != new.robot or first not in kept.models:
            text = f"learning begins anew: {self._file.path} continues another model"
            update.troubles.append(text)
            return new
        others = [model for model in kept.models if model != first]
        kept.models = (first, *others)
        return kept

    def _take(self, reports: list[Any], update: LearningUpdate) -> None:
        """Use what the process has sent."""
        for report in reports:
            if isinstance(report, Progress) and report.run == self._run:
                self.progress = report
                self.problem = None
                self._pause = FIRST_PAUSE
                update.attempts += report.attempts
                update.changes += report.changes
                update.model = report.model or update.model
            elif isinstance(report, Progress):  # of the run before, for another arm
                self.progress = replace(
                    self.progress, left_out=report.left_out, cpu_share=report.cpu_share
                )
            elif isinstance(report, RuntimeError):
                self._reason = str(report)
            elif isinstance(report, str):
                update.troubles.append(report)
            else:
                self._keep_state(*report)

    def _keep_state(self, run: int, content: bytes) -> None:
        """Keep the state of a learner, unless its run is over."""
        state = self._states.get(run)
        if state is None:
            return
        state.content = content
        if self._file is not None:
            state.save(self._file)
        if run == self._run:
            self._failures_with_state = 0

    def _end(self, code: int, update: LearningUpdate) -> None:
        """Note that the process has ended by itself; it is started again after a pause."""
        self._finish(update)
        self.failures += 1
        self._failures_with_state += 1
        names = {-number: number.name for number in signal.Signals}
        reason = self._reason or names.get(code, f"exit code {code}")
        self._reason = None
        text = f"the process that learns has ended ({reason}) and is started again"
        state = self._states[self._run]
        if state.content is not None and self._failures_with_state >= MOST_FAILURES:
            state.content = None
            self._failures_with_state = 0
            if self._file is not None:
                forget_learning(self._file, state.serial)
            text += "; learning begins anew"
        self._wait(text, update)

    def _finish(self, update: LearningUpdate) -> None:
        """End the process and use its last reports."""
        with self._lock:
            process = self._process
            self._process = None
        assert process is not None
        self._take(process.finish(), update)
        self._left_out += process.left_out + self.progress.left_out
        self.progress = replace(self.progress, left_out=0)

    def _wait(self, problem: str, update: LearningUpdate) -> None:
        """Report a problem, and start the process again after a pause."""
        self.problem = problem
        update.troubles.append(problem)
        self._due = time.monotonic() + self._pause
        self._pause = min(2 * self._pause, LONGEST_PAUSE)


class LearnerProcess:
    """One run of the process that learns.

    Samples wait in memory until a thread sends them, so that sending never blocks.

    Args:
        begin: the first order.
        learner: class of the learner as "module:name".

    Attributes:
        left_out: number of samples that found no room.
        process: process of the learner.
    """

    def __init__(self, begin: BeginLearning, learner: str) -> None:
        self.left_out = 0
        self._orders: deque[BeginLearning | Telemetry] = deque([begin])
        self._waiting = 0
        self._lock = threading.Lock()
        self._finishing = threading.Event()
        self._pipe, theirs = Pipe()
        with theirs:
            self.process = start_main(WORKER, theirs, learner)
        self._thread = threading.Thread(target=self._send, name="learning", daemon=True)
        self._thread.start()

    def send(self, order: BeginLearning | Telemetry) -> None:
        """Let the thread send an order, in the order of the calls.

        Args:
            order: samples that follow the previous ones, which are left out where
                MOST_WAITING wait already; or the arm to learn about from now on.
        """
        size = len(order) if isinstance(order, Telemetry) else 0
        with self._lock:
            if self._waiting + size > MOST_WAITING:
                self.left_out += size
            else:
                self._waiting += size
                self._orders.append(order)

    def reports(self, seconds: float = 0.0) -> list[Any]:
        """What the process has sent since the last call.

        Args:
            seconds: longest wait for the end of the process [s]; 0 for what is there.
        """
        found = []
        end = time.monotonic() + seconds
        with suppress(EOFError, OSError):  # it has ended
            while self._pipe.poll(max(0.0, end - time.monotonic())):
                found.append(self._pipe.recv())
        return found

    def finish(self) -> list[Any]:
        """End the process.

        Returns:
            Its last reports, with the state of its learner if that came within
            FINISH_SECONDS.
        """
        self._finishing.set()
        end = time.monotonic() + FINISH_SECONDS
        found = self.reports(FINISH_SECONDS)
        try:
            self.process.wait(max(0.1, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._thread.join()  # the pipe has no reader any more
        self._pipe.close()
        return found

    def _send(self) -> None:
        """Body of the thread: send the queue every SEND_PERIOD until the process is to end.

        Consecutive batches with the same columns are sent as one.
        """

        def kind(order: BeginLearning | Telemetry) -> object:
            """A key that only batches with the same columns and information share."""
            if isinstance(order, Telemetry):
                return set(order.columns), order.info
            return id(order)

        with suppress(OSError):  # the process has ended
            while not self._finishing.is_set():
                self._finishing.wait(SEND_PERIOD)
                with self._lock:
                    orders = self._orders
                    self._orders = deque()
                    self._waiting = 0
                for _, group in groupby(orders, key=kind):
                    self._pipe.send(_as_one(list(group)))
            self._pipe.send(None)


def _as_one(orders: list[BeginLearning | Telemetry]) -> BeginLearning | Telemetry:
    """Batches with the same columns as one batch; a single order as it is."""
    batches = [order for order in orders if isinstance(order, Telemetry)]
    return orders[0] if len(orders) == 1 else concatenate(batches)
