# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Sparkplug messages compared with recorded ones; the MQTT sink with the real broker."""

from __future__ import annotations

import json
import math
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from sys import getsizeof
from typing import Any

import numpy as np
import paho.mqtt.client as mqtt
import pytest
from pysparkplug import DataType, DBirth, DData, DDeath, Metric, NBirth, NCmd, NDeath

from test.sinks.mosquitto import Mosquitto, SparkplugHost
from test.sinks.peers import free_port, needs_program, program, until
from test.sinks.readings import LOST, START, made_up_reading, without_bus
from ur_energy_model.errors import InputError
from ur_energy_model.rooms import Given
from ur_energy_model.sinks import sink as sinks
from ur_energy_model.sinks.mqtt import sink as mqtt_sink
from ur_energy_model.sinks.mqtt.credentials import (
    VARIABLE,
    MqttCredentials,
    read_credentials,
)
from ur_energy_model.sinks.mqtt.room import MqttOptions
from ur_energy_model.sinks.mqtt.sink import (
    BirthNumbers,
    BrokerConnection,
    EdgeNode,
    Message,
    ReadingStore,
    broker_of,
    json_messages,
)
from ur_energy_model.sinks.options import SinkOptions, open_sinks, sink_kinds
from ur_energy_model.sinks.sink import NOT_OPEN, Sink
from ur_energy_model.telemetry.clock import HOST_CLOCK
from ur_energy_model.telemetry.meters import Meter

NAME = "energy/total/energy"
NOW = START // 1_000_000 + 5_000
COMMANDS = "spBv1.0/plant/NCMD/cell"
HOST = "spBv1.0/STATE/scada"


def given(*urls: str, credentials: Path | None = None, **options: Any) -> Given:
    """The options of MQTT sinks; `options` are those of MqttOptions."""
    others = [kind.options() for kind in sink_kinds() if kind.options is not MqttOptions]
    common = SinkOptions(credentials=credentials)
    return Given(MqttOptions(mqtt=urls, **options), common, *others)


# The store, and the messages of an edge node.


def store_of(*numbers: int, most: int = 100) -> ReadingStore:
    store = ReadingStore(most)
    for number in numbers:
        store.add(made_up_reading(number))
    return store


def stamps_of(numbers: range) -> list[int]:
    return [made_up_reading(number).stamp // 1_000_000 for number in numbers]


def test_readings_stay_until_they_are_confirmed_or_the_store_is_full() -> None:
    store = store_of(*range(5))
    readings, newest = store.oldest(3)
    assert [reading.stamp for reading in readings] == stamps_of(range(3))
    assert [newest["arm-1"].stamp] == stamps_of(range(4, 5))
    assert store.oldest(3)[0] == readings
    store.confirm(readings)
    assert [reading.stamp for reading in store.oldest(9)[0]] == stamps_of(range(3, 5))
    assert (store.delivered, store.dropped, len(store)) == (3, 0, 2)
    first, second, ended, later = store_of(1, 2, 10, 11).oldest(9)[0]
    assert first.names is second.names  # which keeps them small
    assert getsizeof(first) + getsizeof(first.values) < 400
    assert ended.cycle is later.cycle
    store = store_of(*range(4), most=4)
    readings, _ = store.oldest(2)
    for number in range(4, 7):
        store.add(made_up_reading(number))
    store.confirm(readings)  # both were dropped meanwhile
    assert [reading.stamp for reading in store.oldest(9)[0]] == stamps_of(range(3, 7))
    assert (store.delivered, store.dropped) == (0, 3)


def will_numbers(path: Path | None, count: int) -> list[int]:
    """The bdSeq of the connections of one start."""
    node = EdgeNode("plant", "cell", BirthNumbers(path))
    wills = [NDeath.decode(node.will(NOW).payload) for _ in range(count)]
    return [int(str(will.bd_seq_metric.value)) for will in wills]


@pytest.mark.parametrize("content", [None, "", "no number", "1" * 400, "-3"])
def test_numbers_of_births_go_on_over_restarts(
    tmp_path: Path, content: str | None
) -> None:
    path = tmp_path / "numbers"
    if content is not None:
        path.write_text(content)
    first = will_numbers(path, 254)
    assert (np.diff(first) % 256 == 1).all()
    again = [*will_numbers(path, 3), *will_numbers(path, 1)]
    assert [(number - first[-1]) % 256 for number in again] == [1, 2, 3, 4]
    assert will_numbers(None, 2) == [0, 1]
    assert will_numbers(tmp_path / "none" / "numbers", 2) == [0, 1]  # its folder is made
    # a folder cannot be written: nothing is kept
    assert will_numbers(tmp_path, 2) == [0, 1]


def open_and_close(urls: tuple[str, ...], state_file: Path | None) -> None:
    """Sinks that have tried to connect."""
    made = open_sinks(given(*urls), state_file=state_file)
    until(lambda: all(sink.status.problem not in (None, NOT_OPEN) for sink in made))
    for sink in made:
        sink.close()


def test_each_broker_has_its_numbers_beside_the_state_file(tmp_path: Path) -> None:
    port = free_port()
    urls = (f"mqtt://127.0.0.1:{port}", f"mqtt://127.0.0.2:{port}")
    open_and_close(urls, None)
    assert not list(tmp_path.iterdir())
    open_and_close(urls, tmp_path / "state.db")
    files = [path.name for path in tmp_path.iterdir()]
    assert len(files) == len(urls)
    assert all(name.startswith("state.db.sparkplug_") for name in files)


@pytest.fixture
def node() -> EdgeNode:
    made = EdgeNode("plant", "cell")
    made.will(NOW)
    made.birth(NOW, {})
    return made


def test_golden_certificates() -> None:
    """Bytes recorded once, and read with the Sparkplug protobuf definition."""
    node = EdgeNode("plant", "cell")
    death = node.will(NOW)
    assert (death.topic, death.qos) == ("spBv1.0/plant/NDEATH/cell", 1)
    # varint of NOW; name bdSeq
    now = "88df83a1f732"
    metric = "0a056264536571"
    sequence = f"1212{metric}18{now}20045800"  # timestamp, datatype Int64, long_value 0
    assert death.payload.hex() == f"08{now}{sequence}"
    (birth,) = node.birth(NOW, {})
    assert (birth.topic, birth.qos) == ("spBv1.0/plant/NBIRTH/cell", 0)
    name = b"Node Control/Rebirth".hex()
    rebirth = f"12210a14{name}18{now}200b7000"  # datatype Boolean, boolean_value false
    assert birth.payload.hex() == f"08{now}{sequence}{rebirth}1800"  # seq 0
    for number in (*range(1, 256), 0):  # a will and its birth have the same number
        death_again = NDeath.decode(node.will(NOW).payload)
        again = NBirth.decode(node.birth(NOW, {})[0].payload)
        assert death_again.bd_seq_metric.value == number
        assert {metric.name: metric.value for metric in again.metrics}["bdSeq"] == number


def test_a_birth_with_all_topics_then_changes_then_rebirth_and_death(
    node: EdgeNode,
) -> None:
    (message,) = node.data(*store_of(1).oldest(50), NOW)
    assert (message.topic, message.qos) == ("spBv1.0/plant/DBIRTH/cell/arm-1", 0)
    birth = DBirth.decode(message.payload)
    assert (birth.seq, birth.timestamp) == (1, NOW)
    metrics = {metric.name: metric for metric in birth.metrics}
    for name, value in made_up_reading(1).numbers().items():
        found = metrics[name]
        assert (found.value, found.datatype) == (value, DataType.DOUBLE)
        assert [found.timestamp] == stamps_of(range(1, 2))
        assert "[" in str(found.metadata and found.metadata.description)
    assert (metrics["state"].value, metrics["samples_lost"].value) == ("moving", 3)
    assert metrics["energy/cycle/number"].is_null
    (message,) = node.data(*store_of(2).oldest(50), NOW)
    assert (message.topic, message.qos) == ("spBv1.0/plant/DDATA/cell/arm-1", 0)
    data = DData.decode(message.payload, birth=birth)
    assert data.seq == 2
    changed = {metric.name for metric in data.metrics if not metric.is_historical}
    assert "energy/shoulder_joint/energy" in changed
    assert "energy/shoulder_joint/power" not in changed
    assert node.data(*store_of(2).oldest(50), NOW) == []  # nothing new
    newest = store_of(10).newest
    births = node.birth(NOW, newest)
    assert [message.topic.split("/")[2] for message in births] == ["NBIRTH", "DBIRTH"]
    birth = DBirth.decode(births[1].payload)
    assert birth.seq == 1
    assert {m.name: m.value for m in birth.metrics}["energy/cycle/peak_power"] == 77.0
    (death,) = node.device_death("arm-1", NOW)
    assert DDeath.decode(death.payload).seq == 2
    assert node.device_death("arm-1", NOW) == []
    assert len(node.birth(NOW, newest)) == 1


def test_new_metrics_need_a_new_birth_and_unknown_numbers_are_null(
    node: EdgeNode,
) -> None:
    store = ReadingStore()
    reading = made_up_reading(1)
    power = reading.snapshot.power.copy()
    power[reading.snapshot.channels.arm["standby"]] = math.nan
    snapshot = replace(reading.snapshot, power=power)
    store.add(without_bus(replace(reading, snapshot=snapshot)))
    (birth,) = node.data(*store.oldest(1), NOW)
    assert b"energy/bus" not in birth.payload
    metrics = {metric.name: metric for metric in DBirth.decode(birth.payload).metrics}
    assert metrics["energy/standby/power"].is_null
    (again,) = node.data(*store_of(2).oldest(1), NOW)
    assert "DBIRTH" in again.topic
    assert b"energy/bus/energy" in again.payload


def test_commands_are_answered_and_nothing_else(node: EdgeNode) -> None:
    for name in ("", "a/b", "a+", "#"):
        with pytest.raises(InputError):
            EdgeNode("plant", name)
    assert COMMANDS in node.topics
    for name, value in (("Rebirth", True), ("Rebirth", False), ("x", True)):
        metric = Metric(NOW, f"Node Control/{name}", DataType.BOOLEAN, value=value)
        for types in (True, False):  # which may be left out
            payload = NCmd(NOW, (metric,)).encode(include_dtypes=types)
            answered = node.needs_birth(COMMANDS, payload, retained=False)
            assert answered == (name == "Rebirth" and value)
    for payload in (
        b"", b"\xff\x00 no protobuf", b"[]", b'{"online": true}',
        b'{"online": true, "timestamp": 1e999}', b"[" * 100_000, b'{"online": true' + b" " * 2000,
    ):  # fmt: skip
        for topic in (COMMANDS, HOST):
            assert not node.needs_birth(topic, payload, retained=False)

    def came(online: bool, stamp: int, host: str = HOST, retained: bool = False) -> bool:
        payload = json.dumps({"online": online, "timestamp": stamp}).encode()
        return node.needs_birth(host, payload, retained=retained)

    # A host that comes online needs the births, not if it was there before the
    # connection.
    assert not came(True, 5, retained=True)
    asked = [came(True, 5), came(False, 5), came(True, 9), came(True, 9)]
    assert asked == [False, False, True, False]
    births = sum(came(True, 9, f"{HOST}_{number}") for number in range(2, 200))
    assert 1 <= births < 100  # bounded


@pytest.mark.parametrize(
    "answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\xff" * 64, b""]
)
def test_what_is_no_broker_is_a_problem_of_the_connection(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            client, _ = server.accept()
            with client:
                client.recv(1024)
                client.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        broker = broker_of(
            f"mqtt://127.0.0.1:{server.getsockname()[1]}", allow_network=False
        )
        with pytest.raises(OSError, match=r"\w"):
            BrokerConnection(
                broker, MqttCredentials(), Message("will", b""), ["topic"], print
            )
        thread.join()


def test_readings_that_waited_are_historical_and_sent_once(node: EdgeNode) -> None:
    store = store_of(*range(1, 8))
    message, *first = node.data(*store.oldest(5), NOW)
    birth = DBirth.decode(message.payload)
    assert {metric.timestamp for metric in birth.metrics} == set(stamps_of(range(7, 8)))
    store.confirm(store.oldest(5)[0])
    found = {}
    for message in (*first, *node.data(*store.oldest(5), NOW)):
        for metric in DData.decode(message.payload, birth=birth).metrics:
            assert metric.is_historical
            if metric.name == NAME:
                found[metric.timestamp] = metric.value
    values = [made_up_reading(k).numbers()[NAME] for k in range(1, 7)]
    assert found == dict(zip(stamps_of(range(1, 7)), values, strict=True))


def test_plain_json_has_all_metrics_in_each_message(node: EdgeNode) -> None:
    """Those of the last cycle too: a client that comes later needs no earlier message."""
    batch = store_of(9, 10, 11).oldest(50)
    (birth, *_) = node.data(*batch, NOW)
    messages = json_messages("plant", "cell", *batch)
    assert {message.topic for message in messages} == {"plant/cell/arm-1/energy"}
    contents = [json.loads(message.payload) for message in messages]
    assert [content["historical"] for content in contents] == [True, True, False]
    metrics = {
        metric.name: metric.value for metric in DBirth.decode(birth.payload).metrics
    }
    assert contents[-1].items() >= metrics.items()
    assert [content["energy/cycle/number"] for content in contents] == [None, 1, 1]


# The sink with the real broker.


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in {"POLL": 0.005, "BIRTH_PAUSE": 0.0}.items():
        monkeypatch.setattr(mqtt_sink, name, seconds)
    monkeypatch.setattr(sinks, "FIRST_PAUSE", 0.02)
    monkeypatch.setattr(Sink, "longest_pause", 0.05)
    monkeypatch.setattr(mqtt_sink.MqttSink, "longest_pause", 0.05)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Mosquitto]:
    if program("mosquitto") is None:
        pytest.skip("mosquitto is not installed: make servers")
    with Mosquitto(tmp_path, "allow_anonymous true") as running:
        yield running


def sink_to(port: int, **options: Any) -> Sink:
    """A sink that is connected."""
    (sink,) = open_sinks(given(f"mqtt://127.0.0.1:{port}", **options))
    until(lambda: sink.status.problem is None)
    return sink


def offer(sink: Sink, numbers: range) -> None:
    """Offer readings, each once the broker has the one before, as in a run in real time."""
    for number in numbers:
        sink.offer(made_up_reading(number))
        if sink.status.problem is None:
            until(lambda: sink.status.waiting == 0 or sink.status.problem is not None)


def test_a_session_from_birth_to_death(
    broker: Mosquitto, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SparkplugHost(broker.port) as host:
        sink = sink_to(broker.port, mqtt_group="plant", mqtt_node="cell", mqtt_json=True)
        offer(sink, range(1, 12))
        until(
            lambda: (
                host.values.get(("arm-1", NAME)) == made_up_reading(11).numbers()[NAME]
            )
        )
        host.ask_for_rebirth("plant", "cell")
        until(lambda: host.kinds.count("NBIRTH") == 2 and host.kinds[-1] == "DBIRTH")
        sink.offer(made_up_reading(11, link=LOST))
        until(lambda: host.kinds[-1] == "DDEATH")
        offer(sink, range(12, 13))
        until(lambda: host.kinds[-1] == "DBIRTH")
        monkeypatch.setattr(mqtt_sink, "SILENCE", 0.1)
        until(lambda: host.kinds[-1] == "DDEATH")
        sink.close()
        until(lambda: host.deaths)
        assert (sink.status.delivered, sink.status.dropped) == (12, 0)
    expected = ["NBIRTH", "DBIRTH", *["DDATA"] * 10, "NBIRTH", "DBIRTH"]
    assert host.kinds == [*expected, "DDEATH", "DBIRTH", "DDEATH", "NDEATH"]
    assert host.births == [0, 0]  # a rebirth is no new connection
    assert host.deaths == [0]  # said once, not once more by the broker
    assert host.gaps == 0
    values = made_up_reading(12).numbers() | {"energy/cycle/number": 1}
    assert {name: host.values["arm-1", name] for name in values} == values
    topic, text = host.others[-1]
    assert topic == "plant/cell/arm-1/energy"
    content = json.loads(text)
    assert (content[NAME], content["historical"]) == (values[NAME], False)


def test_births_follow_commands_and_hosts_at_most_one_in_a_while(
    broker: Mosquitto, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host that comes later gets the births, although it asks for nothing."""
    with SparkplugHost(broker.port) as early:
        early.come_online(1)
        sink = sink_to(broker.port, mqtt_group="plant", mqtt_node="cell")
        offer(sink, range(1, 3))
        until(lambda: "DDATA" in early.kinds)
        assert early.kinds.count("NBIRTH") == 1  # of the connection: the host was there
        early.come_online(2)
        until(lambda: early.kinds[-2:] == ["NBIRTH", "DBIRTH"])
        monkeypatch.setattr(mqtt_sink, "BIRTH_PAUSE", 0.4)
        before = early.kinds.count("NBIRTH")
        begun = time.monotonic()

        def births_after_asking() -> int:
            early.ask_for_rebirth("plant", "cell", types=False)
            return early.kinds.count("NBIRTH") - before

        until(lambda: births_after_asking() >= 3, 60.0)
        assert births_after_asking() <= (time.monotonic() - begun) / 0.4 + 1.0
        sink.close()
    assert early.gaps == 0


def test_a_killed_broker_gets_every_reading_once(
    broker: Mosquitto, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(*_: object) -> None:
        raise OSError("unreachable")

    with SparkplugHost(broker.port) as before:
        sink = sink_to(broker.port)
        offer(sink, range(1, 31))
        until(lambda: len(before.stamps(NAME)) == 30)
        broker.kill()
    opened = ExitStack()
    with monkeypatch.context() as away:  # until the host is back
        away.setattr(mqtt_sink, "BrokerConnection", unreachable)
        until(lambda: sink.status.problem == "unreachable")
        offer(sink, range(31, 231))
        assert sink.status.waiting == 200
        broker.start()
        after = opened.enter_context(SparkplugHost(broker.port))
    with opened:
        until(lambda: sink.status.waiting == 0)
        offer(sink, range(231, 241))
        until(lambda: len(after.stamps(NAME)) == 210)
        sink.close()
        until(lambda: after.deaths)
    assert (sink.status.delivered, sink.status.dropped) == (240, 0)
    assert sorted([*before.stamps(NAME), *after.stamps(NAME)]) == stamps_of(range(1, 241))
    old = [
        stamp
        for _, stamp, name, _, historical in after.history
        if name == NAME and historical
    ]
    assert old == stamps_of(range(31, 230))  # the newest one was in the DBIRTH
    values = {stamp: value for _, stamp, name, value, _ in after.history if name == NAME}
    expected = [made_up_reading(number).numbers()[NAME] for number in range(31, 241)]
    assert values == dict(zip(stamps_of(range(31, 241)), expected, strict=True))
    assert (before.births, after.births) == ([0], after.deaths)
    assert after.births[0] != 0
    assert before.gaps == after.gaps == 0


def test_a_broker_that_falls_silent_is_left(
    broker: Mosquitto, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mqtt_sink, "LONGEST_WAIT", 0.3)
    with SparkplugHost(broker.port) as host:
        sink = sink_to(broker.port)
        offer(sink, range(1, 4))
        broker.send(signal.SIGSTOP)
        offer(sink, range(4, 8))
        until(lambda: "does not answer" in (sink.status.problem or ""))
        broker.send(signal.SIGCONT)
        until(lambda: sink.status.waiting == 0)
        sink.close()
        until(lambda: len(host.deaths) >= 2)  # the will, and the goodbye
    assert set(host.stamps(NAME)) == set(stamps_of(range(1, 8)))


@needs_program("mosquitto")
@needs_program("openssl")
def test_passwords_and_certificates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = tmp_path / "key.pem"
    certificate = tmp_path / "certificate.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"),
            *(
                "-subj",
                "/CN=localhost",
                "-addext",
                "subjectAltName=DNS:localhost,IP:127.0.0.1",
            ),
            *("-keyout", key, "-out", certificate),
        ],
        capture_output=True,
        check=True,
    )
    passwords = tmp_path / "passwords"
    credentials = tmp_path / "credentials.yaml"
    passwords.touch()
    command = [str(program("mosquitto_passwd")), "-b", str(passwords), "arm", "secret"]
    subprocess.run(command, check=True, capture_output=True)
    lines = (f"certfile {certificate}", f"keyfile {key}", f"password_file {passwords}")
    with Mosquitto(tmp_path, *lines, "allow_anonymous false") as broker:
        url = f"mqtts://127.0.0.1:{broker.port}"

        def problem_with(text: str) -> str | None:
            credentials.write_text(text)
            (sink,) = open_sinks(given(url, credentials=credentials))
            until(lambda: sink.status.problem != NOT_OPEN)
            sink.close()
            return sink.status.problem

        right = f"mqtt: {{username: arm, password: secret, ca: {certificate}}}"
        assert problem_with(right) is None
        assert "authorised" in str(problem_with(right.replace("secret", "wrong")))
        assert "certificate" in str(
            problem_with("mqtt: {username: arm, password: secret}")
        )
        # A power meter on the same broker, with the credentials of the environment.
        settings = {"USERNAME": "arm", "PASSWORD": "wrong", "CA": str(certificate)}
        for name, value in settings.items():
            monkeypatch.setenv(f"UR_ENERGY_MQTT_{name}", value)
        with Meter(f"{url}/meter") as meter:
            until(lambda: "authorised" in str(meter.problem))
        monkeypatch.setenv("UR_ENERGY_MQTT_PASSWORD", "secret")
        publisher = mqtt.Client()
        publisher.username_pw_set("arm", "secret")
        publisher.tls_set(str(certificate))
        publisher.connect("127.0.0.1", broker.port)
        publisher.loop_start()

        def measured() -> bool:
            publisher.publish("meter", "80").wait_for_publish(20.0)
            return meter.latest(np.array([HOST_CLOCK.now()]))[0, 0] == 80.0

        with Meter(f"{url}/meter") as meter:
            until(measured)
        publisher.loop_stop()


def test_credentials_of_the_file_are_completed_from_the_environment(
    tmp_path: Path,
) -> None:
    authority = tmp_path / "ca.pem"
    authority.write_text("x")
    file = tmp_path / "credentials.yaml"
    file.write_text("mqtt: {username: arm, password: secret, ca: ca.pem}")
    variables = {f"{VARIABLE}USERNAME": "ignored", f"{VARIABLE}KEY": str(authority)}
    found = read_credentials(file, variables)
    assert found == MqttCredentials("arm", "secret", ca=authority, key=authority)
    assert "secret" not in repr(found)
    assert read_credentials(None, {}) == MqttCredentials()


@pytest.mark.parametrize(
    ("text", "variables", "message"),
    [
        ("mqtt: {usrname: x}", {}, "did you mean 'username'"),
        ("mqtt: {ca: none.pem}", {}, "none.pem is not a file"),
        ("mqtt: {password: x}", {}, "has no username"),
        ("{}", {"CA": "/none"}, f"{VARIABLE}CA: /none is not a file"),
        ("{}", {"PASSWORD": "x"}, "has no username"),
    ],
)
def test_credentials_that_cannot_be_used(
    tmp_path: Path, text: str, variables: dict[str, str], message: str
) -> None:
    file = tmp_path / "credentials.yaml"
    file.write_text(text)
    environment = {f"{VARIABLE}{key}": value for key, value in variables.items()}
    with pytest.raises(InputError, match=message):
        read_credentials(file, environment)
