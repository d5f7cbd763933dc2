"""Layouts of PlotJuggler, Foxglove and rviz for the topics of the estimator."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree as Xml

import yaml

from ur_energy_model.nodes import topics_and_services as topics

COLORS = ("#1f77b4", "#d62728", "#2ca02c", "#ff7f0e", "#9467bd", "#17becf", "#7f7f7f", "#000000")
WINDOW = 60.0
"""Time span of the plots [s]."""

MARKERS = topics.ENERGY_MARKERS.absolute_name
ROBOT_DESCRIPTION = topics.ROBOT_DESCRIPTION.absolute_name


def plots(joints: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
    """Curves of each plot by title, as pairs of topic and legend."""
    return {
        "Whole arm [W]": [
            (topics.TOTAL_POWER.absolute_name, "model"),
            (topics.BUS_POWER.absolute_name, "measured"),
            (topics.STANDBY_POWER.absolute_name, "standby"),
        ],
        "Joints [W]": [
            (topics.JOINT_POWER.for_joint(joint).absolute_name, joint) for joint in joints
        ],
        "Energy since reset [J]": [
            (topics.TOTAL_ENERGY.absolute_name, "model"),
            (topics.BUS_ENERGY.absolute_name, "measured"),
        ],
        "Joint energy since reset [J]": [
            (topics.JOINT_ENERGY.for_joint(joint).absolute_name, joint) for joint in joints
        ],
        "Model minus measured [W]": [(topics.RESIDUAL_POWER.absolute_name, "residual")],
    }


def plotjuggler(joints: Sequence[str]) -> str:
    """PlotJuggler layout (XML): one dock per plot, fed by its ROS 2 subscriber."""
    root = Xml.Element("root")
    widget = Xml.SubElement(root, "tabbed_widget", {"parent": "main_window", "name": "Main Window"})
    tab = Xml.SubElement(widget, "Tab", containers="1", tab_name="energy")
    groups = plots(joints)
    share = ";".join(f"{1 / len(groups):.6f}" for _ in groups)
    splitter = Xml.SubElement(
        Xml.SubElement(tab, "Container"),
        "DockSplitter",
        count=str(len(groups)),
        sizes=share,
        orientation="-",
    )
    for title, curves in groups.items():
        area = Xml.SubElement(splitter, "DockArea", name=title)
        plot = Xml.SubElement(
            area, "plot", mode="TimeSeries", style="Lines", flip_x="false", flip_y="false"
        )
        Xml.SubElement(plot, "range", left="0", right=f"{WINDOW:g}", bottom="-50", top="300")
        Xml.SubElement(plot, "limitY")
        for (topic, _), color in zip(curves, COLORS, strict=False):
            Xml.SubElement(plot, "curve", name=f"{topic}/data", color=color)
    Xml.SubElement(widget, "currentTabIndex", index="0")
    Xml.SubElement(root, "use_relative_time_offset", enabled="1")
    plugin = Xml.SubElement(Xml.SubElement(root, "Plugins"), "plugin", ID="ROS2 Topic Subscriber")
    selected = Xml.SubElement(plugin, "selected_topics")
    for curves in groups.values():
        for topic, _ in curves:
            Xml.SubElement(selected, "topic", name=topic)
    Xml.SubElement(root, "previouslyLoaded_Datafiles")
    Xml.SubElement(root, "previouslyLoaded_Streamer", name="ROS2 Topic Subscriber")
    Xml.indent(root)
    return "<?xml version='1.0' encoding='UTF-8'?>\n" + Xml.tostring(root, "unicode") + "\n"


def foxglove(joints: Sequence[str]) -> str:
    """Foxglove layout (JSON): plots, the arm in 3D, diagnostics."""
    panels: dict[str, Any] = {}
    for number, (title, curves) in enumerate(plots(joints).items()):
        panels[f"Plot!energy{number}"] = {
            "title": title,
            "paths": [
                {
                    "value": f"{topic}.data",
                    "label": legend,
                    "enabled": True,
                    "color": color,
                    "timestampMethod": "receiveTime",
                }
                for (topic, legend), color in zip(curves, COLORS, strict=False)
            ],
            "showLegend": True,
            "legendDisplay": "floating",
            "xAxisVal": "timestamp",
            "followingViewWidth": WINDOW,
            "isSynced": True,
        }
    panels["3D!arm"] = {
        "followTf": "base",
        "topics": {MARKERS: {"visible": True}, ROBOT_DESCRIPTION: {"visible": True}},
        "layers": {
            "grid": {
                "visible": True,
                "label": "Grid",
                "instanceId": "grid",
                "layerId": "foxglove.Grid",
                "size": 2,
                "divisions": 10,
            },
        },
    }
    panels["DiagnosticSummary!energy"] = {
        "topicToRender": topics.DIAGNOSTICS.absolute_name,
        "minLevel": 0,
    }
    panels["DiagnosticSummary!summary"] = {
        "topicToRender": topics.ENERGY_SUMMARY.absolute_name,
        "minLevel": 0,
    }
    names = list(panels)
    layout = {
        "configById": panels,
        "globalVariables": {},
        "userNodes": {},
        "playbackConfig": {"speed": 1},
        "layout": {
            "direction": "row",
            "first": _stacked(names[: len(names) - 3]),
            "second": _stacked(names[len(names) - 3 :]),
            "splitPercentage": 60,
        },
    }
    return json.dumps(layout, indent=2) + "\n"


def rviz() -> str:
    """Configuration of rviz (YAML): markers, robot model, grid, in frame `base`."""

    def topic(name: str, durability: str) -> dict[str, Any]:
        return {
            "Value": name,
            "Depth": 5,
            "History Policy": "Keep Last",
            "Reliability Policy": "Reliable",
            "Durability Policy": durability,
        }

    layout = {
        "Panels": [{"Class": "rviz_common/Displays", "Name": "Displays"}],
        "Visualization Manager": {
            "Class": "",
            "Global Options": {"Fixed Frame": "base", "Frame Rate": 30},
            "Displays": [
                {
                    "Class": "rviz_default_plugins/Grid",
                    "Name": "Grid",
                    "Enabled": True,
                    "Cell Size": 0.25,
                    "Plane Cell Count": 12,
                },
                {
                    "Class": "rviz_default_plugins/RobotModel",
                    "Name": "Arm",
                    "Enabled": True,
                    "Description Source": "Topic",
                    "Alpha": 0.6,
                    "Description Topic": topic(ROBOT_DESCRIPTION, "Transient Local"),
                },
                {
                    "Class": "rviz_default_plugins/MarkerArray",
                    "Name": "Power",
                    "Enabled": True,
                    "Topic": topic(MARKERS, "Volatile"),
                },
            ],
            "Tools": [{"Class": "rviz_default_plugins/MoveCamera"}],
            "Views": {
                "Current": {
                    "Class": "rviz_default_plugins/Orbit",
                    "Name": "Current View",
                    "Distance": 2.5,
                    "Pitch": 0.4,
                    "Yaw": 0.8,
                    "Target Frame": "base",
                },
            },
        },
    }
    return yaml.safe_dump(layout, sort_keys=False)


def _stacked(names: Sequence[str]) -> Any:
    """Panels in one column, as a tree of splits."""
    if len(names) == 1:
        return names[0]
    return {
        "direction": "column",
        "first": names[0],
        "second": _stacked(names[1:]),
        "splitPercentage": 100 / len(names),
    }
