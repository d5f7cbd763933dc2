"""Lines of a CSV recording in bounded memory and time: cells, dates, and the order of rows."""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from io import TextIOWrapper
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

import numpy as np

from ur_energy_model.errors import RecordingError
from ur_energy_model.files import Budget, open_regular
from ur_energy_model.telemetry.plausibility import IMPOSSIBLE_SHARE
from ur_energy_model.typing import Array, Mask

MAX_LINE = 1 << 20  # longest line in characters
MAX_TEXT = 16 << 30
"""Largest unpacked size in characters: some hours of all that an arm sends at 500 Hz."""
MAX_RATIO, _FREE = 200, 8 << 20
"""Largest ratio of unpacked to packed size of files beyond the free size (3 to 10 is usual)."""
MAX_LINES = 6_000_000  # largest number of lines: more than three hours at 500 Hz


def lines_of(path: Path) -> Iterator[tuple[int, str]]:
    """Number (from 1) and text of each line that is not blank, of a plain or gzipped file.

    RecordingError: it cannot be read, is not text, or is beyond the budget.
    """
    try:
        with open_regular(path) as raw:
            zipped = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            volume = min(MAX_TEXT, max(_FREE, MAX_RATIO * path.stat().st_size))
            budget = Budget(path, RecordingError, volume, 0, MAX_LINES)
            file = cast("BinaryIO", gzip.GzipFile(fileobj=raw)) if zipped else raw
            number = 0
            with TextIOWrapper(file, encoding="utf-8-sig", errors="replace") as text:
                while line := text.readline(MAX_LINE):
                    number += 1
                    budget.spend(volume=len(line), items=1)
                    if len(line) == MAX_LINE:
                        problem = "has a line of a million characters"
                        raise RecordingError(path, problem, "name a CSV recording")
                    if number == 1 and "\0" in line:
                        raise RecordingError(path, "is not text", "name a CSV recording")
                    if not line.isspace():
                        yield number, line
    except OSError as error:
        problem = f"cannot be read ({error.strerror or error})"
        raise RecordingError(path, problem, "check the path") from None
    except (EOFError, zlib.error):
        problem = "ends in the middle of its gzip data"
        raise RecordingError(path, problem, "copy it again") from None


# Columns and numbers of a line.


class Dialect(NamedTuple):
    """How a file separates columns (None: white space), and whether it has decimal commas."""

    delimiter: str | None
    decimal_comma: bool = False

    def cells(self, line: str) -> list[str]:
        """Texts of a line's columns, without blanks and quotes around them."""
        if '"' in line:
            with suppress(csv.Error):  # no table: some hundred thousand characters in one cell
                row = next(csv.reader([line.strip()], delimiter=self.delimiter or " "), [])
                return [cell.strip() for cell in row if cell or self.delimiter]
        return [cell.strip() for cell in line.rstrip("\r\n").split(self.delimiter)]

    def columns(self, line: str) -> list[str]:
        """Cells of a line, without the empty one that a delimiter at its end makes."""
        cells = self.cells(line)
        return cells[:-1] if self.delimiter and len(cells) > 1 and not cells[-1] else cells

    def count(self, line: str) -> int:
        """Number of cells of a line."""
        if self.delimiter is None or '"' in line:
            return len(self.cells(line))
        return line.count(self.delimiter) + 1

    def number(self, cell: str) -> float | None:
        """A cell as a number, NaN and infinity included; None if it is not one."""
        try:
            return float(cell.replace(",", ".", 1) if self.decimal_comma else cell)
        except ValueError:
            return None

    def names_columns(self, line: str) -> bool:
        """Whether a first line names columns; in a row of data most cells are numbers or dates."""
        cells = self.cells(line)
        values = sum(self.number(cell) is not None or bool(date_match(cell)) for cell in cells)
        return not is_numbering(cells) and (2 * values < len(cells) or values == 0)


def is_numbering(cells: Sequence[str]) -> bool:
    """Whether a first line numbers columns without names: 0, 1, 2, ...; two may be data."""
    return len(cells) > 2 and [*cells] == [str(i) for i in range(len(cells))]


def find_dialect(lines: Sequence[str]) -> Dialect:
    """How a file separates columns and writes decimals, from its first lines.

    Semicolons and tabs have precedence over commas, which may be decimal commas; between two
    blanks, `1,5` is a decimal comma.
    """
    first = lines[0] if lines else ""
    for mark in (";", "\t"):
        if first and all(mark in line for line in lines if line.strip()):
            return Dialect(mark, _with_decimal_commas(lines, mark))
    if "," in first and not _with_decimal_commas([first], None):
        return Dialect(",")
    return Dialect(None, _with_decimal_commas(lines, None))


def _with_decimal_commas(lines: Sequence[str], delimiter: str | None) -> bool:
    """Whether some line has numbers such as 1,5 and none with a decimal point."""
    rows = (line.split(delimiter) for line in lines)
    marks = (
        {found[1] for cell in cells if (found := _DECIMAL.fullmatch(cell.strip('" \t\r\n')))}
        for cells in rows
        if delimiter is not None or len(cells) > 1
    )
    return {","} in marks


_DECIMAL = re.compile(r"[+-]?\d+([.,])\d+(?:e[+-]?\d+)?", re.IGNORECASE)


# The time column: ISO 8601 dates, and the unit of numbers.

_DATE = re.compile(
    r"(\d{4})[-/](\d{2})[-/](\d{2})[T ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?"
    r"\s*(?P<zone>Z|[+-]\d{2}:?\d{2})?",
    re.IGNORECASE,
)
_GUESSES = ((1e6, 1e-9, "ns"), (1e3, 1e-6, "us"), (2.0, 1e-3, "ms"))
"""Smallest median step of a clock in each unit: arms send 0.5 to 1000 samples/s."""
_MIXED_SHARE = 0.1


def date_match(text: str) -> re.Match[str] | None:
    """An ISO 8601 date and time, with its `zone` if it has one; None for any other text."""
    return _DATE.fullmatch(text.strip().strip('"'))


def date_seconds(text: str) -> float:
    """Seconds since 1970-01-01 UTC of an ISO 8601 date and time; without a zone it is UTC.

    ValueError: it is not one.
    """
    match = date_match(text)
    if match is None:
        raise ValueError(f"{text!r} is not a date and time")
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    zone = "+0000" if zone is None or zone in "Zz" else zone.replace(":", "")
    whole = f"{year}-{month}-{day}T{hour}:{minute}:{second or '00'}{zone[:3]}:{zone[3:]}"
    return datetime.fromisoformat(whole).timestamp() + float(f"0.{fraction or 0}")


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
    fitting = ((factor, name) for least, factor, name in _GUESSES if middle >= least)
    return next(fitting, (1.0, "s"))


# The order of rows.

_SPIKE = 10.0
_FEW_RESTARTS = 3
_ROWS_PER_RESTART = 1000
_ROWS_BETWEEN_RESTARTS = 10


def row_order(path: Path, time: Array) -> tuple[Mask, bool, int]:
    """Rows of times [n], s or NaN, to keep; whether to sort them; and the number of backward steps.

    A few backward steps of more than some samples are restarts of the controller and stay, unless
    the pieces between them continue each other in another order. Rows in any other order are
    sorted, if they are in reverse order or no time repeats: otherwise (RecordingError) the true
    order is unknown. Fragments of damaged rows are left out if they are at most one row in a
    hundred: fewer than ten rows between two jumps of the time, one of them backward.
    """
    keep = np.isfinite(time)
    rows = np.flatnonzero(keep)
    steps = np.diff(time[rows])
    back = steps < 0
    if back.any():
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
    few = min(_FEW_RESTARTS + len(kept) / _ROWS_PER_RESTART, len(kept) / _ROWS_BETWEEN_RESTARTS)
    if count <= few and (steps[back] < -_SPIKE * period).all():
        cuts = np.flatnonzero(back)
        starts, ends = kept[np.append(0, cuts + 1)], kept[np.append(cuts, len(kept) - 1)]
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
