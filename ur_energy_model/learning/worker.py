"""The process that learns: a Learner behind a pipe, at low priority and within a CPU budget.

`background` starts it. It imports no ROS, keeps nothing on the disk, and ends when its parent does,
however that ends.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pkgutil import resolve_name
from typing import Any

from ur_energy_model.learning.history import Attempt, Change, Need
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.sessions import SessionFriction
from ur_energy_model.telemetry.samples import Telemetry

# What the parent sends: `BeginLearning`, samples, and None to send the state and end. What the
# process sends: `Progress`, `LearnerState` and `LearnerError`.


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
class Progress:
    """Where learning is.

    Attributes:
        run: see BeginLearning.
        version: number of the model in use; 0 is the first one.
        model: the model in use if it is another one than in the last Progress, else None.
        learned_minutes: of the arm's work, over all its sessions.
        attempts, changes: since the last Progress.
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
    """All that a learner needs to continue after a restart, as `BeginLearning.state`."""

    run: int
    content: bytes


@dataclass(frozen=True)
class LearnerError:
    """Something went wrong; after a fatal error the process ends."""

    text: str
    fatal: bool


class CpuBudget:
    """Keeps computing time below a share of a core: a budget that grows with the time that passes.

    Args:
        share: of one core that may be used on average.
        reserve: computing time that may be used in advance [s].
        used: returns the computing time of the process [s].
        now: returns the time [s].
    """

    def __init__(
        self,
        share: float,
        reserve: float,
        *,
        used: Callable[[], float] = time.process_time,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._share, self._reserve = share, reserve
        self._used, self._now = used, now
        self._used_before, self._began = used(), now()

    @property
    def spent(self) -> float:
        """Computing time so far [s]."""
        return self._used() - self._used_before

    @property
    def mean_share(self) -> float:
        """Share of one core that was used on average."""
        return self.spent / max(self._now() - self._began, 1.0)

    @property
    def left(self) -> float:
        """Computing time that may be used now [s]; negative if too much was used."""
        return self._reserve + self._share * (self._now() - self._began) - self.spent


CPU_SHARE = 0.05
"""Mean share of a core that learning may use."""
CPU_RESERVE = 3.0
"""Computing time that may be used in advance [s], for the first models."""
FIRST_STATE_PERIOD = 2.0
STATE_PERIOD = 30.0
"""Time between two states sent to the parent [s], what a kill can lose; it doubles from the first
to the last value."""
PROGRESS_PERIOD = 0.5
"""Shortest time between two reports of progress [s]."""
NICENESS = 15
_PARENT_PERIOD = 1.0


class Worker:
    """Feeds a learner with what the parent sends, and reports its progress.

    Args:
        pipe: to the parent.
        make: the class of the learner.
        budget: of computing time.
    """

    def __init__(self, pipe: Connection, make: Callable[..., Any], budget: CpuBudget) -> None:
        self._pipe, self._make, self._budget = pipe, make, budget
        self._learner: Any = None
        self._run = 0
        self._sent_version = 0
        self._attempts: list[Attempt] = []
        self._left_out = 0
        self._changed = False
        self._progress_sent = self._state_sent = time.monotonic()
        self._state_period = FIRST_STATE_PERIOD

    def run(self) -> None:
        """Work until the parent ends it.

        Raises:
            EOFError, OSError: the parent has ended.
        """
        while True:
            if self._pipe.poll(PROGRESS_PERIOD):
                order = self._pipe.recv()
                if order is None:
                    self._send_state()
                    return
                if isinstance(order, BeginLearning):
                    self._begin(order)
                else:
                    self._learn(order)
            self._step()
            self._send_due()

    def _begin(self, order: BeginLearning) -> None:
        self._send_state()
        self._run = order.run
        self._learner = self._continued(order)
        self._attempts.clear()
        # A state may hold a better model than the parent's.
        self._sent_version = 0
        self._changed = True
        self._state_period = FIRST_STATE_PERIOD

    def _continued(self, order: BeginLearning) -> Any:
        if order.state is not None:
            try:
                return self._make(order.robot, order.model, state=order.state)
            except Exception as error:
                text = f"learning begins anew: its state cannot be used ({error})"
                self._pipe.send(LearnerError(text, fatal=False))
        return self._make(order.robot, order.model)

    def _learn(self, batch: Telemetry) -> None:
        if self._learner is None:
            return
        self._changed = True
        if self._budget.left < -CPU_RESERVE:
            self._left_out += len(batch)
        else:
            self._learner.update(batch)

    def _step(self) -> None:
        """Refit what is due, as far as the budget allows."""
        if self._learner is None or self._budget.left <= 0.0:
            return
        attempt = self._learner.step()
        if attempt is not None:
            self._attempts.append(attempt)
            self._changed = True

    def _send_due(self) -> None:
        now = time.monotonic()
        if self._changed and now - self._progress_sent >= PROGRESS_PERIOD:
            self._progress_sent = now
            self._changed = False
            self._pipe.send(self._progress())
        if self._learner is not None and now - self._state_sent >= self._state_period:
            self._send_state()
            self._state_period = min(2.0 * self._state_period, STATE_PERIOD)

    def _progress(self) -> Progress:
        learner = self._learner
        new = learner.version != self._sent_version
        self._sent_version = learner.version
        attempts, self._attempts = tuple(self._attempts), []
        return Progress(
            run=self._run,
            version=learner.version,
            model=learner.model if new else None,
            learned_minutes=learner.learned_minutes,
            attempts=attempts,
            changes=learner.take_changes(),
            needs=learner.needs(),
            friction=learner.friction(),
            left_out=self._left_out,
            cpu_share=self._budget.mean_share,
        )

    def _send_state(self) -> None:
        self._state_sent = time.monotonic()
        if self._learner is not None:
            self._pipe.send(LearnerState(self._run, self._learner.state()))


def main(handle: int, learner: str) -> None:
    """Main function of the process.

    Args:
        handle: file descriptor of the pipe to the parent.
        learner: class of the learner as "module:name".
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    os.nice(NICENESS)
    parent = os.getppid()
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    with Connection(handle) as pipe:
        try:
            make = resolve_name(learner)
            Worker(pipe, make, CpuBudget(CPU_SHARE, CPU_RESERVE)).run()
        except (EOFError, OSError):
            pass  # the parent has ended
        except Exception as error:
            pipe.send(LearnerError(f"{type(error).__name__}: {error}", fatal=True))
            raise SystemExit(1) from None


def _end_with(parent: int) -> None:
    """End the process when its parent has ended, also in the middle of a computation."""
    while os.getppid() == parent:
        time.sleep(_PARENT_PERIOD)
    os._exit(0)
