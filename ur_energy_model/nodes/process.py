# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The process that runs nodes: from its start to a clean shutdown.

SIGINT never raises an exception in such a process: the handler of rclpy shuts ROS down
and wakes the executor, and then calls ours, which only sets a flag. Repeated Ctrl-C does
not interrupt the clean-up.

An exception that nothing in this package expects is a fault of the package. It is logged
as one line, its traceback goes into a file, and the process ends with exit code 1, so
that a launch file or systemd can start it again.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import rclpy
from rclpy.executors import (
    Executor,
    ExternalShutdownException,
    MultiThreadedExecutor,
    SingleThreadedExecutor,
)
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.logging import get_logger, get_logging_directory
from rclpy.task import Future

from ur_energy_model import interrupts
from ur_energy_model.errors import UrEnergyError, one_line, printable
from ur_energy_model.nodes.managed_node import ManagedNode
from ur_energy_model.nodes.memory import give_back_memory
from ur_energy_model.nodes.parameters import NodeParameters

EXIT_CODE = 1  # exit code of a process that failed
SHUTDOWN_TIMEOUT = 5.0  # longest wait for running callbacks [s]


def run_nodes(make: Callable[[], Sequence[ManagedNode]], *, threads: int = 1) -> int:
    """Run nodes in one process until SIGINT, SIGTERM or SIGHUP.

    Afterwards the process ignores these signals.

    Args:
        make: makes the nodes, once ROS is initialized.
        threads: how many threads run the callbacks.

    Returns:
        Exit code: 0 after a signal, 1 if a node failed to start, or the code of a node's
        `finish`.
    """
    # Before rclpy's handler, which calls this one. A list and no Event: an Event has a
    # lock, and the next SIGINT could interrupt the handler while it holds the lock, and
    # would wait for ever.
    signals: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, frame: signals.append(number))
    interrupts.forward(signal.SIGHUP, signal.SIGTERM)  # rclpy does not handle SIGHUP
    # A signal that shuts ROS down while a node is made leaves rclpy with half of one.
    warnings.filterwarnings("ignore", "Failed to fini", RuntimeWarning)
    give_back_memory()
    try:
        rclpy.init()
    except RuntimeError as error:  # arguments that ROS cannot parse
        text = one_line(f"ROS cannot be started: {error}")
        get_logger(Path(sys.argv[0]).name).error(text)
        return EXIT_CODE
    outcome = Future()
    errors = UnexpectedErrors(outcome)
    outside = threading.excepthook
    threading.excepthook = errors.of_thread
    try:
        if signals:  # before rclpy had its handler
            return 0
        code = _run(make, threads, outcome, errors)
        return EXIT_CODE if errors.logged else code
    finally:
        threading.excepthook = outside
        rclpy.try_shutdown()
        interrupts.ignore()


def _run(
    make: Callable[[], Sequence[ManagedNode]],
    threads: int,
    outcome: Future,
    errors: UnexpectedErrors,
) -> int:
    """Make the nodes, start them, run their callbacks, and end them whatever happens.

    Args:
        make: makes the nodes.
        threads: number of threads that run the callbacks.
        outcome: its result ends the process, and is the exit code.
        errors: takes the exceptions that nothing expects.

    Returns:
        The exit code.
    """
    nodes: Sequence[ManagedNode] = ()
    place = "the start"
    executor: Executor = SingleThreadedExecutor()
    if threads > 1:
        executor = MultiThreadedExecutor(threads)
    try:
        nodes = make()
        for node in nodes:
            node.outcome = outcome
            node.on_unexpected = errors.report
            executor.add_node(node)
        if not begin(nodes):
            return EXIT_CODE if rclpy.ok() else 0
        place = "a callback"
        executor.spin_until_future_complete(outcome)
        if outcome.done():
            return int(outcome.result())
    except ExternalShutdownException:
        pass
    except UrEnergyError as error:  # of a parameter: "estimator: robot_ip must be ..."
        name, _, text = str(error).partition(": ")
        get_logger(name).error(text)
        return EXIT_CODE
    except Exception as error:
        if rclpy.ok():  # otherwise a signal has shut ROS down during a callback
            errors.report(error, place)
            return EXIT_CODE
    finally:
        executor.shutdown(timeout_sec=SHUTDOWN_TIMEOUT)
        for node in nodes:
            try:
                node.end()
                node.destroy_node()
            except Exception as error:  # noqa: PERF203  the clean-up continues
                errors.log(error, f"the end of {node.get_name()}")
    return 0


def begin(nodes: Iterable[ManagedNode]) -> bool:
    """Configure all nodes, then activate all; False if a transition failed.

    A node that is active may pass samples to others. Nodes whose `autostart` is false are
    left to their lifecycle manager.
    """
    own = [node for node in nodes if node.given.of(NodeParameters).autostart]
    success = TransitionCallbackReturn.SUCCESS
    if not all(node.trigger_configure() == success for node in own):
        return False
    return all(node.trigger_activate() == success for node in own)


class UnexpectedErrors:
    """Takes the exceptions that nothing in this package expects, from any thread.

    The first one is logged as one line and ends the process; all tracebacks go into a
    file. After a signal has shut ROS down, only exceptions of the clean-up are logged;
    all others are consequences of the shutdown.

    Args:
        outcome: its result is the exit code of the process, and ends it.

    Attributes:
        logged: whether there was one.
    """

    def __init__(self, outcome: Future) -> None:
        self._outcome = outcome
        self._lock = threading.Lock()
        self.logged = False

    def report(self, error: BaseException, place: str) -> None:
        """Log the error if it is the first, keep its traceback, and end the process.

        Args:
            error: what was raised.
            place: where, such as "thread 'telemetry reader'".
        """
        if not rclpy.ok():
            return
        first = self.log(error, place, "; the process ends")
        if first and not self._outcome.done():
            self._outcome.set_result(EXIT_CODE)

    def of_thread(self, arguments: threading.ExceptHookArgs) -> None:
        """Report the exception that ended a thread (threading.excepthook)."""
        error = arguments.exc_value
        thread = arguments.thread
        if error is not None and not isinstance(error, SystemExit):
            self.report(error, f"thread {'unknown' if thread is None else thread.name!r}")

    def log(self, error: BaseException, place: str, consequence: str = "") -> bool:
        """Log the error if it is the first, and keep its traceback.

        Args:
            error: what was raised.
            place: place of the error, in words.
            consequence: what follows from it, such as "; the process ends".

        Returns:
            Whether it was the first.
        """
        program = Path(sys.argv[0]).stem or "node"
        details = ""
        text = "".join(traceback.format_exception(error))
        logger = get_logger(program)
        logger.debug(text)
        with suppress(OSError, RuntimeError):
            path = Path(get_logging_directory()) / f"{program}_{os.getpid()}_errors.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="utf-8", errors="replace") as out:
                out.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {place}\n{text}\n")
            details = f"; details in {path}"
        with self._lock:
            first = not self.logged
            self.logged = True
        if first:
            words = printable(" ".join(f"{type(error).__name__}: {error}".split())[:500])
            logger.fatal(f"unexpected error in {place}: {words}{consequence}{details}")
        return first
