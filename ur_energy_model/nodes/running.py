"""Nodes in a process, from start to a clean shutdown."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any

import rclpy
from rclpy.executors import (
    ExternalShutdownException,
    MultiThreadedExecutor,
    SingleThreadedExecutor,
)
from rclpy.task import Future

from ur_energy_model.errors import UrEnergyError
from ur_energy_model.nodes.managed import ManagedNode

SHUTDOWN_TIMEOUT = 5.0
"""Longest wait for callbacks that are under way [s]."""


def run(make: Callable[[], Sequence[ManagedNode]], *, threads: int = 1) -> int:
    """Run nodes in one process until SIGINT or SIGTERM; the exit code.

    Args:
        make: called once ROS is up.
        threads: that carry out callbacks.

    Returns:
        0 after a signal, 1 where a node refused its input or failed for good, or what a node
        finished with.
    """
    nodes: Sequence[ManagedNode] = ()
    executor: Any = None
    try:
        rclpy.init()
        nodes = make()
        executor = (
            SingleThreadedExecutor() if threads == 1 else MultiThreadedExecutor(num_threads=threads)
        )
        outcome = Future()
        for node in nodes:
            node.outcome = outcome
            executor.add_node(node)
        if not all(node.begin() for node in nodes):
            return 1
        executor.spin_until_future_complete(outcome)
        if outcome.done():
            return int(outcome.result())
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    except UrEnergyError as error:
        print(error, file=sys.stderr)
        return 1
    except Exception:
        if rclpy.ok():  # else a signal has shut ROS down under the executor
            raise
    finally:
        # Ctrl-C under ros2 launch comes twice; the second must not cut the clean-up short.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if executor is not None:
            executor.shutdown(timeout_sec=SHUTDOWN_TIMEOUT)
        for node in nodes:
            node.end()
            node.destroy_node()
        rclpy.try_shutdown()
    return 0
