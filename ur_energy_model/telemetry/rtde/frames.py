"""RTDE packets on the wire: a 16-bit size, a type byte and a payload, cut from a byte stream."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.errors import ProtocolError

if TYPE_CHECKING:
    from ur_energy_model.telemetry.rtde.recipe import Recipe

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

    Every packet is bounded by its 16-bit size, so the buffer never holds more than one of them
    beyond what was fed and not yet taken.

    Attributes:
        peer: address for error messages.
    """

    peer: str = "peer"
    _buffer: bytearray = field(default_factory=bytearray)

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        """Append received bytes."""
        self._buffer += data

    def __len__(self) -> int:
        """Bytes that were fed and not taken."""
        return len(self._buffer)

    def take_frame(self) -> Frame | None:
        """The next packet, None where it is not complete.

        Raises:
            ProtocolError: the size is smaller than the header: the stream cannot be followed.
        """
        if len(self._buffer) < HEADER.size:
            return None
        size, kind = HEADER.unpack_from(self._buffer)
        if size < HEADER.size:
            raise ProtocolError(
                self.peer,
                f"sent a packet of size {size}, smaller than its header",
                "check that the address is a UR controller's RTDE port",
            )
        if len(self._buffer) < size:
            return None
        payload = bytes(self._buffer[HEADER.size : size])
        del self._buffer[:size]
        return Frame(kind, payload)

    def take_data(self, recipe: Recipe) -> NDArray[np.void] | None:
        """All data packages of a recipe that come next, None where the next packet is another.

        Returns:
            Structured array [n], n >= 1, of `recipe.dtype`.
        """
        count = recipe.leading(self._buffer)
        if count == 0:
            return None
        size = count * recipe.frame_size
        with memoryview(self._buffer) as view:
            records = recipe.unpack_many(bytes(view[:size]))
        del self._buffer[:size]
        return records

    def put_back(self, data: bytes) -> None:
        """Put whole packets in front of what is still to be taken."""
        self._buffer[:0] = data
