# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The layout files of one arm: made here where they name its topics, else those of config/."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from xml.etree import ElementTree as Xml

import yaml

from ur_energy_model import topics_and_services as topics
from ur_energy_model.energy.topics import MODEL_PARTS, energy_names
from ur_energy_model.errors import InputError
from ur_energy_model.files import config_file

# ArmTopics: topics, frames and plots of one arm in a cell.

COLORS = (
    "#1f77b4",
    "#d62728",
    "#2ca02c",
    "#ff7f0e",
    "#9467bd",
    "#17becf",
    "#7f7f7f",
    "#000000",
)
WINDOW = 60.0  # time span of the plots [s]
JOINT_PLOTS = ("Joints [W]", "Joint energy since reset [J]")
"""Titles of the plots with a curve per joint."""
# fields of the topic energy
ENERGY = "position"
POWER = "velocity"
_NAMESPACE = re.compile(r"(/?[A-Za-z_]\w*(/[A-Za-z_]\w*)*/?)?", re.ASCII)


class Curve(NamedTuple):
    """A curve of the topic energy: its name there, ENERGY or POWER, and the legend for the user."""

    name: str
    field: str
    legend: str


@dataclass(frozen=True)
class ArmTopics:
    """Topics, frames and plots of one arm.

    Raises:
        InputError: ROS does not allow such a namespace.
    """

    joint_names: tuple[str, ...]  # of the robot, without prefix
    namespace: str = ""  # of the nodes; empty for none
    # of joints and frames, as the parameter of the nodes, with any characters: the topic
    # energy and the frames keep them
    tf_prefix: str = ""

    def __post_init__(self) -> None:
        if not _NAMESPACE.fullmatch(self.namespace):
            remedy = "use letters, digits and _, and begin with no digit"
            raise InputError(
                "--namespace", f"'{self.namespace}' is not a ROS name", remedy
            )

    def name_of(self, topic: topics.Topic) -> str:
        """Full name of a topic."""
        spaces = [] if topic.name.startswith("/") else self.namespace.split("/")
        return "/".join(("", *filter(None, spaces), topic.name.lstrip("/")))

    @property
    def base_frame(self) -> str:
        """Frame of the arm's base."""
        return f"{self.tf_prefix}base"

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the joints, prefix included."""
        return tuple(self.tf_prefix + joint for joint in self.joint_names)

    @property
    def energies(self) -> str:
        """Full name of the topic energy, which holds every curve."""
        return self.name_of(topics.ENERGY)

    def plots(self) -> dict[str, tuple[Curve, ...]]:
        """Curves of each plot, by its title."""
        return {
            "Whole arm [W]": (
                Curve("total", POWER, "total"),
                Curve("model", POWER, "model"),
                *(Curve(part, POWER, part) for part in MODEL_PARTS),
            ),
            JOINT_PLOTS[0]: tuple(Curve(joint, POWER, joint) for joint in self.joints),
            "Energy since reset [J]": (
                Curve("total", ENERGY, "total"),
                Curve("model", ENERGY, "model"),
            ),
            JOINT_PLOTS[1]: tuple(Curve(joint, ENERGY, joint) for joint in self.joints),
            "Unexplained: total less model [W]": (
                Curve("unexplained", POWER, "unexplained"),
            ),
        }


# Layout of Foxglove (JSON): plots, the arm in 3D, diagnostics.

ARM = "3D!arm"
LEGEND_WIDTH = 190  # width of a plot's legend, beside its curves
CAMERA = {
    "distance": 2.6,
    "perspective": True,
    "phi": 65,
    "thetaOffset": 45,
    "targetOffset": [0, 0, 0.35],
    "target": [0, 0, 0],
    "targetOrientation": [0, 0, 0, 1],
    "fovy": 45,
    "near": 0.01,
    "far": 100,
}
"""View of a whole arm [m, deg]."""


def foxglove_layout(arm: ArmTopics) -> str:
    """The layout, for live topics and for bags.

    The arm in 3D needs robot_description as a topic, and its transforms.
    """
    panels: dict[str, Any] = {}
    names = energy_names(arm.joints)
    for number, (title, curves) in enumerate(arm.plots().items()):
        panels[f"Plot!energy{number}"] = {
            **_titled(title),
            "paths": [
                {
                    "value": f"{arm.energies}.{curve.field}[{names.index(curve.name)}]",
                    "label": curve.legend,
                    "enabled": True,
                    "color": color,
                    "timestampMethod": "headerStamp",
                }
                for curve, color in zip(curves, COLORS, strict=False)
            ],
            "showLegend": True,
            "legendDisplay": "left",
            "sidebarDimension": LEGEND_WIDTH,
            "xAxisVal": "timestamp",
            "followingViewWidth": WINDOW,
            "isSynced": True,
        }
    plots = list(panels)
    panels[ARM] = _arm_in_3d(arm)
    for name, topic, title in (
        ("energy", topics.DIAGNOSTICS, "Health"),
        ("summary", topics.ENERGY_SUMMARY, "Summary"),
    ):
        panels[f"DiagnosticSummary!{name}"] = {
            **_titled(title),
            "topicToRender": arm.name_of(topic),
            "minLevel": 0,
        }
    layout = {
        "configById": panels,
        "globalVariables": {},
        "userNodes": {},
        "playbackConfig": {"speed": 1},
        "layout": {
            "direction": "row",
            "first": _stacked(plots),
            "second": {
                "direction": "column",
                "first": ARM,
                "second": _stacked(
                    [name for name in panels if name not in (*plots, ARM)]
                ),
                "splitPercentage": 55,
            },
            "splitPercentage": 60,
        },
    }
    return json.dumps(layout, indent=2) + "\n"


def _arm_in_3d(arm: ArmTopics) -> dict[str, Any]:
    grid = {
        "visible": True,
        "label": "Grid",
        "instanceId": "grid",
        "layerId": "foxglove.Grid",
        "size": 2,
        "divisions": 10,
    }
    # A layer, since only /robot_description without namespace is shown by itself.
    robot = {
        "visible": True,
        "label": "Arm",
        "instanceId": "arm",
        "layerId": "foxglove.Urdf",
        "sourceType": "topic",
        "topic": arm.name_of(topics.ROBOT_DESCRIPTION),
        "framePrefix": "",
        "displayMode": "auto",
    }
    return {
        **_titled("Arm, coloured by power"),
        "followTf": arm.base_frame,
        "cameraState": CAMERA,
        "scene": {"transforms": {"showLabel": False, "axisScale": 0.15}},
        "topics": {arm.name_of(topics.ENERGY_MARKERS): {"visible": True}},
        "layers": {"grid": grid, "arm": robot},
    }


def _titled(title: str) -> dict[str, str]:
    """Title of a panel; Lichtblick has another key than Foxglove."""
    return {"foxglovePanelTitle": title, "lichtblickPanelTitle": title}


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


# Layouts of PlotJuggler (XML) for live topics of ROS, for a Foxglove server, and for
# bags. PlotJuggler shows the values of a JointState as <topic>/<name>/<field>. Source of
# the format: PlotJuggler 3.9 and its ROS plugins 2.1 (January 2024) and later; 3.17 for
# the Foxglove server.

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
    Xml.SubElement(root, "Plugins")
    Xml.SubElement(root, "previouslyLoaded_Datafiles")
    return _document(root)


def _streaming(arm: ArmTopics, streamer: str) -> tuple[Xml.Element, Xml.Element]:
    """A layout that starts a streamer, and the element for the streamer's settings."""
    root = _plots(arm)
    Xml.SubElement(root, "streaming_buffer_size", value=f"{WINDOW:g}")
    plugin = Xml.SubElement(Xml.SubElement(root, "Plugins"), "plugin", ID=streamer)
    Xml.SubElement(root, "previouslyLoaded_Datafiles")
    Xml.SubElement(root, "previouslyLoaded_Streamer", name=streamer)
    return root, plugin


def _plots(arm: ArmTopics) -> Xml.Element:
    """One dock per plot, those of the joints in a column of their own; plots zoom to curves."""
    root = Xml.Element("root")
    widget = Xml.SubElement(
        root, "tabbed_widget", {"parent": "main_window", "name": "Main Window"}
    )
    tab = Xml.SubElement(widget, "Tab", containers="1", tab_name="energy")
    columns = _splitter(Xml.SubElement(tab, "Container"), "|", 2)
    plots = arm.plots()
    for titles in ([title for title in plots if title not in JOINT_PLOTS], JOINT_PLOTS):
        column = _splitter(columns, "-", len(titles))
        for title in titles:
            area = Xml.SubElement(column, "DockArea", name=title)
            style = {
                "mode": "TimeSeries",
                "style": "Lines",
                "flip_x": "false",
                "flip_y": "false",
            }
            plot = Xml.SubElement(area, "plot", style)
            Xml.SubElement(plot, "limitY")
            for curve, color in zip(plots[title], COLORS, strict=False):
                name = f"{arm.energies}/{curve.name}/{curve.field}"
                Xml.SubElement(plot, "curve", name=name, color=color)
    Xml.SubElement(widget, "currentTabIndex", index="0")
    Xml.SubElement(root, "use_relative_time_offset", enabled="1")
    return root


def _splitter(parent: Xml.Element, orientation: str, count: int) -> Xml.Element:
    """Parts of equal size, side by side ("|") or one above the other ("-")."""
    sizes = ";".join([f"{1 / count:.6f}"] * count)
    return Xml.SubElement(
        parent, "DockSplitter", orientation=orientation, count=str(count), sizes=sizes
    )


def _document(root: Xml.Element) -> str:
    Xml.indent(root)
    return (
        "<?xml version='1.0' encoding='UTF-8'?>\n" + Xml.tostring(root, "unicode") + "\n"
    )


# Configuration of rviz (YAML): markers of power, robot model, grid.


def rviz_layout(arm: ArmTopics) -> str:
    """The configuration; its fixed frame is the arm's base."""

    def topic(of: topics.Topic) -> dict[str, Any]:
        return {
            "Value": arm.name_of(of),
            "Depth": 5,
            "History Policy": "Keep Last",
            "Reliability Policy": "Reliable",
            "Durability Policy": "Transient Local" if of.latched else "Volatile",
        }

    def display(kind: str, name: str, **settings: Any) -> dict[str, Any]:
        return {
            "Class": f"rviz_default_plugins/{kind}",
            "Name": name,
            "Enabled": True,
            **settings,
        }

    described = {
        "Description Source": "Topic",
        "Alpha": 0.6,
        "Description Topic": topic(topics.ROBOT_DESCRIPTION),
    }
    layout = {
        "Panels": [{"Class": "rviz_common/Displays", "Name": "Displays"}],
        "Visualization Manager": {
            "Class": "",
            "Global Options": {"Fixed Frame": arm.base_frame, "Frame Rate": 30},
            "Displays": [
                display("Grid", "Grid", **{"Cell Size": 0.25, "Plane Cell Count": 12}),
                display("RobotModel", "Arm", **described),
                display("MarkerArray", "Power", Topic=topic(topics.ENERGY_MARKERS)),
            ],
            "Tools": [{"Class": "rviz_default_plugins/MoveCamera"}],
            "Views": {
                "Current": {
                    "Class": "rviz_default_plugins/Orbit",
                    "Name": "Current View",
                    "Distance": 2.5,
                    "Pitch": 0.4,
                    "Yaw": 0.8,
                    "Target Frame": arm.base_frame,
                },
            },
        },
    }
    return yaml.safe_dump(layout, sort_keys=False)


_LAYOUTS: dict[str, tuple[Callable[[ArmTopics], str] | None, str]] = {
    "plotjuggler/energy.xml": (live_layout, "PlotJuggler, live topics"),
    "plotjuggler/energy_server.xml": (server_layout, "PlotJuggler, a Foxglove server"),
    "plotjuggler/energy_bag.xml": (bag_layout, "PlotJuggler, a bag"),
    "foxglove/energy.json": (foxglove_layout, "Foxglove, live topics or a bag"),
    "rviz/energy.rviz": (rviz_layout, "rviz, live topics"),
    "grafana/energy.json": (None, "Grafana, metrics of Prometheus"),
    "prometheus/prometheus.yml": (None, "Prometheus"),
}
"""What makes each file, None for those that are the same for every arm, and what it is for."""
PURPOSES: dict[str, str] = {name: purpose for name, (_, purpose) in _LAYOUTS.items()}
"""What each file is for, by its path relative to the folder of the layouts."""


def layout_files(arm: ArmTopics) -> dict[str, str]:
    """Text of each file, by its path relative to the folder of the layouts."""
    return {
        name: config_file(*name.split("/")).read_text("utf-8")
        if layout is None
        else layout(arm)
        for name, (layout, _) in _LAYOUTS.items()
    }
