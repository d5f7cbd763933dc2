# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The MQTT sink with the real broker, which is killed, stalled and asks for passwords."""

from __future__ import annotations

import json
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from test.sinks.mosquitto import Mosquitto, with_password
from test.sinks.mqtt.received import SparkplugHost
from test.sinks.mqtt.test_edge_node import NAME, stamps_of
from test.sinks.peers import free_port, needs_program, program, until
from test.sinks.readings import LOST, made_up_reading
from ur_energy_model.errors import InputError
from ur_energy_model.rooms import Given
from ur_energy_model.sinks import sink as sinks
from ur_energy_model.sinks.mqtt import connection
from ur_energy_model.sinks.mqtt import sink as mqtt_sink
from ur_energy_model.sinks.mqtt.connection import BrokerConnection, broker_of
from ur_energy_model.sinks.mqtt.credentials import (
    VARIABLE,
    MqttCredentials,
    read_credentials,
)
from ur_energy_model.sinks.mqtt.edge_node import Message
from ur_energy_model.sinks.mqtt.room import MqttOptions
from ur_energy_model.sinks.options import SinkOptions, sink_kinds
from ur_energy_model.sinks.sink import NOT_OPEN, Sink, open_sinks


def given(*urls: str, credentials: Path | None = None, **options: Any) -> Given:
    """The options of MQTT sinks; `options` are those of MqttOptions."""
    others = [kind.options() for kind in sink_kinds() if kind.options is not MqttOptions]
    common = SinkOptions(credentials=credentials)
    return Given(MqttOptions(mqtt=urls, **options), common, *others)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in {"POLL": 0.005, "BIRTH_PAUSE": 0.0}.items():
        monkeypatch.setattr(mqtt_sink, name, seconds)
    monkeypatch.setattr(sinks, "FIRST_PAUSE", 0.02)
    monkeypatch.setattr(Sink, "longest_pause", 0.05)
    monkeypatch.setattr(mqtt_sink.MqttSink, "longest_pause", 0.05)


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
            early.ask_for_rebirth("plant", "cell", typed=False)
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
    monkeypatch.setattr(connection, "LONGEST_WAIT", 0.3)
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
def test_passwords_and_certificates(tmp_path: Path) -> None:
    credentials = tmp_path / "credentials.yaml"
    secured, certificate = with_password(tmp_path, "arm", "secret")
    with secured as broker:
        url = f"mqtts://127.0.0.1:{broker.port}"

        def problem_with(text: str) -> str | None:
            credentials.write_text(text)
            (sink,) = open_sinks(given(url, credentials=credentials))
            until(lambda: sink.status.problem != NOT_OPEN)
            sink.close()
            return sink.status.problem

        right = f"mqtt: {{username: arm, password: secret, ca: {certificate}}}"
        assert problem_with(right) is None
        assert "authorized" in str(problem_with(right.replace("secret", "wrong")))
        assert "certificate" in str(
            problem_with("mqtt: {username: arm, password: secret}")
        )


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
