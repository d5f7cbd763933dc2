"""Gram matrices of a linear model per joint and block of time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ur_energy_model.identification.regression.filtered_motion import (
    MOVING_SPEED,
    FilteredMotion,
)
from ur_energy_model.identification.regression.narrow_filter import NarrowFilter
from ur_energy_model.telemetry.runs import time_blocks
from ur_energy_model.typing import Array

_BLOCK = 2.0
"""Duration of a block [s]."""


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
    if not len(time):
        return
    ones = np.ones((*rows.shape[:2], 1))
    whole = np.concatenate([rows, ones], axis=2) * used[:, :, None]
    for block in time_blocks(time, _BLOCK, time[0]):
        if used[block].any():
            yield gram_matrices_by_joint(whole[block]), float(time[block][-1] - time[block][0])
