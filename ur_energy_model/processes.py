# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Child processes: they end with their parent, however it ends, and leave signals to it.

Every process that this package starts is started here. There are two kinds:

- `ChildProcess`: a function in a process of `multiprocessing`, which ends at once;
- `start_command`: a program of this package, such as a node, which may end in an orderly
  way first, or `main` of a module (`start_main`).

How a child ends with its parent (`end_with_parent`): on Linux the kernel sends it a
signal (PR_SET_PDEATHSIG in prctl(2)), also where the child computes outside Python or
holds the lock of its interpreter. On other systems a thread of the child looks for its
parent once a second, and ends the process as soon as Python runs. Both hold after
SIGKILL, too.

The kernel means the thread that started the child, not the process. All children are
therefore started by one thread, which runs as long as the process (`_run_in_starter`).
"""

from __future__ import annotations

import ctypes
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any, TypeVar

from ur_energy_model.interrupts import PARENT, postponed

Result = TypeVar("Result")
ONE_THREAD = dict.fromkeys(
    ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"
)
"""Environment of a process that has one core."""


# Starting children.


class ChildProcess(SpawnProcess):
    """A function in a process of its own, which is killed when this process ends.

    A process of `multiprocessing` (method "spawn") that leaves SIGINT and SIGHUP, which a
    terminal sends to all processes, to its parent; SIGTERM ends it at once.
    """

    def start(self) -> None:
        """Start it; a request to end the program waits until it has started."""
        with deaf_children():
            _run_in_starter(super().start)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the process, so that the child ends with its parent before all else."""
        # What is unpickled first in the child is called first, before its modules are
        # imported, which takes seconds.
        return _new_child, (type(self), os.getpid()), self.__dict__


def _new_child(kind: type[ChildProcess], parent: int) -> ChildProcess:
    """In the child: the process object, without its content."""
    end_with_parent(parent)
    return kind.__new__(kind)


def start_command(
    command: Sequence[str],
    *,
    grace: float = 0.0,
    environment: Mapping[str, str] | None = None,
    **options: Any,
) -> subprocess.Popen[bytes]:
    """Start a program of this package, in a session of its own.

    Signals of the terminal do not reach it: this process ends it, and when this process
    has ended without that, it ends by itself (`end_with_parent_of_environment`). Where a
    request to end raises, call this and keep the result within `interrupts.postponed`.

    Args:
        command: program and arguments.
        grace: see `end_with_parent`.
        environment: variables; by default the variables of this process.
        options: options of subprocess.Popen.
    """
    variables = dict(os.environ if environment is None else environment)
    variables[PARENT] = f"{os.getpid()}:{grace}"

    def start() -> subprocess.Popen[bytes]:
        """The program, in the thread that starts all children."""
        return subprocess.Popen(
            list(command), env=variables, start_new_session=True, **options
        )

    return _run_in_starter(start)


def start_main(
    module: str,
    pipe: Connection,
    *arguments: str,
    environment: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Call `main` of a module in a process of its own, with one thread; it prints nothing.

    Unlike a process of `multiprocessing`, this one does not import the main module again,
    which may be a ROS node. It is started by `start_command` and killed when this process
    ends.

    Args:
        module: name of the module. Its `main` takes the file descriptor of the pipe's
            end, and the arguments.
        pipe: an end of a pipe, which may be closed here afterwards.
        arguments: further arguments.
        environment: variables besides the variables of this process.
    """
    first = end_with_parent_of_environment  # before imports that take seconds
    call = ", ".join(map(repr, (pipe.fileno(), *arguments)))
    code = (
        f"from {first.__module__} import {first.__name__}; {first.__name__}(); "
        f"from {module} import main; main({call})"
    )
    search = os.pathsep.join(path for path in sys.path if path)
    return start_command(
        [sys.executable, "-c", code],
        environment={
            **os.environ,
            "PYTHONPATH": search,
            **ONE_THREAD,
            **(environment or {}),
        },
        pass_fds=(pipe.fileno(),),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@contextmanager
def deaf_children() -> Iterator[None]:
    """Processes that start in the block have SIGINT and SIGHUP blocked; requests to end wait.

    Otherwise a child that is interrupted during its imports, or during its start by the
    parent, prints a traceback, and a start that is interrupted half-way leaves processes
    behind.
    """
    with postponed():
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
        try:
            _start_resource_tracker()  # starting it later would unblock SIGINT
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def single_threaded_children() -> Iterator[None]:
    """Limit child processes to one BLAS thread each, as there is one process per core."""
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(ONE_THREAD)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


_SILENT = "ignore:resource_tracker"
"""Filter of warnings: of what killed processes left, which the tracker removes nevertheless."""


def _start_resource_tracker() -> None:
    """Start the process of `multiprocessing` that removes what killed processes leave behind.

    It inherits the filters of warnings as options of its command line.
    """
    sys.warnoptions.append(_SILENT)
    try:
        resource_tracker.ensure_running()
    finally:
        sys.warnoptions.remove(_SILENT)


class _Starter:
    """A thread that runs until the process ends, and starts its children."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self._work: queue.SimpleQueue[tuple[Callable[[], Any], set[int], Future[Any]]]
        self._work = queue.SimpleQueue()
        threading.Thread(
            target=self._run, name="starter of processes", daemon=True
        ).start()

    def run(self, start: Callable[[], Result]) -> Result:
        """Result of a function that starts a child, with the blocked signals of the caller."""
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        future: Future[Result] = Future()
        self._work.put((start, blocked, future))
        return future.result()

    def _run(self) -> None:
        """The thread: start one child after the other."""
        while True:
            start, blocked, future = self._work.get()
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
            try:
                future.set_result(start())
            except BaseException as error:
                future.set_exception(error)
            del start, future  # else they would be kept until the next child


_starter: _Starter | None = None
_making_starter = threading.Lock()


def _run_in_starter(start: Callable[[], Result]) -> Result:
    """Result of a function that starts a child process in the thread for this."""
    global _starter
    with _making_starter:
        if _starter is None or _starter.process != os.getpid():
            _starter = _Starter()
    return _starter.run(start)


# In a child: the end of its parent.

PERIOD = 0.5  # time between two looks for the parent [s]
_PR_SET_PDEATHSIG = 1


def end_with_parent(parent: int, grace: float = 0.0) -> None:
    """End this process when its parent ends; a second call replaces the grace.

    Args:
        parent: number of the process that has started this one.
        grace: 0 to be killed at once. Otherwise the process gets SIGTERM, which it may
            handle or ignore, and is killed after this time [s].
    """
    number = signal.SIGTERM if grace else signal.SIGKILL
    _end_of_parent.grace = grace
    _end_of_parent.sent_by_kernel = _send_at_end_of_parent(number)
    if grace or not _end_of_parent.sent_by_kernel:
        _end_of_parent.follow(parent)
    if os.getppid() != parent:  # it ended before the kernel was asked
        os.kill(os.getpid(), number)


def end_with_parent_of_environment() -> None:
    """End this process when the one that has started it by `start_command` ends."""
    stated = os.environ.pop(PARENT, None)  # children of this process have another parent
    if stated is not None:
        parent, _, grace = stated.partition(":")
        end_with_parent(int(parent), float(grace))


def _send_at_end_of_parent(number: int) -> bool:
    """Ask the kernel for a signal when the parent ends; False where no kernel does this."""
    if sys.platform != "linux":
        return False
    zero = ctypes.c_ulong(0)
    arguments = (ctypes.c_ulong(number), zero, zero, zero)
    return bool(ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, *arguments) == 0)


class _EndOfParent:
    """Steps after the end of the parent, in addition to the signal of the kernel."""

    def __init__(self) -> None:
        self.grace = 0.0
        self.sent_by_kernel = False
        self._thread: threading.Thread | None = None

    def follow(self, parent: int) -> None:
        """Look for the parent from now on, in a thread."""
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, args=(parent,), name="end of the parent", daemon=True
            )
            self._thread.start()

    def _run(self, parent: int) -> None:
        """The thread: wait for the end of the parent, and end this process."""
        while os.getppid() == parent:
            time.sleep(PERIOD)
        if self.grace and not self.sent_by_kernel:
            os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(self.grace)
        os.kill(os.getpid(), signal.SIGKILL)


_end_of_parent = _EndOfParent()
