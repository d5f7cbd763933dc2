"""What a hostile RTDE peer may send, fed to the real client; also for coverage-guided fuzzing.

`python -m test.telemetry.rtde.fuzz [libFuzzer options]` fuzzes with atheris, where it is installed.
"""

from __future__ import annotations

import socket
import struct
import sys
from contextlib import suppress
from unittest import mock

from ur_energy_model.errors import UrEnergyError
from ur_energy_model.telemetry.rtde.protocol import (
    PacketType,
    SetupReply,
    encode_controller_version,
    encode_flag,
    encode_setup_reply,
    frame,
)
from ur_energy_model.telemetry.rtde.source import LinkOptions, RtdeSource

FIELDS = ("timestamp", "actual_q", "payload", "robot_mode")
KINDS = ("DOUBLE", "VECTOR6D", "DOUBLE", "INT32")  # in the order that RtdeSource asks
GREETING = b"".join(
    [
        frame(PacketType.REQUEST_PROTOCOL_VERSION, encode_flag(True)),
        frame(PacketType.GET_CONTROLLER_VERSION, encode_controller_version((5, 11, 0, 0))),
        frame(PacketType.SETUP_OUTPUTS, encode_setup_reply(SetupReply(1, KINDS))),
        frame(PacketType.START, encode_flag(True)),
    ]
)
"""What a well-behaved controller answers; a fuzzer may begin behind it."""
MOST_READS = 50


def feed(data: bytes) -> list[float]:
    """Let a source read what a peer sends before it closes the connection.

    Returns:
        Timestamps of all samples that were accepted.

    Raises:
        AssertionError: samples that are out of order or not finite.
    """
    with socket.create_server(("127.0.10.1", 0)) as listener:
        here = socket.create_connection(listener.getsockname())
        there, _ = listener.accept()
    with here, there:
        there.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        here.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        there.sendall(data)
        there.shutdown(socket.SHUT_WR)
        refused = ConnectionRefusedError("only once")
        with mock.patch.object(socket, "create_connection", side_effect=[here, *[refused] * 99]):
            return _read(RtdeSource("fuzz", fields=FIELDS, link=LinkOptions(silence=0.0)))


def _read(source: RtdeSource) -> list[float]:
    times: list[float] = []
    with suppress(UrEnergyError, EOFError), source:
        for _ in range(MOST_READS):
            batch = source.read(0.0)
            if batch is not None:
                assert set(batch.columns) <= set(FIELDS)
                assert batch.stamp is not None
                assert len(batch.stamp) == len(batch)
                times += batch.time.tolist()
            if not source.status.connected:
                break
    assert all(0.0 <= time < 1e9 for time in times)
    assert len(source.take_events()) < 1000
    return times


def main() -> None:
    """Fuzz until interrupted, or as long as the options say."""
    import atheris

    def target(data: bytes) -> None:
        provider = atheris.FuzzedDataProvider(data)
        greeting = GREETING if provider.ConsumeBool() else b""
        feed((greeting + provider.ConsumeBytes(60_000))[:100_000])

    atheris.instrument_all()
    atheris.Setup(sys.argv, target)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
