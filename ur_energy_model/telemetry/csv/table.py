# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The structure of a CSV recording, found from its first lines, and its rows as numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ur_energy_model.errors import RecordingError
from ur_energy_model.telemetry.csv.columns import (
    LAYOUTS,
    TIME,
    CsvHeader,
    headerless,
    is_unit,
    parse_columns,
    parse_header,
)
from ur_energy_model.telemetry.csv.rows import (
    find_dialect,
    is_numbering,
    is_separator_line,
    lines_of,
)
from ur_energy_model.telemetry.csv.times import (
    ISO_EXAMPLE,
    clock_match,
    date_match,
    date_seconds,
    looks_like_date,
)
from ur_energy_model.telemetry.plausibility import ANY_ARM, PlausibleRanges
from ur_energy_model.typing import Array, Mask


class CsvOptions(NamedTuple):
    """How to read CSV recordings of arms with so many joints.

    Attributes:
        joints: number of joints of the arm.
        columns: names of the columns in order, instead of a header line.
        layout: a known order of columns, instead of a header line.
        limits: lowest and highest possible values by field.
        rate: samples per second [Hz], of files without times or with equal ones.
        time_unit: unit of the time column, a key of UNITS.
    """

    joints: int = 6
    columns: str | None = None
    layout: str | None = None
    limits: PlausibleRanges = ANY_ARM
    rate: float | None = None
    time_unit: str | None = None


_FILLED = 0.25
"""Least share of the first rows that have a field."""
_HEAD = 200
_HEAD_CHARACTERS = 4 << 20
"""Lines and characters at the beginning of a file for the detection of its structure."""
_MAX_COLUMNS = 5000
"""Largest number of columns of a file; all that arms send is fewer than 600."""
_MAX_NAME = 200
"""Longest name of a column in characters."""
_BLOCK_ROWS = 4096
_BLOCK_CHARACTERS = 4 << 20
_PARSED_AT_ONCE = 8
"""Rows that are parsed cell by cell where one of them has a cell that is no number."""
_COMMENTS = ("#", "%")
_CELL_MARK = "\x1f"  # delimits cells that may contain any other mark
# of the column that pandas puts in front, in lower case
_INDEX_NAMES = ("", "index", "unnamed: 0")


class BadRow(NamedTuple):
    """A row that is no sample: its line, its column where one is at fault, and the reason."""

    line: int
    column: int | None
    problem: str


class CsvTable:
    """A CSV recording as a table of numbers, which can be read several times.

    Args:
        path: the file.
        options: how to read it.
        note: called with each remark, one line each.

    Attributes:
        path: the file.
        header: its columns.
        is_dated: whether times are dates or times of day.
        times_of_day: whether they are the latter.
        time_zone: of the first date; None without dates or zone.
        rows_read: number of rows that the last pass has read so far.
        cut_off: the last line of the file, if it ends too early and the last pass has
            read it.

    Raises:
        RecordingError: an unusable file, with place and remedy.
    """

    def __init__(
        self, path: Path, options: CsvOptions, note: Callable[[str], None]
    ) -> None:
        self.path = path
        self._note = note
        self.rows_read = 0
        self.cut_off: BadRow | None = None
        self.header = self._open(options)
        for remark in self.header.remarks:
            note(remark)
        if self._dialect.decimal_comma:
            note("numbers are read with decimal commas")

    @property
    def time_name(self) -> str:
        """Name of the time column in the file."""
        return TIME if self.header.time is None else self.header.names[self.header.time]

    def cell(self, line: str, column: int) -> str:
        """The beginning of a cell of a line, for messages."""
        return self._dialect.cells(line)[column][:40]

    def places_of(self, fields: Sequence[str]) -> list[int]:
        """Columns of fields, one after the other."""
        return [column for name in fields for column in self.header.places[name]]

    # Rows of the file as numbers.

    def blocks(
        self, chosen: Sequence[int], wanted: Mask | None = None
    ) -> Iterator[tuple[list[tuple[int, str]], Array]]:
        """Some thousand rows: numbers and texts of lines, columns [rows, k], NaN for no number.

        Args:
            chosen: columns to read.
            wanted: rows to read [all rows]; None for all.
        """
        rows: list[tuple[int, str]] = []
        size = 0
        for count, (number, line) in enumerate(chain(self._rows(), [(0, "")])):  # the end
            if rows and (
                not line or len(rows) == _BLOCK_ROWS or size > _BLOCK_CHARACTERS
            ):
                yield rows, self.numbers([text for _, text in rows], chosen)
                rows = []
                size = 0
            if wanted is None or not line or wanted[count]:
                rows.append((number, line))
                size += len(line)

    def _rows(self) -> Iterator[tuple[int, str]]:
        """Numbers and texts of the lines of rows; a last one that is cut off is rejected.

        A row with another number of columns is refused, because its values may belong to
        others.
        """
        dialect = self._dialect
        width = self._width
        self.rows_read = 0
        self.cut_off = None
        other: BadRow | None = None
        for number, line in lines_of(self.path):
            if number < self._start or line.startswith(_COMMENTS):
                continue
            if other is not None:
                raise self._other_width(other)
            self.rows_read += 1
            count = dialect.count(line)
            if self._open_ended:
                count -= line.rstrip("\r\n ").endswith(dialect.delimiter or "")
            if count == width:
                yield number, line
            else:
                verb = "has" if count > width else "ends after"
                other = BadRow(number, None, f"{verb} {count} columns instead of {width}")
        if other is not None:
            if other.problem.startswith("has") or self.rows_read == 1:
                raise self._other_width(other)
            self.cut_off = other

    def _other_width(self, row: BadRow) -> RecordingError:
        comma = row.problem.startswith("has") and self._dialect.delimiter == ","
        hint = "; decimal commas need another delimiter, such as ;" if comma else ""
        return RecordingError(
            self.path, f"line {row.line} {row.problem}", f"correct that line{hint}"
        )

    def numbers(self, texts: Sequence[str], chosen: Sequence[int]) -> Array:
        """Chosen columns of rows [rows, chosen], NaN where a cell is no number."""
        dialect = self._dialect
        if chosen:
            rows, delimiter = self._unquoted(texts)
            if dialect.decimal_comma:
                rows = [text.replace(",", ".") for text in rows]
            dates: dict[int | str, Callable[[str], float]] = {}
            if self._date_column is not None and self._date_column in chosen:
                dates[self._date_column] = date_seconds
            try:
                found: Array = np.loadtxt(
                    rows,
                    delimiter=delimiter,
                    usecols=chosen,
                    converters=dates,
                    comments=None,
                    ndmin=2,
                    encoding=None,
                )
                return found
            # some cell is no number: only its row is slow
            except (ValueError, IndexError):
                half = len(texts) // 2
                if half >= _PARSED_AT_ONCE:
                    halves = (texts[:half], texts[half:])
                    return np.concatenate([self.numbers(each, chosen) for each in halves])
        out = np.full((len(texts), len(chosen)), np.nan)
        for row, cells in enumerate(map(dialect.cells, texts if chosen else ())):
            for place, column in enumerate(chosen):
                with suppress(ValueError, OverflowError, IndexError, TypeError):
                    number = (
                        date_seconds if column == self._date_column else dialect.number
                    )
                    out[row, place] = number(cells[column])
        return out

    def _unquoted(self, texts: Sequence[str]) -> tuple[Sequence[str], str | None]:
        """Rows without the quotes around cells, and what delimits their cells then."""
        dialect = self._dialect
        delimiter = dialect.delimiter
        if not any('"' in text for text in texts):
            return texts, delimiter
        if delimiter is not None and all(
            text.count(delimiter) + 1 == self._width for text in texts
        ):
            return [text.replace('"', "") for text in texts], delimiter
        # Some quotes contain delimiters.
        return [_CELL_MARK.join(dialect.cells(text)) for text in texts], _CELL_MARK

    # The structure, from the first lines.

    def _open(self, options: CsvOptions) -> CsvHeader:
        """Detect the structure of the file from its first lines; returns its columns."""
        head: list[tuple[int, str]] = []
        size = 0
        for number, line in islice(lines_of(self.path), _HEAD):
            head.append((number, line))
            size += len(line)
            if size > _HEAD_CHARACTERS:
                break
        rows = [(number, line) for number, line in head if not line.startswith(_COMMENTS)]
        rows = rows[bool(rows and is_separator_line(rows[0][1])) :]
        self._dialect = dialect = find_dialect([line for _, line in rows[:20]])
        first = rows[0][1] if rows else ""
        titles: list[str] | None = dialect.columns(first)
        if first and dialect.names_columns(first):
            rows = rows[1:]
            if rows and (units := self._units_of(rows[0][1], len(titles or ()))):
                titles = [
                    _with_unit(*each) for each in zip(titles or (), units, strict=True)
                ]
                rows = rows[1:]
        elif first:  # a comment above the rows may name the columns
            width = len(dialect.columns(first))
            comments = [
                line.lstrip("#% ") for _, line in head if line.startswith(_COMMENTS)
            ]
            fitting = [
                line for line in comments if len(dialect.columns(line)) == width > 1
            ]
            named = bool(fitting) and dialect.names_columns(fitting[-1])
            titles = dialect.columns(fitting[-1]) if named else None
            rows = rows[is_numbering(dialect.cells(first)) :]
        texts = [line for _, line in rows]
        is_index = titles and texts and titles[0].lower() in _INDEX_NAMES
        if titles and is_index and date_match(dialect.cells(texts[0])[0]) is not None:
            titles[0] = "datetime"
        header = self._columns(options, titles, first, texts)
        self._start = rows[0][0] if rows else len(head) + 1
        self._width = len(header.names)
        self._find_dates(header, dialect.cells(texts[0]) if rows else [])
        # Some writers leave a delimiter at the end of each row.
        ended = [x for x in texts[:20] if dialect.count(x) == self._width + 1]
        ended = [line for line in ended if not dialect.cells(line)[-1]]
        self._open_ended = dialect.delimiter is not None and 2 * len(ended) > len(
            texts[:20]
        )
        return self._without_empty(header, texts)

    def _units_of(self, line: str, count: int) -> list[str]:
        """The cells of a line of units below the header; empty if it is none."""
        cells = [cell.strip("[]() ") for cell in self._dialect.columns(line)]
        cells += [""] * (count - len(cells))  # those at the end may be empty
        are_units = (
            len(cells) == count and any(cells) and all(map(is_unit, filter(None, cells)))
        )
        return cells if are_units else []

    def _find_dates(self, header: CsvHeader, cells: Sequence[str]) -> None:
        """Find out whether times are dates, by the cells of the first row.

        RecordingError: they are dates in a form that is not read.
        """
        cell = (
            cells[header.time]
            if header.time is not None and header.time < len(cells)
            else ""
        )
        date = date_match(cell)
        self.times_of_day = clock_match(cell) is not None
        self.is_dated = date is not None or self.times_of_day
        self.time_zone = None if date is None else date["zone"]
        self._date_column = header.time if self.is_dated else None
        if (
            not self.is_dated
            and self._dialect.number(cell) is None
            and looks_like_date(cell)
        ):
            problem = f"has dates in another form than ISO 8601, such as {cell[:40]!r}"
            remedy = f"write them as {ISO_EXAMPLE} (ISO 8601), or export seconds"
            named = TIME if header.time is None else header.names[header.time]
            raise RecordingError(self.path, problem, remedy, field=named)

    def _without_empty(self, header: CsvHeader, rows: Sequence[str]) -> CsvHeader:
        """The columns without those fields that most of the first rows leave empty."""
        fields = list(header.places)
        if not fields or not rows:
            return header
        places = [header.places[name] for name in fields]
        known = np.isfinite(self.numbers(rows, list(chain(*places))))
        starts = np.cumsum([0, *map(len, places[:-1])])
        shares = np.logical_and.reduceat(known, starts, axis=1).mean(axis=0)
        empty = [
            name for name, share in zip(fields, shares, strict=True) if share < _FILLED
        ]
        if not empty or len(empty) == len(fields):
            return header
        self._note(f"left out, mostly without values: {', '.join(empty)}")
        left = {name: place for name, place in header.places.items() if name not in empty}
        return header._replace(places=left)

    def _columns(
        self,
        options: CsvOptions,
        titles: list[str] | None,
        first: str,
        rows: Sequence[str],
    ) -> CsvHeader:
        """The columns by the options, or else by the cells of the line that names them."""
        path = self.path
        names = options.columns
        dialect = self._dialect
        if options.layout is not None:
            if names is not None:
                raise RecordingError(
                    path, "--columns and --layout exclude each other", "give one"
                )
            if options.layout not in LAYOUTS:
                remedy = f"use one of {', '.join(LAYOUTS)}"
                raise RecordingError(path, f"there is no layout {options.layout}", remedy)
            names = ",".join(LAYOUTS[options.layout].fields)
        width = max(len(titles or ()), len(dialect.cells(rows[0])) if rows else 0)
        longest = max(map(len, titles or ()), default=0)
        problem = (
            f"has {width} columns, more than any recording"
            if width > _MAX_COLUMNS
            else ""
        )
        if longest > _MAX_NAME:
            problem = problem or f"has a column name of {longest} characters"
        if problem:
            raise RecordingError(path, problem, "name a CSV recording")
        timeless = options.rate is not None
        if names is not None:
            count = len(dialect.columns(rows[0] if rows else first))
            header = parse_columns(path, names, count, options.joints, timeless=timeless)
        elif titles is None:
            raise headerless(path, width, options.joints)
        else:
            header = parse_header(path, titles, options.joints, timeless=timeless)
        if not header.places and (len(header.names) > 1 or header.time is None):
            shown = ", ".join(header.names[:6])
            problem = f"has no column with an RTDE field name (it has {shown} ...)"
            remedy = "name the columns with --columns"
            raise RecordingError(path, problem, remedy, field="actual_q_0")
        return header


def _with_unit(name: str, unit: str) -> str:
    """The name of a column with its unit in brackets, if it has one."""
    return f"{name} [{unit}]" if unit else name
