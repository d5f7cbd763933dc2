"""Opens a CSV file: its dialect, the names of its columns, and where its rows begin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ur_energy_model.errors import RecordingError
from ur_energy_model.telemetry.csv.header import CsvHeader, parse_columns, parse_header
from ur_energy_model.telemetry.csv.headerless import headerless, is_header, numbered, shape_of
from ur_energy_model.telemetry.csv.layouts import LAYOUTS
from ur_energy_model.telemetry.csv.row_reader import RowReader, is_comment
from ur_energy_model.telemetry.csv.text import CsvText, Dialect, find_dialect
from ur_energy_model.telemetry.csv.time_column import is_date, time_zone
from ur_energy_model.telemetry.plausibility import ANY_ARM, PlausibleRanges

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
