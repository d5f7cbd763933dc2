"""Connection: one connection to an MQTT broker, driven by the thread that owns it."""

from __future__ import annotations

import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from uuid import uuid4

import paho.mqtt.client as mqtt

from ur_energy_model.sinks.credentials import MqttCredentials
from ur_energy_model.sinks.mqtt.broker import Broker
from ur_energy_model.sinks.mqtt.edge_node import Message

KEEP_ALIVE = 15
"""Longest silence on the connection [s]; the broker publishes the will after 1.5 times that."""
LONGEST_WAIT = 10.0
"""Longest time for an answer of the broker [s]."""


class Connection:
    """A connection that is given up at the first problem.

    Args:
        broker: where it leads.
        credentials: user, password and certificates.
        will: last-will message.
        topics: to subscribe to.
        on_message: called with topic and payload of a message on them, and whether it was retained.

    Raises:
        OSError: the broker cannot be reached, or its certificate is refused.
    """

    def __init__(
        self,
        broker: Broker,
        credentials: MqttCredentials,
        will: Message,
        topics: Sequence[str],
        on_message: Callable[[str, bytes, bool], None],
    ) -> None:
        client = mqtt.Client(f"ur_energy_{uuid4().hex[:12]}", protocol=mqtt.MQTTv311)
        if credentials.username is not None:
            client.username_pw_set(credentials.username, credentials.password)
        if broker.tls:
            client.tls_set_context(_context(credentials))
        client.will_set(will.topic, will.payload, will.qos)
        client.on_connect, client.on_unsubscribe = self._connected, self._answered
        client.on_message = lambda _client, _data, message: on_message(
            message.topic, message.payload, message.retain
        )
        self._client, self._topics = client, topics
        self._refusal: str | None = None
        self._open = False
        self._waiting_for: int | None = None
        self._asked = time.monotonic()
        client.connect(broker.address.host, broker.address.port, KEEP_ALIVE)
        # A reading and the question behind it are two small packets, which must not wait.
        client.socket().setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._until(lambda: self._open)

    @property
    def is_answered(self) -> bool:
        """Whether the broker has everything that was published before the last `ask`."""
        return self._waiting_for is None

    def work(self, longest: float) -> None:
        """Send and receive; returns after the next event, or after this time [s].

        Raises:
            ConnectionError: the connection is lost, or the broker does not answer.
        """
        try:
            code = self._client.loop(timeout=longest)
        except (struct.error, ValueError, IndexError):  # of paho, which expects MQTT packets
            raise ConnectionError("what answers there is no MQTT broker") from None
        if self._refusal is not None:
            raise ConnectionRefusedError(self._refusal)
        if code != mqtt.MQTT_ERR_SUCCESS:
            raise ConnectionError(mqtt.error_string(code))
        waiting = self._waiting_for is not None or not self._open
        if waiting and time.monotonic() > self._asked + LONGEST_WAIT:
            raise ConnectionError("the broker does not answer")

    def publish(self, messages: Iterable[Message]) -> None:
        """Publish messages in this order."""
        for message in messages:
            info = self._client.publish(message.topic, message.payload, message.qos)
            if info.rc != mqtt.MQTT_ERR_SUCCESS:
                raise ConnectionError(mqtt.error_string(info.rc))

    def ask(self) -> None:
        """Ask the broker for an answer that comes after all that was published.

        Sparkplug data have QoS 0, which the broker does not acknowledge. It answers an UNSUBSCRIBE
        also for a topic without subscription (MQTT 3.1.1, 3.10.4), after all earlier packets.
        """
        code, number = self._client.unsubscribe(f"{self._topics[0]}/none")
        if code != mqtt.MQTT_ERR_SUCCESS:
            raise ConnectionError(mqtt.error_string(code))
        self._waiting_for, self._asked = number, time.monotonic()

    def close(self) -> None:
        """Flush the queue and close in order: the broker then drops the will."""
        self.ask()
        self._until(lambda: self.is_answered)
        self._client.disconnect()

    def abandon(self) -> None:
        """Close at once: the broker publishes the will, unless `close` was called."""
        client = self._client
        client.on_connect = client.on_unsubscribe = client.on_message = None  # no cycles of objects
        sock = client.socket()
        if sock is not None:
            sock.close()

    def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self.work(0.1)

    def _connected(self, client: mqtt.Client, _data: Any, _flags: Any, code: int) -> None:
        if code != 0:
            self._refusal = mqtt.connack_string(code)
            return
        client.subscribe([(topic, 1) for topic in self._topics])
        self._open = True

    def _answered(self, _client: mqtt.Client, _data: Any, number: int) -> None:
        if number == self._waiting_for:
            self._waiting_for = None


def _context(credentials: MqttCredentials) -> ssl.SSLContext:
    """TLS that checks the broker's certificate and its name."""
    context = ssl.create_default_context(cafile=credentials.ca)
    if credentials.certificate is not None:
        context.load_cert_chain(credentials.certificate, credentials.key)
    return context
