"""Tables without a header line: their shape, and suggestions for their columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ur_energy_model.errors import RecordingError
from ur_energy_model.telemetry.csv.layouts import LAYOUTS
from ur_energy_model.telemetry.csv.text import Dialect
from ur_energy_model.telemetry.csv.time_column import is_date
from ur_energy_model.typing import Array

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
