# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Mosquitto: the real broker on a free port of loopback, and a Sparkplug host at it."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import paho.mqtt.client as mqtt
from pysparkplug import (
    DataType,
    DBirth,
    DData,
    MessageType,
    Metric,
    NBirth,
    NCmd,
    NDeath,
    Topic,
)

from test.sinks.peers import free_port, program, until


class Mosquitto:
    """A broker; a context manager. Lines of its configuration are besides the listener."""

    def __init__(self, folder: Path, *lines: str) -> None:
        self.port = free_port()
        self._file = folder / "mosquitto.conf"
        text = (f"listener {self.port} 127.0.0.1", "user root", *lines)
        self._file.write_text("\n".join(text) + "\n")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        found = program("mosquitto")
        assert found is not None
        self._process = subprocess.Popen(
            [found, "-c", str(self._file)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until(self._listens)

    def send(self, number: signal.Signals) -> None:
        """SIGSTOP makes it silent; SIGKILL ends it as a power failure does."""
        if self._process is not None:
            self._process.send_signal(number)

    def kill(self) -> None:
        self.send(signal.SIGKILL)
        if self._process is not None:
            self._process.wait(10)
            self._process = None

    def __enter__(self) -> Mosquitto:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def _listens(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), 1.0).close()
        except OSError:
            return False
        return True


@dataclass
class SparkplugHost:
    """What a host application makes of the messages of one edge node; a context manager."""

    port: int
    kinds: list[str] = field(default_factory=list)  # of the messages, in order
    # newest value of each metric, by arm and name
    values: dict[tuple[str, str], object] = field(default_factory=dict)
    # (arm, stamp, name, value, historical) of all metrics of devices
    history: list[tuple[str, int, str, object, bool]] = field(default_factory=list)
    births: list[object] = field(default_factory=list)  # bdSeq of the NBIRTHs
    deaths: list[object] = field(default_factory=list)  # and of the NDEATHs
    others: list[tuple[str, bytes]] = field(default_factory=list)
    gaps: int = 0  # messages whose seq did not follow

    def __enter__(self) -> SparkplugHost:
        self._sequence = -1
        self._device: dict[str, DBirth] = {}
        self._ready = False
        self.client = mqtt.Client()
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
        self.client.publish(
            "spBv1.0/STATE/scada", text, qos=1, retain=True
        ).wait_for_publish(20)

    def ask_for_rebirth(self, group: str, node: str, *, types: bool = True) -> None:
        """Send the command, with or without datatypes."""
        metric = Metric(None, "Node Control/Rebirth", DataType.BOOLEAN, value=True)
        payload = NCmd(0, (metric,)).encode(include_dtypes=types)
        self.client.publish(f"spBv1.0/{group}/NCMD/{node}", payload)

    def stamps(self, name: str) -> list[int]:
        """Times at which a metric was received, in the order of arrival."""
        return [stamp for _, stamp, metric, _, _ in self.history if metric == name]

    def _take(
        self, _client: mqtt.Client, _data: object, message: mqtt.MQTTMessage
    ) -> None:
        if not message.topic.startswith("spBv1.0/"):
            self.others.append((message.topic, message.payload))
            return
        if "/STATE/" in message.topic or "/NCMD/" in message.topic:
            return
        assert not message.retain
        topic = Topic.from_str(message.topic)
        kind = str(topic.message_type)
        arm = str(topic.device_id)
        payload = MessageType(kind).payload.decode(  # type: ignore[attr-defined]
            message.payload, birth=self._device.get(arm)
        )
        if isinstance(payload, NDeath):
            self.deaths.append(payload.bd_seq_metric.value)
        else:
            expected = 0 if isinstance(payload, NBirth) else (self._sequence + 1) % 256
            self.gaps += payload.seq != expected
            self._sequence = payload.seq
        if isinstance(payload, NBirth):
            self.births.append({m.name: m.value for m in payload.metrics}["bdSeq"])
        if isinstance(payload, DBirth):
            self._device[arm] = payload
        if isinstance(payload, (DBirth, DData)):
            for metric in payload.metrics:
                name = str(metric.name)
                stamp = int(metric.timestamp or 0)
                old = metric.is_historical
                self.history.append((arm, stamp, name, metric.value, old))
                if not old:
                    self.values[arm, name] = metric.value
        self.kinds.append(kind)
