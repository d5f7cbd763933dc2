# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What every sink promises: the same readings, faults, slow clients and restarts for all."""

from __future__ import annotations

import socket
import threading
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from test.sinks.mosquitto import Mosquitto
from test.sinks.peers import free_port, needs_program, until
from test.sinks.readings import live_readings
from ur_energy_model.energy.snapshot import Snapshot
from ur_energy_model.errors import InputError
from ur_energy_model.rooms import Given
from ur_energy_model.sinks import sink as sinks
from ur_energy_model.sinks.options import SinkOptions, sink_kinds
from ur_energy_model.sinks.sink import ArmReading, QueuedSink, Sink, open_sinks

KINDS = [kind.name for kind in sink_kinds()]
SERVERS = [kind.name for kind in sink_kinds() if kind.listens]
CLIENTS = [name for name in KINDS if name == "mqtt"]
PLACES = {"mqtt": "mqtt://127.0.0.1:{}", "opcua": "opc.tcp://127.0.0.1:{}"}
"""Of kinds that take a URL; the others take ADDRESS:PORT if they have a port, else a file."""
JUNK = (
    b"GET / HTTP/1.1\r\n\r\n",
    b"\x00\xff" * 50 + b"\r\n\r\n",
    bytes(5000),
    b"HELF" + bytes(99),
)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(sinks, "FIRST_PAUSE", 0.01)
    for kind in (Sink, *Sink.__subclasses__()):
        monkeypatch.setattr(kind, "longest_pause", 0.05)


@pytest.fixture(scope="module")
def readings() -> list[ArmReading]:
    return list(live_readings(2.5))


def sink_of(kind: str, port: int, folder: Path) -> Sink:
    """A sink on a port of loopback, or on a file."""
    place = PLACES.get(
        kind, "127.0.0.1:{}" if kind in SERVERS else str(folder / "sink.file")
    )
    (sink,) = open_sinks(given({kind: place.format(port)}))
    return sink


def given(places: dict[str, str]) -> Given:
    """The options of all kinds, with the place of one sink of some of them."""
    tables = {kind.options: dict[str, tuple[str, ...]]() for kind in sink_kinds()}
    for kind in sink_kinds():
        if kind.name in places:
            tables[kind.options][kind.name] = (places[kind.name],)
    stated = [table(**values) for table, values in tables.items()]
    return Given(SinkOptions(), *stated)


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=[needs_program("mosquitto")] * (kind == "mqtt"))
        for kind in KINDS
    ],
)
def test_what_is_in_the_way_is_a_problem_that_ends_by_itself(
    kind: str, tmp_path: Path, readings: list[ArmReading]
) -> None:
    """A port in use, no broker; then every reading arrives, and closing releases everything."""
    with ExitStack() as opened:
        port = free_port()
        broker = Mosquitto(tmp_path, "allow_anonymous true") if kind == "mqtt" else None
        if broker is not None:
            port = broker.port
        taken = opened.enter_context(socket.create_server(("127.0.0.1", port)))
        if kind == "mqtt":
            taken.close()
        sink = opened.enter_context(closing(sink_of(kind, port, tmp_path)))
        if kind in (*SERVERS, "mqtt"):
            until(lambda: sink.status.problem not in (None, sinks.NOT_OPEN), 60)
        taken.close()
        if broker is not None:
            opened.enter_context(broker)
        until(lambda: sink.status.problem is None, 60)
        for number, reading in enumerate(readings[:5], 1):
            sink.offer(reading)
            until(lambda number=number: sink.status.delivered == number)  # type: ignore[misc]
        # One that cannot be used is left out and counted, the next one arrives.
        sink.offer(replace(readings[5], snapshot=cast("Snapshot", None)))
        until(lambda: sink.status.dropped == 1)
        sink.offer(readings[6])
        until(lambda: sink.status.delivered == 6, 60)
        assert sink.status.problem is None
        if kind in SERVERS:  # clients that send nothing, or junk, are in nobody's way
            address = ("127.0.0.1", port)
            for junk in (*JUNK, *[b""] * 40):
                client = opened.enter_context(socket.create_connection(address, 10))
                with suppress(OSError):
                    client.sendall(junk)
        sink.offer(readings[7])
        until(lambda: sink.status.delivered == 7)
        sink.close()
        if kind in SERVERS:
            until(lambda: socket.socket().connect_ex(("127.0.0.1", port)) != 0)


@pytest.mark.parametrize("kind", [*SERVERS, *CLIENTS])
def test_what_is_no_address_of_a_sink_is_refused(kind: str) -> None:
    """Nor is one that other machines reach; passwords are not repeated."""
    scheme = {"mqtt": "mqtt://", "opcua": "opc.tcp://"}.get(kind, "")
    before = set(threading.enumerate())
    for text in ("0.0.0.0:1", "me:secret@127.0.0.1:1", "127.0.0.1:70000"):
        with pytest.raises(InputError) as refused:
            open_sinks(given({KINDS[0]: ":0", kind: scheme + text}))
        assert scheme == "" or "secret" not in str(refused.value)
    until(
        lambda: not any(each.is_alive() for each in set(threading.enumerate()) - before)
    )


class Recorder:
    """A delivery that keeps what it gets once its gate is open."""

    name = "recorder"
    clients = 1

    def __init__(self) -> None:
        self.got: list[object] = []
        self.gate = threading.Event()
        self.open = self.close = lambda: None

    def deliver(self, reading: ArmReading) -> None:
        self.gate.wait(20)
        self.got.append(reading)


def numbered(number: int) -> ArmReading:
    return cast("ArmReading", number)


def test_a_stalled_sink_never_blocks_and_drops_the_oldest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In the thread and the queue that most sinks have."""
    delivery = Recorder()
    hanging = Recorder()
    sink = QueuedSink(delivery, most_waiting=3)
    until(lambda: sink.status.problem is None)
    sink.offer(numbered(0))
    until(lambda: sink.status.waiting == 0)  # the first one is being delivered
    for k in range(1, 11):
        sink.offer(numbered(k))
    assert sink.status.dropped == 7
    delivery.gate.set()
    sink.close()
    assert delivery.got == [0, 8, 9, 10]
    monkeypatch.setattr(sinks, "LAST_CHANCE", 0.05)
    sink = QueuedSink(hanging)
    sink.offer(numbered(1))
    sink.close()  # returns although the delivery hangs
    assert hanging.got == []
    hanging.gate.set()
