"""Gram matrices accumulated in a bounded number of blocks of time.

A Gram matrix of [regressor, measurement] holds all that linear least squares needs of any number
of samples. Kept per block of time, the matrices also give blocked cross-validation and standard
deviations that allow for correlated residuals (blocks count as independent, not samples). When
there are too many blocks, neighbours are merged, so memory stays constant.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ur_energy_model.identification.regression.filtered_motion import (
    MOVING_SPEED,
    FilteredMotion,
)
from ur_energy_model.identification.regression.narrow_filter import NarrowFilter
from ur_energy_model.telemetry.runs import time_blocks
from ur_energy_model.typing import Array, Mask

MAX_BLOCKS = 64
SMALLEST_BLOCK = 1.0
"""Shortest block [s]."""

_BLOCK = 2.0
"""Duration of a block [s]."""


class BlockedGram:
    """Gram matrices [..., c, c] per block of time; the last column is the measurement.

    Args:
        most: number of blocks above which neighbours are merged.
    """

    def __init__(self, most: int = MAX_BLOCKS) -> None:
        self.most = most
        self._blocks: list[Array] = []
        self._length = SMALLEST_BLOCK
        self._open = 0.0

    def accumulate(self, gram: Array, duration: float) -> None:
        """Add the Gram matrix of `duration` seconds that follow those added before."""
        if self._blocks and self._open < self._length:
            self._blocks[-1] = self._blocks[-1] + gram
        else:
            self._open = 0.0
            self._blocks.append(np.array(gram, dtype=float))
        self._open += duration
        if len(self._blocks) > self.most:
            self._halve()

    def merge(self, other: BlockedGram) -> None:
        """Append the blocks of another accumulator, such as that of another recording."""
        self._blocks.extend(block.copy() for block in other._blocks)
        self._length = max(self._length, other._length)
        self._open = np.inf
        while len(self._blocks) > self.most:
            self._halve()

    def transformed(self, matrix: Array) -> BlockedGram:
        """Blocks of other columns: these columns times a matrix [..., c, d]."""
        out = BlockedGram(self.most)
        transposed = np.swapaxes(matrix, -1, -2)
        out._blocks = [np.asarray(transposed @ block @ matrix) for block in self._blocks]
        out._length, out._open = self._length, self._open
        return out

    def saved(self) -> dict[str, Any]:
        """Everything needed to continue, see `restored`."""
        return {
            "most": self.most,
            "length": self._length,
            "open": self._open,
            "blocks": self.blocks,
        }

    @classmethod
    def restored(cls, saved: Mapping[str, Any]) -> BlockedGram:
        """The matrices that `saved` describes."""
        out = cls(int(saved["most"]))
        out._blocks = list(np.array(saved["blocks"], dtype=float))
        out._length, out._open = float(saved["length"]), float(saved["open"])
        return out

    @property
    def blocks(self) -> Array:
        """All blocks [blocks, ..., c, c]."""
        return np.array(self._blocks)

    def __len__(self) -> int:
        return len(self._blocks)

    def _halve(self) -> None:
        pairs = [self._blocks[i] + self._blocks[i + 1] for i in range(0, len(self._blocks) - 1, 2)]
        if len(self._blocks) % 2:
            pairs.append(self._blocks[-1])
        self._blocks = pairs
        self._length *= 2


def gram_matrices_by_joint(rows: Array) -> Array:
    """Gram matrices [n, k, k] of the rows of each joint [samples, n, k]."""
    by_joint = np.ascontiguousarray(np.swapaxes(rows, 0, 1))
    return np.asarray(np.swapaxes(by_joint, 1, 2) @ by_joint)


def joint_gram_matrices(
    motion: FilteredMotion, rows: Array, narrow: NarrowFilter | None, *, moving_only: bool
) -> Iterator[tuple[Array, float]]:
    """Gram matrices [n, k + 1, k + 1] of [rows, 1] and their durations [s], block by block.

    Args:
        motion: the rows belong to its samples.
        rows: columns of a linear model and its measurement [samples, n, k].
        narrow: filter for all columns alike; None leaves them unfiltered.
        moving_only: leave out samples below MOVING_SPEED, where friction takes any value.
    """
    used = np.ones(motion.q.shape, dtype=bool)
    if moving_only:
        used = np.abs(motion.qd) > MOVING_SPEED
    time = motion.time
    if narrow is not None:
        inside = narrow.inside(motion)
        if moving_only:
            used = narrow.moving(motion, MOVING_SPEED)
        rows, used, time = narrow(motion, rows)[inside], used[inside], time[inside]
    if len(time):
        ones = np.ones((*rows.shape[:2], 1))
        yield from masked_gram_matrices(time, np.concatenate([rows, ones], axis=2), used)


def masked_gram_matrices(time: Array, rows: Array, used: Mask) -> Iterator[tuple[Array, float]]:
    """Gram matrices [n, k, k] of the samples used and their durations [s], block by block.

    Args:
        time: [samples], one or more, s.
        rows: [samples, n, k].
        used: samples of each joint that count [samples, n].
    """
    whole = rows * used[:, :, None]
    for block in time_blocks(time, _BLOCK, time[0]):
        if used[block].any():
            yield gram_matrices_by_joint(whole[block]), float(time[block][-1] - time[block][0])
