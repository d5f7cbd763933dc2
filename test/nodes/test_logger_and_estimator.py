# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""A cell of simulated controller and cell_node: its topics, its services, its bags."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml
from rosbags.rosbag2 import Reader
from std_msgs.msg import String

from test.absent_rooms import needs_room
from test.energy.known_arm import ROBOT, counted, known_model, live
from test.layouts.viewers import (
    foxglove_paths,
    foxglove_topics,
    foxglove_value,
    messages_of_bag,
    plotjuggler_curves,
    plotjuggler_series,
    plotjuggler_subscriptions,
)
from test.nodes.conftest import LEARNING_OFF, Cell, Observer, seconds_of
from test.nodes.test_estimator import ended
from test.telemetry.bag.bag_files import offered_qos
from test.telemetry.recorded_events import read_events
from ur_energy_model.energy.recording_energy import estimate_energy
from ur_energy_model.energy.topics import energy_names
from ur_energy_model.layouts.files import ArmTopics, layout_files
from ur_energy_model.model.model_file import load_model, save_model
from ur_energy_model.nodes.estimator import EstimatorNode
from ur_energy_model.nodes.launch_files import node_command
from ur_energy_model.telemetry.bag.reader import read_bag
from ur_energy_model.telemetry.bag.recovery import recover_bag
from ur_energy_model.topics_and_services import (
    CLOCK,
    ENERGY_JOINTS,
    JOINT,
    ROBOT_DESCRIPTION,
    TOPICS,
)

NAMESPACE = "/cell/left"
PREFIX = "left_"
JOINTS = tuple(PREFIX + joint for joint in ROBOT.joint_names)
LAYOUTS = layout_files(ArmTopics(tuple(ROBOT.joint_names), NAMESPACE.strip("/"), PREFIX))
STATES, ENERGY, TOTAL, SUMMARY, CYCLE, DESCRIPTION = (
    f"{NAMESPACE}/{name}"
    for name in (
        "joint_states", "energy", "energy/total/energy", "energy/summary", "energy/cycle",
        "robot_description",
    )
)  # fmt: skip
RECORDED = {
    STATES: "sensor_msgs/JointState",
    ENERGY: "sensor_msgs/JointState",
    SUMMARY: "diagnostic_msgs/DiagnosticArray",
    CYCLE: "diagnostic_msgs/DiagnosticArray",
}


@pytest.fixture(scope="module")
def running(
    tmp_path_factory: pytest.TempPathFactory,
    fresh_host: Callable[[], str],
    fresh_domain_of_module: Callable[[], int],
) -> Iterator[Cell]:
    """Simulated controller, and logger and estimator on one connection, all publishing."""
    needs_room("simulation")
    folder = tmp_path_factory.mktemp("cell")
    save_model(known_model(), folder / "model.yaml")
    made = Cell(folder, fresh_domain_of_module())
    host = fresh_host()
    try:
        made.start_process("simulated_robot", host=host, motion="trajectory_b")
        command = node_command("logger", {}, namespace=NAMESPACE)
        command[0] = command[0].replace("logger_node", "cell_node")
        for name, value in {
            "robot_ip": f"'{host}'",
            "tf_prefix": f"'{PREFIX}'",
            "bag_directory": f"'{folder / 'bags'}'",
            "record": "false",
            "model_file": f"'{folder / 'model.yaml'}'",
            "state_file": f"'{folder / 'state.db'}'",
            "publish_robot_description": "true",
        }.items():
            command += ["-p", f"{name}:={value}"]
        made.run_command(command)
        observer = made.observer
        absolute = {}
        optional = (ENERGY_JOINTS, ROBOT_DESCRIPTION, CLOCK)
        for offered in TOPICS["estimator"]:
            if offered.subscribed or offered in optional:
                continue
            for joint in JOINTS if JOINT in offered.name else ("",):
                name = offered.for_joint(joint).absolute_name
                absolute[name if name == "/diagnostics" else f"{NAMESPACE}{name}"] = (
                    offered.type
                )
        absolute[STATES] = RECORDED[STATES]
        for topic, kind in absolute.items():
            observer.subscribe(topic, kind)
        observer.subscribe(DESCRIPTION, "std_msgs/String", latched=True)
        at_events = {CYCLE, f"{ENERGY}/prediction", f"{ENERGY}/optimized_trajectory"}
        awaited = {*absolute, DESCRIPTION} - at_events
        observer.wait(lambda: awaited <= set(observer.latest), "all topics")
        yield made
    finally:
        made.close()


def service(cell: Cell, name: str) -> Any:
    return cell.observer.call(f"{NAMESPACE}/{name}")


def figures(cell: Cell, name: str) -> dict[str, float]:
    cell.observer.next_message(SUMMARY)
    found = cell.observer.status(SUMMARY, name)
    return {
        key: float(text)
        for key, text in found.items()
        if re.fullmatch(r"[-\d.e+]+", text)
    }


def test_topics_come_at_the_publish_rate_with_the_times_of_samples(running: Cell) -> None:
    """By their stamps, since an observer of all topics may receive messages late or lose some."""
    observer = running.observer
    for topic in (STATES, ENERGY):
        observer.wait_for_messages(topic, 30)
        messages = observer.history[topic][-30:]
        stamps = [seconds_of(message.header.stamp) for message in observer.history[topic]]
        periods = np.diff(stamps) / 0.02
        # A busy observer misses messages: most of the times between those it got are
        # whole periods.
        assert np.median(np.abs(periods - np.rint(periods))) < 0.15
        assert (np.rint(periods) == 1.0).any()
    names = energy_names(JOINTS)
    assert {tuple(message.name) for message in messages} == {names}
    totals = [message.data for message in observer.history[TOTAL]]
    assert messages[0].position[names.index("total")] in totals
    assert totals == sorted(totals)
    assert totals[-1] > totals[0]


def test_power_is_the_slope_of_energy(running: Cell) -> None:
    def now() -> tuple[float, float, float]:
        total = figures(running, "total")
        counters = running.observer.status(SUMMARY, "counters")
        return (
            float(counters["accounted_ever_s"]),
            total["energy_ever_J"],
            total["power_W"],
        )

    (before, low, _), (after, high, power) = now(), now()
    assert power == pytest.approx((high - low) / (after - before), rel=1e-3)


def test_diagnostics_markers_and_robot_description(running: Cell) -> None:
    latest = running.observer.latest
    for name in ("estimator: source", "logger: connection"):
        running.observer.status_that(
            name, lambda s: s["level"] == "0" and 300 < float(s["rate_Hz"]) < 700, name
        )
    array = running.observer.next_message(f"{ENERGY}/markers")
    assert sum(marker.ns == "joint_power" for marker in array.markers) == 6
    (text,) = [marker.text for marker in array.markers if marker.ns == "total_power"]
    assert re.fullmatch(r"-?\d+ W", text)
    root = ElementTree.fromstring(latest[DESCRIPTION].data.split("?>")[1])
    assert "left_base" in {link.get("name") for link in root.iter("link")}
    manager = yaml.safe_load(LAYOUTS["rviz/energy.rviz"])["Visualization Manager"]
    keys = ("Topic", "Description Topic")
    shown = [
        display[key]["Value"]
        for display in manager["Displays"]
        for key in keys
        if key in display
    ]
    assert {*shown} == {f"{ENERGY}/markers", DESCRIPTION} <= set(latest)
    frames = {marker.header.frame_id for marker in array.markers}
    assert frames == {manager["Global Options"]["Fixed Frame"]} == {"left_base"}


def test_services_of_the_estimator(running: Cell) -> None:
    observer = running.observer
    ever = figures(running, "total")["energy_ever_J"]
    assert service(running, "estimator/reset_energy").success
    observer.wait(
        lambda: observer.status(SUMMARY, "counters")["reset_reason"] == "service call",
        "the reset",
    )
    total = observer.status(SUMMARY, "total")
    assert float(total["energy_J"]) < float(total["energy_ever_J"]) - ever / 2
    for name in ("read_interval", "start_cycle"):
        service(running, f"estimator/{name}")
    observer.wait_for_messages(TOTAL, 50)
    interval = json.loads(service(running, "estimator/read_interval").message)
    assert set(interval["joints"]) == set(JOINTS)
    assert 0.2 < interval["accounted_s"] < 20.0
    assert interval["total_J"] > 0
    service(running, "estimator/start_cycle")
    observer.wait(lambda: CYCLE in observer.latest, "energy/cycle")
    cycle = observer.status(CYCLE, "cycle")
    parts = float(cycle["motion_energy"]) + float(cycle["idle_energy"])
    assert float(cycle["total_energy"]) == pytest.approx(parts, rel=1e-3)
    assert float(cycle["duration"]) > 0.5


def shows_everything(series: set[str], messages: dict[str, Any]) -> bool:
    """Whether all layouts find their curves."""
    names = ("plotjuggler/energy.xml", "plotjuggler/energy_bag.xml")
    paths = foxglove_paths(LAYOUTS["foxglove/energy.json"])
    return all(plotjuggler_curves(LAYOUTS[name]) <= series for name in names) and all(
        np.isfinite(foxglove_value(messages, path)) for path in paths
    )


def newest_state(observer: Observer) -> float:
    """Stamp of the last message of the logger's joint states [s]."""
    return seconds_of(observer.history[STATES][-1].header.stamp)


def test_recording_by_service(running: Cell) -> None:
    observer = running.observer
    bag = Path(service(running, "logger/start_recording").message)
    began = time.time()
    again = service(running, "logger/start_recording")
    assert not again.success
    assert "still being recorded" in again.message
    publisher = observer.node.create_publisher(String, f"{NAMESPACE}/logger/mark", 10)
    observer.wait(lambda: publisher.get_subscription_count() > 0, "the subscriber")
    publisher.publish(String(data="part 17"))
    observer.wait(lambda: newest_state(observer) > began + 1.0, "a second of samples")
    assert service(running, "logger/split_recording").success
    observer.wait_for_messages(STATES, 10)
    answer = service(running, "logger/stop_recording")
    assert answer.success
    telemetry = read_bag(bag)
    assert f"{len(telemetry)} samples" in answer.message
    assert telemetry.info.robot == "ur5e"
    assert len(telemetry) > 400
    assert "part 17" in [event.text for event in read_events(bag)]


# A bag of a logger that was killed; the tests above need the logger, so these come last.


class Killed(NamedTuple):
    """A recovered bag, and reliability and durability that were offered live, by topic."""

    bag: Path
    offered: dict[str, tuple[int, int]]


@pytest.fixture(scope="module")
def killed(running: Cell) -> Killed:
    observer = running.observer
    bag = Path(service(running, "logger/start_recording").message)
    for _ in range(2):
        service(running, "estimator/start_cycle")
        observer.wait_for_messages(ENERGY, 50)
    observer.wait_for_messages(SUMMARY, 3)  # the bag is written by then
    offered = {
        topic: (int(each.qos_profile.reliability), int(each.qos_profile.durability))
        for topic in RECORDED
        for each in observer.node.get_publishers_info_by_topic(topic)
    }
    controller, process = running.children
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    running.stop(
        controller
    )  # it is not simulated beside the tests that only read the bag
    recover_bag(bag)
    return Killed(bag, offered)


def test_the_bag_equals_the_live_graph(running: Cell, killed: Killed) -> None:
    bag = killed.bag
    live = running.observer.latest
    info = read_bag(bag).info
    assert (info.namespace, info.tf_prefix) == (NAMESPACE, PREFIX)
    assert bag.name.startswith(f"ur5e_{info.serial}_")
    with Reader(bag) as reader:
        topics = {each.topic: each for each in reader.connections}
    assert set(RECORDED) <= set(topics)
    assert all(topic.startswith(f"{NAMESPACE}/") for topic in topics)
    for topic, kind in RECORDED.items():
        assert topics[topic].msgtype.replace("/msg/", "/") == kind
        profile = offered_qos(topics[topic])
        found = profile.reliability.value, profile.durability.value
        assert found == killed.offered[topic], topic
    messages = messages_of_bag(bag)
    for topic in (STATES, ENERGY):
        assert list(messages[topic].name) == list(live[topic].name)
    assert tuple(messages[STATES].name) == JOINTS
    assert tuple(messages[f"{NAMESPACE}/rtde/joint_telemetry"].joint_names) == (
        *JOINTS,
        "robot",
    )
    assert shows_everything(plotjuggler_series(messages), messages)
    assert shows_everything(plotjuggler_series(live), live)
    assert foxglove_topics(LAYOUTS["foxglove/energy.json"]) <= set(live)
    assert set(plotjuggler_subscriptions(LAYOUTS["plotjuggler/energy.xml"])) <= set(live)


def test_an_estimator_plays_the_bag_on_the_same_topics(
    cell: Cell, model: Path, killed: Killed
) -> None:
    for topic, kind in ((ENERGY, RECORDED[ENERGY]), (TOTAL, "std_msgs/Float64")):
        cell.observer.subscribe(topic, kind)
    cell.observer.subscribe("/diagnostics", "diagnostic_msgs/DiagnosticArray")
    given = {"model_file": str(model), "tf_prefix": PREFIX, "bag": str(killed.bag)}
    cell.start_node(
        EstimatorNode, namespace=NAMESPACE, source="bag", **LEARNING_OFF, **given
    )
    estimator = live(load_model(model), read_bag(killed.bag), 25)
    expected = counted(estimator)[estimator.channels.arm["total"]]
    assert ended(cell, TOTAL) == pytest.approx(expected, rel=1e-6)
    whole = estimate_energy(load_model(model), killed.bag).supply
    assert expected == pytest.approx(whole, rel=1e-6)
    assert tuple(cell.observer.latest[ENERGY].name) == energy_names(JOINTS)
