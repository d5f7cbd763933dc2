"""Counts RTDE data packages and reads their timestamps, from the bytes on the wire alone.

Independent of the package under test, whose decoder is not used. Source: Universal Robots' RTDE
guide.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

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
