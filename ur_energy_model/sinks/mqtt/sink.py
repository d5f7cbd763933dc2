# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""MQTT: an edge node of Sparkplug B on one broker, whose devices are arms.

Readings are kept while the broker is away.
"""

from __future__ import annotations

import json
import math
import socket
import ssl
import struct
import threading
import time
import zlib
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import lru_cache
from itertools import groupby, islice
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from uuid import uuid4

import paho.mqtt.client as mqtt
from pysparkplug import (
    DataType,
    DBirth,
    DData,
    DDeath,
    MessageType,
    Metadata,
    Metric,
    NBirth,
    NDeath,
    Topic,
)
from pysparkplug._protobuf import Payload

from ur_energy_model.energy.cycle_energies import MEASURED_SHARE, TOTAL_SOURCE
from ur_energy_model.energy.topics import number_topics
from ur_energy_model.errors import InputError
from ur_energy_model.files import open_regular, write_text
from ur_energy_model.options import split_url
from ur_energy_model.rooms import Given
from ur_energy_model.sinks.mqtt.credentials import MqttCredentials, read_credentials
from ur_energy_model.sinks.mqtt.room import MQTT, MqttOptions
from ur_energy_model.sinks.options import Address, common_options
from ur_energy_model.sinks.sink import ArmActions, ArmReading, Sink, SinkStatus

PORTS = {"mqtt": 1883, "mqtts": 8883}  # default port by scheme (registered with IANA)
BATCH = 50  # most readings that are on the way at once
POLL = 0.05  # longest time between polls for new readings [s]
BIRTH_PAUSE = 1.0
"""Shortest time between two births of the node, however many commands request them [s]."""
SILENCE = 5.0  # time without readings after which an arm is dead to hosts [s]
KEEP_ALIVE = 15
"""Longest silence on the connection [s]; the broker publishes the will after 1.5 times that."""
LONGEST_WAIT = 10.0  # longest time for an answer of the broker [s]


def mqtt_sink(
    place: str,
    given: Given,
    actions: ArmActions | None = None,
    state_file: Path | None = None,
) -> MqttSink:
    """The sink of a broker, see `SinkFactory`.

    Args:
        place: URL of the broker.
        given: holds MqttOptions and the common options.
        actions: not used: commands other than for a rebirth are not implemented.
        state_file: beside it the sink keeps the number of its births; None to begin with
            0 at each start.

    Raises:
        InputError: the URL, the credentials or the names of group and node cannot be
            used.
    """
    options = given.of(MqttOptions)
    common = common_options(given)
    broker = broker_of(place, allow_network=common.allow_network)
    births = None
    if state_file is not None:
        # Several sinks may have the same state file: one file for each broker and edge
        # node.
        identity = f"{broker} {options.mqtt_group} {options.mqtt_node}"
        name = f"{state_file.name}.sparkplug_{zlib.crc32(identity.encode()):08x}"
        births = state_file.with_name(name)
    node = EdgeNode(options.mqtt_group, options.mqtt_node, BirthNumbers(births))
    credentials = read_credentials(common.credentials)
    return MqttSink(broker, node, credentials, with_json=options.mqtt_json)


class MqttSink(Sink):
    """A Sink whose readings wait in a bounded store until the broker has them.

    A reading leaves the store when the broker has answered a packet that was sent after
    it. Energies are counters, so a reading that reaches the broker twice, because an
    answer was lost with the connection, adds nothing.
    """

    longest_pause = 5.0

    def __init__(
        self,
        broker: Broker,
        node: EdgeNode,
        credentials: MqttCredentials,
        *,
        with_json: bool,
    ) -> None:
        self._broker = broker
        self._node = node
        self._credentials = credentials
        self._with_json = with_json
        self._store = ReadingStore()
        self._seen: dict[str, float] = {}
        self._rebirth = False
        self._born = float("-inf")
        self._unusable: str | None = None  # why the last reading cannot be used
        super().__init__(str(broker))

    @property
    def status(self) -> SinkStatus:
        """State, at any time."""
        store = self._store
        problem = self._problem or self._unusable
        return SinkStatus(
            str(self._broker), problem, store.delivered, store.dropped, len(store)
        )

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
        node = self._node
        store = self._store

        def on_message(topic: str, payload: bytes, retained: bool) -> None:
            self._rebirth |= node.needs_birth(topic, payload, retained=retained)

        will = node.will(_now())
        connection = BrokerConnection(
            self._broker, self._credentials, will, node.topics, on_message
        )
        try:
            self._bear(connection)
            self._problem = None
            sent, newest = store.oldest(0)
            while not self._closing or (len(store) and time.monotonic() < self._deadline):
                connection.work(POLL)
                if self._rebirth and time.monotonic() - self._born >= BIRTH_PAUSE:
                    self._bear(connection)
                limit = time.monotonic() - SILENCE
                for arm in [
                    arm for arm, seen in self._seen.copy().items() if seen < limit
                ]:
                    connection.publish(node.device_death(arm, _now()))
                if connection.is_answered:
                    store.confirm(sent)
                    sent, newest = store.oldest(BATCH)
                    if sent:
                        connection.publish(node.data(sent, newest, _now()))
                        if self._with_json:
                            connection.publish(
                                json_messages(node.group, node.node, sent, newest)
                            )
                        connection.ask()
            connection.publish([node.death(_now())])
            connection.close()
        finally:
            connection.abandon()

    def _bear(self, connection: BrokerConnection) -> None:
        """Publish all births."""
        self._rebirth = False
        self._born = time.monotonic()
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
        InputError: not such a URL, one with credentials, or an unencrypted one to another
            machine without allow_network.
    """
    form = "state mqtt://HOST[:PORT] or mqtts://HOST[:PORT]"
    secrets = (
        "put them into the file of --credentials or into UR_ENERGY_MQTT_USERNAME and "
    )
    secrets += "UR_ENERGY_MQTT_PASSWORD"
    parts = split_url(MQTT.flag, url, PORTS, "an MQTT broker", form, secrets)
    if not parts.hostname or parts.path.strip("/") or parts.query or parts.fragment:
        raise InputError(MQTT.flag, f"'{url}' is not a host and a port", form)
    address = Address(
        parts.hostname, PORTS[parts.scheme] if parts.port is None else parts.port
    )
    tls = parts.scheme == "mqtts"
    if not (tls or address.is_loopback or allow_network):
        problem = f"{address} is on another machine and the connection is not encrypted"
        raise InputError(
            MQTT.flag, problem, "use mqtts://, or permit it with --allow-network"
        )
    return Broker(address, tls)


class BrokerConnection:
    """A connection to a broker, driven by the thread that owns it, given up at the first problem.

    The certificate and the name of the broker are checked. `on_message` is called with
    topic and payload of a message on the topics, and whether it was retained.

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
        client.on_connect = self._connected
        client.on_unsubscribe = self._answered
        client.on_message = lambda _client, _data, message: on_message(
            message.topic, message.payload, message.retain
        )
        self._client = client
        self._topics = topics
        self._refusal: str | None = None
        self._open = False
        # Whether the broker has everything that was published before the last `ask`.
        self.is_answered = True
        self._asked = time.monotonic()
        self._number = -1
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
        # of paho, which expects MQTT packets
        except (struct.error, ValueError, IndexError):
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

        It does not acknowledge QoS 0, but answers an UNSUBSCRIBE of a topic without
        subscription (MQTT 3.1.1, 3.10.4) after all earlier packets.
        """
        code, self._number = self._client.unsubscribe(f"{self._topics[0]}/none")
        _check(code)
        self.is_answered = False
        self._asked = time.monotonic()

    def close(self) -> None:
        """Flush the queue and close in order: the broker then drops the will."""
        self.ask()
        while not self.is_answered:
            self.work(0.1)
        self._client.disconnect()

    def abandon(self) -> None:
        """Close at once: the broker publishes the will, unless `close` was called."""
        client = self._client
        # no cycles of objects
        client.on_connect = client.on_unsubscribe = client.on_message = None
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


# Sparkplug B: the readings that wait, and the messages of the node.

Value: TypeAlias = float | int | str | None  # of a metric; None where a number is unknown

# readings kept while the broker is away: an hour at 10 a second, 30 MB
MOST_STORED = 36_000


@dataclass(frozen=True, slots=True)
class StoredReading:
    """What is published of a reading."""

    arm: str  # its name
    stamp: int  # host time of the sample [ms since 1970, UTC]
    # of the values, as the ROS topics'; one tuple is shared by all readings
    names: tuple[str, ...]
    values: array[float]  # W and J
    state: str  # of the arm, in lower case
    lost: int  # number of samples lost so far
    # of the total since reset: its name, and the share of time measured
    source: tuple[str, float]
    # figures of the last one, None before the first
    cycle: tuple[Value, ...] | None = None


Readings: TypeAlias = tuple[StoredReading, ...]
Newest: TypeAlias = Mapping[str, StoredReading]  # newest reading of each arm


class ReadingStore:
    """A queue from which readings are removed only once the broker has them.

    Any thread may add; one thread sends. At `most` readings the oldest is dropped for a
    new one. `newest` keeps the newest reading of each arm, also once the broker has it.
    """

    def __init__(self, most: int = MOST_STORED) -> None:
        self._most = most
        self._readings: deque[StoredReading] = deque()
        self._lock = threading.Lock()
        self._names: tuple[str, ...] = ()
        self.newest: dict[str, StoredReading] = {}
        self.delivered = self.dropped = 0

    def __len__(self) -> int:
        return len(self._readings)

    def add(self, reading: ArmReading) -> None:
        """Keep a reading; the oldest is dropped if the store is full."""
        numbers = reading.numbers()
        before = self.newest.get(reading.arm)
        if (names := tuple(numbers)) != self._names:
            self._names = names
        cycle = None if before is None else before.cycle
        for each in reading.cycles[-1:]:
            cycle = tuple(reading.figures_of(each).values())
        stamp = reading.stamp // 1_000_000
        values = array("d", numbers.values())
        source = reading.snapshot.total_source
        lost = reading.link.losses.samples
        kept = (reading.state, lost, (source.name, source.share), cycle)
        stored = StoredReading(reading.arm, stamp, self._names, values, *kept)
        with self._lock:
            if len(self._readings) >= self._most:
                self._readings.popleft()
                self.dropped += 1
            self._readings.append(stored)
            self.newest[reading.arm] = stored

    def oldest(self, most: int) -> tuple[Readings, Newest]:
        """The oldest readings, at most this number, and the newest of each arm at this moment."""
        with self._lock:
            return tuple(islice(self._readings, most)), dict(self.newest)

    def confirm(self, readings: Readings) -> None:
        """Remove readings, the oldest ones: the broker has them."""
        sent = set(map(id, readings))  # some may have been dropped meanwhile
        with self._lock:
            while self._readings and id(self._readings[0]) in sent:
                self._readings.popleft()
                self.delivered += 1


OTHERS: dict[str, tuple[DataType, str]] = {
    "state": (
        DataType.STRING,
        "state of the arm: off, braked, standstill, moving, protective_stop",
    ),
    "samples_lost": (
        DataType.INT64,
        "samples lost so far on the way from the controller",
    ),
    TOTAL_SOURCE: (
        DataType.STRING,
        "where energy/total comes from since reset: measured, modelled or mixed",
    ),
    MEASURED_SHARE: (
        DataType.DOUBLE,
        "share of the time since reset in which it is measured, 0 to 1",
    ),
    "energy/cycle/number": (DataType.INT64, "number of the cycle that ended last"),
    "energy/cycle/energy": (DataType.DOUBLE, "energy of the whole arm in that cycle [J]"),
    "energy/cycle/duration": (DataType.DOUBLE, "its duration [s]"),
    "energy/cycle/unaccounted_s": (
        DataType.DOUBLE,
        "time of it without samples [s]: above 0, the energy is not that of the whole cycle",
    ),
    "energy/cycle/peak_power": (
        DataType.DOUBLE,
        "largest power of the whole arm in it [W]",
    ),
    "energy/cycle/program": (DataType.STRING, "name of the program that was loaded"),
    "energy/cycle/model_energy": (
        DataType.DOUBLE,
        "sum of the modelled parts in that cycle [J]",
    ),
    "energy/cycle/unexplained_energy": (
        DataType.DOUBLE,
        "its energy less that of the model [J]",
    ),
    f"energy/cycle/{TOTAL_SOURCE}": (
        DataType.STRING,
        "where the energy of that cycle comes from: measured, modelled or mixed",
    ),
    f"energy/cycle/{MEASURED_SHARE}": (
        DataType.DOUBLE,
        "share of its time that is measured, 0 to 1",
    ),
}
"""Types and descriptions of the metrics that are no ROS topics of numbers."""
CYCLE = tuple(name for name in OTHERS if name.startswith("energy/cycle/"))
"""Those of the last cycle, in the order of `ArmReading.figures_of`."""


def values_of(reading: StoredReading) -> dict[str, Value]:
    """All metrics of a reading."""
    numbers = zip(reading.names, reading.values, strict=True)
    values: dict[str, Value] = {
        name: value if math.isfinite(value) else None for name, value in numbers
    }
    cycle = reading.cycle or (None,) * len(CYCLE)
    others = (reading.state, reading.lost, *reading.source, *cycle)
    return values | dict(zip(OTHERS, others, strict=True))


@lru_cache(maxsize=256)
def description_of(name: str) -> str:
    """What a metric is, with its unit."""
    if name in OTHERS:
        return OTHERS[name][1]
    joint = name.removeprefix("energy/").rpartition("/")[0]
    return next(
        topic.description for topic in number_topics([joint]) if topic.name == name
    )


REBIRTH = "Node Control/Rebirth"
STATES = "spBv1.0/STATE/"
"""Beginning of the topics on which host applications publish that they are online."""
_LONGEST_STATE = 1000
_MOST_HOSTS = 64
SEQUENCE = 256  # seq and bdSeq count from 0 to 255


class Message(NamedTuple):
    """A message to publish, never retained; qos is 1 for an NDEATH."""

    topic: str
    payload: bytes
    qos: int = 0


class BirthNumbers:
    """The bdSeq of one connection after the other, 0 to 255, over restarts where there is a file.

    Hosts assign an NDEATH to its NBIRTH by this number (Sparkplug 3.0.0). If each start
    began with 0 again, the last will of a process that was killed, which the broker
    publishes late, would end the births of the next one.
    """

    def __init__(self, path: Path | None = None) -> None:
        """Read the number of the last connection; a file that is none counts as none."""
        self._path = path
        self._last = -1
        if path is not None:
            with suppress(OSError, ValueError), open_regular(path) as file:
                self._last = int(file.read(_LONGEST_NUMBER)) % SEQUENCE

    @property
    def present(self) -> int:
        """That of the present connection."""
        return max(self._last, 0)

    def advance(self) -> None:
        """Begin the next connection; a disk that fails is no reason not to."""
        self._last = (self._last + 1) % SEQUENCE
        if self._path is not None:
            with suppress(InputError):
                write_text(self._path, f"{self._last}\n")


_LONGEST_NUMBER = 16  # of a file with a number [bytes]


class EdgeNode:
    """Makes messages in the order in which they must be published, `now` [ms since 1970].

    Raises:
        InputError: group or node, the IDs in the topics, is empty or contains /, + or #.
    """

    def __init__(self, group: str, node: str, births: BirthNumbers | None = None) -> None:
        for option, name in (("mqtt_group", group), ("mqtt_node", node)):
            if not name or set(name) & set("/+#\0"):
                problem = f"'{name}' cannot be a part of a topic"
                raise InputError(option, problem, "use a name without / + #")
        self.group = group
        self.node = node
        self._births = BirthNumbers() if births is None else births
        self._sequence = 0
        self._devices: dict[str, tuple[int, dict[str, Value]]] = {}
        """By arm in the present session: stamp of the reading in the DBIRTH [ms], which is not
        published again, and values as published last."""
        self._hosts: dict[str, int] = {}
        """Time at which each host application has come online, by topic [ms]."""

    @property
    def topics(self) -> tuple[str, ...]:
        """To subscribe to: commands to this node, and the states of host applications."""
        return self._topic(MessageType.NCMD), f"{STATES}+"

    def will(self, now: int) -> Message:
        """NDEATH, the last will of the next connection, which gets the next bdSeq."""
        self._births.advance()
        self._devices.clear()
        return self.death(now)

    def death(self, now: int) -> Message:
        """NDEATH of the present connection, to be sent before it is closed in order."""
        payload = NDeath(now, self._birth_sequence(now))
        return Message(self._topic(MessageType.NDEATH), payload.encode(), qos=1)

    def birth(self, now: int, newest: Newest) -> list[Message]:
        """NBIRTH, and a DBIRTH of every arm that is alive, with its newest reading."""
        self._sequence = SEQUENCE - 1
        rebirth = Metric(now, REBIRTH, DataType.BOOLEAN, value=False)
        payload = NBirth(now, self._next(), (self._birth_sequence(now), rebirth))
        node = Message(self._topic(MessageType.NBIRTH), payload.encode())
        return [node, *(self._device_birth(newest[arm], now) for arm in self._devices)]

    def data(self, readings: Readings, newest: Newest, now: int) -> list[Message]:
        """DDATA of readings, and a DBIRTH where hosts lack an arm or one of its metrics.

        All but the newest reading of an arm are historical. The DBIRTH holds the newest,
        which is not published again.
        """
        out = []
        for arm, group in groupby(readings, lambda reading: reading.arm):
            last = newest[arm]
            if (
                arm not in self._devices
                or not self._devices[arm][1].keys() >= values_of(last).keys()
            ):
                out.append(self._device_birth(last, now))
            born, before = self._devices[arm]
            metrics: list[Metric] = []
            for reading in group:
                if reading.stamp == born:
                    continue
                values = values_of(reading)
                historical = reading is not last
                if not historical:  # what has changed only
                    self._devices[arm] = born, {**before, **values}
                    values = {name: v for name, v in values.items() if before[name] != v}
                metrics += _metrics(values, reading.stamp, historical=historical)
            if metrics:
                payload = DData(now, self._next(), tuple(metrics))
                out.append(Message(self._topic(MessageType.DDATA, arm), payload.encode()))
        return out

    def device_death(self, arm: str, now: int) -> list[Message]:
        """DDEATH of an arm that is alive to hosts; nothing for another one."""
        if self._devices.pop(arm, None) is None:
            return []
        payload = DDeath(now, self._next())
        return [Message(self._topic(MessageType.DDEATH, arm), payload.encode())]

    def needs_birth(self, topic: str, payload: bytes, *, retained: bool) -> bool:
        """Whether births must be sent again: a command requests it, or a host has come online.

        Topic and payload are of a received message, which was published before the
        subscription if it is retained: a host that was online then has had the births of
        the connection.
        """
        try:
            if not topic.startswith(STATES):
                # The public NCmd refuses a metric without datatype, which may be absent
                # (6.4.6).
                metrics = Payload.FromString(payload).metrics
                return any(
                    each.name == REBIRTH and each.boolean_value for each in metrics
                )
            state = json.loads(payload[:_LONGEST_STATE])
            stamp = int(state["timestamp"])
            online = state["online"] is True
        except Exception:  # whatever a foreign client sends
            return False
        known = self._hosts.get(topic)
        if (
            not online
            or stamp == known
            or (known is None and len(self._hosts) >= _MOST_HOSTS)
        ):
            return False
        self._hosts[topic] = stamp
        return not retained

    def _device_birth(self, reading: StoredReading, now: int) -> Message:
        values = values_of(reading)
        self._devices[reading.arm] = reading.stamp, values
        metrics = _metrics(values, reading.stamp, described=True)
        payload = DBirth(now, self._next(), tuple(metrics))
        return Message(self._topic(MessageType.DBIRTH, reading.arm), payload.encode())

    def _birth_sequence(self, now: int) -> Metric:
        return Metric(now, "bdSeq", DataType.INT64, value=self._births.present)

    def _next(self) -> int:
        self._sequence = (self._sequence + 1) % SEQUENCE
        return self._sequence

    def _topic(self, kind: MessageType, arm: str | None = None) -> str:
        return str(Topic(self.group, kind, self.node, arm))


def _metrics(
    values: Mapping[str, Value],
    stamp: int,
    *,
    historical: bool = False,
    described: bool = False,
) -> list[Metric]:
    return [
        Metric(
            stamp,
            name,
            OTHERS[name][0] if name in OTHERS else DataType.DOUBLE,
            metadata=Metadata(description=description_of(name)) if described else None,
            value=value,
            is_historical=historical,
            is_null=value is None,
        )
        for name, value in values.items()
    ]


def json_messages(
    group: str, node: str, readings: Readings, newest: Newest
) -> list[Message]:
    """Readings for clients that do not read Sparkplug payloads, on GROUP/NODE/ARM/energy.

    One message a reading; numbers that are unknown are null.
    """
    out = []
    for reading in readings:
        time = datetime.fromtimestamp(reading.stamp / 1000.0, timezone.utc)
        content = {
            "time": time.isoformat(timespec="milliseconds"),
            "historical": reading is not newest[reading.arm],
            **values_of(reading),
        }
        topic = f"{group}/{node}/{reading.arm}/energy"
        out.append(Message(topic, json.dumps(content, separators=(",", ":")).encode()))
    return out
