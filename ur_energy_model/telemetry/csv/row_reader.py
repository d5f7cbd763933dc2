"""RowReader: rows of a CSV recording as blocks of numbers; malformed rows are counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.errors import RecordingError
from ur_energy_model.telemetry.csv.text import CsvText, Dialect
from ur_energy_model.telemetry.csv.time_column import date_seconds
from ur_energy_model.telemetry.plausibility import IMPOSSIBLE_SHARE
from ur_energy_model.typing import Array

MAX_ROWS = 6_000_000
"""Largest number of rows of a file: more than three hours at 500 Hz."""
_BLOCK_ROWS = 4096
_BLOCK_CHARACTERS = 4 << 20
_REMEDY = "correct or delete such lines"


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
        cut: number of last rows left out because they are cut off.
    """

    rows: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    first: tuple[int, str | None, str] | None = None
    cut: int = 0

    def reject(self, kind: str, count: int, line: int, column: str | None, problem: str) -> None:
        """Count rows; line, column and problem are those of the first one."""
        self.counts[kind] = self.counts.get(kind, 0) + count
        if self.first is None or line < self.first[0]:
            self.first = (line, column, problem)

    def reject_last(self, kind: str, line: int, problem: str) -> None:
        """Count a last row that is cut off, which any file may have."""
        self.reject(kind, 1, line, None, problem)
        self.cut += 1

    @property
    def total(self) -> int:
        """Number of rows left out."""
        return sum(self.counts.values())

    def check(self, path: Path, remedy: str = _REMEDY) -> None:
        """Refuse a file with too many malformed rows.

        Raises:
            RecordingError: more than IMPOSSIBLE_SHARE of all rows are left out.
        """
        if self.first is None or self.total - self.cut <= IMPOSSIBLE_SHARE * self.rows:
            return
        line, column, problem = self.first
        raise RecordingError(
            path,
            f"line {line} {problem}, the first of {self.total} bad rows among {self.rows} "
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
        return (
            f"left out {self.total} of {self.rows} rows ({kinds}); first: line {line}{place} "
            f"{problem}"
        )


@dataclass(frozen=True)
class RowBlock:
    """Consecutive rows.

    Attributes:
        first: number of the first row in the file, from 0.
        values: wanted columns [rows, wanted], NaN if a cell is no number.
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

    def blocks(self, wanted: Sequence[int], rejected: RejectedRows) -> Iterator[RowBlock]:
        """All rows; a last one that is cut off is counted as left out.

        Args:
            wanted: columns.
            rejected: counts rows and faults.

        Raises:
            RecordingError: the file cannot be read, has too many rows, or a row with another number
                of columns, whose values may belong to others.
        """
        lines: list[int] = []
        texts: list[str] = []
        size = done = 0
        cut: tuple[int, int] | None = None
        for number, line in self.text:
            if number < self.start or is_comment(line):
                continue
            rejected.rows += 1
            if rejected.rows > MAX_ROWS:
                raise RecordingError(
                    self.text.path, f"has more than {MAX_ROWS} rows", "import it in parts"
                )
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
                yield self._block(done, lines, texts, wanted)
                done += len(lines)
                lines, texts, size = [], [], 0
        if lines:
            yield self._block(done, lines, texts, wanted)
        if cut is not None:
            number, count = cut
            if count > self.width or not done + len(lines):
                raise self._refuse_width(number, count)
            problem = f"ends after {count} columns instead of {self.width}"
            rejected.reject_last("a last line that is cut off", number, problem)

    def _refuse_width(self, line: int, count: int) -> RecordingError:
        """The error for a row with another number of cells: its values may have moved."""
        more = f"line {line} has {count} columns instead of {self.width}"
        less = f"line {line} ends after {count} columns instead of {self.width}"
        commas = self.dialect.delimiter == "," and count > self.width
        hint = "; decimal commas need another delimiter, such as ;" if commas else ""
        return RecordingError(
            self.text.path, more if count > self.width else less, f"correct that line{hint}"
        )

    def _count(self, line: str) -> int:
        """Number of columns of a row; a delimiter at its end ends the last one."""
        delimiter = self.dialect.delimiter
        if not self.open_ended or delimiter is None:
            return self.dialect.count(line)
        return self.dialect.count(line) - line.rstrip("\r\n ").endswith(delimiter)

    def cell(self, text: str, column: int) -> str:
        """Text of one cell, at most 40 characters."""
        return self.dialect.cells(text)[column][:40]

    def _block(
        self, first: int, lines: list[int], texts: list[str], wanted: Sequence[int]
    ) -> RowBlock:
        return RowBlock(first, self._numbers(texts, wanted), np.array(lines, dtype=np.int64), texts)

    def _numbers(self, texts: Sequence[str], wanted: Sequence[int]) -> Array:
        dialect = self.dialect
        rows = texts
        if dialect.decimal_comma:
            rows = [text.replace(",", ".") for text in texts]
        if not self.dates and not any('"' in text for text in texts):
            try:
                return np.loadtxt(
                    rows, delimiter=dialect.delimiter, usecols=wanted, comments=None, ndmin=2
                )
            except (ValueError, IndexError):
                pass  # some cell is no number: parse each cell
        return np.array([self._row(text, wanted) for text in texts], dtype=float)

    def _row(self, text: str, wanted: Sequence[int]) -> list[float]:
        cells = self.dialect.cells(text)
        return [
            self._value(cells[column], column in self.dates) if column < len(cells) else np.nan
            for column in wanted
        ]

    def _value(self, cell: str, date: bool) -> float:
        try:
            return date_seconds(cell) if date else self.dialect.number(cell)
        except (ValueError, OverflowError):
            return float("nan")
