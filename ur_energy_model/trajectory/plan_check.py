# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Plans with jittered time stamps, measured values, or data that contradict each other.

Differentiating positions twice turns noise of a tenth of a milliradian at 500 Hz into
accelerations of tens of rad/s^2, and these into energy that the motion does not take. A
stamp that is late by one period has the same effect on positions and velocities without
noise.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ur_energy_model.errors import InputError
from ur_energy_model.low_pass import low_pass
from ur_energy_model.trajectory.plan import Plan
from ur_energy_model.typing import Array

CUTOFF = 6.0
"""Cut-off frequency of the zero-phase low-pass filter for noisy positions [Hz]: the highest cut-off
frequency of the identification, above the motion of a rigid arm."""
NOISE_SHARE = 0.05
"""A plan is changed if noise or jitter cause accelerations beyond this share of the arm's limit."""
IMPOSSIBLE = 10.0
"""No joint reaches accelerations beyond this multiple of the limit in the robot file (6 rad/s^2):
rated torques would accelerate the rotors alone with 55 to 130 rad/s^2."""
EXPLAINED = 1.0 / 3.0
"""Largest share of the mismatch of positions and stamps that even stamps may leave."""
_MOST_JITTER = 2.5
"""Largest range of deviations from even stamps, in periods: a period to either side, and half a
period for the error of the estimated period over the whole plan."""
_ROUNDED = 1e-6
"""Rounding of stamps [s] and positions [rad] to six decimals, as by `%f`, which does not count as
jitter; at 500 Hz it causes accelerations of 1 rad/s^2."""
_ENOUGH_STEPS = 4.0
"""Effective number of mismatches (inverse participation ratio) beyond which even stamps agree with
positions by chance in less than one of 10,000 uneven plans."""
_ORDER = 4  # order of the differences of positions that show noise
_WHITE_GAIN = 70.0**0.5
"""Standard deviation of fourth differences of white noise, over the deviation of the noise."""
_WHITE_CORRELATION = -0.5
"""Consecutive fourth differences of white noise correlate with -0.8, of motion
positively."""
_MEDIAN_OF_NORMAL = 0.6745
"""Median of the absolute values of a normal distribution with deviation 1."""
_LEAST_STAMPED = 5  # least number of points whose stamps are compared with even stamps
_ENOUGH_POINTS = 32  # least number of points of a plan whose noise is estimated
_ACCELERATION_GAIN = 6.0**0.5
"""Standard deviation of second differences of white noise, over the deviation of the noise."""
_VELOCITY_GAIN = 2.0**0.5
"""Standard deviation of first differences of white noise, over the deviation of the noise."""


def checked_plan(plan: Plan, max_acceleration: Array) -> tuple[Plan, list[str]]:
    """The plan as an arm can carry it out, if positions, velocities and times agree.

    Stamps that jitter about even ones by up to a period are spaced evenly, and noise of
    measured positions or velocities is smoothed.

    Args:
        plan: plan as read.
        max_acceleration: largest acceleration of the joints [n], rad/s^2.

    Returns:
        The plan for a prediction, and lines that state what was changed, the reason and
        the remedy.

    Raises:
        InputError: positions, velocities and times contradict one another.
    """
    limit = np.broadcast_to(max_acceleration, plan.q.shape[1:])
    lines = [f"{plan.source}: {line}" for line in _too_slow(plan)]
    for change in (_evenly_stamped, _smoothed):
        plan, line = change(plan, limit)
        if line is not None:
            lines.append(f"{plan.source}: {line}")
    _check_accelerations(plan, limit)
    return plan, lines


def _check_accelerations(plan: Plan, limit: Array) -> None:
    """Check that the arm can reach each point from the point before.

    Args:
        plan: plan; without velocities, every motion between its points is possible.
        limit: largest acceleration of the joints [n], rad/s^2.

    Raises:
        InputError: a joint would need more than IMPOSSIBLE times its limit.
    """
    if plan.qd is None:
        return
    needed = _least_acceleration(plan.time, plan.q, plan.qd)
    if not (needed > IMPOSSIBLE * limit).any():
        return
    k, j = np.unravel_index(np.argmax(needed / limit), needed.shape)  # step and joint
    when = f"{plan.time[k]:.6g} to {plan.time[k + 1]:.6g} s"
    problem = (
        f"position, velocity and time disagree between points {k} and {k + 1} "
        f"({when}): joint {j} would need {needed[k, j]:.3g} rad/s^2"
    )
    remedy = "correct the times or velocities, or leave the velocities out"
    raise InputError(plan.source, problem, remedy)


# The times of a plan are probably milliseconds if all joints are slow although the plan
# lasts long and a joint moves far.
_SLOWEST = 0.005  # speed of a slow joint [rad/s]
_LONG = 60.0  # duration of a long plan [s]
_MOVED = 0.1  # travel of a joint that moves far [rad]


def _too_slow(plan: Plan) -> list[str]:
    """A line for a plan whose times are probably in another unit than seconds."""
    way = np.abs(np.diff(plan.q, axis=0))
    fastest = float((way.max(axis=1) / np.diff(plan.time)).max())
    moved = np.ptp(plan.q, axis=0).max()
    if plan.duration < _LONG or fastest > _SLOWEST or moved < _MOVED:
        return []
    return [
        f"no joint is faster than {fastest:.2g} rad/s in {plan.duration:.0f} s: if the times are "
        "in ms, name their column 'time [ms]'"
    ]


def _evenly_stamped(plan: Plan, limit: Array) -> tuple[Plan, str | None]:
    """The plan with even stamps, if the points show that the stamps deviate by up to a period.

    Without velocities, the period follows from the stamps. With velocities, it follows
    from the points: the way of a step is the period times the mean of the cubic through
    the velocities of four points.

    The stamps are changed if the points agree with even stamps and the jitter matters, or,
    with velocities, if the stamps as read need impossible accelerations and even stamps do
    not.

    Args:
        plan: plan as read.
        limit: largest acceleration of the joints [n], rad/s^2.

    Returns:
        The plan, and a line that states the change; None without a change.
    """
    if len(plan.time) < _LEAST_STAMPED:
        return plan, None
    period = _even_period(plan)
    even: Array = period * np.arange(len(plan.time), dtype=np.float64)
    deviation = float(np.ptp(plan.time - even))
    if not 2.0 * _ROUNDED < deviation <= _MOST_JITTER * period:
        return plan, None
    if not (
        _jitters(plan, even, period, limit) or _only_even_possible(plan, even, limit)
    ):
        return plan, None
    shift = 1e3 * deviation / 2.0
    text = (
        f"stamps jitter by ± {shift:.2g} ms about even ones that the points follow; spaced evenly "
        f"by {1e3 * period:.6g} ms. Give the planned times for an answer without this"
    )
    return replace(plan, time=plan.time[0] + even), text


def _even_period(plan: Plan) -> float:
    """The period of even stamps that fit a plan best [s].

    Without velocities, it is the slope of a line through the stamps. With velocities, it is
    the least-squares ratio of the ways of the steps to the mean velocities of the steps.
    """
    qd = plan.qd
    if qd is None:
        numbers = np.arange(len(plan.time), dtype=np.float64)
        slope, _ = np.polyfit(numbers, plan.time, 1)
        return float(slope)
    # The mean, over a step, of the cubic through the velocities of four points.
    mean = (13.0 * (qd[1:-2] + qd[2:-1]) - qd[:-3] - qd[3:]) / 24.0
    ways = np.diff(plan.q, axis=0)[1:-1]
    return float((ways * mean).sum() / max(np.square(mean).sum(), 1e-12))


def _jitters(plan: Plan, even: Array, period: float, limit: Array) -> bool:
    """Whether the points agree with even stamps, and the jitter of the stamps matters.

    Args:
        plan: plan as read.
        even: even stamps [k], s.
        period: period of the even stamps [s].
        limit: largest acceleration of the joints [n], rad/s^2.
    """
    with_stamps = _mismatch(plan.time, plan.q, plan.qd)
    with_even = _mismatch(even, plan.q, plan.qd)
    # Mismatch of each step over all joints [rad].
    before = np.linalg.norm(with_stamps, axis=1)
    after = np.linalg.norm(with_even, axis=1)
    is_explained = (
        after.sum() < EXPLAINED * before.sum() and after.max() < EXPLAINED * before.max()
    )
    effective_steps = before.sum() ** 2 / max(np.square(before).sum(), 1e-300)
    by_jitter = np.sqrt(np.square(with_stamps - with_even).mean(axis=0))
    by_jitter = by_jitter - _rounding(plan.q, period)
    acceleration = 6.0 * by_jitter / period**2
    return bool(
        is_explained
        and effective_steps > _ENOUGH_STEPS
        and (acceleration > NOISE_SHARE * limit).any()
    )


def _only_even_possible(plan: Plan, even: Array, limit: Array) -> bool:
    """Whether the stamps of a plan with velocities are impossible, and even stamps are not.

    Args:
        plan: plan as read; without velocities, all stamps are possible.
        even: even stamps [k], s.
        limit: largest acceleration of the joints [n], rad/s^2.
    """
    if plan.qd is None:
        return False
    most = IMPOSSIBLE * limit
    with_stamps = _least_acceleration(plan.time, plan.q, plan.qd)
    with_even = _least_acceleration(even, plan.q, plan.qd)
    return bool((with_stamps > most).any() and not (with_even > most).any())


def _mismatch(time: Array, q: Array, qd: Array | None) -> Array:
    """Differences of positions from the positions that neighbours and times suggest.

    Args:
        time: times [k], s.
        q: positions [k, n], rad.
        qd: velocities [k, n], rad/s; None if unknown.

    Returns:
        With velocities, the ways of the steps less the ways at the mean velocities [k - 1,
        n], rad. Without velocities, the positions less the cubics through two points on
        either side [k - 4, n], rad.
    """
    if qd is not None:
        return np.diff(q, axis=0) - 0.5 * np.diff(time)[:, None] * (qd[1:] + qd[:-1])
    # The error of a cubic at a fifth point is the fourth divided difference times the
    # product of the times from the other four points (Newton's form of interpolation).
    count = len(time)
    divided = q
    for order in range(1, 5):
        divided = np.diff(divided, axis=0) / (time[order:] - time[:-order])[:, None]
    middle = time[2:-2]
    distances = [middle - time[2 + shift : count - 2 + shift] for shift in (-2, -1, 1, 2)]
    return np.asarray(divided * np.prod(distances, axis=0)[:, None])


def _rounding(q: Array, period: float) -> Array:
    """Bound [n], rad, of the mismatch (RMS) from stamps rounded to _ROUNDED.

    The mismatch itself is 0.41 of the way in the time _ROUNDED.
    """
    way = np.sqrt(np.square(np.diff(q, axis=0)).mean(axis=0))
    return np.asarray(0.5 * _ROUNDED * way / period)


def _least_acceleration(time: Array, q: Array, qd: Array) -> Array:
    """Least acceleration [k - 1, n], rad/s^2, of a motion from each point to the next.

    The least acceleration has a constant size a, first in one and then in the other
    direction. In a time h with a change of velocity dv, the way of such a motion differs
    from the way at the mean velocity by (a^2 h^2 - dv^2) / (4 a). Positions and times of
    both points may be rounded by half of _ROUNDED.
    """
    h = np.diff(time)[:, None]
    rounded = _ROUNDED * (1.0 + 0.5 * np.abs(qd[1:] + qd[:-1]))
    excess = 2.0 * np.maximum(np.abs(_mismatch(time, q, qd)) - rounded, 0.0)
    change = h * np.diff(qd, axis=0)
    return np.asarray((excess + np.hypot(excess, change)) / h**2)


def _smoothed(plan: Plan, limit: Array) -> tuple[Plan, str | None]:
    """The plan without the noise of measured positions or velocities.

    Args:
        plan: plan with even stamps.
        limit: largest acceleration of the joints [n], rad/s^2.

    Returns:
        The plan, and a line that states the change; None without a change.
    """
    if plan.qdd is not None or len(plan.time) < _ENOUGH_POINTS:
        return plan, None
    step = plan.duration / (len(plan.time) - 1)
    # A little longer, so that rounding does not add a sample.
    time, q, qd, _ = plan.sampled(step * (1.0 + 1e-9))
    # Accelerations by the noise of positions and of velocities [n], rad/s^2.
    of_q = _ACCELERATION_GAIN * _noise(q) / step**2
    of_qd = np.zeros_like(of_q)
    if plan.qd is not None:
        of_qd = _VELOCITY_GAIN * _noise(qd) / step
    # The noise by rounding is up to 1.8 times its bound, in velocities.
    most = NOISE_SHARE * limit + 2.0 * _rounding(q, step) / step**2
    noisy_q = bool((of_q > most).any())
    noisy_qd = bool((of_qd > most).any())
    if not (noisy_q or noisy_qd):
        return plan, None
    worst = float(max(of_q.max(), of_qd.max()))
    kind = "positions" if noisy_q else "velocities"
    text = (
        f"{kind} look measured: their noise alone would make accelerations of {worst:.2g} rad/s^2; "
        f"smoothed at {CUTOFF:g} Hz. Give the planned motion (target_q, or q, qd and qdd) for an "
        "answer without smoothing"
    )
    if not noisy_q:  # the positions suffice
        return replace(plan, qd=None), text
    smooth = low_pass(q, step, CUTOFF, padding=1.5, padtype="even")
    return Plan(time, smooth, source=plan.source), text


def _noise(values: Array) -> Array:
    """Standard deviation [n] of white noise in evenly sampled values [k, n]; 0 where smooth."""
    rough = np.diff(values, _ORDER, axis=0)
    power = np.square(rough).mean(axis=0)
    product = (rough[1:] * rough[:-1]).mean(axis=0)
    white = product < _WHITE_CORRELATION * power
    # The median ignores the few large differences where a motion's jerk changes.
    deviation = np.median(np.abs(rough), axis=0) / _MEDIAN_OF_NORMAL
    return np.asarray(np.where(white, deviation / _WHITE_GAIN, 0.0))
