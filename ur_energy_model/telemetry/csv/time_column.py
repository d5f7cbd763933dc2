"""The time column of a CSV recording: unit, ISO 8601 dates, and order of the rows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np

from ur_energy_model.errors import RecordingError
from ur_energy_model.telemetry.plausibility import IMPOSSIBLE_SHARE
from ur_energy_model.typing import Array, Indices, Mask

_DATE = re.compile(
    r"(\d{4})[-/](\d{2})[-/](\d{2})[T ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?"
    r"\s*(Z|[+-]\d{2}:?\d{2})?",
    re.IGNORECASE,
)
_GUESSES = ((1e6, 1e-9, "ns"), (1e3, 1e-6, "us"), (2.0, 1e-3, "ms"))
"""Smallest median step of a clock in each unit: arms send 0.5 to 1000 samples/s."""
_MIXED_SHARE = 0.1
_SPIKE = 10.0
_FEW_RESTARTS = 3
_ROWS_PER_RESTART = 1000
_ROWS_BETWEEN_RESTARTS = 10


def is_date(text: str) -> bool:
    """Whether a cell is a date and time of ISO 8601."""
    return _DATE.fullmatch(text.strip().strip('"')) is not None


def date_seconds(text: str) -> float:
    """Seconds since 1970-01-01 UTC of an ISO 8601 date and time; without a zone it is UTC.

    Raises:
        ValueError: it is not one.
    """
    match = _DATE.fullmatch(text.strip().strip('"'))
    if match is None:
        raise ValueError(f"{text!r} is not a date and time")
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    utc = f"{year}-{month}-{day}T{hour}:{minute}:{second or '00'}+00:00"
    whole = datetime.fromisoformat(utc).timestamp()
    return whole + float(f"0.{fraction or 0}") - _offset(zone)


def time_zone(text: str) -> str | None:
    """Time zone of an ISO 8601 date and time, such as "+02:00"; None if it has none."""
    match = _DATE.fullmatch(text.strip().strip('"'))
    return None if match is None else match.group(8)


def _offset(zone: str | None) -> float:
    if zone is None or zone in "Zz":
        return 0.0
    hours, minutes = int(zone[1:3]), int(zone[-2:])
    return (1 if zone[0] == "+" else -1) * (3600.0 * hours + 60.0 * minutes)


def guessed_unit(time: Array) -> tuple[float, str]:
    """Seconds in the unit of a clock, and its name, from its median step.

    Steps of 2 or more that would be slower than one sample in two seconds are milliseconds, of
    1000 or more microseconds, of a million or more nanoseconds.
    """
    finite = time[np.isfinite(time)]
    steps = np.diff(finite)
    if np.count_nonzero(steps < 0) > _MIXED_SHARE * len(steps):
        steps = np.diff(np.sort(finite))
    steps = steps[steps > 0]
    middle = float(np.median(steps)) if steps.size else 0.0
    for least, factor, name in _GUESSES:
        if middle >= least:
            return factor, name
    return 1.0, "s"


@dataclass(frozen=True)
class RowOrder:
    """Which rows of a file to keep, and in which order, so that time increases.

    Attributes:
        keep: rows [n] to keep, False for single times far from their neighbours.
        order: row numbers in the order of time, None if they are in order already.
        restarts: number of backward steps that stay: the controller restarted.
    """

    keep: Mask
    order: Indices | None
    restarts: int


def row_order(path: Path, time: Array) -> RowOrder:
    """Order of rows by their times [n], s.

    A few backward steps of more than some samples are restarts of the controller and stay, unless
    the pieces between them continue each other in another order. Rows in any other order are
    reversed if that suffices, or else sorted if no time repeats.

    Raises:
        RecordingError: out of order with repeated times, so that the true order is unknown.
    """
    keep = _without_fragments(time)
    kept = time[keep]
    steps = np.diff(kept)
    back = steps < 0
    count = int(np.count_nonzero(back))
    if count == 0:
        return RowOrder(keep, None, 0)
    forward = steps[steps > 0]
    period = float(np.median(forward)) if forward.size else 1.0
    few = min(_FEW_RESTARTS + len(kept) / _ROWS_PER_RESTART, len(kept) / _ROWS_BETWEEN_RESTARTS)
    restarts = count <= few and (steps[back] < -_SPIKE * period).all()
    if restarts and not _pieces_of_one_clock(kept, back, period):
        return RowOrder(keep, None, count)
    rows = np.flatnonzero(keep)
    if (steps <= 0).all():
        return RowOrder(keep, rows[::-1], 0)
    if len(np.unique(kept)) < len(kept):
        raise RecordingError(
            path,
            f"has its rows out of order ({count} of {len(steps)} steps go back in time), and "
            "times repeat, so that sorting cannot correct it",
            "export the rows in the order of time",
            field="timestamp",
        )
    return RowOrder(keep, rows[np.argsort(kept)], 0)


def _pieces_of_one_clock(time: Array, back: Mask, period: float) -> bool:
    """Whether a piece of the rows begins where another one ends that is not in front of it.

    Args:
        time: of the rows [n], s.
        back: where the time goes back [n - 1].
        period: of the samples [s].
    """
    cuts = np.flatnonzero(back)
    starts = time[np.concatenate([[0], cuts + 1])]
    ends = time[np.concatenate([cuts, [len(time) - 1]])]
    steps = starts[:, None] - ends[None, :]
    return bool(((steps > 0.5 * period) & (steps < 2.5 * period)).any())


def _without_fragments(time: Array) -> Mask:
    """Rows [n] to keep, without short fragments of damaged rows with arbitrary times.

    A fragment is shorter than ten rows and lies between two jumps of the time, one of them
    backward; fragments are removed if they are at most one row in a hundred.
    """
    keep = np.isfinite(time)
    rows = np.flatnonzero(keep)
    steps = np.diff(time[rows])
    back = steps < 0
    if not back.any():
        return keep
    sizes = np.abs(steps[steps != 0])
    jump = back | (steps > _SPIKE * np.median(sizes))
    edges = np.concatenate([[0], np.flatnonzero(jump) + 1, [len(rows)]])
    goes_back = np.concatenate([[False], back[edges[1:-1] - 1], [False]])
    length = np.diff(edges)
    short = (length < _ROWS_BETWEEN_RESTARTS) & (goes_back[:-1] | goes_back[1:])
    if length[short].sum() <= max(1.0, IMPOSSIBLE_SHARE * len(rows)):
        keep[rows[np.repeat(short, length)]] = False
    return keep
