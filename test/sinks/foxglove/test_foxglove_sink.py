"""The Foxglove server: what a client gets, and what clients cannot do to the estimator."""

from __future__ import annotations

import socket
import time
from contextlib import ExitStack
from typing import Any

import pytest

pytest.importorskip("foxglove")

from collections.abc import Iterator

import foxglove

from test.sinks.foxglove.foxglove_client import FoxgloveClient
from test.sinks.live_readings import live_readings
from test.sinks.servers import free_port
from test.sinks.waiting import until
from ur_energy_model.sinks import foxglove as origin_gate
from ur_energy_model.sinks import sink as sinks
from ur_energy_model.sinks.foxglove import FoxgloveDelivery, foxglove_sink
from ur_energy_model.sinks.foxglove_messages import ReadingMessages
from ur_energy_model.sinks.options import Address, SinkOptions
from ur_energy_model.sinks.sink import ArmReading, QueuedSink

ANY_PORT = Address("127.0.0.1", 0)
TOTAL = "/energy/total/power"


@pytest.fixture(scope="module")
def readings() -> list[ArmReading]:
    return list(live_readings(2.0))


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sinks, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(sinks, "LONGEST_PAUSE", 0.05)


@pytest.fixture
def delivery() -> Iterator[FoxgloveDelivery]:
    made = FoxgloveDelivery(ANY_PORT)
    made.open()
    yield made
    made.close()


def port_of(sink: QueuedSink) -> int:
    """The port that a sink listens on, once it does."""
    until(lambda: sink.status.problem is None)
    return int(sink.status.name.rpartition(":")[2])


def test_a_client_gets_every_message_as_encoded(
    delivery: FoxgloveDelivery, readings: list[ArmReading]
) -> None:
    delivery.deliver(readings[0])
    client = FoxgloveClient(delivery.address.port)
    encoder = ReadingMessages()
    topics = {messages.topic.name for messages in encoder.of_reading(readings[0])}
    topics.discard("/robot_description")
    client.subscribe(*topics)
    until(lambda: delivery.clients == 1)
    for reading in readings[1:4]:
        delivery.deliver(reading)
        expected = {
            (messages.topic.name, int(stamp), payload.tobytes())
            for messages in encoder.of_reading(reading)
            for stamp, payload in zip(messages.stamp, messages.payload, strict=True)
        }
        got = [client.message() for _ in expected]
        assert {(each.topic, each.time, each.payload) for each in got} == expected
    client.close()


def test_channels_have_the_schemas_of_their_messages(
    delivery: FoxgloveDelivery, readings: list[ArmReading]
) -> None:
    delivery.deliver(readings[0])
    client = FoxgloveClient(delivery.address.port)
    for messages in ReadingMessages().of_reading(readings[0]):
        channel, kind = client.advertised(messages.topic.name), messages.topic.kind
        assert channel["schemaName"] == kind.name
        assert (channel["schemaEncoding"], channel["encoding"]) == (
            kind.schema_encoding,
            kind.message_encoding,
        )
        assert channel["schema"]
    assert client.advertised(TOTAL)["schema"] == "float64 data\n"
    client.close()


def test_a_late_client_gets_the_urdf_and_the_last_cycle(
    delivery: FoxgloveDelivery, readings: list[ArmReading]
) -> None:
    for reading in readings[:12]:
        delivery.deliver(reading)
    client = FoxgloveClient(delivery.address.port)
    client.subscribe("/robot_description", "/energy/cycle")
    until(lambda: delivery.clients == 1)
    delivery.deliver(readings[12])
    late = {message.topic: message for message in (client.message(), client.message())}
    assert b"<robot name=" in late["/robot_description"].payload
    assert late["/energy/cycle"].time == readings[10].stamp
    client.close()


def test_nobody_connects_before_the_channels_exist(readings: list[ArmReading]) -> None:
    port = free_port()
    delivery = FoxgloveDelivery(Address("127.0.0.1", port))
    delivery.open()
    with pytest.raises(ConnectionRefusedError):
        FoxgloveClient(port)
    delivery.deliver(readings[0])
    client = FoxgloveClient(port)
    client.subscribe(TOTAL)
    until(lambda: delivery.clients == 1)
    client.close()
    delivery.close()


def test_clients_come_and_go(delivery: FoxgloveDelivery, readings: list[ArmReading]) -> None:
    delivery.deliver(readings[0])
    clients = [FoxgloveClient(delivery.address.port) for _ in range(3)]
    for client in clients:
        client.subscribe(TOTAL)
    until(lambda: delivery.clients == 3)
    clients[0].kill()
    clients[1].close()
    until(lambda: delivery.clients == 1)
    again = FoxgloveClient(delivery.address.port)
    again.subscribe(TOTAL)
    until(lambda: delivery.clients == 2)
    delivery.deliver(readings[1])
    assert again.message().time == clients[2].message().time == readings[1].stamp
    for client in (clients[2], again):
        client.close()


def test_a_client_that_reads_nothing_delays_nothing(
    delivery: FoxgloveDelivery, readings: list[ArmReading]
) -> None:
    """The server drops what it cannot send; 100 s of readings are far more than sockets hold."""
    delivery.deliver(readings[0])
    slow, other = (FoxgloveClient(delivery.address.port) for _ in range(2))
    slow.subscribe("/energy/markers", "/energy/joints")
    other.subscribe(TOTAL)
    until(lambda: delivery.clients == 2)
    start = time.process_time()
    for _ in range(50):
        for reading in readings:
            delivery.deliver(reading)
    assert time.process_time() - start < 20.0
    other.until_time(readings[-1].stamp)
    for client in (slow, other):
        client.kill()


def test_a_port_in_use_is_a_problem_until_it_is_free(readings: list[ArmReading]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        sink = foxglove_sink(str(Address("127.0.0.1", port)), SinkOptions())
        until(lambda: sink.status.problem not in {None, "not open yet"})
        assert "in use" in (sink.status.problem or "")
        sink.offer(readings[0])
    until(lambda: sink.status.delivered == 1)
    assert port_of(sink) == port
    client = FoxgloveClient(port)
    client.advertised(TOTAL)
    client.close()
    sink.close()


def test_a_closed_sink_frees_its_port(readings: list[ArmReading]) -> None:
    sink = foxglove_sink(str(ANY_PORT), SinkOptions())
    sink.offer(readings[0])
    until(lambda: sink.status.delivered == 1)
    port = port_of(sink)
    client = FoxgloveClient(port)
    client.advertised(TOTAL)
    sink.close()
    with pytest.raises((ConnectionError, OSError)):
        FoxgloveClient(port)
    client.kill()


def test_the_sink_comes_back_after_a_failure(
    readings: list[ArmReading], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = []
    start = foxglove.start_server

    def counted(**options: Any) -> Any:
        opened.append(start(**options))
        return opened[-1]

    monkeypatch.setattr(foxglove, "start_server", counted)
    sink = foxglove_sink(str(ANY_PORT), SinkOptions())
    sink.offer(readings[0])
    until(lambda: sink.status.delivered == 1)
    port = port_of(sink)
    with monkeypatch.context() as broken:
        broken.setattr(ReadingMessages, "of_reading", lambda *_: 1 / 0)
        sink.offer(readings[0])
        until(lambda: len(opened) == 2)
    sink.offer(readings[1])
    until(lambda: sink.status.delivered == 2)
    assert port_of(sink) == port
    client = FoxgloveClient(port)
    client.subscribe(TOTAL)
    until(lambda: sink.status.clients == 1)
    sink.offer(readings[2])
    assert client.until_time(readings[2].stamp).topic == TOTAL
    client.close()
    sink.close()


@pytest.mark.parametrize(
    ("origin", "allowed", "status"),
    [
        (None, (), 101),  # a program that is no page
        ("file://", (), 101),  # desktop applications
        ("app://foxglove", (), 101),
        ("https://app.foxglove.dev", (), 101),
        ("http://localhost:8080", (), 101),
        ("http://127.0.0.1:8080", (), 101),
        ("http://[::1]:8080", (), 101),
        ("https://evil.example", (), 403),
        ("http://evil.example:8765", (), 403),
        ("null", (), 403),
        ("http://app.foxglove.dev", (), 403),
        ("https://foxglove.dev.evil.example", (), 403),
        ("http://localhost.evil.example", (), 403),
        ("http://192.0.2.1", (), 403),
        ("http://dashboards.example", ("http://dashboards.example",), 101),
        ("https://evil.example", ("http://dashboards.example",), 403),
        ("https://evil.example", ("*",), 101),
    ],
)
def test_pages_of_foreign_sites_are_refused(
    readings: list[ArmReading], origin: str | None, allowed: tuple[str, ...], status: int
) -> None:
    delivery = FoxgloveDelivery(ANY_PORT, allowed)
    try:
        delivery.deliver(readings[0])
        lines = [
            "GET / HTTP/1.1",
            f"Host: evil.example:{delivery.address.port}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
            "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Protocol: foxglove.sdk.v1",
            *([] if origin is None else [f"oRIGIN: {origin}"]),
        ]
        address = ("127.0.0.1", delivery.address.port)
        with socket.create_connection(address, timeout=20) as client:
            client.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
            assert client.recv(1000).split(b" ")[1] == str(status).encode()
    finally:
        delivery.close()


def test_clients_that_send_no_request_are_left_and_others_served(
    delivery: FoxgloveDelivery, readings: list[ArmReading], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(origin_gate, "DEADLINE", 0.3)
    delivery.deliver(readings[0])
    address = ("127.0.0.1", delivery.address.port)
    with ExitStack() as held:
        slow = [
            held.enter_context(socket.create_connection(address, timeout=20))
            for _ in range(origin_gate.MOST_CLIENTS)
        ]
        for each in slow:
            assert each.recv(10) == b""
        FoxgloveClient(delivery.address.port).close()
