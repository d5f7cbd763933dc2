"""TimeRanges: stretches of host time, such as those that a source of the history covers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.typing import Mask

SECOND = 1_000_000_000
"""ns."""
Times = NDArray[np.int64]
"""Host times, ns since 1970 UTC."""


@dataclass(frozen=True)
class TimeRanges:
    """Ascending stretches of time that do not overlap.

    Attributes:
        edges: begin and end of each [ranges, 2], ns since 1970 UTC.
    """

    edges: Times

    @classmethod
    def of(cls, pairs: Iterable[tuple[int, int]], pause: int = 0) -> TimeRanges:
        """From begins and ends [ns] in any order.

        Those that overlap, touch, or have at most a pause [ns] in between become one.
        """
        merged: list[list[int]] = []
        for start, end in sorted(pairs):
            if merged and start <= merged[-1][1] + pause:
                merged[-1][1] = max(merged[-1][1], end)
            else:
                merged.append([start, end])
        return cls(np.array(merged, dtype=np.int64).reshape(-1, 2))

    def __bool__(self) -> bool:
        return bool(len(self.edges))

    def joined(self, later: TimeRanges) -> TimeRanges:
        """With the ranges that follow; pauses of a second between two ranges count as covered."""
        return TimeRanges.of([*self.pairs(), *later.pairs()], SECOND)

    def without(self, others: TimeRanges) -> TimeRanges:
        """The parts that are outside other ranges."""
        out = []
        for start, end in self.pairs():
            begin = start
            for taken, free in others.within(start, end).pairs():
                if begin < taken:
                    out.append((begin, taken))
                begin = free
            if begin < end or start == end:
                out.append((begin, end))
        return TimeRanges(np.array(out, dtype=np.int64).reshape(-1, 2))

    def pairs(self) -> list[tuple[int, int]]:
        """Begin and end of each [ns]."""
        return [(int(start), int(end)) for start, end in self.edges]

    def holds(self, times: Times) -> Mask:
        """Times after the begin of a range and not after its end [n].

        The step to the first sample of a source is not part of its time.
        """
        if not len(self.edges):
            return np.zeros(len(times), dtype=bool)
        before = np.searchsorted(self.edges[:, 0], times, side="left") - 1
        return np.asarray((before >= 0) & (times <= self.edges[before, 1]))

    def within(self, start: int, end: int) -> TimeRanges:
        """The parts of the ranges between two times [ns]."""
        low = np.maximum(self.edges[:, 0], start)
        high = np.minimum(self.edges[:, 1], end)
        return TimeRanges(np.column_stack([low, high])[low < high])


NOTHING = TimeRanges.of(())
"""No time at all."""
