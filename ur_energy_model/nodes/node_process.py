"""Runs nodes in this process, from start to a clean shutdown.

SIGINT never raises an exception here: the handler of rclpy shuts ROS down and wakes the executor,
and then calls our handler, which only sets a flag. Repeated Ctrl-C does not interrupt the clean-up.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Sequence
from types import FrameType

import rclpy
from rclpy.executors import (
    Executor,
    ExternalShutdownException,
    MultiThreadedExecutor,
    SingleThreadedExecutor,
)
from rclpy.task import Future

from ur_energy_model import interrupts
from ur_energy_model.errors import UrEnergyError
from ur_energy_model.nodes.managed_node import ManagedNode

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
    rclpy.init()
    nodes: Sequence[ManagedNode] = ()
    executor: Executor | None = None
    try:
        if interrupted.is_set():  # before rclpy had its handler
            return 0
        nodes = make()
        executor = (
            SingleThreadedExecutor() if threads == 1 else MultiThreadedExecutor(num_threads=threads)
        )
        outcome = Future()
        for node in nodes:
            node.outcome = outcome
            executor.add_node(node)
        if not all(node.begin() for node in nodes):
            return 1 if rclpy.ok() else 0
        executor.spin_until_future_complete(outcome)
        if outcome.done():
            return int(outcome.result())
    except ExternalShutdownException:
        pass
    except UrEnergyError as error:
        print(error, file=sys.stderr)
        return 1
    except Exception:
        if rclpy.ok():  # otherwise a signal has shut ROS down during a callback
            raise
    finally:
        if executor is not None:
            executor.shutdown(timeout_sec=SHUTDOWN_TIMEOUT)
        for node in nodes:
            node.end()
            node.destroy_node()
        rclpy.try_shutdown()
        interrupts.ignore()
    return 0
