# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Work on many bags: what runs it, in this process or in others, and what it returns for each bag.

The rooms that work on bags take a `BagExecutor`; plant/cluster has one that uses Dask.
"""

from __future__ import annotations

import os
import pickle
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from ur_energy_model.errors import UrEnergyError, one_line
from ur_energy_model.interrupts import postponed
from ur_energy_model.processes import ChildProcess, single_threaded_children
from ur_energy_model.typing import ClosedOnExit, Progress

Result = TypeVar("Result")


@dataclass(frozen=True)
class BagResult(Generic[Result]):
    """What the work on one bag, as given by the user, gave; or in one line why it failed."""

    bag: Path
    value: Result | None
    reason: str | None = None


class BagExecutor(Protocol):
    """Runs the same work on every bag; one that fails does not end the others.

    Results come in the order of the bags, so that what is made of them does not depend on
    workers.
    """

    def __call__(
        self,
        work: Callable[..., Result],
        bags: Sequence[Path],
        progress: Progress | None = None,
        given: Sequence[Any] | None = None,
    ) -> Iterator[BagResult[Result]]:
        """Results of `work`, which is called with each bag and its element of `given`, if any.

        This may be in another process or on another machine: work, what it is given and
        its result can be pickled, and paths are absolute there.
        """
        ...


def in_this_process(
    work: Callable[..., Result],
    bags: Sequence[Path],
    progress: Progress | None = None,
    given: Sequence[Any] | None = None,
) -> Iterator[BagResult[Result]]:
    """One bag after the other, in this process: the BagExecutor that needs nothing else."""
    for number, bag in enumerate(bags):
        if progress is not None:
            progress(number / len(bags), f"{bag.name}: {number + 1} of {len(bags)} bags")
        yield result_of(work, bag, () if given is None else (given[number],))


def result_of(
    work: Callable[..., Result], bag: Path, given: tuple[Any, ...]
) -> BagResult[Result]:
    """The result of the work on one bag, or why it failed."""
    try:
        return BagResult(bag, work(bag, *given))
    except UrEnergyError as error:
        reason = str(error)
    except OSError as error:
        reason = f"{error.filename or bag}: {error.strerror or error}"
    except MemoryError:
        reason = f"{bag}: not enough memory"
    except Exception as error:  # the other bags of a long run are still of use
        reason = f"{bag}: unexpected {type(error).__name__}: {error}; please report it"
    return BagResult(bag, None, one_line(reason))


# Processes of this machine.

MOST_TRIES = 2  # processes that may die with a bag before it counts as failed
GLANCE = 0.2  # time between two reports of the progress [s]
AHEAD = 2
LEAST_AHEAD = 16
"""Bags per process, and of all at least, that are begun or done before the result of the first of
them is taken: results come in the order of the bags, and wait in memory."""
KILLED = "every worker that tried it died, perhaps for lack of memory"


_WORTH_A_PROCESS = 400e6
"""Bytes of bags per process from which starting one saves time: a start takes some seconds."""


@contextmanager
def local_executor(
    bags: Sequence[Path], workers: int | None = None
) -> Iterator[BagExecutor]:
    """What works on these bags on this machine; its processes end with the block.

    Args:
        bags: all that there is to do.
        workers: number of processes; None for as many as the cores of this machine and
            the sizes of the bags suggest. One is this process.
    """
    count = suggested_workers(bags) if workers is None else workers
    count = min(count, len(bags))
    if count <= 1:
        yield in_this_process
        return
    with WorkerProcesses(count) as processes:
        yield processes


def suggested_workers(bags: Sequence[Path]) -> int:
    """Processes that are worth starting on this machine for these bags."""
    if len(bags) < 2:
        return 1
    files = (
        path for bag in bags for path in (bag, *(bag.iterdir() if bag.is_dir() else ()))
    )
    size = sum(path.stat().st_size for path in files if path.is_file())
    return min(len(os.sched_getaffinity(0)), int(size / _WORTH_A_PROCESS))


class WorkerProcesses(ClosedOnExit):
    """A `BagExecutor`: processes of this machine, with one bag and one thread each.

    They start when there is work, and end when it is closed. A process that dies is
    replaced, and its bag is tried once more.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._workers: list[_Worker] = []
        self._waiting: deque[_Task] = deque()

    def __call__(
        self,
        work: Callable[..., Result],
        bags: Sequence[Path],
        progress: Progress | None = None,
        given: Sequence[Any] | None = None,
    ) -> Generator[BagResult[Result], None, None]:
        """See `BagExecutor`."""
        begun: deque[_Task] = deque()
        try:
            for number in range(len(bags)):
                end = min(number + max(AHEAD * self._count, LEAST_AHEAD), len(bags))
                for k in range(number + len(begun), end):
                    further = () if given is None else (given[k],)
                    begun.append(_Task(bags[k], pickle.dumps((work, bags[k], further))))
                    self._waiting.append(begun[-1])
                while begun[0].result is None:
                    self._step()
                    if progress is not None:
                        done = number + sum(task.result is not None for task in begun)
                        text = f"{done} of {len(bags)} bags, {self._count} workers"
                        progress(done / len(bags), text)
                result = begun.popleft().result
                assert result is not None
                yield result
        finally:
            self._give_up(begun)

    def close(self) -> None:
        """End the processes at once: what they still do is of no use."""
        with postponed():
            for worker in self._workers:
                worker.end()
            self._workers.clear()

    def _step(self) -> None:
        """Give tasks to processes without one, and take the results that come in a moment."""
        idle = [worker for worker in self._workers if worker.task is None]
        while self._waiting and (idle or len(self._workers) < self._count):
            if not idle:
                with postponed():
                    idle.append(_Worker())
                    self._workers.append(idle[0])
            idle.pop().give(self._waiting.popleft())
        busy = {
            worker.pipe: worker for worker in self._workers if worker.task is not None
        }
        for pipe in wait(list(busy), timeout=GLANCE):
            assert isinstance(pipe, Connection)
            worker = busy[pipe]
            task = worker.task
            assert task is not None
            task.result = worker.take()
            if task.result is None:  # the process has died
                self._replace(worker)

    def _replace(self, worker: _Worker) -> None:
        """Forget a process that has died; its task waits again, or has failed."""
        task = worker.task
        assert task is not None
        task.deaths += 1
        if task.deaths < MOST_TRIES:
            self._waiting.appendleft(task)
        else:
            task.result = BagResult(task.bag, None, f"{task.bag}: {KILLED}")
        self._workers.remove(worker)
        worker.end()

    def _give_up(self, tasks: deque[_Task]) -> None:
        """Do not begin tasks any more, and end the processes that are at work on them."""
        with postponed():
            for worker in [each for each in self._workers if each.task in tasks]:
                self._workers.remove(worker)
                worker.end()
            self._waiting = deque(task for task in self._waiting if task not in tasks)


@dataclass(eq=False)
class _Task:
    """Work on one bag: pickled function, bag and further arguments; its result, once it is done."""

    bag: Path
    content: bytes
    deaths: int = 0  # processes that have died with it
    result: BagResult[Any] | None = None


class _Worker:
    """A process, the pipe to it, and its present task."""

    def __init__(self) -> None:
        self.task: _Task | None = None
        self.pipe, theirs = Pipe()
        self._process = ChildProcess(target=_serve, args=(theirs,), daemon=True)
        with single_threaded_children():
            self._process.start()
        theirs.close()

    def give(self, task: _Task) -> None:
        """Begin a task; a process that has died meanwhile shows when its result is taken."""
        self.task = task
        with suppress(OSError):
            self.pipe.send_bytes(task.content)

    def take(self) -> BagResult[Any] | None:
        """The result of its task, None if the process has died with it."""
        try:
            result: BagResult[Any] = self.pipe.recv()
        except (EOFError, OSError):
            return None
        self.task = None
        return result

    def end(self) -> None:
        """End the process at once."""
        self._process.kill()
        self._process.join()
        self.pipe.close()


def _serve(pipe: Connection) -> None:
    """Body of a process: tasks until its parent ends it."""
    with suppress(EOFError, OSError):
        while True:
            content = pipe.recv_bytes()
            work, bag, given = pickle.loads(content)
            pipe.send(result_of(work, bag, given))
