"""Recipe: the layout of RTDE data packages; Subscription: a recipe agreed with a controller."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.telemetry.fields import FIELDS, WIDTH, ValueKind
from ur_energy_model.telemetry.rtde.frames import HEADER, MAX_FRAME, FrameReader, PacketType
from ur_energy_model.typing import Array

NUMBER: dict[ValueKind, str] = {
    "BOOL": "u1", "UINT8": "u1", "UINT32": ">u4", "UINT64": ">u8", "INT32": ">i4",
    "DOUBLE": ">f8", "VECTOR3D": ">f8", "VECTOR6D": ">f8",
    "VECTOR6INT32": ">i4", "VECTOR6UINT32": ">u4",
}  # fmt: skip
"""numpy type of a number of each RTDE type; vectors repeat it."""
Records: TypeAlias = NDArray[np.void]
"""Structured array [n] of the values of data packages."""


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
            if kind not in NUMBER:
                raise ValueError(f"{name}: RTDE has no type {kind!r}")

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """Packed, big-endian record of the values; a repeated name gets its position appended."""
        keys: dict[str, None] = {}
        for i, name in enumerate(self.names):
            keys[f"{name}#{i}" if name in keys else name] = None
        entries = [
            (key, NUMBER[kind], (WIDTH[kind],) if WIDTH[kind] > 1 else ())
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
            values: number or array for each name; other entries are ignored.

        Raises:
            KeyError: a name has no value.
        """
        record = np.empty((), self.dtype)
        for key, name in zip(cast("Sequence[str]", self.dtype.names), self.names, strict=True):
            record[key] = values[name]
        return self.prefix + record.tobytes()

    def unpack_many(self, packages: bytes | bytearray | memoryview) -> Records:
        """Records of consecutive whole data packages; their headers are not checked.

        Returns:
            Structured array [n] of `dtype`, a view of `packages`.
        """
        return cast("Records", np.frombuffer(packages, self._framed)["values"])

    @cached_property
    def _framed(self) -> np.dtype[Any]:
        """A record with its prefix in front."""
        return np.dtype([("prefix", f"V{len(self.prefix)}"), ("values", self.dtype)])

    @cached_property
    def _blocks(self) -> tuple[np.dtype[Any], tuple[tuple[str, int, int, int], ...]]:
        """Adjacent fields of one number type as one, and (name, block, start, width) of each."""
        formats: list[tuple[str, int]] = []
        places = []
        for name, kind in zip(self.names, self.kinds, strict=True):
            number, width = NUMBER[kind], WIDTH[kind]
            if not formats or formats[-1][0] != number:
                formats.append((number, 0))
            start = formats[-1][1]
            places.append((name, len(formats) - 1, start, width))
            formats[-1] = (number, start + width)
        blocks = [(str(i), number, (width,)) for i, (number, width) in enumerate(formats)]
        return np.dtype(blocks), tuple(places)

    def columns(self, records: Records) -> dict[str, Array]:
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

    def join(self, parts: Sequence[Records]) -> Records:
        """Records [n] of several batches as one; np.concatenate would change their byte order."""
        if len(parts) == 1:
            return parts[0]
        return np.frombuffer(b"".join(part.tobytes() for part in parts), self.dtype)

    def take_records(self, reader: FrameReader) -> Records | None:
        """Take the data packages of this recipe that come next from a reader.

        Returns:
            Records [n >= 1], None if the next packet is another one or incomplete.
        """
        count = self.leading(reader.buffer)
        return self.unpack_many(reader.take(count * self.frame_size)) if count else None

    def leading(self, buffer: bytes | bytearray | memoryview) -> int:
        """Number of whole packages of this recipe at the beginning of a buffer."""
        size, start = self.frame_size, len(self.prefix)
        count = len(buffer) // size
        if count <= 1:
            return int(count == 1 and buffer[:start] == self.prefix)
        heads = np.frombuffer(buffer, np.uint8, count * size).reshape(count, size)[:, :start]
        same = (heads == np.frombuffer(self.prefix, np.uint8)).all(axis=1)
        return count if same.all() else int(np.argmin(same))


def in_type_order(names: Iterable[str]) -> tuple[str, ...]:
    """Fields of the table with those of one number type side by side, floating point first.

    Neighbours of one type are decoded together, see `Recipe.columns`.
    """
    place = {name: i for i, name in enumerate(FIELDS)}

    def order(name: str) -> tuple[bool, str, int]:
        number = NUMBER[FIELDS[name].kind]
        return number != ">f8", number, place[name]

    return tuple(sorted(names, key=order))


@dataclass(frozen=True)
class Subscription:
    """What a controller agreed to send.

    Attributes:
        recipe: layout of its data packages.
        missing: fields asked for that it does not have.
        rate: sample rate [Hz].
        version: of its software: major, minor, bugfix, build.
        protocol_version: 2, or 1 for old controllers.
    """

    recipe: Recipe
    missing: tuple[str, ...]
    rate: float
    version: tuple[int, int, int, int]
    protocol_version: int

    @property
    def version_text(self) -> str:
        """Software version such as "5.11.1.108318"."""
        return ".".join(map(str, self.version))


def controller_rate(version: Sequence[int]) -> float:
    """Rate of a controller's real-time loop [Hz], by its software version."""
    return 500.0 if version[0] >= 5 else 125.0


def effective_rate(base: float, wanted: float | None) -> float:
    """Rate [Hz] that a controller sends at when asked for another: it leaves out whole cycles."""
    if wanted is None:
        return base
    return base / max(1, int(base / wanted + 1e-9))
