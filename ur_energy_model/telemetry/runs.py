"""Consecutive stretches of an array: runs of equal values, blocks of time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from ur_energy_model.typing import Array, Indices


def run_starts(values: Array) -> Indices:
    """Indices at which runs of equal values [samples] or equal rows [samples, k] start."""
    if not len(values):
        return np.zeros(0, dtype=np.intp)
    changes = (values[1:] != values[:-1]).reshape(len(values) - 1, -1).any(axis=1)
    return np.concatenate([[0], np.flatnonzero(changes) + 1])


def equal_runs(values: Array) -> Iterator[slice]:
    """Slices of consecutive equal values [samples] or equal rows [samples, k], in order."""
    for start, stop in pairwise([*run_starts(values).tolist(), len(values)]):
        yield slice(start, stop)


def time_blocks(time: Array, duration: float, origin: float = 0.0) -> Iterator[slice]:
    """Slices of the samples that fall into the same block of time.

    Args:
        time: ascending [samples], s.
        duration: of a block [s].
        origin: time at which a block starts [s].
    """
    return equal_runs(np.floor((time - origin) / duration))
