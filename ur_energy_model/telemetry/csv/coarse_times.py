# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Coarse times of CSV rows: distinct rows with the same time are spread.

Times in whole seconds, tenths of a second, or as 32-bit floats are equal for many samples
in a row. The rows of each such group lie in one step of the coarse clock. Where all
groups fit even times, they get these; else the rows of each group are spread over the
time to the next group. A pause stays a pause.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.telemetry.csv.times import mean_step
from ur_energy_model.telemetry.samples import run_starts, slices_between
from ur_energy_model.typing import Array, Indices, Mask

# shortest period of spread rows [s]; no arm sends more than 1000 a second
_FASTEST_SPREAD = 0.4e-3
# share of rows in groups of distinct ones from which a clock is coarse
_COARSE_SHARE = 0.1
_PAUSE = 1.5  # longest step of a coarse clock without a pause, in its usual steps
# largest relative difference between a stated rate and the rate of the clock
_SAME_RATE = 0.05
_FEWER_ROWS = 0.05  # share of its usual rows that a full group of a coarse clock may lack
_LOOSE_PERIODS = 2.0
"""Periods by which groups may miss even times: the first and the last row of the whole file decide
the rate, each within a period."""
_ROWS_TOGETHER = 100_000  # rows that are compared at once, to bound the memory


class SpreadTimes(NamedTuple):
    """Times of rows of which some had the same time as the row before.

    Attributes:
        time: times of the rows [n], s.
        resolution: step of a coarse clock [s]; None for any other clock.
        changed: number of rows whose time was changed.
    """

    time: Array
    resolution: float | None
    changed: int


class _Groups(NamedTuple):
    """Runs of rows with the same time.

    Attributes:
        starts: first row of each run [k].
        counts: number of rows of each run [k].
        times: time of each run [k], s.
    """

    starts: Indices
    counts: Indices
    times: Array


def _groups(time: Array) -> _Groups:
    """The runs of equal times of rows in order [n], s."""
    starts = run_starts(time)
    return _Groups(starts, np.diff(starts, append=len(time)), time[starts])


def first_of_equals(time: Array, contents: NDArray[np.int64]) -> Indices:
    """For each row [n] the first row in its run of equal times that has the same contents.

    Args:
        time: times of rows in order [n].
        contents: numbers that stand for all values of a row [n].
    """
    first = np.arange(len(time))
    starts = run_starts(time)
    group = np.zeros(len(time), dtype=np.int64)
    group[starts[1:]] = 1
    np.cumsum(group, out=group)
    places = np.searchsorted(starts, np.arange(_ROWS_TOGETHER, len(time), _ROWS_TOGETHER))
    cuts = starts[places[places < len(starts)]]
    for part in slices_between(cuts.tolist(), len(time)):
        keys = np.stack([group[part], contents[part]], axis=1)
        _, found, inverse = np.unique(
            keys, axis=0, return_index=True, return_inverse=True
        )
        first[part] = part.start + found[inverse.reshape(-1)]
    return first


def spread_equal_times(time: Array, first: Indices, rate: float | None) -> SpreadTimes:
    """Spread the rows that share their time with others.

    Args:
        time: times of rows in order [n], s; steps back are restarts of the controller.
        first: index of the first row with the same time and values as each row [n], see
            `first_of_equals`. A repetition keeps the time of the first row, unless the
            clock is coarse and the rows come more evenly with it: an arm at rest may send
            the same values again and again.
        rate: stated samples per second; None if unknown.

    Raises:
        ValueError: the times do not show a rate, or another one than stated; with the
            reason.
    """
    own = first == np.arange(len(time))
    every = _groups(time)
    distinct = every if own.all() else _groups(time[own])
    coarse = bool(distinct.counts[distinct.counts > 1].sum() > _COARSE_SHARE * len(time))
    if coarse and _unevenness(every) < _unevenness(distinct):
        own[:] = True
    out = time.copy()
    kept = time if own.all() else time[own]
    restarts = np.flatnonzero(kept[1:] < kept[:-1]) + 1
    parts = slices_between(restarts.tolist(), len(kept))
    spread = [_spread(kept[part], rate, coarse=coarse) for part in parts]
    out[own] = np.concatenate(spread) if len(spread) > 1 else spread[0]
    if not own.all():
        out[~own] = out[first[~own]]
    resolution = _resolution(every) if coarse else None
    return SpreadTimes(out, resolution, int(np.count_nonzero(out != time)))


def differs_from_rate(step: float, rate: float) -> str | None:
    """How the mean step [s] from row to row contradicts a stated rate [Hz]; None if it does not."""
    if not abs(step * rate - 1.0) > _SAME_RATE:  # also if there are no steps
        return None
    return f"shows {1.0 / step:.4g} rows per second, not {rate:g}"


def _resolution(groups: _Groups) -> float | None:
    """Usual step between the times of groups [s]; None if there is none."""
    steps = np.diff(groups.times)
    forward = steps[steps > 0.0]
    return float(np.median(forward)) if forward.size else None


def _full(groups: _Groups) -> Mask:
    """Groups [k] that fill a step of the coarse clock: not the first one, nor beside a pause."""
    steps = np.diff(groups.times, append=np.inf)
    resolution = _resolution(groups)
    followed = (steps > 0.0) & (steps <= _PAUSE * (resolution or 0.0))
    full: Mask = followed & np.append(False, followed[:-1])
    return full


def _unevenness(groups: _Groups) -> float:
    """Relative standard deviation of the numbers of rows of full groups; 0 if there are none."""
    counts = groups.counts[_full(groups)]
    return float(counts.std() / counts.mean()) if counts.size else 0.0


def _spread(time: Array, rate: float | None, *, coarse: bool) -> Array:
    """Times of rows of one clock, spread where several rows have the same time.

    Args:
        time: times of the rows in order [n], s; they do not go back, but may be equal.
        rate: stated samples per second; None if unknown.
        coarse: whether the clock is coarser than the sample period.

    Returns:
        Ascending times [n], s.

    Raises:
        ValueError: the times do not show a rate, or another one than stated.
    """
    groups = _groups(time)
    if len(groups.times) == len(time):
        return time
    period = _period(time, groups, rate, coarse=coarse)
    steps = np.diff(groups.times, append=np.inf)
    within = np.minimum(steps / groups.counts, period)
    if not coarse:
        return _spread_within(len(time), groups, within)
    resolution = _resolution(groups) or math.inf
    pauses = steps > _PAUSE * resolution
    pauses[-1] = True
    within = np.where(pauses, within, steps / groups.counts)
    local = _spread_within(len(time), groups, within)
    if len(steps) > 1 and not pauses[0]:  # the rows of the first group end with its step
        begin = int(groups.counts[0])
        local[:begin] = groups.times[1] - period * np.arange(begin, 0, -1)
    out = local.copy()
    ends = (np.flatnonzero(pauses) + 1).tolist()
    for part in slices_between(ends, len(groups.times)):
        first = int(groups.starts[part.start])
        last = int(groups.starts[part.stop - 1] + groups.counts[part.stop - 1])
        members = _Groups(groups.starts[part], groups.counts[part], groups.times[part])
        even = _even_times(members, period, resolution)
        if even is not None:
            out[first:last] = even
    if not (np.diff(out) > 0.0).all():
        out = local
    before_first = max(0.0, float(time[0] - out[0]))
    return np.asarray(out + before_first)


def _spread_within(rows: int, groups: _Groups, steps: Array) -> Array:
    """Times [rows], s, that begin at each group's time and advance by the group's step [k], s."""
    out = np.arange(rows, dtype=np.float64)
    out -= np.repeat(groups.starts, groups.counts)
    out *= np.repeat(steps, groups.counts)
    out += np.repeat(groups.times, groups.counts)
    return out


def _period(time: Array, groups: _Groups, rate: float | None, *, coarse: bool) -> float:
    """Time from row to row [s], from the full groups of a coarse clock or as stated.

    Args:
        time: times of the rows in order [n], s.
        groups: the rows with the same time.
        rate: stated samples per second; None if unknown.
        coarse: whether the clock is coarser than the sample period.

    Raises:
        ValueError: the times do not show a rate, or another one than stated.
    """
    found = mean_step(time)
    if coarse:
        full = _full(groups)
        steps = np.diff(groups.times, append=np.inf)[full]
        counts = groups.counts[full]
        # Rows are missing in a group with a pause shorter than a step of the coarse
        # clock.
        usual = float(np.median(counts)) if counts.size else 0.0
        whole = counts >= usual - max(1.0, _FEWER_ROWS * usual)
        rows = int(counts[whole].sum())
        found = float(steps[whole].sum()) / rows if rows else math.nan
    most = int(groups.counts.max())
    if rate is None:
        if not math.isfinite(found):
            raise ValueError(f"is the same in {most} rows")
        if found < _FASTEST_SPREAD:
            raise ValueError(f"is the same in up to {most} rows")
        period = found
        problem = None
    else:
        period = 1.0 / rate
        problem = differs_from_rate(found, rate) if coarse else None
    resolution = _resolution(groups)
    if coarse and resolution is not None and (most - 1) * period > _PAUSE * resolution:
        problem = problem or (
            f"has {most} rows within {resolution:.3g} s, more than {1.0 / period:.4g} Hz"
        )
    if problem is not None:
        raise ValueError(problem)
    return period


def _even_times(groups: _Groups, period: float, resolution: float) -> Array | None:
    """Even times that lie in the steps of a coarse clock.

    With a clock that rounds instead of truncating, all of them are half a step late.

    Args:
        groups: rows with the same time.
        period: time from row to row [s].
        resolution: step of the clock [s].

    Returns:
        Times [rows], s; None if no even times fit.
    """
    firsts = groups.starts - groups.starts[0]
    lasts = firsts + groups.counts - 1
    earliest = float((groups.times - period * firsts).max())
    latest = float((groups.times + resolution - period * lasts).min())
    if not earliest - latest <= _LOOSE_PERIODS * period:
        return None
    begin = earliest if math.isinf(latest) else 0.5 * (earliest + latest)
    return np.asarray(begin + period * np.arange(int(groups.counts.sum())))
