# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The time column of a CSV recording: dates, the unit of numbers, the order of rows."""

from __future__ import annotations

import math
import re
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ur_energy_model.errors import RecordingError
from ur_energy_model.telemetry.plausibility import IMPOSSIBLE_SHARE
from ur_energy_model.telemetry.time_scale import TimeScale
from ur_energy_model.typing import Array, Mask

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

    Args:
        text: such as ISO_EXAMPLE or 13:59:58.02.

    Returns:
        Seconds from 1970-01-01 UTC of a date, which is UTC without a zone; seconds from
        midnight of a time of day.

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
    """Times of day [n], s, of consecutive rows, to which each midnight adds a day."""
    finite = np.isfinite(time)
    steps = np.diff(time[finite], prepend=time[finite][:1])
    days = np.cumsum(steps < -0.5 * _DAY)
    out: Array = time.copy()
    out[finite] += _DAY * days
    return out


# The unit of numbers: stated, or by magnitude, steps and name, or by the arm's motion.

DATE = "date"  # word in place of a unit, for times that are dates
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
"""Lowest and highest number of a day, and the number of 1970-01-01: of days since 1900 (Excel: 1954
to 2119), and of days since the year 0 (Matlab: 1916 to 2190)."""
_ENOUGH_ROWS = 1_000_000  # rows from which the mean step is taken
_OUTLIER = 10.0  # steps of more than so many typical ones are pauses
_MIXED_SHARE = 0.1  # share of backward steps from which rows are not in the order of time
_TOO_FAST_SHARE = 0.05
"""Largest share of steps at which positions may jump faster than an arm can move."""


class TimeColumn(NamedTuple):
    """The time of a recording as it was read, and why so.

    Attributes:
        column: name in the file; None with a stated rate.
        unit: a key of UNITS, or DATE.
        reason: how the unit was found, for people.
        resolution: step of coarse times whose rows were spread [s]; None where times are
            as recorded.
        spread: number of rows that were spread.
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
    """Mean step from row to row of a clock, equal times included, without pauses.

    Steps of more than ten typical ones are pauses. The mean step fits the rate also where
    times are rounded, or come in bursts.

    Args:
        time: times of rows in any order [n], in any unit; the first million decide.

    Returns:
        The mean step, in the unit of the times; NaN if all times are equal.
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
    """Evidence from the motion of the joints for the unit of the times of a file.

    Attributes:
        scale: time scale of positions and speeds; None without motion.
        fastest: speed that most steps of the positions stay below [rad per unit of the
            column]; NaN without positions.
        limit: highest possible speed of a joint [rad/s].
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
        time: times of the rows [n], in any unit; rows whose time does not advance do not
            count.
        positions: joint positions [n, k], rad.
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
    """Unit of a column of times by its numbers alone.

    Args:
        time: numbers of the rows as written [n].

    Returns:
        A key of UNITS, and the reason; None where several units are possible.
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
    """Unit of a column whose numbers alone leave several, by its name or a likely date.

    Args:
        name: name of the column.
        time: numbers of the rows as written [n].

    Returns:
        A key of UNITS, and the reason; None where several units are possible.
    """
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
    """Units in which the numbers of a clock [n] and the motion are possible, for a question."""
    step = mean_step(time)
    names = _SUBUNITS if step >= FASTEST else tuple(UNITS)
    usual = [name for name in names if FASTEST <= step * UNITS[name] <= _SLOWEST_ASKED]
    allowed = [name for name in usual if motion.allows(UNITS[name])]
    return allowed or usual or list(UNITS)


def _magnitude(time: Array) -> float:
    """Median magnitude of the finite numbers of a clock [n]; NaN if there are none."""
    finite = np.abs(time[np.isfinite(time)])
    return float(np.median(finite)) if finite.size else math.nan


def _unit_since_epoch(start: float, step: float) -> str | None:
    """The unit in which numbers are a present date since 1970 or 1904.

    Args:
        start: median of the numbers.
        step: mean step from row to row.

    Returns:
        A key of UNITS; None if the numbers are no such date.
    """
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

_SPIKE = 10.0  # steps of more than so many typical ones are jumps
_FEW_RESTARTS = 3  # number of restarts that any file may have
_ROWS_PER_RESTART = 1000  # rows for which a long file may have one more
_ROWS_BETWEEN_RESTARTS = 10  # fewest rows between two restarts
_CONTINUES = (0.5, 2.5)
"""Step from the end of one piece of rows to the start of another that continues it, in sample
periods: from a sample recorded early to one that is missing."""


def row_order(path: Path, time: Array) -> tuple[Mask, bool, int]:
    """Decide which rows of a file are kept, and whether they are sorted.

    A few backward steps of more than some samples are restarts of the controller and
    stay, unless the pieces between them continue each other in another order. Rows in any
    other order are sorted, if they are in reverse order or no time repeats: otherwise the
    true order is unknown. Fragments of damaged rows are left out if they are at most one
    row in a hundred: fewer than ten rows between two jumps of the time, one of them
    backward.

    Args:
        path: path of the file, for errors.
        time: times of the rows [n], s, or NaN.

    Returns:
        Which rows are kept [n], whether they are to be sorted, and the number of
        restarts.

    Raises:
        RecordingError: the rows are out of order, and the true order is unknown.
    """
    keep = np.isfinite(time)
    finite = time if keep.all() else time[keep]
    if not (np.diff(finite) < 0).any():
        return keep, False, 0
    fragments = _fragments(finite)
    if np.count_nonzero(fragments) <= max(1.0, IMPOSSIBLE_SHARE * len(finite)):
        keep[np.flatnonzero(keep)[fragments]] = False
    kept = time[keep]
    steps = np.diff(kept)
    count = int(np.count_nonzero(steps < 0))
    if count == 0:
        return keep, False, 0
    if _are_restarts(kept):
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


def _fragments(time: Array) -> Mask:
    """Rows in short pieces between two jumps of the time, of which one goes back.

    Args:
        time: times of the rows [n], s; some steps go back.
    """
    steps = np.diff(time)
    back = steps < 0
    jump = back | (steps > _SPIKE * np.median(np.abs(steps[steps != 0])))
    edges = np.concatenate([[0], np.flatnonzero(jump) + 1, [len(time)]])
    goes_back = np.concatenate([[False], back[edges[1:-1] - 1], [False]])  # at each edge
    lengths = np.diff(edges)
    is_beside_step_back = goes_back[:-1] | goes_back[1:]
    is_short = (lengths < _ROWS_BETWEEN_RESTARTS) & is_beside_step_back
    fragments: Mask = np.repeat(is_short, lengths)
    return fragments


def _are_restarts(time: Array) -> bool:
    """Whether all steps back are restarts of the controller, see `row_order`.

    Args:
        time: times of the rows [n], s; some steps go back.
    """
    steps = np.diff(time)
    back = np.flatnonzero(steps < 0)
    forward = steps[steps > 0]
    period = float(np.median(forward)) if forward.size else 1.0
    most = min(
        _FEW_RESTARTS + len(time) / _ROWS_PER_RESTART, len(time) / _ROWS_BETWEEN_RESTARTS
    )
    if len(back) > most or not (steps[back] < -_SPIKE * period).all():
        return False
    starts = time[np.append(0, back + 1)]
    ends = time[np.append(back, len(time) - 1)]
    joins = (starts[:, None] - ends) / period  # periods from each end to each start
    low, high = _CONTINUES
    return not ((joins > low) & (joins < high)).any()
