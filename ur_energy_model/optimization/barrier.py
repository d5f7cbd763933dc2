"""Minimizes a sum of terms of neighbouring unknowns under linear limits, by an interior point.

The Hessian of a sum over intervals, each of which depends on the unknowns at its two ends, is
tridiagonal, and so is that of the logarithmic barrier of limits on single intervals (Boyd and
Vandenberghe, Convex Optimization, 2004, ch. 11). A Newton step costs as much as an evaluation.
Terms need not be convex: the Hessian of each is made positive semidefinite, which keeps every step
a descent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, solveh_banded

from ur_energy_model.typing import Array

Terms = Callable[[Array, Array], Array]
"""Terms of the intervals [..., N] from the unknowns at their starts and ends [..., N]."""

_DIFFERENCE = 1e-3
"""Relative step of the numerical derivatives."""
_FIRST, _NEAR, _LAST, _FACTOR = 1e-3, 1e-5, 1e-7, 0.1
"""Weights of the barrier relative to the size of the sum: first, first from a start near the
minimum, last; and the ratio of consecutive ones."""
_MOST_STEPS = 60
_ENOUGH_BEFORE, _ENOUGH = 1e-5, 1e-8
"""Relative decrease at which a barrier problem counts as solved: before the last, and the last."""
_TO_LIMIT = 0.95
"""Part of the way to the nearest limit that a step may take."""
_LENGTHS = np.array([1.0, 0.6, 0.3, 0.1, 0.02])
"""Lengths of a step that are tried at once; together they cost little more than one."""


@dataclass(frozen=True)
class IntervalRows:
    """Limits of intervals: start b_k + end b_(k+1) <= 1, and bounds of the unknowns.

    Attributes:
        start, end: [rows, N].
        low, high: of the inner unknowns [N - 1].
    """

    start: Array
    end: Array
    low: Array
    high: Array

    def slack(self, b: Array) -> Array:
        """What is left of the limits of the intervals at unknowns [N + 1]: [rows, N]."""
        return np.asarray(1.0 - self.start * b[:-1] - self.end * b[1:])

    def inside(self, b: Array) -> bool:
        """Whether unknowns [N + 1] keep all limits strictly."""
        inner = b[1:-1]
        return bool(
            (inner > self.low).all() and (inner < self.high).all() and (self.slack(b) > 0.0).all()
        )

    def reach(self, b: Array, step: Array) -> float:
        """Largest multiple of a step [N + 1] that keeps the limits; infinite without any."""
        inner, change = b[1:-1], step[1:-1]
        used = self.start * step[:-1] + self.end * step[1:]
        shares = [used / self.slack(b), change / (self.high - inner), -change / (inner - self.low)]
        most = max(float(share.max()) for share in shares)
        return 1.0 / most if most > 0.0 else np.inf


def minimize(terms: Terms, rows: IntervalRows, start: Array, *, near: bool = False) -> Array:
    """The unknowns [N + 1] that minimize the sum of the terms; the first and last stay.

    Args:
        terms: twice differentiable but for kinks.
        rows: limits.
        start: strictly within the limits [N + 1].
        near: whether the start is the minimum of a similar sum.
    """
    b = start.copy()
    size = abs(float(terms(b[:-1], b[1:]).sum())) + 1e-9
    weight = _NEAR if near else _FIRST
    while weight > 0.5 * _LAST:
        last = weight < 2 * _LAST
        b = _newton(terms, rows, b, weight * size, size * (_ENOUGH if last else _ENOUGH_BEFORE))
        weight *= _FACTOR
    return b


def _newton(terms: Terms, rows: IntervalRows, b: Array, weight: float, enough: float) -> Array:
    value = float(_value(terms, rows, b, weight))
    for _ in range(_MOST_STEPS):
        step = np.zeros_like(b)
        step[1:-1] = _step(*_derivatives(terms, rows, b, weight))
        longest = min(1.0, _TO_LIMIT * rows.reach(b, step))
        for lengths in (longest * _LENGTHS, longest * _LENGTHS[-1] ** 2 * _LENGTHS):
            trials = b + lengths[:, None] * step
            values = _value(terms, rows, trials, weight)
            best = int(np.argmin(values))
            if values[best] < value:
                break
        else:
            return b
        gain, b, value = value - float(values[best]), trials[best], float(values[best])
        if gain <= enough:
            return b
    return b


def _step(gradient: Array, diagonal: Array, beside: Array) -> Array:
    """Newton step [N - 1] of a tridiagonal system."""
    bands = np.zeros((2, len(diagonal)))
    bands[1] = diagonal
    bands[0, 1:] = beside
    try:
        return -np.asarray(solveh_banded(bands, gradient))
    except LinAlgError:  # semidefinite to rounding: the gradient, scaled, descends too
        return -gradient / np.maximum(diagonal, 1e-12)


def _value(terms: Terms, rows: IntervalRows, b: Array, weight: float) -> Array:
    """Sum with the barrier [...] at unknowns [..., N + 1]."""
    inner = b[..., 1:-1]
    before, after = b[..., :-1], b[..., 1:]
    slack = 1.0 - rows.start * before[..., None, :] - rows.end * after[..., None, :]
    barrier = (
        np.log(slack).sum(axis=(-2, -1))
        + np.log(inner - rows.low).sum(axis=-1)
        + np.log((rows.high - inner) / rows.high).sum(axis=-1)
    )
    return np.asarray(terms(before, after).sum(axis=-1) - weight * barrier)


def _derivatives(
    terms: Terms, rows: IntervalRows, b: Array, weight: float
) -> tuple[Array, Array, Array]:
    """Gradient [N - 1], and diagonal [N - 1] and side diagonal [N - 2] of the Hessian."""
    inner = b[1:-1]
    by_start, by_end, ss, se, ee = _of_terms(terms, b)
    one = weight / rows.slack(b)
    by_start += (one * rows.start).sum(axis=0)
    by_end += (one * rows.end).sum(axis=0)
    two = one**2 / weight
    ss += (two * rows.start**2).sum(axis=0)
    ee += (two * rows.end**2).sum(axis=0)
    se += (two * rows.start * rows.end).sum(axis=0)
    below, above = weight / (inner - rows.low), weight / (rows.high - inner)
    gradient = by_end[:-1] + by_start[1:] - below + above
    diagonal = ee[:-1] + ss[1:] + (below**2 + above**2) / weight
    return gradient, diagonal, se[1:-1]


def _of_terms(terms: Terms, b: Array) -> tuple[Array, Array, Array, Array, Array]:
    """Derivatives of each term by its start and end, and its Hessian made positive semidefinite."""
    start, end = b[:-1], b[1:]
    h, k = _DIFFERENCE * start, _DIFFERENCE * end
    shifts = np.array([(0, 0), (1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, -1)], dtype=float)
    values = terms(start + shifts[:, :1] * h, end + shifts[:, 1:] * k)
    with np.errstate(divide="ignore", invalid="ignore"):
        by_start = (values[1] - values[2]) / (2 * h)
        by_end = (values[3] - values[4]) / (2 * k)
        ss = (values[1] + values[2] - 2 * values[0]) / h**2
        ee = (values[3] + values[4] - 2 * values[0]) / k**2
        se = (values[5] + values[6] - values[1:5].sum(axis=0) + 2 * values[0]) / (2 * h * k)
    fixed = [by_start, by_end, ss, ee, se]
    by_start, by_end, ss, ee, se = (np.where(np.isfinite(part), part, 0.0) for part in fixed)
    mean, half = 0.5 * (ss + ee), 0.5 * (ss - ee)
    radius = np.hypot(half, se)
    low, high = np.maximum(mean - radius, 0.0), np.maximum(mean + radius, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        cos, sin = half / radius, se / radius
    cos, sin = np.where(radius > 0, cos, 1.0), np.where(radius > 0, sin, 0.0)
    mean, radius = 0.5 * (low + high), 0.5 * (high - low)
    return by_start, by_end, mean + radius * cos, radius * sin, mean - radius * cos
