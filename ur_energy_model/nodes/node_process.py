"""Runs nodes in this process, from start to a clean shutdown.

SIGINT never raises an exception here: the handler of rclpy shuts ROS down and wakes the executor,
and then calls our handler, which only sets a flag. Repeated Ctrl-C does not interrupt the clean-up.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import rclpy
from rclpy.executors import (
    Executor,
    ExternalShutdownException,
    MultiThreadedExecutor,
    SingleThreadedExecutor,
)
from rclpy.logging import get_logger, get_logging_directory
from rclpy.task import Future

from ur_energy_model import interrupts
from ur_energy_model.errors import UrEnergyError, one_line, printable
from ur_energy_model.nodes.managed_node import ManagedNode, begin

EXIT_CODE = 1
END_TIMEOUT = 30.0
"""Longest time that a process with an unexpected error takes to end [s]."""
SHUTDOWN_TIMEOUT = 5.0
"""Longest wait for running callbacks [s]."""


def run_nodes(make: Callable[[], Sequence[ManagedNode]], *, threads: int = 1) -> int:
    """Run the nodes that `make` makes, in one process, until SIGINT or SIGTERM.

    The process ignores SIGINT afterwards. `threads` run the callbacks.

    Returns:
        Exit code: 0 after a signal, 1 if a node failed to start, or the code of a node's `finish`.
    """
    interrupted = threading.Event()
    # Before rclpy's handler, which calls this one.
    signal.signal(signal.SIGINT, lambda number, frame: interrupted.set())
    # A signal that shuts ROS down while a node is made leaves rclpy with half of one.
    warnings.filterwarnings("ignore", "Failed to fini", RuntimeWarning)
    try:
        rclpy.init()
    except RuntimeError as error:  # arguments that ROS cannot parse
        get_logger(Path(sys.argv[0]).name).error(one_line(f"ROS cannot be started: {error}"))
        return EXIT_CODE
    outcome = Future()
    errors = UnexpectedErrors(outcome)
    outside, threading.excepthook = threading.excepthook, errors.of_thread
    try:
        if interrupted.is_set():  # before rclpy had its handler
            return 0
        code = _run(make, threads, outcome, errors)
        return EXIT_CODE if errors.logged else code
    finally:
        threading.excepthook = outside
        errors.over.set()
        rclpy.try_shutdown()
        interrupts.ignore()


class UnexpectedErrors:
    """Takes the exceptions that nothing in this package expects, from any thread.

    The first one is logged as one line and ends the process; all tracebacks go into a file. After
    a signal has shut ROS down, only those of the clean-up are logged: what else fails then fails
    because of the shutdown. `over` is set once the process is about to end by itself.
    """

    def __init__(self, outcome: Future) -> None:
        self._outcome, self._lock = outcome, threading.Lock()
        self.logged, self.over = False, threading.Event()

    def report(self, error: BaseException, place: str) -> None:
        """Log the error if it is the first, keep its traceback, and end the process.

        `place` is where it was raised, such as "thread 'telemetry reader'".
        """
        if rclpy.ok() and self.log(error, place, "; the process ends"):
            threading.Thread(target=self._force, name="forced end", daemon=True).start()
            if not self._outcome.done():
                self._outcome.set_result(EXIT_CODE)

    def of_thread(self, arguments: threading.ExceptHookArgs) -> None:
        """Report the exception that ended a thread (threading.excepthook)."""
        error, thread = arguments.exc_value, arguments.thread
        if error is not None and not isinstance(error, SystemExit):
            self.report(error, f"thread {'unknown' if thread is None else thread.name!r}")

    def log(self, error: BaseException, place: str, consequence: str = "") -> bool:
        """Log the error if it is the first, and keep its traceback; returns whether it was."""
        program, file = Path(sys.argv[0]).stem or "node", None
        text = "".join(traceback.format_exception(error))
        logger = get_logger(program)
        logger.debug(text)
        with suppress(OSError, RuntimeError):
            path = Path(get_logging_directory()) / f"{program}_{os.getpid()}_errors.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="utf-8", errors="replace") as out:
                out.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {place}\n{text}\n")
            file = path
        with self._lock:
            first, self.logged = not self.logged, True
        if first:
            details = "" if file is None else f"; details in {file}"
            words = printable(" ".join(f"{type(error).__name__}: {error}".split())[:500])
            logger.fatal(f"unexpected error in {place}: {words}{consequence}{details}")
        return first

    @contextmanager
    def logging(self, place: str) -> Iterator[None]:
        """A context whose exception is logged, so that the clean-up continues after it."""
        try:
            yield
        except Exception as error:
            self.log(error, place)

    def _force(self) -> None:
        if not self.over.wait(END_TIMEOUT):
            os._exit(EXIT_CODE)


def _run(
    make: Callable[[], Sequence[ManagedNode]],
    threads: int,
    outcome: Future,
    errors: UnexpectedErrors,
) -> int:
    nodes: Sequence[ManagedNode] = ()
    executor: Executor | None = None
    place = "the start"
    try:
        nodes = make()
        executor = (
            SingleThreadedExecutor() if threads == 1 else MultiThreadedExecutor(num_threads=threads)
        )
        for node in nodes:
            node.outcome, node.on_unexpected = outcome, errors.report
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
        if executor is not None:
            executor.shutdown(timeout_sec=SHUTDOWN_TIMEOUT)
        for node in nodes:
            with errors.logging(f"the end of {node.get_name()}"):
                node.end()
                node.destroy_node()
    return 0
