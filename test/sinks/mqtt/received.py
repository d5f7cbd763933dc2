# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What clients of the MQTT sink receive: decoded payloads, and a host application."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion

from test.sinks.peers import until
from ur_energy_model.sinks.mqtt.payload import Payload, encoded

VALUES = ("long_value", "double_value", "boolean_value", "string_value")


class ReceivedMetric(NamedTuple):
    """A metric of a payload; None for what it does not state."""

    name: str
    timestamp: int
    value: Any
    datatype: int | None
    has_alias: bool
    is_null: bool
    is_historical: bool
    description: str


@dataclass(frozen=True)
class Received:
    """A payload."""

    timestamp: int
    seq: int | None
    metrics: tuple[ReceivedMetric, ...]

    def __getitem__(self, name: str) -> ReceivedMetric:
        """The first metric of this name."""
        return next(metric for metric in self.metrics if metric.name == name)


def received(content: bytes) -> Received:
    """A payload from its bytes."""
    payload = Payload.FromString(content)
    metrics = [
        ReceivedMetric(
            metric.name,
            metric.timestamp,
            next(
                (getattr(metric, each) for each in VALUES if metric.HasField(each)), None
            ),
            metric.datatype if metric.HasField("datatype") else None,
            metric.HasField("alias"),
            metric.is_null,
            metric.is_historical,
            metric.metadata.description,
        )
        for metric in payload.metrics
    ]
    seq = payload.seq if payload.HasField("seq") else None
    return Received(payload.timestamp, seq, tuple(metrics))


def command(name: str, *, value: bool, typed: bool = True) -> bytes:
    """The payload of an NCMD as host applications send it, with or without data types."""
    payload = Payload.FromString(encoded(0))
    metric = payload.metrics.add(name=name, boolean_value=value)
    if typed:
        metric.datatype = 11
    content: bytes = payload.SerializeToString()
    return content


@dataclass
class SparkplugHost:
    """What a host application makes of the messages of one edge node; a context manager.

    Attributes:
        port: of the broker.
        kinds: of the messages, in order.
        values: newest value of each metric, by arm and name.
        history: arm, stamp, name, value and whether it is historical, of all metrics of
            devices.
        births: bdSeq of the NBIRTHs.
        deaths: bdSeq of the NDEATHs.
        others: topics and payloads of messages that are not of Sparkplug.
        gaps: number of messages whose seq did not follow.
    """

    port: int
    kinds: list[str] = field(default_factory=list)
    values: dict[tuple[str, str], object] = field(default_factory=dict)
    history: list[tuple[str, int, str, object, bool]] = field(default_factory=list)
    births: list[object] = field(default_factory=list)
    deaths: list[object] = field(default_factory=list)
    others: list[tuple[str, bytes]] = field(default_factory=list)
    gaps: int = 0

    def __enter__(self) -> SparkplugHost:
        self._sequence = -1
        self._ready = False
        self.client = mqtt.Client(CallbackAPIVersion.VERSION2)
        self.client.on_message = self._take
        self.client.on_subscribe = lambda *_: setattr(self, "_ready", True)
        self.client.connect("127.0.0.1", self.port)
        self.client.subscribe("#", qos=1)
        self.client.loop_start()
        until(lambda: self._ready)
        return self

    def __exit__(self, *_: object) -> None:
        self.client.loop_stop()
        self.client.disconnect()

    def come_online(self, stamp: int) -> None:
        """Publish so, as a primary host of Sparkplug 3.0."""
        text = json.dumps({"online": True, "timestamp": stamp})
        message = self.client.publish("spBv1.0/STATE/scada", text, qos=1, retain=True)
        message.wait_for_publish(20)

    def ask_for_rebirth(self, group: str, node: str, *, typed: bool = True) -> None:
        """Send the command, with or without datatypes."""
        payload = command("Node Control/Rebirth", value=True, typed=typed)
        self.client.publish(f"spBv1.0/{group}/NCMD/{node}", payload)

    def stamps(self, name: str) -> list[int]:
        """Times at which a metric was measured, in the order of arrival."""
        return [stamp for _, stamp, metric, _, _ in self.history if metric == name]

    def _take(
        self, _client: mqtt.Client, _data: object, message: mqtt.MQTTMessage
    ) -> None:
        content = bytes(message.payload)
        if not message.topic.startswith("spBv1.0/"):
            self.others.append((message.topic, content))
            return
        if "/STATE/" in message.topic or "/NCMD/" in message.topic:
            return
        assert not message.retain
        _, _, kind, _, *arm = message.topic.split("/")
        payload = received(content)
        if kind == "NDEATH":
            assert payload.seq is None
            self.deaths.append(payload["bdSeq"].value)
        else:
            expected = 0 if kind == "NBIRTH" else (self._sequence + 1) % 256
            self.gaps += payload.seq != expected
            self._sequence = expected if payload.seq is None else payload.seq
        if kind == "NBIRTH":
            self.births.append(payload["bdSeq"].value)
        for metric in payload.metrics if kind in ("DBIRTH", "DDATA") else ():
            assert (metric.datatype is not None) == (kind == "DBIRTH")
            place = (arm[0], metric.timestamp, metric.name, metric.value)
            self.history.append((*place, metric.is_historical))
            if not metric.is_historical:
                self.values[arm[0], metric.name] = metric.value
        self.kinds.append(kind)
