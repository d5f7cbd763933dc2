"""Layouts of PlotJuggler (XML) for live topics and for bags.

PlotJuggler shows the values of a JointState as <topic>/<name>/<field>. Source of the format:
PlotJuggler 3.9 and its ROS plugins 2.1 (January 2024) and later.
"""

from __future__ import annotations

from xml.etree import ElementTree as Xml

from ur_energy_model.layouts.arm_topics import COLORS, WINDOW, ArmTopics

STREAMER = "ROS2 Topic Subscriber"
SUBSCRIBER = {
    "use_header_stamp": "true",
    "discard_large_arrays": "true",
    "max_array_size": "100",
    "boolean_strings_to_number": "true",
    "remove_suffix_from_strings": "true",
}
"""Settings of the subscriber; those that a layout lacks are false or zero, not the defaults."""


def live_layout(arm: ArmTopics) -> str:
    """Layout with a subscription to the arm's energies."""
    root = _plots(arm)
    Xml.SubElement(root, "use_relative_time_offset", enabled="1")
    Xml.SubElement(root, "streaming_buffer_size", value=f"{WINDOW:g}")
    plugin = Xml.SubElement(Xml.SubElement(root, "Plugins"), "plugin", ID=STREAMER)
    for name, value in {**SUBSCRIBER, "selected_topics": arm.energies}.items():
        Xml.SubElement(plugin, name, value=value)
    Xml.SubElement(root, "previouslyLoaded_Datafiles")
    Xml.SubElement(root, "previouslyLoaded_Streamer", name=STREAMER)
    return _document(root)


def bag_layout(arm: ArmTopics) -> str:
    """Layout for a bag that is open already."""
    root = _plots(arm)
    Xml.SubElement(root, "use_relative_time_offset", enabled="1")
    Xml.SubElement(root, "Plugins")
    Xml.SubElement(root, "previouslyLoaded_Datafiles")
    return _document(root)


def _plots(arm: ArmTopics) -> Xml.Element:
    """One dock per plot; the plots zoom to their curves."""
    root = Xml.Element("root")
    widget = Xml.SubElement(root, "tabbed_widget", {"parent": "main_window", "name": "Main Window"})
    tab = Xml.SubElement(widget, "Tab", containers="1", tab_name="energy")
    plots = arm.plots()
    splitter = Xml.SubElement(
        Xml.SubElement(tab, "Container"),
        "DockSplitter",
        count=str(len(plots)),
        sizes=";".join(f"{1 / len(plots):.6f}" for _ in plots),
        orientation="-",
    )
    for title, curves in plots.items():
        area = Xml.SubElement(splitter, "DockArea", name=title)
        plot = Xml.SubElement(
            area, "plot", mode="TimeSeries", style="Lines", flip_x="false", flip_y="false"
        )
        Xml.SubElement(plot, "limitY")
        for curve, color in zip(curves, COLORS, strict=False):
            name = f"{arm.energies}/{curve.name}/{curve.field}"
            Xml.SubElement(plot, "curve", name=name, color=color)
    Xml.SubElement(widget, "currentTabIndex", index="0")
    return root


def _document(root: Xml.Element) -> str:
    Xml.indent(root)
    return "<?xml version='1.0' encoding='UTF-8'?>\n" + Xml.tostring(root, "unicode") + "\n"
