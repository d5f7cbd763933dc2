"""Lines and rows of a CSV recording, in bounded memory and time, and its time column."""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from io import TextIOWrapper
from pathlib import Path
from typing import BinaryIO, TextIO, cast

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.errors import RecordingError
from ur_energy_model.files import Budget, open_regular
from ur_energy_model.telemetry.plausibility import IMPOSSIBLE_SHARE
from ur_energy_model.typing import Array, Indices, Mask

MAX_LINE = 1 << 20
"""Longest line in characters."""
MAX_TEXT = 16 << 30
"""Largest unpacked size in characters: some hours of all that an arm sends at 500 Hz."""
MAX_RATIO, _FREE = 200, 8 << 20
"""Largest ratio of unpacked to packed size of files beyond the free size (3 to 10 is usual)."""
MAX_LINES = 6_000_000
"""Largest number of lines: more than three hours at 500 Hz."""
_HEAD_CHARACTERS = 4 << 20
_DECIMAL_POINT = re.compile(r'\s*"?[+-]?\d+\.\d+(e[+-]?\d+)?"?\s*', re.IGNORECASE)
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+(e[+-]?\d+)?\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Dialect:
    """How a file separates columns and writes decimals.

    Attributes:
        delimiter: between columns; None stands for white space.
        decimal_comma: numbers have a comma where others have a point.
    """

    delimiter: str | None
    decimal_comma: bool = False

    def cells(self, line: str) -> list[str]:
        """Texts of a line's columns, without blanks and quotes around them."""
        if '"' in line:
            try:
                row = next(csv.reader([line.strip()], delimiter=self.delimiter or " "), [])
                return [cell.strip() for cell in row if cell or self.delimiter]
            except csv.Error:
                pass  # no table: some hundred thousand characters in one cell
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

    def number(self, text: str) -> float:
        """A cell as a number.

        Raises:
            ValueError: it is not one.
        """
        return float(text.replace(",", ".", 1) if self.decimal_comma else text)

    def numeric(self, text: str) -> bool:
        """Whether a cell is a number, NaN and infinity included."""
        try:
            self.number(text)
        except ValueError:
            return False
        return True


def find_dialect(lines: Sequence[str]) -> Dialect:
    """How a file separates columns and writes decimals, from its first lines.

    Semicolons and tabs have precedence over commas, which may be decimal commas; between two
    blanks, `1,5` is a decimal comma.
    """
    first = lines[0] if lines else ""
    for mark in (";", "\t"):
        if all(mark in line for line in lines if line.strip()) and first:
            return Dialect(mark, _with_decimal_commas(lines, mark))
    if "," in first and not _with_decimal_commas([first], None):
        return Dialect(",")
    return Dialect(None, _with_decimal_commas(lines, None))


def _with_decimal_commas(lines: Sequence[str], delimiter: str | None) -> bool:
    """Whether some line has numbers such as 1,5 and none with a decimal point."""
    for line in lines:
        cells = line.split(delimiter)
        if delimiter is None and len(cells) < 2:
            continue
        with_comma = sum(_DECIMAL_COMMA.fullmatch(cell.strip('" ')) is not None for cell in cells)
        if with_comma and not any(map(_DECIMAL_POINT.fullmatch, cells)):
            return True
    return False


class CsvText:
    """The lines of a file, plain or gzipped; every iteration reads it again.

    Args:
        path: of the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def __iter__(self) -> Iterator[tuple[int, str]]:
        """Number (from 1) and text of each line that is not blank.

        Raises:
            RecordingError: it cannot be read, is not text, or is beyond the budget.
        """
        try:
            with self._open() as file:
                size = max(self.path.stat().st_size, 1)
                volume = min(MAX_TEXT, max(_FREE, MAX_RATIO * size))
                budget = Budget(self.path, RecordingError, volume, 0, MAX_LINES)
                number = 0
                while line := file.readline(MAX_LINE):
                    number += 1
                    budget.spend(volume=len(line), items=1)
                    if len(line) == MAX_LINE:
                        problem = "has a line of a million characters"
                        raise RecordingError(self.path, problem, "name a CSV recording")
                    if number == 1 and "\0" in line:
                        raise RecordingError(self.path, "is not text", "name a CSV recording")
                    if not line.isspace():
                        yield number, line
        except OSError as error:
            problem = f"cannot be read ({error.strerror or error})"
            raise RecordingError(self.path, problem, "check the path") from None
        except (EOFError, zlib.error):
            problem = "ends in the middle of its gzip data"
            raise RecordingError(self.path, problem, "copy it again") from None

    @contextmanager
    def _open(self) -> Iterator[TextIO]:
        with open_regular(self.path) as raw:
            zipped = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            file = cast("BinaryIO", gzip.GzipFile(fileobj=raw)) if zipped else raw
            with TextIOWrapper(file, encoding="utf-8-sig", errors="replace") as text:
                yield text

    def head(self, count: int) -> list[tuple[int, str]]:
        """The first lines that are not blank, at most `count` and some megabytes."""
        out: list[tuple[int, str]] = []
        size = 0
        for number, line in self:
            out.append((number, line))
            size += len(line)
            if len(out) == count or size > _HEAD_CHARACTERS:
                break
        return out


# The time column of a CSV recording: unit, ISO 8601 dates, and order of the rows.

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
    zone = "+0000" if zone is None or zone in "Zz" else zone.replace(":", "")
    whole = f"{year}-{month}-{day}T{hour}:{minute}:{second or '00'}{zone[:3]}:{zone[3:]}"
    return datetime.fromisoformat(whole).timestamp() + float(f"0.{fraction or 0}")


def time_zone(text: str) -> str | None:
    """Time zone of an ISO 8601 date and time, such as "+02:00"; None if it has none."""
    match = _DATE.fullmatch(text.strip().strip('"'))
    return None if match is None else match.group(8)


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


# Rows as blocks of numbers; malformed rows are counted.

_BLOCK_ROWS = 4096
_BLOCK_CHARACTERS = 4 << 20
_PARSED_AT_ONCE = 8
"""Rows that are parsed cell by cell where one of them has a cell that is no number."""


def is_comment(line: str) -> bool:
    """Whether a line is a comment."""
    return line.startswith(("#", "%"))


@dataclass
class RejectedRows:
    """Rows that are left out of a recording.

    Attributes:
        rows: number of all rows so far.
        counts: number of rows left out, by reason.
        first: line, column (or None) and problem of the first of them.
        cut: number of last rows left out because they are cut off, which any file may have.
    """

    rows: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    first: tuple[int, str | None, str] | None = None
    cut: int = 0

    def reject(self, kind: str, count: int, line: int, column: str | None, problem: str) -> None:
        """Count rows; line, column and problem are those of the first one."""
        self.counts[kind] += count
        if self.first is None or line < self.first[0]:
            self.first = (line, column, problem)

    def check(self, path: Path, remedy: str) -> None:
        """Refuse a file with too many malformed rows.

        Raises:
            RecordingError: more than IMPOSSIBLE_SHARE of all rows are left out.
        """
        total = sum(self.counts.values())
        if self.first is None or total - self.cut <= IMPOSSIBLE_SHARE * self.rows:
            return
        line, column, problem = self.first
        raise RecordingError(
            path,
            f"line {line} {problem}, the first of {total} bad rows among {self.rows} "
            f"(more than {100 * IMPOSSIBLE_SHARE:g} %)",
            remedy,
            field=column,
        )

    def describe(self) -> str | None:
        """What was left out, in a line; None if nothing was."""
        if self.first is None:
            return None
        line, column, problem = self.first
        place = "" if column is None else f" {column}"
        kinds = ", ".join(f"{count} with {kind}" for kind, count in self.counts.items())
        total = sum(self.counts.values())
        return (
            f"left out {total} of {self.rows} rows ({kinds}); first: line {line}{place} {problem}"
        )


@dataclass(frozen=True)
class RowBlock:
    """Consecutive rows.

    Attributes:
        first: number of the first row in the file, from 0.
        values: chosen columns [rows, chosen], NaN if a cell is no number.
        lines: line numbers [rows].
        texts: the rows as text.
    """

    first: int
    values: Array
    lines: NDArray[np.int64]
    texts: Sequence[str]


@dataclass(frozen=True)
class RowReader:
    """Rows of one file below its header.

    Attributes:
        text: the file.
        dialect: how it separates columns and writes decimals.
        start: line number of the first row.
        width: number of columns of a row.
        dates: columns that hold ISO 8601 dates and times.
        open_ended: whether each row ends with a delimiter.
    """

    text: CsvText
    dialect: Dialect
    start: int
    width: int
    dates: tuple[int, ...] = ()
    open_ended: bool = False

    def blocks(self, chosen: Sequence[int], rejected: RejectedRows) -> Iterator[RowBlock]:
        """All rows; a last one that is cut off is counted as left out.

        Args:
            chosen: columns.
            rejected: counts rows and faults.

        Raises:
            RecordingError: the file cannot be read, or has a row with another number of columns,
                whose values may belong to others.
        """
        lines: list[int] = []
        texts: list[str] = []
        size = done = 0
        cut: tuple[int, int] | None = None
        for number, line in self.text:
            if number < self.start or is_comment(line):
                continue
            rejected.rows += 1
            if cut is not None:
                raise self._refuse_width(*cut)
            count = self._count(line)
            if count != self.width:
                cut = (number, count)
                continue
            lines.append(number)
            texts.append(line)
            size += len(line)
            if len(lines) == _BLOCK_ROWS or size > _BLOCK_CHARACTERS:
                yield RowBlock(done, self._numbers(texts, chosen), np.array(lines), texts)
                done += len(lines)
                lines, texts, size = [], [], 0
        if lines:
            yield RowBlock(done, self._numbers(texts, chosen), np.array(lines), texts)
        if cut is not None:
            number, count = cut
            if count > self.width or not done + len(lines):
                raise self._refuse_width(number, count)
            problem = f"ends after {count} columns instead of {self.width}"
            rejected.reject("a last line that is cut off", 1, number, None, problem)
            rejected.cut += 1

    def _refuse_width(self, line: int, count: int) -> RecordingError:
        """The error for a row with another number of cells: its values may have moved."""
        verb = "has" if count > self.width else "ends after"
        commas = self.dialect.delimiter == "," and count > self.width
        hint = "; decimal commas need another delimiter, such as ;" if commas else ""
        problem = f"line {line} {verb} {count} columns instead of {self.width}"
        return RecordingError(self.text.path, problem, f"correct that line{hint}")

    def _count(self, line: str) -> int:
        """Number of columns of a row; a delimiter at its end ends the last one."""
        delimiter = self.dialect.delimiter
        if not self.open_ended or delimiter is None:
            return self.dialect.count(line)
        return self.dialect.count(line) - line.rstrip("\r\n ").endswith(delimiter)

    def cell(self, text: str, column: int) -> str:
        """Text of one cell, at most 40 characters."""
        return self.dialect.cells(text)[column][:40]

    def _numbers(self, texts: Sequence[str], chosen: Sequence[int]) -> Array:
        dialect = self.dialect
        rows = texts
        if dialect.decimal_comma:
            rows = [text.replace(",", ".") for text in texts]
        if not self.dates and not any('"' in text for text in texts):
            try:
                return np.loadtxt(
                    rows, delimiter=dialect.delimiter, usecols=chosen, comments=None, ndmin=2
                )
            except (ValueError, IndexError):  # some cell is no number: only its row is slow
                half = len(texts) // 2
                if half >= _PARSED_AT_ONCE:
                    halves = (texts[:half], texts[half:])
                    return np.concatenate([self._numbers(each, chosen) for each in halves])
        return np.array([self._row(text, chosen) for text in texts], dtype=float)

    def _row(self, text: str, chosen: Sequence[int]) -> list[float]:
        cells, out = self.dialect.cells(text), []
        for column in chosen:
            value = float("nan")
            with suppress(ValueError, OverflowError, IndexError):
                number = date_seconds if column in self.dates else self.dialect.number
                value = number(cells[column])
            out.append(value)
        return out
