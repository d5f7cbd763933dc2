# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Time law of one move: the least energy along its path.

Direct transcription on the path (Verscheure et al., Time-optimal path tracking for
robots, IEEE TAC 2009): the unknowns are the squared path speeds at the ends of short
intervals. The energy of an interval is the power by the energy model times the duration
of the interval, so no cost is modelled a second time. Because an interval depends on two
neighbouring unknowns only, Newton's method with a tridiagonal Hessian solves a move in
some ten milliseconds; general solvers (SLSQP, IPOPT) take a hundred times as long to reach
the same minimum. The objective is energy minus `price` times duration. The price is the
marginal energy of time, and all moves of a cycle have the same price. A limit of power
couples the same two neighbours, so that the Hessian stays tridiagonal with it.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, solveh_banded

from ur_energy_model.errors import InputError, optional_import
from ur_energy_model.optimization.path import PathDynamics, PathLimits
from ur_energy_model.optimization.time_law import TimeLaw, with_jerk_limit
from ur_energy_model.typing import Array

FLOOR_WIDTH = 1.0
"""Width over which the lowest power of the supply is rounded in the search [W]."""
_DIFFERENCE = 1e-3  # relative step of the numerical derivatives
_FIRST = 1e-3  # first weight of the barrier, relative to the size of the objective
_NEAR = 1e-5  # first weight for a start near the minimum
_LAST = 1e-7  # last weight
_FACTOR = 0.01  # ratio of consecutive weights
_MOST_STEPS = 60  # most steps of Newton's method for one weight
_ENOUGH_BEFORE = 1e-3
"""Relative decrease of a whole step at which a barrier problem before the last counts as solved."""
_ENOUGH = 1e-8
"""Relative decrease of a whole step at which the last barrier problem counts as solved. Energy
hardly depends on the duration near the minimum: at a last decrease of 1e-6 the durations still
differ by up to 0.5 % with the start of the search, at 1e-8 by less than 0.05 %."""
_SLOWED = 0.5  # factor on squared speeds of a first law until it keeps the limit of power
_TO_LIMIT = 0.95  # part of the way to the nearest limit that a step may go
_LENGTHS = (
    np.array([1.0]),
    np.array([0.6, 0.3, 0.1, 0.02]),
    np.array([4e-3, 1e-3, 1e-4]),
)
"""Lengths of a step in groups: the lengths of a group are tried together, one group after another,
until a trial lowers the sum."""


class EnergyLaws:
    """Finds the time laws of least energy of one move on its path within limits.

    The unknowns are the squared path speeds b [N + 1]; the first and last are zero. An
    interval k has limits start b_k + end b_(k+1) <= 1 [rows, N]; inner unknowns are
    between low and high [N - 1]. Where power is limited, the demand of the arm in each
    interval is below its limit, too.

    Args:
        arm: dynamics of the arm on the path of the move.
        limits: limits of the motion; their jerk is not considered.
    """

    def __init__(self, arm: PathDynamics, limits: PathLimits) -> None:
        self.arm = arm
        by_rate, by_square, fastest = arm.limit_rows(limits)
        # Rate of the speed and mean squared speed of an interval, by b at its ends.
        by_difference = by_rate / (2 * arm.steps)
        shape = 4 * arm.s * (1 - arm.s)
        shape[[0, -1]] = 0.0
        lowest = arm.slowest**2 * shape[1:-1] ** 2
        self._start = 0.5 * by_square - by_difference
        self._end = 0.5 * by_square + by_difference
        self._high = fastest[1:-1]
        self._low = np.minimum(lowest, 1e-3 * self._high)
        self._power = limits.power
        # A smooth law at half of the largest speed that keeps all limits.
        used = 1.0 - self._slack(shape)
        most = max(float(used.max()), float((shape[1:-1] / self._high).max()))
        self._first = self._slowed(0.25 * shape / most)

    def _slowed(self, b: Array) -> Array:
        """A law that is slowed down evenly until it keeps the limit of power, if it can."""
        if np.isinf(self._power):
            return b
        slower = b
        while (slower[1:-1] > self._low).all():
            if self._inside(slower):
                return slower
            slower = _SLOWED * slower
        return b

    @property
    def possible(self) -> bool:
        """Whether the search has a law to start from that keeps all limits."""
        return self._inside(self._first)

    def energy(self, b: Array) -> float:
        """Energy at the supply [J] of squared path speeds [N + 1], with the rounded floor."""
        return float(self._terms(b[:-1], b[1:], 0.0).sum())

    def cheapest(self, price: float, start: TimeLaw | None = None) -> TimeLaw:
        """The law that minimizes energy minus price times duration.

        An interior point method (Boyd and Vandenberghe, Convex Optimization, 2004, ch.
        11): the logarithmic barrier of the limits gets weaker from one Newton search to
        the next, each of which starts where the last one ended.

        Args:
            price: marginal energy of time [W]; the lower, the faster.
            start: law from which the search starts, the result of a similar price.
        """
        b = self._first
        weight = _FIRST
        if start is not None and self._inside(start.b):
            b = start.b
            weight = _NEAR
        size = abs(float(self._terms(b[:-1], b[1:], price).sum())) + 1e-9
        while weight > 0.5 * _LAST:
            enough = _ENOUGH if weight < 2 * _LAST else _ENOUGH_BEFORE
            b = self._newton(price, b, weight * size, size * enough)
            weight *= _FACTOR
        return TimeLaw(self.arm, b)

    def _terms(self, before: Array, after: Array, price: float) -> Array:
        """Energy minus price [W] times duration of each interval [..., N], J.

        Args:
            before: squared path speed at the start of each interval [..., N], 1/s^2.
            after: squared path speed at the end of each interval [..., N], 1/s^2.
            price: marginal energy of time [W].
        """
        return self._cost(before, after, price, self._demand(before, after))

    def _demand(self, before: Array, after: Array) -> Array:
        """Power that the arm demands in each interval [..., N], W; arguments as of `_terms`."""
        speed = 0.5 * (np.sqrt(before) + np.sqrt(after))
        rate = (after - before) / (2 * self.arm.steps)
        return self.arm.demand(speed, rate)

    def _cost(self, before: Array, after: Array, price: float, demand: Array) -> Array:
        """The terms of intervals [..., N], J, whose demand [..., N], W, is known."""
        speed = 0.5 * (np.sqrt(before) + np.sqrt(after))
        floor = self.arm.model.bus.floor
        above = (demand - floor) / FLOOR_WIDTH
        supply = floor + FLOOR_WIDTH * np.logaddexp(0.0, above)
        return np.asarray((supply - price) * self.arm.steps / speed)

    def _slack(self, b: Array) -> Array:
        """Distance of each interval to its limits, as a share of them [rows, N]."""
        return np.asarray(1.0 - self._start * b[:-1] - self._end * b[1:])

    def _inside(self, b: Array) -> bool:
        """Whether all limits are kept strictly."""
        low = b[1:-1] > self._low
        high = b[1:-1] < self._high
        linear = bool(high.all() and low.all() and (self._slack(b) > 0.0).all())
        if not linear or np.isinf(self._power):
            return linear
        return bool((self._demand(b[:-1], b[1:]) < self._power).all())

    def _newton(self, price: float, b: Array, weight: float, enough: float) -> Array:
        """The minimum of energy minus price times duration plus barrier, by Newton's method.

        Args:
            price: marginal energy of time [W].
            b: squared path speeds from which the search starts [N + 1], within the limits.
            weight: weight of the logarithmic barrier [J].
            enough: decrease of the sum by a whole step at which the search ends [J].
        """
        value = float(self._value(price, b, weight))
        for _ in range(_MOST_STEPS):
            straight, slowness = self._steps(price, b, weight)
            y = 1.0 / np.sqrt(b[1:-1])
            reach = self._reach(b, straight)
            longest = _within_reach(float((-slowness / y).max()))
            # Terms need not be convex, so both steps are made descents, and neither does
            # for all moves: near rest b changes by decades, which the slowness step
            # follows; at the limits the straight one is exact.
            for lengths in _LENGTHS:
                along = lengths[:, None]
                slower = np.tile(b, (len(lengths), 1))
                slower[:, 1:-1] = (y + longest * along * slowness) ** -2.0
                trials = np.concatenate([b + reach * along * straight, slower])
                values = self._value(price, trials, weight)
                best = int(np.argmin(values))
                if values[best] < value:
                    break
            else:
                return b
            gain = value - float(values[best])
            value = float(values[best])
            b = trials[best]
            # Whole steps converge quadratically, so that less than the last decrease is
            # left; a shortened step decreases little also far from the minimum.
            part = reach if best < len(lengths) else longest
            if gain <= enough and part * lengths[best % len(lengths)] == 1.0:
                break
        return b

    def _reach(self, b: Array, step: Array) -> float:
        """Part of a step [N + 1] from b [N + 1] that stays within the limits."""
        inner = b[1:-1]
        change = step[1:-1]
        used = self._start * step[:-1] + self._end * step[1:]
        # The whole step over the distance to each limit: above 1 it would exceed the limit.
        of_intervals = float((used / self._slack(b)).max())
        of_highest = float((change / (self._high - inner)).max())
        of_lowest = float((-change / (inner - self._low)).max())
        return _within_reach(max(of_intervals, of_highest, of_lowest))

    def _steps(self, price: float, b: Array, weight: float) -> tuple[Array, Array]:
        """Newton's steps of b [N + 1], and of the inner slowness y = 1 / sqrt(b) [N - 1].

        A term that grows with the time spent in its interval is linear in y, but concave
        in b.

        Args:
            price: marginal energy of time [W].
            b: squared path speeds [N + 1], within the limits.
            weight: weight of the logarithmic barrier [J].
        """
        inner = slice(1, -1)
        of_terms, of_demand = self._derivatives(price, b)
        by_start, by_end, *second = of_terms
        terms = _SecondDerivatives(*second)
        # The barrier of the limits: first derivatives, then second ones.
        one = weight / self._slack(b)
        two = one**2 / weight
        by_start = by_start + (one * self._start).sum(axis=0)
        by_end = by_end + (one * self._end).sum(axis=0)
        barrier = _SecondDerivatives(
            start=(two * self._start**2).sum(axis=0),
            mixed=(two * self._start * self._end).sum(axis=0),
            end=(two * self._end**2).sum(axis=0),
        )
        if np.isfinite(self._power):
            power_by_start, power_by_end, of_power = self._power_barrier(
                b, weight, of_demand
            )
            by_start = by_start + power_by_start
            by_end = by_end + power_by_end
            barrier = barrier.plus(of_power)
        below = weight / (b[inner] - self._low)
        above = weight / (self._high - b[inner])
        bounds = above - below
        bounds_second = (below**2 + above**2) / weight
        # An inner unknown is the end of one interval and the start of the next.
        gradient = by_end[:-1] + by_start[1:] + bounds
        straight = np.zeros_like(b)
        hessian = terms.semidefinite().plus(barrier)
        straight[inner] = _step(
            gradient, hessian.diagonal + bounds_second, hessian.mixed[inner]
        )
        # By slowness: db/dy = -2 y^-3 and d2b/dy2 = 6 y^-4.
        of_speed = terms.plus(barrier)
        slope = -2 * b**1.5
        bend = 6 * b**2
        of_slowness = _SecondDerivatives(
            start=slope[:-1] ** 2 * of_speed.start + bend[:-1] * by_start,
            mixed=slope[:-1] * slope[1:] * of_speed.mixed,
            end=slope[1:] ** 2 * of_speed.end + bend[1:] * by_end,
        ).semidefinite()
        own = slope[inner] ** 2 * bounds_second + bend[inner] * bounds
        diagonal = of_slowness.diagonal + np.maximum(own, 0.0) + 1e-12 * np.abs(own)
        slowness = _step(slope[inner] * gradient, diagonal, of_slowness.mixed[inner])
        return straight, slowness

    def _power_barrier(
        self, b: Array, weight: float, of_demand: Array
    ) -> tuple[Array, Array, _SecondDerivatives]:
        """Derivatives of the barrier -weight log(1 - demand / limit) of the power.

        Args:
            b: squared path speeds [N + 1], within the limits.
            weight: weight of the logarithmic barrier [J].
            of_demand: derivatives of the demand [5, N], as of `_derivatives`.

        Returns:
            The first derivatives by the start and by the end of the intervals [N], and the
            second ones, without negative eigenvalues.
        """
        by_start, by_end, twice_start, mixed, twice_end = of_demand
        first = weight / (self._power - self._demand(b[:-1], b[1:]))
        square = first**2 / weight
        second = _SecondDerivatives(
            start=square * by_start**2 + first * twice_start,
            mixed=square * by_start * by_end + first * mixed,
            end=square * by_end**2 + first * twice_end,
        )
        return first * by_start, first * by_end, second.semidefinite()

    def _derivatives(self, price: float, b: Array) -> tuple[Array, Array]:
        """Derivatives by b at the ends of the intervals, by differences.

        Args:
            price: marginal energy of time [W].
            b: squared path speeds [N + 1].

        Returns:
            Of the terms of the intervals, J, and of their demand, W: the first by the
            start and by the end, then the second ones: by the start twice, by start and
            end, and by the end twice [5, N]; zero where b is zero.
        """
        start = b[:-1]
        end = b[1:]
        h = _DIFFERENCE * start
        k = _DIFFERENCE * end
        shifts = [(0, 0), (1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, -1)]
        by_h, by_k = np.array(shifts, dtype=float).T[:, :, None]
        before = start + by_h * h
        after = end + by_k * k
        demand = self._demand(before, after)
        terms = self._cost(before, after, price, demand)
        return _differences(terms, h, k), _differences(demand, h, k)

    def _value(self, price: float, b: Array, weight: float) -> Array:
        """Energy minus price times duration plus barrier [...], J; infinite beyond the limits.

        Args:
            price: marginal energy of time [W].
            b: squared path speeds of one or several trials [..., N + 1].
            weight: weight of the logarithmic barrier [J].
        """
        inner = b[..., 1:-1]
        before = b[..., :-1]
        after = b[..., 1:]
        slack = 1.0 - self._start * before[..., None, :] - self._end * after[..., None, :]
        slack = slack.reshape(*b.shape[:-1], -1)
        left = [slack, inner - self._low, (self._high - inner) / self._high]
        outside = np.any([(part <= 0.0).any(axis=-1) for part in left], axis=0)
        barrier = sum(np.log(np.maximum(part, 1e-300)).sum(axis=-1) for part in left)
        demand = self._demand(before, after)
        if np.isfinite(self._power):
            below = 1.0 - demand / self._power
            outside = outside | (below <= 0.0).any(axis=-1)
            barrier = barrier + np.log(np.maximum(below, 1e-300)).sum(axis=-1)
        terms = self._cost(before, after, price, demand)
        value = terms.sum(axis=-1) - weight * barrier
        return np.asarray(np.where(outside, np.inf, value))


def _differences(values: Array, h: Array, k: Array) -> Array:
    """First and second derivatives of N functions of two variables each, by differences.

    Args:
        values: values [7, N] at the point, and with the first variable higher and lower, the
            second one higher and lower, and both higher and lower.
        h: steps of the first variable [N].
        k: steps of the second variable [N].

    Returns:
        As of `EnergyLaws._derivatives` [5, N].
    """
    at, start_up, start_down, end_up, end_down, both_up, both_down = values
    single = start_up + start_down + end_up + end_down
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.stack([
            (start_up - start_down) / (2 * h),
            (end_up - end_down) / (2 * k),
            (start_up + start_down - 2 * at) / h**2,
            (both_up + both_down - single + 2 * at) / (2 * h * k),
            (end_up + end_down - 2 * at) / k**2,
        ])  # fmt: skip
    return np.where(np.isfinite(found), found, 0.0)


def _within_reach(most: float) -> float:
    """Part of a step that may be taken, when the whole step is `most` times the way to a limit."""
    if most <= 0.0:
        return 1.0
    return min(1.0, _TO_LIMIT * (1.0 / most))


def _step(gradient: Array, diagonal: Array, beside: Array) -> Array:
    """Newton step [N - 1] with a tridiagonal Hessian.

    Args:
        gradient: gradient of the sum [N - 1].
        diagonal: diagonal of the Hessian [N - 1].
        beside: elements of the Hessian next to its diagonal [N - 2].
    """
    banded = np.stack([np.append(0.0, beside), diagonal])
    try:
        return -np.asarray(solveh_banded(banded, gradient))
    except LinAlgError:  # semidefinite to rounding: the gradient, scaled, descends too
        return -gradient / np.maximum(diagonal, 1e-12)


class _SecondDerivatives(NamedTuple):
    """Second derivatives of the terms of N intervals: symmetric 2 x 2 matrices.

    Attributes:
        start: second derivatives by the unknown at the start of the interval [N].
        mixed: mixed derivatives by the unknowns at start and end [N].
        end: second derivatives by the unknown at the end of the interval [N].
    """

    start: Array
    mixed: Array
    end: Array

    @property
    def diagonal(self) -> Array:
        """Diagonal of the Hessian of the inner unknowns [N - 1]."""
        return np.asarray(self.end[:-1] + self.start[1:])

    def plus(self, other: _SecondDerivatives) -> _SecondDerivatives:
        """The sum with other second derivatives."""
        return _SecondDerivatives(
            self.start + other.start, self.mixed + other.mixed, self.end + other.end
        )

    def semidefinite(self) -> _SecondDerivatives:
        """The matrices with their negative eigenvalues replaced by zero."""
        mean = 0.5 * (self.start + self.end)
        half = 0.5 * (self.start - self.end)
        radius = np.hypot(half, self.mixed)
        low = np.maximum(mean - radius, 0.0)
        high = np.maximum(mean + radius, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            cos = half / radius
            sin = self.mixed / radius
        cos = np.where(radius > 0, cos, 1.0)
        sin = np.where(radius > 0, sin, 0.0)
        mean = 0.5 * (low + high)
        radius = 0.5 * (high - low)
        return _SecondDerivatives(mean + radius * cos, radius * sin, mean - radius * cos)


_SPEED_SHARES = (1.0, 0.998, 0.99)
"""Factors on the limits of the path speed that toppra is tried with, one after another."""
HIGH_PRICE = 1e6
"""Marginal energy of time at which laws are as fast as the limits allow [W]."""


def fastest_law(arm: PathDynamics, limits: PathLimits, source: str = "path") -> TimeLaw:
    """The law that takes a path in the least time.

    Where `limits.recorded` allows the recorded motion, the law is not slower than the
    recorded motion, unless the limits of jerk or power make it slower.

    Args:
        arm: dynamics of the arm on the path of the move.
        limits: limits of the motion.
        source: name of the move, for the error.

    Raises:
        InputError: no law keeps the limits on this path.
        MissingPackageError: toppra is not installed.
    """
    if np.isfinite(limits.power):
        return with_jerk_limit(_fastest_by_price(arm, limits, source), limits.jerk)
    law = _time_optimal(arm, limits, source)
    if limits.recorded and law.duration > arm.duration:
        b = arm.recorded_squared_speed()
        b[1:-1] = np.maximum(b[1:-1], 1e-9)
        b[[0, -1]] = 0.0
        law = TimeLaw(arm, b).stretched(arm.duration)
    return with_jerk_limit(law, limits.jerk)


def _time_optimal(arm: PathDynamics, limits: PathLimits, source: str) -> TimeLaw:
    """The fastest law without a limit of jerk, by toppra.

    Pham and Pham, A New Approach to Time-Optimal Path Parameterization Based on
    Reachability Analysis, IEEE T-RO 2018, on the same path, intervals and limits as the
    least energy. The tolerances of the linear programs are absolute, so that toppra may
    fail: then speeds are lowered by up to 1 %. If that fails too, the result is the law of
    least energy at a very high price of time, whose duration is within some tenths of a
    percent of the shortest.

    Args:
        arm: dynamics of the arm on the path of the move.
        limits: limits of the motion.
        source: name of the move, for the error.

    Raises:
        InputError: no law keeps the limits on this path.
        MissingPackageError: toppra is not installed.
    """
    with optional_import():
        import toppra
        from toppra.algorithm import TOPPRA
        from toppra.constraint import DiscretizationType
        from toppra.constraint.linear_constraint import LinearConstraint

    logging.getLogger("toppra").setLevel(logging.CRITICAL)
    # Rows of the intervals at their starts; the last interval's also at its end.
    by_rate, by_square, fastest = arm.limit_rows(limits)
    by_rate = np.hstack([by_rate, by_rate[:, -1:]]).T
    by_square = np.hstack([by_square, by_square[:, -1:]]).T
    count = by_rate.shape[1]

    class Limits(LinearConstraint):  # type: ignore[misc]
        """The limits as toppra takes them: a u + b x + c in {w: F w <= g}, x within bounds."""

        def __init__(self, share: float) -> None:
            super().__init__()
            self.dof = arm.slope.shape[1]
            self.identical = True
            self._squares = np.stack([np.zeros_like(fastest), share**2 * fastest], axis=1)
            self.set_discretization_type(DiscretizationType.Collocation)

        def compute_constraint_params(
            self, path: object, gridpoints: Array
        ) -> tuple[object, ...]:
            zero = np.zeros_like(by_rate)
            one = np.ones(count)
            return by_rate, by_square, zero, np.eye(count), one, None, self._squares

    path = toppra.SplineInterpolator(arm.s, arm.path(arm.s))
    for share in _SPEED_SHARES:
        solver = TOPPRA([Limits(share)], path, gridpoints=arm.s, solver_wrapper="seidel")
        _, speeds, _ = solver.compute_parameterization(0.0, 0.0)
        if speeds is not None and np.isfinite(speeds).all():
            b = np.maximum(np.asarray(speeds, dtype=float), 0.0) ** 2
            b[1:-1] = np.maximum(b[1:-1], 1e-12)
            b[[0, -1]] = 0.0
            return TimeLaw(arm, b)
    return _fastest_by_price(arm, limits, source)


def _fastest_by_price(arm: PathDynamics, limits: PathLimits, source: str) -> TimeLaw:
    """The law of least energy at a very high price of time; arguments as of `fastest_law`.

    Raises:
        InputError: no law keeps the limits on this path.
    """
    laws = EnergyLaws(arm, limits)
    if not laws.possible:
        problem = "no time law keeps the limits of torque and acceleration on its path"
        raise InputError(
            source, problem, "check payload and mounting, or raise the limits"
        )
    return laws.cheapest(-HIGH_PRICE)
