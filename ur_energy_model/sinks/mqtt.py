"""MqttSink: an edge node on one broker, which keeps readings while the broker is away."""

from __future__ import annotations

import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import paho.mqtt.client as mqtt

from ur_energy_model.errors import InputError
from ur_energy_model.sinks.credentials import MqttCredentials, read_credentials
from ur_energy_model.sinks.options import Address, SinkOptions
from ur_energy_model.sinks.sink import ArmActions, ArmReading, Sink, SinkStatus
from ur_energy_model.sinks.sparkplug import EdgeNode, Message, ReadingStore, json_messages

OPTION = "--mqtt"
PORTS = {"mqtt": 1883, "mqtts": 8883}  # default port by scheme (registered with IANA)
BATCH = 50  # most readings that are on the way at once
POLL = 0.05  # longest time between polls for new readings [s]
BIRTH_PAUSE = 1.0
"""Shortest time between two births of the node, however many commands request them [s]."""
SILENCE = 5.0  # time without readings after which an arm is dead to hosts [s]
KEEP_ALIVE = 15
"""Longest silence on the connection [s]; the broker publishes the will after 1.5 times that."""
LONGEST_WAIT = 10.0  # longest time for an answer of the broker [s]


def mqtt_sink(url: str, options: SinkOptions, actions: ArmActions | None = None) -> MqttSink:
    """The sink of a broker.

    Raises:
        InputError: the URL, the credentials or the names of group and node cannot be used.
    """
    broker = broker_of(url, allow_network=options.allow_network)
    node = EdgeNode(options.mqtt_group, options.mqtt_node)
    credentials = read_credentials(options.credentials).mqtt
    return MqttSink(broker, node, credentials, with_json=options.mqtt_json)


class MqttSink(Sink):
    """A Sink whose readings wait in a bounded store until the broker has them.

    A reading leaves the store when the broker has answered a packet that was sent after it.
    Energies are counters, so a reading that reaches the broker twice, because an answer was lost
    with the connection, adds nothing.
    """

    longest_pause = 5.0

    def __init__(
        self, broker: Broker, node: EdgeNode, credentials: MqttCredentials, *, with_json: bool
    ) -> None:
        self._broker, self._node, self._credentials = broker, node, credentials
        self._with_json = with_json
        self._store = ReadingStore()
        self._seen: dict[str, float] = {}
        self._rebirth, self._born = False, float("-inf")
        self._unusable: str | None = None  # why the last reading cannot be used
        super().__init__(str(broker))

    @property
    def status(self) -> SinkStatus:
        """State, at any time."""
        store, problem = self._store, self._problem or self._unusable
        return SinkStatus(str(self._broker), problem, store.delivered, store.dropped, len(store))

    def offer(self, reading: ArmReading) -> None:
        """Store a reading, or note that the arm cannot be reached."""
        if self._closing:
            return
        if not reading.is_live:
            self._seen[reading.arm] = float("-inf")
            return
        try:
            self._store.add(reading)
        except Exception as error:  # the estimator's thread must never see it
            self._store.dropped += 1
            self._unusable = f"a reading cannot be used: {error!r}"
        else:
            self._unusable = None
            self._seen[reading.arm] = time.monotonic()

    def _serve(self) -> None:
        """One connection, until it is lost or the sink is closed and nothing waits."""
        node, store = self._node, self._store

        def on_message(topic: str, payload: bytes, retained: bool) -> None:
            self._rebirth |= node.needs_birth(topic, payload, retained=retained)

        will = node.will(_now())
        connection = Connection(self._broker, self._credentials, will, node.topics, on_message)
        try:
            self._bear(connection)
            self._problem = None
            sent, newest = store.oldest(0)
            while not self._closing or (len(store) and time.monotonic() < self._deadline):
                connection.work(POLL)
                if self._rebirth and time.monotonic() - self._born >= BIRTH_PAUSE:
                    self._bear(connection)
                limit = time.monotonic() - SILENCE
                for arm in [arm for arm, seen in self._seen.copy().items() if seen < limit]:
                    connection.publish(node.device_death(arm, _now()))
                if connection.is_answered:
                    store.confirm(sent)
                    sent, newest = store.oldest(BATCH)
                    if sent:
                        connection.publish(node.data(sent, newest, _now()))
                        if self._with_json:
                            connection.publish(json_messages(node.group, node.node, sent, newest))
                        connection.ask()
            connection.publish([node.death(_now())])
            connection.close()
        finally:
            connection.abandon()

    def _bear(self, connection: Connection) -> None:
        """Publish all births."""
        self._rebirth, self._born = False, time.monotonic()
        connection.publish(self._node.birth(_now(), self._store.newest))


def _now() -> int:
    """Time [ms since 1970, UTC]."""
    return time.time_ns() // 1_000_000


@dataclass(frozen=True)
class Broker:
    """Host name or IP address and port of a broker, and whether it is reached by TLS."""

    address: Address
    tls: bool

    def __str__(self) -> str:
        return f"mqtt{'s' if self.tls else ''}://{self.address}"


def broker_of(url: str, *, allow_network: bool) -> Broker:
    """The broker of a URL: mqtt://HOST[:PORT], or mqtts://HOST[:PORT] for TLS.

    Raises:
        InputError: not such a URL, one with credentials, or an unencrypted one to another machine
            without allow_network. The message never repeats a password.
    """
    form = "state mqtt://HOST[:PORT] or mqtts://HOST[:PORT]"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise InputError(OPTION, "the URL is not valid", form) from None
    if "@" in url:
        raise InputError(
            OPTION,
            "a URL must not hold a user name or password, which all users of this machine can read",
            "put them into the file of --credentials or into UR_ENERGY_MQTT_USERNAME and "
            "UR_ENERGY_MQTT_PASSWORD",
        )
    if parts.scheme not in PORTS or not host:
        raise InputError(OPTION, f"'{url}' is not the URL of an MQTT broker", form)
    if parts.path.strip("/") or parts.query or parts.fragment:
        raise InputError(OPTION, f"'{url}' has more than a host and a port", form)
    address = Address(host, PORTS[parts.scheme] if port is None else port)
    tls = parts.scheme == "mqtts"
    if not (tls or address.is_loopback or allow_network):
        problem = f"{address} is on another machine and the connection is not encrypted"
        raise InputError(OPTION, problem, "use mqtts://, or permit it with --allow-network")
    return Broker(address, tls)


class Connection:
    """A connection to a broker, driven by the thread that owns it, given up at the first problem.

    The certificate and the name of the broker are checked. `on_message` is called with topic and
    payload of a message on the topics, and whether it was retained.

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
            context = ssl.create_default_context(cafile=credentials.ca)
            if credentials.certificate is not None:
                context.load_cert_chain(credentials.certificate, credentials.key)
            client.tls_set_context(context)
        client.will_set(*will)
        client.on_connect, client.on_unsubscribe = self._connected, self._answered
        client.on_message = lambda _client, _data, message: on_message(
            message.topic, message.payload, message.retain
        )
        self._client, self._topics = client, topics
        self._refusal: str | None = None
        self._open = False
        # Whether the broker has everything that was published before the last `ask`.
        self.is_answered, self._asked, self._number = True, time.monotonic(), -1
        client.connect(broker.address.host, broker.address.port, KEEP_ALIVE)
        # A reading and the question behind it are two small packets, which must not wait.
        client.socket().setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while not self._open:
            self.work(0.1)

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
        _check(code)
        waiting = not (self.is_answered and self._open)
        if waiting and time.monotonic() > self._asked + LONGEST_WAIT:
            raise ConnectionError("the broker does not answer")

    def publish(self, messages: Iterable[Message]) -> None:
        """Publish messages in this order."""
        for message in messages:
            _check(self._client.publish(*message).rc)

    def ask(self) -> None:
        """Ask the broker for an answer that comes after all that was published.

        It does not acknowledge QoS 0, but answers an UNSUBSCRIBE of a topic without subscription
        (MQTT 3.1.1, 3.10.4) after all earlier packets.
        """
        code, self._number = self._client.unsubscribe(f"{self._topics[0]}/none")
        _check(code)
        self.is_answered, self._asked = False, time.monotonic()

    def close(self) -> None:
        """Flush the queue and close in order: the broker then drops the will."""
        self.ask()
        while not self.is_answered:
            self.work(0.1)
        self._client.disconnect()

    def abandon(self) -> None:
        """Close at once: the broker publishes the will, unless `close` was called."""
        client = self._client
        client.on_connect = client.on_unsubscribe = client.on_message = None  # no cycles of objects
        sock = client.socket()
        if sock is not None:
            sock.close()

    def _connected(self, client: mqtt.Client, _data: Any, _flags: Any, code: int) -> None:
        if code != 0:
            self._refusal = mqtt.connack_string(code)
            return
        client.subscribe([(topic, 1) for topic in self._topics])
        self._open = True

    def _answered(self, _client: mqtt.Client, _data: Any, number: int) -> None:
        self.is_answered |= number == self._number


def _check(code: int) -> None:
    if code != mqtt.MQTT_ERR_SUCCESS:
        raise ConnectionError(mqtt.error_string(code))
