# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""An edge node of Sparkplug B: the readings that wait, and the messages made of them.

Source of topics and rules: the Sparkplug specification 3.0.0 (Eclipse Foundation, 2022).
The edge node is an estimator, its devices are arms. A birth (NBIRTH of the node, DBIRTH
of a device) states all metrics, data (DDATA) state the metrics that have changed, and a
death (NDEATH, DDEATH) states that no metrics arrive any more.
"""

from __future__ import annotations

import json
import math
import threading
from array import array
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import lru_cache
from itertools import groupby, islice
from pathlib import Path
from typing import NamedTuple, TypeAlias

from ur_energy_model.energy.cycle_energies import MEASURED_SHARE, TOTAL_SOURCE
from ur_energy_model.energy.topics import number_topics
from ur_energy_model.errors import InputError
from ur_energy_model.files import open_regular, write_text
from ur_energy_model.sinks.mqtt.payload import (
    DataType,
    Metric,
    Value,
    encoded,
    is_commanded,
)
from ur_energy_model.sinks.sink import ArmReading

MOST_STORED = 36_000
"""Readings that are kept while the broker is away: an hour at 10 a second, 30 MB."""


@dataclass(frozen=True, slots=True)
class StoredReading:
    """The part of a reading that is published.

    Attributes:
        arm: name of the arm, which is the device ID.
        stamp: host time of the sample [ms since 1970, UTC].
        names: names of the values, as the ROS topics have them; readings share one tuple.
        values: powers [W] and energies [J] in the order of the names.
        state: state of the arm, in lower case.
        lost: number of samples lost so far.
        source: source of the total since reset, and the share of the time in which the
            total is measured.
        cycle: figures of the last completed cycle, in the order of CYCLE_METRICS; None
            before the first.
    """

    arm: str
    stamp: int
    names: tuple[str, ...]
    values: array[float]
    state: str
    lost: int
    source: tuple[str, float]
    cycle: tuple[Value, ...] | None = None


Readings: TypeAlias = tuple[StoredReading, ...]
Newest: TypeAlias = Mapping[str, StoredReading]
"""The newest reading of each arm, by its name."""


class ReadingStore:
    """A queue from which readings are removed only once the broker has them.

    Any thread may add readings; one thread sends them. When the store is full, the oldest
    reading is dropped for a new one.

    Attributes:
        newest: the newest reading of each arm, also once the broker has it.
        delivered: number of readings that the broker has.
        dropped: number of readings that the broker never got.
    """

    def __init__(self, most: int = MOST_STORED) -> None:
        """An empty store for this number of readings."""
        self._most = most
        self._readings: deque[StoredReading] = deque()
        self._lock = threading.Lock()
        self._names: tuple[str, ...] = ()
        self.newest: dict[str, StoredReading] = {}
        self.delivered = 0
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._readings)

    def add(self, reading: ArmReading) -> None:
        """Keep a reading."""
        stored = self._stored(reading)
        with self._lock:
            if len(self._readings) >= self._most:
                self._readings.popleft()
                self.dropped += 1
            self._readings.append(stored)
            self.newest[reading.arm] = stored

    def oldest(self, most: int) -> tuple[Readings, Newest]:
        """The readings to send next.

        Args:
            most: largest number of readings.

        Returns:
            The oldest readings, and the newest reading of each arm at this moment.
        """
        with self._lock:
            return tuple(islice(self._readings, most)), dict(self.newest)

    def confirm(self, readings: Readings) -> None:
        """Remove readings that `oldest` has returned: the broker has them.

        Some of these readings may have been dropped meanwhile, so they are compared by
        identity.
        """
        sent = set(map(id, readings))
        with self._lock:
            while self._readings and id(self._readings[0]) in sent:
                self._readings.popleft()
                self.delivered += 1

    def _stored(self, reading: ArmReading) -> StoredReading:
        """The part of a reading that is kept.

        Args:
            reading: reading to be kept; if no cycle has ended in it, the last cycle is
                taken from the previous reading.
        """
        numbers = reading.numbers()
        names = tuple(numbers)
        if names != self._names:
            self._names = names
        before = self.newest.get(reading.arm)
        cycle = None if before is None else before.cycle
        if reading.cycles:
            cycle = tuple(reading.figures_of(reading.cycles[-1]).values())
        source = reading.snapshot.total_source
        return StoredReading(
            arm=reading.arm,
            stamp=reading.stamp // 1_000_000,
            names=self._names,  # one tuple for all readings: 36,000 tuples would take 60 MB
            values=array("d", numbers.values()),
            state=reading.state,
            lost=reading.link.losses.samples,
            source=(source.name, source.share),
            cycle=cycle,
        )


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
"""Types and descriptions of the metrics that are not numbers on ROS topics."""
CYCLE_METRICS = tuple(name for name in OTHERS if name.startswith("energy/cycle/"))
"""Metrics of the last cycle, in the order of `ArmReading.figures_of`."""


def values_of(reading: StoredReading) -> dict[str, Value]:
    """All metrics of a reading by name; None where a number is unknown."""
    values: dict[str, Value] = {}
    for name, value in zip(reading.names, reading.values, strict=True):
        values[name] = value if math.isfinite(value) else None
    cycle = reading.cycle or (None,) * len(CYCLE_METRICS)
    others = (reading.state, reading.lost, *reading.source, *cycle)
    values.update(zip(OTHERS, others, strict=True))
    return values


@lru_cache(maxsize=256)
def description_of(name: str) -> str:
    """Description of a metric, with its unit."""
    if name in OTHERS:
        _, description = OTHERS[name]
        return description
    of_arm = {topic.name: topic.description for topic in number_topics([])}
    if name in of_arm:
        return of_arm[name]
    joint = name.removeprefix("energy/").rpartition("/")[0]
    of_joint = {topic.name: topic.description for topic in number_topics([joint])}
    return of_joint[name]


NAMESPACE = "spBv1.0"
"""First level of all topics of Sparkplug B, also in version 3.0 of the specification."""
STATES = f"{NAMESPACE}/STATE/"
"""Beginning of the topics on which host applications publish that they are online."""
REBIRTH = "Node Control/Rebirth"
"""The metric that a host sets to true to request all births once more."""
LONGEST_STATE = 1000
"""Longest state of a host that is read [bytes]; a state needs some 50."""
MOST_HOSTS = 64
"""Largest number of host applications that are distinguished; births are not sent again
for further applications."""
SEQUENCE = 256
"""The numbers seq and bdSeq count from 0 to 255."""
LONGEST_NUMBER = 16
"""Longest content of a file with a bdSeq that is read [bytes]."""


class Message(NamedTuple):
    """A message to publish; none is retained.

    Attributes:
        topic: topic under which the message is published.
        payload: bytes of the message.
        qos: quality of service; 1 for an NDEATH, as the specification requires.
    """

    topic: str
    payload: bytes
    qos: int = 0


class BirthNumbers:
    """The bdSeq of one connection after the other, 0 to 255.

    With a file the numbers continue after a restart.

    Hosts assign an NDEATH to its NBIRTH by this number. If each start began with 0 again,
    the last-will message of a process that was killed, which the broker publishes late,
    would end the births of the next process.
    """

    def __init__(self, path: Path | None = None) -> None:
        """Read the number of the last connection, if a file has one."""
        self._path = path
        self._last = -1
        if path is not None:
            with suppress(OSError, ValueError), open_regular(path) as file:
                self._last = int(file.read(LONGEST_NUMBER)) % SEQUENCE

    @property
    def present(self) -> int:
        """The number of the present connection."""
        return max(self._last, 0)

    def advance(self) -> None:
        """Begin the next connection, also where a failing disk cannot keep its number."""
        self._last = (self._last + 1) % SEQUENCE
        if self._path is not None:
            with suppress(InputError):
                write_text(self._path, f"{self._last}\n")


class Device(NamedTuple):
    """The values of an arm that hosts have received since its last DBIRTH.

    Attributes:
        born: stamp of the reading in the DBIRTH [ms], which is not published again.
        values: values as published last, by name of the metric.
    """

    born: int
    values: dict[str, Value]


class EdgeNode:
    """Makes messages, in the order in which they must be published.

    The argument `now` of its methods is the time of publishing [ms since 1970, UTC].
    """

    def __init__(self, group: str, node: str, births: BirthNumbers | None = None) -> None:
        """A node without devices.

        Args:
            group: group ID, a level of all topics.
            node: edge node ID, another level.
            births: numbers of the connections; None to begin with 0.

        Raises:
            InputError: group or node is empty, or contains a character that separates
                levels (/), stands for several topics (+, #) or is forbidden (zero).
        """
        for option, name in (("--mqtt-group", group), ("--mqtt-node", node)):
            if not name or set(name) & set("/+#\0"):
                problem = f"'{name}' cannot be a part of a topic"
                raise InputError(option, problem, "use a name without / + #")
        self.group = group
        self.node = node
        self._births = BirthNumbers() if births is None else births
        self._sequence = 0
        self._devices: dict[str, Device] = {}  # arms that are alive to hosts
        # Time at which each host application has come online, by topic [ms].
        self._hosts: dict[str, int] = {}

    @property
    def topics(self) -> tuple[str, ...]:
        """Topics to subscribe to: commands to this node, and states of host applications."""
        return self._topic("NCMD"), f"{STATES}+"

    def will(self, now: int) -> Message:
        """NDEATH, the last-will message of the next connection, with the next bdSeq."""
        self._births.advance()
        self._devices.clear()
        return self.death(now)

    def death(self, now: int) -> Message:
        """NDEATH of the present connection, to be sent before it is closed in order."""
        payload = encoded(now, [self._birth_sequence(now)])
        return Message(self._topic("NDEATH"), payload, qos=1)

    def birth(self, now: int, newest: Newest) -> list[Message]:
        """NBIRTH, and a DBIRTH of every arm that is alive, with its newest reading."""
        self._sequence = SEQUENCE - 1
        rebirth = Metric(now, REBIRTH, DataType.BOOLEAN, value=False)
        metrics = [self._birth_sequence(now), rebirth]
        payload = encoded(now, metrics, seq=self._next_sequence())
        messages = [Message(self._topic("NBIRTH"), payload)]
        messages += [self._device_birth(newest[arm], now) for arm in self._devices]
        return messages

    def data(self, readings: Readings, newest: Newest, now: int) -> list[Message]:
        """DDATA of readings, and a DBIRTH where hosts lack an arm or one of its metrics.

        All but the newest reading of an arm are historical: hosts store historical
        readings, and show the newest. A DBIRTH holds the newest reading, which is not
        published again.

        Args:
            readings: the oldest readings that wait, in order of time.
            newest: newest reading of each arm, readings that wait included.
            now: time of publishing.
        """
        messages: list[Message] = []
        for arm, of_arm in groupby(readings, lambda reading: reading.arm):
            last = newest[arm]
            device = self._devices.get(arm)
            if device is None or not device.values.keys() >= values_of(last).keys():
                messages.append(self._device_birth(last, now))
            metrics = self._changes(arm, of_arm, last)
            if metrics:
                sequence = self._next_sequence()
                payload = encoded(now, metrics, seq=sequence, typed=False)
                messages.append(Message(self._topic("DDATA", arm), payload))
        return messages

    def _changes(
        self, arm: str, readings: Iterable[StoredReading], last: StoredReading
    ) -> list[Metric]:
        """All metrics of historical readings, and what the last one has changed.

        Args:
            arm: arm that was announced to the hosts.
            readings: readings of the arm, in order of time.
            last: the newest reading of the arm, which may be one of the historical
                readings.
        """
        metrics: list[Metric] = []
        born, before = self._devices[arm]
        for reading in readings:
            if reading.stamp == born:  # the DBIRTH has published it
                continue
            values = values_of(reading)
            if reading is not last:
                metrics += _metrics(values, reading.stamp, historical=True)
                continue
            self._devices[arm] = Device(born, {**before, **values})
            changed = {
                name: value for name, value in values.items() if before[name] != value
            }
            metrics += _metrics(changed, reading.stamp)
        return metrics

    def device_death(self, arm: str, now: int) -> list[Message]:
        """DDEATH of an arm that is alive to hosts; nothing for another one."""
        if self._devices.pop(arm, None) is None:
            return []
        payload = encoded(now, seq=self._next_sequence())
        return [Message(self._topic("DDEATH", arm), payload)]

    def needs_birth(self, topic: str, payload: bytes, *, retained: bool) -> bool:
        """Whether a received message requires all births once more.

        A command for a rebirth does, and a state of a host that has come online.

        Args:
            topic: topic of the message, one of `topics`.
            payload: whatever a foreign client sends.
            retained: whether the broker had the message before the subscription: a host
                that was online then has had the births of the connection.
        """
        if not topic.startswith(STATES):
            return is_commanded(payload, REBIRTH)
        online_since = _online_since(payload)
        known = self._hosts.get(topic)
        if online_since is None or online_since == known:
            return False
        if known is None and len(self._hosts) >= MOST_HOSTS:
            return False
        self._hosts[topic] = online_since
        return not retained

    def _device_birth(self, reading: StoredReading, now: int) -> Message:
        """DBIRTH of an arm with all metrics of a reading and their descriptions."""
        values = values_of(reading)
        self._devices[reading.arm] = Device(reading.stamp, values)
        metrics = _metrics(values, reading.stamp, described=True)
        payload = encoded(now, metrics, seq=self._next_sequence())
        return Message(self._topic("DBIRTH", reading.arm), payload)

    def _birth_sequence(self, now: int) -> Metric:
        """The metric bdSeq, by which hosts assign an NDEATH to its NBIRTH."""
        return Metric(now, "bdSeq", DataType.INT64, value=self._births.present)

    def _next_sequence(self) -> int:
        """The number of the next message after the birth of the node, 0 to 255."""
        self._sequence = (self._sequence + 1) % SEQUENCE
        return self._sequence

    def _topic(self, kind: str, arm: str | None = None) -> str:
        """A topic of this node, or of one of its arms.

        Args:
            kind: type of its messages, such as "NBIRTH".
            arm: device ID; None for the node itself.
        """
        levels = [NAMESPACE, self.group, kind, self.node]
        if arm is not None:
            levels.append(arm)
        return "/".join(levels)


def _online_since(payload: bytes) -> int | None:
    """Time at which a host application has come online [ms]; None if it is not online.

    The state of a host is JSON such as {"online": true, "timestamp": 1750000000000}
    (Sparkplug specification, 6.4.22).
    """
    try:
        state = json.loads(payload[:LONGEST_STATE])
        stamp = int(state["timestamp"])
        online = state["online"] is True
    except Exception:  # whatever a foreign client sends
        return None
    return stamp if online else None


def _metrics(
    values: Mapping[str, Value],
    stamp: int,
    *,
    historical: bool = False,
    described: bool = False,
) -> list[Metric]:
    """Metrics of values that were measured at one time.

    Args:
        values: values by name of the metric.
        stamp: the time [ms since 1970, UTC].
        historical: whether a newer value has been published, or will be at once.
        described: whether the metrics have descriptions, as births do.
    """
    metrics: list[Metric] = []
    for name, value in values.items():
        datatype = OTHERS[name][0] if name in OTHERS else DataType.DOUBLE
        description = description_of(name) if described else ""
        metrics.append(Metric(stamp, name, datatype, value, description, historical))
    return metrics


def json_messages(
    group: str, node: str, readings: Readings, newest: Newest
) -> list[Message]:
    """Readings as JSON, for clients that do not read Sparkplug payloads.

    Args:
        group: group ID, the first level of the topic GROUP/NODE/ARM/energy.
        node: edge node ID.
        readings: readings in order of time.
        newest: newest reading of each arm; the others are marked as historical.

    Returns:
        A message for each reading, with all metrics; numbers that are unknown are null.
    """
    messages: list[Message] = []
    for reading in readings:
        time = datetime.fromtimestamp(reading.stamp / 1000.0, timezone.utc)
        content = {
            "time": time.isoformat(timespec="milliseconds"),
            "historical": reading is not newest[reading.arm],
            **values_of(reading),
        }
        text = json.dumps(content, separators=(",", ":"))
        topic = f"{group}/{node}/{reading.arm}/energy"
        messages.append(Message(topic, text.encode()))
    return messages
