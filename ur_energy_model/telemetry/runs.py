"""Consecutive stretches of an array: runs of equal values, blocks of time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from ur_energy_model.typing import Array, Indices


def changes(values: Array, before: float) -> Array:
    """Change of values [n] since the one before each, the first since `before`: [n].

    The same as np.diff with `prepend`, in a fifth of its time for a few values.
    """
    out = np.empty(len(values), dtype=np.result_type(values, float))
    if len(values):
        out[0] = values[0] - before
        np.subtract(values[1:], values[:-1], out=out[1:])
    return out


def run_starts(values: ArrayLike) -> Indices:
    """Indices at which runs of equal values [n] or equal rows [n, k] start; NaN equals nothing."""
    rows = np.asarray(values)
    if not len(rows):
        return np.zeros(0, dtype=np.intp)
    changes = rows[1:] != rows[:-1]
    if rows.ndim > 1:
        changes = changes.any(axis=1)
    return np.concatenate([[0], np.flatnonzero(changes) + 1])


def equal_runs(values: ArrayLike) -> Iterator[slice]:
    """Slices of equal values [n] or equal rows [n, k], in order; together they cover all."""
    return slices_between(run_starts(values)[1:].tolist(), len(np.asarray(values)))


def slices_between(cuts: Iterable[int], count: int) -> Iterator[slice]:
    """The slices into which ascending cuts divide `count` samples; empty ones are left out."""
    for start, stop in pairwise([0, *cuts, count]):
        if stop > start:
            yield slice(start, stop)


def time_blocks(time: Array, duration: float, origin: float = 0.0) -> Iterator[slice]:
    """Slices of the samples that fall into the same block of time.

    Args:
        time: ascending [n], s.
        duration: of a block [s].
        origin: time at which a block starts [s].
    """
    return equal_runs(np.floor((time - origin) / duration))
