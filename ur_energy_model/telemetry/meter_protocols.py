# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Protocols of power meters: Shelly devices by HTTP, topics of an MQTT broker, Modbus TCP.

Nothing is written to a meter, and nothing from a meter is believed before its size and
time are: an answer has a budget of bytes and seconds, a stream of messages one of bytes
and messages a second, counted where bytes leave the socket. Whoever exceeds it is
disconnected and tried again later.
"""

from __future__ import annotations

import io
import logging
import math
import os
import re
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing
from http.client import HTTPConnection
from typing import Any, Literal, NamedTuple
from urllib.parse import SplitResult, parse_qs, unquote

import numpy as np

from ur_energy_model.addresses import split_url
from ur_energy_model.errors import InputError, optional_import
from ur_energy_model.files import config_file, user_path
from ur_energy_model.telemetry.meter_values import (
    PowerPath,
    Reading,
    Silence,
    checked_reading,
    json_reading,
)
from ur_energy_model.yaml_reader import (
    Quantity,
    Record,
    YamlTree,
    choice,
    integer,
    with_suggestion,
)

POLL_SECONDS = 0.25  # period of the requests to a meter
REPEAT_PERIODS = 2.0
REPEAT_SECONDS = (2.0, 20.0)
"""An answer that equals the one before is a new reading only after so many of the periods in which
answers change, within these bounds [s]: meters are asked more often than they measure."""
ANSWER_SECONDS = 3.0  # longest time for an answer [s]
ANSWER_BYTES = 1 << 16  # largest size of an answer [bytes]
STREAM_BYTES = 1 << 18
STREAM_MESSAGES = 100
STREAM_READS = 2000
"""Most of a broker's stream in a second: bytes, messages, and reads of the socket, of which each
packet takes three or four."""
MOST_UNANSWERED = 16
"""Messages of a broker that wait for an answer or a continuation; a meter's topic has none."""
FORMS = (
    "http://HOST/rpc/Switch.GetStatus?id=0 (Shelly), mqtt://HOST/TOPIC#path.in.json or "
    "modbus://HOST/UNIT?profile=NAME"
)
# else it writes to stderr
logging.getLogger("pymodbus").addHandler(logging.NullHandler())

Item = Reading | Silence | None
"""A reading, why there is none, or that the last one is still shown."""
Items = Callable[[threading.Event], Iterator[Item]]
"""Connects, and returns what the meter sends until the event is set; any exception ends it."""


def items_of(url: str) -> Items:
    """The function that reads the meter of a URL, see `Items`.

    Args:
        url: one of FORMS.

    Raises:
        InputError: not a URL of FORMS, or a profile that cannot be used.
        MissingPackageError: the package for this kind of meter is not installed.
    """
    secrets = "put those of an MQTT broker into UR_ENERGY_MQTT_USERNAME and _PASSWORD"
    parts = split_url("--meter", url, _KINDS, "a meter", f"state {FORMS}", secrets)
    if not parts.hostname:
        raise _wrong("names no host")
    return _KINDS[parts.scheme](parts, parts.hostname)


def _wrong(problem: str) -> InputError:
    """The error about a URL that is not of the form."""
    return InputError("--meter", f"the URL {problem}", f"state {FORMS}")


def _path_of(parts: SplitResult) -> PowerPath:
    """The path behind `#`; InputError for one that is none."""
    try:
        return PowerPath.parse(parts.fragment)
    except ValueError as error:
        raise _wrong(str(error)) from None


class AnswerBudget:
    """Bytes and seconds that one answer may take."""

    def __init__(self) -> None:
        self._end = time.monotonic() + ANSWER_SECONDS
        self._left = ANSWER_BYTES

    @property
    def seconds(self) -> float:
        """Time that is left [s].

        Raises:
            TimeoutError: no time is left.
        """
        left = self._end - time.monotonic()
        if left <= 0.0:
            raise TimeoutError("its answer is too slow")
        return left

    def spend(self, size: int) -> None:
        """Count bytes that were received; OSError if they are too many."""
        self._left -= size
        if self._left < 0:
            raise OSError(f"its answer is longer than {ANSWER_BYTES} bytes")


def _asked(ask: Callable[[], Item], closed: threading.Event) -> Iterator[Item]:
    """Answers to requests in a fixed period.

    Args:
        ask: requests a reading.
        closed: ends the requests when it is set.

    Yields:
        The answers; None for one that is only the reading before again.
    """
    began = time.monotonic()
    due = began  # time of the next request [s]
    changed = began  # when the answer became another one [s]
    counted = began  # when an answer last was a reading [s]
    before: Item = None
    periods: deque[float] = deque(maxlen=15)  # periods in which answers change [s]
    while not closed.wait(max(0.0, due - time.monotonic())):
        due = max(due + POLL_SECONDS, time.monotonic())
        item = ask()
        now = time.monotonic()
        if item != before:
            if before is not None:
                periods.append(now - changed)
            before = item
            changed = now
        elif isinstance(item, Reading):
            stays = REPEAT_PERIODS * float(np.median(periods)) if periods else 0.0
            if now - counted < np.clip(stays, *REPEAT_SECONDS):
                yield None
                continue
        counted = now
        yield item


# HTTP: the status of a component of a Shelly device.


class _BoundedReader(io.RawIOBase):
    """Bytes of a socket within the budget of one answer: status, headers and content."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._budget = AnswerBudget()
        # The stream keeps the socket open until it is closed itself: HTTPConnection
        # closes the socket of a last response before that response was read.
        self._stream = sock.makefile("rb", buffering=0)

    def readable(self) -> bool:
        """True: it is only read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Receive bytes into a buffer; OSError beyond the budget of the answer."""
        self._socket.settimeout(self._budget.seconds)
        try:
            received = self._stream.readinto(buffer)
        except TimeoutError:
            raise TimeoutError("its answer is too slow") from None
        self._budget.spend(received or 0)
        return received or 0

    def close(self) -> None:
        """Close the stream, and the socket if nobody else uses it."""
        self._stream.close()
        super().close()


class _BoundedSocket:
    """The part of a socket that HTTPConnection uses; each response is read within a budget."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self.sendall = sock.sendall
        self.close = sock.close

    def makefile(self, _mode: str) -> io.BufferedReader:
        """The stream from which the next response is read."""
        return io.BufferedReader(_BoundedReader(self._socket))


class _BoundedConnection(HTTPConnection):
    """A connection whose responses have a budget.

    http.client itself has no limits for interim responses (100 Continue), trailers, and
    the sum of headers.
    """

    def connect(self) -> None:
        """Connect, and bound what is received."""
        super().connect()
        self.sock: Any = _BoundedSocket(self.sock)


def _shelly(parts: SplitResult, host: str) -> Items:
    """Status of a component (Switch, PM1, EM1, EM, ...), or of all components, by RPC over HTTP."""
    # other methods may switch the power
    if not re.fullmatch(r"/rpc/\w+\.GetStatus", parts.path):
        raise _wrong("is not that of a GetStatus method of a Shelly device")
    target = f"{parts.path}?{parts.query}"
    path = _path_of(parts)

    def read(closed: threading.Event) -> Iterator[Item]:
        """Readings of the device until the event is set."""
        connection = _BoundedConnection(host, parts.port or 80, timeout=ANSWER_SECONDS)

        def ask() -> Item:
            """One request and its answer."""
            connection.request("GET", target)
            content = bytearray()
            # no redirects, no proxies
            with closing(connection.getresponse()) as response:
                # `read` reserves what the header announces
                while chunk := response.read1(4096):
                    content += chunk
            if response.status == 401:
                return Silence(
                    "asks for a password; switch its authentication off, or read it by MQTT"
                )
            if response.status != 200:
                starting = response.status == 503
                return Silence(f"answers with HTTP {response.status}", may_pass=starting)
            return json_reading(bytes(content), path, ANSWER_BYTES)

        with closing(connection):
            yield from _asked(ask, closed)

    return read


# MQTT: a topic whose messages are numbers [W], or JSON with one.


MQTT_PORT = 1883
MQTTS_PORT = 8883


class _StreamBudget:
    """Bytes, messages and reads of a broker's stream in any second."""

    def __init__(self) -> None:
        self._second = -1
        self._spent = np.zeros(3)

    def spend(self, *, size: int = 0, messages: int = 0, reads: int = 0) -> None:
        """Count what was received; OSError if it is too much."""
        second = int(time.monotonic())
        if second != self._second:
            self._second = second
            self._spent = np.zeros(3)
        self._spent += (size, messages, reads)
        if (self._spent > (STREAM_BYTES, STREAM_MESSAGES, STREAM_READS)).any():
            limit = f"{STREAM_BYTES} bytes or {STREAM_MESSAGES} messages"
            raise OSError(f"sends more than {limit} in a second")


def _mqtt(parts: SplitResult, host: str) -> Items:
    """A topic whose messages are numbers [W], or JSON with one."""
    topic = unquote(parts.path[1:])
    path = _path_of(parts)
    if not topic or parts.query or "+" in topic:
        raise _wrong("has no topic without wildcards")
    subscriber = _subscriber_class(topic)
    tls = parts.scheme == "mqtts"
    port = parts.port or (MQTTS_PORT if tls else MQTT_PORT)

    def read(closed: threading.Event) -> Iterator[Item]:
        """Readings of the topic until the event is set."""
        client = subscriber()
        if user := os.environ.get("UR_ENERGY_MQTT_USERNAME"):
            client.username_pw_set(user, os.environ.get("UR_ENERGY_MQTT_PASSWORD"))
        if tls:
            authority = os.environ.get("UR_ENERGY_MQTT_CA")
            client.tls_set_context(ssl.create_default_context(cafile=authority))
        try:
            client.connect(host, port, keepalive=15)
            while not closed.is_set():
                client.receive(POLL_SECONDS)
                while client.received:
                    yield json_reading(client.received.popleft(), path, ANSWER_BYTES)
        finally:
            client.release()

    return read


def _subscriber_class(topic: str) -> type[Any]:
    """The class of clients that subscribe to a topic, if paho-mqtt is installed.

    Raises:
        MissingPackageError: paho-mqtt is not installed.
    """
    with optional_import():
        import paho.mqtt.client as mqtt
        from paho.mqtt.enums import CallbackAPIVersion
        from paho.mqtt.reasoncodes import ReasonCode

    class Subscriber(mqtt.Client):
        """paho's client, with limits where it reads its socket, before memory is reserved.

        Without these limits, paho takes messages of 256 MB, and any number of messages
        that it has to acknowledge.

        Attributes:
            received: payloads of the messages that were not taken yet.
            refused: why the connection ended or cannot be used, None while it can.
            budget: what the broker may still send in this second.
        """

        def __init__(self) -> None:
            super().__init__(
                CallbackAPIVersion.VERSION2,
                protocol=mqtt.MQTTv311,
                # a broker that refuses the version is not asked again with an older one
                reconnect_on_failure=False,
            )
            self.received: deque[bytes] = deque()
            self.refused: str | None = None
            self.budget = _StreamBudget()
            self.on_connect = self._connected
            self.on_subscribe = self._subscribed
            self.on_message = self._arrived

        def receive(self, timeout: float) -> None:
            """Receive what comes within a time [s].

            Raises:
                ConnectionError: the connection is lost, or refused.
                OSError: the broker exceeds a limit.
            """
            code = self.loop(timeout)
            if self.refused is not None or code:
                raise ConnectionError(self.refused or mqtt.error_string(code))
            # Messages of quality of service 0, which this client subscribes to, are not
            # acknowledged: then nothing waits here.
            if max(len(self._in_messages), len(self._out_packet)) > MOST_UNANSWERED:
                raise OSError(
                    "sends messages of a quality of service that was not asked for"
                )

        def release(self) -> None:
            """Close the socket; without callbacks in a cycle, memory is freed at once."""
            self.on_connect = None
            self.on_subscribe = None
            self.on_message = None
            sock = self.socket()
            if sock is not None:
                sock.close()

        def _sock_recv(self, size: int) -> bytes:
            """Receive within the limits; an OSError ends the connection.

            paho reports every error as a lost connection, so the reason is kept here.
            """
            try:
                if size > ANSWER_BYTES:
                    raise OSError(f"sends a message longer than {ANSWER_BYTES} bytes")
                received = super()._sock_recv(size)
                self.budget.spend(size=len(received), reads=1)
            except BlockingIOError:
                raise
            except OSError as error:
                self.refused = self.refused or str(error)
                raise
            return received

        def _connected(
            self,
            _client: mqtt.Client,
            _data: Any,
            _flags: mqtt.ConnectFlags,
            reason: ReasonCode,
            _properties: Any,
        ) -> None:
            """Subscribe, once the broker has answered."""
            self.subscribe(topic)
            if reason.is_failure:
                self.refused = f"the broker refuses the connection: {reason}"

        def _subscribed(
            self,
            _client: mqtt.Client,
            _data: Any,
            _number: int,
            reasons: list[ReasonCode],
            _properties: Any,
        ) -> None:
            """Note whether the broker refuses the topic."""
            if any(reason.is_failure for reason in reasons):
                self.refused = f"the broker refuses the topic {topic}"

        def _arrived(
            self, _client: mqtt.Client, _data: Any, message: mqtt.MQTTMessage
        ) -> None:
            """Keep a message."""
            self.budget.spend(messages=1)
            if not message.retain:  # a retained message may be old
                self.received.append(bytes(message.payload))

    return Subscriber


# Modbus TCP: which registers hold what.

TYPES = {"int16": 1, "uint16": 1, "int32": 2, "uint32": 2, "int64": 4, "uint64": 4,
         "float32": 2, "float64": 4}  # fmt: skip
"""Number of registers of each type."""
MODBUS_PORT = 502
LARGEST_UNIT = 255  # number of a unit behind a Modbus TCP address


class Register(NamedTuple):
    """A quantity of a meter.

    Attributes:
        address: address of the first register of the quantity, from 0.
        type: one of TYPES.
        scale: factor from the number in the registers to SI units.
    """

    address: int
    type: str
    scale: float


class MeterProfile(NamedTuple):
    """Registers of a kind of meter, as a file in config/meters has them.

    Attributes:
        registers: "input" or "holding".
        word_order: "big" if the high word of a number is first.
        power: active power [W].
        energy: the meter's counter [J]; None without one.
    """

    registers: str
    word_order: Literal["big", "little"]
    power: Register
    energy: Register | None


def load_profile(name: str) -> MeterProfile:
    """A profile of a kind of meter.

    Args:
        name: name of a shipped profile, or a YAML file.

    Raises:
        InputError: there is no such profile, or it is unusable.
    """
    path = user_path(name)
    if path.suffix != ".yaml":
        path = config_file("meters", f"{path.name}.yaml")
        shipped = sorted(each.stem for each in path.parent.glob("*.yaml"))
        if name not in shipped:
            remedy = f"name one of {with_suggestion(name, shipped)}, or a YAML file"
            problem = f"there is no profile '{name}' of a meter"
            raise InputError("--meter", problem, remedy)

    def register(tree: YamlTree) -> Register:
        """The registers of a quantity in the file."""
        with Record(tree) as keys:
            address = integer(0, 65535)(keys["address"])
            kind = choice(TYPES)(keys["type"])
            scale = keys.read("scale", Quantity("1", -1e12, 1e12), 1.0)
            return Register(address, kind, scale)

    with Record(YamlTree.read(path, InputError, "correct the file")) as keys:
        keys.schema(1)
        registers = choice(("input", "holding"))(keys["registers"])
        low_first = choice(("big", "little"))(keys["word_order"]) == "little"
        power = register(keys["power"])
        energy = keys.read("energy", register, None)
    return MeterProfile(registers, "little" if low_first else "big", power, energy)


def _modbus(parts: SplitResult, host: str) -> Items:
    """Registers of a unit behind a Modbus TCP address."""
    unit = parts.path.strip("/")
    given = parse_qs(parts.query)
    is_unit = unit.isdecimal() and int(unit) <= LARGEST_UNIT
    if not is_unit or given.keys() != {"profile"} or parts.fragment:
        raise _wrong("has no unit number, or no profile")
    registers = _registers_class(int(unit), load_profile(given["profile"][0]))
    port = parts.port or MODBUS_PORT

    def read(closed: threading.Event) -> Iterator[Item]:
        """Readings of the unit until the event is set."""
        client = registers(host, port=port, timeout=ANSWER_SECONDS, retries=0)
        # Closed also after a failure: a late answer would be taken for the next one.
        with closing(client):
            if not client.connect():
                raise ConnectionError(f"no connection to port {port}")
            yield from _asked(client.reading, closed)

    return read


def _registers_class(unit: int, profile: MeterProfile) -> type[Any]:
    """The class of clients that read a unit by its profile, if pymodbus is installed.

    Raises:
        MissingPackageError: pymodbus is not installed.
    """
    with optional_import():
        from pymodbus.client import ModbusTcpClient
        from pymodbus.exceptions import ModbusException

    class Registers(ModbusTcpClient):
        """pymodbus's client, with a budget for each answer in addition to its timeout."""

        budget = AnswerBudget()

        def recv(self, size: int | None) -> bytes:
            """Receive within the budget of an answer."""
            _ = self.budget.seconds
            received = super().recv(size)
            self.budget.spend(len(received))
            return received

        def reading(self) -> Reading | Silence:
            """Power and energy at present.

            Raises:
                TimeoutError: the device does not answer.
                ConnectionError: the device refuses a register.
            """
            self.budget = AnswerBudget()
            energy = math.nan
            if profile.energy is not None:
                energy = self.value_of(profile.energy)
            item = checked_reading(self.value_of(profile.power), energy)
            if isinstance(item, Silence):
                return Silence(f"{item.words}; check the profile")
            return item

        def value_of(self, register: Register) -> float:
            """Value of a quantity, in SI units; raises as `reading`."""
            read = self.read_holding_registers
            if profile.registers == "input":
                read = self.read_input_registers
            address = register.address
            count = TYPES[register.type]
            try:
                answer = read(address, count=count, device_id=unit)
            except ModbusException:
                raise TimeoutError("does not answer as a Modbus TCP device") from None
            if answer.isError() or len(answer.registers) != count:
                problem = f"refuses register {address} of unit {unit}"
                raise ConnectionError(f"{problem}; check unit and profile")
            kind = self.DATATYPE[register.type.upper()]
            number: Any = self.convert_from_registers(
                answer.registers, kind, profile.word_order
            )
            return register.scale * float(number)

    return Registers


_KINDS: dict[str, Callable[[SplitResult, str], Items]] = {
    "http": _shelly,
    "mqtt": _mqtt,
    "mqtts": _mqtt,
    "modbus": _modbus,
}
