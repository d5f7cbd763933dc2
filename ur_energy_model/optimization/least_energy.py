"""Time law of one move: the least energy along its path.

Direct transcription on the path (Verscheure et al., Time-optimal path tracking for robots, IEEE
TAC 2009): unknown are the squared path speeds at the ends of short intervals. The energy of an
interval is the power that the package's own model gives for it, times its duration, so no cost is
modelled a second time. Because an interval depends on two neighbouring unknowns only, Newton's
method with a tridiagonal Hessian solves a move in some ten milliseconds; general solvers (SLSQP,
IPOPT) take a hundred times as long to reach the same minimum. What is minimized is energy minus
`price` times duration, the price being the marginal energy of time: along a cycle all moves have
the same one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, solveh_banded

from ur_energy_model.errors import InputError, optional_import
from ur_energy_model.optimization.path import LimitRows, PathDynamics, PathLimits, TimeLaw
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
        return 1.0 / most if most > 0.0 else float("inf")


def minimize(terms: Terms, rows: IntervalRows, start: Array, *, near: bool = False) -> Array:
    """The unknowns [N + 1] that minimize the sum of the terms; the first and last stay.

    An interior point method (Boyd and Vandenberghe, Convex Optimization, 2004, ch. 11): the
    logarithmic barrier of the limits gets weaker from one Newton search to the next, each of which
    starts where the last one ended.

    Args:
        terms: twice differentiable but for kinks.
        rows: limits.
        start: strictly within the limits [N + 1].
        near: whether the start is the minimum of a similar sum.
    """
    b = start
    size = abs(float(terms(b[:-1], b[1:]).sum())) + 1e-9
    weight = _NEAR if near else _FIRST
    while weight > 0.5 * _LAST:
        enough = _ENOUGH if weight < 2 * _LAST else _ENOUGH_BEFORE
        b = _newton(terms, rows, b, weight * size, size * enough)
        weight *= _FACTOR
    return b


def _newton(terms: Terms, rows: IntervalRows, b: Array, weight: float, enough: float) -> Array:
    value = float(_value(terms, rows, b, weight))
    for _ in range(_MOST_STEPS):
        local = _Local.at(terms, rows, b, weight)
        # Terms need not be convex, so both steps are made descents, and neither does for all moves:
        # near rest b changes by decades, which the slowness step follows; at the limits the
        # straight one is exact. Trials together cost little more than a single one.
        for lengths in (_LENGTHS, _LENGTHS[-1] ** 2 * _LENGTHS):
            trials = np.concatenate(
                [_straight(local, rows, b, lengths), _slowness(local, b, lengths)]
            )
            values = _value(terms, rows, trials, weight)
            best = int(np.argmin(values))
            if values[best] < value:
                break
        else:
            return b
        gain, value, b = value - float(values[best]), float(values[best]), trials[best]
        if gain <= enough:
            break
    return b


def _straight(local: _Local, rows: IntervalRows, b: Array, lengths: Array) -> Array:
    """Trials [lengths, N + 1] along Newton's step of the unknowns."""
    step = np.zeros_like(b)
    ss, se, ee = _semidefinite(local.ss, local.se, local.ee)
    ss, se, ee = ss + local.barrier_ss, se + local.barrier_se, ee + local.barrier_ee
    step[1:-1] = _step(local.gradient, ee[:-1] + ss[1:] + local.bounds_second, se[1:-1])
    return b + min(1.0, _TO_LIMIT * rows.reach(b, step)) * lengths[:, None] * step


def _slowness(local: _Local, b: Array, lengths: Array) -> Array:
    """Trials [lengths, N + 1] along Newton's step of the slowness y = 1 / sqrt(b).

    A term that grows with the time spent in its interval is linear in y, but concave in b.
    """
    first, second = -2 * b**1.5, 6 * b**2
    ss = first[:-1] ** 2 * (local.ss + local.barrier_ss) + second[:-1] * local.by_start
    ee = first[1:] ** 2 * (local.ee + local.barrier_ee) + second[1:] * local.by_end
    se = first[:-1] * first[1:] * (local.se + local.barrier_se)
    ss, se, ee = _semidefinite(ss, se, ee)
    inner = slice(1, -1)
    bounds = first[inner] ** 2 * local.bounds_second + second[inner] * local.bounds_first
    y = 1.0 / np.sqrt(b[inner])
    step = _step(
        first[inner] * local.gradient,
        ee[:-1] + ss[1:] + np.maximum(bounds, 0.0) + 1e-12 * np.abs(bounds),
        se[inner],
    )
    most = float((-step / y).max())
    longest = min(1.0, _TO_LIMIT / most) if most > 0.0 else 1.0
    out = np.tile(b, (len(lengths), 1))
    out[:, inner] = (y + longest * lengths[:, None] * step) ** -2.0
    return out


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
    """Sum with the barrier [trials] at unknowns [..., N + 1]; infinite beyond the limits."""
    inner = b[..., 1:-1]
    before, after = b[..., :-1], b[..., 1:]
    slack = 1.0 - rows.start * before[..., None, :] - rows.end * after[..., None, :]
    left = [slack.reshape(*b.shape[:-1], -1), inner - rows.low, (rows.high - inner) / rows.high]
    outside = np.any([(part <= 0.0).any(axis=-1) for part in left], axis=0)
    barrier = sum(np.log(np.maximum(part, 1e-300)).sum(axis=-1) for part in left)
    value = terms(before, after).sum(axis=-1) - weight * barrier
    return np.asarray(np.where(outside, np.inf, value))


@dataclass(frozen=True)
class _Local:
    """Derivatives of the intervals by their start and end, and of the bounds.

    Attributes:
        by_start, by_end: of terms and barrier [N].
        ss, se, ee: second derivatives of the terms [N].
        barrier_ss, barrier_se, barrier_ee: of the limits' barrier [N].
        bounds_first, bounds_second: of the bounds' barrier [N - 1].
    """

    by_start: Array
    by_end: Array
    ss: Array
    se: Array
    ee: Array
    barrier_ss: Array
    barrier_se: Array
    barrier_ee: Array
    bounds_first: Array
    bounds_second: Array

    @property
    def gradient(self) -> Array:
        """Of the sum with the barrier, by the inner unknowns [N - 1]."""
        return np.asarray(self.by_end[:-1] + self.by_start[1:] + self.bounds_first)

    @classmethod
    def at(cls, terms: Terms, rows: IntervalRows, b: Array, weight: float) -> _Local:
        """At unknowns [N + 1]; those of the terms numerically."""
        start, end, inner = b[:-1], b[1:], b[1:-1]
        h, k = _DIFFERENCE * start, _DIFFERENCE * end
        shifts = np.array([(0, 0), (1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, -1)], dtype=float)
        values = terms(start + shifts[:, :1] * h, end + shifts[:, 1:] * k)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = (
                (values[1] - values[2]) / (2 * h),
                (values[3] - values[4]) / (2 * k),
                (values[1] + values[2] - 2 * values[0]) / h**2,
                (values[5] + values[6] - values[1:5].sum(axis=0) + 2 * values[0]) / (2 * h * k),
                (values[3] + values[4] - 2 * values[0]) / k**2,
            )
        by_start, by_end, ss, se, ee = (np.where(np.isfinite(x), x, 0.0) for x in found)
        one = weight / rows.slack(b)
        two = one**2 / weight
        below, above = weight / (inner - rows.low), weight / (rows.high - inner)
        return cls(
            by_start + (one * rows.start).sum(axis=0),
            by_end + (one * rows.end).sum(axis=0),
            ss,
            se,
            ee,
            (two * rows.start**2).sum(axis=0),
            (two * rows.start * rows.end).sum(axis=0),
            (two * rows.end**2).sum(axis=0),
            above - below,
            (below**2 + above**2) / weight,
        )


def _semidefinite(ss: Array, se: Array, ee: Array) -> tuple[Array, Array, Array]:
    """Symmetric 2 x 2 matrices [N] without their negative eigenvalues."""
    mean, half = 0.5 * (ss + ee), 0.5 * (ss - ee)
    radius = np.hypot(half, se)
    low, high = np.maximum(mean - radius, 0.0), np.maximum(mean + radius, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        cos, sin = half / radius, se / radius
    cos, sin = np.where(radius > 0, cos, 1.0), np.where(radius > 0, sin, 0.0)
    mean, radius = 0.5 * (low + high), 0.5 * (high - low)
    return mean + radius * cos, radius * sin, mean - radius * cos


SLOWEST = 0.02
"""Lowest speed of the leading joint in the middle of a move [rad/s]: below, friction is not that of
steady motion."""
FLOOR_WIDTH = 1.0
"""Width over which the supply's lowest power is rounded while searching [W]."""


class EnergyLaws:
    """Finds the time laws of least energy of one move.

    Args:
        arm: on the path of the move.
        limits: to keep.
    """

    def __init__(self, arm: PathDynamics, limits: PathLimits) -> None:
        self.arm, self.limits = arm, limits
        found = arm.limit_rows(limits)
        each = found.along / (2 * arm.steps)
        shape = 4 * arm.s * (1 - arm.s)
        high = found.fastest[1:-1]
        lowest = (SLOWEST / arm.path.length) ** 2 * shape[1:-1] ** 2
        self.rows = IntervalRows(
            0.5 * found.across - each,
            0.5 * found.across + each,
            np.minimum(lowest, 1e-3 * high),
            high,
        )
        self._start = self._feasible(shape)

    @property
    def possible(self) -> bool:
        """Whether the search has a law to start from that keeps all limits."""
        return self.rows.inside(self._start)

    def energy(self, b: Array) -> float:
        """Energy at the supply of squared path speeds [N + 1], J, as the search sees it."""
        return float(self._energies(b[:-1], b[1:], 0.0).sum())

    def cheapest(self, price: float, start: TimeLaw | None = None) -> TimeLaw:
        """The law that minimizes energy minus price times duration.

        Args:
            price: marginal energy of time [W]; the lower, the faster.
            start: of the search; a law with a similar price.
        """
        near = start is not None and self.rows.inside(start.b)
        b = start.b if start is not None and near else self._start
        terms = partial(self._energies, price=price)
        return TimeLaw(self.arm, minimize(terms, self.rows, b, near=near))

    def _energies(self, before: Array, after: Array, price: float) -> Array:
        """Energy minus price times duration of the intervals [..., N], J."""
        speed = 0.5 * (np.sqrt(before) + np.sqrt(after))
        rate = (after - before) / (2 * self.arm.steps)
        demand = self.arm.demand(speed, rate)
        floor = self.arm.model.bus.floor
        above = (demand - floor) / FLOOR_WIDTH
        supply = floor + FLOOR_WIDTH * np.logaddexp(0.0, above)
        return np.asarray((supply - price) * self.arm.steps / speed)

    def _feasible(self, shape: Array) -> Array:
        """A smooth law at half of the largest speed that keeps all limits [N + 1]."""
        b = shape.copy()
        b[0] = b[-1] = 0.0
        used = 1.0 - self.rows.slack(b)
        most = max(float(used.max()), float((b[1:-1] / self.rows.high).max()))
        return np.asarray(0.25 * b / most)


_SPEED_SHARES = (1.0, 0.998, 0.99)
HIGH_PRICE = 1e6
"""Marginal energy of time at which laws are as fast as the limits allow [W]."""


def fastest_law(arm: PathDynamics, limits: PathLimits, source: str = "path") -> TimeLaw:
    """The law that takes a path in the least time, by toppra.

    Pham and Pham, A New Approach to Time-Optimal Path Parameterization Based on Reachability
    Analysis, IEEE T-RO 2018, on the same path, intervals and limits as the least energy.
    Where its linear programs fail numerically (their tolerances are absolute), with speeds lowered
    by up to 1 %, and at last by the search for the least energy at a very high price of time, which
    comes within some tenths of a percent.

    Raises:
        InputError: no law keeps the limits on this path.
        MissingPackageError: toppra is not installed.
    """
    rows = arm.limit_rows(limits)
    for share in _SPEED_SHARES:
        b = _by_toppra(arm, replace(rows, fastest=rows.fastest * share**2))
        if b is not None:
            return TimeLaw(arm, b)
    laws = EnergyLaws(arm, limits)
    if not laws.possible:
        raise InputError(
            source,
            "no time law keeps the limits of torque and acceleration on its path",
            "check payload and mounting, or raise the limits",
        )
    return laws.cheapest(-HIGH_PRICE)


def _by_toppra(arm: PathDynamics, rows: LimitRows) -> Array | None:
    """Squared speeds at the ends of the intervals [N + 1]; None where it finds none."""
    with optional_import():
        import toppra
        from toppra.algorithm import TOPPRA
        from toppra.constraint import DiscretizationType
    logging.getLogger("toppra").setLevel(logging.CRITICAL)
    constraint: Any = _constraint(rows, arm.slope.shape[1])
    constraint.set_discretization_type(DiscretizationType.Collocation)
    path = toppra.SplineInterpolator(arm.s, arm.path.position(arm.s))
    solver = TOPPRA([constraint], path, gridpoints=arm.s, solver_wrapper="seidel")
    _, speeds, _ = solver.compute_parameterization(0.0, 0.0)
    if speeds is None or not np.isfinite(speeds).all():
        return None
    b = np.maximum(np.asarray(speeds, dtype=float), 0.0) ** 2
    b[0] = b[-1] = 0.0
    b[1:-1] = np.maximum(b[1:-1], 1e-12)
    return np.asarray(b)


def _constraint(rows: LimitRows, dof: int) -> object:
    """The limits as toppra takes them: a u + b x + c in {w: F w <= g}, x within bounds."""
    from toppra.constraint.linear_constraint import LinearConstraint

    class Limits(LinearConstraint):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.dof = dof
            self.identical = True

        def compute_constraint_params(self, path: object, gridpoints: Array) -> tuple[object, ...]:
            def at_nodes(values: Array) -> Array:
                """Rows of the intervals at their starts; the last interval's also at its end."""
                return np.asarray(np.concatenate([values, values[:, -1:]], axis=1).T)

            along, across = (at_nodes(x) for x in (rows.along, rows.across))
            count = along.shape[1]
            limits = np.stack([np.zeros_like(rows.fastest), rows.fastest], axis=1)
            zero = np.zeros_like(along)
            return along, across, zero, np.eye(count), np.ones(count), None, limits

    return Limits()
