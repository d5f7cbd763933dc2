"""Opens a CSV file: its dialect, the names of its columns, and where its rows begin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import permutations
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


def headerless(path: Path, dialect: Dialect, lines: Sequence[str], joints: int) -> RecordingError:
    """The error for a file without a header: its shape, and how to name its columns."""
    rows = [dialect.cells(line) for line in lines]
    widths = [len(row) for row in rows]
    width = max(set(widths), key=widths.count) if widths else 0
    rows = [row for row in rows if len(row) == width]
    dates = [i for i in range(width) if rows and is_date(rows[0][i])]
    values = np.array(
        [[dialect.number(x) if dialect.numeric(x) else np.nan for x in row] for row in rows]
    ).reshape(len(rows), width)
    values[:, dates] = 0.0
    clocks = dates or [0]
    if len(values) > 2:  # they rise in most rows and rarely fall
        steps = np.diff(values, axis=0)
        rising = ((steps >= 0).mean(axis=0) > _RISING_SHARE) & ((steps > 0).mean(axis=0) > 0.5)
        clocks = [*dates, *np.flatnonzero(rising).tolist()]
    finite = np.delete(values, clocks[:1], axis=1)[np.isfinite(values).all(axis=1)]
    shape = "no column rises steadily, as time does"
    if clocks:
        kind = "holds dates" if clocks[0] in dates else "rises steadily, as time does"
        shape = f"column {clocks[0] + 1} {kind}"
    if finite.size:
        shape += f", the others lie between {finite.min():.4g} and {finite.max():.4g}"
    remedy = f"name the columns, for example --columns {_guess(values, clocks, joints)}"
    fitting = [name for name, each in LAYOUTS.items() if each.width(joints) == width]
    if fitting and 0 in clocks:
        sources = "; ".join(f"{name}: {LAYOUTS[name].source}" for name in fitting)
        remedy = (
            f"add --layout {' or '.join(fitting)} ({sources}), or name the columns with --columns"
        )
    return RecordingError(path, f"has no header line: {width} columns, {shape}", remedy)


def _guess(values: Array, clocks: Sequence[int], joints: int) -> str:
    """A value of `--columns` for a table [rows, columns], NAME for what is unknown.

    Where a set of as many columns as the arm has joints has the slopes of another one, these are
    positions and speeds.
    """
    width = values.shape[1]
    before = clocks[0] if clocks else 0
    first = before + 1 if clocks else 0
    sets, left = divmod(width - first, joints)
    names = [f"NAME[{joints}]"] * sets
    if clocks and len(values) >= 20 and np.isfinite(values).all():
        blocks = np.split(values[:, first : first + sets * joints], sets, axis=1) if sets else []
        for i, k in permutations(range(min(sets, _COMPARED)), 2):
            if _is_derivative(values[:, clocks[0]], blocks[i], blocks[k]):
                names[i], names[k] = "actual_q", "actual_qd"
                break
    skips = [["-" if n == 1 else f"-[{n}]"] if n else [] for n in (before, left)]
    return ",".join([*skips[0], *(["timestamp"] if clocks else []), *names, *skips[1]])


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


HEAD = 200
"""Number of lines at the beginning of a file for the detection."""
MAX_COLUMNS = 5000
"""Largest number of columns of a file; all that arms send is fewer than 600."""

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


def open_csv(path: Path, options: CsvOptions) -> tuple[CsvHeader, RowReader, str | None]:
    """Detect the structure of a file from its first lines.

    Returns:
        Its columns, the reader of its rows, and the time zone of its dates, None without one.

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
    return header, RowReader(text, dialect, start, width, dates, ended), zone


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
        raise headerless(path, dialect, rows, joints)
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
