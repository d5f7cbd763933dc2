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

from test.contracts.golden import check
from test.contracts.surface import fixture_copy, program

ROOT = Path(__file__).resolve().parents[2]
NODES = ("estimator", "logger", "identification", "simulated_robot")
PATIENCE = 90.0
"""Longest wait [s]."""
OF_ROS = re.compile(r"use_sim_time|start_type_description_service|qos_overrides\..*")
ABOUT_ROS = re.compile(
    r"(parameter_events|rosout|.*/(\w+_parameters\w*|get_\w+|change_state|_\w+))$"
)
"""What every node has."""


@dataclass
class Cell:
    """Running nodes, and a node that looks at them."""

    folder: Path
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

    def messages(self, kind: Any, topic: str, enough: Callable[[list[Any]], bool]) -> list[Any]:
        """Messages of a topic, until there are enough."""
        found: list[Any] = []
        subscription = self.node.create_subscription(
            kind, topic, found.append, QoSProfile(depth=50)
        )
        self.until(lambda: found and enough(found), topic)
        self.node.destroy_subscription(subscription)
        return found


@pytest.fixture(scope="module")
def cell(
    fresh_domain_of_module: Callable[[], int],
    fresh_host: Callable[[], str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Cell]:
    """A simulated robot, logger and estimator in one process, and an identification at rest."""
    folder, domain, host = tmp_path_factory.mktemp("cell"), fresh_domain_of_module(), fresh_host()
    fixture_copy("node_state", folder)
    given: dict[str, dict[str, Any]] = {
        "simulated_robot": {
            "host": host,
            "robot_model": "ur5",
            "seed": 7,
            "motion": "pick_and_place",
        },
        "cell": {"robot_ip": host, "bag_directory": "bags", "state_file": "node_state/energy.json"},
        "identification": {"bags": ["bags/none"]},
    }
    environment = {"ROS_DOMAIN_ID": str(domain), "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
    children = []
    for name, values in given.items():
        words = [f"{key}:={json.dumps(value)}" for key, value in values.items()]
        command = program(f"{name}_node", "--ros-args")
        for word in words:
            command += ["-p", word]
        with (folder / f"{name}.log").open("w") as log:
            children.append(
                subprocess.Popen(
                    command, stdout=log, stderr=log, cwd=folder, env=os.environ | environment
                )
            )
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    context = Context()
    rclpy.init(context=context, domain_id=domain)
    node = rclpy.create_node("onlooker", context=context)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    found = Cell(folder, node, executor, given)
    found.until(lambda: set(NODES) <= set(node.get_node_names()), "nodes")
    yield found
    for child in reversed(children):
        child.send_signal(signal.SIGINT)
    executor.shutdown()
    node.destroy_node()
    rclpy.try_shutdown(context=context)
    for child in children:
        child.wait(PATIENCE)


def test_counters_and_learning_of_before_continue(cell: Cell) -> None:
    """From files that an earlier version wrote; see also the live command."""
    saved = json.loads((cell.folder / "node_state" / "energy.json").read_text())
    assert saved["serial"] == "20000000007"
    (first, *_) = cell.messages(JointState, "/energy", bool)
    energy = dict(zip(first.name, first.position, strict=True))
    before = json.loads(
        Path(__file__).with_name("fixtures").joinpath("node_state/ended.json").read_text()
    )
    assert before["total"] <= energy["total"] <= before["total"] + 60.0 * PATIENCE


def qos(found: Any) -> str:
    """Reliability, durability and depth; depth is not part of what others discover."""
    profile = found.qos_profile
    return f"{profile.reliability.name} {profile.durability.name}"


def test_topics_and_services(cell: Cell) -> None:
    """Of each node: what it publishes, subscribes to and serves."""
    cell.messages(JointState, "/energy", lambda found: len(found) > 20)
    node, found = cell.node, {}
    for name in NODES:
        publishers = node.get_publisher_names_and_types_by_node(name, "/")
        subscriptions = node.get_subscriber_names_and_types_by_node(name, "/")
        services = node.get_service_names_and_types_by_node(name, "/")
        found[name] = {
            "publishes": {
                topic: [*kinds, *qos_of(node.get_publishers_info_by_topic(topic), name)]
                for topic, kinds in publishers
                if not ABOUT_ROS.search(topic)
            },
            "subscribes": {
                topic: [*kinds, *qos_of(node.get_subscriptions_info_by_topic(topic), name)]
                for topic, kinds in subscriptions
                if not ABOUT_ROS.search(topic)
            },
            "serves": {topic: kinds for topic, kinds in services if not ABOUT_ROS.search(topic)},
        }
    check("ros_graph", found)


def qos_of(endpoints: Any, node: str) -> list[str]:
    return sorted({qos(each) for each in endpoints if each.node_name == node})


@pytest.mark.parametrize("name", NODES)
def test_parameters(name: str, cell: Cell) -> None:
    """Defaults, as in the node's file of parameters; types, ranges, constraints, descriptions."""
    given = cell.given["cell" if name in ("estimator", "logger") else name]
    content = yaml.safe_load((ROOT / "config" / f"{name}.yaml").read_text())
    defaults = content["/**"]["ros__parameters"]
    listed = cell.call(ListParameters, f"/{name}/list_parameters").result.names
    names = sorted(each for each in listed if not OF_ROS.fullmatch(each))
    values = cell.call(GetParameters, f"/{name}/get_parameters", names=names).values
    described = cell.call(DescribeParameters, f"/{name}/describe_parameters", names=names)
    assert set(names) == set(defaults)
    found = {}
    for value, each in zip(values, described.descriptors, strict=True):
        if each.name not in given:
            assert parameter_value_to_python(value) == defaults[each.name], each.name
        ranges = [*each.floating_point_range, *each.integer_range]
        found[each.name] = {
            "type": value.type,
            "default": defaults[each.name],
            "range": [[one.from_value, one.to_value] for one in ranges],
            "constraints": each.additional_constraints,
            "described": bool(each.description),
            "read_only": each.read_only,
        }
    check(f"ros_parameters_{name}", found)


def test_names_in_messages(cell: Cell) -> None:
    """Rows of /energy; statuses and keys of diagnostics and summary."""

    def keys(topic: str, statuses: int) -> dict[str, list[str]]:
        found: dict[str, set[str]] = {}

        def enough(messages: list[Any]) -> bool:
            for message in messages:
                for status in message.status:
                    found.setdefault(status.name, set()).update(each.key for each in status.values)
            return len(messages) > statuses

        cell.messages(DiagnosticArray, topic, enough)
        return {name: sorted(names) for name, names in found.items()}

    (row, *_) = cell.messages(JointState, "/energy", bool)
    check(
        "ros_messages",
        {
            "energy": list(row.name),
            "diagnostics": keys("/diagnostics", 12),
            "summary": keys("/energy/summary", 2),
        },
    )


def test_launch_arguments() -> None:
    """Names, defaults and choices of every launch file."""
    script = Path(__file__).with_name("launch_arguments.py")
    files = sorted((ROOT / "launch").glob("*.launch.py"))
    command = [sys.executable, str(script), *map(str, files)]
    output = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    check("launch_arguments", json.loads(output.stdout))
