"""Runs nodes in this process, from start to a clean shutdown.

SIGINT never raises an exception here: the handler of rclpy shuts ROS down and wakes the executor,
and then calls our handler, which only sets a flag. Repeated Ctrl-C does not interrupt the clean-up.
"""

from __future__ import annotations

import signal
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import FrameType

import rclpy
from rclpy.executors import (
    Executor,
    ExternalShutdownException,
    MultiThreadedExecutor,
    SingleThreadedExecutor,
)
from rclpy.logging import get_logger
from rclpy.task import Future

from ur_energy_model import interrupts
from ur_energy_model.errors import UrEnergyError
from ur_energy_model.nodes.managed_node import ManagedNode
from ur_energy_model.nodes.unexpected_errors import EXIT_CODE, UnexpectedErrors
from ur_energy_model.terminal_text import one_line

SHUTDOWN_TIMEOUT = 5.0
"""Longest wait for running callbacks [s]."""


def run_nodes(make: Callable[[], Sequence[ManagedNode]], *, threads: int = 1) -> int:
    """Run nodes in one process until SIGINT or SIGTERM.

    The process ignores SIGINT afterwards.

    Args:
        make: makes the nodes; called after ROS is initialized.
        threads: number of threads that run callbacks.

    Returns:
        Exit code: 0 after a signal, 1 if a node failed to start, or the code of a node's `finish`.
    """
    interrupted = threading.Event()

    def on_interrupt(number: int, frame: FrameType | None) -> None:
        interrupted.set()

    signal.signal(signal.SIGINT, on_interrupt)  # before rclpy's handler, which calls this one
    # A signal that shuts ROS down while a node is made leaves rclpy with half of one.
    warnings.filterwarnings("ignore", "Failed to fini", RuntimeWarning)
    try:
        rclpy.init()
    except RuntimeError as error:  # arguments that ROS cannot parse
        get_logger(Path(sys.argv[0]).name).error(one_line(f"ROS cannot be started: {error}"))
        return EXIT_CODE
    outcome = Future()
    errors = UnexpectedErrors(partial(complete, outcome))
    try:
        with errors.of_threads():
            if interrupted.is_set():  # before rclpy had its handler
                return 0
            code = _run(make, threads, outcome, errors)
            return EXIT_CODE if errors.told else code
    finally:
        rclpy.try_shutdown()
        interrupts.ignore()


def begin(nodes: Sequence[ManagedNode]) -> bool:
    """Configure all nodes before the first one is activated; False if a transition failed.

    A node that is active may pass samples to others. Nodes whose `autostart` is false are left to
    their lifecycle manager.
    """
    own = [node for node in nodes if node.value("autostart")]
    return all(node.configure() for node in own) and all(node.activate() for node in own)


def complete(outcome: Future, code: int) -> None:
    """Set the exit code of the process, unless it has one already."""
    if not outcome.done():
        outcome.set_result(code)


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
            return 1 if rclpy.ok() else 0
        place = "a callback"
        executor.spin_until_future_complete(outcome)
        if outcome.done():
            return int(outcome.result())
    except ExternalShutdownException:
        pass
    except UrEnergyError as error:  # of a parameter: "estimator: robot_ip must be ..."
        name, _, text = str(error).partition(": ")
        get_logger(name).error(text)
        return 1
    except Exception as error:
        if rclpy.ok():  # otherwise a signal has shut ROS down during a callback
            errors.report(error, place)
            return EXIT_CODE
    finally:
        if executor is not None:
            executor.shutdown(timeout_sec=SHUTDOWN_TIMEOUT)
        for node in nodes:
            with errors.while_ending(f"the end of {node.get_name()}"):
                node.end()
                node.destroy_node()
    return 0
