"""RTDE packets on the wire: a 16-bit size, a type byte and a payload, cut from a byte stream."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from ur_energy_model.errors import ProtocolError

HEADER = struct.Struct(">HB")
MAX_FRAME = 0xFFFF


class PacketType(IntEnum):
    """The type byte of a packet; requests and replies share it."""

    REQUEST_PROTOCOL_VERSION = ord("V")
    GET_CONTROLLER_VERSION = ord("v")
    TEXT_MESSAGE = ord("M")
    DATA_PACKAGE = ord("U")
    SETUP_OUTPUTS = ord("O")
    SETUP_INPUTS = ord("I")
    START = ord("S")
    PAUSE = ord("P")


class Frame(NamedTuple):
    """One packet: its type byte (perhaps one that PacketType lacks) and its payload."""

    kind: int
    payload: bytes


def frame(kind: int, payload: bytes = b"") -> bytes:
    """A packet on the wire: size (header included), type, payload.

    Raises:
        ValueError: the payload does not fit the 16-bit size.
    """
    size = HEADER.size + len(payload)
    if size > MAX_FRAME:
        raise ValueError(f"a packet of {size} bytes does not fit its 16-bit size")
    return HEADER.pack(size, kind) + payload


@dataclass
class FrameReader:
    """Cuts a byte stream into packets.

    The 16-bit size bounds every packet, and so the part of a packet that must be kept.

    Attributes:
        peer: address for error messages.
        buffer: bytes that were fed and not yet taken.
    """

    peer: str = "peer"
    buffer: bytearray = field(default_factory=bytearray)

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        """Append received bytes."""
        self.buffer += data

    def __len__(self) -> int:
        """Number of bytes that were fed and not yet taken."""
        return len(self.buffer)

    def take_frame(self) -> Frame | None:
        """The next packet, None if it is incomplete.

        Raises:
            ProtocolError: the size is smaller than the header: later packets cannot be found.
        """
        if len(self.buffer) < HEADER.size:
            return None
        size, kind = HEADER.unpack_from(self.buffer)
        if size < HEADER.size:
            raise ProtocolError(
                self.peer,
                f"sent a packet of size {size}, smaller than its header",
                "check that the address is a UR controller's RTDE port",
            )
        if len(self.buffer) < size:
            return None
        payload = bytes(self.buffer[HEADER.size : size])
        del self.buffer[:size]
        return Frame(kind, payload)

    def take(self, size: int) -> bytes:
        """The next `size` bytes, which must be whole packets."""
        data = bytes(self.buffer[:size])
        del self.buffer[:size]
        return data

    def put_back(self, data: bytes) -> None:
        """Insert whole packets in front of the buffer."""
        self.buffer[:0] = data
