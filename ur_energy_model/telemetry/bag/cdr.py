"""Messages of a bag in CDR: types, encoding and decoding as arrays."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.typing import Array, Bytes, Mask

ENCAPSULATION = b"\x00\x01\x00\x00"
STAMP = struct.Struct("<iI")
"""Seconds and nanoseconds."""
STAMP_OFFSET = len(ENCAPSULATION)
"""Place of the stamp in messages that begin with it or with a header."""


class CdrError(ValueError):
    """Malformed CDR data."""


@dataclass
class CdrBuilder:
    """Builds one message; `blocks` are (offset, count) of its float64 sequences."""

    body: bytearray = field(default_factory=lambda: bytearray(ENCAPSULATION))
    blocks: list[tuple[int, int]] = field(default_factory=list)

    def align(self, size: int) -> None:
        """Pad to a multiple of `size`."""
        self.body += bytes(-(len(self.body) - len(ENCAPSULATION)) % size)

    def u8(self, value: int) -> None:
        """One byte."""
        self.body.append(value)

    def u32(self, value: int) -> None:
        """An unsigned (or stamp's signed) 32-bit number."""
        self.align(4)
        self.body += struct.pack("<I", value & 0xFFFFFFFF)

    def stamp(self, nanoseconds: int) -> None:
        """A time, ns since the epoch."""
        for number in divmod(nanoseconds, 1_000_000_000):
            self.u32(number)

    def string(self, text: str) -> None:
        """A string with its terminating zero."""
        data = text.encode() + b"\0"
        self.u32(len(data))
        self.body += data

    def strings(self, texts: Sequence[str]) -> None:
        """A sequence of strings."""
        self.u32(len(texts))
        for text in texts:
            self.string(text)

    def doubles(self, count: int) -> None:
        """A sequence of float64 zeros, recorded in `blocks`."""
        self.u32(count)
        if count:
            self.align(8)
        self.blocks.append((len(self.body), count))
        self.body += bytes(8 * count)


@dataclass
class CdrParser:
    """Reads one message from beginning to end.

    Attributes:
        data: the message, encapsulation header included.
        position: of the next byte to read.
        padding: (offset, count) of the bytes skipped so far; their values mean nothing.

    Raises:
        CdrError: from every method, if the message ends early or is malformed.
    """

    data: bytes
    position: int = len(ENCAPSULATION)
    padding: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.data[:2] != ENCAPSULATION[:2]:
            raise CdrError("message is not little-endian plain CDR")

    def take(self, count: int) -> bytes:
        """The next bytes."""
        end = self.position + count
        if count < 0 or end > len(self.data):
            raise CdrError("message ends early")
        part = self.data[self.position : end]
        self.position = end
        return part

    def align(self, size: int) -> None:
        """Skip padding."""
        count = -(self.position - len(ENCAPSULATION)) % size
        if count:
            self.padding.append((self.position, count))
            self.take(count)

    def u8(self) -> int:
        """One byte."""
        return self.take(1)[0]

    def u32(self) -> int:
        """An unsigned 32-bit number."""
        self.align(4)
        return int.from_bytes(self.take(4), "little")

    def string(self) -> str:
        """A string."""
        raw = self.take(self.u32())
        try:
            return raw.rstrip(b"\0").decode()
        except UnicodeDecodeError:
            raise CdrError("a string is not UTF-8") from None

    def strings(self) -> tuple[str, ...]:
        """A sequence of strings."""
        return tuple(self.string() for _ in range(self.u32()))

    def doubles(self) -> tuple[int, int]:
        """Skip a sequence of float64; returns its offset and count."""
        count = self.u32()
        if count:
            self.align(8)
        offset = self.position
        self.take(8 * count)
        return offset, count


@dataclass(frozen=True)
class Template:
    """A message of constant layout that begins with a stamp.

    Attributes:
        message: one encoded message; its stamp (seconds, nanoseconds) is at byte 4.
        blocks: (offset, count) of each float64 sequence.
        padding: (offset, count) of bytes that mean nothing and may differ.
    """

    message: bytes
    blocks: tuple[tuple[int, int], ...]
    padding: tuple[tuple[int, int], ...] = ()

    @cached_property
    def width(self) -> int:
        """Number of float64 values of a message."""
        return sum(count for _, count in self.blocks)

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """Structured view of one message: sec, nanosec, and a field per non-empty block."""
        return np.dtype(
            {
                "names": ["sec", "nanosec", *self._parts],
                "formats": ["<i4", "<u4", *(("<f8", (n,)) for _, n in self.blocks if n)],
                "offsets": [4, 8, *(offset for offset, n in self.blocks if n)],
                "itemsize": len(self.message),
            }
        )

    @cached_property
    def _parts(self) -> dict[str, slice]:
        """Columns of each non-empty block among all values of a message."""
        ends = np.cumsum([0, *(count for _, count in self.blocks)]).tolist()
        spans = map(slice, ends, ends[1:])
        return {f"block{i}": each for i, each in enumerate(spans) if each.start < each.stop}

    @cached_property
    def _constant(self) -> Mask:
        mask = np.ones(len(self.message), bool)
        mask[2:12] = False
        for offset, count in (*((at, 8 * n) for at, n in self.blocks), *self.padding):
            mask[offset : offset + count] = False
        return mask

    def encode(self, stamp: NDArray[np.int64], values: Array) -> Bytes:
        """Messages [n, size] of stamps [n], ns since the epoch, and values [n, width]."""
        out = np.empty((len(stamp), len(self.message)), np.uint8)
        out[:] = np.frombuffer(self.message, np.uint8)
        records = out.view(self.dtype)[:, 0]
        records["sec"], records["nanosec"] = np.divmod(stamp, 1_000_000_000)
        for name, columns in self._parts.items():
            records[name] = values[:, columns]
        return out

    def decode(self, messages: Bytes) -> tuple[NDArray[np.int64], Array]:
        """Stamps [n] (ns) and values [n, width] of messages [n, size]."""
        records = np.ascontiguousarray(messages).view(self.dtype)[:, 0]
        stamp = records["sec"].astype(np.int64) * 1_000_000_000 + records["nanosec"]
        values = np.empty((len(messages), self.width))
        for name, columns in self._parts.items():
            values[:, columns] = records[name]
        return stamp, values

    def matches(self, messages: Bytes) -> Mask:
        """Mask [n] of messages [n, size] that have the constant bytes of this template."""
        constant = np.frombuffer(self.message, np.uint8)[self._constant]
        same: Mask = (messages[:, self._constant] == constant).all(axis=1)
        return same


OK, WARN, ERROR = 0, 1, 2


@dataclass(frozen=True)
class Status:
    """One diagnostic_msgs/DiagnosticStatus; `text_of` makes its values text."""

    name: str
    level: int
    message: str
    values: Mapping[str, object]


def text_of(value: object) -> str:
    """Text of a value: numbers to six significant digits, large ones to three decimals."""
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):  # np.float64 is one too
        # Six digits would hide the changes of a large energy counter.
        return f"{value:.3f}" if abs(value) >= 1000 else f"{value + 0.0:.6g}"
    return str(value)


def encode_numbers(values: Array) -> Bytes:
    """Float64 messages [n, 12] of values [n]."""
    out = np.empty((len(values), len(ENCAPSULATION) + 8), np.uint8)
    out[:, : len(ENCAPSULATION)] = np.frombuffer(ENCAPSULATION, np.uint8)
    out[:, len(ENCAPSULATION) :] = np.asarray(values, "<f8").view(np.uint8).reshape(-1, 8)
    return out


def encode_text(text: str) -> bytes:
    """A std_msgs/String."""
    builder = CdrBuilder()
    builder.string(text)
    return bytes(builder.body)


def encode_diagnostics(stamp: int, statuses: Sequence[Status]) -> bytes:
    """A DiagnosticArray stamped in ns since the epoch."""
    builder = CdrBuilder()
    builder.stamp(stamp)
    builder.string("")
    builder.u32(len(statuses))
    for status in statuses:
        builder.u8(status.level)
        for text in (status.name, status.message, ""):
            builder.string(text)
        builder.u32(len(status.values))
        for key, value in status.values.items():
            builder.string(key)
            builder.string(text_of(value))
    return bytes(builder.body)
