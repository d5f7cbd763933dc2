"""Opens a CSV file: its dialect, the names of its columns, and where its rows begin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ur_energy_model.errors import RecordingError
from ur_energy_model.telemetry.csv.header import CsvHeader, parse_columns, parse_header
from ur_energy_model.telemetry.csv.layouts import LAYOUTS
from ur_energy_model.telemetry.csv.rows import (
    CsvText,
    Dialect,
    RowReader,
    find_dialect,
    is_comment,
    is_date,
    time_zone,
)
from ur_energy_model.telemetry.plausibility import ANY_ARM, PlausibleRanges
from ur_energy_model.typing import Array

# Tables without a header line: their shape, and suggestions for their columns.

_NUMERIC_SHARE = 0.5
_SLOPE_MATCH = 0.9
_RISING_SHARE = 0.95
_LARGEST = 1e6
_COMPARED = 20
"""Most sets of columns that are compared with each other."""


def is_header(dialect: Dialect, line: str) -> bool:
    """Whether a first line names columns; in a row of data most cells are numbers or dates."""
    cells = dialect.cells(line)
    if numbered(cells):
        return False
    values = sum(dialect.numeric(cell) or is_date(cell) for cell in cells)
    return values < _NUMERIC_SHARE * len(cells) or values == 0


def numbered(cells: Sequence[str]) -> bool:
    """Whether a first line numbers the columns (0, 1, 2, ...) because they have no names.

    Two columns may be data.
    """
    return len(cells) > 2 and list(cells) == [str(i) for i in range(len(cells))]


@dataclass(frozen=True)
class Shape:
    """First rows of a table without names.

    Attributes:
        values: [rows, columns], NaN if a cell is no number.
        dates: columns that hold dates and times.
    """

    values: Array
    dates: tuple[int, ...]

    @property
    def columns(self) -> int:
        """Number of columns."""
        return int(self.values.shape[1])

    def clocks(self) -> list[int]:
        """Columns that may be the time: they rise in most rows and rarely fall."""
        if len(self.values) < 3:
            return list(self.dates) or [0]
        steps = np.diff(self.values, axis=0)
        with np.errstate(invalid="ignore"):
            rising = (steps >= 0).mean(axis=0) > _RISING_SHARE
            moving = (steps > 0).mean(axis=0) > 0.5
        found = [int(i) for i in np.flatnonzero(rising & moving)]
        return [*self.dates, *found]

    def describe(self) -> str:
        """Short description with columns counted from 1."""
        clocks = self.clocks()
        finite = self.values[np.isfinite(self.values).all(axis=1)]
        rest = [i for i in range(self.columns) if i not in clocks[:1]]
        parts = []
        if clocks:
            kind = "holds dates" if clocks[0] in self.dates else "rises steadily, as time does"
            parts.append(f"column {clocks[0] + 1} {kind}")
        if len(finite) and rest:
            low, high = finite[:, rest].min(), finite[:, rest].max()
            parts.append(f"the others lie between {low:.4g} and {high:.4g}")
        return ", ".join(parts) or "no column rises steadily, as time does"

    def suggestion(self, joints: int) -> str:
        """Values of `--layout` or `--columns` that fit."""
        clocks = self.clocks()
        fitting = [
            name
            for name, layout in LAYOUTS.items()
            if layout.width(joints) == self.columns and 0 in clocks
        ]
        if fitting:
            sources = "; ".join(f"{name}: {LAYOUTS[name].source}" for name in fitting)
            return (
                f"add --layout {' or '.join(fitting)} ({sources}), or name the columns with "
                "--columns"
            )
        return f"name the columns, for example --columns {self._columns_guess(clocks, joints)}"

    def _columns_guess(self, clocks: Sequence[int], joints: int) -> str:
        clock = clocks[0] if clocks else None
        before, after = (0, self.columns) if clock is None else (clock, self.columns - clock - 1)
        sets, left = divmod(after, joints)
        names = [*self._sets(self.columns - after, sets, joints, clock)]
        start = [] if clock is None else ["timestamp"]
        skip = ["-" if before == 1 else f"-[{before}]"] if before else []
        end = ["-" if left == 1 else f"-[{left}]"] if left else []
        return ",".join([*skip, *start, *names, *end])

    def _sets(self, first: int, sets: int, joints: int, clock: int | None) -> list[str]:
        """Names for sets of as many columns as the arm has joints; NAME if unknown."""
        names = [f"NAME[{joints}]"] * sets
        if clock is None or len(self.values) < 20 or not np.isfinite(self.values).all():
            return names
        time = self.values[:, clock]
        blocks = [
            self.values[:, first + k * joints : first + (k + 1) * joints] for k in range(sets)
        ]
        for i, block in enumerate(blocks[:_COMPARED]):
            for k in range(min(sets, _COMPARED)):
                if k != i and _is_derivative(time, block, blocks[k]):
                    names[i], names[k] = "actual_q", "actual_qd"
                    return names
        return names


def _is_derivative(time: Array, values: Array, slopes: Array) -> bool:
    """Whether slopes [rows, n] are those of values [rows, n] in any unit of time [rows]."""
    steps = np.diff(time)
    largest = np.abs(np.column_stack([values, slopes])).max(axis=1)
    sane = largest < _LARGEST
    use = (steps > 0) & (steps < 10 * np.median(np.abs(steps))) & sane[1:] & sane[:-1]
    if np.count_nonzero(use) < 10:
        return False
    change = (np.diff(values, axis=0)[use] / steps[use, None]).ravel()
    middle = (0.5 * (slopes[1:] + slopes[:-1])[use]).ravel()
    if np.std(change) == 0 or np.std(middle) == 0:
        return False
    return bool(np.corrcoef(change, middle)[0, 1] > _SLOPE_MATCH)


def shape_of(dialect: Dialect, lines: Sequence[str]) -> Shape:
    """Shape of a table from its first lines; rows of another width than most are left out."""
    rows = [dialect.cells(line) for line in lines]
    widths = [len(row) for row in rows]
    width = max(set(widths), key=widths.count) if widths else 0
    rows = [row for row in rows if len(row) == width]
    dates = tuple(i for i in range(width) if rows and is_date(rows[0][i]))
    values = np.full((len(rows), width), np.nan)
    for r, row in enumerate(rows):
        for c, cell in enumerate(row):
            if dialect.numeric(cell):
                values[r, c] = dialect.number(cell)
    for c in dates:
        values[:, c] = 0.0
    return Shape(values, dates)


def headerless(path: Path, shape: Shape, joints: int) -> RecordingError:
    """The error for a file without a header: its shape, and how to name its columns."""
    return RecordingError(
        path,
        f"has no header line: {shape.columns} columns, {shape.describe()}",
        shape.suggestion(joints),
    )


HEAD = 200
"""Number of lines at the beginning of a file for the detection."""
MAX_COLUMNS = 5000
"""Largest number of columns of a file; all that arms send is fewer than 600."""

_SHOWN = 50
"""Most columns that a remark lists."""
MAX_NAME = 200
"""Longest name of a column in characters."""


@dataclass(frozen=True)
class CsvOptions:
    """How to read CSV recordings.

    Attributes:
        joints: number of joints of the arm.
        columns: names of the columns in order, instead of a header line; None for the file's own.
        layout: name of a known layout, instead of columns.
        limits: lowest and highest possible values by field.
    """

    joints: int = 6
    columns: str | None = None
    layout: str | None = None
    limits: PlausibleRanges = field(default_factory=lambda: ANY_ARM)

    def names(self, source: Path) -> str | None:
        """Names of the columns, None for those of the file.

        Raises:
            RecordingError: no such layout, or both columns and layout.
        """
        if self.layout is None:
            return self.columns
        if self.columns is not None:
            raise RecordingError(source, "--columns and --layout exclude each other", "give one")
        if self.layout not in LAYOUTS:
            raise RecordingError(
                source, f"there is no layout {self.layout}", f"use one of {', '.join(LAYOUTS)}"
            )
        return LAYOUTS[self.layout].columns


@dataclass(frozen=True)
class OpenedCsv:
    """A file with known columns.

    Attributes:
        header: its columns.
        reader: of its rows.
        time_zone: of its dates, None if they have none.
    """

    header: CsvHeader
    reader: RowReader
    time_zone: str | None

    def remarks(self) -> Iterator[str]:
        """Remarks on ignored and interpreted columns, one line each."""
        yield from self.header.remarks
        if self.reader.dialect.decimal_comma:
            yield "numbers are read with decimal commas"
        if self.header.unknown:
            yield f"ignored columns: {_listed(self.header.unknown)}"
        if self.header.incomplete:
            yield f"ignored fields that lack elements: {', '.join(self.header.incomplete)}"


def _listed(names: Sequence[str]) -> str:
    """The first names and the number of the others."""
    shown = ", ".join(name or "(empty)" for name in names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"


def open_csv(path: Path, options: CsvOptions) -> OpenedCsv:
    """Detect the structure of a file from its first lines.

    Raises:
        RecordingError: it cannot be read, or its columns are unknown.
    """
    text = CsvText(path)
    head = text.head(HEAD)
    lines = [line for _, line in head if not is_comment(line)]
    dialect = find_dialect(lines[:20])
    first = _first_line(dialect, [line for _, line in head], lines)
    named = first is None or is_header(dialect, first)
    above = (named and first in lines) or numbered(dialect.cells(lines[0] if lines else ""))
    rows = lines[1:] if above else lines
    header = _header(path, options, dialect, (first or "") if named else None, rows)
    start = next((n for n, line in head if rows and line is rows[0]), len(head) + 1)
    first_row = dialect.cells(rows[0]) if rows else []
    time = header.time_column
    dates = (time,) if time < len(first_row) and is_date(first_row[time]) else ()
    zone = time_zone(first_row[time]) if dates else None
    width = len(header.names)
    ended = _open_ended(dialect, rows[:20], width)
    return OpenedCsv(header, RowReader(text, dialect, start, width, dates, ended), zone)


def _open_ended(dialect: Dialect, rows: list[str], width: int) -> bool:
    """Whether most rows end with a delimiter, as some writers leave it."""
    ended = [row for row in rows if dialect.count(row) == width + 1 and not dialect.cells(row)[-1]]
    return 2 * len(ended) > len(rows)


def _first_line(dialect: Dialect, head: list[str], lines: list[str]) -> str | None:
    """The line with the column names, which may be a comment above the rows."""
    if lines and is_header(dialect, lines[0]):
        return lines[0]
    comments = [line.lstrip("#% ") for line in head if is_comment(line)]
    width = len(dialect.columns(lines[0])) if lines else 0
    named = [line for line in comments if len(dialect.columns(line)) == width]
    return named[-1] if named and width > 1 else (lines[0] if lines else None)


def _header(
    path: Path, options: CsvOptions, dialect: Dialect, first: str | None, rows: list[str]
) -> CsvHeader:
    joints, names = options.joints, options.names(path)
    width = max((len(dialect.cells(line)) for line in (first or "", *rows[:1])), default=0)
    if width > MAX_COLUMNS:
        raise RecordingError(
            path, f"has {width} columns, more than any recording", "name a CSV recording"
        )
    long = next((cell for cell in dialect.cells(first or "") if len(cell) > MAX_NAME), None)
    if long is not None:
        raise RecordingError(
            path, f"has a column name of {len(long)} characters", "name a CSV recording"
        )
    if names is not None:
        count = len(dialect.columns(rows[0] if rows else first or ""))
        header = parse_columns(path, names, count, joints)
    elif first is None:
        raise headerless(path, shape_of(dialect, rows), joints)
    else:
        header = parse_header(path, dialect.columns(first), joints)
    if len(header.places) == 1 and len(header.names) > 1:
        shown = ", ".join(name for name in header.names[:6])
        raise RecordingError(
            path,
            f"has no column with an RTDE field name (it has {shown} ...)",
            "name the columns with --columns",
            field="actual_q_0",
        )
    return header
