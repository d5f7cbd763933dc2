"""The bag of an arm with namespace and prefix equals the live graph, and is played in its place."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rosbags.rosbag2 import Reader

from test.energy.known_arm import ROBOT, known_model
from test.layouts.viewers import STORE, messages_of_bag
from test.nodes.conftest import Cell, message_class
from test.nodes.test_estimator import ended
from test.telemetry.bag.bag_files import offered_qos
from ur_energy_model.energy.recording_energy import estimate_energy
from ur_energy_model.energy.topics import energy_names
from ur_energy_model.model.model_file import load_model, save_model
from ur_energy_model.nodes.estimator import EstimatorNode
from ur_energy_model.telemetry.bag.reader import read_bag
from ur_energy_model.telemetry.bag.recovery import recover_bag

NAMESPACE, PREFIX = "/cell/left", "left_"
JOINTS = tuple(PREFIX + joint for joint in ROBOT.joint_names)
TYPES = {
    f"{NAMESPACE}/joint_states": "sensor_msgs/JointState",
    f"{NAMESPACE}/energy": "sensor_msgs/JointState",
    f"{NAMESPACE}/energy/summary": "diagnostic_msgs/DiagnosticArray",
    f"{NAMESPACE}/energy/cycle": "diagnostic_msgs/DiagnosticArray",
}
Recorded = tuple[Path, dict[str, Any], dict[str, tuple[int, int]]]
"""Bag, last live messages, and reliability and durability that were offered, by topic."""


@pytest.fixture(scope="module")
def recorded(
    tmp_path_factory: pytest.TempPathFactory,
    fresh_host: Callable[[], str],
    fresh_domain_of_module: Callable[[], int],
) -> Iterator[Recorded]:
    """A logger that was killed beside an estimator."""
    folder = tmp_path_factory.mktemp("cell")
    save_model(known_model(), folder / "model.yaml")
    cell, host = Cell(folder, fresh_domain_of_module()), fresh_host()
    try:
        observer, bags = cell.observer, folder / "bags"
        arm = {"namespace": NAMESPACE, "robot_ip": host, "tf_prefix": PREFIX}
        cell.start_process("simulated_robot", host=host, motion="trajectory_b")
        cell.start_process("estimator", model_file=str(folder / "model.yaml"), **arm)
        logger = cell.start_process("logger", record=True, bag_directory=str(bags), **arm)
        for topic, kind in TYPES.items():
            observer.subscribe(topic, kind)
        observer.wait(lambda: f"{NAMESPACE}/energy" in observer.latest, "energies")
        observer.wait(lambda: list(bags.glob("*/*.mcap")), "a bag")
        for _ in range(2):
            observer.call(f"{NAMESPACE}/estimator/start_cycle")
            observer.wait_for_messages(f"{NAMESPACE}/energy", 50)
        observer.wait(lambda: set(TYPES) <= set(observer.latest), "all topics")
        observer.wait_for_messages(f"{NAMESPACE}/energy", 100)
        offered = {
            topic: (int(each.qos_profile.reliability), int(each.qos_profile.durability))
            for topic in TYPES
            for each in observer.node.get_publishers_info_by_topic(topic)
        }
        os.kill(logger.pid, signal.SIGKILL)
        logger.wait()
        (bag,) = bags.iterdir()
        recover_bag(bag)
        yield bag, observer.latest, offered
    finally:
        cell.close()


def test_the_bag_equals_the_live_graph(
    recorded: Recorded,
) -> None:
    bag, live, offered = recorded
    info = read_bag(bag).info
    assert (info.namespace, info.tf_prefix) == (NAMESPACE, PREFIX)
    assert bag.name.startswith(f"ur5e_{info.serial}_")
    with Reader(bag) as reader:
        topics = {each.topic: each for each in reader.connections}
    assert set(TYPES) <= set(topics)
    assert all(topic.startswith(f"{NAMESPACE}/") for topic in topics)
    for topic, kind in TYPES.items():
        assert topics[topic].msgtype.replace("/msg/", "/") == kind
        profile = offered_qos(topics[topic])
        assert (profile.reliability.value, profile.durability.value) == offered[topic], topic
    messages = messages_of_bag(bag)
    for topic in (f"{NAMESPACE}/joint_states", f"{NAMESPACE}/energy"):
        assert list(messages[topic].name) == list(live[topic].name)
    assert tuple(messages[f"{NAMESPACE}/joint_states"].name) == JOINTS
    assert tuple(messages[f"{NAMESPACE}/rtde/joint_telemetry"].joint_names) == (*JOINTS, "robot")


def estimator(cell: Cell, model: Path, **parameters: Any) -> None:
    cell.observer.subscribe(f"{NAMESPACE}/energy", "sensor_msgs/JointState")
    cell.observer.subscribe("/diagnostics", "diagnostic_msgs/DiagnosticArray")
    cell.observer.subscribe(f"{NAMESPACE}/energy/total/energy", "std_msgs/Float64")
    cell.start_node(
        lambda **options: EstimatorNode(namespace=NAMESPACE, **options),
        model_file=str(model),
        tf_prefix=PREFIX,
        **parameters,
    )


def test_an_estimator_plays_the_bag_on_the_same_topics(
    cell: Cell, model: Path, recorded: Recorded
) -> None:
    bag, live, _ = recorded
    estimator(cell, model, source="bag", bag=str(bag))
    total = ended(cell, f"{NAMESPACE}/energy/total/energy")
    assert total == pytest.approx(estimate_energy(load_model(model), bag).supply, rel=1e-6)
    topic = f"{NAMESPACE}/energy"
    assert tuple(cell.observer.latest[topic].name) == energy_names(JOINTS)
    assert list(cell.observer.latest[topic].name) == list(live[topic].name)


def test_a_player_stands_in_for_the_arm_and_keeps_latched_messages(
    cell: Cell, model: Path, recorded: Recorded
) -> None:
    """Messages are published again as they are in the bag, each topic as it was offered."""
    bag, live, _ = recorded
    observer = cell.observer
    estimator(cell, model, source="joint_states")
    played = (f"{NAMESPACE}/joint_states", f"{NAMESPACE}/energy/cycle")
    with Reader(bag) as reader:
        wanted = [each for each in reader.connections if each.topic in played]
        messages = list(reader.messages(wanted))
    publishers = {}
    for each in wanted:
        offered = offered_qos(each)
        qos = QoSProfile(
            depth=offered.depth,
            reliability=ReliabilityPolicy(offered.reliability.value),
            durability=DurabilityPolicy(offered.durability.value),
        )
        publishers[each.topic] = observer.node.create_publisher(
            message_class(each.msgtype), each.topic, qos
        )
    states = publishers[played[0]]
    observer.wait(lambda: states.get_subscription_count() > 0, "the estimator")
    began, first = time.monotonic(), messages[0][1]
    for connection, stamp, raw in messages:
        observer.spin(max(0.0, began + (stamp - first) * 1e-9 - time.monotonic()))
        publishers[connection.topic].publish(bytes(raw))
    observer.next_message(f"{NAMESPACE}/energy")
    energies = observer.latest[f"{NAMESPACE}/energy"]
    assert list(energies.name) == list(live[f"{NAMESPACE}/energy"].name)
    assert np.isfinite(energies.position[: len(JOINTS)]).all()
    observer.subscribe(played[1], TYPES[played[1]], latched=True)  # after it was published
    observer.wait(lambda: played[1] in observer.latest, "the latched message")
    last = [raw for connection, _, raw in messages if connection.topic == played[1]][-1]
    expected = STORE.deserialize_cdr(last, "diagnostic_msgs/msg/DiagnosticArray")
    assert observer.latest[played[1]].status[0].message == expected.status[0].message
