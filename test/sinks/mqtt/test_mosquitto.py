"""MqttSink with the real broker: killed, stalled, restarted, with TLS and passwords."""

from __future__ import annotations

import json
import subprocess
import time
from dataclasses import replace

import pytest

pytest.importorskip("paho.mqtt.client")
pytest.importorskip("pysparkplug")


from collections.abc import Iterator
from pathlib import Path

from test.sinks.made_up_reading import LOST, made_up_reading
from test.sinks.mqtt.gate import Gate
from test.sinks.mqtt.mosquitto import Mosquitto, SparkplugHost
from test.sinks.servers import needs_program, program
from test.sinks.waiting import until
from ur_energy_model.sinks import mqtt as connection
from ur_energy_model.sinks import mqtt as mqtt_sink
from ur_energy_model.sinks.mqtt import MqttSink
from ur_energy_model.sinks.options import SinkOptions, open_sinks
from ur_energy_model.sinks.sink import Sink
from ur_energy_model.sinks.sparkplug import EdgeNode

pytestmark = needs_program("mosquitto")
NAME = "energy/total/energy"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mqtt_sink, "FIRST_PAUSE", 0.02)
    monkeypatch.setattr(mqtt_sink, "LONGEST_PAUSE", 0.05)
    monkeypatch.setattr(mqtt_sink, "POLL", 0.005)
    monkeypatch.setattr(mqtt_sink, "BIRTH_PAUSE", 0.0)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Mosquitto]:
    with Mosquitto(tmp_path, "allow_anonymous true") as running:
        yield running


def sink_to(port: int, **options: object) -> Sink:
    (sink,) = open_sinks(SinkOptions(mqtt=(f"mqtt://127.0.0.1:{port}",), **options))  # type: ignore[arg-type]
    return sink


def offer(sink: Sink, numbers: range) -> None:
    """Offer readings, each once the broker has the one before, as in a run in real time."""
    for number in numbers:
        sink.offer(made_up_reading(number))
        if sink.status.problem is None:
            until(lambda: sink.status.waiting == 0 or sink.status.problem is not None)


def stamps_of(numbers: range) -> list[int]:
    return [made_up_reading(number).stamp // 1_000_000 for number in numbers]


def test_a_session_from_birth_to_death(broker: Mosquitto) -> None:
    with SparkplugHost(broker.port) as host:
        sink = sink_to(broker.port, mqtt_group="plant", mqtt_node="cell", mqtt_json=True)
        until(lambda: sink.status.problem is None)
        offer(sink, range(1, 12))
        until(lambda: host.values.get(("arm-1", NAME)) == made_up_reading(11).numbers()[NAME])
        host.ask_for_rebirth("plant", "cell")
        until(lambda: host.kinds.count("NBIRTH") == 2 and host.kinds[-1] == "DBIRTH")
        sink.offer(made_up_reading(11, link=LOST))
        until(lambda: host.kinds[-1] == "DDEATH")
        offer(sink, range(12, 13))
        until(lambda: host.kinds[-1] == "DBIRTH")
        assert (sink.status.delivered, sink.status.dropped) == (12, 0)
        sink.close()
        until(lambda: host.deaths)
    data = ["DDATA"] * 10
    assert host.kinds == [
        *("NBIRTH", "DBIRTH", *data, "NBIRTH", "DBIRTH", "DDEATH", "DBIRTH", "NDEATH")
    ]
    assert host.births == [0, 0]  # a rebirth is no new connection
    assert host.deaths == [0]  # said once, not once more by the broker
    assert host.gaps == 0
    for name, value in made_up_reading(12).numbers().items():
        assert host.values["arm-1", name] == value
    assert host.values["arm-1", "energy/cycle/number"] == 1
    topic, text = host.others[-1]
    assert topic == "plant/cell/arm-1/energy"
    content = json.loads(text)
    assert content[NAME] == made_up_reading(12).numbers()[NAME]
    assert not content["historical"]


@pytest.mark.parametrize("types", [True, False])
def test_births_follow_commands_and_hosts_at_most_one_in_a_while(
    broker: Mosquitto, types: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host that comes later gets the births, although it asks for nothing."""
    with SparkplugHost(broker.port) as early:
        early.come_online(1)
        sink = sink_to(broker.port, mqtt_group="plant", mqtt_node="cell")
        until(lambda: sink.status.problem is None)
        offer(sink, range(1, 3))
        until(lambda: "DDATA" in early.kinds)
        assert early.kinds.count("NBIRTH") == 1  # of the connection: the host was there
        with SparkplugHost(broker.port) as late:
            late.come_online(2)
            until(lambda: late.kinds[-2:] == ["NBIRTH", "DBIRTH"])
            assert late.values["arm-1", NAME] == made_up_reading(2).numbers()[NAME]
            monkeypatch.setattr(mqtt_sink, "BIRTH_PAUSE", 0.4)
            before, begun = late.kinds.count("NBIRTH"), time.monotonic()
            while time.monotonic() < begun + 1.2:
                late.ask_for_rebirth("plant", "cell", types=types)
                time.sleep(0.01)
            until(lambda: late.kinds[-1] == "DBIRTH")
            assert 2 <= late.kinds.count("NBIRTH") - before <= 4
        sink.close()
    assert early.gaps == 0


def test_a_killed_broker_gets_every_reading_once(broker: Mosquitto) -> None:
    with Gate(broker.port) as gate:
        with SparkplugHost(broker.port) as before:
            sink = sink_to(gate.port)
            until(lambda: sink.status.problem is None)
            offer(sink, range(1, 31))
            until(lambda: len(before.stamps(NAME)) == 30)
            broker.kill()
        until(lambda: sink.status.problem is not None)
        gate.close()
        offer(sink, range(31, 231))
        assert sink.status.waiting == 200
        broker.start()
        with SparkplugHost(broker.port) as after:
            gate.open()
            until(lambda: sink.status.waiting == 0)
            offer(sink, range(231, 241))
            until(lambda: len(after.stamps(NAME)) == 210)
            sink.close()
            until(lambda: after.deaths)
    status = sink.status
    assert (status.delivered, status.dropped) == (240, 0)
    received = [*before.stamps(NAME), *after.stamps(NAME)]
    assert sorted(received) == stamps_of(range(1, 241))
    old = [stamp for _, stamp, name, _, historical in after.history if name == NAME and historical]
    assert old == stamps_of(range(31, 230))  # the newest one was in the DBIRTH
    values = {stamp: value for _, stamp, name, value, _ in after.history if name == NAME}
    for number in range(31, 241):
        stamp = made_up_reading(number).stamp // 1_000_000
        assert values[stamp] == made_up_reading(number).numbers()[NAME]
    assert (before.births, after.births) == ([0], after.deaths)
    assert after.births[0] != 0
    assert before.gaps == after.gaps == 0


def test_a_broker_that_falls_silent_is_left(
    broker: Mosquitto, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "LONGEST_WAIT", 0.3)
    with Gate(broker.port) as gate, SparkplugHost(broker.port) as host:
        sink = sink_to(gate.port)
        until(lambda: sink.status.problem is None)
        offer(sink, range(1, 4))
        gate.stall()
        offer(sink, range(4, 8))
        until(lambda: "does not answer" in (sink.status.problem or ""))
        gate.close()
        gate.open()
        until(lambda: sink.status.waiting == 0)
        sink.close()
        until(lambda: len(host.deaths) >= 2)  # the will, and the goodbye
    assert set(host.stamps(NAME)) == set(stamps_of(range(1, 8)))


def test_a_full_store_drops_the_oldest_and_says_so(broker: Mosquitto, tmp_path: Path) -> None:
    broker.kill()
    sink = sink_to(broker.port)
    assert isinstance(sink, MqttSink)
    sink._store._most = 20
    for number in range(50):
        sink.offer(made_up_reading(number))
    assert (sink.status.waiting, sink.status.dropped) == (20, 30)
    until(lambda: "refused" in (sink.status.problem or "").lower())
    sink.close()
    assert sink.status.waiting == 20


def test_silence_of_an_arm_is_its_death(broker: Mosquitto, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mqtt_sink, "SILENCE", 0.2)
    with SparkplugHost(broker.port) as host:
        sink = sink_to(broker.port)
        sink.offer(made_up_reading(1))
        until(lambda: "DDEATH" in host.kinds)
        sink.close()


def test_passwords_and_certificates(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"),
            *("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
            *("-keyout", key, "-out", certificate),
        ],
        capture_output=True,
        check=False,
    )
    if made.returncode:
        pytest.skip("openssl is not installed")
    passwords = tmp_path / "passwords"
    passwords.touch()
    tool = program("mosquitto_passwd")
    assert tool is not None
    subprocess.run([tool, "-b", passwords, "arm", "secret"], check=True, capture_output=True)
    credentials = tmp_path / "credentials.yaml"
    lines = (
        *(f"certfile {certificate}", f"keyfile {key}", f"password_file {passwords}"),
        "allow_anonymous false",
    )
    with Mosquitto(tmp_path, *lines) as broker:
        url = f"mqtts://127.0.0.1:{broker.port}"

        def problem_with(text: str) -> str | None:
            credentials.write_text(text)
            (sink,) = open_sinks(SinkOptions(mqtt=(url,), credentials=credentials))
            until(lambda: sink.status.problem != "not connected yet")
            sink.close()
            return sink.status.problem

        right = f"mqtt: {{username: arm, password: secret, ca: {certificate}}}"
        assert problem_with(right) is None
        assert "authorised" in str(problem_with(right.replace("secret", "wrong")))
        assert "certificate" in str(problem_with("mqtt: {username: arm, password: secret}"))


def test_a_thousand_readings_wait_for_nobody() -> None:
    """Offering never blocks, whatever the network does."""
    with Gate(1) as gate:  # accepts, and nobody is behind it
        sink = sink_to(gate.port)
        for number in range(1000):
            sink.offer(made_up_reading(number))
        assert sink.status.waiting == 1000
        sink.close()


def test_names_are_checked_when_the_sink_is_made() -> None:
    assert EdgeNode("a b", "c").topics[0] == "spBv1.0/a b/NCMD/c"


def test_a_reading_that_cannot_be_used_is_dropped(broker: Mosquitto) -> None:
    sink = sink_to(broker.port)
    sink.offer(replace(made_up_reading(1), joints=("one",)))
    assert sink.status.dropped == 1
    sink.close()
