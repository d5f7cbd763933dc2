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
from ur_energy_model.telemetry.csv.units import is_unit
from ur_energy_model.telemetry.plausibility import ANY_ARM, PlausibleRanges
from ur_energy_model.typing import Array, Mask


class CsvOptions(NamedTuple):
    """Options of reading CSV recordings.

    Attributes:
        joints: number of joints of the arm.
        columns: names of the columns in order, instead of a header line.
        layout: a known order of columns, instead of a header line.
        limits: lowest and highest possible values by field.
        rate: samples per second [Hz], of files without times or with equal times.
        time_unit: unit of the time column, a key of UNITS.
    """

    joints: int = 6
    columns: str | None = None
    layout: str | None = None
    limits: PlausibleRanges = ANY_ARM
    rate: float | None = None
    time_unit: str | None = None


_FILLED = 0.25
"""Least share of the first rows in which a field has values; emptier ones are left out."""
_HEAD = 200
_HEAD_CHARACTERS = 4 << 20
"""Most lines and characters at the beginning of a file that show its structure."""
_SHORT_HEAD = 20  # rows that show what separates columns, and how rows end
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
    """A row that is no sample.

    Attributes:
        line: number of the line in the file, from 1.
        column: column at fault; None if the whole row is at fault.
        problem: what is wrong, as the end of a sentence that begins with the line.
    """

    line: int
    column: int | None
    problem: str


class CsvTable:
    """A CSV recording as a table of numbers, which can be read several times.

    Args:
        path: path of the file.
        options: how to read it.
        note: called with each remark, one line each.

    Attributes:
        path: path of the file.
        header: columns of the file.
        is_dated: whether times are dates or times of day.
        times_of_day: whether times are times of day, without a date.
        time_zone: time zone of the first date; None without dates or zone.
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
        places = self.header.places
        return list(chain.from_iterable(places[name] for name in fields))

    # Rows of the file as numbers.

    def blocks(
        self, chosen: Sequence[int], wanted: Mask | None = None
    ) -> Iterator[tuple[list[tuple[int, str]], Array]]:
        """Rows of the file as numbers, some thousands at once.

        Args:
            chosen: columns to read.
            wanted: rows to read [all rows]; None for all.

        Yields:
            Numbers and texts of the lines of the rows, and the values of the chosen
            columns [rows, k], NaN where a cell is no number.

        Raises:
            RecordingError: the file cannot be read, or a row has another number of
                columns.
        """
        rows: list[tuple[int, str]] = []
        size = 0
        for count, (number, line) in enumerate(self._rows()):
            if wanted is not None and not wanted[count]:
                continue
            if len(rows) == _BLOCK_ROWS or size > _BLOCK_CHARACTERS:
                yield rows, self.numbers([text for _, text in rows], chosen)
                rows = []
                size = 0
            rows.append((number, line))
            size += len(line)
        if rows:
            yield rows, self.numbers([text for _, text in rows], chosen)

    def _rows(self) -> Iterator[tuple[int, str]]:
        """Numbers and texts of the lines of rows.

        A last row that is too short is cut off, and left out. Any other row with another
        number of columns is refused, because its values may belong to other columns.
        """
        dialect = self._dialect
        width = self._width
        self.rows_read = 0
        self.cut_off = None
        other: BadRow | None = None  # the last row, if its number of columns is another
        is_longer = False
        for number, line in lines_of(self.path):
            if number < self._start or line.startswith(_COMMENTS):
                continue
            if other is not None:
                raise self._other_width(other, is_longer=is_longer)
            self.rows_read += 1
            count = dialect.count(line)
            if self._open_ended and dialect.ends_with_delimiter(line):
                count -= 1
            if count == width:
                yield number, line
            else:
                is_longer = count > width
                verb = "has" if is_longer else "ends after"
                other = BadRow(number, None, f"{verb} {count} columns instead of {width}")
        if other is not None:
            if is_longer or self.rows_read == 1:
                raise self._other_width(other, is_longer=is_longer)
            self.cut_off = other

    def _other_width(self, row: BadRow, *, is_longer: bool) -> RecordingError:
        """The error about a row with another number of columns."""
        remedy = "correct that line"
        # A row with decimal commas has more commas than columns.
        if is_longer and self._dialect.delimiter == ",":
            remedy += "; decimal commas need another delimiter, such as ;"
        return RecordingError(self.path, f"line {row.line} {row.problem}", remedy)

    def numbers(self, texts: Sequence[str], chosen: Sequence[int]) -> Array:
        """Values of some columns of rows.

        Args:
            texts: texts of the rows.
            chosen: columns to read.

        Returns:
            The values [rows, chosen], NaN where a cell is no number.
        """
        if not chosen:
            return np.empty((len(texts), 0))
        rows, delimiter = self._unquoted(texts)
        if self._dialect.decimal_comma:
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
        except (ValueError, IndexError):
            # Some cell is no number. Halving the rows leaves few to be parsed cell by
            # cell.
            half = len(texts) // 2
            if half < _PARSED_AT_ONCE:
                return self._numbers_by_cell(texts, chosen)
            first = self.numbers(texts[:half], chosen)
            return np.concatenate([first, self.numbers(texts[half:], chosen)])

    def _numbers_by_cell(self, texts: Sequence[str], chosen: Sequence[int]) -> Array:
        """Values of some columns of a few rows, see `numbers`; one cell after the other."""
        out = np.full((len(texts), len(chosen)), np.nan)
        for row, line in enumerate(texts):
            cells = self._dialect.cells(line)
            for place, column in enumerate(chosen):
                is_date = column == self._date_column
                number = date_seconds if is_date else self._dialect.number
                with suppress(ValueError, OverflowError, IndexError, TypeError):
                    out[row, place] = number(cells[column])
        return out

    def _unquoted(self, texts: Sequence[str]) -> tuple[Sequence[str], str | None]:
        """Rows without the quotes around cells, and what delimits their cells then."""
        dialect = self._dialect
        delimiter = dialect.delimiter
        if not any('"' in text for text in texts):
            return texts, delimiter
        if delimiter is not None:
            counts = {text.count(delimiter) + 1 for text in texts}
            if counts == {self._width}:
                return [text.replace('"', "") for text in texts], delimiter
        # Some quotes contain delimiters.
        return [_CELL_MARK.join(dialect.cells(text)) for text in texts], _CELL_MARK

    # The structure, from the first lines.

    def _open(self, options: CsvOptions) -> CsvHeader:
        """Detect the structure of the file from its first lines; returns its columns.

        Raises:
            RecordingError: the lines are no table, or their columns cannot be used.
        """
        head = self._first_lines()
        comments = [line for _, line in head if line.startswith(_COMMENTS)]
        rows = [(number, line) for number, line in head if not line.startswith(_COMMENTS)]
        if rows and is_separator_line(rows[0][1]):
            rows = rows[1:]
        first = rows[0][1] if rows else ""
        dialect = find_dialect([line for _, line in rows[:_SHORT_HEAD]])
        self._dialect = dialect
        titles, count = self._titles_above([line for _, line in rows], comments)
        rows = rows[count:]
        texts = [line for _, line in rows]
        cells = dialect.cells(texts[0]) if texts else []
        begins_with_dates = bool(cells) and date_match(cells[0]) is not None
        if titles and begins_with_dates and titles[0].lower() in _INDEX_NAMES:
            titles[0] = "datetime"
        header = self._columns(options, titles, first, texts)
        self._start = rows[0][0] if rows else len(head) + 1
        self._width = len(header.names)
        self._find_dates(header, cells)
        self._open_ended = self._has_open_ends(texts[:_SHORT_HEAD])
        return self._without_empty(header, texts)

    def _first_lines(self) -> list[tuple[int, str]]:
        """Numbers and texts of the first lines, which show the structure of the file."""
        head: list[tuple[int, str]] = []
        size = 0
        for number, line in islice(lines_of(self.path), _HEAD):
            head.append((number, line))
            size += len(line)
            if size > _HEAD_CHARACTERS:
                break
        return head

    def _titles_above(
        self, lines: Sequence[str], comments: Sequence[str]
    ) -> tuple[list[str] | None, int]:
        """Names of the columns, from the lines above the data or from a comment.

        Args:
            lines: the first lines without comments.
            comments: the comments among the first lines.

        Returns:
            Names, with units where a line states them, None if nothing names the columns;
            and the number of lines above the data.
        """
        if not lines:
            return [], 0
        dialect = self._dialect
        first = lines[0]
        titles = dialect.columns(first)
        if not titles or not dialect.names_columns(first):
            above = 1 if is_numbering(dialect.cells(first)) else 0
            return self._titles_in(comments, len(titles)), above
        units = self._units_of(lines[1], len(titles)) if len(lines) > 1 else []
        if not units:
            return titles, 1
        named_units = zip(titles, units, strict=True)
        return [_with_unit(name, unit) for name, unit in named_units], 2

    def _titles_in(self, comments: Sequence[str], width: int) -> list[str] | None:
        """Names of the columns in the last comment of so many cells; None if there is none."""
        dialect = self._dialect
        lines = [line.lstrip("#% ") for line in comments]
        fitting = [line for line in lines if len(dialect.columns(line)) == width]
        if width < 2 or not fitting or not dialect.names_columns(fitting[-1]):
            return None
        return dialect.columns(fitting[-1])

    def _has_open_ends(self, lines: Sequence[str]) -> bool:
        """Whether most of the rows end with a delimiter behind their last cell."""
        dialect = self._dialect
        if dialect.delimiter is None:
            return False
        longer = [line for line in lines if dialect.count(line) == self._width + 1]
        ended = [line for line in longer if not dialect.cells(line)[-1]]
        return 2 * len(ended) > len(lines)

    def _units_of(self, line: str, count: int) -> list[str]:
        """Units in a line below the header; empty if it is no line of units.

        Args:
            line: the text of the line.
            count: number of columns of the header; the last units may be missing.
        """
        cells = [cell.strip("[]() ") for cell in self._dialect.columns(line)]
        cells += [""] * (count - len(cells))
        units = [cell for cell in cells if cell]
        are_units = len(units) > 0 and all(is_unit(unit) for unit in units)
        return cells if are_units and len(cells) == count else []

    def _find_dates(self, header: CsvHeader, cells: Sequence[str]) -> None:
        """Find out whether times are dates, by the cells of the first row.

        Raises:
            RecordingError: they are dates in a form that is not read.
        """
        cell = ""
        if header.time is not None and header.time < len(cells):
            cell = cells[header.time]
        date = date_match(cell)
        self.times_of_day = clock_match(cell) is not None
        self.is_dated = date is not None or self.times_of_day
        self.time_zone = None if date is None else date["zone"]
        self._date_column = header.time if self.is_dated else None
        is_number = self._dialect.number(cell) is not None
        if not self.is_dated and not is_number and looks_like_date(cell):
            problem = f"has dates in another form than ISO 8601, such as {cell[:40]!r}"
            remedy = f"write them as {ISO_EXAMPLE} (ISO 8601), or export seconds"
            named = TIME if header.time is None else header.names[header.time]
            raise RecordingError(self.path, problem, remedy, field=named)

    def _without_empty(self, header: CsvHeader, rows: Sequence[str]) -> CsvHeader:
        """The header without those fields that most of the first rows leave empty."""
        if not header.places or not rows:
            return header
        columns = list(chain(*header.places.values()))
        is_known = np.isfinite(self.numbers(rows, columns))
        empty: list[str] = []
        start = 0
        for name, places in header.places.items():
            is_complete = is_known[:, start : start + len(places)].all(axis=1)
            start += len(places)
            if is_complete.mean() < _FILLED:
                empty.append(name)
        if not empty or len(empty) == len(header.places):
            return header
        self._note(f"left out, mostly without values: {', '.join(empty)}")
        left = {
            name: places for name, places in header.places.items() if name not in empty
        }
        return header._replace(places=left)

    def _columns(
        self,
        options: CsvOptions,
        titles: list[str] | None,
        first: str,
        rows: Sequence[str],
    ) -> CsvHeader:
        """The columns by the options, or else by the cells of the line that names them.

        Args:
            options: how to read the file.
            titles: names of the columns in the file; None without a line of names.
            first: the first line that is no comment.
            rows: first rows of the file.

        Raises:
            RecordingError: there are no names of columns, or the names cannot be used.
        """
        path = self.path
        dialect = self._dialect
        names = self._stated_names(options)
        cells = dialect.cells(rows[0]) if rows else []
        width = max(len(titles or ()), len(cells))
        if width > _MAX_COLUMNS:
            problem = f"has {width} columns, more than any recording"
            raise RecordingError(path, problem, "name a CSV recording")
        longest = max((len(title) for title in titles or ()), default=0)
        if longest > _MAX_NAME:
            problem = f"has a column name of {longest} characters"
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

    def _stated_names(self, options: CsvOptions) -> str | None:
        """Names of the columns by the options, as --columns has them; None without any."""
        if options.layout is None:
            return options.columns
        if options.columns is not None:
            problem = "--columns and --layout exclude each other"
            raise RecordingError(self.path, problem, "give one")
        if options.layout not in LAYOUTS:
            problem = f"there is no layout {options.layout}"
            remedy = f"use one of {', '.join(LAYOUTS)}"
            raise RecordingError(self.path, problem, remedy)
        return ",".join(LAYOUTS[options.layout].fields)


def _with_unit(name: str, unit: str) -> str:
    """The name of a column with its unit in brackets, if it has one."""
    return f"{name} [{unit}]" if unit else name
