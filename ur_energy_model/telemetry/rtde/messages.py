"""Payloads of RTDE requests and replies, encoded and decoded.

Both protocol versions are covered: version 1 has no frequency in the output setup, and no recipe
number in its reply or in data packages. All numbers are big-endian. Source: Universal Robots'
RTDE guide.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ur_energy_model.errors import ProtocolError
from ur_energy_model.telemetry.rtde.recipe import NUMBER

PROTOCOL_VERSIONS = (2, 1)
NOT_FOUND, IN_USE = "NOT_FOUND", "IN_USE"
"""In place of the type of a field that cannot be sent or set."""


class TextMessage(NamedTuple):
    """A text message of the controller; level 0 exception, 1 error, 2 warning, 3 information."""

    text: str
    source: str
    level: int


class SetupReply(NamedTuple):
    """Reply to a setup request: recipe number (None in version 1) and a type for each name."""

    recipe_id: int | None
    kinds: tuple[str, ...]

    @property
    def accepted(self) -> bool:
        """Whether every name was accepted."""
        return self.recipe_id != 0 and all(kind in NUMBER for kind in self.kinds)


def encode_names(names: Iterable[str]) -> bytes:
    """Names or types as the comma-separated list of setup packets."""
    return ",".join(names).encode()


def decode_names(payload: bytes, peer: str = "peer") -> tuple[str, ...]:
    """Names or types; empty ones (from a trailing comma) are left out.

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
    """Requested protocol version.

    Raises:
        ProtocolError: wrong length.
    """
    if len(payload) != 2:
        raise _malformed(peer, "a protocol version request of wrong length")
    return int(struct.unpack(">H", payload)[0])


def encode_flag(accepted: bool) -> bytes:
    """Payload of a yes-or-no reply."""
    return bytes([accepted])


def decode_flag(payload: bytes, peer: str = "peer") -> bool:
    """Yes-or-no reply.

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
    """Major, minor, bugfix and build (0 if the controller leaves it out).

    Raises:
        ProtocolError: wrong length.
    """
    if len(payload) not in (12, 16):
        raise _malformed(peer, "a controller version of wrong length")
    major, minor, bugfix, *build = struct.unpack(f">{len(payload) // 4}I", payload)
    return major, minor, bugfix, build[0] if build else 0


def encode_text_message(message: TextMessage, version: int = 2) -> bytes:
    """Payload of a text message, without source in version 1; long texts are cut."""
    text = message.text.encode()
    if version == 1:
        return bytes([message.level]) + text
    text, source = text[:255], message.source.encode()[:255]
    return bytes([len(text)]) + text + bytes([len(source)]) + source + bytes([message.level])


def decode_text_message(payload: bytes, version: int = 2, peer: str = "peer") -> TextMessage:
    """Text message; bytes that are not UTF-8 are replaced.

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
