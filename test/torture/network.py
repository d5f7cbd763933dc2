"""A proxy that cuts, delays and corrupts the stream of a controller while `record` runs."""

from __future__ import annotations

import select
import socket
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random

from test.running import fresh_host
from test.torture.harness import PATIENCE, Case, Family, Verdict
from test.torture.subjects import (
    Recorded,
    check_counts,
    check_duration,
    check_received,
    check_recording,
    end_node,
    no_ros,
    readable_times,
    start_node,
    start_recording,
    stop_recording,
    summary,
)

_HEADER = struct.Struct(">HB")
_DOUBLE = struct.Struct(">d")
SETUP_OUTPUTS, DATA = ord("O"), ord("U")
_SIZES = {
    "BOOL": 1, "UINT8": 1, "UINT32": 4, "UINT64": 8, "INT32": 4, "DOUBLE": 8, "VECTOR3D": 24,
    "VECTOR6D": 48, "VECTOR6INT32": 24, "VECTOR6UINT32": 24,
}  # fmt: skip


@dataclass
class Cutter:
    """Cuts a byte stream into packets.

    Attributes:
        rest: beginning of a packet that is not complete yet.
    """

    rest: bytes = b""

    def feed(self, data: bytes) -> list[bytes]:
        """The packets that are complete now, headers included."""
        self.rest += data
        packets = []
        while len(self.rest) >= _HEADER.size:
            size = _HEADER.unpack_from(self.rest)[0]
            if size < _HEADER.size or len(self.rest) < size:
                break
            packets.append(self.rest[:size])
            self.rest = self.rest[size:]
        return packets


@dataclass
class PackageCount:
    """Data packages of one client, protocol version 2.

    Attributes:
        times: controller timestamps of the packages that were passed on whole [s].
    """

    times: list[float] = field(default_factory=list)
    _names: list[str] = field(default_factory=list)
    _place: int | None = None

    def requested(self, packet: bytes) -> None:
        """Take note of what the client asks for."""
        if packet[2] == SETUP_OUTPUTS:
            self._names = packet[_HEADER.size + 8 :].decode().split(",")

    def answered(self, packet: bytes) -> None:
        """Take note of the types that the controller answers with."""
        if packet[2] != SETUP_OUTPUTS:
            return
        kinds = packet[_HEADER.size + 1 :].decode().split(",")
        place = _HEADER.size + 1
        self._place = None
        for name, kind in zip(self._names, kinds, strict=False):
            if name == "timestamp":
                self._place = place
            place += _SIZES.get(kind, 0)

    def passed(self, packet: bytes) -> None:
        """Count a packet that the client was sent whole, if it is a data package."""
        if packet[2] == DATA and self._place is not None:
            self.times.append(_DOUBLE.unpack_from(packet, self._place)[0])


def is_data(packet: bytes) -> bool:
    """Whether a packet is a data package."""
    return packet[2] == DATA


RTDE, DASHBOARD = 30004, 29999
_RESET = struct.pack("ii", 1, 0)
LIES = ("flip", "size", "twice", "backwards", "junk", "text", "swap")


@dataclass(frozen=True)
class Mischief:
    """What a proxy does to the stream of data packages.

    Attributes:
        split: most bytes in one send; 0 sends as it receives.
        pause: between sends [s], a trickle.
        stall_at, stall: after this many packages nothing is passed on for this time [s].
        reset_at: after this many packages of a connection it is reset; 0 for never.
        polite: close instead of reset.
        away: no connection is accepted for this time after a reset [s].
        other: behind the proxy is another controller after a reset.
        gone_at: after this many packages nobody ever answers again; 0 for never.
        lie: a kind of LIES that befalls packages.
        lie_every: packages from one lie to the next.
    """

    split: int = 0
    pause: float = 0.0
    stall_at: int = 0
    stall: float = 0.0
    reset_at: int = 0
    polite: bool = False
    away: float = 0.0
    other: bool = False
    gone_at: int = 0
    lie: str = ""
    lie_every: int = 0

    def __str__(self) -> str:
        default = Mischief()
        told = {key: value for key, value in vars(self).items() if value != vars(default)[key]}
        return ", ".join(f"{key} {value}" for key, value in told.items()) or "honest"


def draw_mischief(random: Random) -> Mischief:
    """One kind of mischief, with random numbers."""
    at = random.randint(1, 1500)
    return random.choice(
        [
            Mischief(),
            Mischief(split=random.choice((1, 7, 100)), pause=0.0),
            Mischief(split=random.randint(200, 4000), pause=random.uniform(0.0, 0.002)),
            Mischief(stall_at=at, stall=random.uniform(0.1, 4.0)),
            Mischief(reset_at=at, polite=random.random() < 0.5),
            Mischief(reset_at=random.randint(100, 600), away=random.uniform(0.0, 1.5)),
            Mischief(reset_at=random.randint(200, 1200), other=True),
            Mischief(gone_at=at),
            Mischief(lie=random.choice(LIES), lie_every=random.randint(3, 900)),
        ]
    )


class Proxy:
    """Passes connections on to a controller; a context manager.

    Args:
        target: address of the controller.
        host: address to listen on.
        mischief: what to do to the stream.
        random: random numbers of the lies.
        ports: RTDE and dashboard port, of the controllers and of the proxy.
        other: address of another controller; the same one if None.

    Attributes:
        count: data packages of the first controller that were passed on whole and unchanged.
        lied: number of lies.
    """

    def __init__(
        self,
        target: str,
        host: str,
        mischief: Mischief,
        random: Random,
        ports: tuple[int, int] = (RTDE, DASHBOARD),
        other: str | None = None,
    ) -> None:
        self.host, self.count, self.lied = host, PackageCount(), 0
        self._target, self._mischief, self._random = target, mischief, random
        self._first, self._other = target, other or target
        self._rtde = ports[0]
        self._listeners: list[socket.socket] = []
        self._sockets: list[socket.socket] = []
        self._packages = 0
        self._absent_until = 0.0
        self._over = threading.Event()
        for port in ports:
            listener = socket.create_server((host, port))
            self._listeners.append(listener)
            self._run(self._accept, listener, port)

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for each in [*self._listeners, *self._sockets]:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    @property
    def gone(self) -> bool:
        """Whether the proxy plays dead for good."""
        return bool(self._mischief.gone_at) and self._packages >= self._mischief.gone_at

    def _run(self, work: Callable[..., None], *arguments: object) -> None:
        def quietly() -> None:
            with suppress(OSError, ValueError):  # a socket that another thread has closed
                work(*arguments)

        threading.Thread(target=quietly, daemon=True).start()

    def _accept(self, listener: socket.socket, port: int) -> None:
        while not self._over.is_set():
            client, _ = listener.accept()
            if self.gone or time.monotonic() < self._absent_until:
                _break(client, polite=False)
                continue
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            server = socket.create_connection((self._target, port), timeout=10.0)
            server.settimeout(None)
            self._sockets += [client, server]
            watched = port == self._rtde
            self._run(self._upstream, client, server, watched)
            self._run(self._downstream if watched else self._copy, server, client)

    def _upstream(self, client: socket.socket, server: socket.socket, watched: bool) -> None:
        cutter = Cutter()
        while data := _received(client):
            if watched:
                for packet in cutter.feed(data):
                    self.count.requested(packet)
            server.sendall(data)
        server.close()

    def _copy(self, server: socket.socket, client: socket.socket) -> None:
        while data := server.recv(65536):
            client.sendall(data)
        client.close()

    def _downstream(self, server: socket.socket, client: socket.socket) -> None:
        """Pass packets on, with mischief."""
        cutter, mischief, packages = Cutter(), self._mischief, 0
        counted = server.getpeername()[0] == self._first
        while data := server.recv(65536):
            for packet in cutter.feed(data):
                if not is_data(packet):
                    self.count.answered(packet)
                    client.sendall(packet)
                    continue
                if self.gone:
                    server.close()  # silent, with an open connection
                    return
                self._packages += 1
                packages += 1
                if mischief.lie_every and packages % mischief.lie_every == 0:
                    self.lied += 1
                    client.sendall(lie(mischief.lie, packet, self._random))
                else:
                    self._send(client, packet)
                    if counted:
                        self.count.passed(packet)
                if packages == mischief.stall_at:
                    self._over.wait(mischief.stall)
                if packages == mischief.reset_at:
                    self._absent_until = time.monotonic() + mischief.away
                    self._target = self._other if mischief.other else self._target
                    _break(client, polite=mischief.polite)
                    server.close()
                    return

    def _send(self, client: socket.socket, packet: bytes) -> None:
        size = self._mischief.split or len(packet)
        for start in range(0, len(packet), size):
            client.sendall(packet[start : start + size])
            if self._mischief.pause:
                self._over.wait(self._mischief.pause)


def lie(kind: str, packet: bytes, random: Random) -> bytes:
    """What the client gets in the place of a data package."""
    body = bytearray(packet)
    match kind:
        case "flip":
            body[random.randrange(4, len(body))] ^= 1 << random.randrange(8)
        case "size":
            struct.pack_into(">H", body, 0, random.choice((0, 2, 3, len(body) - 1, 65535)))
        case "twice":
            return packet + packet
        case "backwards":
            return packet[:4] + packet[4:][::-1]
        case "junk":
            return random.randbytes(random.randint(1, 500))
        case "text":
            text = random.randbytes(random.randint(0, 200))
            return struct.pack(">HB", 3 + len(text), ord("M")) + text + packet
        case "swap":
            middle = random.randrange(4, len(packet))
            return packet[:4] + packet[middle:] + packet[4:middle]
    return bytes(body)


def _received(client: socket.socket) -> bytes:
    """The next bytes of a client; does not block in `recv`, which would delay a reset."""
    while not select.select([client], [], [], 0.02)[0]:
        pass
    return client.recv(65536)


def _break(client: socket.socket, *, polite: bool) -> None:
    with suppress(OSError):
        if polite:
            client.shutdown(socket.SHUT_RDWR)
        else:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    client.close()


DURATION = 4.0
NODE_SECONDS = 5.0


def run(case: Case) -> Verdict:
    """Two of three cases record; the third runs a node."""
    mischief = draw_mischief(case.random)
    other = case.around.other_host if mischief.other else None
    with Proxy(case.around.host, fresh_host(), mischief, case.random, other=other) as proxy:
        if case.number % 3 < 2:
            return _record(case, proxy, str(mischief))
        return _node(case, proxy, str(mischief))


def _record(case: Case, proxy: Proxy, mischief: str) -> Verdict:
    verdict = Verdict(f"record: {mischief}")
    recording = start_recording(case.around, proxy.host, case.folder, "--duration", str(DURATION))
    code = recording.finish(PATIENCE)
    verdict.seconds = time.monotonic() - recording.began
    told = summary(recording.output)
    if told is None:  # refused before it began, such as lies during the negotiation
        recording.judge(verdict, (1, 3))
        return verdict
    recording.judge(verdict, (0, 1, 3))
    recorded = Recorded.of(readable_times(case.folder / "bag"), told)
    check_counts(verdict, recorded, honest=not proxy.lied)
    if not proxy.lied:
        check_received(verdict, recorded, proxy.count.times)
        check_duration(verdict, recorded, DURATION, code, proxy.count.times)
    return verdict


def _node(case: Case, proxy: Proxy, mischief: str) -> Verdict:
    name = ("logger", "estimator", "cell")[case.number // 3 % 3]
    verdict = Verdict(f"{name}: {mischief}", skipped=no_ros())
    if verdict.skipped:
        return verdict
    environment = case.around.ros_environment()
    node = start_node(case, name, environment, robot_ip=proxy.host)
    node.wait(NODE_SECONDS)
    verdict.expect(node.running, "the node ended by itself")
    if name != "estimator":
        recorded = check_recording(
            case, verdict, stop_recording(environment), honest=not proxy.lied
        )
        began = (case.folder / "bags").exists() or not proxy.count.times
        verdict.expect(began, "samples arrive, but nothing is recorded")
        if recorded is not None and not proxy.lied:
            check_received(verdict, recorded, proxy.count.times)
    end_node(case, node, verdict)
    return verdict


FAMILY = Family("network", 3.0, run, at_once=2)
