# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""ROS: topics with types and QoS, services, parameters, launch arguments, names in messages."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import rclpy
import yaml
from diagnostic_msgs.msg import DiagnosticArray
from rcl_interfaces.srv import DescribeParameters, GetParameters, ListParameters
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import parameter_value_to_python
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState

from test.absent_rooms import absent_rooms, needs_room
from test.contracts.golden import agrees, check
from test.contracts.surface import FIXTURES, fixture_copy, program
from ur_energy_model.nodes.launch_files import launch_files
from ur_energy_model.rooms import has_room

ROOT = Path(__file__).resolve().parents[2]
NODES = ("estimator", "logger", "identification", "simulated_robot")
PATIENCE = 240.0  # longest wait [s]
GRAPH_PATIENCE = 30.0  # longest wait of one observer for a graph: more than a lease [s]
OBSERVERS = 4
OF_ROS = re.compile(r"use_sim_time|start_type_description_service|qos_overrides\..*")
ABOUT_ROS = re.compile(
    r"(parameter_events|rosout|.*/(\w+_parameters\w*|get_\w+|change_state|_\w+))$"
)
"""What every node has."""


@dataclass
class Cell:
    """Running nodes, and a node that looks at them."""

    folder: Path
    domain: int
    node: Any
    executor: Any
    given: dict[str, Any]

    def until(self, condition: Callable[[], Any], what: str) -> Any:
        """Receive messages until a condition is true; its value."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if found := condition():
                return found
            self.executor.spin_once(timeout_sec=0.1)
        pytest.fail(f"no {what} within {PATIENCE:g} s")

    def call(self, kind: Any, name: str, **request: Any) -> Any:
        """Response of a service."""
        client = self.node.create_client(kind, name)
        self.until(client.service_is_ready, name)
        future = client.call_async(kind.Request(**request))
        self.until(future.done, f"response of {name}")
        return future.result()

    def messages(
        self, kind: Any, topic: str, enough: Callable[[list[Any]], bool]
    ) -> list[Any]:
        """Messages of a topic, until there are enough."""
        found: list[Any] = []
        subscription = self.node.create_subscription(
            kind, topic, found.append, QoSProfile(depth=50)
        )
        self.until(lambda: found and enough(found), topic)
        self.node.destroy_subscription(subscription)
        return found


@contextmanager
def onlooker(domain: int) -> Iterator[tuple[Any, SingleThreadedExecutor]]:
    """A node that looks at the others, in a context of its own, and its executor."""
    context = Context()
    rclpy.init(context=context, domain_id=domain)
    node = rclpy.create_node("onlooker", context=context)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    try:
        yield node, executor
    finally:
        executor.shutdown()
        node.destroy_node()
        rclpy.try_shutdown(context=context)


@pytest.fixture(scope="module")
def cell(
    fresh_domain_of_module: Callable[[], int],
    fresh_host: Callable[[], str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Cell]:
    """A simulated robot, logger and estimator in one process, and an identification at rest."""
    needs_room("simulation")
    folder = tmp_path_factory.mktemp("cell")
    domain = fresh_domain_of_module()
    host = fresh_host()
    fixture_copy("node_state", folder)
    given: dict[str, dict[str, Any]] = {
        "simulated_robot": {
            "host": host,
            "robot_model": "ur5",
            "seed": 7,
            "motion": "pick_and_place",
        },
        "cell": {
            "robot_ip": host,
            "bag_directory": "bags",
            "state_file": "node_state/energy.db",
        },
        "identification": {"bags": ["bags/none"]},
    }
    environment = {
        "ROS_DOMAIN_ID": str(domain),
        "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
    }
    children = []
    for name, values in given.items():
        words = [f"{key}:={json.dumps(value)}" for key, value in values.items()]
        command = program(f"{name}_node", "--ros-args")
        for word in words:
            command += ["-p", word]
        with (folder / f"{name}.log").open("w") as log:
            children.append(
                subprocess.Popen(
                    command,
                    stdout=log,
                    stderr=log,
                    cwd=folder,
                    env=os.environ | environment,
                )
            )
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    with onlooker(domain) as (node, executor):
        found = Cell(folder, domain, node, executor, given)
        found.until(lambda: set(NODES) <= set(node.get_node_names()), "nodes")
        yield found
        for child in reversed(children):
            child.send_signal(signal.SIGINT)
    for child in children:
        child.wait(PATIENCE)


def test_nodes(cell: Cell) -> None:
    """One test, since the nodes take long to start; counters first, while they are young."""
    ended = json.loads((FIXTURES / "node_state" / "ended.json").read_text())
    first = cell.messages(JointState, "/energy", bool)[0]
    total = dict(zip(first.name, first.position, strict=True))["total"]
    assert ended["total"] <= total <= ended["total"] + 60.0 * PATIENCE
    messages = {
        "energy": list(first.name),
        "diagnostics": keys(cell, "/diagnostics", learned),
        "summary": keys(cell, "/energy/summary", lambda found: len(found) > 2),
    }
    parameters = {name: parameters_of(cell, name) for name in NODES}
    graph = settled_graph(cell.domain)
    check("ros", {"graph": graph, "messages": messages, "parameters": parameters})


def settled_graph(domain: int) -> dict[str, dict[str, dict[str, list[str]]]]:
    """What every node publishes, subscribes to and serves, once discovery is complete.

    The list of endpoints that a process announces reaches the others in its own time, and a
    process that was forgotten, since a busy machine held it up for longer than its lease,
    is not found again by those who knew it. The graph is therefore read until it agrees
    with the golden file, and by one new observer after another. The last graph is the
    answer where none agrees.
    """
    graph: dict[str, dict[str, dict[str, list[str]]]] = {}
    for _ in range(OBSERVERS):
        with onlooker(domain) as (observer, executor):
            end = time.monotonic() + GRAPH_PATIENCE
            while time.monotonic() < end:
                executor.spin_once(timeout_sec=0.1)
                if not set(NODES) <= set(observer.get_node_names()):
                    continue
                graph = {name: graph_of(observer, name) for name in NODES}
                if agrees("ros", "graph", graph):
                    return graph
    return graph


def graph_of(observer: Any, name: str) -> dict[str, dict[str, list[str]]]:
    """What a node publishes, subscribes to and serves, with types and QoS."""
    publishers = observer.get_publisher_names_and_types_by_node(name, "/")
    subscriptions = observer.get_subscriber_names_and_types_by_node(name, "/")
    services = observer.get_service_names_and_types_by_node(name, "/")
    publishing = observer.get_publishers_info_by_topic
    subscribing = observer.get_subscriptions_info_by_topic
    found = {
        "publishes": {
            topic: [*kinds, *qos(publishing(topic), name)] for topic, kinds in publishers
        },
        "subscribes": {
            topic: [*kinds, *qos(subscribing(topic), name)]
            for topic, kinds in subscriptions
        },
        "serves": dict(services),
    }
    return {
        kind: {
            topic: words for topic, words in topics.items() if not ABOUT_ROS.search(topic)
        }
        for kind, topics in found.items()
    }


def qos(endpoints: Any, node: str) -> list[str]:
    """Reliability and durability; others do not discover the depth."""
    profiles = [each.qos_profile for each in endpoints if each.node_name == node]
    return sorted(
        {f"{each.reliability.name} {each.durability.name}" for each in profiles}
    )


def parameters_of(cell: Cell, name: str) -> dict[str, Any]:
    """Type, range, constraints; the defaults are those in the node's file of parameters."""
    given = cell.given["cell" if name in ("estimator", "logger") else name]
    content = yaml.safe_load((ROOT / "config" / f"{name}.yaml").read_text())
    defaults = content["/**"]["ros__parameters"]
    listed = cell.call(ListParameters, f"/{name}/list_parameters").result.names
    names = sorted(each for each in listed if not OF_ROS.fullmatch(each))
    values = cell.call(GetParameters, f"/{name}/get_parameters", names=names).values
    described = cell.call(DescribeParameters, f"/{name}/describe_parameters", names=names)
    assert set(names) <= set(defaults)
    assert len(names) == len(defaults) or absent_rooms()  # whose parameters the file has
    found = {}
    for value, each in zip(values, described.descriptors, strict=True):
        if each.name not in given:
            assert parameter_value_to_python(value) == defaults[each.name], each.name
        ranges = [*each.floating_point_range, *each.integer_range]
        found[each.name] = {
            "default": defaults[each.name],
            "range": [[one.from_value, one.to_value] for one in ranges],
            "constraints": each.additional_constraints,
            "described": bool(each.description),
        }
    return found


def learned(messages: list[Any]) -> bool:
    """Whether the model learned before is in use; a new one has another reason.

    Without the room learning, no such model is ever used: enough messages are enough.
    """
    enough = len(messages) > 12
    if not has_room("learning"):
        return enough
    values = {
        value.key: value.value
        for message in messages
        for status in message.status
        if status.name == "estimator: model"
        for value in status.values
    }
    used = int(values.get("model_version", 0)) > 0 and enough
    assert not used or "before the last start" in values["learned_because"]
    return used


def keys(
    cell: Cell, topic: str, enough: Callable[[list[Any]], bool]
) -> dict[str, list[str]]:
    """Names and keys of the statuses in messages, until there are enough."""
    found: dict[str, set[str]] = {}
    for message in cell.messages(DiagnosticArray, topic, enough):
        for status in message.status:
            found.setdefault(status.name, set()).update(
                each.key for each in status.values
            )
    return {name: sorted(names) for name, names in found.items()}


def test_launch_arguments() -> None:
    """Names, defaults and choices of every launch file."""
    script = Path(__file__).with_name("launch_arguments.py")
    files = sorted((ROOT / "launch").glob("*.launch.py"))
    described = launch_files()
    if absent_rooms():
        files = [path for path in files if path.name.partition(".")[0] in described]
    command = [sys.executable, str(script), *map(str, files)]
    output = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    check("launch_arguments", json.loads(output.stdout))
