# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What the room adds to the package: Sparkplug B and plain JSON for MQTT brokers."""

from __future__ import annotations

from dataclasses import dataclass

from ur_energy_model.options import option
from ur_energy_model.rooms import Extension, Room
from ur_energy_model.sinks.options import SUBJECT, SinkKind, SinkOptions


@dataclass(frozen=True)
class MqttOptions:
    """Options of the connections to MQTT brokers.

    Attributes:
        mqtt: URL of each broker.
        mqtt_group: group ID, the second level of all Sparkplug topics; also the first
            level of the JSON topics.
        mqtt_node: edge node ID, one for each estimator of a group.
        mqtt_json: whether each reading is also published as JSON.
    """

    # fmt: off
    mqtt: tuple[str, ...] = option(
        (), "URLs of MQTT brokers for Sparkplug B, such as mqtt://127.0.0.1:1883 or "
        "mqtts://broker:8883", metavar="URL", launch=True,
    )
    mqtt_group: str = option("ur_energy", "group of Sparkplug topics", metavar="NAME")
    mqtt_node: str = option("estimator", "edge node of Sparkplug topics", metavar="NAME")
    mqtt_json: bool = option(False, "also publish plain JSON topics")
    # fmt: on


MQTT = SinkKind(
    "mqtt",
    "MQTT",
    MqttOptions,
    "ur_energy_model.sinks.mqtt.sink:mqtt_sink",
    secrets="mqtt",
)
ROOM = Room(
    name="sinks/mqtt",
    purpose="MQTT: Sparkplug B and plain JSON",
    extensions=(
        Extension(
            SUBJECT,
            "ur_energy_model.sinks.mqtt.room:MQTT",
            options=MqttOptions,
            shared=SinkOptions,
        ),
    ),
    tests=("test/sinks/mqtt",),
    pages=("docs/sinks/mqtt",),
)
