# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Work on many bags: what runs it, in this process or in others, and what it returns for each bag.

The rooms that work on bags take a `BagExecutor`; plant/cluster has one that uses Dask.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.context import SpawnContext
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from ur_energy_model.errors import UrEnergyError, one_line
from ur_energy_model.processes import (
    ChildProcess,
    deaf_children,
    single_threaded_children,
)
from ur_energy_model.typing import ClosedOnExit, Progress

Result = TypeVar("Result")


@dataclass(frozen=True)
class BagResult(Generic[Result]):
    """Result of the work on one bag.

    Attributes:
        bag: bag as the user named it.
        value: result of the work; None if it failed.
        reason: why it failed, in one line; None if it did not.
    """

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
        """Do the same work on every bag.

        The work may be done in another process or on another machine: the function, its
        arguments and its result can be pickled, and paths are absolute there.

        Args:
            work: called with each bag, and with its element of `given` if there is one.
            bags: bags as the user named them.
            progress: called with the finished share and the current step; None for none.
            given: further argument for each bag; None for none.

        Yields:
            Results in the order of the bags.
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
        further = () if given is None else (given[number],)
        yield result_of(work, bag, further)


def result_of(
    work: Callable[..., Result], bag: Path, given: tuple[Any, ...]
) -> BagResult[Result]:
    """The result of the work on one bag, or why it failed.

    Args:
        work: called with the bag and the further arguments.
        bag: bag as the user named it.
        given: further arguments.
    """
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
"""Bags per process that may be begun or done before the result of the first one is taken: results
come in the order of the bags, and wait in memory."""
LEAST_AHEAD = 16  # the same number for all processes together, at least
KILLED = "every worker that tried it died, perhaps for lack of memory"
_WORTH_A_PROCESS = 400e6
"""Bytes of bags per process from which starting one saves time: a start takes some seconds."""


@contextmanager
def local_executor(
    bags: Sequence[Path], workers: int | None = None
) -> Iterator[BagExecutor]:
    """The executor of work on some bags on this machine; its processes end with the block.

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
    size = 0
    for bag in bags:
        files = list(bag.iterdir()) if bag.is_dir() else [bag]
        size += sum(path.stat().st_size for path in files if path.is_file())
    cores = len(os.sched_getaffinity(0))
    return min(cores, int(size / _WORTH_A_PROCESS))


class WorkerProcesses(ClosedOnExit):
    """A `BagExecutor`: processes of this machine, with one bag and one thread each.

    They start when there is work, and end when it is closed. Each is an executor of the
    standard library with one process: where a process dies, that is the end of its own
    executor alone, and the bag that it died with is known. The bag is tried once more.

    Args:
        count: number of processes.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._workers: list[_Worker] = []

    def __call__(
        self,
        work: Callable[..., Result],
        bags: Sequence[Path],
        progress: Progress | None = None,
        given: Sequence[Any] | None = None,
    ) -> Generator[BagResult[Result], None, None]:
        """See `BagExecutor`."""
        window = max(AHEAD * self._count, LEAST_AHEAD)
        begun: deque[_Task] = deque()
        waiting: deque[_Task] = deque()
        try:
            # `begun` has the tasks of consecutive bags, from this number on.
            for number in range(len(bags)):
                for k in range(number + len(begun), min(number + window, len(bags))):
                    further = () if given is None else (given[k],)
                    task = _Task(work, bags[k], further)
                    begun.append(task)
                    waiting.append(task)
                while begun[0].result is None:
                    self._step(waiting)
                    if progress is not None:
                        done = number + sum(task.result is not None for task in begun)
                        text = f"{done} of {len(bags)} bags, {self._count} workers"
                        progress(done / len(bags), text)
                result = begun.popleft().result
                assert result is not None
                yield result
        finally:
            self._end([worker for worker in self._workers if worker.task in begun])

    def close(self) -> None:
        """End the processes at once: what they still do is of no use."""
        self._end(list(self._workers))

    def _step(self, waiting: deque[_Task]) -> None:
        """Give tasks to processes without one, and take the results that come in a moment."""
        idle = [worker for worker in self._workers if worker.task is None]
        while waiting and (idle or len(self._workers) < self._count):
            if not idle:
                worker = _Worker()
                self._workers.append(worker)
                idle.append(worker)
            idle.pop().begin(waiting.popleft())
        busy = [worker for worker in self._workers if worker.task is not None]
        wait(
            [worker.future for worker in busy if worker.future is not None],
            timeout=GLANCE,
            return_when=FIRST_COMPLETED,
        )
        for worker in busy:
            if worker.future is None or not worker.future.done():
                continue
            task = worker.task
            assert task is not None
            if not worker.finish():
                self._end([worker])
                if task.result is None:
                    waiting.appendleft(task)

    def _end(self, workers: Sequence[_Worker]) -> None:
        """End some processes at once."""
        for worker in workers:
            self._workers.remove(worker)
            worker.end()


@dataclass(eq=False)
class _Task:
    """Work on one bag.

    Attributes:
        work: the function.
        bag: first argument of the function.
        given: further arguments of the function.
        deaths: number of processes that have died during the work.
        result: result of the function; None before the work is done.
    """

    work: Callable[..., Any]
    bag: Path
    given: tuple[Any, ...]
    deaths: int = 0
    result: BagResult[Any] | None = None


class _Children(SpawnContext):
    """Starts the processes of an executor as this package starts all (`ChildProcess`)."""

    def __init__(self) -> None:
        super().__init__()
        self.started: list[ChildProcess] = []

    def Process(  # type: ignore[override]  # noqa: N802
        self, *arguments: Any, **options: Any
    ) -> ChildProcess:
        """A process that is not started yet; the executor calls this."""
        process = ChildProcess(*arguments, **options)
        process.daemon = True
        self.started.append(process)
        return process


class _Worker:
    """An executor with one process, and its present task.

    Attributes:
        task: None while it has none.
        future: result of the task to be; None without one.
    """

    def __init__(self) -> None:
        self.task: _Task | None = None
        self.future: Future[BagResult[Any]] | None = None
        self._children = _Children()
        # Its semaphores start the process that removes them, which is like a child.
        with deaf_children():
            self._executor = ProcessPoolExecutor(1, mp_context=self._children)

    def begin(self, task: _Task) -> None:
        """Begin a task."""
        self.task = task
        with single_threaded_children():
            self.future = self._executor.submit(
                result_of, task.work, task.bag, task.given
            )

    def finish(self) -> bool:
        """Take the result of the task; returns whether the process lives."""
        task = self.task
        future = self.future
        assert task is not None
        assert future is not None
        self.task = None
        self.future = None
        try:
            task.result = future.result()
        except BrokenProcessPool:
            task.deaths += 1
            if task.deaths >= MOST_TRIES:
                task.result = BagResult(task.bag, None, f"{task.bag}: {KILLED}")
            return False
        except Exception as error:  # what goes to the process or comes back
            reason = f"{task.bag}: {type(error).__name__}: {error}"
            task.result = BagResult(task.bag, None, one_line(reason))
        return True

    def end(self) -> None:
        """End the process at once."""
        for process in self._children.started:
            if process.pid is not None:
                process.kill()
        self._executor.shutdown(cancel_futures=True)
