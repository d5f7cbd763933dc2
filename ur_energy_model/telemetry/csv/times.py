# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The time column of a CSV recording: dates, the unit of numbers, order of rows, coarse times."""

from __future__ import annotations

import math
import re
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.errors import RecordingError
from ur_energy_model.telemetry.plausibility import IMPOSSIBLE_SHARE
from ur_energy_model.telemetry.samples import run_starts, slices_between
from ur_energy_model.telemetry.time_scale import TimeScale
from ur_energy_model.typing import Array, Indices, Mask

# Dates.

_DATE = re.compile(
    r"(?P<year>\d{4})(?P<dash>[-/]?)(?P<month>\d{2})(?P=dash)(?P<day>\d{2})[T ]"
    r"(?P<hour>\d{2})(?P<colon>:?)(?P<minute>\d{2})"
    r"(?:(?P=colon)(?P<second>\d{2})(?:[.,](?P<fraction>\d{1,9}))?)?"
    r"\s*(?P<zone>Z|UTC|[+-]\d{2}(?::?\d{2})?)?",
    re.IGNORECASE,
)
_CLOCK = re.compile(
    r"(?P<hour>\d{1,2}):(?P<minute>\d{2}):(?P<second>\d{2})(?:[.,](?P<fraction>\d{1,9}))?"
)
_LIKE_A_DATE = re.compile(
    r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}(?:[T ,]+\d{1,2}:.*)?"
    r"|.*\d{1,2}:\d{2}.*|\d{1,2}[-. ][A-Za-z]{3,}[-. ]\d{2,4}.*",
    re.DOTALL,
)
_UTC = ("z", "utc")
_DAY = 86_400.0
ISO_EXAMPLE = "2024-03-31T13:59:58.020+02:00"


def date_match(text: str) -> re.Match[str] | None:
    """An ISO 8601 date and time, with its `zone` if it has one; None for any other text."""
    return _DATE.fullmatch(text.strip().strip('"'))


def clock_match(text: str) -> re.Match[str] | None:
    """A time of day, hh:mm:ss; None for any other text."""
    return _CLOCK.fullmatch(text.strip().strip('"'))


def looks_like_date(text: str) -> bool:
    """Whether a text is a date or time in any usual form, also one that is not read."""
    return _LIKE_A_DATE.fullmatch(text.strip().strip('"')) is not None


def date_seconds(text: str) -> float:
    """Seconds of an ISO 8601 date and time, or of a time of day.

    Dates count from 1970-01-01 UTC; without a zone they are UTC. Times of day count from
    midnight.

    Raises:
        ValueError: the text is neither.
    """
    match = date_match(text)
    if match is None:
        return _day_seconds(text)
    names = ("year", "month", "day", "hour", "minute")
    year, month, day, hour, minute = (int(match[name]) for name in names)
    second = int(match["second"] or 0)
    fraction = float(f"0.{match['fraction'] or 0}")
    moment = datetime(year, month, day, hour, minute, second, tzinfo=timezone.utc)
    return moment.timestamp() - _zone_seconds(match["zone"] or "Z") + fraction


def _zone_seconds(zone: str) -> float:
    """Seconds that the clocks of a zone, such as +02:00, +0200, +02 or Z, are ahead of UTC."""
    if zone.lower() in _UTC:
        return 0.0
    digits = zone[1:].replace(":", "")
    seconds = 3600.0 * int(digits[:2]) + 60.0 * int(digits[2:] or 0)
    return -seconds if zone.startswith("-") else seconds


def _day_seconds(text: str) -> float:
    """Seconds from midnight of a time of day; ValueError for any other text."""
    match = clock_match(text)
    if match is None:
        raise ValueError(f"{text!r} is not a date and time")
    minutes = 60 * int(match["hour"]) + int(match["minute"])
    seconds = 60 * minutes + int(match["second"])
    return seconds + float(f"0.{match['fraction'] or 0}")


def over_midnight(time: Array) -> Array:
    """Times of day [n], s, of consecutive rows, those after each midnight a day later."""
    finite = np.isfinite(time)
    steps = np.diff(time[finite], prepend=time[finite][:1])
    days = np.cumsum(steps < -0.5 * _DAY)
    out: Array = time.copy()
    out[finite] += _DAY * days
    return out


# The unit of numbers: stated, or by magnitude, steps and name, or by the arm's motion.

DATE = "date"  # in place of a unit, of times that are dates
ONLY_UNIT = "by its steps"  # why most times are in seconds
UNITS = {
    "s": 1.0,
    "ms": 1e-3,
    "us": 1e-6,
    "ns": 1e-9,
    "min": 60.0,
    "h": 3600.0,
    "d": _DAY,
}
"""Units of time that columns may count in, and their seconds."""
_SUBUNITS = ("s", "ms", "us", "ns")  # each a thousandth of the one before
FASTEST = 0.9e-3  # shortest period of samples [s]: arms send up to 1000 a second
SLOWEST = 0.9
"""Longest period of samples [s] of loggers that need no unit to be recognised: one a second."""
# longest period at which a column of RTDE's name is taken for RTDE's unit [s]
_SLOWEST_RTDE = 60.0
_SLOWEST_ASKED = 3600.0  # longest period that a question about the unit names [s]
_EPOCH = 9e8, 4.5e9
"""Seconds since 1970 of the years 1998 to 2112, and since 1904 of those from 1932 on."""
_DAY_NUMBERS = ((2e4, 8e4, 25_569.0), (7e5, 8e5, 719_529.0))
"""Lowest and highest numbers of days since 1900 (Excel: 1954 to 2119) and since the year 0 (Matlab:
1916 to 2190), and the number of 1970-01-01."""
_ENOUGH_ROWS = 1_000_000  # rows from which the mean step is taken
_OUTLIER = 10.0  # steps of more than so many typical ones are pauses
_MIXED_SHARE = 0.1  # share of backward steps from which rows are not in the order of time
_TOO_FAST_SHARE = 0.05
"""Largest share of steps at which positions may jump faster than an arm can move."""


class TimeColumn(NamedTuple):
    """The time of a recording as it was read, and why so.

    `column` is the name in the file, None with a stated rate; `unit` a key of UNITS, or
    DATE; `resolution` [s] that of coarse times whose rows were spread, None where times
    are as recorded; `spread` is the number of these rows.
    """

    column: str | None
    unit: str
    reason: str
    resolution: float | None = None
    spread: int = 0

    @property
    def words(self) -> str:
        """The time in words, for people."""
        if self.column is None:
            return self.reason
        spread = f", {self.spread} equal times spread" if self.spread else ""
        return f"{self.column} in {self.unit} ({self.reason}){spread}"


def mean_step(time: Array) -> float:
    """Mean step from row to row of a clock [n], equal times included, without pauses.

    Steps of more than ten typical ones are pauses. The mean is that of the rate also
    where times are rounded, or come in bursts. Rows may be in any order. The first
    million of them decide. NaN if all times are equal.
    """
    times = time[:_ENOUGH_ROWS]
    times = times[np.isfinite(times)]
    steps = np.diff(times)
    if np.count_nonzero(steps < 0.0) > _MIXED_SHARE * np.count_nonzero(steps):
        steps = np.diff(np.sort(times))
    forward = steps[steps > 0.0]
    if not forward.size:
        return math.nan
    used = steps[(steps >= 0.0) & (steps <= _OUTLIER * np.median(forward))]
    return float(used.mean())


class TimeUnitEvidence(NamedTuple):
    """What the samples show about the unit of time: in steps of the clock as written.

    `scale` is the time scale of positions and speeds; `fastest` the speed that most steps
    of the positions stay below, rad per unit of the column, NaN without positions;
    `limit` the highest possible speed of a joint [rad/s].
    """

    scale: TimeScale | None
    fastest: float
    limit: float

    def allows(self, seconds: float) -> bool:
        """Whether the motion is possible if the column counts in units of so many seconds."""
        if self.scale is not None and self.scale.is_evidence:
            return self.scale.allows(seconds)
        return not self.fastest / seconds > self.limit


def fastest_speed(time: Array, positions: Array) -> float:
    """Speed that all but a few of the steps with motion stay below, rad per unit of `time`.

    Args:
        time: [n], in any unit; rows whose time does not advance do not count.
        positions: of joints [n, k], rad.
    """
    steps = np.diff(time)
    moved = np.abs(np.diff(positions, axis=0)).max(axis=1, initial=0.0)
    usable = (steps > 0.0) & (moved > 0.0) & np.isfinite(moved)
    if not usable.any():
        return math.nan
    with np.errstate(over="ignore"):
        speeds = np.sort(moved[usable] / steps[usable])
    return float(speeds[int((1.0 - _TOO_FAST_SHARE) * (len(speeds) - 1))])


def unit_by_numbers(time: Array) -> tuple[str, str] | None:
    """Unit of a column's numbers, and why; None where they leave several.

    `time` are the numbers of the rows as written [n].
    """
    step = mean_step(time)
    start = _magnitude(time)
    epoch = _unit_since_epoch(start, step)
    if math.isnan(step):
        return epoch or "s", "the time does not advance"
    if epoch is not None and step * UNITS[epoch] < SLOWEST:
        return epoch, "by its magnitude, that of a date"
    if step < FASTEST and first_day(time) is not None:
        return "d", "by its magnitude, that of days of Excel or Matlab"
    if FASTEST <= step < SLOWEST and epoch is None:
        return "s", ONLY_UNIT
    return None


def unit_by_name(name: str, time: Array) -> tuple[str, str] | None:
    """Unit of a column that numbers alone leave open, by its name or a likely date."""
    step = mean_step(time)
    start = _magnitude(time)
    epoch = _unit_since_epoch(start, step)
    if epoch is not None:
        return epoch, "by its magnitude, that of a date"
    if name.strip().lower() == "timestamp" and SLOWEST <= step <= _SLOWEST_RTDE:
        return "s", "as RTDE's timestamp"
    return None


def unit_by_motion(motion: TimeUnitEvidence) -> tuple[str, str] | None:
    """Unit of time by which positions and speeds of the joints agree; None if several remain."""
    possible = [unit for unit, seconds in UNITS.items() if motion.allows(seconds)]
    likely = [unit for unit in possible if unit in _SUBUNITS]
    found = likely if len(likely) == 1 else possible
    if len(found) != 1 or len(found) == len(UNITS):
        return None
    return found[0], "by positions and speeds"


def possible_units(time: Array, motion: TimeUnitEvidence) -> list[str]:
    """Units in which numbers of a clock and motion are possible, for a question to users."""
    step = mean_step(time)
    names = _SUBUNITS if step >= FASTEST else tuple(UNITS)
    usual = [name for name in names if FASTEST <= step * UNITS[name] <= _SLOWEST_ASKED]
    return [name for name in usual if motion.allows(UNITS[name])] or usual or [*UNITS]


def _magnitude(time: Array) -> float:
    """Median magnitude of the finite numbers of a clock [n]; NaN if there are none."""
    finite = np.abs(time[np.isfinite(time)])
    return float(np.median(finite)) if finite.size else math.nan


def _unit_since_epoch(start: float, step: float) -> str | None:
    """The unit in which numbers are a present date since 1970 or 1904; None if there is none."""
    low, high = _EPOCH
    for unit in _SUBUNITS:
        seconds = UNITS[unit]
        if low <= start * seconds <= high and not step * seconds < FASTEST:
            return unit
    return None


def first_day(time: Array) -> float | None:
    """The number of 1970-01-01 in a clock [n] that counts days as Excel or Matlab; else None."""
    start = _magnitude(time)
    found = [epoch for low, high, epoch in _DAY_NUMBERS if low <= start <= high]
    return found[0] if found else None


# The order of rows.

_SPIKE = 10.0
_FEW_RESTARTS = 3
_ROWS_PER_RESTART = 1000
_ROWS_BETWEEN_RESTARTS = 10


def row_order(path: Path, time: Array) -> tuple[Mask, bool, int]:
    """Rows of times [n], s or NaN, to keep; whether to sort them; and the number of backward steps.

    A few backward steps of more than some samples are restarts of the controller and
    stay, unless the pieces between them continue each other in another order. Rows in any
    other order are sorted, if they are in reverse order or no time repeats: otherwise
    (RecordingError) the true order is unknown. Fragments of damaged rows are left out if
    they are at most one row in a hundred: fewer than ten rows between two jumps of the
    time, one of them backward.
    """
    keep = np.isfinite(time)
    steps = np.diff(time if keep.all() else time[keep])
    back = steps < 0
    if not back.any():
        return keep, False, 0
    rows = np.flatnonzero(keep)
    jump = back | (steps > _SPIKE * np.median(np.abs(steps[steps != 0])))
    edges = np.concatenate([[0], np.flatnonzero(jump) + 1, [len(rows)]])
    goes_back = np.concatenate([[False], back[edges[1:-1] - 1], [False]])
    length = np.diff(edges)
    short = (length < _ROWS_BETWEEN_RESTARTS) & (goes_back[:-1] | goes_back[1:])
    if length[short].sum() <= max(1.0, IMPOSSIBLE_SHARE * len(rows)):
        keep[rows[np.repeat(short, length)]] = False
    kept = time[keep]
    steps = np.diff(kept)
    back = steps < 0
    count = int(np.count_nonzero(back))
    if count == 0:
        return keep, False, 0
    forward = steps[steps > 0]
    period = float(np.median(forward)) if forward.size else 1.0
    few = min(
        _FEW_RESTARTS + len(kept) / _ROWS_PER_RESTART, len(kept) / _ROWS_BETWEEN_RESTARTS
    )
    if count <= few and (steps[back] < -_SPIKE * period).all():
        cuts = np.flatnonzero(back)
        starts = kept[np.append(0, cuts + 1)]
        ends = kept[np.append(cuts, len(kept) - 1)]
        joins = (starts[:, None] - ends) / period
        if not ((joins > 0.5) & (joins < 2.5)).any():  # no piece continues another one
            return keep, False, count
    if (steps > 0).any() and len(np.unique(kept)) < len(kept):
        raise RecordingError(
            path,
            f"has its rows out of order ({count} of {len(steps)} steps go back in time), and "
            "times repeat, so that sorting cannot correct it",
            "export the rows in the order of time",
            field="timestamp",
        )
    return keep, True, 0


# Coarse times: distinct rows with the same time. Times in whole seconds, tenths of a
# second, or as 32-bit floats are equal for many samples in a row. The rows of each such
# group lie in one step of the coarse clock. Where all groups fit even times, they get
# these; else the rows of each group are spread over the time to the next group. A pause
# stays a pause.

# shortest period of spread rows [s]; no arm sends more than 1000 a second
_FASTEST_SPREAD = 0.4e-3
# share of rows in groups of distinct ones from which a clock is coarse
_COARSE_SHARE = 0.1
_PAUSE = 1.5  # longest step of a coarse clock without a pause, in its usual steps
# largest relative difference between a stated rate and that of the clock
_SAME_RATE = 0.05
_FEWER_ROWS = 0.05  # share of its usual rows that a full group of a coarse clock may lack
_LOOSE_PERIODS = 2.0
"""Periods by which groups may miss even times: the first and the last row of the whole file decide
the rate, each within a period."""


_ROWS_TOGETHER = 100_000  # rows that are compared at once, to bound the memory


class SpreadTimes(NamedTuple):
    """Times of rows of which some had the same time as the row before.

    Attributes:
        time: of the rows [n], s.
        resolution: of a coarse clock [s]; None for any other clock.
        changed: number of rows whose time was changed.
    """

    time: Array
    resolution: float | None
    changed: int


class _Groups(NamedTuple):
    """Runs of rows with the same time: their first rows [k], numbers of rows [k], times [k], s."""

    starts: Indices
    counts: Indices
    times: Array


def _groups(time: Array) -> _Groups:
    starts = run_starts(time)
    return _Groups(starts, np.diff(starts, append=len(time)), time[starts])


def first_of_equals(time: Array, contents: NDArray[np.int64]) -> Indices:
    """For each row [n] the first row in its run of equal times that has the same contents.

    Args:
        time: of rows in order [n].
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
        time: of rows in order [n], s; steps back are restarts of the controller.
        first: for each row the first one with the same time and values [n], see
            `first_of_equals`. A repetition keeps the time of the first one, unless the
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
    """Times [n], s, of rows whose times [n] do not go back, but may be equal."""
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
    out = out if (np.diff(out) > 0.0).all() else local
    # none is before the first time
    return np.asarray(out + max(0.0, float(time[0] - out[0])))


def _spread_within(rows: int, groups: _Groups, steps: Array) -> Array:
    """Times [rows], s, that begin with that of each group and advance by its step [k], s."""
    out = np.arange(rows, dtype=np.float64)
    out -= np.repeat(groups.starts, groups.counts)
    out *= np.repeat(steps, groups.counts)
    out += np.repeat(groups.times, groups.counts)
    return out


def _period(time: Array, groups: _Groups, rate: float | None, *, coarse: bool) -> float:
    """Time from row to row [s], from the full groups of a coarse clock or as stated."""
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
    """Even times [rows], s, that lie in the steps of the coarse clock; None if there are none.

    With rounding in place of truncation they are half a step late, all of them.
    """
    firsts = groups.starts - groups.starts[0]
    lasts = firsts + groups.counts - 1
    earliest = float((groups.times - period * firsts).max())
    latest = float((groups.times + resolution - period * lasts).min())
    if not earliest - latest <= _LOOSE_PERIODS * period:
        return None
    begin = earliest if math.isinf(latest) else 0.5 * (earliest + latest)
    return np.asarray(begin + period * np.arange(int(groups.counts.sum())))
