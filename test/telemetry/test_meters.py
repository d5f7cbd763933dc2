# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Power meters: real clients against real servers on loopback, faults, and columns of samples."""

from __future__ import annotations

import asyncio
import json
import math
import re
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import paho.mqtt.client as mqtt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from paho.mqtt.enums import CallbackAPIVersion
from pymodbus.server import ModbusTcpServer
from pymodbus.simulator import DataType, SimData, SimDevice

from test.properties import examples
from test.sinks.mosquitto import Mosquitto, with_password
from test.sinks.peers import free_port, needs_program, until
from test.telemetry.conftest import make_telemetry
from test.telemetry.scripted_source import ScriptedSource
from ur_energy_model.errors import InputError
from ur_energy_model.telemetry import meter_protocols, meters
from ur_energy_model.telemetry.clock import HOST_CLOCK
from ur_energy_model.telemetry.fields import METER_FIELDS
from ur_energy_model.telemetry.meter_protocols import ANSWER_BYTES, load_profile
from ur_energy_model.telemetry.meter_values import (
    MOST_POWER,
    PowerPath,
    Reading,
    Silence,
    json_reading,
)
from ur_energy_model.telemetry.meters import Meter, MeteredSource
from ur_energy_model.telemetry.samples import Telemetry

SHELLY = {"id": 0, "apower": 123.4, "aenergy": {"total": 1.5, "by_minute": [0.0]}}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meter_protocols, "POLL_SECONDS", 0.02)
    monkeypatch.setattr(meter_protocols, "ANSWER_SECONDS", 0.5)
    monkeypatch.setattr(meter_protocols, "REPEAT_SECONDS", (0.04, 0.04))
    monkeypatch.setattr(meters, "BOOT_SECONDS", 0.2)
    monkeypatch.setattr(meters, "FIRST_PAUSE", 0.02)
    monkeypatch.setattr(meters, "LONGEST_PAUSE", 0.02)


def shown(meter: Meter) -> list[float]:
    """Power, energy and number of the last reading."""
    return meter.latest(np.array([HOST_CLOCK.now()]))[:, 0].tolist()


def refused(meter: Meter, words: str) -> None:
    until(lambda: meter.problem is not None)
    with pytest.raises(InputError, match=words):
        meter.require()
    assert np.isnan(shown(meter)[0])


def reads(meter: Meter, power: float) -> Callable[[], bool]:
    return lambda: bool(math.isclose(shown(meter)[0], power, rel_tol=1e-6))


# URLs and profiles.


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("192.168.0.20", "not the URL of a meter"),
        ("ftp://cell/x", "not the URL of a meter"),
        ("http://a b/rpc/Switch.GetStatus", "not the URL of a meter"),
        ("http://cell:99999/rpc/Switch.GetStatus", "not valid"),
        ("http://admin:secret@cell/rpc/Switch.GetStatus", "password"),
        ("http://cell/rpc/Switch.Set?id=0&on=false", "GetStatus"),
        ("http://cell/relay/0?turn=off", "GetStatus"),
        ("mqtt://cell", "topic"),
        ("mqtt://cell/meters/+", "wildcards"),
        ("modbus://cell/1", "profile"),
        ("modbus://cell/one?profile=eastron_sdm", "unit"),
        ("modbus://cell/1?profile=eastron_smd", "did you mean 'eastron_sdm'"),
        ("modbus://cell/1?profile=../robots/ur5e", "no profile"),
        ("modbus://cell/1?profile=/nowhere.yaml", "nowhere.yaml"),
        ("mqtt://cell/meter#power@MW", "unit 'MW', not W, kW, mW"),
        (f"mqtt://cell/meter#{'+'.join('p' * 40)}", "adds up 40 values"),
    ],
)
def test_wrong_urls_are_refused_in_a_line(url: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as refusal:
        Meter(url)
    assert "secret" not in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert refusal.value.remedy


@pytest.mark.parametrize(
    "text",
    [
        "schema: 1\nregisters: coils\nword_order: big\npower: {address: 0, type: int16}",
        "schema: 1\nregisters: input\nword_order: big\npower: {address: 70000, type: int16}",
        "schema: 1\nregisters: input\nword_order: big\npower: {address: 0, type: text}",
        "schema: 1\nregisters: input\nword_order: big",
        "schema: 1\nregisters: input\nword_order: big\npower: {address: 0, typ: int16}",
    ],
)
def test_wrong_profiles_are_refused_with_the_line(text: str, tmp_path: Path) -> None:
    file = tmp_path / "meter.yaml"
    file.write_text(text)
    with pytest.raises(InputError, match=r"meter\.yaml"):
        load_profile(str(file))


# Answers in JSON.


@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        (json.dumps(SHELLY), "", (123.4, 5400.0)),
        ('{"act_power": -3}', "", (-3.0, None)),
        ('{"total_act_power": 50, "a_act_power": 50}', "", (50.0, None)),
        (json.dumps({"switch:0": SHELLY}), "switch:0", (123.4, 5400.0)),
        ("77.5", "", (77.5, None)),
        ('{"ENERGY": {"Power": [1, 90]}}', "ENERGY.Power.1", (90.0, None)),
        ('{"ENERGY": {"Power": [1, 90, 5]}}', "ENERGY.Power.*", (96.0, None)),
        ("[1, 2, 3]", "*", (6.0, None)),
        ('{"p1": 0.1, "p2": 0.2, "p3": -0.05}', "p1+p2+p3@kW", (250.0, None)),
        ('{"a+b": 3000}', "a%2Bb@mW", (3.0, None)),
        (
            json.dumps({"em1:0": SHELLY, "em1:1": SHELLY, "sys": {}}),
            "em1:*",
            (246.8, 10800.0),
        ),
        # no sum of one counter
        (json.dumps([SHELLY, {"apower": 1}]), "*", (124.4, None)),
        ('{"apower": 5, "aenergy": {"total": -1}}', "", (5.0, None)),
        ('{"apower": 5, "aenergy": {"total": 1e300}}', "", (5.0, None)),
    ],
)
def test_json(text: str, path: str, expected: tuple[float, float | None]) -> None:
    reading = json_reading(text.encode(), PowerPath.parse(path), ANSWER_BYTES)
    assert isinstance(reading, Reading)
    power, energy = expected
    assert reading.power == pytest.approx(power)
    assert math.isnan(reading.energy) if energy is None else reading.energy == energy


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda parts: (
        st.lists(parts) | st.dictionaries(st.sampled_from(["apower", "a", ""]), parts)
    ),
    max_leaves=8,
)
PATH = st.lists(st.sampled_from(["a", "0", "*", "a*"])).map(".".join)


@examples(40)
@given(st.binary() | JSON.map(json.dumps).map(str.encode), st.lists(PATH).map("+".join))
def test_garbage_is_no_number(content: bytes, text: str) -> None:
    try:
        path = PowerPath.parse(text)
    except ValueError:
        return
    reading = json_reading(content, path, ANSWER_BYTES)
    if isinstance(reading, Reading):
        assert abs(reading.power) <= MOST_POWER
        assert not reading.energy < 0.0
    else:
        assert len(reading.words) < 300


@pytest.mark.parametrize(
    ("text", "path", "words"),
    [
        ("[" * 60000, "", "no power"),
        ("1" * 5000, "", "no power"),
        ("1e999", "", "no power of a robot"),
        ("-1e6", "", "no power of a robot"),
        ("true", "", "no power"),
        ('"80"', "", "no power"),
        ("{}", "", "no power"),
        ("9" * 66000, "", "longer than 65536 bytes"),
        ("[[1, 2, 3]]", "0", r"list of 3 values at 0: end the path with \.\*"),
        ('{"p": [1, null, 3]}', "p.*", "no power"),
        (json.dumps(list(range(40))), "*", "no power"),
    ],
)
def test_what_json_cannot_hold_is_no_number(text: str, path: str, words: str) -> None:
    found = json_reading(text.encode(), PowerPath.parse(path), ANSWER_BYTES)
    assert isinstance(found, Silence)
    assert re.search(words, found.words)


# Shelly: HTTP.


class Http:
    """An HTTP server that answers with a text, or hands the connection to a function."""

    def __init__(self) -> None:
        self.text = json.dumps(SHELLY)
        self.status = 200
        self.paths = list[str]()
        self.serve: Callable[[Any], None] | None = None
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                owner.paths.append(self.path)
                if owner.serve is not None:
                    self.close_connection = True
                    with suppress(OSError):
                        owner.serve(self.wfile)
                    return
                content = owner.text.encode()  # once: a test changes it meanwhile
                self.send_response(owner.status)
                self.send_header("Content-Length", str(len(content)))
                self.send_header("Location", "/elsewhere")
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(
            target=self.server.serve_forever, args=(0.05,), daemon=True
        ).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/rpc/Switch.GetStatus?id=0"


@pytest.fixture
def http() -> Iterator[Http]:
    made = Http()
    yield made
    made.server.shutdown()
    made.server.server_close()


def endless(stream: Any) -> None:
    stream.write(b"HTTP/1.1 200 OK\r\n\r\n")
    for _ in range(10_000):
        stream.write(b"1" * 10_000)


def slow(stream: Any) -> None:
    stream.write(b"HTTP/1.1 200 OK\r\n\r\n")
    pause = threading.Event()
    for _ in range(30):
        stream.write(b"1")
        pause.wait(0.1)


def interim(stream: Any) -> None:
    for _ in range(10_000):
        stream.write(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)


def trailers(stream: Any) -> None:
    stream.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n5\r\n0\r\n")
    for _ in range(10_000):
        stream.write(b"name: value\r\n" * 100)


def headers(stream: Any) -> None:
    stream.write(b"HTTP/1.1 200 OK\r\n")
    for _ in range(10_000):
        stream.write(b"name: " + b"value" * 10_000 + b"\r\n")


def test_a_device_that_boots_is_waited_for(
    http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meters, "BOOT_SECONDS", 60.0)
    http.text = '{"id": 0, "apower": null}'
    with Meter(http.url) as meter:
        waiting = threading.Thread(target=meter.require)
        waiting.start()
        until(lambda: len(http.paths) > 5)
        assert waiting.is_alive()
        http.text = json.dumps(SHELLY)
        waiting.join(240.0)
        assert not waiting.is_alive()
        assert meter.problem is None


def test_shelly(http: Http) -> None:
    with Meter(http.url) as meter:
        meter.require()
        until(lambda: shown(meter)[2] > 3)
        assert shown(meter)[:2] == [123.4, 5400.0]
        assert meter.problem is None
    assert set(http.paths) == {"/rpc/Switch.GetStatus?id=0"}


def test_an_answer_that_stays_is_one_reading(
    http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meter_protocols, "REPEAT_SECONDS", (1e6, 1e6))
    http.text = "1"
    with Meter(http.url) as meter:
        for number in range(1, 6):
            http.text = str(number)
            until(reads(meter, number))
            http.paths.clear()
            until(lambda: len(http.paths) > 5)
            assert shown(meter)[2] == number


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ({"status": 302}, "HTTP 302"),
        ({"status": 401}, "password"),
        ({"status": 404}, "HTTP 404"),
        ({"text": "<html>"}, "no power"),
        ({"text": '{"output": true}'}, "no power"),
        ({"text": '{"apower": 1e9}'}, "no power of a robot"),
        ({"serve": endless}, "longer"),
        ({"serve": slow}, "too slow"),
        ({"serve": interim}, "longer"),
        ({"serve": trailers}, "longer"),
        ({"serve": headers}, "longer|headers"),
        ({"serve": lambda stream: stream.write(b"\x00\xff" * 1000)}, "BadStatusLine"),
        ({"serve": lambda stream: None}, "closed connection"),
    ],
)
def test_faults_of_a_web_server_are_gaps_and_it_comes_back(
    http: Http, fault: dict[str, Any], words: str
) -> None:
    for name, value in fault.items():
        setattr(http, name, value)
    with Meter(http.url) as meter:
        refused(meter, words)
        http.text = '{"apower": 80}'
        http.status = 200
        http.serve = None
        until(reads(meter, 80.0))
        assert meter.problem is None
    # no redirect was followed
    assert all(path.startswith("/rpc/") for path in http.paths)


def test_no_meter_at_the_address() -> None:
    url = f"http://127.0.0.1:{free_port()}/rpc/PM1.GetStatus?id=0"
    with Meter(url) as meter:
        refused(meter, "refused")


# MQTT.


@needs_program("mosquitto")
def test_mqtt(tmp_path: Path) -> None:
    broker = Mosquitto(tmp_path, "allow_anonymous true")
    publisher = mqtt.Client(CallbackAPIVersion.VERSION2)
    with Meter(f"mqtt://127.0.0.1:{broker.port}/cell/meter#ENERGY.Power") as meter:
        refused(meter, "refused")
        with broker:
            publisher.connect("127.0.0.1", broker.port)
            # old
            publisher.publish("cell/meter", '{"ENERGY": {"Power": 1}}', retain=True)
            publisher.loop_start()

            def send(text: str) -> None:
                publisher.publish("cell/meter", text).wait_for_publish(20.0)

            def comes(power: float) -> bool:
                send(f'{{"ENERGY": {{"Power": {power}}}}}')
                return reads(meter, power)()

            until(lambda: comes(95.0))
            send('{"ENERGY": {"Power": 95.5}}')
            until(reads(meter, 95.5))
            number = shown(meter)[2]
            for text in ("", "garbage", '{"ENERGY": {}}'):
                send(text)
            send('{"ENERGY": {"Power": 96}}')
            until(reads(meter, 96.0))
            assert shown(meter)[2] == number + 1
            send("x" * 200_000)  # the meter disconnects, and comes back
            until(lambda: comes(96.5))
            assert meter.problem is None
            broker.kill()
            publisher.loop_stop()
        broker.start()
        publisher.reconnect()
        publisher.loop_start()
        until(lambda: comes(97.0))
        publisher.loop_stop()
        broker.kill()


@needs_program("mosquitto")
@needs_program("openssl")
def test_mqtt_with_a_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broker, certificate = with_password(tmp_path, "arm", "secret")
    settings = {"USERNAME": "arm", "PASSWORD": "wrong", "CA": str(certificate)}
    for name, value in settings.items():
        monkeypatch.setenv(f"UR_ENERGY_MQTT_{name}", value)
    publisher = mqtt.Client(CallbackAPIVersion.VERSION2)
    publisher.username_pw_set("arm", "secret")
    publisher.tls_set(str(certificate))
    with broker:
        url = f"mqtts://127.0.0.1:{broker.port}/meter"
        with Meter(url) as meter:
            refused(meter, "authorized")
        monkeypatch.setenv("UR_ENERGY_MQTT_PASSWORD", "secret")
        publisher.connect("127.0.0.1", broker.port)
        publisher.loop_start()

        def comes(power: float) -> bool:
            publisher.publish("meter", str(power)).wait_for_publish(20.0)
            return reads(meter, power)()

        with Meter(url) as meter:
            until(lambda: comes(80.0))
        publisher.loop_stop()


# Modbus TCP.


@contextmanager
def modbus(registers: dict[int, list[int]], port: int) -> Iterator[None]:
    """Pymodbus's server with input registers."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()

    async def start() -> ModbusTcpServer:
        data = [
            SimData(address, values=values, datatype=DataType.REGISTERS)
            for address, values in registers.items()
        ]
        empty = [SimData(0, values=0, datatype=DataType.BITS)]
        nothing = [SimData(0, values=0, datatype=DataType.REGISTERS)]
        device = SimDevice(7, (empty, empty, nothing, data))
        server = ModbusTcpServer(device, address=("127.0.0.1", port))
        await server.serve_forever(background=True)
        return server

    server = asyncio.run_coroutine_threadsafe(start(), loop).result(20.0)
    yield
    asyncio.run_coroutine_threadsafe(server.shutdown(), loop).result(20.0)
    loop.call_soon_threadsafe(loop.stop)


def of_float(value: float) -> list[int]:
    return list(struct.unpack(">HH", struct.pack(">f", value)))


def of_int(value: int) -> list[int]:
    # the low word first
    return list(struct.unpack(">HH", struct.pack(">i", value)))[::-1]


@pytest.mark.parametrize(
    ("profile", "registers", "expected"),
    [
        ("eastron_sdm", {52: of_float(123.5), 72: of_float(1.25)}, [123.5, 4.5e6]),
        ("eastron_sdm_single", {12: of_float(80.0), 342: of_float(0.5)}, [80.0, 1.8e6]),
        ("carlo_gavazzi_em300", {40: of_int(1234), 52: of_int(70_000)}, [123.4, 2.52e10]),
        ("own.yaml", {0: [0xFFFE]}, [-20.0, math.nan]),
    ],
)
def test_modbus_profiles(
    profile: str,
    registers: dict[int, list[int]],
    expected: list[float],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if profile == "own.yaml":
        profile = str(tmp_path / profile)
        power = "power: {address: 0, type: int16, scale: 10}"
        Path(profile).write_text(f"schema: 1\nregisters: input\nword_order: big\n{power}")
    monkeypatch.setattr(meters, "SILENT_SECONDS", 0.0)
    port = free_port()
    with Meter(f"modbus://127.0.0.1:{port}/7?profile={profile}") as meter:
        with modbus(registers, port):
            # A reading counts for no time here: it is looked at once, the moment it is
            # there.
            seen = [math.nan] * 3

            def reads_power() -> bool:
                seen[:] = shown(meter)
                return math.isclose(seen[0], expected[0], rel_tol=1e-6)

            until(reads_power)
            np.testing.assert_allclose(seen[:2], expected, rtol=1e-6)
            number = seen[2]
        until(lambda: meter.problem is not None)
        with modbus(registers, port):  # it comes back
            until(lambda: shown(meter)[2] > number)


@pytest.mark.parametrize(
    ("unit", "registers"), [(7, {0: [1]}), (8, {52: of_float(1.0), 72: of_float(1.0)})]
)
def test_other_registers_or_unit(unit: int, registers: dict[int, list[int]]) -> None:
    port = free_port()
    url = f"modbus://127.0.0.1:{port}/{unit}?profile=eastron_sdm"
    with modbus(registers, port), Meter(url) as meter:
        refused(meter, r"check unit and profile|does not answer")


@pytest.mark.parametrize("scheme", ["modbus", "mqtt", "http"])
@pytest.mark.parametrize(
    "noise", [b"", b"\0" * 3000, b"\x00\x01\x00\x00\xff\xff\x07\x04\x04", b"HTTP"]
)
def test_a_peer_that_speaks_something_else(scheme: str, noise: bytes) -> None:
    """Whatever is sent, and however much of it, the meter is silent and says why."""
    tails = {
        "modbus": "/7?profile=eastron_sdm",
        "mqtt": "/topic",
        "http": "/rpc/Switch.GetStatus?id=0",
    }
    with socket.create_server(("127.0.0.1", 0)) as listener:
        over = threading.Event()

        def serve() -> None:
            while not over.is_set():
                with suppress(OSError):
                    peer, _ = listener.accept()
                    with peer:
                        peer.settimeout(0.05)
                        for _ in range(50):
                            peer.sendall(noise or b"x" * 100_000)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        with Meter(f"{scheme}://{address}{tails[scheme]}") as meter:
            until(lambda: meter.problem is not None)
            assert np.isnan(shown(meter)[0])
        over.set()


# Columns of samples.


class KnownMeter:
    """Readings that a test gives."""

    def __init__(self) -> None:
        self.url = "known"
        self.problem = None
        self.power = 90.0
        self.number = 1.0

    def latest(self, stamp: np.ndarray) -> np.ndarray:
        return np.repeat([[self.power], [math.nan], [self.number]], len(stamp), axis=1)


def test_a_reading_is_held_for_a_while_and_then_a_gap(http: Http) -> None:
    with Meter(http.url) as meter:
        began = HOST_CLOCK.now()
        until(lambda: shown(meter)[2] > 2)
    # from the last readings on, which end here
    seconds = np.array([-1.0, 0.0, 8.0, 60.0])
    found = meter.latest(HOST_CLOCK.now() + (1e9 * seconds).astype(np.int64))
    assert (
        np.isnan(found[0, 1:]).tolist()
        == np.isnan(found[1, 1:]).tolist()
        == [False, False, True]
    )
    assert len(set(found[2, 1:])) == 1
    assert found[2, 1] > 2
    before = meter.latest(np.array([began - 10**9]))[:, 0]
    assert np.isnan(before[:2]).all()
    assert before[2] == 0.0


def batch_of(first: int, bus: float) -> Telemetry:
    """Half a second of samples with a constant bus power."""
    batch = make_telemetry(
        250, fields=("actual_robot_voltage", "actual_robot_current"), first=first
    )
    columns = {"actual_robot_voltage": np.full(250, 48.0)}
    columns["actual_robot_current"] = np.full(250, bus / 48.0)
    return replace(batch, columns={**batch.columns, **columns})


def test_every_sample_gets_the_columns_and_events_tell_of_the_meter() -> None:
    source = ScriptedSource()
    meter = KnownMeter()
    with MeteredSource(source, meter) as metered:  # type: ignore[arg-type]
        assert metered.fields == (*source.fields, *METER_FIELDS)
        assert metered.info.extra["meter"] == "known"
        source.give_last(batch_of(0, 50.0))
        batch = metered.read(1.0)
        assert batch is not None
        assert len(batch) == 250
        assert batch["wall_power"].tolist() == [90.0] * 250
        assert np.isnan(batch["wall_energy"]).all()
        assert metered.take_events() == []
        meter.problem = "timed out"  # type: ignore[assignment]
        assert "timed out" in metered.take_events()[0].text
        assert metered.take_events() == []
        meter.problem = None
        assert len(metered.take_events()) == 1


# Hostile peers: whatever they send, the meter takes a few bytes of it and no time.

HELLO = b"\x20\x02\x00\x00"  # connection accepted
GRANTED = b"\x90\x03\x00\x01\x00"  # subscription accepted
PUBLISHED = b"\x00\x01t"  # name of the topic


def published(payload: bytes, quality: int = 0) -> bytes:
    """A message of a topic, as a broker sends it."""
    body = PUBLISHED + (b"\x00\x01" if quality else b"") + payload
    assert len(body) < 2**14
    length = bytes([len(body) % 128 | 128, len(body) // 128])
    return bytes([0x30 | quality << 1]) + length + body


ATTACKS = {
    "mqtt message of 250 MB": (
        "mqtt",
        b"\x30\x80\xe5\x9a\x77" + PUBLISHED,
        b"1" * 100_000,
    ),
    "mqtt messages": ("mqtt", b"", published(b"x" * 10_000) * 10),
    "mqtt small messages": ("mqtt", b"", published(b"x") * 10_000),
    "mqtt unfinished messages": ("mqtt", b"", published(b"1" * 10_000, 2) * 10),
    "mqtt pings": ("mqtt", b"", b"\xc0\x00" * 50_000),
    "modbus": ("modbus", b"", b"\x07" * 100_000),
}
MOST_TAKEN = 20_000_000
"""Bytes that buffers of the kernel take in some connections; attacks have ten times as many."""


@pytest.mark.parametrize("name", ATTACKS)
def test_a_hostile_peer_costs_neither_memory_nor_time(name: str) -> None:
    scheme, begin, part = ATTACKS[name]
    tail = {"mqtt": "/t", "modbus": "/1?profile=eastron_sdm"}[scheme]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        over = threading.Event()
        taken = [0]
        connections = [0]

        def serve() -> None:
            while not over.is_set():
                with suppress(OSError):
                    peer, _ = listener.accept()
                    connections[0] += 1
                    with peer:
                        if scheme == "mqtt":
                            peer.recv(1000)
                            peer.sendall(HELLO)
                            peer.recv(1000)
                            peer.sendall(GRANTED)
                        peer.sendall(begin)
                        for _ in range(2500):  # 250 MB
                            peer.sendall(part)
                            taken[0] += len(part)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        url = f"{scheme}://127.0.0.1:{listener.getsockname()[1]}{tail}"
        command = [sys.executable, "-c", WATCHED, url]
        child = subprocess.run(
            command, capture_output=True, text=True, timeout=240, check=True
        )
        over.set()
    memory, processor, problem = child.stdout.split(maxsplit=2)
    assert float(memory) < 40.0  # MB, beyond what the libraries take
    assert float(processor) < 0.5  # of a core
    assert "sends" in problem or "longer" in problem or "answer" in problem
    assert taken[0] / max(connections[0], 1) < MOST_TAKEN


WATCHED = """
import sys, resource, time
from ur_energy_model.telemetry.meters import Meter
import paho.mqtt.client, pymodbus.client
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
with Meter(sys.argv[1]) as meter:
    end = time.monotonic() + 30.0
    before = peak()
    while meter.problem is None and time.monotonic() < end:
        time.sleep(0.05)
    began, used = time.monotonic(), time.process_time()
    while time.monotonic() < began + 2.0:
        time.sleep(0.05)
    share = (time.process_time() - used) / (time.monotonic() - began)
    print(peak() - before, share, meter.problem)
"""
