"""Nodes in a process, from start to a clean shutdown.

SIGINT never raises here: rclpy's own handler shuts ROS down and wakes the executor, and the
handler under it only takes note. However often Ctrl-C comes, nothing is interrupted half-way.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import rclpy
from rclpy.executors import (
    ExternalShutdownException,
    MultiThreadedExecutor,
    SingleThreadedExecutor,
)
from rclpy.task import Future

from ur_energy_model import interrupts
from ur_energy_model.errors import UrEnergyError
from ur_energy_model.nodes.managed_node import ManagedNode

SHUTDOWN_TIMEOUT = 5.0
"""Longest wait for callbacks that are under way [s]."""


def run_nodes(make: Callable[[], Sequence[ManagedNode]], *, threads: int = 1) -> int:
    """Run nodes in one process until SIGINT or SIGTERM; the exit code.

    The process is deaf to SIGINT afterwards.

    Args:
        make: called once ROS is up.
        threads: that carry out callbacks.

    Returns:
        0 after a signal, 1 where a node refused its input or failed for good, or what a node
        finished with.
    """
    asked = threading.Event()

    def note(number: int, frame: FrameType | None) -> None:
        asked.set()

    signal.signal(signal.SIGINT, note)  # before rclpy's handler, which passes signals on to it
    rclpy.init()
    nodes: Sequence[ManagedNode] = ()
    executor: Any = None
    try:
        if asked.is_set():  # before rclpy listened
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
        if rclpy.ok():  # else a signal has shut ROS down under the nodes
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
