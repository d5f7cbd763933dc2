"""Sparkplug B: the messages of an edge node whose devices are arms, and their store."""

from __future__ import annotations

import json
import math
import threading
from array import array
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import lru_cache
from itertools import groupby, islice
from typing import NamedTuple, TypeAlias

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

from ur_energy_model.energy.topics import number_topics
from ur_energy_model.errors import InputError
from ur_energy_model.sinks.sink import ArmReading

Value: TypeAlias = float | int | str | None  # of a metric; None where a number is unknown

MOST_STORED = 36_000  # readings kept while the broker is away: an hour at 10 a second, 15 MB


@dataclass(frozen=True, slots=True)
class StoredReading:
    """What is published of a reading."""

    arm: str  # its name
    stamp: int  # host time of the sample [ms since 1970, UTC]
    names: tuple[str, ...]  # of the values, as the ROS topics'; one tuple is shared by all readings
    values: array[float]  # W and J
    state: str  # of the arm, in lower case
    lost: int  # number of samples lost so far
    cycle: tuple[Value, ...] | None = None  # figures of the last one, None before the first


Readings: TypeAlias = tuple[StoredReading, ...]
Newest: TypeAlias = Mapping[str, StoredReading]  # newest reading of each arm


class ReadingStore:
    """A queue from which readings are removed only once the broker has them.

    Any thread may add; one thread sends. At `most` readings the oldest is dropped for a new one.
    `newest` keeps the newest reading of each arm, also once the broker has it.
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
        numbers, before = reading.numbers(), self.newest.get(reading.arm)
        if (names := tuple(numbers)) != self._names:
            self._names = names
        cycle = None if before is None else before.cycle
        for each in reading.cycles[-1:]:
            cycle = tuple(reading.figures_of(each).values())
        stamp, values = reading.stamp // 1_000_000, array("d", numbers.values())
        kept = (reading.state, reading.link.lost, cycle)
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
    "samples_lost": (DataType.INT64, "samples lost so far on the way from the controller"),
    "energy/cycle/number": (DataType.INT64, "number of the cycle that ended last"),
    "energy/cycle/energy": (DataType.DOUBLE, "energy of the whole arm in that cycle [J]"),
    "energy/cycle/duration": (DataType.DOUBLE, "its duration [s]"),
    "energy/cycle/peak_power": (DataType.DOUBLE, "largest power of the whole arm in it [W]"),
    "energy/cycle/program": (DataType.STRING, "name of the program that was loaded"),
}
"""Types and descriptions of the metrics that are no ROS topics of numbers."""


def values_of(reading: StoredReading) -> dict[str, Value]:
    """All metrics of a reading."""
    numbers = zip(reading.names, reading.values, strict=True)
    values: dict[str, Value] = {
        name: value if math.isfinite(value) else None for name, value in numbers
    }
    cycle = reading.cycle or (None,) * 5
    return values | dict(zip(OTHERS, (reading.state, reading.lost, *cycle), strict=True))


@lru_cache(maxsize=256)
def description_of(name: str) -> str:
    """What a metric is, with its unit."""
    if name in OTHERS:
        return OTHERS[name][1]
    joint = name.removeprefix("energy/").rpartition("/")[0]
    return next(topic.description for topic in number_topics([joint]) if topic.name == name)


REBIRTH = "Node Control/Rebirth"
STATES = "spBv1.0/STATE/"
"""Beginning of the topics on which host applications publish that they are online."""
_LONGEST_STATE, _MOST_HOSTS = 1000, 64
SEQUENCE = 256  # seq and bdSeq count from 0 to 255


class Message(NamedTuple):
    """A message to publish, never retained; qos is 1 for an NDEATH."""

    topic: str
    payload: bytes
    qos: int = 0


class EdgeNode:
    """Makes messages in the order in which they must be published, `now` [ms since 1970].

    Raises:
        InputError: group or node, the IDs in the topics, is empty or contains /, + or #.
    """

    def __init__(self, group: str, node: str) -> None:
        for option, name in (("mqtt_group", group), ("mqtt_node", node)):
            if not name or set(name) & set("/+#\0"):
                problem = f"'{name}' cannot be a part of a topic"
                raise InputError(option, problem, "use a name without / + #")
        self.group, self.node = group, node
        self._births = -1
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
        self._births = (self._births + 1) % SEQUENCE
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

        All but the newest reading of an arm are historical. The DBIRTH holds the newest, which is
        not published again.
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
                values, historical = values_of(reading), reading is not last
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

        Topic and payload are of a received message, which was published before the subscription if
        it is retained: a host that was online then has had the births of the connection.
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
        values = values_of(reading)
        self._devices[reading.arm] = reading.stamp, values
        metrics = _metrics(values, reading.stamp, described=True)
        payload = DBirth(now, self._next(), tuple(metrics))
        return Message(self._topic(MessageType.DBIRTH, reading.arm), payload.encode())

    def _birth_sequence(self, now: int) -> Metric:
        return Metric(now, "bdSeq", DataType.INT64, value=max(self._births, 0))

    def _next(self) -> int:
        self._sequence = (self._sequence + 1) % SEQUENCE
        return self._sequence

    def _topic(self, kind: MessageType, arm: str | None = None) -> str:
        return str(Topic(self.group, kind, self.node, arm))


def _metrics(
    values: Mapping[str, Value], stamp: int, *, historical: bool = False, described: bool = False
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


def json_messages(group: str, node: str, readings: Readings, newest: Newest) -> list[Message]:
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
