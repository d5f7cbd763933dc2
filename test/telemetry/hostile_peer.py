# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What a hostile RTDE peer sends, fed to the real client."""

from __future__ import annotations

import socket
import struct
from contextlib import suppress
from unittest import mock

from ur_energy_model.errors import UrEnergyError
from ur_energy_model.telemetry.rtde.protocol import (
    PacketType,
    SetupReply,
    encode_setup_reply,
    frame,
)
from ur_energy_model.telemetry.rtde.source import LinkOptions, RtdeSource

FIELDS = ("timestamp", "actual_q", "payload", "robot_mode")
KINDS = ("DOUBLE", "VECTOR6D", "DOUBLE", "INT32")
"""Fields and types, in the order that RtdeSource asks."""
GREETING = b"".join(
    [
        frame(PacketType.REQUEST_PROTOCOL_VERSION, b"\x01"),
        frame(PacketType.GET_CONTROLLER_VERSION, struct.pack(">4I", 5, 11, 0, 0)),
        frame(PacketType.SETUP_OUTPUTS, encode_setup_reply(SetupReply(1, KINDS))),
        frame(PacketType.START, b"\x01"),
    ]
)
"""What a well-behaved controller answers; a hostile one may begin behind it."""


def feed(data: bytes) -> list[float]:
    """Timestamps that a source accepts of what a peer sends before it closes the connection."""
    with socket.create_server(("127.0.10.1", 0)) as listener:
        here = socket.create_connection(listener.getsockname())
        there, _ = listener.accept()
    times: list[float] = []
    with here, there:
        there.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        here.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        there.sendall(data)
        there.shutdown(socket.SHUT_WR)
        refused = [ConnectionRefusedError("only once")] * 99
        source = RtdeSource("fuzz", fields=FIELDS, link=LinkOptions(silence=0.0))
        with (
            mock.patch.object(socket, "create_connection", side_effect=[here, *refused]),
            suppress(UrEnergyError, EOFError),
            source,
        ):
            for _ in range(50):
                batch = source.read(0.0)
                if batch is not None:
                    assert batch.stamp is not None
                    assert len(batch.stamp) == len(batch)
                    times += batch.time.tolist()
                if not source.status.connected:
                    break
    assert all(0.0 <= each < 1e9 for each in times)
    assert len(source.take_events()) < 1000
    return times
