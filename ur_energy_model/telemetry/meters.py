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
from dataclasses import replace
from http.client import HTTPConnection
from typing import Any, Literal, NamedTuple
from urllib.parse import SplitResult, parse_qs, unquote

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.errors import InputError, optional_import, problem_words
from ur_energy_model.files import config_file, user_path
from ur_energy_model.options import split_url
from ur_energy_model.telemetry.clock import HOST_CLOCK
from ur_energy_model.telemetry.fields import FROZEN_CHANGE, FROZEN_SECONDS, METER_FIELDS
from ur_energy_model.telemetry.samples import WARNING, Event, RecordingInfo, Telemetry
from ur_energy_model.telemetry.source import LinkStatus, TelemetrySource
from ur_energy_model.typing import Array, ClosedOnExit, Self
from ur_energy_model.yaml_reader import Quantity, Record, YamlTree, choice, integer, with_suggestion

POLL_SECONDS = 0.25  # period of the requests to a meter
REPEAT_PERIODS, REPEAT_SECONDS = 2.0, (2.0, 20.0)
"""An answer that equals the one before is a new reading only after so many of the periods in which
answers change, within these bounds [s]: meters are asked more often than they measure."""
ANSWER_SECONDS, ANSWER_BYTES = 3.0, 1 << 16  # longest time for an answer, and its largest size
SILENT_PERIODS, SILENT_SECONDS = 5.0, 10.0
"""A reading is held for so many periods of the messages, and so many seconds at least."""
FROZEN_SMOOTHING = 10.0
"""Meters average over some seconds, and so is the bus power smoothed to which they are held [s]."""
MOST_POWER = 1e6  # of a reading that is believed [W]
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 10.0  # before a meter is connected again [s]
MOST_READINGS = 64  # readings kept; a batch of samples spans one or two
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
        # Arrival [ns, k] by HOST_CLOCK, and power, energy and number [3, k], from a reading 0 on
        # that has none; replaced as a whole.
        self._kept = np.zeros(1, np.int64), np.array([[np.nan], [np.nan], [0.0]])
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
            return self._failure or "sends no readings"
        return None if self._count else self._failure

    def latest(self, stamp: NDArray[np.int64]) -> Array:
        """Power, energy and number [3, n] of the last readings at host times [n], ns.

        Power and energy are NaN before the first reading, and where the meter is silent.
        """
        arrived, values = self._kept
        found = values[:, np.maximum(np.searchsorted(arrived, stamp, "right") - 1, 0)]
        found[:2, stamp - self._heard > self._held_ns] = np.nan
        return found

    def _run(self) -> None:
        pause = FIRST_PAUSE
        while not self._closed.is_set():
            try:
                with closing(self._items(self._closed)) as items:  # type: ignore[type-var]
                    for item in items:
                        self._hear(item)
                        pause = FIRST_PAUSE
            except Exception as error:  # a library of another project may raise anything
                self._hear(problem_words(error))
            self._closed.wait(random.uniform(0.5, 1.0) * pause)
            pause = min(2.0 * pause, LONGEST_PAUSE)

    def _hear(self, item: Item) -> None:
        """Keep a reading, or why there is none; None prolongs the last one."""
        now = HOST_CLOCK.now()
        self._failure = item if isinstance(item, str) else None
        self._news.set()
        if isinstance(item, str):
            return
        if self._count:
            self._intervals.append(now - self._heard)
            period = 1e-9 * float(np.median(self._intervals))
            self._held_ns = 1e9 * max(SILENT_PERIODS * period, SILENT_SECONDS)
        self._heard = now
        if item is not None:
            self._count += 1
            arrived = np.append(self._kept[0], now)[-MOST_READINGS:]
            new = np.array([[item.power], [item.energy], [self._count]])
            self._kept = arrived, np.append(self._kept[1], new, axis=1)[:, -MOST_READINGS:]


class MeteredSource(ClosedOnExit):
    """A source whose batches have the readings of a meter as further columns.

    Args:
        source: of samples with host times, such as a controller.
        meter: being read; it stays open when the source is closed.
    """

    def __init__(self, source: TelemetrySource, meter: Meter) -> None:
        self._source, self._meter = source, meter
        self._reported: str | None = None
        # For `_frozen`: the reading, its number and time when it began; the smoothed bus power, the
        # time at which smoothing began, and that of the last batch.
        self._shown, self._number, self._since = (math.nan, math.nan), 0.0, 0.0
        self._mean = self._low = self._high = self._began = self._time = math.nan

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
        now = np.full(len(batch), HOST_CLOCK.now())
        found = self._meter.latest(now if batch.stamp is None else batch.stamp)
        if self._frozen(batch, *found[:, -1].tolist()):
            found[:2] = np.nan
        readings = dict(zip(METER_FIELDS, found, strict=True))
        return replace(batch, columns={**batch.columns, **readings})

    def _frozen(self, batch: Telemetry, power: float, energy: float, number: float) -> bool:
        """Whether the meter repeats its reading after a batch although the power changes."""
        shown, time = (power, -1.0 if math.isnan(energy) else energy), float(batch.time[-1])
        step, self._time = time - self._time, time
        mean = math.nan if batch.bus_power is None else float(np.mean(batch.bus_power))
        if not 0.0 < step < FROZEN_SMOOTHING or math.isnan(self._mean):
            self._mean, self._began = mean, time
        elif math.isfinite(mean):
            self._mean += step / FROZEN_SMOOTHING * (mean - self._mean)
        if shown != self._shown:
            self._shown, self._number, self._since = shown, number, time
        if self._since == time or time - self._began < FROZEN_SECONDS:  # not settled yet
            self._low = self._high = self._mean
        self._low, self._high = min(self._low, self._mean), max(self._high, self._mean)
        stays = number > self._number and time - self._since > FROZEN_SECONDS
        return stays and self._high - self._low > FROZEN_CHANGE

    def close(self) -> None:
        """Close the source."""
        self._source.close()

    def __enter__(self) -> Self:
        self._source.__enter__()
        return self


# Kinds of meters.


def _items(url: str) -> Items:
    """What reads the meter of a URL; raises InputError for other URLs."""
    secrets = "put those of an MQTT broker into UR_ENERGY_MQTT_USERNAME and _PASSWORD"
    parts = split_url("--meter", url, _KINDS, "a meter", f"state {FORMS}", secrets)
    if not parts.hostname:
        raise _wrong("names no host")
    return _KINDS[parts.scheme](parts, parts.hostname)


def _wrong(problem: str) -> InputError:
    return InputError("--meter", f"the URL {problem}", f"state {FORMS}")


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


def _shelly(parts: SplitResult, host: str) -> Items:
    """Status of a component (Switch, PM1, EM1, EM, ...) by RPC over HTTP."""
    if not re.fullmatch(r"/rpc/\w+\.GetStatus", parts.path):  # other methods may switch the power
        raise _wrong("is not that of a GetStatus method of a Shelly device")
    target, path = f"{parts.path}?{parts.query}", _json_path(parts)

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


def _mqtt(parts: SplitResult, host: str) -> Items:
    """A topic whose messages are numbers [W], or JSON with one."""
    topic, path = unquote(parts.path[1:]), _json_path(parts)
    if not topic or parts.query or "+" in topic:
        raise _wrong("has no topic without wildcards")
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
            refused.extend([mqtt.connack_string(code)] if code else [])

        def subscribed(_client: Any, _data: Any, _number: int, granted: tuple[int, ...]) -> None:
            refused.extend([f"the broker refuses the topic {topic}"] if 128 in granted else [])

        def arrived(_client: Any, _data: Any, message: mqtt.MQTTMessage) -> None:
            received.extend(
                [] if message.retain else [message.payload]
            )  # a retained one may be old

        client.on_connect, client.on_subscribe, client.on_message = connected, subscribed, arrived
        try:
            client.connect(host, parts.port or (8883 if tls else 1883), keepalive=15)
            while not closed.is_set():
                code = client.loop(POLL_SECONDS)
                if refused or code:
                    raise ConnectionError(refused[0] if refused else mqtt.error_string(code))
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


class Register(NamedTuple):
    """A quantity of a meter: address of its first register (from 0), type, factor to SI."""

    address: int
    type: str
    scale: float


class MeterProfile(NamedTuple):
    """Registers of a kind of meter, as a file in config/meters has them."""

    registers: str  # "input" or "holding"
    word_order: Literal["big", "little"]  # big: the high word first
    power: Register  # W
    energy: Register | None  # J


def load_profile(name: str) -> MeterProfile:
    """A shipped profile, or that of a YAML file; InputError: there is none, or it is unusable."""
    path = user_path(name)
    if path.suffix != ".yaml":
        path = config_file("meters", f"{path.name}.yaml")
        shipped = sorted(each.stem for each in path.parent.glob("*.yaml"))
        if name not in shipped:
            remedy = f"name one of {with_suggestion(name, shipped)}, or a YAML file"
            raise InputError("--meter", f"there is no profile '{name}' of a meter", remedy)

    def register(tree: YamlTree) -> Register:
        with Record(tree) as keys:
            address, kind = integer(0, 65535)(keys["address"]), choice(TYPES)(keys["type"])
            return Register(address, kind, keys.read("scale", Quantity("1", -1e12, 1e12), 1.0))

    with Record(YamlTree.read(path, InputError, "correct the file")) as keys:
        keys.schema(1)
        registers = choice(("input", "holding"))(keys["registers"])
        low_first = choice(("big", "little"))(keys["word_order"]) == "little"
        power, energy = register(keys["power"]), keys.read("energy", register, None)
    return MeterProfile(registers, "little" if low_first else "big", power, energy)


def _modbus(parts: SplitResult, host: str) -> Items:
    """Registers of a unit behind a Modbus TCP address."""
    unit, given = parts.path.strip("/"), parse_qs(parts.query)
    if not unit.isdecimal() or int(unit) > 255 or given.keys() != {"profile"} or parts.fragment:
        raise _wrong("has no unit number, or no profile")
    profile, port = load_profile(given["profile"][0]), parts.port or MODBUS_PORT
    with optional_import("meters"):
        from pymodbus.client import ModbusTcpClient
        from pymodbus.exceptions import ModbusException

    def read(closed: threading.Event) -> Iterator[Item]:
        client = ModbusTcpClient(host, port=port, timeout=ANSWER_SECONDS, retries=0)
        inputs, holding = client.read_input_registers, client.read_holding_registers
        function = inputs if profile.registers == "input" else holding

        def value_of(register: Register) -> float:
            address, count = register.address, TYPES[register.type]
            try:
                answer = function(address, count=count, device_id=int(unit))
            except ModbusException:
                raise TimeoutError("does not answer as a Modbus TCP device") from None
            if answer.isError() or len(answer.registers) != count:
                text = f"refuses register {address} of unit {unit}; check unit and profile"
                raise ConnectionError(text)
            kind = client.DATATYPE[register.type.upper()]
            number: Any = client.convert_from_registers(answer.registers, kind, profile.word_order)
            return register.scale * float(number)

        def ask() -> Item:
            energy = math.nan if profile.energy is None else value_of(profile.energy)
            try:
                return checked_reading(value_of(profile.power), energy)
            except ValueError as error:
                return f"{error}; check the profile"

        with closing(client):  # also after a failure: a late answer would be taken for the next one
            if not client.connect():
                raise ConnectionError(f"no connection to port {port}")
            yield from _asked(ask, closed)

    return read


_KINDS: dict[str, Callable[[SplitResult, str], Items]] = {
    "http": _shelly,
    "mqtt": _mqtt,
    "mqtts": _mqtt,
    "modbus": _modbus,
}
