"""Layouts of PlotJuggler (XML) for live topics of ROS, for a Foxglove server, and for bags.

PlotJuggler shows the values of a JointState as <topic>/<name>/<field>. Source of the format:
PlotJuggler 3.9 and its ROS plugins 2.1 (January 2024) and later; 3.17 for the Foxglove server.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.etree import ElementTree as Xml

from ur_energy_model.layouts.arm_topics import COLORS, JOINT_PLOTS, WINDOW, ArmTopics, Curve

STREAMER = "ROS2 Topic Subscriber"
FOXGLOVE_STREAMER = "Foxglove ROS2 Bridge"
FOXGLOVE_CLIENT = {
    "address": "127.0.0.1",
    "port": "8765",
    "max_array_size": "500",
    "clamp_large_arrays": "0",
    "use_timestamp": "1",
}
"""Settings of the client; the time is that of the samples."""
SUBSCRIBER = {
    "use_header_stamp": "true",
    "discard_large_arrays": "true",
    "max_array_size": "100",
    "boolean_strings_to_number": "true",
    "remove_suffix_from_strings": "true",
}
"""Settings of the subscriber; those that a layout lacks are false or zero, not the defaults."""


def live_layout(arm: ArmTopics) -> str:
    """Layout with a subscription to the arm's energies in ROS."""
    root, plugin = _streaming(arm, STREAMER)
    for name, value in {**SUBSCRIBER, "selected_topics": arm.energies}.items():
        Xml.SubElement(plugin, name, value=value)
    return _document(root)


def server_layout(arm: ArmTopics) -> str:
    """Layout with a subscription to the arm's energies at a Foxglove server."""
    root, plugin = _streaming(arm, FOXGLOVE_STREAMER)
    client = Xml.SubElement(plugin, "foxglove_client", FOXGLOVE_CLIENT)
    Xml.SubElement(Xml.SubElement(client, "topics"), "topic", name=arm.energies)
    return _document(root)


def bag_layout(arm: ArmTopics) -> str:
    """Layout for a bag that is open already."""
    root = _plots(arm)
    Xml.SubElement(root, "use_relative_time_offset", enabled="1")
    Xml.SubElement(root, "Plugins")
    Xml.SubElement(root, "previouslyLoaded_Datafiles")
    return _document(root)


def _streaming(arm: ArmTopics, streamer: str) -> tuple[Xml.Element, Xml.Element]:
    """A layout that starts a streamer, and the element for the streamer's settings."""
    root = _plots(arm)
    Xml.SubElement(root, "use_relative_time_offset", enabled="1")
    Xml.SubElement(root, "streaming_buffer_size", value=f"{WINDOW:g}")
    plugin = Xml.SubElement(Xml.SubElement(root, "Plugins"), "plugin", ID=streamer)
    Xml.SubElement(root, "previouslyLoaded_Datafiles")
    Xml.SubElement(root, "previouslyLoaded_Streamer", name=streamer)
    return root, plugin


def _plots(arm: ArmTopics) -> Xml.Element:
    """One dock per plot, those of the joints in a column of their own; plots zoom to curves."""
    root = Xml.Element("root")
    widget = Xml.SubElement(root, "tabbed_widget", {"parent": "main_window", "name": "Main Window"})
    tab = Xml.SubElement(widget, "Tab", containers="1", tab_name="energy")
    plots = arm.plots()
    columns = _splitter(Xml.SubElement(tab, "Container"), "|", 2)
    _column(
        columns, {title: each for title, each in plots.items() if title not in JOINT_PLOTS}, arm
    )
    _column(columns, {title: plots[title] for title in JOINT_PLOTS}, arm)
    Xml.SubElement(widget, "currentTabIndex", index="0")
    return root


def _column(parent: Xml.Element, plots: Mapping[str, Sequence[Curve]], arm: ArmTopics) -> None:
    splitter = _splitter(parent, "-", len(plots))
    for title, curves in plots.items():
        area = Xml.SubElement(splitter, "DockArea", name=title)
        plot = Xml.SubElement(
            area, "plot", mode="TimeSeries", style="Lines", flip_x="false", flip_y="false"
        )
        Xml.SubElement(plot, "limitY")
        for curve, color in zip(curves, COLORS, strict=False):
            name = f"{arm.energies}/{curve.name}/{curve.field}"
            Xml.SubElement(plot, "curve", name=name, color=color)


def _splitter(parent: Xml.Element, orientation: str, count: int) -> Xml.Element:
    """Parts of equal size, side by side ("|") or one above the other ("-")."""
    sizes = ";".join([f"{1 / count:.6f}"] * count)
    return Xml.SubElement(
        parent, "DockSplitter", orientation=orientation, count=str(count), sizes=sizes
    )


def _document(root: Xml.Element) -> str:
    Xml.indent(root)
    return "<?xml version='1.0' encoding='UTF-8'?>\n" + Xml.tostring(root, "unicode") + "\n"
