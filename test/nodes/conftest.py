# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Nodes and an observer in a ROS domain of their own.

Nodes in this process start fast; tests of signals and exit codes start processes.
"""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import pytest
import rclpy
from builtin_interfaces.msg import Duration, Time
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.task import Future
from std_srvs.srv import Trigger

from test.energy.known_arm import known_model
from ur_energy_model.model.model_file import save_model
from ur_energy_model.nodes.launch_files import node_command
from ur_energy_model.nodes.managed_node import ManagedNode
from ur_energy_model.nodes.process import begin
from ur_energy_model.rooms import has_room

PATIENCE = 240.0  # longest wait for a condition [s]
N = TypeVar("N", bound=ManagedNode)


def message_class(name: str) -> Any:
    """Message class of package/Type or package/msg/Type."""
    parts = name.split("/")
    return getattr(importlib.import_module(f"{parts[0]}.msg"), parts[-1])


def seconds_of(stamp: Time | Duration) -> float:
    """Seconds of a time stamp (since the epoch) or a duration."""
    return float(stamp.sec + stamp.nanosec * 1e-9)


LEARNING_OFF = {"learn": "off"} if has_room("learning") else {}
"""Parameters of an estimator whose model stays as it is."""


class Observer:
    """Subscribes to topics, calls services, and waits with a time limit."""

    def __init__(self, domain: int) -> None:
        self.latest: dict[str, Any] = {}
        self.history: dict[str, list[Any]] = {}
        self.context = Context()
        rclpy.init(context=self.context, domain_id=domain)
        self.node = rclpy.create_node("observer", context=self.context)
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)

    def subscribe(self, topic: str, kind: str, *, latched: bool = False) -> None:
        """Keep all messages of a topic from now on."""
        qos = QoSProfile(depth=100)
        if latched:
            qos.durability = DurabilityPolicy.TRANSIENT_LOCAL

        def keep(message: Any) -> None:
            self.latest[topic] = message
            self.history.setdefault(topic, []).append(message)

        self.node.create_subscription(message_class(kind), topic, keep, qos)

    def spin(self, seconds: float) -> None:
        """Receive messages for this time."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.executor.spin_once(timeout_sec=left)

    def status_that(
        self,
        name: str,
        condition: Callable[[dict[str, str]], Any],
        what: str,
        topic: str = "/diagnostics",
    ) -> dict[str, str]:
        """Wait until a status fulfils a condition; returns it."""
        return self.wait(lambda: condition(s := self.status(topic, name)) and s, what)

    def wait(self, condition: Callable[[], Any], what: str) -> Any:
        """Wait until a condition is true; returns its value."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            value = condition()
            if value:
                return value
            self.executor.spin_once(timeout_sec=0.1)
        pytest.fail(f"no {what} within {PATIENCE:g} s")

    def next_message(self, topic: str) -> Any:
        """Wait for the next message of a subscribed topic."""
        self.wait_for_messages(topic, 1)
        return self.latest[topic]

    def wait_for_messages(self, topic: str, count: int) -> None:
        """Wait for `count` messages: a time of the robot, however slow the machine is."""
        known = len(self.history.get(topic, []))
        self.wait(lambda: len(self.history.get(topic, [])) >= known + count, topic)

    def drain(self, topic: str) -> int:
        """Receive the last messages of a topic without publishers; returns their number."""
        while True:
            known = len(self.history.get(topic, []))
            self.spin(1.0)
            if len(self.history.get(topic, [])) == known:
                return known

    def call(self, service: str, kind: Any = Trigger, request: Any = None) -> Any:
        """Response of a service."""
        client = self.node.create_client(kind, service)
        self.wait(client.service_is_ready, service)
        future = client.call_async(kind.Request() if request is None else request)
        self.wait(future.done, f"response of {service}")
        self.node.destroy_client(client)
        return future.result()

    def status(self, topic: str, name: str) -> dict[str, str]:
        """Key-value pairs of a diagnostic status, and its `message` and `level`."""

        def find() -> dict[str, str] | None:
            for status in getattr(self.latest.get(topic), "status", []):
                if status.name.endswith(name):
                    pairs = {value.key: value.value for value in status.values}
                    return pairs | {
                        "message": status.message,
                        "level": str(status.level[0]),
                    }
            return None

        return self.wait(find, f"{name} on {topic}")

    def close(self) -> None:
        """Destroy the node and its context."""
        self.executor.shutdown()
        self.node.destroy_node()
        rclpy.try_shutdown(context=self.context)


class Cell:
    """Nodes and an observer in one domain."""

    def __init__(self, folder: Path, domain: int) -> None:
        self.folder = folder
        self.domain = domain
        self.environment = {
            **os.environ,
            "ROS_DOMAIN_ID": str(self.domain),
            "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
            "ROS_LOG_DIR": str(folder / "ros_log"),
        }
        os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
        self.observer = Observer(self.domain)
        self.children: list[subprocess.Popen[str]] = []
        self.nodes: list[ManagedNode] = []
        self._switch_interval = sys.getswitchinterval()  # an estimator changes it

    def start_node(self, make: Callable[..., N], *given: Any, **parameters: Any) -> N:
        """Start a node in this process; it is active unless autostart is false."""
        node = self.make_node(make, *given, **parameters)
        assert begin([node])
        return node

    def make_node(
        self,
        make: Callable[..., N],
        *given: Any,
        namespace: str | None = None,
        **parameters: Any,
    ) -> N:
        """Make a node in this process, unconfigured."""
        overrides = [Parameter(name, value=value) for name, value in parameters.items()]
        options = {"context": self.observer.context, "namespace": namespace}
        node = make(*given, parameter_overrides=overrides, **options)
        self.nodes.append(node)
        self.observer.executor.add_node(node)
        node.outcome = Future()
        return node

    def start_process(
        self, node: str, *, namespace: str = "", **parameters: Any
    ) -> subprocess.Popen[str]:
        """Start a node in a process of its own, as the demo does."""
        return self.run_command(node_command(node, parameters, namespace=namespace))

    def run_command(
        self, command: list[str], **environment: str
    ) -> subprocess.Popen[str]:
        """Start a process in a session of its own."""
        child = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self.environment | environment,
            start_new_session=True,
            cwd=self.folder,
        )
        self.children.append(child)
        return child

    @staticmethod
    def stop(
        child: subprocess.Popen[str], number: int = signal.SIGINT
    ) -> tuple[int, str]:
        """End a process; returns its exit code and output."""
        if child.poll() is None:
            child.send_signal(number)
        output, _ = child.communicate(timeout=PATIENCE)
        return child.returncode, output

    def close(self) -> None:
        """End all nodes and processes."""
        for node in reversed(self.nodes):
            self.observer.executor.remove_node(node)
            node.end()
            node.destroy_node()
        sys.setswitchinterval(self._switch_interval)
        for child in reversed(self.children):
            if child.poll() is None:
                child.send_signal(signal.SIGINT)
        for child in self.children:
            with suppress(subprocess.TimeoutExpired):
                child.communicate(timeout=PATIENCE)
                continue
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
        self.observer.close()


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """File of the known arm's model."""
    path = tmp_path / "model.yaml"
    save_model(known_model(), path)
    return path


@pytest.fixture
def cell(tmp_path: Path, fresh_domain: Callable[[], int]) -> Iterator[Cell]:
    """A ROS domain for one test."""
    made = Cell(tmp_path, fresh_domain())
    yield made
    made.close()
