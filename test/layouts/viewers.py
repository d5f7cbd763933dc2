# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What viewers make of messages and layouts, by the rules of their sources.

PlotJuggler 3.9: values of a JointState are <topic>/<name>/<field>, those of a
DiagnosticArray <topic>/<status>/<key>, others <topic>/<field> with [index] for arrays.
Foxglove: message paths <topic>.<field>[<index>].
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

from rosbags.rosbag2 import Reader
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from ur_energy_model.telemetry.bag.messages import DYNAMIC_JOINT_STATE

STORE: Any = get_typestore(Stores.ROS2_JAZZY)
STORE.register(
    get_types_from_msg(
        DYNAMIC_JOINT_STATE.definition_bytes.decode(), DYNAMIC_JOINT_STATE.name
    )
)
Messages = dict[str, Any]  # a message of each topic


def messages_of_bag(bag: Path) -> Messages:
    """The last message of each topic."""
    with Reader(bag) as reader:
        return {
            connection.topic: STORE.deserialize_cdr(raw, connection.msgtype)
            for connection, _, raw in reader.messages()
        }


def plotjuggler_series(messages: Messages) -> set[str]:
    """Names of all numeric series."""
    return {
        name for topic, message in messages.items() for name in _series(topic, message)
    }


def _series(topic: str, message: Any) -> Iterator[str]:
    if hasattr(message, "velocity"):
        for field in ("position", "velocity", "effort"):
            for name, _ in zip(message.name, getattr(message, field), strict=False):
                yield f"{topic}/{name}/{field}"
    elif hasattr(message, "status"):
        for status in message.status:
            yield f"{topic}/{status.name}/level"
            for pair in status.values:
                if re.fullmatch(r"-?[\d.]+(e[-+]?\d+)?", pair.value):
                    yield f"{topic}/{status.name}/{pair.key}"
    elif hasattr(message, "interface_values"):
        for i, group in enumerate(message.interface_values):
            for k in range(len(group.values)):
                yield f"{topic}/interface_values[{i}]/values[{k}]"
    elif isinstance(getattr(message, "data", None), float):
        yield f"{topic}/data"


def plotjuggler_curves(layout: str) -> set[str]:
    """Curves of a PlotJuggler layout."""
    return {curve.attrib["name"] for curve in Xml.fromstring(layout).iter("curve")}


def plotjuggler_subscriptions(layout: str) -> list[str]:
    """Topics that a PlotJuggler layout subscribes to."""
    (selected,) = Xml.fromstring(layout).iter("selected_topics")
    return selected.attrib["value"].split(";")


def foxglove_paths(layout: str) -> set[str]:
    """Message paths of the plots of a Foxglove layout."""
    panels = json.loads(layout)["configById"].values()
    return {path["value"] for panel in panels for path in panel.get("paths", [])}


def foxglove_topics(layout: str) -> set[str]:
    """Topics of the other panels of a Foxglove layout."""
    panels = list(json.loads(layout)["configById"].values())
    topics = {panel["topicToRender"] for panel in panels if "topicToRender" in panel}
    topics |= {topic for panel in panels for topic in panel.get("topics", {})}
    layers = [layer for panel in panels for layer in panel.get("layers", {}).values()]
    return topics | {layer["topic"] for layer in layers if "topic" in layer}


def foxglove_value(messages: Messages, path: str) -> float:
    """The value of a message path.

    Raises:
        LookupError, AttributeError: there is none.
    """
    match = re.fullmatch(r"([^.]+)\.(\w+)\[(\d+)\]", path)
    assert match, path
    return float(getattr(messages[match[1]], match[2])[int(match[3])])
