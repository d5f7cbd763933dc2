"""Fewer points for the eye, no peak lost: the extremes of every bucket of samples are kept."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.typing import Array


def decimate(x: Array, y: Array, buckets: int) -> tuple[Array, Array]:
    """The smallest and the largest sample of each bucket, in the order they occurred.

    Args:
        x: ascending abscissae [n].
        y: values [n]; NaN marks a hole, and a bucket that touches a hole begins with one.
        buckets: at most this many, of equal numbers of samples.

    Returns:
        x and y of at most 3 * buckets samples; the input itself where it is no longer than
        2 * buckets. The first and the last sample are kept.
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
    """As `decimate`, with two thirds of the buckets for a part of the x axis.

    Args:
        x: ascending abscissae [n].
        y: values [n].
        buckets: at most this many in all, and a few.
        focus: part of the x axis shown in detail, or None.
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
    """Index of the first sample of each bucket that equals the bucket's extreme."""
    extremes = ufunc.reduceat(y, edges[:-1])
    matches = np.flatnonzero(y == np.repeat(extremes, np.diff(edges)))
    buckets = np.searchsorted(edges, matches, side="right") - 1
    _, first = np.unique(buckets, return_index=True)
    return np.asarray(matches[first])
