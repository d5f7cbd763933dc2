# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Lines of a CSV recording in bounded memory and time, and the cells of lines."""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from ur_energy_model.errors import RecordingError
from ur_energy_model.files import Budget, open_regular
from ur_energy_model.telemetry.csv.times import looks_like_date

MAX_LINE = 1 << 20  # longest line in characters
MAX_TEXT = 16 << 30
"""Largest unpacked size in characters: some hours of all that an arm sends at 500 Hz."""
MAX_RATIO = 200
"""Largest ratio of unpacked to packed size (3 to 10 is usual)."""
_FREE = 8 << 20
"""Unpacked size in characters up to which the ratio does not count."""
MAX_LINES = 6_000_000  # largest number of lines: more than three hours at 500 Hz
_GZIP = b"\x1f\x8b"
"""First bytes of gzipped files."""
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
"""First bytes of files in UTF-16, as Excel and Windows programs write them."""
_OTHER_FILES = {
    b"PK\x03\x04": "is a workbook or a zip archive, not a CSV file",
    b"PAR1": "is a Parquet file, not a CSV file",
    b"\xd0\xcf\x11\xe0": "is an old Excel workbook, not a CSV file",
    b"MATLAB": "is a MAT-file of Matlab, not a CSV file",
    b"\x89HDF": "is an HDF5 file, not a CSV file",
    b"\x89MCAP": "is an MCAP file, not a CSV file",
}
"""How other files begin that users have beside CSV files."""


def lines_of(path: Path) -> Iterator[tuple[int, str]]:
    """Number (from 1) and text of each line that is not blank.

    Args:
        path: path of a plain or gzipped file.

    Raises:
        RecordingError: it cannot be read, is not text, or is beyond the budget.
    """
    try:
        with open_regular(path) as raw:
            file = raw
            if raw.read(len(_GZIP)) == _GZIP:
                file = cast("BinaryIO", gzip.GzipFile(fileobj=raw))
            raw.seek(0)
            volume = min(MAX_TEXT, max(_FREE, MAX_RATIO * path.stat().st_size))
            budget = Budget(path, RecordingError, volume, 0, MAX_LINES)
            encoding = _encoding(path, file)
            number = 0
            with TextIOWrapper(file, encoding=encoding, errors="replace") as text:
                while line := text.readline(MAX_LINE):
                    number += 1
                    budget.spend(volume=len(line), items=1)
                    if len(line) == MAX_LINE:
                        problem = "has a line of a million characters"
                        raise RecordingError(path, problem, "name a CSV recording")
                    if number == 1 and "\0" in line:
                        remedy = "name a CSV recording, in UTF-8"
                        raise RecordingError(path, "is not text", remedy)
                    if not line.isspace():
                        yield number, line
    except OSError as error:
        problem = f"cannot be read ({error.strerror or error})"
        raise RecordingError(path, problem, "check the path") from None
    except (EOFError, zlib.error):
        problem = "ends in the middle of its gzip data"
        raise RecordingError(path, problem, "copy it again") from None


def _encoding(path: Path, file: BinaryIO) -> str:
    """Encoding of a text by its first bytes; the file is at its beginning afterwards.

    Raises:
        RecordingError: it begins as another kind of file.
    """
    begin = file.read(8)
    file.seek(0)
    for mark, problem in _OTHER_FILES.items():
        if begin.startswith(mark):
            raise RecordingError(path, problem, "export it as CSV")
    return "utf-16" if begin.startswith(_UTF_16) else "utf-8-sig"


# Columns and numbers of a line.

_DECIMAL = re.compile(r"[+-]?\d+([.,])\d+(?:e[+-]?\d+)?", re.IGNORECASE)
"""A number with decimals, and their mark."""


class Dialect(NamedTuple):
    """Format of the rows of a file: separator of columns, and form of numbers.

    Attributes:
        delimiter: separator between two columns; None for white space.
        decimal_comma: whether 1,5 is a number.
    """

    delimiter: str | None
    decimal_comma: bool = False

    def cells(self, line: str) -> list[str]:
        """Texts of a line's columns, without blanks and quotes around them."""
        if '"' in line:
            # csv.Error: a cell of some hundred thousand characters, which is no table.
            with suppress(csv.Error):
                rows = csv.reader([line.strip()], delimiter=self.delimiter or " ")
                row = next(rows, [])
                return [cell.strip() for cell in row if cell or self.delimiter]
        return [cell.strip() for cell in line.rstrip("\r\n").split(self.delimiter)]

    def columns(self, line: str) -> list[str]:
        """Cells of a line, without the empty one that a delimiter at its end makes."""
        cells = self.cells(line)
        ends_with_delimiter = self.delimiter is not None and cells[-1:] == [""]
        return cells[:-1] if ends_with_delimiter and len(cells) > 1 else cells

    def count(self, line: str) -> int:
        """Number of cells of a line."""
        if self.delimiter is None or '"' in line:
            return len(self.cells(line))
        return line.count(self.delimiter) + 1

    def ends_with_delimiter(self, line: str) -> bool:
        """Whether a delimiter follows the last cell of a line; never with white space."""
        if self.delimiter is None:
            return False
        return line.rstrip("\r\n ").endswith(self.delimiter)

    def number(self, cell: str) -> float | None:
        """A cell as a number, NaN and infinity included; None if it is not one."""
        if self.decimal_comma:
            cell = cell.replace(",", ".", 1)
        try:
            return float(cell)
        except ValueError:
            return None

    def names_columns(self, line: str) -> bool:
        """Whether a first line names columns; in a row of data most cells are numbers or dates."""
        cells = self.cells(line)
        if is_numbering(cells):
            return False
        values = 0
        for cell in cells:
            if self.number(cell) is not None or looks_like_date(cell):
                values += 1
        return 2 * values < len(cells) or values == 0


def is_separator_line(line: str) -> bool:
    """Whether a first line states the delimiter for Excel, as `sep=;`, and is no row."""
    return re.fullmatch(r'"?sep=.?"?\s*', line, re.IGNORECASE) is not None


def is_numbering(cells: Sequence[str]) -> bool:
    """Whether a first line numbers columns without names: 0, 1, 2, ...; two cells may be data."""
    return len(cells) > 2 and list(cells) == [str(i) for i in range(len(cells))]


def find_dialect(lines: Sequence[str]) -> Dialect:
    """The format of the rows of a file, from its first lines.

    Semicolons, tabs and bars have precedence over commas, which may be decimal commas;
    between two blanks, and in quotes, `1,5` is a decimal comma.
    """
    first = lines[0] if lines else ""
    for mark in (";", "\t", "|"):
        if first and all(mark in line for line in lines if line.strip()):
            return Dialect(mark, _with_decimal_commas(lines, mark))
    if "," in first and not _with_decimal_commas([first], None):
        quoted = [line for line in lines if '"' in line]
        return Dialect(",", _with_decimal_commas(quoted, ","))
    return Dialect(None, _with_decimal_commas(lines, None))


def _with_decimal_commas(lines: Sequence[str], delimiter: str | None) -> bool:
    """Whether some line has numbers such as 1,5 and none with a decimal point."""
    for line in lines:
        cells = line.split(delimiter)
        if delimiter == ",":  # decimal commas are in quotes
            cells = Dialect(delimiter).cells(line)
        if delimiter is None and len(cells) == 1:
            continue
        numbers = [_DECIMAL.fullmatch(cell.strip('" \t\r\n')) for cell in cells]
        marks = {number[1] for number in numbers if number is not None}
        if marks == {","}:
            return True
    return False
