"""Gaps of a file that was rewritten from what is intact in it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ur_energy_model.telemetry.samples import Gap, find_gaps, typical_step
from ur_energy_model.typing import Array

DAMAGED = "damaged file"
_IN_MEMORY = 32 << 20
_BLOCK = 1_000_000
"""Samples that are looked at together."""


class SampleTimes:
    """Controller timestamps of a recording [s]; a long one is kept in a temporary file."""

    def __init__(self) -> None:
        self._count = 0
        self._file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115

    def __len__(self) -> int:
        return self._count

    def append(self, times: Array) -> None:
        """Append times [n]."""
        self._file.write(np.ascontiguousarray(times, dtype=float).tobytes())
        self._count += len(times)

    def blocks(self) -> Iterator[tuple[int, Array]]:
        """Index of the first sample of each block, and its times; a block overlaps the next one."""
        for first in range(0, max(self._count - 1, 1), _BLOCK):
            self._file.seek(8 * first)
            yield first, np.frombuffer(self._file.read(8 * (_BLOCK + 1)))
        self._file.seek(0, 2)

    def close(self) -> None:
        """Release memory or file."""
        self._file.close()


def place_gaps(times: SampleTimes, old: Sequence[Gap], rate: float | None) -> tuple[Gap, ...]:
    """Gaps among the samples that are left: the old ones at their new indexes, and new ones.

    Args:
        times: of the samples that are left.
        old: gaps of the recording.
        rate: of the recording [Hz], None if it is unknown.
    """
    known = {(gap.start, gap.end): gap for gap in old}
    starts = np.array(sorted({gap.start for gap in old}))
    period = None if rate is None else 1.0 / rate
    typical: float | None = None
    out: list[Gap] = []
    for first, time in times.blocks():
        if typical is None:
            typical = typical_step(np.diff(time))
        found = {gap.index: gap for gap in find_gaps(time, period, typical=typical)}
        indexes = {*found, *(np.flatnonzero(np.isin(time[:-1], starts)) + 1).tolist()}
        for index in sorted(indexes):
            gap = known.get((float(time[index - 1]), float(time[index])))
            if gap is None and index in found:
                gap = replace(found[index], cause=DAMAGED)
            if gap is not None:
                out.append(replace(gap, index=first + index))
    at_end = [gap for gap in old if len(times) and gap.start == time[-1]]
    return (*out, *(replace(gap, index=len(times)) for gap in at_end))
