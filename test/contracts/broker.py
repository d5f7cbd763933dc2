# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Broker: the part of an MQTT 3.1.1 broker that takes what one client publishes."""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress
from typing import Any

CONNECT = 1
PUBLISH = 3
SUBSCRIBE = 8
UNSUBSCRIBE = 10
PINGREQ = 12


class Broker:
    """A broker on a free port of loopback; a context manager.

    Attributes:
        will: topic and payload of the last will, after a client has connected.
        published: topic, payload and whether it is retained, in order.
        subscribed: topics.
    """

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.will: tuple[str, bytes] | None = None
        self.published: list[tuple[str, bytes, bool]] = []
        self.subscribed: list[str] = []

    def __enter__(self) -> Broker:
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                with client, client.makefile("rb") as stream:
                    while head := stream.read(1):
                        self._take(client, head[0] >> 4, head[0] & 15, _body(stream))

    def _take(self, client: socket.socket, kind: int, flags: int, body: bytes) -> None:
        if kind == CONNECT:
            client.sendall(b"\x20\x02\x00\x00")
            _, rest = _string(body)
            if rest[1] & 4:
                _, rest = _string(rest[4:])
                topic, rest = _string(rest)
                self.will = topic.decode(), _string(rest)[0]
        elif kind == PUBLISH:
            topic, rest = _string(body)
            if flags & 6:
                client.sendall(b"\x40\x02" + rest[:2])
                rest = rest[2:]
            self.published.append((topic.decode(), rest, bool(flags & 1)))
        elif kind == SUBSCRIBE:
            number = body[:2]
            rest = body[2:]
            levels = b""
            while rest:
                topic, rest = _string(rest)
                self.subscribed.append(topic.decode())
                levels = levels + rest[:1]
                rest = rest[1:]
            client.sendall(b"\x90" + bytes([2 + len(levels)]) + number + levels)
        elif kind == UNSUBSCRIBE:
            client.sendall(b"\xb0\x02" + body[:2])
        elif kind == PINGREQ:
            client.sendall(b"\xd0\x00")


def _body(stream: Any) -> bytes:
    """The rest of a packet, after its first byte."""
    length = shift = 0
    while True:
        (byte,) = stream.read(1)
        length |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return bytes(stream.read(length))


def _string(data: bytes) -> tuple[bytes, bytes]:
    """A text or binary field with its length before it, and what follows."""
    (length,) = struct.unpack_from(">H", data)
    return data[2 : 2 + length], data[2 + length :]
