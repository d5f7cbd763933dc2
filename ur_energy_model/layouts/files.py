# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Layout files for the energy topics of one arm: PlotJuggler, Foxglove, rviz and Grafana.

Layouts that name topics and frames are made here, for the namespace and the prefix of the
nodes. The dashboard of Grafana and the configuration of Prometheus are the same for every
arm: their files are in config/. The layouts of an arm without namespace and prefix are in
config/ as well; `tools/generated_files.py` writes them from this module.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from xml.etree import ElementTree as Xml

import yaml

from ur_energy_model import topics_and_services as topics
from ur_energy_model.energy.topics import MODEL_PARTS, energy_names
from ur_energy_model.errors import InputError
from ur_energy_model.files import config_file

# ArmTopics: topics, frames and plots of one arm in a cell.

COLORS = (  # colours of the curves of a plot, in their order
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
ENERGY = "position"
"""Field of the topic energy, a JointState, that holds energies since reset [J]."""
POWER = "velocity"
"""Field of the topic energy that holds powers [W]."""
_NAMESPACE = re.compile(r"(/?[A-Za-z_]\w*(/[A-Za-z_]\w*)*/?)?", re.ASCII)
"""A namespace that ROS allows; empty for none."""


class Curve(NamedTuple):
    """A curve of a plot.

    Attributes:
        name: name of the entry in the topic energy, such as "total" or a joint.
        field: field of the entry, ENERGY or POWER.
        legend: text beside the plot.
    """

    name: str
    field: str
    legend: str


@dataclass(frozen=True)
class ArmTopics:
    """Topics, frames and plots of one arm.

    Attributes:
        joint_names: names of the robot's joints, without prefix [n].
        namespace: namespace of the nodes; empty for none.
        tf_prefix: parameter tf_prefix of the nodes, with which the names of joints and
            frames begin. Any characters are allowed: the topic energy and the frames keep
            them.

    Raises:
        InputError: ROS does not allow such a namespace.
    """

    joint_names: tuple[str, ...]
    namespace: str = ""
    tf_prefix: str = ""

    def __post_init__(self) -> None:
        """Refuse a namespace that ROS does not allow."""
        if not _NAMESPACE.fullmatch(self.namespace):
            remedy = "use letters, digits and _, and begin with no digit"
            raise InputError(
                "--namespace", f"'{self.namespace}' is not a ROS name", remedy
            )

    def name_of(self, topic: topics.Topic) -> str:
        """Full name of a topic, such as "/cell1/energy"; absolute names stay."""
        namespace = self.namespace.strip("/")
        if topic.name.startswith("/"):
            return topic.name
        if not namespace:
            return f"/{topic.name}"
        return f"/{namespace}/{topic.name}"

    @property
    def base_frame(self) -> str:
        """Frame of the arm's base."""
        return f"{self.tf_prefix}base"

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the joints, prefix included [n]."""
        return tuple(self.tf_prefix + joint for joint in self.joint_names)

    @property
    def energies(self) -> str:
        """Full name of the topic energy, which holds every curve."""
        return self.name_of(topics.ENERGY)

    def plots(self) -> dict[str, tuple[Curve, ...]]:
        """Curves of each plot, by its title, in the order of the plots."""
        joint_power, joint_energy = JOINT_PLOTS
        return {
            "Whole arm [W]": _curves(("total", "model", *MODEL_PARTS), POWER),
            joint_power: _curves(self.joints, POWER),
            "Energy since reset [J]": _curves(("total", "model"), ENERGY),
            joint_energy: _curves(self.joints, ENERGY),
            "Unexplained: total less model [W]": _curves(("unexplained",), POWER),
        }


def _curves(names: Iterable[str], field: str) -> tuple[Curve, ...]:
    """Curves of one field of entries of the topic energy, with their names as legends."""
    return tuple(Curve(name, field, name) for name in names)


# Layout of Foxglove (JSON): plots, the arm in 3D, diagnostics.

# Panels have names of the form KIND!IDENTIFIER.
ARM = "3D!arm"
LEGEND_WIDTH = 190  # width of a plot's legend, beside its curves [pixels]
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
    """The layout for Foxglove and Lichtblick, for live topics and for bags.

    Plots are on the left; the arm in 3D, its health and the summary on the right. The arm
    in 3D needs robot_description as a topic, and its transforms.

    Args:
        arm: arm whose topics are shown.

    Returns:
        JSON.
    """
    plots: dict[str, Any] = {}
    for number, (title, curves) in enumerate(arm.plots().items()):
        plots[f"Plot!energy{number}"] = _plot_panel(arm, title, curves)
    statuses: dict[str, Any] = {}
    for name, topic, title in (
        ("energy", topics.DIAGNOSTICS, "Health"),
        ("summary", topics.ENERGY_SUMMARY, "Summary"),
    ):
        statuses[f"DiagnosticSummary!{name}"] = {
            **_titled(title),
            "topicToRender": arm.name_of(topic),
            "minLevel": 0,
        }
    panels = {**plots, ARM: _arm_in_3d(arm), **statuses}
    layout = {
        "configById": panels,
        "globalVariables": {},
        "userNodes": {},
        "playbackConfig": {"speed": 1},
        "layout": {
            "direction": "row",
            "first": _stacked(list(plots)),
            "second": {
                "direction": "column",
                "first": ARM,
                "second": _stacked(list(statuses)),
                "splitPercentage": 55,
            },
            "splitPercentage": 60,
        },
    }
    return json.dumps(layout, indent=2) + "\n"


def _plot_panel(arm: ArmTopics, title: str, curves: Sequence[Curve]) -> dict[str, Any]:
    """The configuration of a plot over time.

    A curve names the place of its entry in the topic energy: expressions of Foxglove have
    no names of entries.

    Args:
        arm: arm whose topic energy contains the curves.
        title: heading of the panel.
        curves: curves of the plot, at most as many as there are COLORS; further curves
            are not shown.
    """
    places = energy_names(arm.joints)
    paths: list[dict[str, Any]] = []
    for curve, color in zip(curves, COLORS, strict=False):
        place = places.index(curve.name)
        path = {
            "value": f"{arm.energies}.{curve.field}[{place}]",
            "label": curve.legend,
            "enabled": True,
            "color": color,
            "timestampMethod": "headerStamp",
        }
        paths.append(path)
    return {
        **_titled(title),
        "paths": paths,
        "showLegend": True,
        "legendDisplay": "left",
        "sidebarDimension": LEGEND_WIDTH,
        "xAxisVal": "timestamp",
        "followingViewWidth": WINDOW,
        "isSynced": True,
    }


def _arm_in_3d(arm: ArmTopics) -> dict[str, Any]:
    """The configuration of the 3D panel: grid, robot model, and spheres of the powers.

    Args:
        arm: arm whose robot_description and energy/markers are shown.
    """
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
    """Panels of equal height in one column, as a tree of splits of two.

    Args:
        names: names of the panels, from above; at least one.
    """
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
"""Settings of the client; its time axis is the time of the samples."""
SUBSCRIBER = {
    "use_header_stamp": "true",
    "discard_large_arrays": "true",
    "max_array_size": "100",
    "boolean_strings_to_number": "true",
    "remove_suffix_from_strings": "true",
}
"""Settings of the subscriber; those that a layout lacks are false or zero."""
PLOT_STYLE = {
    "mode": "TimeSeries",
    "style": "Lines",
    "flip_x": "false",
    "flip_y": "false",
}


def live_layout(arm: ArmTopics) -> str:
    """Layout of PlotJuggler that subscribes to the topic energy in ROS, as XML.

    Args:
        arm: arm whose energies are plotted.
    """
    root, plugin = _streaming(arm, STREAMER)
    for name, value in {**SUBSCRIBER, "selected_topics": arm.energies}.items():
        Xml.SubElement(plugin, name, value=value)
    return _document(root)


def server_layout(arm: ArmTopics) -> str:
    """Layout of PlotJuggler that subscribes to energy of a Foxglove server, as XML.

    Args:
        arm: arm whose energies are plotted.
    """
    root, plugin = _streaming(arm, FOXGLOVE_STREAMER)
    client = Xml.SubElement(plugin, "foxglove_client", FOXGLOVE_CLIENT)
    Xml.SubElement(Xml.SubElement(client, "topics"), "topic", name=arm.energies)
    return _document(root)


def bag_layout(arm: ArmTopics) -> str:
    """Layout of PlotJuggler for a bag that is open already, as XML.

    Args:
        arm: arm whose energies are plotted.
    """
    root = _plots(arm)
    Xml.SubElement(root, "Plugins")
    Xml.SubElement(root, "previouslyLoaded_Datafiles")
    return _document(root)


def _streaming(arm: ArmTopics, streamer: str) -> tuple[Xml.Element, Xml.Element]:
    """A layout that starts a streamer.

    Args:
        arm: arm whose energies are plotted.
        streamer: name of the plugin.

    Returns:
        The root of the layout, and the element for the settings of the streamer.
    """
    root = _plots(arm)
    Xml.SubElement(root, "streaming_buffer_size", value=f"{WINDOW:g}")
    plugin = Xml.SubElement(Xml.SubElement(root, "Plugins"), "plugin", ID=streamer)
    Xml.SubElement(root, "previouslyLoaded_Datafiles")
    Xml.SubElement(root, "previouslyLoaded_Streamer", name=streamer)
    return root, plugin


def _plots(arm: ArmTopics) -> Xml.Element:
    """The root of a layout with all plots in two columns; the right one has the joints.

    Plots have no limits, so that they zoom to their curves.

    Args:
        arm: arm whose energies are plotted.
    """
    root = Xml.Element("root")
    widget = Xml.SubElement(
        root, "tabbed_widget", {"parent": "main_window", "name": "Main Window"}
    )
    tab = Xml.SubElement(widget, "Tab", containers="1", tab_name="energy")
    columns = _splitter(Xml.SubElement(tab, "Container"), "|", 2)
    plots = arm.plots()
    left = [title for title in plots if title not in JOINT_PLOTS]
    for titles in (left, JOINT_PLOTS):
        column = _splitter(columns, "-", len(titles))
        for title in titles:
            area = Xml.SubElement(column, "DockArea", name=title)
            plot = Xml.SubElement(area, "plot", PLOT_STYLE)
            Xml.SubElement(plot, "limitY")
            # Curves beyond the number of colours are not shown.
            for curve, color in zip(plots[title], COLORS, strict=False):
                name = f"{arm.energies}/{curve.name}/{curve.field}"
                Xml.SubElement(plot, "curve", name=name, color=color)
    Xml.SubElement(widget, "currentTabIndex", index="0")
    Xml.SubElement(root, "use_relative_time_offset", enabled="1")
    return root


def _splitter(parent: Xml.Element, orientation: str, count: int) -> Xml.Element:
    """An element that divides its parent into parts of equal size.

    Args:
        parent: the element that is divided.
        orientation: "|" for parts side by side, "-" for one above the other.
        count: number of parts.
    """
    sizes = ";".join([f"{1 / count:.6f}"] * count)
    return Xml.SubElement(
        parent, "DockSplitter", orientation=orientation, count=str(count), sizes=sizes
    )


def _document(root: Xml.Element) -> str:
    """The text of an XML file, indented."""
    Xml.indent(root)
    head = "<?xml version='1.0' encoding='UTF-8'?>"
    return f"{head}\n{Xml.tostring(root, 'unicode')}\n"


# Configuration of rviz (YAML): markers of power, robot model, grid.


def rviz_layout(arm: ArmTopics) -> str:
    """The configuration of rviz: grid, robot model, and spheres of the powers.

    Args:
        arm: arm whose robot_description and energy/markers are shown; the frame of its
            base is the fixed frame.

    Returns:
        YAML.
    """

    def topic(of: topics.Topic) -> dict[str, Any]:
        """A subscription with the quality of service of the topic."""
        return {
            "Value": arm.name_of(of),
            "Depth": 5,
            "History Policy": "Keep Last",
            "Reliability Policy": "Reliable",
            "Durability Policy": "Transient Local" if of.latched else "Volatile",
        }

    def display(kind: str, name: str, **settings: Any) -> dict[str, Any]:
        """A display of a kind of rviz_default_plugins, with a name and its settings."""
        return {
            "Class": f"rviz_default_plugins/{kind}",
            "Name": name,
            "Enabled": True,
            **settings,
        }

    robot_model = {
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
                display("RobotModel", "Arm", **robot_model),
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
"""Function that makes a layout file, and purpose of the file, by its path. The function is
None for a file of config/ that is the same for every arm."""
PURPOSES: dict[str, str] = {name: purpose for name, (_, purpose) in _LAYOUTS.items()}
"""Purpose of each file, by its path relative to the folder of the layouts."""


def layout_files(arm: ArmTopics) -> dict[str, str]:
    """All layout files of an arm.

    Args:
        arm: arm whose topics and frames the layouts name.

    Returns:
        Text of each file, by its path relative to the folder of the layouts.
    """
    files: dict[str, str] = {}
    for name, (layout, _) in _LAYOUTS.items():
        if layout is None:
            files[name] = config_file(*name.split("/")).read_text("utf-8")
        else:
            files[name] = layout(arm)
    return files
