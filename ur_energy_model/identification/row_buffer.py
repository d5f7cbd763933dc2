"""Rows of numbers kept on disk between two passes, so that memory stays constant."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator

import numpy as np

from ur_energy_model.typing import Array

IN_MEMORY = 1_000_000
"""Bytes kept in memory before a temporary file is used."""


class RowBuffer:
    """Blocks of rows [n, width], written once and read back in order any number of times.

    The temporary file has no name and is deleted with the object.
    """

    def __init__(self, width: int) -> None:
        self.width = width
        self.rows = 0
        self._lengths: list[int] = []
        self._file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115

    def append(self, block: Array) -> None:
        """Append a block [n, width].

        Raises:
            ValueError: the block has another width.
        """
        if block.ndim != 2 or block.shape[1] != self.width:
            raise ValueError(f"block has shape {block.shape}, expected [n, {self.width}]")
        self._file.seek(0, 2)
        self._file.write(np.ascontiguousarray(block, dtype=float).tobytes())
        self._lengths.append(len(block))
        self.rows += len(block)

    def __iter__(self) -> Iterator[Array]:
        offset = 0
        for length in self._lengths:
            size = length * self.width * 8
            self._file.seek(offset)
            yield np.frombuffer(self._file.read(size)).reshape(length, self.width)
            offset += size

    def close(self) -> None:
        """Release the memory or file; the buffer is empty afterwards."""
        self._file.close()
        self._lengths, self.rows = [], 0
