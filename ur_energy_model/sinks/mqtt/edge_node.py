"""EdgeNode: the messages of a Sparkplug B edge node whose devices are arms; without the connection.

Sparkplug 3.0.0, chapters 5 (operational behaviour) and 6 (payloads): the last will is an NDEATH
with the bdSeq of the NBIRTH of the same connection; seq is 0 in an NBIRTH and counts to 255 and
around; births, data and deaths of devices are sent with QoS 0 and never retained. Metrics are sent
when they change. Payloads are those of pysparkplug.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

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

# The public NCmd refuses a metric without datatype, which a command need not have (6.4.6).
from pysparkplug._protobuf import Payload

from ur_energy_model.errors import InputError
from ur_energy_model.sinks.mqtt.metrics import (
    INTEGERS,
    TEXTS,
    Value,
    description_of,
    values_of,
)
from ur_energy_model.sinks.mqtt.reading_store import Batch
from ur_energy_model.sinks.mqtt.stored_reading import StoredReading

REBIRTH = "Node Control/Rebirth"
STATES = "spBv1.0/STATE/"
"""Beginning of the topics on which host applications publish that they are online."""
_LONGEST_STATE, _MOST_HOSTS = 1000, 64
SEQUENCE = 256
"""seq and bdSeq count from 0 to 255."""
_TYPES = {
    **dict.fromkeys(INTEGERS, DataType.INT64),
    **dict.fromkeys(TEXTS, DataType.STRING),
}
"""Of metrics that are not Double."""


@dataclass(frozen=True)
class Message:
    """A message to publish; retain is never set.

    Attributes:
        topic, payload: as published.
        qos: 0, or 1 for an NDEATH.
    """

    topic: str
    payload: bytes
    qos: int = 0


@dataclass
class _Device:
    """What hosts know of an arm in the present session.

    Attributes:
        born: stamp of the reading in the DBIRTH [ms]; it is not published again.
        values: as published last.
    """

    born: int
    values: dict[str, Value]


class EdgeNode:
    """Makes messages in the order in which they must be published.

    Args:
        group: group ID of the topics.
        node: edge node ID of the topics.

    Raises:
        InputError: an ID is empty or contains /, + or #.
    """

    def __init__(self, group: str, node: str) -> None:
        for option, name in (("mqtt_group", group), ("mqtt_node", node)):
            if not name or set(name) & set("/+#\0"):
                raise InputError(
                    option, f"'{name}' cannot be a part of a topic", "use a name without / + #"
                )
        self.group, self.node = group, node
        self._births = -1
        self._sequence = 0
        self._devices: dict[str, _Device] = {}
        self._hosts: dict[str, int] = {}
        """Time at which each host application has come online, by topic [ms]."""

    @property
    def topics(self) -> tuple[str, ...]:
        """To subscribe to: commands to this node, and the states of host applications."""
        return self._topic(MessageType.NCMD), f"{STATES}+"

    def will(self, now: int) -> Message:
        """NDEATH, the last will of the next connection, which gets the next bdSeq.

        Args:
            now: time of sending [ms since 1970]; so in all methods.
        """
        self._births = (self._births + 1) % SEQUENCE
        self._devices.clear()
        return self.death(now)

    def death(self, now: int) -> Message:
        """NDEATH of the present connection, to be sent before it is closed in order."""
        payload = NDeath(now, self._birth_sequence(now))
        return Message(self._topic(MessageType.NDEATH), payload.encode(), qos=1)

    def birth(self, now: int, newest: Mapping[str, StoredReading]) -> list[Message]:
        """NBIRTH, and a DBIRTH of every arm that is alive.

        Args:
            now: time [ms].
            newest: reading of each arm.
        """
        self._sequence = SEQUENCE - 1
        payload = NBirth(
            now,
            self._next(),
            (
                self._birth_sequence(now),
                Metric(now, REBIRTH, DataType.BOOLEAN, value=False),
            ),
        )
        out = [Message(self._topic(MessageType.NBIRTH), payload.encode())]
        return out + [self._device_birth(newest[arm], now) for arm in self._devices]

    def data(self, batch: Batch, now: int) -> list[Message]:
        """DDATA of readings, and a DBIRTH where hosts do not know an arm or one of its metrics.

        All but the newest reading of an arm are historical. The DBIRTH holds the newest, which is
        not published again.
        """
        out = []
        for arm, group in groupby(batch.readings, lambda reading: reading.arm):
            readings, last = list(group), batch.newest[arm]
            device = self._devices.get(arm)
            if device is None or not device.values.keys() >= values_of(last).keys():
                out.append(self._device_birth(last, now))
                device = self._devices[arm]
            metrics = _metrics(device, readings, last)
            if metrics:
                payload = DData(now, self._next(), metrics)
                out.append(Message(self._topic(MessageType.DDATA, arm), payload.encode()))
        return out

    def device_death(self, arm: str, now: int) -> list[Message]:
        """DDEATH of an arm that hosts believe alive; nothing for another one."""
        if self._devices.pop(arm, None) is None:
            return []
        payload = DDeath(now, self._next())
        return [Message(self._topic(MessageType.DDEATH, arm), payload.encode())]

    def needs_birth(self, topic: str, payload: bytes, *, retained: bool) -> bool:
        """Whether births must be sent again: a command asks for it, or a host has come online.

        A host that was online before the connection has had the births of the connection.

        Args:
            topic: of a received message, one of `topics`.
            payload: its content; anything that is neither is ignored.
            retained: whether it was published before the subscription.
        """
        try:
            if not topic.startswith(STATES):
                metrics = Payload.FromString(payload).metrics
                return any(each.name == REBIRTH and each.boolean_value for each in metrics)
            state = json.loads(payload[:_LONGEST_STATE])
            stamp, online = int(state["timestamp"]), state["online"] is True
        except Exception:  # whatever a foreign client sends
            return False
        known = self._hosts.get(topic)
        if not online or stamp == known or (known is None and len(self._hosts) >= _MOST_HOSTS):
            return False
        self._hosts[topic] = stamp
        return not retained

    def _device_birth(self, reading: StoredReading, now: int) -> Message:
        """DBIRTH with the values of a reading."""
        values = values_of(reading)
        self._devices[reading.arm] = _Device(reading.stamp, values)
        metrics = tuple(
            _metric(name, value, reading.stamp, metadata=Metadata(description=description_of(name)))
            for name, value in values.items()
        )
        payload = DBirth(now, self._next(), metrics)
        return Message(self._topic(MessageType.DBIRTH, reading.arm), payload.encode())

    def _birth_sequence(self, now: int) -> Metric:
        return Metric(now, "bdSeq", DataType.INT64, value=max(self._births, 0))

    def _next(self) -> int:
        self._sequence = (self._sequence + 1) % SEQUENCE
        return self._sequence

    def _topic(self, kind: MessageType, arm: str | None = None) -> str:
        return str(Topic(self.group, kind, self.node, arm))


def _metrics(
    device: _Device, readings: Sequence[StoredReading], newest: StoredReading
) -> tuple[Metric, ...]:
    """Metrics of readings of one arm: what changed of the newest, everything of older ones."""
    out = []
    for reading in readings:
        if reading.stamp == device.born:
            continue
        values, historical = values_of(reading), reading is not newest
        if not historical:
            changed = {name: v for name, v in values.items() if device.values[name] != v}
            device.values.update(values)
            values = changed
        out += [_metric(name, value, reading.stamp, historical) for name, value in values.items()]
    return tuple(out)


def _metric(
    name: str,
    value: Value,
    stamp: int,
    historical: bool = False,
    metadata: Metadata | None = None,
) -> Metric:
    return Metric(
        stamp,
        name,
        _TYPES.get(name, DataType.DOUBLE),
        metadata=metadata,
        value=value,
        is_historical=historical,
        is_null=value is None,
    )
