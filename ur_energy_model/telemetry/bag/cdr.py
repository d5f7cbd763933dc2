"""CDR messages of constant layout, encoded and decoded as arrays.

A message whose strings and sequence lengths do not change has constant size. It is built once as
a template; batches of messages are arrays of bytes [n, size] in which only the stamps and the
float64 sequences differ. Source of the encoding: OMG DDSI-RTPS, plain CDR (XCDR1), little-
endian; alignment counts from behind the four bytes of the encapsulation header.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
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
MAX_STRINGS = 4096
MAX_VALUES = 1 << 20


class CdrError(ValueError):
    """Malformed CDR data."""


@dataclass
class CdrBuilder:
    """Builds one message and records the positions of its float64 sequences.

    Attributes:
        body: the bytes so far, encapsulation header included.
        blocks: (offset of the first value, count) of each float64 sequence.
    """

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
        count = self.u32()
        if count > MAX_STRINGS:
            raise CdrError(f"a sequence of {count} strings")
        return tuple(self.string() for _ in range(count))

    def doubles(self) -> tuple[int, int]:
        """Skip a sequence of float64; returns its offset and count."""
        count = self.u32()
        if count > MAX_VALUES:
            raise CdrError(f"a sequence of {count} numbers")
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
        blocks = [(f"block{i}", *b) for i, b in enumerate(self.blocks) if b[1]]
        return np.dtype(
            {
                "names": ["sec", "nanosec", *(name for name, _, _ in blocks)],
                "formats": ["<i4", "<u4", *(("<f8", (count,)) for _, _, count in blocks)],
                "offsets": [4, 8, *(offset for _, offset, _ in blocks)],
                "itemsize": len(self.message),
            }
        )

    @cached_property
    def _constant(self) -> Mask:
        mask = np.ones(len(self.message), bool)
        mask[2:12] = False
        for offset, count in self.blocks:
            mask[offset : offset + 8 * count] = False
        for offset, count in self.padding:
            mask[offset : offset + count] = False
        return mask

    def encode(self, stamp: NDArray[np.int64], values: Array) -> Bytes:
        """Messages [n, size].

        Args:
            stamp: [n], ns since the epoch.
            values: [n, width], the blocks side by side.
        """
        out = np.empty((len(stamp), len(self.message)), np.uint8)
        out[:] = np.frombuffer(self.message, np.uint8)
        records = out.view(self.dtype)[:, 0]
        records["sec"], records["nanosec"] = np.divmod(stamp, 1_000_000_000)
        start = 0
        for name, count in self._named_blocks():
            records[name] = values[:, start : start + count]
            start += count
        return out

    def decode(self, messages: Bytes) -> tuple[NDArray[np.int64], Array]:
        """Stamps [n] (ns) and values [n, width] of messages [n, size]."""
        records = np.ascontiguousarray(messages).view(self.dtype)[:, 0]
        stamp = records["sec"].astype(np.int64) * 1_000_000_000 + records["nanosec"]
        values = np.empty((len(messages), self.width))
        start = 0
        for name, count in self._named_blocks():
            values[:, start : start + count] = records[name]
            start += count
        return stamp, values

    def matches(self, messages: Bytes) -> Mask:
        """Mask [n] of messages [n, size] that have the constant bytes of this template."""
        constant = np.frombuffer(self.message, np.uint8)[self._constant]
        same: Mask = (messages[:, self._constant] == constant).all(axis=1)
        return same

    def _named_blocks(self) -> list[tuple[str, int]]:
        return [(f"block{i}", count) for i, (_, count) in enumerate(self.blocks) if count]
