"""The layout of RTDE data packages, which a setup request negotiates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.telemetry.fields import WIDTH, ValueKind
from ur_energy_model.telemetry.rtde.frames import HEADER, MAX_FRAME, PacketType
from ur_energy_model.typing import Array

NUMBER: dict[ValueKind, str] = {
    "BOOL": "u1", "UINT8": "u1", "UINT32": ">u4", "UINT64": ">u8", "INT32": ">i4",
    "DOUBLE": ">f8", "VECTOR3D": ">f8", "VECTOR6D": ">f8",
    "VECTOR6INT32": ">i4", "VECTOR6UINT32": ">u4",
}  # fmt: skip
"""Number in numpy's words of each RTDE type; vectors repeat it."""


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
            number, width = NUMBER[kind], WIDTH[kind]
            if not formats or formats[-1][0] != number:
                formats.append((number, 0))
            start = formats[-1][1]
            places.append((name, len(formats) - 1, start, width))
            formats[-1] = (number, start + width)
        blocks = [(str(i), number, (width,)) for i, (number, width) in enumerate(formats)]
        return np.dtype(blocks), tuple(places)

    def columns(self, records: NDArray[np.void]) -> dict[str, Array]:
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
        """Records [n] of several batches as one; numpy's own way would change their byte order."""
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
