# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""A proxy that cuts, delays and corrupts the stream of a controller while something records it."""

from __future__ import annotations

import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from random import Random
from typing import Any

from test.running import fresh_host
from test.torture.harness import MOVING, Case, Family, Verdict
from test.torture.subjects import Subject

RTDE = 30004
DASHBOARD = 29999
SETUP_OUTPUTS = ord("O")
DATA = ord("U")
RESET = struct.pack("ii", 1, 0)
"""Value of SO_LINGER with which closing a socket resets the connection."""
_SIZES = {
    "BOOL": 1, "UINT8": 1, "UINT32": 4, "UINT64": 8, "INT32": 4, "DOUBLE": 8, "VECTOR3D": 24,
    "VECTOR6D": 48, "VECTOR6INT32": 24, "VECTOR6UINT32": 24,
}  # fmt: skip


def packets(rest: bytearray, data: bytes) -> Iterator[bytes]:
    """The packets that are complete with more bytes, with headers; the rest stays in `rest`."""
    rest += data
    while len(rest) >= 3:
        size = int.from_bytes(rest[:2], "big")
        if size < 3 or len(rest) < size:
            return
        packet = bytes(rest[:size])
        del rest[:size]
        yield packet


def draw_mischief(random: Random) -> dict[str, Any]:
    """What to do to the stream of data packages: one kind of mischief.

    At most `split` bytes are sent at once, with a `pause` [s]. After `stall_at` packages
    nothing is passed on for `stall` [s]; after `reset_at` the connection is reset, or
    closed if `polite`, none is accepted while `away` [s], and the controller is the
    `other` one then; after `gone_at` nobody ever answers again. Of `every` so many
    packages, one is a lie.
    """
    at = random.randint(1, 1500)
    return random.choice((
        {},
        {"split": random.choice((1, 7, 100))},
        {"split": random.randint(200, 4000), "pause": random.uniform(0.0, 0.002)},
        {"stall_at": at, "stall": random.uniform(0.1, 4.0)},
        {"reset_at": at, "polite": random.random() < 0.5, "away": random.uniform(0.0, 1.5)},
        {"reset_at": random.randint(200, 1200), "other": True},
        {"gone_at": at},
        {"every": random.randint(3, 900)},
    ))  # fmt: skip


class Proxy:
    """Passes connections at `host` on to a controller, with mischief; a context manager.

    `times` are the controller timestamps of the packages of the first controller that
    were passed on whole and unchanged [s]; `lied` is the number of lies.
    """

    def __init__(
        self, target: str, other: str | None, mischief: dict[str, Any], random: Random
    ) -> None:
        self.host = fresh_host()
        self.lied = 0
        self.times: list[float] = []
        self._target = self._first = target
        self._other = other
        self._mischief = mischief
        self._random = random
        self._names: list[str] = []
        self._place: int | None = None
        self._sockets: list[socket.socket] = []
        self._packages = 0
        self._absent_until = 0.0
        self._over = threading.Event()
        for port in (RTDE, DASHBOARD):
            listener = socket.create_server((self.host, port))
            self._sockets.append(listener)
            self._run(self._accept, listener, port)

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    @property
    def _gone(self) -> bool:
        return self._packages >= self._mischief.get("gone_at", 1 << 60)

    def _run(self, work: Callable[..., None], *arguments: object) -> None:
        def quietly() -> None:
            with suppress(OSError, ValueError):  # a socket that another thread has closed
                work(*arguments)

        threading.Thread(target=quietly, daemon=True).start()

    def _accept(self, listener: socket.socket, port: int) -> None:
        while not self._over.is_set():
            client, _ = listener.accept()
            if self._gone or time.monotonic() < self._absent_until:
                _break(client)
                continue
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            server = socket.create_connection((self._target, port), timeout=10.0)
            server.settimeout(None)
            self._sockets += [client, server]
            self._run(self._copy, client, server)
            self._run(self._downstream if port == RTDE else self._copy, server, client)

    def _copy(self, source: socket.socket, target: socket.socket) -> None:
        rest = bytearray()
        while True:
            while not select.select([source], [], [], 0.02)[0]:
                pass  # blocked in `recv`, the thread would delay a reset
            data = source.recv(65536)
            if not data:
                return target.close()
            for packet in packets(rest, data):
                if packet[2] == SETUP_OUTPUTS:
                    self._names = packet[11:].decode(errors="replace").split(",")
            target.sendall(data)

    def _downstream(self, server: socket.socket, client: socket.socket) -> None:
        """Pass packets on, with mischief."""
        rest = bytearray()
        mischief = self._mischief
        packages = 0
        counted = server.getpeername()[0] == self._first
        while data := server.recv(65536):
            for packet in packets(rest, data):
                if packet[2] != DATA:
                    if packet[2] == SETUP_OUTPUTS:
                        before = self._names[: self._names.index("timestamp")]
                        kinds = packet[4:].decode().split(",")[: len(before)]
                        self._place = 4 + sum(_SIZES.get(kind, 0) for kind in kinds)
                    client.sendall(packet)
                    continue
                if self._gone:
                    return server.close()  # silent, with an open connection
                self._packages += 1
                packages += 1
                if packages % mischief.get("every", 1 << 60) == 0:
                    self.lied += 1
                    client.sendall(lie(packet, self._random))
                else:
                    size = mischief.get("split", len(packet))
                    for start in range(0, len(packet), size):
                        client.sendall(packet[start : start + size])
                        if "pause" in mischief:
                            self._over.wait(mischief["pause"])
                    if counted and self._place is not None:
                        self.times.append(
                            struct.unpack_from(">d", packet, self._place)[0]
                        )
                if packages == mischief.get("stall_at"):
                    self._over.wait(mischief["stall"])
                if packages == mischief.get("reset_at"):
                    self._absent_until = time.monotonic() + mischief.get("away", 0.0)
                    self._target = self._other or self._target
                    _break(client, polite=mischief.get("polite", False))
                    return server.close()
        return None


def lie(packet: bytes, random: Random) -> bytes:
    """What the client gets in the place of a data package."""
    head = packet[:4]
    body = packet[4:]
    bit = bytearray(packet)
    bit[random.randrange(4, len(packet))] ^= 1 << random.randrange(8)
    size = random.choice((0, 2, 3, len(packet) - 1, 65535))
    text = random.randbytes(random.randint(0, 200))
    middle = random.randrange(len(body))
    return random.choice((
        bytes(bit),
        struct.pack(">H", size) + packet[2:],
        packet + packet,
        head + body[::-1],
        head + body[middle:] + body[:middle],
        random.randbytes(random.randint(1, 500)),
        struct.pack(">HB", 3 + len(text), ord("M")) + text + packet,
    ))  # fmt: skip


def _break(client: socket.socket, *, polite: bool = False) -> None:
    with suppress(OSError):
        if polite:
            client.shutdown(socket.SHUT_RDWR)
        else:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    client.close()


NODE_SECONDS = 5.0


def run(case: Case) -> Verdict:
    """Two of three cases record; the third runs a node."""
    mischief = draw_mischief(case.random)
    nodes = ("logger", "estimator", "cell")
    name = "record" if case.number % 3 < 2 else nodes[case.number // 3 % 3]
    told = ", ".join(f"{key} {value}" for key, value in mischief.items()) or "honest"
    verdict = Verdict(f"{name}: {told}")
    target = case.around.controller(*MOVING)[0]
    other = (
        case.around.controller(*MOVING, "--seed", "5")[0] if "other" in mischief else None
    )
    with Proxy(target, other, mischief, case.random) as proxy:
        subject = Subject(case, verdict, name, proxy.host, seconds=4.0)
        if name != "record":
            subject.process.wait(NODE_SECONDS)
        else:
            subject.process.finish()
        subject.conclude(passed=proxy.times, honest=not proxy.lied)
    return verdict


FAMILY = Family("network", 3.0, run, at_once=2)
