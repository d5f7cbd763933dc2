# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""A planned joint trajectory: positions at times, with derivatives where they are known."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path

import numpy as np

from ur_energy_model.errors import InputError
from ur_energy_model.low_pass import low_pass
from ur_energy_model.telemetry.csv.rows import (
    Dialect,
    find_dialect,
    is_separator_line,
    lines_of,
)
from ur_energy_model.telemetry.csv.units import split_unit, time_factor
from ur_energy_model.typing import Array

SAMPLE_PERIOD = 0.008  # sample period of the predicted powers [s]
LONGEST = 3600.0  # longest plan [s]
MOST_POINTS = 500_000  # largest number of points of a plan
SHORTEST_STEP = 1e-9  # shortest time between points [s], the resolution of ROS
LARGEST = 1e9
"""Largest position, velocity and acceleration of a point; keeps arithmetic in range."""
CHUNK = 2048  # number of samples that are computed together; bounds the memory


@dataclass(frozen=True)
class MotionSamples:
    """Consecutive samples of a plan.

    Attributes:
        time: times from the start of the plan [samples], s.
        q: positions [samples, n], rad.
        qd: velocities [samples, n], rad/s.
        qdd: accelerations [samples, n], rad/s^2.
    """

    time: Array
    q: Array
    qd: Array
    qdd: Array


@dataclass(frozen=True)
class Plan:
    """A planned joint trajectory: positions at times, derivatives where they are known.

    Raises:
        InputError: another number of points, a longer plan, values that are not finite,
            or times that do not increase.

    Attributes:
        time: increasing times [k], s; 2 <= k <= MOST_POINTS, from first to last at most
            LONGEST.
        q: joint positions [k, n], rad.
        qd: joint velocities [k, n], rad/s.
        qdd: joint accelerations [k, n], rad/s^2.
        source: origin, for error messages.
    """

    time: Array
    q: Array
    qd: Array | None = None
    qdd: Array | None = None
    source: str = "trajectory"

    def __post_init__(self) -> None:
        check_points(self.source, len(self.time))
        parts = [part for part in (self.q, self.qd, self.qdd) if part is not None]
        possible = all((np.abs(part) <= LARGEST).all() for part in parts)
        if not (possible and np.isfinite(self.time).all()):
            problem = "contains values that are not finite or impossible"
            raise InputError(self.source, problem, "correct or remove those points")
        with np.errstate(over="ignore"):
            steps = np.diff(self.time)
            duration = float(self.time[-1] - self.time[0])
        if (steps < SHORTEST_STEP).any():
            place = int(np.flatnonzero(steps < SHORTEST_STEP)[0]) + 1
            problem = f"time does not increase at point {place}"
            raise InputError(self.source, problem, "sort the points by time")
        if not duration <= LONGEST:
            problem = f"lasts {duration:.6g} s, longer than {LONGEST:.0f} s"
            raise InputError(self.source, problem, "predict it in parts")

    @property
    def duration(self) -> float:
        """Time from the first to the last point [s]."""
        return float(self.time[-1] - self.time[0])

    def motion(self, period: float = SAMPLE_PERIOD) -> Iterator[MotionSamples]:
        """The motion at even times, CHUNK samples at a time.

        It is quintic between points with accelerations and cubic between points with
        velocities. Through points with positions alone it is a cubic spline that starts
        and ends at rest.

        Args:
            period: longest time between samples [s].
        """
        duration = self.duration
        knots = self.time - self.time[0]
        samples = max(2, int(np.ceil(duration / period)) + 1)
        qd = _spline_slopes(knots, self.q) if self.qd is None else self.qd
        for start in range(0, samples, CHUNK):
            numbers = np.arange(start, min(start + CHUNK, samples), dtype=np.float64)
            time = np.minimum(numbers * (duration / (samples - 1)), duration)
            yield self._between_points(time, knots, qd)

    def sampled(self, period: float = SAMPLE_PERIOD) -> tuple[Array, Array, Array, Array]:
        """Time [m], q, qd and qdd [m, n] of the whole motion, see `motion`."""
        parts = list(self.motion(period))
        return (
            np.concatenate([part.time for part in parts]),
            np.concatenate([part.q for part in parts]),
            np.concatenate([part.qd for part in parts]),
            np.concatenate([part.qdd for part in parts]),
        )

    def part(self, first: int, last: int) -> Plan:
        """The plan from one of its points to another one, both included."""
        rows = slice(first, last + 1)
        return Plan(
            time=self.time[rows] - self.time[first],
            q=self.q[rows],
            qd=None if self.qd is None else self.qd[rows],
            qdd=None if self.qdd is None else self.qdd[rows],
            source=self.source,
        )

    def _between_points(self, time: Array, knots: Array, qd: Array) -> MotionSamples:
        """The motion at times [m], s, as Hermite polynomials of the points beside them.

        The polynomials are in s, the time since the point before, and u = s / h with the
        time h between the points.
        """
        i = np.clip(np.searchsorted(knots, time, side="right") - 1, 0, len(knots) - 2)
        h = (knots[i + 1] - knots[i])[:, None]
        s = (time - knots[i])[:, None]
        u = s / h
        q0 = self.q[i]
        v0 = qd[i]
        a0 = None if self.qdd is None else self.qdd[i]
        by_velocity = (qd[i + 1] - v0) * h
        by_position = self.q[i + 1] - q0 - v0 * h
        if a0 is None or self.qdd is None:
            c2 = 3 * by_position - by_velocity
            c3 = by_velocity - 2 * by_position
            return MotionSamples(
                time,
                q0 + v0 * s + (c2 + c3 * u) * u**2,
                v0 + (2 * c2 + 3 * c3 * u) * u / h,
                (2 * c2 + 6 * c3 * u) / h**2,
            )
        by_position = by_position - 0.5 * a0 * h**2
        by_velocity = by_velocity - a0 * h**2
        by_acceleration = (self.qdd[i + 1] - a0) * h**2
        c3 = 10 * by_position - 4 * by_velocity + 0.5 * by_acceleration
        c4 = -15 * by_position + 7 * by_velocity - by_acceleration
        c5 = 6 * by_position - 3 * by_velocity + 0.5 * by_acceleration
        return MotionSamples(
            time,
            q0 + v0 * s + 0.5 * a0 * s**2 + (c3 + (c4 + c5 * u) * u) * u**3,
            v0 + a0 * s + (3 * c3 + (4 * c4 + 5 * c5 * u) * u) * u**2 / h,
            a0 + (6 * c3 + (12 * c4 + 20 * c5 * u) * u) * u / h**2,
        )


def check_points(source: object, points: int) -> None:
    """Check the number of points of a plan.

    Raises:
        InputError: it has fewer than two points, or more than MOST_POINTS.
    """
    if points < 2:
        problem = "has one point only" if points else "is empty: it has no points"
        raise InputError(str(source), problem, "give a whole trajectory")
    if points > MOST_POINTS:
        problem = f"has more than {MOST_POINTS} points"
        raise InputError(str(source), problem, "predict it in parts")


def _spline_slopes(knots: Array, q: Array) -> Array:
    """Velocities at points of a cubic spline that starts and ends at rest [k, n], rad/s.

    The second derivative is continuous at the inner points (de Boor, A Practical Guide to
    Splines, chapter IV): a tridiagonal system.
    """
    from scipy.linalg import solve_banded  # slow to import

    h = np.diff(knots)
    slopes = np.zeros_like(q)
    if len(h) > 1:
        chords = np.diff(q, axis=0) / h[:, None]
        bands = np.zeros((3, len(h) - 1))
        bands[0, 1:] = h[:-2]
        bands[1] = 2 * (h[:-1] + h[1:])
        bands[2, :-1] = h[2:]
        right = 3 * (h[1:, None] * chords[:-1] + h[:-1, None] * chords[1:])
        slopes[1:-1] = solve_banded((1, 1), bands, right, overwrite_b=True)
    return slopes


_HEAD = 20  # lines from which delimiters and decimals are found
_TIME_NAMES = ("time", "t", "timestamp", "time_from_start")


def csv_text(time: Array, *motions: Array) -> str:
    """CSV that `read_plan` reads.

    Args:
        time: times [k], s.
        *motions: positions [k, n], rad, and as many of their derivatives as are known.
    """
    names = ["time"]
    for stem, values in zip(("q", "qd", "qdd"), motions, strict=False):
        names += [f"{stem}_{joint}" for joint in range(values.shape[1])]
    lines = [",".join(names)]
    rows = np.hstack([time[:, None], *motions])
    lines += [",".join(f"{value:.9g}" for value in row) for row in rows]
    return "\n".join(lines) + "\n"


def read_plan(path: str | Path, joint_names: Sequence[str]) -> Plan:
    """A trajectory from a CSV file with a header line.

    Columns: `time` [s], or with another unit behind it, as `time [ms]`; positions as
    `q_0` ... [rad] (also `target_q_0`, `actual_q_0` or the joint's name); where known,
    velocities `qd_0` ... [rad/s] and accelerations `qdd_0` ... [rad/s^2] (also
    `target_qd_0`, `target_qdd_0`). Other columns are ignored. Delimiters, decimal commas
    and encodings are accepted as in CSV recordings.

    Raises:
        InputError: names the column or line at fault.
    """
    return _read(path, (line for _, line in lines_of(Path(path))), joint_names)


def _read(path: str | Path, lines: Iterator[str], joint_names: Sequence[str]) -> Plan:
    """The trajectory of the lines of a file, header first."""
    head = list(islice(lines, _HEAD))
    if head and is_separator_line(head[0]):
        head = head[1:]
    if not head:
        raise InputError(path, "is empty", "give a header line and one line a point")
    dialect = find_dialect(head)
    names = dialect.columns(head[0])
    header = {name: i for i, name in enumerate(names)}
    time, seconds = _time_column(names)
    if time is None:
        raise InputError(path, "is missing", "name the time column 'time'", field="time")
    n = len(joint_names)
    q = _joint_columns(header, ("q", "target_q", "actual_q"), n)
    if q is None and all(name in header for name in joint_names):
        q = list(joint_names)
    if q is None:
        remedy = f"name the positions q_0 to q_{n - 1} or by joint"
        raise InputError(path, "is missing", remedy, field="q_0")
    qd = _joint_columns(header, ("qd", "target_qd"), n)
    qdd = None if qd is None else _joint_columns(header, ("qdd", "target_qdd"), n)
    wanted = [time, *q, *(qd or []), *(qdd or [])]
    rows = map(dialect.columns, chain(head[1:], lines))
    table = _numbers(path, rows, header, wanted, dialect)
    return Plan(
        time=seconds * table[:, 0],
        q=table[:, 1 : 1 + n],
        qd=None if qd is None else table[:, 1 + n : 1 + 2 * n],
        qdd=None if qdd is None else table[:, 1 + 2 * n : 1 + 3 * n],
        source=str(path),
    )


def _time_column(names: Sequence[str]) -> tuple[str | None, float]:
    """Name of the time column, and the seconds in its unit."""
    for wanted in _TIME_NAMES:
        for name in names:
            stem, unit = split_unit(name)
            if stem != wanted:
                continue
            seconds = 1.0 if unit is None else time_factor(unit)
            if seconds is not None:
                return name, seconds
    return None, 1.0


def _joint_columns(
    header: Mapping[str, int], stems: Sequence[str], joints: int
) -> list[str] | None:
    """Names of the columns of the first stem that has one for each joint."""
    for stem in stems:
        names = [f"{stem}_{i}" for i in range(joints)]
        if all(name in header for name in names):
            return names
    return None


def _numbers(
    path: str | Path,
    rows: Iterator[Sequence[str]],
    header: Mapping[str, int],
    names: Sequence[str],
    dialect: Dialect,
) -> Array:
    """Columns as numbers [rows, names]; reads no more rows than a plan may have points."""
    places = [header[name] for name in names]
    width = max(header.values()) + 1
    numbers = array("d")
    count = 0
    for count, row in enumerate(rows, start=1):
        check_points(path, max(count, 2))
        if len(row) != width:
            problem = f"line {count + 1} has {len(row)} columns, the header {width}"
            raise InputError(path, problem, "correct that line")
        for name, place in zip(names, places, strict=True):
            number = dialect.number(row[place])
            if number is None:
                problem = f"holds something that is not a number ({row[place][:40]!r})"
                raise InputError(path, problem, "correct that line", field=name)
            numbers.append(number)
    return np.array(numbers).reshape(count, len(names))


# Plans with jittered time stamps, measured values, or positions and velocities that
# contradict each other. Differentiating positions twice turns noise of a tenth of a
# milliradian at 500 Hz into accelerations of tens of rad/s^2, and these into energy that the
# motion does not take. A stamp that is late by one period has the same effect on positions
# and velocities without noise.

CUTOFF = 6.0
"""Cut-off frequency of the zero-phase low-pass filter for noisy positions [Hz]: the highest one of
the identification, above the motion of a rigid arm."""
NOISE_SHARE = 0.05
"""A plan is changed if noise or jitter cause accelerations beyond this share of the arm's limit."""
IMPOSSIBLE = 10.0
"""No joint reaches accelerations beyond this multiple of the limit in the robot file (6 rad/s^2):
rated torques would accelerate the rotors alone with 55 to 130 rad/s^2."""
EXPLAINED = 1.0 / 3.0
"""Largest share of the mismatch of positions and stamps that even stamps may leave."""
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
    if plan.qd is not None:
        needed = _least_acceleration(plan.time, plan.q, plan.qd)
        if (needed > IMPOSSIBLE * limit).any():
            k, j = np.unravel_index(np.argmax(needed / limit), needed.shape)
            when = f"{plan.time[k]:.6g} to {plan.time[k + 1]:.6g} s"
            problem = (
                f"position, velocity and time disagree between points {k} and {k + 1} "
                f"({when}): joint {j} would need {needed[k, j]:.3g} rad/s^2"
            )
            remedy = "correct the times or velocities, or leave the velocities out"
            raise InputError(plan.source, problem, remedy)
    return plan, lines


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

    Args:
        plan: plan as read.
        limit: largest acceleration of the joints [n], rad/s^2.

    Returns:
        The plan, and a line that states the change; None without a change.
    """
    time = plan.time
    q = plan.q
    qd = plan.qd
    index = np.arange(len(time), dtype=np.float64)
    if len(time) < _LEAST_STAMPED:
        return plan, None
    if qd is None:
        period = float(np.polyfit(index, time, 1)[0])
    else:
        mean = (13.0 * (qd[1:-2] + qd[2:-1]) - qd[:-3] - qd[3:]) / 24.0
        ways = np.diff(q, axis=0)[1:-1]
        period = float((ways * mean).sum() / max(np.square(mean).sum(), 1e-12))
    even: Array = period * index
    # Two periods, and half a period for the error of their estimate over the whole plan.
    if not 2.0 * _ROUNDED < np.ptp(time - even) <= 2.5 * period:
        return plan, None
    stamped = _mismatch(time, q, qd)
    left = _mismatch(even, q, qd)
    size = np.linalg.norm(stamped, axis=1)
    rest = np.linalg.norm(left, axis=1)
    jitter = np.sqrt(np.square(stamped - left).mean(axis=0)) - _rounding(q, period)
    worse = 6.0 * jitter / period**2
    shown = (
        rest.sum() < EXPLAINED * size.sum()
        and rest.max() < EXPLAINED * size.max()
        and size.sum() ** 2 > _ENOUGH_STEPS * np.square(size).sum()
        and (worse > NOISE_SHARE * limit).any()
    )
    if qd is not None and not shown:
        most = IMPOSSIBLE * limit
        impossible = (_least_acceleration(time, q, qd) > most).any()
        shown = impossible and not (_least_acceleration(even, q, qd) > most).any()
    if not shown:
        return plan, None
    shift = 1e3 * float(np.ptp(time - even)) / 2.0
    text = (
        f"stamps jitter by ± {shift:.2g} ms about even ones that the points follow; spaced evenly "
        f"by {1e3 * period:.6g} ms. Give the planned times for an answer without this"
    )
    return replace(plan, time=time[0] + even), text


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
    k = len(time)
    middle = time[2:-2]
    slope = q
    for order in range(1, 5):  # divided differences
        slope = np.diff(slope, axis=0) / (time[order:] - time[:-order])[:, None]
    others = [middle - time[2 + shift : k - 2 + shift] for shift in (-2, -1, 1, 2)]
    return np.asarray(slope * np.prod(others, axis=0)[:, None])


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
    time, q, qd, _ = plan.sampled(step * (1.0 + 1e-9))
    of_q = _ACCELERATION_GAIN * _noise(q) / step**2
    of_qd = np.zeros_like(of_q)
    if plan.qd is not None:
        of_qd = 2**0.5 * _noise(qd) / step
    # The noise by rounding is up to 1.8 times its bound, in velocities.
    most = NOISE_SHARE * limit + 2.0 * _rounding(q, step) / step**2
    if not ((of_q > most) | (of_qd > most)).any():
        return plan, None
    worst = float(max(of_q.max(), of_qd.max()))
    kind = "positions" if (of_q > most).any() else "velocities"
    text = (
        f"{kind} look measured: their noise alone would make accelerations of {worst:.2g} rad/s^2; "
        f"smoothed at {CUTOFF:g} Hz. Give the planned motion (target_q, or q, qd and qdd) for an "
        "answer without smoothing"
    )
    if kind == "velocities":
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
