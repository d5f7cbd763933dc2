# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The process that learns: a `Worker` passes samples from its parent to a learner.

The parent sends `BeginLearning`, samples, and None, upon which the process sends the last
state and ends. The process sends `Progress`; tuples (run, state of the learner); text about
problems; and, before it ends by itself, a RuntimeError with the reason.

The process works at low priority and within a budget of computing time. It imports no ROS,
keeps nothing on the disk, and ends when its parent ends, even if the parent is killed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pkgutil import resolve_name
from typing import Any, NamedTuple

from ur_energy_model import interrupts
from ur_energy_model.learning.history import Attempt, Change
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.needs import Need
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.sessions import SessionFriction

CPU_SHARE = 0.05  # mean share of a core that learning may use
FIT_PAUSE = 100.0
"""Work between two fits over the computing time of the first: fits use 1 % of a core at most."""
CPU_RESERVE = 3.0  # computing time that may be used in advance [s], for the first models
FIRST_STATE_PERIOD = 2.0
STATE_PERIOD = 30.0
"""Time between two states that are sent to the parent [s]; a kill loses at most so much learning.
The time doubles from the first to the last value."""
PROGRESS_PERIOD = 0.5  # shortest time between two reports of progress [s]
NICENESS = 15


class BeginLearning(NamedTuple):
    """Order to the process to learn about this arm from now on.

    Attributes:
        run: number of the run, which its reports state.
        robot: description of the arm.
        model: model with which learning begins.
        state: state of an earlier learner, with which learning continues; None to begin
            anew.
    """

    run: int
    robot: RobotDescription
    model: EnergyModel
    state: bytes | None


@dataclass(frozen=True)
class Progress:
    """Progress of learning in a run.

    Attributes:
        run: number of the run, see BeginLearning.
        version: number of the model in use; 0 is the first one.
        model: the model in use if it has changed since the last Progress, else None.
        learned_minutes: duration of the work that the model was learned from, in all
            sessions of the arm [min].
        attempts: attempts to improve the model since the last Progress.
        changes: changes of the arm since the last Progress.
        needs: what ordinary work has not shown yet.
        friction: friction of the joints at present, over the friction of the model in
            use; None before it is known.
        left_out: samples left out so far because of the limit on computing time.
        cpu_share: mean share of a core that the process has used.
    """

    run: int = 0
    version: int = 0
    model: EnergyModel | None = None
    learned_minutes: float = 0.0
    attempts: tuple[Attempt, ...] = ()
    changes: tuple[Change, ...] = ()
    needs: tuple[Need, ...] = ()
    friction: SessionFriction | None = None
    left_out: int = 0
    cpu_share: float = 0.0


class Worker:
    """Passes samples from the parent to a learner, and reports the learner's progress.

    Computing stays below CPU_SHARE of a core: a budget of computing time grows with the time
    that passes. While the budget is used up, samples are left out and no candidate is fitted.

    Args:
        pipe: pipe to the parent.
        make: class of the learner.
        used: returns the computing time of the process [s].
    """

    def __init__(
        self,
        pipe: Connection,
        make: Callable[..., Any],
        used: Callable[[], float] = time.process_time,
    ) -> None:
        self._pipe = pipe
        self._make = make
        self._used = used
        self._learner: Any = None
        self._run = 0
        self._sent_version = 0
        self._left_out = 0
        self._attempts: list[Attempt] = []
        self._changed = False
        self._used_before = used()
        now = time.monotonic()
        self._began = now
        self._progress_sent = now
        self._state_sent = now
        self._state_period = FIRST_STATE_PERIOD

    def run(self) -> None:
        """Work until the parent sends None.

        Raises:
            EOFError: the parent has ended.
            OSError: the parent has ended.
        """
        while True:
            if self._pipe.poll(PROGRESS_PERIOD):
                order = self._pipe.recv()
                if order is None:
                    self._send_state()
                    return
                if isinstance(order, BeginLearning):
                    self._begin(order)
                elif self._learner is not None:
                    self._changed = True
                    if self._budget() < -CPU_RESERVE:
                        self._left_out += len(order)
                    else:
                        self._learner.update(order)
            if self._learner is not None:
                self._step()

    def _budget(self) -> float:
        """Computing time that may be used now [s]; negative if too much was used."""
        passed = time.monotonic() - self._began
        return CPU_RESERVE + CPU_SHARE * passed - self._used_so_far()

    def _used_so_far(self) -> float:
        """Computing time that the process has used since the worker was made [s]."""
        return self._used() - self._used_before

    def _begin(self, order: BeginLearning) -> None:
        """Send the state of the present learner, and make the learner of an order."""
        self._send_state()
        state = {} if order.state is None else {"state": order.state}
        try:
            self._learner = self._make(order.robot, order.model, **state)
        except Exception as error:
            if not state:
                raise
            self._pipe.send(f"learning begins anew: its state cannot be used ({error})")
            self._learner = self._make(order.robot, order.model)
        self._learner.pause = FIT_PAUSE
        self._run = order.run
        self._attempts = []
        self._changed = True
        self._sent_version = 0  # a state may hold a better model than the parent's
        self._state_period = FIRST_STATE_PERIOD

    def _step(self) -> None:
        """Learn as far as the budget allows, and send progress and state when they are due."""
        learner = self._learner
        attempt = learner.step() if self._budget() > 0.0 else None
        if attempt is not None:
            self._attempts.append(attempt)
            self._changed = True
        now = time.monotonic()
        if self._changed and now - self._progress_sent >= PROGRESS_PERIOD:
            progress = Progress(
                run=self._run,
                version=learner.version,
                model=learner.model if learner.version != self._sent_version else None,
                learned_minutes=learner.learned_minutes,
                attempts=tuple(self._attempts),
                changes=learner.take_changes(),
                needs=learner.needs(),
                friction=learner.friction(),
                left_out=self._left_out,
                cpu_share=self._used_so_far() / max(now - self._began, 1.0),
            )
            self._progress_sent = now
            self._changed = False
            self._sent_version = learner.version
            self._attempts = []
            self._pipe.send(progress)
        if now - self._state_sent >= self._state_period:
            self._send_state()
            self._state_period = min(2.0 * self._state_period, STATE_PERIOD)

    def _send_state(self) -> None:
        """Send the run and the state of its learner, if there is one."""
        self._state_sent = time.monotonic()
        if self._learner is not None:
            self._pipe.send((self._run, self._learner.state()))


def main(handle: int, learner: str) -> None:
    """Main function of the process that learns.

    Args:
        handle: file descriptor of the pipe to the parent.
        learner: class of the learner as "module:name".
    """
    interrupts.ignore()  # signals are for the parent, which asks for the last state
    os.nice(NICENESS)
    with Connection(handle) as pipe:
        try:
            Worker(pipe, resolve_name(learner)).run()
        except (EOFError, OSError):
            pass  # the parent has ended
        except Exception as error:
            pipe.send(RuntimeError(f"{type(error).__name__}: {error}"))
            raise SystemExit(1) from None
