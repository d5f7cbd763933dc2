# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Connections to brokers: MQTT 3.1.1, with TLS, given up at the first problem."""

from __future__ import annotations

import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode
from paho.mqtt.reasoncodes import ReasonCode

from ur_energy_model.addresses import split_url
from ur_energy_model.errors import InputError
from ur_energy_model.sinks.mqtt.credentials import VARIABLE, MqttCredentials
from ur_energy_model.sinks.mqtt.edge_node import Message
from ur_energy_model.sinks.mqtt.room import MQTT
from ur_energy_model.sinks.options import Address

PORTS = {"mqtt": 1883, "mqtts": 8883}
"""Default port by scheme, as registered with IANA."""
KEEP_ALIVE = 15
"""Longest silence on a connection [s]; after 1.5 times that, the broker publishes the
last-will message."""
LONGEST_WAIT = 10.0
"""Longest time for an answer of the broker [s]."""


@dataclass(frozen=True)
class Broker:
    """A broker as the user states it.

    Attributes:
        address: host name or IP address, and port.
        tls: whether the connection is encrypted.
    """

    address: Address
    tls: bool

    def __str__(self) -> str:
        """The URL, such as mqtts://broker:8883."""
        scheme = "mqtts" if self.tls else "mqtt"
        return f"{scheme}://{self.address}"


def broker_of(url: str, *, allow_network: bool) -> Broker:
    """The broker of a URL: mqtt://HOST[:PORT], or mqtts://HOST[:PORT] for TLS.

    Raises:
        InputError: not such a URL, one with credentials, or an unencrypted one to another
            machine without allow_network.
    """
    form = "state mqtt://HOST[:PORT] or mqtts://HOST[:PORT]"
    variables = f"{VARIABLE}USERNAME and {VARIABLE}PASSWORD"
    secrets = f"put them into the file of credentials or into {variables}"
    parts = split_url(MQTT.flag, url, PORTS, "an MQTT broker", form, secrets)
    if not parts.hostname or parts.path.strip("/") or parts.query or parts.fragment:
        raise InputError(MQTT.flag, f"'{url}' is not a host and a port", form)
    port = PORTS[parts.scheme] if parts.port is None else parts.port
    address = Address(parts.hostname, port)
    tls = parts.scheme == "mqtts"
    if not (tls or address.is_loopback or allow_network):
        problem = f"{address} is on another machine and the connection is not encrypted"
        remedy = "use mqtts://, or permit it with --allow-network"
        raise InputError(MQTT.flag, problem, remedy, options=("--allow-network",))
    return Broker(address, tls)


class BrokerConnection:
    """A connection to a broker, driven by the thread that owns it.

    The certificate and the name of the broker are checked. Nothing is repeated here: the
    owner makes a new connection after any problem.

    Attributes:
        is_answered: whether the broker has everything that was published before the last
            `request_answer`.
    """

    def __init__(
        self,
        broker: Broker,
        credentials: MqttCredentials,
        will: Message,
        topics: Sequence[str],
        on_message: Callable[[str, bytes, bool], None],
    ) -> None:
        """Connect, and subscribe to the topics.

        Args:
            broker: whom to connect to.
            credentials: user name, password and certificates.
            will: last-will message, which the broker publishes if the connection breaks.
            topics: topics with quality of service 1.
            on_message: called with topic and payload of a message on the topics, and
                whether it was retained.

        Raises:
            OSError: the broker cannot be reached, refuses the credentials, or its
                certificate is refused.
        """
        client = mqtt.Client(
            CallbackAPIVersion.VERSION2,
            client_id=f"ur_energy_{uuid4().hex[:12]}",
            protocol=mqtt.MQTTv311,
            # Otherwise a broker that refuses the version, or the name of the client, is
            # asked again with older or other ones, in a loop without end.
            reconnect_on_failure=False,
        )
        if credentials.username is not None:
            client.username_pw_set(credentials.username, credentials.password)
        if broker.tls:
            context = ssl.create_default_context(cafile=credentials.ca)
            if credentials.certificate is not None:
                context.load_cert_chain(credentials.certificate, credentials.key)
            client.tls_set_context(context)
        client.will_set(will.topic, will.payload, will.qos)
        client.on_connect = self._on_connect
        client.on_unsubscribe = self._on_unsubscribe
        client.on_message = self._take_message
        self._on_message = on_message
        self._client = client
        self._topics = topics
        self._refusal: str | None = None
        self._open = False
        self.is_answered = True
        self._requested = time.monotonic()
        self._number: int | None = None
        client.connect(broker.address.host, broker.address.port, KEEP_ALIVE)
        # A reading and the request behind it are two small packets, which must not wait.
        opened = client.socket()
        assert isinstance(opened, socket.socket)  # of TCP or TLS
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while not self._open:
            self.work(0.1)

    def work(self, longest: float) -> None:
        """Send and receive; returns after the next event, or after this time [s].

        Raises:
            ConnectionError: the connection is lost, or the broker does not answer.
        """
        try:
            code = self._client.loop(timeout=longest)
        except (struct.error, ValueError, IndexError):
            # of paho, which expects packets of MQTT
            raise ConnectionError("what answers there is no MQTT broker") from None
        if self._refusal is not None:
            raise ConnectionRefusedError(self._refusal)
        _check(code)
        waiting = not (self.is_answered and self._open)
        if waiting and time.monotonic() > self._requested + LONGEST_WAIT:
            raise ConnectionError("the broker does not answer")

    def publish(self, messages: Iterable[Message]) -> None:
        """Publish messages in this order."""
        for message in messages:
            _check(self._client.publish(message.topic, message.payload, message.qos).rc)

    def request_answer(self) -> None:
        """Request an answer of the broker that comes after all that was published.

        A broker does not acknowledge messages of quality of service 0, but answers an
        UNSUBSCRIBE of a topic without subscription (MQTT 3.1.1, 3.10.4) after all earlier
        packets.
        """
        code, number = self._client.unsubscribe(f"{self._topics[0]}/none")
        _check(code)
        self._number = number
        self.is_answered = False
        self._requested = time.monotonic()

    def close(self) -> None:
        """Flush the queue and disconnect; the broker drops the last-will message.

        Raises:
            ConnectionError: the connection is lost, or the broker does not answer.
        """
        self.request_answer()
        while not self.is_answered:
            self.work(0.1)
        self._client.disconnect()

    def abandon(self) -> None:
        """Close at once; without `close` the broker publishes the last-will message."""
        client = self._client
        # Without callbacks there is no cycle of objects, so memory is freed at once.
        client.on_connect = None
        client.on_unsubscribe = None
        client.on_message = None
        sock = client.socket()
        if sock is not None:
            sock.close()

    def _on_connect(
        self,
        client: mqtt.Client,
        _data: Any,
        _flags: mqtt.ConnectFlags,
        reason: ReasonCode,
        _properties: Any,
    ) -> None:
        """Subscribe once the broker accepts the connection, or keep its refusal."""
        if reason.is_failure:
            self._refusal = f"the broker refuses the connection: {reason}"
            return
        client.subscribe([(topic, 1) for topic in self._topics])
        self._open = True

    def _on_unsubscribe(
        self,
        _client: mqtt.Client,
        _data: Any,
        number: int,
        _reasons: list[ReasonCode],
        _properties: Any,
    ) -> None:
        """The broker has answered the UNSUBSCRIBE of `request_answer`."""
        if number == self._number:
            self.is_answered = True

    def _take_message(
        self, _client: mqtt.Client, _data: Any, message: mqtt.MQTTMessage
    ) -> None:
        """Pass a message on one of the topics on."""
        self._on_message(message.topic, bytes(message.payload), message.retain)


def _check(code: MQTTErrorCode) -> None:
    """Raise ConnectionError unless the code of a call of paho states success."""
    if code != mqtt.MQTT_ERR_SUCCESS:
        raise ConnectionError(mqtt.error_string(code))
