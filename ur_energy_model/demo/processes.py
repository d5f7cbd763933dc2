# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Processes of the demo: its nodes, how they end, and what the estimator publishes."""

from __future__ import annotations

import os
import signal
import subprocess
import sysconfig
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from std_msgs.msg import Float64

from ur_energy_model.cli.output import note
from ur_energy_model.errors import UrEnergyError
from ur_energy_model.interrupts import postponed
from ur_energy_model.processes import start_command
from ur_energy_model.topics_and_services import (
    MODEL_ENERGY,
    MODEL_POWER,
    TOTAL_ENERGY,
    TOTAL_POWER,
)
from ur_energy_model.typing import Self

STOP_TIMEOUT = 10.0
"""Longest time for a child to end after SIGINT, before it is killed [s]."""
TOPICS = tuple(
    topic.name for topic in (TOTAL_POWER, TOTAL_ENERGY, MODEL_POWER, MODEL_ENERGY)
)
"""Topics of the energy of the whole arm."""


class Processes:
    """Context manager that ends its child processes, last started first.

    The children also end when this process is killed: in an orderly way, or at the latest
    after STOP_TIMEOUT.

    Args:
        logs: folder for the output of each child.
        environment: variables that are added to the environment of this process.
    """

    def __init__(self, logs: Path, environment: Mapping[str, str]) -> None:
        self._logs = logs
        self._environment = {**os.environ, **environment}
        self._children: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, command: Sequence[str]) -> None:
        """Start a console script of this package, or any command, in a new session.

        In a new session, Ctrl-C of the terminal does not reach the child; this process
        decides the order in which the children end.

        Args:
            name: name of the child, for its log and for errors.
            command: program and its arguments.
        """
        script = Path(sysconfig.get_path("scripts")) / command[0]
        program = str(script) if script.is_file() else command[0]
        self._logs.mkdir(parents=True, exist_ok=True)
        # An interrupt before the child is among `_children` would leave the child running.
        with postponed(), self.log(name).open("ab") as log:
            self._children[name] = start_command(
                [program, *command[1:]],
                grace=STOP_TIMEOUT,
                environment=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def log(self, name: str) -> Path:
        """Log file of a child."""
        return self._logs / f"{name}.log"

    def check(self) -> None:
        """Check that all children are running.

        Raises:
            UrEnergyError: a child has ended; the message names its log.
        """
        for name, child in self._children.items():
            if child.poll() is not None:
                raise self._error(name, f"ended with exit code {child.returncode}")

    def _error(self, name: str, problem: str) -> UrEnergyError:
        """The error about a child, with its log."""
        return UrEnergyError(f"{name} {problem}; its output is in {self.log(name)}")

    def wait_until(self, ready: Callable[[], bool], name: str, timeout: float) -> None:
        """Wait until a child is ready.

        Args:
            ready: whether the child is ready.
            name: name of the child.
            timeout: longest time to wait [s].

        Raises:
            UrEnergyError: the child is not ready in time, or a child has ended.
        """
        end = time.monotonic() + timeout
        while not ready():
            self.check()
            if time.monotonic() > end:
                raise self._error(name, f"was not ready within {timeout:g} s")
            time.sleep(0.05)

    def stop(self, name: str) -> int:
        """End one child with SIGINT, as Ctrl-C does, and return its exit code.

        A child that does not end within STOP_TIMEOUT is killed, with all processes that it
        started.
        """
        child = self._children.pop(name)
        if child.poll() is None:
            child.send_signal(signal.SIGINT)
            try:
                child.wait(STOP_TIMEOUT)
            except subprocess.TimeoutExpired:
                with suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
                child.wait()
        return child.returncode

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End all children; another request to end waits meanwhile."""
        with postponed():
            for name in reversed(list(self._children)):
                self.stop(name)


class EnergyMonitor:
    """Receives the whole-arm topics of the estimator in a ROS context of its own.

    Args:
        domain: number of the ROS domain.

    Attributes:
        latest: newest value by topic: power [W] or energy [J].
        messages: number of messages received.
    """

    def __init__(self, domain: int) -> None:
        self.latest: dict[str, float] = {}
        self.messages = 0
        self._context = Context()
        rclpy.init(context=self._context, domain_id=domain)
        self._node = rclpy.create_node("ur_energy_demo", context=self._context)
        for topic in TOPICS:
            self._node.create_subscription(Float64, topic, partial(self._keep, topic), 10)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)

    def _keep(self, topic: str, message: Float64) -> None:
        """Keep the value of a message."""
        self.latest[topic] = message.data
        self.messages += 1

    def receive(self, seconds: float) -> None:
        """Receive messages for some time.

        Args:
            seconds: the time [s].
        """
        end = time.monotonic() + seconds
        left = seconds
        while left > 0:
            self._executor.spin_once(timeout_sec=left)
            left = end - time.monotonic()

    def text(self) -> str:
        """Live power and energy, for one line of the terminal."""
        if TOTAL_POWER.name not in self.latest:
            return "the estimator starts"
        model = self.latest.get(MODEL_POWER.name)
        modelled = "" if model is None else f" (model {model:5.1f} W)"
        energy = self.latest.get(TOTAL_ENERGY.name, 0.0)
        return f"/energy {self.latest[TOTAL_POWER.name]:5.1f} W{modelled} {energy:6.0f} J"

    def note_end(self) -> None:
        """Write a line about the final energies, if the estimator has published any."""
        if TOTAL_ENERGY.name not in self.latest:
            return
        model = self.latest.get(MODEL_ENERGY.name, float("nan"))
        note(
            f"live {TOTAL_ENERGY.absolute_name}, measured, ended at "
            f"{self.latest[TOTAL_ENERGY.name]:.0f} J, {MODEL_ENERGY.absolute_name} at "
            f"{model:.0f} J ({self.messages} messages received)"
        )

    def close(self) -> None:
        """Leave ROS."""
        self._executor.shutdown()
        self._node.destroy_node()
        rclpy.try_shutdown(context=self._context)
