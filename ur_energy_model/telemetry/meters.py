"""Power meters at the mains: their readings become columns of a robot's samples.

A thread reads the meter: a Shelly device from the second generation on (HTTP RPC), a topic of an
MQTT broker, or registers over Modbus TCP. Nothing is written to a meter. A meter that is silent or
frozen is a gap (NaN), never a number, and never delays a sample of the robot.
"""

from __future__ import annotations

import json
import logging
import math
import os
import random
import re
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.errors import InputError, optional_import, problem_words
from ur_energy_model.files import config_file, user_path
from ur_energy_model.options import is_address
from ur_energy_model.telemetry.clock import HOST_CLOCK
from ur_energy_model.telemetry.fields import METER_FIELDS
from ur_energy_model.telemetry.samples import WARNING, Event, RecordingInfo, Telemetry
from ur_energy_model.telemetry.source import LinkStatus, TelemetrySource
from ur_energy_model.typing import Array, Self
from ur_energy_model.yaml_reader import Quantity, Record, YamlTree, choice, integer, with_suggestion

POLL_SECONDS = 0.25  # period of the requests to a meter
REPEAT_PERIODS, REPEAT_SECONDS = 2.0, (2.0, 20.0)
"""An answer that equals the one before is a new reading only after so many of the periods in which
answers change, within these bounds [s]: meters are asked more often than they measure."""
ANSWER_SECONDS, ANSWER_BYTES = 3.0, 1 << 16
"""Longest time for an answer, and its largest size."""
SILENT_PERIODS, SILENT_SECONDS = 5.0, 10.0
"""A reading is held for so many periods of the messages, and so many seconds at least."""
FROZEN_SECONDS, FROZEN_CHANGE, FROZEN_BLOCK = 30.0, 20.0, 10.0
"""A meter is frozen that repeats a reading for so long [s] while the means of the bus power over
blocks [s] differ by more than this [W]; meters average over some seconds."""
MOST_POWER = 1e6  # of a reading that is believed [W]
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 10.0  # before a meter is connected again [s]
MOST_READINGS = 64  # readings kept; a batch of samples spans one or two
NO_READINGS = "sends no readings"
FORMS = (
    "http://HOST/rpc/Switch.GetStatus?id=0 (Shelly), mqtt://HOST/TOPIC#path.in.json or "
    "modbus://HOST/UNIT?profile=NAME"
)
logging.getLogger("pymodbus").addHandler(logging.NullHandler())  # else it writes to stderr


class Reading(NamedTuple):
    """Power [W], and the meter's own counter [J], NaN without one."""

    power: float
    energy: float = math.nan


Item = Reading | str | None  # a reading, why there is none, or that the last one is still shown
Items = Callable[[threading.Event], Iterator[Item]]
"""Connects, and returns what the meter sends until the event is set; any exception ends it."""


class Meter:
    """Reads a meter in a thread, and again after every failure; a context manager.

    Args:
        url: one of FORMS.

    Raises:
        InputError: not such a URL, or a profile that cannot be used.
        MissingPackageError: the package for this kind of meter is not installed.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._items = _items(url)
        self._failure: str | None = None
        self._count, self._heard = 0, HOST_CLOCK.now()
        self._held_ns = 1e9 * SILENT_SECONDS
        self._intervals: deque[int] = deque(maxlen=MOST_READINGS)  # between messages [ns]
        # Arrival [ns, k] by HOST_CLOCK, and power, energy and number [3, k]; replaced as a whole.
        self._kept: tuple[NDArray[np.int64], Array] = np.zeros(0, np.int64), np.zeros((3, 0))
        self._news, self._closed = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="power meter", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        self._thread.join(1.0)  # a request that hangs is left behind

    def require(self) -> None:
        """Wait for the first reading; raises InputError for a meter that cannot be read."""
        self._news.wait(2.0 * ANSWER_SECONDS)
        if self._failure is not None:
            raise InputError(self.url, self._failure, "correct --meter, or record without it")

    @property
    def problem(self) -> str | None:
        """Why there is no reading now, None while there is."""
        if HOST_CLOCK.now() - self._heard > self._held_ns:
            return self._failure or NO_READINGS
        return None if self._count else self._failure

    def latest(self, stamp: NDArray[np.int64]) -> Array:
        """Power, energy and number [3, n] of the last readings at host times [n], ns.

        Power and energy are NaN before the first reading, and where the meter is silent.
        """
        arrived, values = self._kept
        if not len(arrived):
            return np.repeat([[np.nan], [np.nan], [0.0]], len(stamp), axis=1)
        last = np.searchsorted(arrived, stamp, "right") - 1
        found = values[:, last]
        found[:2, (last < 0) | (stamp - self._heard > self._held_ns)] = np.nan
        found[2, last < 0] = values[2, 0] - 1.0
        return found

    def _run(self) -> None:
        pause = FIRST_PAUSE
        while not self._closed.is_set():
            try:
                with closing(self._items(self._closed)) as items:  # type: ignore[type-var]
                    for item in items:
                        if isinstance(item, str):
                            self._failure = item
                        else:
                            self._hear(item)
                            pause = FIRST_PAUSE
                        self._news.set()
            except Exception as error:  # a library of another project may raise anything
                self._failure = problem_words(error)
                self._news.set()
            self._closed.wait(random.uniform(0.5, 1.0) * pause)
            pause = min(2.0 * pause, LONGEST_PAUSE)

    def _hear(self, reading: Reading | None) -> None:
        """Keep a reading; None prolongs the last one."""
        now = HOST_CLOCK.now()
        if self._count:
            self._intervals.append(now - self._heard)
            period = 1e-9 * float(np.median(self._intervals))
            self._held_ns = 1e9 * max(SILENT_PERIODS * period, SILENT_SECONDS)
        self._heard, self._failure = now, None
        if reading is not None:
            self._count += 1
            arrived = np.append(self._kept[0], now)[-MOST_READINGS:]
            new = np.array([[reading.power], [reading.energy], [self._count]])
            self._kept = arrived, np.append(self._kept[1], new, axis=1)[:, -MOST_READINGS:]


class MeteredSource:
    """A source whose batches have the readings of a meter as further columns.

    Args:
        source: of samples with host times, such as a controller.
        meter: being read; it stays open when the source is closed.
    """

    def __init__(self, source: TelemetrySource, meter: Meter) -> None:
        self._source, self._meter = source, meter
        self._frozen = FrozenCheck()
        self._reported: str | None = None

    @property
    def info(self) -> RecordingInfo:
        """Robot and recording, with the address of the meter."""
        info = self._source.info
        return replace(info, extra={**info.extra, "meter": self._meter.url})

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the columns."""
        return (*self._source.fields, *METER_FIELDS)

    @property
    def status(self) -> LinkStatus:
        """State of the robot's connection; `Meter.problem` is that of the meter."""
        return self._source.status

    def take_events(self) -> list[Event]:
        """Events of the source, and of the meter: when its readings end, and come again."""
        events, problem = self._source.take_events(), self._meter.problem
        if (problem is None) != (self._reported is None):
            self._reported = problem
            text = f"power meter: {problem or 'sends readings'}"
            events.append(Event(HOST_CLOCK.now(), "meter", text, WARNING))
        return events

    def read(self, timeout: float) -> Telemetry | None:
        """Next batch, as of the source."""
        batch = self._source.read(timeout)
        if batch is None:
            return None
        stamp = batch.stamp
        if stamp is None:
            stamp = np.full(len(batch), HOST_CLOCK.now())
        found = self._meter.latest(stamp)
        if self._frozen.update(batch, found):
            found[:2] = np.nan
        return replace(
            batch, columns={**batch.columns, **dict(zip(METER_FIELDS, found, strict=True))}
        )

    def close(self) -> None:
        """Close the source."""
        self._source.close()

    def __enter__(self) -> Self:
        self._source.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class FrozenCheck:
    """Finds a meter that repeats one reading although the power of the bus changes."""

    def __init__(self) -> None:
        self._value, self._time = (math.nan, math.nan), math.nan
        self._begin(0.0)

    def _begin(self, number: float) -> None:
        """Another value."""
        self._number = number
        self._blocks: list[float] = []  # means of the bus power [W]
        self._seconds = self._block_seconds = self._block_energy = 0.0

    def update(self, batch: Telemetry, found: Array) -> bool:
        """Whether the reading is frozen at the end of the next batch, of readings [3, n]."""
        power, energy, number = found[:, -1].tolist()
        before, self._value = self._value, (power, -1.0 if math.isnan(energy) else energy)
        step, self._time = float(batch.time[-1]) - self._time, float(batch.time[-1])
        if self._value != before:
            self._begin(number)
        bus = batch.bus_power
        if bus is None or not 0.0 < step < FROZEN_BLOCK or not np.isfinite(mean := bus.mean()):
            return False
        self._seconds += step
        self._block_seconds += step
        self._block_energy += step * float(mean)
        if self._block_seconds >= FROZEN_BLOCK:
            mean = self._block_energy / self._block_seconds
            self._blocks = [min([mean, *self._blocks]), max([mean, *self._blocks])]
            self._block_seconds = self._block_energy = 0.0
        repeated = number > self._number and self._seconds > FROZEN_SECONDS
        return repeated and self._blocks[1] - self._blocks[0] > FROZEN_CHANGE


# Kinds of meters.


def _items(url: str) -> Items:
    """What reads the meter of a URL; raises InputError for other URLs."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise InputError("--meter", "the URL is not valid", f"state {FORMS}") from None
    if "@" in parts.netloc:  # the message must not repeat a password
        problem = "a URL must not hold a user name or password, which all users can read"
        remedy = "put those of an MQTT broker into UR_ENERGY_MQTT_USERNAME and _PASSWORD"
        raise InputError("--meter", problem, remedy)
    if parts.scheme not in _KINDS or not host or not is_address(host):
        raise InputError("--meter", f"'{url}' is not the URL of a meter", f"state {FORMS}")
    return _KINDS[parts.scheme](url, parts, host)


def _wrong(url: str, problem: str) -> InputError:
    return InputError("--meter", f"'{url}' {problem}", f"state {FORMS}")


def _asked(ask: Callable[[], Item], closed: threading.Event) -> Iterator[Item]:
    """Answers to requests in a fixed period; None for one that is the reading before again."""
    due = changed = counted = time.monotonic()
    before: Item = None
    periods: deque[float] = deque(maxlen=15)  # in which answers change [s]
    while not closed.wait(max(0.0, due - time.monotonic())):
        due, item, now = max(due + POLL_SECONDS, time.monotonic()), ask(), time.monotonic()
        if item != before:
            if before is not None:
                periods.append(now - changed)
            before, changed = item, now
        elif not isinstance(item, str):
            stays = REPEAT_PERIODS * float(np.median(periods)) if periods else 0.0
            if now - counted < np.clip(stays, *REPEAT_SECONDS):
                yield None
                continue
        counted = now
        yield item


def _shelly(url: str, parts: SplitResult, host: str) -> Items:
    """Status of a component (Switch, PM1, EM1, EM, ...) by RPC over HTTP."""
    if not re.fullmatch(r"/rpc/\w+\.GetStatus", parts.path):  # other methods may switch the power
        raise _wrong(url, "is not a GetStatus method of a Shelly device")
    target = f"{parts.path}?{parts.query}"
    path = _json_path(parts)

    def read(closed: threading.Event) -> Iterator[Item]:
        connection = HTTPConnection(host, parts.port or 80, timeout=ANSWER_SECONDS)

        def ask() -> Item:
            connection.request("GET", target)
            content, end = bytearray(), time.monotonic() + ANSWER_SECONDS
            with closing(connection.getresponse()) as response:  # no redirects, no proxies
                while chunk := response.read1(4096):
                    content += chunk
                    if len(content) > ANSWER_BYTES or time.monotonic() > end:
                        raise OSError(f"its answer is longer than {ANSWER_BYTES} bytes or too slow")
            if response.status == 401:
                return "asks for a password; switch its authentication off, or read it by MQTT"
            if response.status != 200:
                return f"answers with HTTP {response.status}"
            return json_reading(bytes(content), path)

        with closing(connection):
            yield from _asked(ask, closed)

    return read


def _mqtt(url: str, parts: SplitResult, host: str) -> Items:
    """A topic whose messages are numbers [W], or JSON with one."""
    topic, path = unquote(parts.path[1:]), _json_path(parts)
    if not topic or parts.query or "+" in topic:
        raise _wrong(url, "has no topic without wildcards")
    with optional_import("meters"):
        import paho.mqtt.client as mqtt
    tls = parts.scheme == "mqtts"

    def read(closed: threading.Event) -> Iterator[Item]:
        received: deque[bytes] = deque(maxlen=MOST_READINGS)
        refused: list[str] = []
        client = mqtt.Client(protocol=mqtt.MQTTv311)
        if user := os.environ.get("UR_ENERGY_MQTT_USERNAME"):
            client.username_pw_set(user, os.environ.get("UR_ENERGY_MQTT_PASSWORD"))
        if tls:
            authority = os.environ.get("UR_ENERGY_MQTT_CA")
            client.tls_set_context(ssl.create_default_context(cafile=authority))

        def connected(_client: Any, _data: Any, _flags: Any, code: int) -> None:
            client.subscribe(topic)
            if code:
                refused.append(mqtt.connack_string(code))

        def subscribed(_client: Any, _data: Any, _number: int, granted: tuple[int, ...]) -> None:
            if 128 in granted:
                refused.append(f"the broker refuses the topic {topic}")

        def arrived(_client: Any, _data: Any, message: mqtt.MQTTMessage) -> None:
            if not message.retain:  # which may be old
                received.append(message.payload)

        client.on_connect, client.on_subscribe, client.on_message = connected, subscribed, arrived
        try:
            client.connect(host, parts.port or (8883 if tls else 1883), keepalive=15)
            while not closed.is_set():
                code = client.loop(POLL_SECONDS)
                if refused or code:
                    raise ConnectionError(*refused, *([] if refused else [mqtt.error_string(code)]))
                while received:
                    yield json_reading(received.popleft(), path)
        finally:
            client.on_connect = client.on_subscribe = client.on_message = None  # no cycles
            if (sock := client.socket()) is not None:
                sock.close()

    return read


def _json_path(parts: SplitResult) -> list[str]:
    return [key for key in unquote(parts.fragment).split(".") if key]


_POWERS = ("apower", "act_power", "total_act_power")
"""Active power [W] in the status of Switch, PM1 and others; of EM1; of EM."""


def json_reading(content: bytes, path: list[str]) -> Reading | str:
    """Reading in a text of JSON; a number [W], or the status of a component of a Shelly device.

    Args:
        content: the text.
        path: keys, and indices of lists, that lead to the number or the status.

    Returns:
        The reading, or why there is none.
    """
    if len(content) > ANSWER_BYTES:
        return f"its message is longer than {ANSWER_BYTES} bytes"
    energy: Any = math.nan
    try:
        value = json.loads(content)
        for key in path:
            value = value[int(key) if isinstance(value, list) else key]
        if isinstance(value, dict):
            counter = value.get("aenergy")  # Wh
            if isinstance(counter, dict) and isinstance(counter.get("total"), int | float):
                energy = 3600.0 * counter["total"]
            value = value[next((name for name in _POWERS if name in value), _POWERS[0])]
        return checked_reading(value, energy)
    except (ValueError, LookupError, TypeError, RecursionError, OverflowError):
        place = f" at {'.'.join(path)}" if path else ""
        return f"its answer has no power{place}: {content[:40]!r}"


def checked_reading(power: object, energy: float = math.nan) -> Reading:
    """A reading of a possible power; ValueError: it is none."""
    if isinstance(power, bool) or not isinstance(power, int | float):
        raise ValueError("is no number")
    if not abs(power) <= MOST_POWER:
        raise ValueError(f"{power:g} W is no power of a robot")
    return Reading(float(power), energy if math.isfinite(energy) else math.nan)


# Modbus TCP: which registers hold what.

TYPES = {"int16": 1, "uint16": 1, "int32": 2, "uint32": 2, "int64": 4, "uint64": 4,
         "float32": 2, "float64": 4}  # fmt: skip
"""Number of registers of each type."""
MODBUS_PORT = 502


@dataclass(frozen=True)
class Register:
    """A quantity of a meter: address of its first register (from 0), type, factor to SI."""

    address: int
    type: str
    scale: float

    @classmethod
    def read(cls, tree: YamlTree) -> Register:
        """From a mapping of a profile."""
        with Record(tree) as keys:
            return cls(
                integer(0, 65535)(keys["address"]),
                choice(TYPES)(keys["type"]),
                keys.read("scale", Quantity("1", -1e12, 1e12), 1.0),
            )


@dataclass(frozen=True)
class MeterProfile:
    """Registers of a kind of meter, as a file in config/meters has them."""

    registers: str  # "input" or "holding"
    word_order: str  # "big": the high word first; or "little"
    power: Register  # W
    energy: Register | None  # J

    @classmethod
    def load(cls, name: str) -> MeterProfile:
        """A shipped profile, or that of a YAML file.

        Raises:
            InputError: no such profile, or a file that cannot be used.
        """
        path = user_path(name)
        if path.suffix != ".yaml":
            path = config_file("meters", f"{Path(name).name}.yaml")
            shipped = sorted(each.stem for each in path.parent.glob("*.yaml"))
            if name not in shipped:
                known = with_suggestion(name, shipped)
                problem = f"there is no profile '{name}' of a meter"
                raise InputError("--meter", problem, f"name one of {known}, or a YAML file")
        with Record(YamlTree.read(path, InputError, "correct the file")) as keys:
            keys.schema(1)
            return cls(
                choice(("input", "holding"))(keys["registers"]),
                choice(("big", "little"))(keys["word_order"]),
                Register.read(keys["power"]),
                keys.read("energy", Register.read, None),
            )


def _modbus(url: str, parts: SplitResult, host: str) -> Items:
    """Registers of a unit behind a Modbus TCP address."""
    unit, given = parts.path.strip("/"), parse_qs(parts.query)
    if not unit.isdecimal() or int(unit) > 255 or given.keys() != {"profile"} or parts.fragment:
        raise _wrong(url, "has no unit number, or no profile")
    profile, device = MeterProfile.load(given["profile"][0]), int(unit)
    with optional_import("meters"):
        from pymodbus import ModbusException
        from pymodbus.client import ModbusTcpClient

    def read(closed: threading.Event) -> Iterator[Item]:
        port = parts.port or MODBUS_PORT
        client = ModbusTcpClient(host, port=port, timeout=ANSWER_SECONDS, retries=0)

        def value_of(register: Register) -> float:
            function = client.read_input_registers
            if profile.registers == "holding":
                function = client.read_holding_registers
            try:
                answer = function(register.address, count=TYPES[register.type], device_id=device)
            except ModbusException:
                client.close()  # a late answer would be taken for the next one
                raise TimeoutError("does not answer as a Modbus TCP device") from None
            if answer.isError() or len(answer.registers) != TYPES[register.type]:
                text = f"refuses register {register.address} of unit {device}"
                raise ConnectionError(f"{text}; check unit and profile")
            kind = client.DATATYPE[register.type.upper()]
            number = client.convert_from_registers(
                answer.registers, kind, "little" if profile.word_order == "little" else "big"
            )
            assert isinstance(number, int | float)
            return register.scale * number

        def ask() -> Item:
            energy = math.nan if profile.energy is None else value_of(profile.energy)
            try:
                return checked_reading(value_of(profile.power), energy)
            except ValueError as error:
                return f"{error}; check the profile"

        with closing(client):
            if not client.connect():
                raise ConnectionError(f"no connection to port {port}")
            yield from _asked(ask, closed)

    return read


_KINDS: dict[str, Callable[[str, SplitResult, str], Items]] = {
    "http": _shelly,
    "mqtt": _mqtt,
    "mqtts": _mqtt,
    "modbus": _modbus,
}
