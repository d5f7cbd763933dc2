"""Layouts: every curve exists in a bag of energies, with namespace and prefix as stated."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree as Xml

import numpy as np
import pytest
import yaml

from test.energy.known_arm import ROBOT, known_model, motion
from test.layouts.viewers import (
    Messages,
    foxglove_paths,
    foxglove_topics,
    foxglove_value,
    messages_of_bag,
    plotjuggler_curves,
    plotjuggler_series,
    plotjuggler_subscriptions,
)
from test.telemetry.bag.bag_files import write_bag
from ur_energy_model.energy.energy_bag import write_energy_bag
from ur_energy_model.errors import InputError
from ur_energy_model.layouts.files import PURPOSES, SUBSCRIBER, ArmTopics, layout_files
from ur_energy_model.sinks.options import FOXGLOVE_PORT

JOINTS = tuple(ROBOT.joint_names)
CURVES = 20
PLOTJUGGLER = [name for name in PURPOSES if name.startswith("plotjuggler/")]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Messages:
    """Messages of the energy bag of a recording."""
    folder = tmp_path_factory.mktemp("bags")
    telemetry = motion(3.0)
    stamp = 1_700_000_000_000_000_000 + np.arange(len(telemetry)) * 2_000_000
    recording = write_bag(folder / "recording", replace(telemetry, stamp=stamp))
    write_energy_bag(known_model(), recording, folder / "energy")
    return messages_of_bag(folder / "energy")


@pytest.mark.parametrize("name", PLOTJUGGLER)
def test_plotjuggler_finds_every_curve_in_an_energy_bag(name: str, recorded: Messages) -> None:
    curves = plotjuggler_curves(layout_files(ArmTopics(JOINTS))[name])
    assert len(curves) == CURVES
    assert curves <= plotjuggler_series(recorded)


def test_foxglove_finds_every_path_in_an_energy_bag(recorded: Messages) -> None:
    layout = layout_files(ArmTopics(JOINTS))["foxglove/energy.json"]
    paths = foxglove_paths(layout)
    assert len(paths) == CURVES
    assert all(np.isfinite(foxglove_value(recorded, path)) for path in paths)


def test_both_viewers_show_the_same_values(recorded: Messages) -> None:
    """By legend: the index in a Foxglove path belongs to the name in PlotJuggler's curve."""
    arm = ArmTopics(JOINTS)
    message = recorded[arm.energies]
    for curves in arm.plots().values():
        for curve in curves:
            assert message.name[arm.index_of(curve)] == curve.name


@pytest.mark.parametrize("namespace", ["cell1", "/cell1", "cell1/"])
def test_namespace_and_prefix_are_in_every_name(namespace: str) -> None:
    files = layout_files(ArmTopics(JOINTS, namespace, "left_"))
    live = files["plotjuggler/energy.xml"]
    assert plotjuggler_subscriptions(live) == ["/cell1/energy"]
    curves = plotjuggler_curves(live)
    assert curves == plotjuggler_curves(files["plotjuggler/energy_bag.xml"])
    assert "/cell1/energy/left_elbow_joint/velocity" in curves
    assert all(curve.startswith("/cell1/energy/") for curve in curves)
    assert all(
        path.startswith("/cell1/energy.") for path in foxglove_paths(files["foxglove/energy.json"])
    )
    assert foxglove_topics(files["foxglove/energy.json"]) == {
        "/cell1/energy/markers",
        "/cell1/energy/summary",
        "/cell1/robot_description",
        "/diagnostics",
    }
    manager = yaml.safe_load(files["rviz/energy.rviz"])["Visualization Manager"]
    assert manager["Global Options"]["Fixed Frame"] == "left_base"
    assert manager["Displays"][2]["Topic"]["Value"] == "/cell1/energy/markers"


def test_the_live_layout_states_all_settings_of_the_subscriber() -> None:
    """PlotJuggler takes false and zero, not its defaults, for settings that are missing."""
    root = Xml.fromstring(layout_files(ArmTopics(JOINTS))["plotjuggler/energy.xml"])
    (plugin,) = root.iter("plugin")
    assert plugin.attrib["ID"] == "ROS2 Topic Subscriber"
    settings = {child.tag: child.attrib["value"] for child in plugin}
    assert settings == {**SUBSCRIBER, "selected_topics": "/energy"}
    assert int(settings["max_array_size"]) > 0


def test_the_server_layout_subscribes_at_the_default_address() -> None:
    root = Xml.fromstring(layout_files(ArmTopics(JOINTS))["plotjuggler/energy_server.xml"])
    (client,) = root.iter("foxglove_client")
    assert client.attrib["address"] == "127.0.0.1"
    assert int(client.attrib["port"]) == FOXGLOVE_PORT
    assert [topic.attrib["name"] for topic in client.iter("topic")] == ["/energy"]
    (plugin,) = root.iter("plugin")
    streamer = root.find("previouslyLoaded_Streamer")
    assert streamer is not None
    assert plugin.attrib["ID"] == streamer.attrib["name"] == "Foxglove ROS2 Bridge"


@pytest.mark.parametrize("name", PLOTJUGGLER)
def test_parts_of_plotjuggler_are_as_many_as_stated(name: str) -> None:
    root = Xml.fromstring(layout_files(ArmTopics(JOINTS))[name])
    for splitter in root.iter("DockSplitter"):
        sizes = [float(size) for size in splitter.attrib["sizes"].split(";")]
        assert len(sizes) == len(splitter) == int(splitter.attrib["count"])
        assert sum(sizes) == pytest.approx(1.0, abs=1e-5)
    assert len(list(root.iter("DockArea"))) == len(ArmTopics(JOINTS).plots())


def test_the_bag_layout_starts_no_subscription() -> None:
    root = Xml.fromstring(layout_files(ArmTopics(JOINTS))["plotjuggler/energy_bag.xml"])
    assert root.find("previouslyLoaded_Streamer") is None
    assert not list(root.iter("plugin"))


def test_every_panel_of_foxglove_is_placed() -> None:
    layout = json.loads(layout_files(ArmTopics(JOINTS))["foxglove/energy.json"])

    def named(node: Any) -> list[str]:
        return [node] if isinstance(node, str) else named(node["first"]) + named(node["second"])

    assert sorted(named(layout["layout"])) == sorted(layout["configById"])


def test_every_file_has_a_purpose() -> None:
    assert set(layout_files(ArmTopics(JOINTS))) == set(PURPOSES)


@pytest.mark.parametrize("namespace", ["1cell", "a//b", "a b", "ä", "cell;x", 'cell"'])
def test_names_that_ros_refuses_are_refused(namespace: str) -> None:
    with pytest.raises(InputError, match="--namespace"):
        ArmTopics(JOINTS, namespace)


@pytest.mark.parametrize("prefix", ["left-", "1_", "a b", '<&"', "ä/"])
def test_a_prefix_is_as_in_the_messages(prefix: str) -> None:
    """Nodes replace characters in names of topics only, of which layouts use none of a joint."""
    files = layout_files(ArmTopics(JOINTS, "", prefix))
    assert f"/energy/{prefix}elbow_joint/velocity" in plotjuggler_curves(
        files["plotjuggler/energy.xml"]
    )
    manager = yaml.safe_load(files["rviz/energy.rviz"])["Visualization Manager"]
    assert manager["Global Options"]["Fixed Frame"] == f"{prefix}base"
