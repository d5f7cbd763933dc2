# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""SeenSamples: the one place that recognises samples that a recording has more than once."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.typing import Array, Mask

_KEPT_TOGETHER = 4096  # samples whose times are compressed together
_MIX = np.array([[0x1E3779B97F4A7C15], [0x42B2AE3D27D4EB4F]])
"""Odd factors that make one key of two times."""


class SeenSamples:
    """Separates repeated samples from new samples.

    A repeated sample has the controller time and the host time of an earlier one; a
    controller that started again has new host times. The times seen are kept compressed,
    some bytes a sample, and are compared only where host times do not all advance.

    Attributes:
        in_order: whether the host times of all samples so far advanced.
    """

    def __init__(self) -> None:
        self.in_order = True
        self._newest = np.iinfo(np.int64).min  # newest host time so far [ns]
        # The two times of the samples so far [2, n]: of the last samples, and compressed,
        # with the lowest and highest host time of some thousand samples each.
        self._waiting: list[NDArray[np.int64]] = []
        self._kept: list[tuple[int, int, bytes]] = []

    def are_new(self, time: Array, stamp: NDArray[np.int64]) -> Mask:
        """Which samples are new; all of them count as seen from now on.

        Args:
            time: controller times [n >= 1], s.
            stamp: host times [n], ns. A sample without host time (not positive) is new.

        Returns:
            Mask of the new samples [n].
        """
        bits = np.ascontiguousarray(time, float).view(np.int64)
        rows = np.stack([bits, stamp])
        new = np.ones(len(stamp), bool)
        low = int(stamp.min())
        high = int(stamp.max())
        if stamp[0] <= self._newest or (np.diff(stamp) <= 0).any():
            self.in_order = False
            keys = _keys(rows)
            _, first = np.unique(keys, return_index=True)
            new[:] = False
            new[first] = True
            for known in self._known(low, high):
                new &= ~np.isin(keys, _keys(known))
            new |= stamp <= 0
        self._newest = max(self._newest, high)
        self._waiting.append(rows if new.all() else rows[:, new])
        if sum(each.shape[1] for each in self._waiting) >= _KEPT_TOGETHER:
            rows = np.concatenate(self._waiting, axis=1)
            self._waiting = []
            self._kept.append((int(rows[1].min()), int(rows[1].max()), _packed(rows)))
        return new

    def _known(self, low: int, high: int) -> Iterator[NDArray[np.int64]]:
        """Times [2, n] of groups of samples that may have host times in this range [ns]."""
        for rows in self._waiting:
            if rows.size and rows[1].min() <= high and rows[1].max() >= low:
                yield rows
        for lowest, highest, packed in self._kept:
            if lowest <= high and highest >= low:
                yield _unpacked(packed)


def _keys(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """One number [n] for the two times of each sample [2, n]."""
    return np.asarray((rows * _MIX).sum(axis=0))


def _packed(rows: NDArray[np.int64]) -> bytes:
    """Times of samples [2, n], compressed: most steps are equal, byte by byte."""
    steps = np.diff(rows, axis=1, prepend=0).view(np.uint8)
    return zlib.compress(steps.reshape(-1, 8).T.tobytes(), 1)


def _unpacked(packed: bytes) -> NDArray[np.int64]:
    """The times [2, n] that `_packed` compressed."""
    by_byte = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(8, -1)
    steps = by_byte.T.copy().view(np.int64).reshape(2, -1)
    return np.asarray(np.cumsum(steps, axis=1))
