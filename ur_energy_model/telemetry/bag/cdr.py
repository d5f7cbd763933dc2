# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""CDR, the encoding of ROS messages: single messages, and many of constant layout as arrays."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.typing import Array, Bytes, Mask, Self

ENCAPSULATION = b"\x00\x01\x00\x00"
STAMP = struct.Struct("<iI")  # seconds and nanoseconds
STAMP_OFFSET = len(ENCAPSULATION)
"""Place of the stamp in messages that begin with it or with a header."""
_SIZES = {"B": 1, "I": 4}


class CdrError(ValueError):
    """Malformed CDR data."""


class CdrBuilder:
    """Builds one message, value by value.

    Kinds of values, here and in `CdrParser`: B a byte, I an unsigned 32-bit number, t a
    time [ns since the epoch], s a string, S a sequence of strings, d a sequence of
    float64.

    Attributes:
        body: the message so far, its encapsulation header included.
        blocks: (offset [bytes], number of values) of each sequence of float64.
    """

    def __init__(self) -> None:
        self.body = bytearray(ENCAPSULATION)
        self.blocks: list[tuple[int, int]] = []

    def add(self, kinds: str, *values: Any) -> Self:
        """Append values.

        Args:
            kinds: a letter for each value, see the class.
            *values: of these kinds; the value of d is a number of zeros.

        Returns:
            The builder.
        """
        for kind, value in zip(kinds, values, strict=True):
            if kind == "t":
                self.add("II", *divmod(value, 1_000_000_000))
            elif kind == "s":
                data = value.encode() + b"\0"
                self.add("I", len(data))
                self.body += data
            elif kind == "S":
                self.add("I" + "s" * len(value), len(value), *value)
            elif kind == "d":
                self.add("I", value)
                if value:  # an empty sequence has no padding behind its length
                    self._align(8)
                self.blocks.append((len(self.body), value))
                self.body += bytes(8 * value)
            else:
                self._align(_SIZES[kind])
                unsigned = value & 0xFFFFFFFF  # two's complement of seconds before 1970
                self.body += unsigned.to_bytes(_SIZES[kind], "little")
        return self

    def _align(self, size: int) -> None:
        """Append zeros, so that the next value is at a multiple of its size [bytes]."""
        place = len(self.body) - len(ENCAPSULATION)
        self.body += bytes(-place % size)

    def template(self) -> Template:
        """The message as a template, by which many messages like it are encoded."""
        return Template(bytes(self.body), tuple(self.blocks))


class CdrParser:
    """Reads one message, encapsulation header included, from beginning to end.

    Attributes:
        padding: (offset, number) of the bytes skipped so far, whose values mean nothing.

    Raises:
        CdrError: the message is not little-endian plain CDR.
    """

    def __init__(self, data: bytes) -> None:
        if data[:2] != ENCAPSULATION[:2]:
            raise CdrError("message is not little-endian plain CDR")
        self.padding: list[tuple[int, int]] = []
        self._data = data
        self._position = len(ENCAPSULATION)

    def take(self, kinds: str) -> list[Any]:
        """The next values of the message.

        Args:
            kinds: a letter for each value, see `CdrBuilder`.

        Returns:
            The values; for d the offset in the message [bytes] and the number of values.

        Raises:
            CdrError: the message is malformed, or ends early.
        """
        return [self._value(kind) for kind in kinds]

    def _value(self, kind: str) -> Any:
        """The next value, of one kind."""
        if kind == "t":
            seconds, nanoseconds = self.take("II")
            return seconds * 1_000_000_000 + nanoseconds
        if kind in _SIZES:
            self._align(_SIZES[kind])
            return int.from_bytes(self._bytes(_SIZES[kind]), "little")
        count = self._value("I")
        if kind == "s":
            try:
                return self._bytes(count).rstrip(b"\0").decode()
            except UnicodeDecodeError:
                raise CdrError("a string is not UTF-8") from None
        if kind == "S":
            return tuple(self._value("s") for _ in range(count))
        self._align(8 if count else 1)
        offset = self._position
        self._bytes(8 * count)
        return offset, count

    def _bytes(self, count: int) -> bytes:
        """The next bytes; CdrError if there are fewer."""
        start = self._position
        self._position = start + count
        if self._position > len(self._data):
            raise CdrError("message ends early")
        return self._data[start : self._position]

    def _align(self, size: int) -> None:
        """Skip the bytes in front of a value of this size [bytes]."""
        count = -(self._position - len(ENCAPSULATION)) % size
        if count:
            self.padding.append((self._position, count))
            self._bytes(count)


@dataclass(frozen=True)
class Template:
    """A message of constant layout that begins with a stamp.

    Attributes:
        message: one encoded message; its stamp (seconds, nanoseconds) is at byte 4.
        blocks: (offset [bytes], number of values) of each float64 sequence.
        padding: (offset, number) of bytes that mean nothing and may differ.
    """

    message: bytes
    blocks: tuple[tuple[int, int], ...]
    padding: tuple[tuple[int, int], ...] = ()

    @cached_property
    def width(self) -> int:
        """Number of float64 values of a message."""
        return sum(count for _, count in self.blocks)

    @cached_property
    def _columns(self) -> list[tuple[str, slice]]:
        """Field of each block in `_dtype`, and its columns among all values of a message."""
        columns: list[tuple[str, slice]] = []
        start = 0
        for number, (_, count) in enumerate(self.blocks):
            columns.append((f"block{number}", slice(start, start + count)))
            start += count
        return columns

    @cached_property
    def _dtype(self) -> np.dtype[Any]:
        """Record of a message: its stamp and the values of each block."""
        names = ["sec", "nanosec", *(name for name, _ in self._columns)]
        formats = ["<i4", "<u4", *(("<f8", (count,)) for _, count in self.blocks)]
        offsets = [STAMP_OFFSET, STAMP_OFFSET + 4, *(place for place, _ in self.blocks)]
        size = len(self.message)
        return np.dtype(
            {"names": names, "formats": formats, "offsets": offsets, "itemsize": size}
        )

    @cached_property
    def _constant(self) -> Mask:
        """Which bytes [size] all messages of this layout have in common."""
        mask = np.ones(len(self.message), bool)
        mask[2 : STAMP_OFFSET + STAMP.size] = False  # options of CDR, and the stamp
        for offset, count in self.blocks:
            mask[offset : offset + 8 * count] = False
        for offset, count in self.padding:
            mask[offset : offset + count] = False
        return mask

    def encode(self, stamp: NDArray[np.int64], values: Array) -> Bytes:
        """Messages of this layout.

        Args:
            stamp: host times of the messages [n], ns since the epoch.
            values: values of all float64 sequences, one behind the other [n, width].

        Returns:
            CDR with its encapsulation header [n, size].
        """
        out = np.empty((len(stamp), len(self.message)), np.uint8)
        out[:] = np.frombuffer(self.message, np.uint8)
        records = out.view(self._dtype)[:, 0]
        records["sec"], records["nanosec"] = np.divmod(stamp, 1_000_000_000)
        for name, columns in self._columns:
            records[name] = values[:, columns]
        return out

    def decode(self, messages: Bytes) -> tuple[NDArray[np.int64], Array]:
        """Stamps and values of messages of this layout.

        Args:
            messages: CDR with its encapsulation header [n, size].

        Returns:
            Stamps [n], ns since the epoch, and values of all float64 sequences [n,
            width].
        """
        records = np.ascontiguousarray(messages).view(self._dtype)[:, 0]
        stamp = records["sec"].astype(np.int64) * 1_000_000_000 + records["nanosec"]
        values = np.empty((len(messages), self.width))
        for name, columns in self._columns:
            values[:, columns] = records[name]
        return stamp, values

    def matches(self, messages: Bytes) -> Mask:
        """Mask [n] of messages [n, size] that have the constant bytes of this template."""
        constant = np.frombuffer(self.message, np.uint8)[self._constant]
        same: Mask = (messages[:, self._constant] == constant).all(axis=1)
        return same
