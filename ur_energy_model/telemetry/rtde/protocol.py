# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""RTDE on the wire: frames, the recipe that lays out data packages, requests and replies.

Both protocol versions: version 1 has no frequency in the output setup, no recipe number
in its reply and in data packages, and no source in text messages. Source: Universal
Robots' RTDE guide.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.errors import ProtocolError
from ur_energy_model.telemetry.fields import FIELDS, WIDTH, ValueKind
from ur_energy_model.typing import Array

HEADER = struct.Struct(">HB")  # size of the packet, header included, and its type
MAX_FRAME = 0xFFFF  # largest size of a packet [bytes]
PROTOCOL_VERSIONS = (2, 1)  # versions in order of preference
FEW = 50  # records of which a copy of each field takes longer than it saves
CHECK_PORT = "check that the address is a UR controller's RTDE port"
"""Remedy where a peer sends what is not RTDE."""


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
    """Cuts the bytes of a peer into packets; the 16-bit size bounds what is kept of one.

    Attributes:
        peer: address of the peer, for errors.
        buffer: bytes that were fed and not yet taken.
        largest: size of the largest packet that is accepted [bytes].
    """

    peer: str = "peer"
    buffer: bytearray = field(default_factory=bytearray)
    largest: int = MAX_FRAME

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        """Append received bytes."""
        self.buffer += data

    def take_frame(self) -> Frame | None:
        """The next packet, None if it is incomplete.

        Raises:
            ProtocolError: the size is smaller than the header, or larger than any packet:
                later packets cannot be found.
        """
        if len(self.buffer) < HEADER.size:
            return None
        size, kind = HEADER.unpack_from(self.buffer)
        if size < HEADER.size:
            problem = f"sent a packet of size {size}, smaller than its header"
            raise ProtocolError(self.peer, problem, CHECK_PORT)
        if size > self.largest:
            problem = f"sent a packet of {size} bytes, larger than any"
            raise ProtocolError(self.peer, problem, CHECK_PORT)
        if len(self.buffer) < size:
            return None
        payload = bytes(self.buffer[HEADER.size : size])
        del self.buffer[:size]
        return Frame(kind, payload)

    def take_records(self, recipe: Recipe) -> Records | None:
        """The data packages of a recipe that come next.

        Args:
            recipe: recipe of the packages.

        Returns:
            Records [n >= 1]; None if another packet, or none that is complete, comes next.
        """
        size = recipe.frame_size
        prefix = recipe.prefix
        begins = self.buffer.startswith
        whole = len(self.buffer) // size
        count = 0
        while count < whole and begins(prefix, count * size):
            count += 1
        if count == 0:
            return None
        taken = self.buffer
        self.buffer = self.buffer[count * size :]
        del taken[count * size :]
        return recipe.unpack_many(taken)


NUMBER: dict[ValueKind, str] = {
    "BOOL": "u1", "UINT8": "u1", "UINT32": ">u4", "UINT64": ">u8", "INT32": ">i4",
    "DOUBLE": ">f8", "VECTOR3D": ">f8", "VECTOR6D": ">f8",
    "VECTOR6INT32": ">i4", "VECTOR6UINT32": ">u4",
}  # fmt: skip
"""numpy type of a number of each RTDE type; vectors repeat it."""
# structured array [n] of the values of data packages
Records: TypeAlias = NDArray[np.void]


@dataclass(frozen=True)
class Recipe:
    """The layout of data packages.

    Attributes:
        names: RTDE names of the fields, in the order of a package.
        kinds: RTDE types of these fields.
        recipe_id: number of the layout, 1 to 255; None in protocol version 1.
    """

    names: tuple[str, ...]
    kinds: tuple[ValueKind, ...]
    recipe_id: int | None = None

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """Packed, big-endian record of the values; a repeated name gets its position appended."""
        fields: list[tuple[str, str, tuple[int, ...]]] = []
        seen = set[str]()
        for i, (name, kind) in enumerate(zip(self.names, self.kinds, strict=True)):
            key = f"{name}#{i}" if name in seen else name
            seen.add(key)
            width = WIDTH[kind]
            fields.append((key, NUMBER[kind], (width,) if width > 1 else ()))
        return np.dtype(fields)

    @cached_property
    def prefix(self) -> bytes:
        """The constant first bytes of each data package: size, type and recipe number."""
        number = b"" if self.recipe_id is None else bytes([self.recipe_id])
        size = HEADER.size + len(number) + self.dtype.itemsize
        if size > MAX_FRAME:
            problem = f"a data package of {size} bytes does not fit its 16-bit size"
            raise ValueError(problem)
        return HEADER.pack(size, PacketType.DATA_PACKAGE) + number

    @cached_property
    def frame_size(self) -> int:
        """Bytes of a whole data package."""
        return len(self.prefix) + self.dtype.itemsize

    def pack(self, values: Mapping[str, Any]) -> bytes:
        """A whole data package of the value of each name; other entries are ignored.

        Raises:
            KeyError: a name has no value.
        """
        record = np.empty((), self.dtype)
        keys = cast("Sequence[str]", self.dtype.names)
        for key, name in zip(keys, self.names, strict=True):
            record[key] = values[name]
        return self.prefix + record.tobytes()

    @cached_property
    def _framed(self) -> np.dtype[Any]:
        """Record of a whole data package, its prefix included."""
        return np.dtype([("prefix", f"V{len(self.prefix)}"), ("values", self.dtype)])

    def unpack_many(self, packages: bytes | bytearray) -> Records:
        """Records [n], a view, of consecutive whole data packages; headers are not checked."""
        return cast("Records", np.frombuffer(packages, self._framed)["values"])

    def join(self, parts: Sequence[Records]) -> Records:
        """Records [n] of several batches as one; np.concatenate would change their byte order."""
        if len(parts) == 1:
            return parts[0]
        return np.frombuffer(b"".join(part.tobytes() for part in parts), self.dtype)

    @cached_property
    def _blocks(self) -> tuple[np.dtype[Any], tuple[tuple[str, int, int | slice], ...]]:
        """A record in which adjacent fields of one number type are one block.

        Returns:
            The record, whose fields are the blocks; and for each name the number of its
            block, and its place among the numbers of the block.
        """
        types: list[str] = []  # types of the numbers of each block
        widths: list[int] = []
        places: list[tuple[str, int, int | slice]] = []
        for name, kind in zip(self.names, self.kinds, strict=True):
            if types[-1:] != [NUMBER[kind]]:
                types.append(NUMBER[kind])
                widths.append(0)
            start = widths[-1]
            stop = start + WIDTH[kind]
            widths[-1] = stop
            is_single = WIDTH[kind] == 1
            place = start if is_single else slice(start, stop)
            places.append((name, len(types) - 1, place))
        blocks = []
        for number, (kind_of_block, width) in enumerate(zip(types, widths, strict=True)):
            blocks.append((str(number), kind_of_block, (width,)))
        return np.dtype(blocks), tuple(places)

    def columns(self, records: Records) -> dict[str, Array]:
        """Values of records by name.

        Args:
            records: records of this recipe [n].

        Returns:
            float64 [n], or [n, width] for vectors. The arrays are contiguous from FEW
            records on, for which later work is faster then.
        """
        dtype, places = self._blocks
        view = records.view(dtype)
        blocks = [view[name].astype(np.float64) for name in dtype.names or ()]
        columns = {name: blocks[block][:, place] for name, block, place in places}
        if len(view) < FEW:
            return columns
        return {name: np.ascontiguousarray(values) for name, values in columns.items()}


def in_type_order(names: Iterable[str]) -> tuple[str, ...]:
    """Fields of the table, ordered by number type: floating point first.

    Neighbours of one type are decoded together, see `Recipe.columns`.
    """
    number_type = {name: NUMBER[FIELDS[name].kind] for name in names}

    def place(name: str) -> tuple[bool, str]:
        """Key by which fields are sorted."""
        is_integer = number_type[name] != ">f8"
        return is_integer, number_type[name]

    in_order_of_table = [name for name in FIELDS if name in number_type]
    return tuple(sorted(in_order_of_table, key=place))


# Payloads of requests and replies; yes-or-no replies are one byte, versions and numbers
# big-endian.

NOT_FOUND = "NOT_FOUND"
IN_USE = "IN_USE"
"""Word in place of the type of a field that cannot be sent or set."""


class TextMessage(NamedTuple):
    """A text message of the controller.

    Attributes:
        text: the message.
        source: what sent it; "" in protocol version 1.
        level: 0 exception, 1 error, 2 warning, 3 information.
    """

    text: str
    source: str
    level: int


class SetupReply(NamedTuple):
    """Reply to a setup request.

    Attributes:
        recipe_id: number of the recipe; None in protocol version 1.
        kinds: RTDE type of each requested name, or NOT_FOUND or IN_USE.
    """

    recipe_id: int | None
    kinds: tuple[str, ...]


# Payloads are without the header of their packet, and `peer` is the address that errors
# name. Every decoder raises ProtocolError for a payload of the wrong length, or one that
# is not text.


def decode_names(payload: bytes, peer: str = "peer") -> tuple[str, ...]:
    """Names or types, separated by commas; empty names (of a trailing comma) are left out."""
    _check(payload.isascii(), peer, "a list of names that is not ASCII")
    names = (name.strip() for name in payload.decode("ascii").split(","))
    return tuple(name for name in names if name)


def encode_output_setup(names: Sequence[str], frequency: float | None) -> bytes:
    """Payload of an output setup request; frequency [Hz] is None in protocol version 1."""
    head = b"" if frequency is None else struct.pack(">d", frequency)
    return head + ",".join(names).encode()


def decode_output_setup(
    payload: bytes, version: int = 2, peer: str = "peer"
) -> tuple[float | None, tuple[str, ...]]:
    """Frequency [Hz] and names of an output setup request.

    Args:
        payload: content of the request.
        version: version of the protocol; in version 1 the request has no frequency
            (None).
        peer: address that sent the request, for errors.
    """
    if version == 1:
        return None, decode_names(payload, peer)
    _check(len(payload) >= 8, peer, "an output setup without frequency")
    return struct.unpack_from(">d", payload)[0], decode_names(payload[8:], peer)


def encode_setup_reply(reply: SetupReply) -> bytes:
    """Payload of the reply to an output or input setup."""
    head = b"" if reply.recipe_id is None else bytes([reply.recipe_id])
    return head + ",".join(reply.kinds).encode()


def decode_setup_reply(
    payload: bytes, *, numbered: bool = True, peer: str = "peer"
) -> SetupReply:
    """Reply to a setup request.

    Args:
        payload: content of the reply.
        numbered: whether the reply has the number of a recipe, which only the reply to an
            output setup in protocol version 1 lacks.
        peer: address that sent the reply, for errors.
    """
    if not numbered:
        return SetupReply(None, decode_names(payload, peer))
    _check(len(payload) > 0, peer, "an empty reply to a setup request")
    return SetupReply(payload[0], decode_names(payload[1:], peer))


def decode_version_request(payload: bytes, peer: str = "peer") -> int:
    """Version of the protocol that a request asks for."""
    _check(len(payload) == 2, peer, "a protocol version request of wrong length")
    return int.from_bytes(payload, "big")


def decode_flag(payload: bytes, peer: str = "peer") -> bool:
    """Whether a reply accepts the request."""
    _check(len(payload) == 1, peer, "a yes-or-no reply of wrong length")
    return payload[0] != 0


def decode_controller_version(
    payload: bytes, peer: str = "peer"
) -> tuple[int, int, int, int]:
    """Version of the controller's software: major, minor, bugfix, and build (0 if left out)."""
    _check(len(payload) in (12, 16), peer, "a controller version of wrong length")
    return cast(
        "tuple[int, int, int, int]", struct.unpack(">4I", payload.ljust(16, b"\x00"))
    )


def encode_text_message(message: TextMessage, version: int = 2) -> bytes:
    """Payload of a text message, without source in version 1; long texts are cut."""
    text = message.text.encode()
    if version == 1:
        return bytes([message.level]) + text
    text = text[:255]
    source = message.source.encode()[:255]
    parts = (bytes([len(text)]), text, bytes([len(source)]), source)
    return b"".join(parts) + bytes([message.level])


def decode_text_message(
    payload: bytes, version: int = 2, peer: str = "peer"
) -> TextMessage:
    """Text message of the controller; bytes that are not UTF-8 are replaced.

    Args:
        payload: content of the message.
        version: version of the protocol; in version 1 the message has no source ("").
        peer: address that sent the message, for errors.
    """
    if version == 1:
        _check(len(payload) > 0, peer, "an empty text message")
        return TextMessage(payload[1:].decode(errors="replace"), "", payload[0])
    # Length and text, length and source, and one byte with the level.
    middle = 1 + (payload[0] if payload else 0)
    end = middle + 1 + (payload[middle] if middle < len(payload) else 0)
    _check(len(payload) == end + 1, peer, "a text message whose lengths do not fit")
    text = payload[1:middle].decode(errors="replace")
    source = payload[middle + 1 : end].decode(errors="replace")
    return TextMessage(text, source, payload[end])


def _check(good: bool, peer: str, what: str) -> None:
    """Refuse a payload that is not as it has to be.

    Args:
        good: whether the payload is as it has to be.
        peer: address that sent it.
        what: is wrong, such as "an empty text message".

    Raises:
        ProtocolError: the payload is not good.
    """
    if not good:
        raise ProtocolError(peer, f"sent {what}", CHECK_PORT)
