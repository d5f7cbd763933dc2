"""Decimation of curves that keeps the extremes of every bucket of samples."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.typing import Array


def decimate(x: Array, y: Array, buckets: int) -> tuple[Array, Array]:
    """The smallest and the largest sample of each bucket, in order of time.

    Args:
        x: ascending abscissae [n].
        y: values [n]; NaN marks a hole. The first hole of each bucket is kept.
        buckets: their number; all have equal numbers of samples.

    Returns:
        x and y of at most 3 * buckets samples, the first and the last among them; the input itself
        if it has no more than 2 * buckets samples.
    """
    n = len(x)
    if n <= 2 * buckets or n == 0:
        return x, y
    edges = np.linspace(0, n, buckets + 1).astype(int)
    hole = np.isnan(y)
    low = _extreme(np.where(hole, np.inf, y), edges, np.minimum)
    high = _extreme(np.where(hole, -np.inf, y), edges, np.maximum)
    first_hole = np.full(buckets, n)
    holes = np.flatnonzero(hole)
    bucket_of_hole = np.searchsorted(edges, holes, side="right") - 1
    first_hole[bucket_of_hole[::-1]] = holes[::-1]
    keep = np.unique(np.concatenate([low, high, first_hole[first_hole < n], [0, n - 1]]))
    return x[keep], y[keep]


def decimate_with_focus(
    x: Array, y: Array, buckets: int, focus: tuple[float, float] | None
) -> tuple[Array, Array]:
    """Like `decimate`, with two thirds of the buckets for a part of the x axis.

    Args:
        x: ascending abscissae [n].
        y: values [n].
        buckets: approximate number of all buckets.
        focus: part of the x axis to show in detail, or None.
    """
    if focus is None or len(x) <= 2 * buckets:
        return decimate(x, y, buckets)
    start, stop = np.searchsorted(x, focus)
    outside = max(1, len(x) - (stop - start))
    pieces = []
    for part, detail in ((slice(0, start), 0), (slice(start, stop), 1), (slice(stop, None), 0)):
        share = 2 / 3 if detail else len(x[part]) / outside / 3
        pieces.append(decimate(x[part], y[part], max(1, round(buckets * share))))
    return np.concatenate([p[0] for p in pieces]), np.concatenate([p[1] for p in pieces])


def _extreme(y: Array, edges: NDArray[np.int_], ufunc: np.ufunc) -> NDArray[np.int_]:
    """Indices of the first sample of each bucket that equals the bucket's extreme."""
    extremes = ufunc.reduceat(y, edges[:-1])
    matches = np.flatnonzero(y == np.repeat(extremes, np.diff(edges)))
    buckets = np.searchsorted(edges, matches, side="right") - 1
    _, first = np.unique(buckets, return_index=True)
    return np.asarray(matches[first])
