"""Logger and estimator with a simulated controller, each in a process of its own."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml
from rosbags.rosbag2 import Reader
from std_msgs.msg import String

from test.energy.known_arm import ROBOT, known_model
from test.layouts.viewers import (
    STORE,
    foxglove_paths,
    foxglove_topics,
    foxglove_value,
    messages_of_bag,
    plotjuggler_curves,
    plotjuggler_series,
)
from test.nodes.conftest import Cell
from ur_energy_model.energy.topics import energy_names
from ur_energy_model.files import config_file
from ur_energy_model.model.model_file import save_model
from ur_energy_model.nodes.ros import seconds_of
from ur_energy_model.telemetry.bag.reader import read_bag, read_events
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.topics_and_services import live_topics

JOINTS = ROBOT.joint_names


@pytest.fixture(scope="module")
def cell(
    tmp_path_factory: pytest.TempPathFactory,
    fresh_host: Callable[[], str],
    fresh_domain_of_module: Callable[[], int],
) -> Iterator[Cell]:
    """Simulated controller, logger and estimator, all publishing."""
    folder = tmp_path_factory.mktemp("cell")
    save_model(known_model(), folder / "model.yaml")
    made, host = Cell(folder, fresh_domain_of_module()), fresh_host()
    try:
        made.start_process("simulated_robot", host=host, motion="trajectory_b")
        bags = str(folder / "bags")
        made.start_process("logger", robot_ip=host, bag_directory=bags, record=False)
        made.start_process(
            "estimator",
            robot_ip=host,
            model_file=str(folder / "model.yaml"),
            state_file=str(folder / "state.json"),
            publish_robot_description=True,
        )
        observer = made.observer
        for topic, kind in live_topics(JOINTS).items():
            observer.subscribe(topic, kind)
        observer.subscribe("/joint_states", "sensor_msgs/JointState")
        observer.subscribe("/robot_description", "std_msgs/String", latched=True)
        at_events = {"/energy/cycle", "/energy/prediction", "/energy/optimized_trajectory"}
        awaited = {*live_topics(JOINTS), "/joint_states"} - at_events
        observer.wait(lambda: awaited <= set(observer.latest), "all topics")
        yield made
    finally:
        made.close()


def figure(cell: Cell, name: str, key: str) -> float:
    cell.observer.next_message("/energy/summary")
    return float(cell.observer.status("/energy/summary", name)[key])


def test_joint_states_come_at_the_publish_rate(cell: Cell) -> None:
    """By their stamps, since an observer of all topics may receive messages late or lose some."""
    cell.observer.wait_for_messages("/joint_states", 30)
    stamps = [seconds_of(m.header.stamp) for m in cell.observer.history["/joint_states"][-30:]]
    assert np.median(np.diff(stamps)) == pytest.approx(0.02, abs=0.003)


def test_total_energy_never_decreases(cell: Cell) -> None:
    cell.observer.wait_for_messages("/energy/total/energy", 50)
    energies = [message.data for message in cell.observer.history["/energy/total/energy"]]
    assert energies == sorted(energies)
    assert energies[-1] > energies[0]


def test_stamped_energies_have_the_times_of_samples(cell: Cell) -> None:
    cell.observer.wait_for_messages("/energy", 30)
    messages = cell.observer.history["/energy"][-30:]
    assert all(tuple(message.name) == energy_names(JOINTS) for message in messages)
    stamps = [seconds_of(message.header.stamp) for message in messages]
    assert np.median(np.diff(stamps)) == pytest.approx(0.02, abs=0.003)
    totals = cell.observer.history["/energy/total/energy"]
    total = messages[-1].name.index("total")
    assert messages[0].position[total] in [message.data for message in totals]


def test_power_is_the_slope_of_energy(cell: Cell) -> None:
    def figures() -> tuple[float, float, float]:
        cell.observer.next_message("/energy/summary")
        total = cell.observer.status("/energy/summary", "total")
        time = cell.observer.status("/energy/summary", "counters")["accounted_ever_s"]
        return float(time), float(total["energy_ever_J"]), float(total["power_W"])

    (before, low, _), (after, high, power) = figures(), figures()
    assert power == pytest.approx((high - low) / (after - before), rel=1e-3)


def test_diagnostics_report_rates(cell: Cell) -> None:
    observer = cell.observer
    for name in ("estimator: source", "logger: connection"):
        status = observer.wait(
            lambda name=name: (s := observer.status("/diagnostics", name))["level"] == "0" and s,  # type: ignore[misc]
            f"{name} to be well",
        )
        assert 300 < float(status["rate_Hz"]) < 700
        assert status["identity"].startswith("serial ")


def test_markers_and_robot_description(cell: Cell) -> None:
    array = cell.observer.next_message("/energy/markers")
    balls = [m for m in array.markers if m.ns == "joint_power"]
    assert len(balls) == 6
    assert {m.header.frame_id for m in array.markers} == {"base"}
    (text,) = [m.text for m in array.markers if m.ns == "total_power"]
    assert re.fullmatch(r"-?\d+ W", text)
    cell.observer.wait(lambda: "/robot_description" in cell.observer.latest, "robot_description")
    root = ElementTree.fromstring(cell.observer.latest["/robot_description"].data.split("?>")[1])
    assert "base" in {link.get("name") for link in root.iter("link")}


def test_reset_sets_the_counters_since_reset_to_zero(cell: Cell) -> None:
    ever = figure(cell, "total", "energy_ever_J")
    answer = cell.observer.call("/estimator/reset_energy")
    assert answer.success
    observer = cell.observer
    observer.wait(
        lambda: observer.status("/energy/summary", "counters")["reset_reason"] == "service call",
        "the reset",
    )
    total = observer.status("/energy/summary", "total")
    assert float(total["energy_J"]) < float(total["energy_ever_J"]) - ever / 2


def test_the_interval_service_answers_figures(cell: Cell) -> None:
    cell.observer.call("/estimator/read_interval")
    cell.observer.wait_for_messages("/energy/total/energy", 50)
    interval = json.loads(cell.observer.call("/estimator/read_interval").message)
    assert set(interval["joints"]) == set(JOINTS)
    assert 0.2 < interval["accounted_s"] < 20.0
    assert interval["total_J"] > 0


def test_cycles_by_service(cell: Cell) -> None:
    observer = cell.observer
    observer.call("/estimator/start_cycle")
    observer.wait_for_messages("/energy/total/energy", 50)
    observer.call("/estimator/start_cycle")
    observer.wait(lambda: "/energy/cycle" in observer.latest, "energy/cycle")
    cycle = observer.status("/energy/cycle", "cycle")
    parts = float(cycle["motion_energy"]) + float(cycle["idle_energy"])
    assert float(cycle["total_energy"]) == pytest.approx(parts, rel=1e-3)
    assert float(cycle["duration"]) > 0.5


def test_recording_by_service(cell: Cell) -> None:
    observer = cell.observer
    bag = Path(observer.call("/logger/start_recording").message)
    again = observer.call("/logger/start_recording")
    assert not again.success
    assert "still being recorded" in again.message
    publisher = observer.node.create_publisher(String, "/logger/mark", 10)
    observer.wait(lambda: publisher.get_subscription_count() > 0, "the subscriber")
    publisher.publish(String(data="part 17"))
    observer.wait_for_messages("/joint_states", 40)
    assert observer.call("/logger/split_recording").success
    observer.wait_for_messages("/joint_states", 10)
    answer = observer.call("/logger/stop_recording")
    assert answer.success
    telemetry = read_bag(bag)
    assert f"{len(telemetry)} samples" in answer.message
    assert telemetry.info.robot == "ur5e"
    assert len(telemetry) > 400
    assert "part 17" in [event.text for event in read_events(bag)]
    assert_energies_are_recorded(bag, telemetry)


def assert_energies_are_recorded(bag: Path, telemetry: Telemetry) -> None:
    """At the times of samples, with increasing energy, for all curves of the layouts."""
    assert telemetry.stamp is not None
    times, totals = [], []
    with Reader(bag) as reader:
        wanted = [each for each in reader.connections if each.topic == "/energy"]
        for connection, time, raw in reader.messages(wanted):
            message = STORE.deserialize_cdr(raw, connection.msgtype)
            assert tuple(message.name) == energy_names(JOINTS)
            times.append(time)
            totals.append(message.position[message.name.index("total")])
    assert len(times) > 20
    late = (
        1_000_000_000  # on a busy machine, messages of samples before the bag come after its start
    )
    first, last = telemetry.stamp[0] - late, telemetry.stamp[-1] + late
    within = [time for time in times if first <= time <= last]
    assert len(within) > 0.8 * len(times)
    assert totals == sorted(totals)
    assert totals[-1] > totals[0]
    messages = messages_of_bag(bag)
    assert "/energy/summary" in messages
    series = plotjuggler_series(messages)
    assert plotjuggler_curves(config_file("plotjuggler", "energy_bag.xml").read_text()) <= series
    paths = foxglove_paths(config_file("foxglove", "energy.json").read_text())
    assert all(np.isfinite(foxglove_value(messages, path)) for path in paths)
    assert f"/rtde/fields/actual_current/{JOINTS[0]}/position" in series


def test_the_layouts_show_live_topics(cell: Cell) -> None:
    cell.observer.wait(lambda: "/robot_description" in cell.observer.latest, "robot_description")
    for name in ("energy.xml", "energy_bag.xml"):
        layout = config_file("plotjuggler", name).read_text()
        assert plotjuggler_curves(layout) <= plotjuggler_series(cell.observer.latest)
    assert_foxglove_shows(config_file("foxglove", "energy.json").read_text(), cell.observer.latest)


def assert_foxglove_shows(layout: str, messages: dict[str, Any]) -> None:
    assert all(np.isfinite(foxglove_value(messages, path)) for path in foxglove_paths(layout))
    assert foxglove_topics(layout) <= set(messages)


def test_every_topic_of_the_rviz_configuration_exists(cell: Cell) -> None:
    cell.observer.wait(lambda: "/robot_description" in cell.observer.latest, "robot_description")
    layout = yaml.safe_load(config_file("rviz", "energy.rviz").read_text())
    manager = layout["Visualization Manager"]
    topics = {
        display[key]["Value"]
        for display in manager["Displays"]
        for key in ("Topic", "Description Topic")
        if key in display
    }
    assert topics == {"/energy/markers", "/robot_description"}
    assert topics <= set(cell.observer.latest)
    frames = {m.header.frame_id for m in cell.observer.latest["/energy/markers"].markers}
    assert manager["Global Options"]["Fixed Frame"] in frames
