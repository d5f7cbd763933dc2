"""RTDE packets, encoded and decoded: pure functions that client and simulated server share.

Both protocol versions are covered: version 1 has no frequency in the output setup, and no recipe
number in its reply or in data packages. All numbers are big-endian. Source: Universal Robots'
RTDE guide.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.errors import ProtocolError
from ur_energy_model.telemetry.fields import WIDTH, ValueKind

PROTOCOL_VERSIONS = (2, 1)
HEADER = struct.Struct(">HB")
MAX_FRAME = 0xFFFF
NOT_FOUND, IN_USE = "NOT_FOUND", "IN_USE"
SIMULATED_SERIAL_PREFIX = "2000000"
"""Serial numbers of simulated arms begin with it; a real one begins with its year of manufacture,
and none was made in 2000."""

_NUMBER: dict[ValueKind, str] = {
    "BOOL": "u1", "UINT8": "u1", "UINT32": ">u4", "UINT64": ">u8", "INT32": ">i4",
    "DOUBLE": ">f8", "VECTOR3D": ">f8", "VECTOR6D": ">f8",
    "VECTOR6INT32": ">i4", "VECTOR6UINT32": ">u4",
}  # fmt: skip


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


class TextMessage(NamedTuple):
    """A message for people; level 0 exception, 1 error, 2 warning, 3 information."""

    text: str
    source: str
    level: int


class SetupReply(NamedTuple):
    """Answer to a setup request: recipe number (None in version 1) and a type for each name."""

    recipe_id: int | None
    kinds: tuple[str, ...]

    @property
    def accepted(self) -> bool:
        """Whether every name was accepted."""
        return self.recipe_id != 0 and all(kind in _NUMBER for kind in self.kinds)


def frame(kind: int, payload: bytes = b"") -> bytes:
    """A packet on the wire: size (header included), type, payload.

    Raises:
        ValueError: the payload does not fit the 16-bit size.
    """
    size = HEADER.size + len(payload)
    if size > MAX_FRAME:
        raise ValueError(f"a packet of {size} bytes does not fit its 16-bit size")
    return HEADER.pack(size, kind) + payload


@dataclass(frozen=True)
class Recipe:
    """The layout of data packages: names and types, in order.

    Attributes:
        names: RTDE names.
        kinds: RTDE type of each.
        recipe_id: 1..255, or None in protocol version 1.
    """

    names: tuple[str, ...]
    kinds: tuple[ValueKind, ...]
    recipe_id: int | None = None

    def __post_init__(self) -> None:
        if len(self.names) != len(self.kinds):
            raise ValueError(f"{len(self.names)} names but {len(self.kinds)} types")
        for name, kind in zip(self.names, self.kinds, strict=True):
            if kind not in _NUMBER:
                raise ValueError(f"{name}: RTDE has no type {kind!r}")

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """Packed, big-endian record of the values; a repeated name gets its position appended."""
        keys: dict[str, None] = {}
        for i, name in enumerate(self.names):
            keys[f"{name}#{i}" if name in keys else name] = None
        entries = [
            (key, _NUMBER[kind], (WIDTH[kind],) if WIDTH[kind] > 1 else ())
            for key, kind in zip(keys, self.kinds, strict=True)
        ]
        return np.dtype(entries)

    @cached_property
    def prefix(self) -> bytes:
        """The constant first bytes of each data package: size, type and recipe number."""
        number = b"" if self.recipe_id is None else bytes([self.recipe_id])
        size = HEADER.size + len(number) + self.dtype.itemsize
        if size > MAX_FRAME:
            raise ValueError(f"a data package of {size} bytes does not fit its 16-bit size")
        return HEADER.pack(size, PacketType.DATA_PACKAGE) + number

    @cached_property
    def frame_size(self) -> int:
        """Bytes of a whole data package."""
        return len(self.prefix) + self.dtype.itemsize

    def pack(self, values: Mapping[str, Any]) -> bytes:
        """A whole data package.

        Args:
            values: number or array for each name; further entries are ignored.

        Raises:
            KeyError: a name has no value.
        """
        record = np.empty((), self.dtype)
        for key, name in zip(cast("Sequence[str]", self.dtype.names), self.names, strict=True):
            record[key] = values[name]
        return self.prefix + record.tobytes()

    def unpack_many(self, packages: bytes | bytearray | memoryview) -> NDArray[np.void]:
        """Records of whole data packages that follow one another; headers are not checked.

        Returns:
            Structured array [n] of `dtype`, a view of `packages`.
        """
        return cast("NDArray[np.void]", np.frombuffer(packages, self._framed)["values"])

    @cached_property
    def _framed(self) -> np.dtype[Any]:
        """A record behind its prefix."""
        return np.dtype([("prefix", f"V{len(self.prefix)}"), ("values", self.dtype)])

    @cached_property
    def _blocks(self) -> tuple[np.dtype[Any], tuple[tuple[str, int, int, int], ...]]:
        """Neighbours of one number type as one field, and (name, block, start, width) of each."""
        formats: list[tuple[str, int]] = []
        places = []
        for name, kind in zip(self.names, self.kinds, strict=True):
            number, width = _NUMBER[kind], WIDTH[kind]
            if not formats or formats[-1][0] != number:
                formats.append((number, 0))
            start = formats[-1][1]
            places.append((name, len(formats) - 1, start, width))
            formats[-1] = (number, start + width)
        blocks = [(str(i), number, (width,)) for i, (number, width) in enumerate(formats)]
        return np.dtype(blocks), tuple(places)

    def columns(self, records: NDArray[np.void]) -> dict[str, NDArray[np.float64]]:
        """Values of records [n] by name: contiguous float64 [n], or [n, width] for vectors."""
        dtype, places = self._blocks
        view = records.view(dtype)
        blocks = [view[name].astype(np.float64) for name in dtype.names or ()]
        columns = {}
        for name, block, start, width in places:
            values = blocks[block]
            part = values[:, start] if width == 1 else values[:, start : start + width]
            columns[name] = part if len(view) == 1 else np.ascontiguousarray(part)
        return columns

    def join(self, parts: Sequence[NDArray[np.void]]) -> NDArray[np.void]:
        """Records of several batches as one; numpy's own way would change their byte order."""
        if len(parts) == 1:
            return parts[0]
        return np.frombuffer(b"".join(part.tobytes() for part in parts), self.dtype)

    def leading(self, buffer: bytes | bytearray | memoryview) -> int:
        """How many whole packages of this recipe the buffer begins with."""
        size, start = self.frame_size, len(self.prefix)
        count = len(buffer) // size
        if count <= 1:
            return int(count == 1 and buffer[:start] == self.prefix)
        heads = np.frombuffer(buffer, np.uint8, count * size).reshape(count, size)[:, :start]
        same = (heads == np.frombuffer(self.prefix, np.uint8)).all(axis=1)
        return count if same.all() else int(np.argmin(same))


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
                self.peer, f"sent a packet of size {size}, smaller than its header",
                "check that the address is a UR controller's RTDE port",
            )  # fmt: skip
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


def encode_names(names: Iterable[str]) -> bytes:
    """Names or types, joined as setup packets carry them."""
    return ",".join(names).encode()


def decode_names(payload: bytes, peer: str = "peer") -> tuple[str, ...]:
    """Names or types; empty ones, as a trailing comma makes, are left out.

    Raises:
        ProtocolError: not text.
    """
    try:
        text = payload.decode("ascii")
    except UnicodeDecodeError:
        raise _malformed(peer, "a list of names that is not ASCII") from None
    return tuple(name.strip() for name in text.split(",") if name.strip())


def encode_output_setup(names: Sequence[str], frequency: float | None) -> bytes:
    """Payload of an output setup request; frequency [Hz] is None in protocol version 1."""
    head = b"" if frequency is None else struct.pack(">d", frequency)
    return head + encode_names(names)


def decode_output_setup(
    payload: bytes, version: int = 2, peer: str = "peer"
) -> tuple[float | None, tuple[str, ...]]:
    """Frequency [Hz] (None in version 1) and names of an output setup request.

    Raises:
        ProtocolError: too short, or not text.
    """
    if version == 1:
        return None, decode_names(payload, peer)
    if len(payload) < 8:
        raise _malformed(peer, "an output setup without frequency")
    return struct.unpack_from(">d", payload)[0], decode_names(payload[8:], peer)


def encode_setup_reply(reply: SetupReply) -> bytes:
    """Payload of the reply to an output or input setup."""
    head = b"" if reply.recipe_id is None else bytes([reply.recipe_id])
    return head + encode_names(reply.kinds)


def decode_setup_reply(payload: bytes, *, numbered: bool = True, peer: str = "peer") -> SetupReply:
    """Reply to a setup request.

    Args:
        payload: of the packet.
        numbered: False for the reply to an output setup in protocol version 1.
        peer: address for error messages.

    Raises:
        ProtocolError: empty, or not text.
    """
    if not numbered:
        return SetupReply(None, decode_names(payload, peer))
    if not payload:
        raise _malformed(peer, "an empty reply to a setup request")
    return SetupReply(payload[0], decode_names(payload[1:], peer))


def encode_version_request(version: int) -> bytes:
    """Payload of a protocol version request."""
    return struct.pack(">H", version)


def decode_version_request(payload: bytes, peer: str = "peer") -> int:
    """Protocol version that was asked for.

    Raises:
        ProtocolError: wrong length.
    """
    if len(payload) != 2:
        raise _malformed(peer, "a protocol version request of wrong length")
    return int(struct.unpack(">H", payload)[0])


def encode_flag(accepted: bool) -> bytes:
    """Payload of the replies that say yes or no."""
    return bytes([accepted])


def decode_flag(payload: bytes, peer: str = "peer") -> bool:
    """Reply that says yes or no.

    Raises:
        ProtocolError: wrong length.
    """
    if len(payload) != 1:
        raise _malformed(peer, "a yes-or-no reply of wrong length")
    return payload[0] != 0


def encode_controller_version(version: Sequence[int]) -> bytes:
    """Payload of the controller version reply: major, minor, bugfix, build."""
    return struct.pack(">4I", *version)


def decode_controller_version(payload: bytes, peer: str = "peer") -> tuple[int, int, int, int]:
    """Major, minor, bugfix and build; a controller that leaves the build out has build 0.

    Raises:
        ProtocolError: wrong length.
    """
    if len(payload) not in (12, 16):
        raise _malformed(peer, "a controller version of wrong length")
    major, minor, bugfix, *build = struct.unpack(f">{len(payload) // 4}I", payload)
    return major, minor, bugfix, build[0] if build else 0


def encode_text_message(message: TextMessage, version: int = 2) -> bytes:
    """Payload of a text message; version 1 carries no source. Over-long texts are cut."""
    text = message.text.encode()
    if version == 1:
        return bytes([message.level]) + text
    text, source = text[:255], message.source.encode()[:255]
    return bytes([len(text)]) + text + bytes([len(source)]) + source + bytes([message.level])


def decode_text_message(payload: bytes, version: int = 2, peer: str = "peer") -> TextMessage:
    """Text message; bytes that are not UTF-8 are replaced, for it is for people.

    Raises:
        ProtocolError: the lengths do not fit the payload.
    """
    if version == 1:
        if not payload:
            raise _malformed(peer, "an empty text message")
        return TextMessage(payload[1:].decode(errors="replace"), "", payload[0])
    try:
        middle = 1 + payload[0]
        end = middle + 1 + payload[middle]
        if len(payload) != end + 1:
            raise IndexError
        text, source, level = payload[1:middle], payload[middle + 1 : end], payload[end]
    except IndexError:
        raise _malformed(peer, "a text message whose lengths do not fit") from None
    return TextMessage(text.decode(errors="replace"), source.decode(errors="replace"), level)


def _malformed(peer: str, what: str) -> ProtocolError:
    return ProtocolError(
        peer, f"sent {what}", "check that the address is a UR controller's RTDE port"
    )
