# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""A small RTDE server for tests, built on the package's own codec, that can misbehave."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

from ur_energy_model.telemetry.fields import FIELDS, WIDTH
from ur_energy_model.telemetry.rtde.protocol import (
    NOT_FOUND,
    FrameReader,
    PacketType,
    Recipe,
    SetupReply,
    decode_output_setup,
    encode_setup_reply,
    frame,
)

START_TIME = 1000.0


def value_of(name: str, tick: int, rate: float = 500.0) -> np.ndarray | float:
    """What the peer sends for a field at a tick: reproducible, and of full precision."""
    field_ = FIELDS[name]
    if name == "timestamp":
        return START_TIME + tick / rate
    values = np.sin(
        tick * 0.37 + 10.0 * list(FIELDS).index(name) + np.arange(field_.width)
    )
    if field_.kind not in ("DOUBLE", "VECTOR3D", "VECTOR6D"):
        values = np.rint(50.0 + 50.0 * values)
    return values if field_.width > 1 else float(values[0])


@dataclass
class PeerBehaviour:
    """How the peer serves one connection; the defaults are those of a real controller."""

    version: tuple[int, int, int, int] = (5, 11, 0, 108318)
    protocol_versions: tuple[int, ...] = (1, 2)
    missing: frozenset[str] = frozenset()  # fields answered with NOT_FOUND
    # answered instead of the true ones
    kinds: dict[str, str] = field(default_factory=dict)
    silent_after: int | None = None  # so many requests
    refuse_start: bool = False
    early: tuple[int, ...] = ()  # ticks sent in front of the reply to the start request
    raw_reply: bytes | None = None  # instead of any reply


class RtdePeer:
    """Serves connections in the order of `behaviours` (the last one stays), on a loopback port."""

    def __init__(
        self,
        *behaviours: PeerBehaviour,
        host: str = "127.0.10.1",
        port: int = 0,
        values: Callable[[str, int], object] = value_of,
    ) -> None:
        self.behaviours = list(behaviours) or [PeerBehaviour()]
        self.host = host
        self.values = values
        self.recipe: Recipe | None = None
        self.frequencies: list[float | None] = []
        self.connections = 0
        self.started = threading.Event()
        self._listener = socket.create_server((host, port))
        self.port = self._listener.getsockname()[1]
        self._client: socket.socket | None = None
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> RtdePeer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.refuse()
        self.disconnect()
        self._thread.join(240.0)

    def refuse(self) -> None:
        """Accept no more connections."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the accepting thread
        self._listener.close()

    def disconnect(self) -> None:
        """Close the present connection."""
        self.started.clear()
        client = self._client
        self._client = None
        if client is not None:
            with suppress(OSError):
                # so that the serving thread's recv ends too
                client.shutdown(socket.SHUT_RDWR)
            client.close()

    def package(self, tick: int) -> bytes:
        """The data package of a tick."""
        assert self.recipe is not None
        return self.recipe.pack(
            {name: self.values(name, tick) for name in self.recipe.names}
        )

    def send_ticks(self, ticks: Sequence[int]) -> None:
        """Send data packages, once the client has started."""
        assert self.started.wait(240), "no client has started"
        self.send(b"".join(map(self.package, ticks)))

    def send(self, data: bytes) -> None:
        """Send any bytes, once the client has started."""
        assert self.started.wait(240), "no client has started"
        assert self._client is not None
        self._client.sendall(data)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            except OSError:
                return
            behaviour = self.behaviours[min(self.connections, len(self.behaviours) - 1)]
            self.connections += 1
            self._client = client
            with suppress(OSError):
                self._serve(client, behaviour)
            self.started.clear()

    def _serve(self, client: socket.socket, behaviour: PeerBehaviour) -> None:
        reader = FrameReader()
        version = 1
        requests = 0
        while data := client.recv(65536):
            reader.feed(data)
            while (packet := reader.take_frame()) is not None:
                kind, payload = packet
                requests += 1
                if (
                    behaviour.silent_after is not None
                    and requests > behaviour.silent_after
                ):
                    continue
                if behaviour.raw_reply is not None:
                    client.sendall(behaviour.raw_reply)
                    continue
                reply = b"\x01"
                if kind == PacketType.REQUEST_PROTOCOL_VERSION:
                    accepted = payload[1] in behaviour.protocol_versions
                    version = payload[1] if accepted else version
                    reply = bytes([accepted])
                elif kind == PacketType.GET_CONTROLLER_VERSION:
                    reply = struct.pack(">4I", *behaviour.version)
                elif kind == PacketType.SETUP_OUTPUTS:
                    reply = self._setup(payload, version, behaviour)
                elif kind == PacketType.START:
                    client.sendall(b"".join(map(self.package, behaviour.early)))
                    reply = bytes([not behaviour.refuse_start])
                client.sendall(frame(kind, reply))
                if kind == PacketType.START and not behaviour.refuse_start:
                    self.started.set()

    def _setup(self, payload: bytes, version: int, behaviour: PeerBehaviour) -> bytes:
        frequency, names = decode_output_setup(payload, version)
        self.frequencies.append(frequency)
        kinds = tuple(
            NOT_FOUND
            if name in behaviour.missing
            else behaviour.kinds.get(name, FIELDS[name].kind)
            for name in names
        )
        good = all(kind in WIDTH for kind in kinds)
        number = None if version == 1 else int(good)
        if good:
            self.recipe = Recipe(names, kinds, number)  # type: ignore[arg-type]
        return encode_setup_reply(SetupReply(number, kinds))


FAULT_TICK = 400
"""Packets that a PacedPeer has sent when its fault happens."""


class PacedPeer(RtdePeer):
    """Sends some 500 packets a second once a client has started.

    `fault` is called once, after FAULT_TICK packets.
    """

    def __enter__(self) -> PacedPeer:
        super().__enter__()
        self.fault: Callable[[], object] | None = None
        self._over = threading.Event()
        self._pacer = threading.Thread(target=self._pace, daemon=True)
        self._pacer.start()
        return self

    def __exit__(self, *arguments: object) -> None:
        self._over.set()
        self._pacer.join(240.0)
        super().__exit__(*arguments)

    def _pace(self) -> None:
        tick = 0
        while not self._over.wait(0.02):
            client = self._client
            if not self.started.is_set() or client is None:
                continue
            packages = b"".join(map(self.package, range(tick, tick + 10)))
            with suppress(OSError):  # the client left in between
                client.sendall(packages)
                tick += 10
                if tick == FAULT_TICK and self.fault is not None:
                    self.fault()
