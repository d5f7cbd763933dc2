"""Proxies pass packages on as told and count those that arrive whole."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from random import Random

import pytest

from test.torture.package_count import Cutter, is_data
from test.torture.proxy import LIES, Mischief, Proxy, draw_mischief, lie

SETUP = struct.pack(">HBd", 11 + 18, ord("O"), 500.0) + b"actual_q,timestamp"
REPLY = struct.pack(">HBB", 4 + 15, ord("O"), 1) + b"VECTOR6D,DOUBLE"
TIMES = [60.0 + 0.002 * i for i in range(40)]


def package(time: float) -> bytes:
    return struct.pack(">HBB7d", 4 + 56, ord("U"), 1, *range(6), time)


class Controller:
    """Answers a setup, then sends the data packages and waits."""

    def __init__(self, host: str, ports: tuple[int, int] = (0, 0)) -> None:
        self.host, self.clients = host, 0
        self.listeners = [socket.create_server((host, port)) for port in ports]
        rtde, dashboard = (listener.getsockname()[1] for listener in self.listeners)
        self.ports = (rtde, dashboard)
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self.listeners[0].accept()
                self.clients += 1
                client.recv(1000)
                client.sendall(REPLY + b"".join(map(package, TIMES)))

    def close(self) -> None:
        for listener in self.listeners:
            listener.close()


Connect = Callable[[Mischief], tuple[Proxy, socket.socket]]


@pytest.fixture
def connect(fresh_host: Callable[[], str]) -> Iterator[Connect]:
    """A client behind a proxy that has sent its setup."""
    with ExitStack() as held:

        def open_client(mischief: Mischief) -> tuple[Proxy, socket.socket]:
            target, host = fresh_host(), fresh_host()
            controller = Controller(target)
            held.callback(controller.close)
            proxy = Proxy(target, host, mischief, Random(1), ports=controller.ports)
            held.enter_context(proxy)
            client = socket.create_connection((host, controller.ports[0]), 5.0)
            held.callback(client.close)
            client.sendall(SETUP)
            return proxy, client

        yield open_client


def received(client: socket.socket, seconds: float = 1.0) -> bytes:
    """What arrives until nothing comes for a while, or the connection ends."""
    data = b""
    client.settimeout(seconds)
    with suppress(OSError):
        while part := client.recv(65536):
            data += part
    return data


WHOLE = REPLY + b"".join(map(package, TIMES))


@pytest.mark.parametrize(
    "mischief",
    [
        Mischief(),
        Mischief(split=1),
        Mischief(split=33, pause=0.001),
        Mischief(stall_at=9, stall=0.2),
    ],
)
def test_a_slow_proxy_changes_nothing(connect: Connect, mischief: Mischief) -> None:
    proxy, client = connect(mischief)
    assert received(client) == WHOLE
    assert proxy.count.times == TIMES


@pytest.mark.parametrize("polite", [True, False])
def test_a_reset_ends_the_connection(connect: Connect, polite: bool) -> None:
    proxy, client = connect(Mischief(reset_at=10, polite=polite, away=60.0))
    client.settimeout(5.0)
    data = b""
    with suppress(ConnectionResetError):
        while part := client.recv(65536):  # ends before the time-out
            data += part
    assert WHOLE.startswith(data)
    assert proxy.count.times == TIMES[:10]
    with suppress(OSError), socket.create_connection(client.getpeername(), 5.0) as again:
        again.sendall(SETUP)
        assert received(again) == b""


def test_another_controller_takes_the_place_of_the_first(fresh_host: Callable[[], str]) -> None:
    first, host = Controller(fresh_host()), fresh_host()
    second = Controller(fresh_host(), first.ports)
    mischief = Mischief(reset_at=10, polite=True, other=True)
    with Proxy(first.host, host, mischief, Random(0), first.ports, second.host) as proxy:
        for _ in range(2):
            with socket.create_connection((host, first.ports[0]), 5.0) as client:
                client.sendall(SETUP)
                assert received(client).startswith(REPLY + package(TIMES[0]))
        assert second.clients == 1
        assert proxy.count.times == TIMES[:10], "only the first one's packages count"
    first.close()
    second.close()


def test_a_proxy_can_play_dead(connect: Connect) -> None:
    proxy, client = connect(Mischief(gone_at=7))
    assert received(client, 0.5) == REPLY + b"".join(map(package, TIMES[:7]))
    assert proxy.gone
    assert proxy.count.times == TIMES[:7]


@pytest.mark.parametrize("kind", LIES)
def test_lies_are_not_counted_as_received(connect: Connect, kind: str) -> None:
    proxy, client = connect(Mischief(lie=kind, lie_every=4))
    data = received(client, 0.5)
    assert data != WHOLE
    assert proxy.lied == 10
    assert proxy.count.times == [time for i, time in enumerate(TIMES, 1) if i % 4]


@pytest.mark.parametrize("kind", LIES)
def test_every_lie_changes_the_package(kind: str) -> None:
    honest = package(60.0)
    assert all(lie(kind, honest, Random(seed)) != honest for seed in range(20))


def test_packages_are_cut_wherever_the_stream_is() -> None:
    for size in (1, 3, 60, 1000):
        cutter = Cutter()
        packets = [
            packet
            for start in range(0, len(WHOLE), size)
            for packet in cutter.feed(WHOLE[start : start + size])
        ]
        assert b"".join(packets) == WHOLE
        assert sum(map(is_data, packets)) == len(TIMES)


def test_mischief_is_drawn_from_the_seed() -> None:
    drawn = [str(draw_mischief(Random(seed))) for seed in range(100)]
    assert drawn == [str(draw_mischief(Random(seed))) for seed in range(100)]
    for word in (
        "honest",
        "split",
        "pause",
        "stall",
        "reset_at",
        "away",
        "other",
        "gone_at",
        "lie",
    ):
        assert any(word in text for text in drawn)
