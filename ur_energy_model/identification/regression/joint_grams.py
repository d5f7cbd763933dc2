"""Gram matrices per joint and block of time, from rows that pass the narrow filter first."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from ur_energy_model.identification.regression.signals import FilteredMotion, NarrowFilter
from ur_energy_model.typing import Array

SLOWEST = 0.02
"""Slower joints are left out where friction matters: stiction is not a law [rad/s]."""
_BLOCK = 2.0


def joint_grams(
    motion: FilteredMotion, rows: Array, narrow: NarrowFilter | None, *, moving_only: bool
) -> Iterator[tuple[Array, float]]:
    """Gram matrices [n, k + 1, k + 1] of [rows, 1] and their durations [s], block by block.

    Args:
        motion: what the rows belong to.
        rows: columns of a linear model and its measurement [samples, n, k].
        narrow: filter for all columns alike; None takes them as they are.
        moving_only: leave out samples at which the joint hardly moves.
    """
    used = np.ones(motion.q.shape, dtype=bool)
    if moving_only:
        used = np.abs(motion.qd) > SLOWEST
    time = motion.time
    if narrow is not None:
        inside = narrow.inside(motion)
        if moving_only:
            used = narrow.moving(motion, SLOWEST)
        rows, used, time = narrow(motion, rows)[inside], used[inside], time[inside]
    if not len(time):
        return
    ones = np.ones((*rows.shape[:2], 1))
    whole = np.concatenate([rows, ones], axis=2) * used[:, :, None]
    by_joint = np.ascontiguousarray(np.swapaxes(whole, 0, 1))
    number = np.floor((time - time[0]) / _BLOCK)
    edges = [0, *(np.flatnonzero(np.diff(number)) + 1), len(time)]
    for start, stop in pairwise(edges):
        part = by_joint[:, start:stop]
        if used[start:stop].any():
            yield np.swapaxes(part, 1, 2) @ part, float(time[stop - 1] - time[start])
