"""Runs: consecutive samples that belong together, as slices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from ur_energy_model.typing import Indices


def run_starts(values: ArrayLike) -> Indices:
    """First index of each run of equal rows of values [n] or [n, k]; NaN equals nothing."""
    rows = np.asarray(values)
    if not len(rows):
        return np.zeros(0, dtype=np.int64)
    changed = np.diff(rows, axis=0) != 0
    if rows.ndim > 1:
        changed = changed.any(axis=1)
    return np.concatenate([[0], np.flatnonzero(changed) + 1])


def runs_of_equal(values: ArrayLike) -> Iterator[slice]:
    """Slices of equal rows of values [n] or [n, k], in order; together they cover all rows."""
    starts = run_starts(values).tolist()
    return slices_between(starts[1:], len(np.asarray(values)))


def slices_between(cuts: Iterable[int], count: int) -> Iterator[slice]:
    """The slices into which ascending cuts divide `count` samples; empty ones are left out."""
    for start, stop in pairwise([0, *cuts, count]):
        if stop > start:
            yield slice(start, stop)
