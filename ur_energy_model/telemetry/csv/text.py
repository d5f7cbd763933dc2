"""CsvText and Dialect: lines of a plain or gzipped text file, in bounded memory and time."""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import BinaryIO, TextIO, cast

from ur_energy_model.errors import RecordingError
from ur_energy_model.files import open_regular

MAX_LINE = 1 << 20
"""Longest line in characters."""
MAX_TEXT = 16 << 30
"""Largest unpacked size in characters: some hours of all that an arm sends at 500 Hz."""
MAX_RATIO = 200
"""Largest ratio of unpacked to packed size (that of recordings is 3 to 10)."""
MAX_LINES = 10_000_000
"""Largest number of lines."""
_RATIO_FROM = 8 << 20
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
    """The lines of a file; every iteration reads it again.

    Args:
        path: of a text file, plain or gzipped.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def __iter__(self) -> Iterator[tuple[int, str]]:
        """Number (from 1) and text of each line that is not blank.

        Raises:
            RecordingError: it cannot be read, is not text, or is too large.
        """
        try:
            yield from self._lines()
        except OSError as error:
            reason = error.strerror or str(error)
            raise RecordingError(
                self.path, f"cannot be read ({reason})", "check the path"
            ) from None
        except (EOFError, zlib.error):
            raise RecordingError(
                self.path, "ends in the middle of its gzip data", "copy it again"
            ) from None

    def _lines(self) -> Iterator[tuple[int, str]]:
        size = max(self.path.stat().st_size, 1)
        read = number = 0
        with self._open() as file:
            while line := file.readline(MAX_LINE):
                number += 1
                read += len(line)
                if len(line) == MAX_LINE:
                    raise RecordingError(
                        self.path, "has a line of a million characters", "name a CSV recording"
                    )
                if read > MAX_TEXT or (read > _RATIO_FROM and read > MAX_RATIO * size):
                    raise self._too_much(read, size)
                if number > MAX_LINES:
                    raise RecordingError(
                        self.path, f"has more than {MAX_LINES} lines", "import it in parts"
                    )
                if number == 1 and "\0" in line:
                    raise RecordingError(self.path, "is not text", "name a CSV recording")
                if not line.isspace():
                    yield number, line

    def _too_much(self, read: int, size: int) -> RecordingError:
        if read > MAX_TEXT:
            return RecordingError(
                self.path, f"is longer than {MAX_TEXT >> 30} GiB of text", "import it in parts"
            )
        return RecordingError(
            self.path,
            f"unpacks to more than {MAX_RATIO} times its {size} bytes, which no recording does",
            "name a CSV recording",
        )

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
