# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Printing: JSON and tables on stdout, notes and progress on stderr."""

from __future__ import annotations

import math
import re
import sys
import textwrap
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from ur_energy_model.errors import one_line, unsigned_zeros

if TYPE_CHECKING:
    from pathlib import Path

    from rich.table import Table

    from ur_energy_model.telemetry.recording.writing_thread import RecorderStatus

WIDTH = 80  # columns of tables outside a terminal, and of descriptions in help texts
LONG_HEADING = 7
"""Characters of a line of a heading; longer headings of tables may be broken into lines."""
QUIET = 1.0
"""Time after which a task is named on stderr where there is no bar [s]."""
_NO_NUMBER = re.compile(r"(?<![\w./\"-])[-+]?(?:nan|inf)(?![\w./\"-])")
"""A formatted NaN or infinity, which is not a part of a word, a path or a quoted text."""


def known(text: str) -> str:
    """The text with "unknown" in place of each formatted NaN or infinity."""
    return _NO_NUMBER.sub("unknown", text)


def print_json(value: Any) -> None:
    """Print one JSON document on stdout.

    Args:
        value: nested dictionaries, lists, dataclasses, arrays and numbers; arrays become
            lists, paths text, NaN and infinity null.
    """
    import json

    from ur_energy_model.codec import plain

    print(known(json.dumps(plain(value), allow_nan=False)))


def picked(source: object, names: str, **further: Any) -> dict[str, Any]:
    """Attributes of an object as entries of JSON.

    Args:
        source: the object.
        names: names of attributes, separated by blanks; "rms=torque_rms" is the attribute
            `torque_rms` with the key "rms".
        further: entries that are added.

    Returns:
        The values by key, in the order of the names.
    """
    found: dict[str, Any] = {}
    for word in names.split():
        key, _, name = word.rpartition("=")
        found[key or name] = getattr(source, name)
    return found | further


def recording_json(bag: Path, status: RecorderStatus) -> dict[str, Any]:
    """JSON of a finished recording: where it is, its samples, and what was lost.

    Args:
        bag: the recording.
        status: status of the recorder at its end.
    """
    return {
        "bag": bag,
        "samples": status.samples,
        "lost": status.losses.samples,
        "lost_seconds": status.losses.seconds,
        **picked(status, "unreadable duplicates skipped gaps seconds"),
    }


def print_line(text: str) -> None:
    """Print a line of the result on stdout."""
    print(known(one_line(text)))


def note(text: str) -> None:
    """Print a line for the user on stderr: what happened, what to do next."""
    from rich.console import Console

    Console(stderr=True, highlight=False, soft_wrap=True).print(
        known(one_line(text)), markup=False
    )


def warn(warnings: Iterable[str]) -> None:
    """Print warnings on stderr, a line each."""
    for warning in warnings:
        note(f"warning: {warning}")


def ask(question: str) -> str:
    """Ask the user on stderr; returns the line that is typed, without its end."""
    print(one_line(question), end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip()


def defined(title: str, entries: Mapping[str, str], column: int | None = None) -> str:
    """A heading, and terms with their descriptions side by side, as text for people.

    Args:
        title: the heading.
        entries: descriptions by term; at least one.
        column: column at which descriptions begin; None for two blanks behind the longest
            term.
    """
    if column is None:
        column = len("  ") + max(map(len, entries)) + len("  ")
    lines = [f"{title}:"]
    for term, description in entries.items():
        entry = textwrap.fill(
            f"  {term}".ljust(column) + description,
            WIDTH,
            subsequent_indent=" " * column,
            break_on_hyphens=False,
        )
        lines.append(entry)
    return "\n".join(lines)


# Tables. A table that fits the width of the terminal, or WIDTH elsewhere, is printed as it
# is; else `_narrower` makes the table narrower, step by step.

_NUMBER = re.compile(r"-|nan|[-+]?[0-9][0-9.,e+-]*")
"""A cell with a number or "-", which must stay in one line."""
JOINT = "_joint"
"""End of the name of a joint, which is left out where a table is too wide."""


def print_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]
) -> None:
    """Print a table on stdout; numbers have four significant digits.

    The first column is left-aligned, the others are right-aligned. A table that is too
    wide gets headings of several lines, joints without "_joint", and no space around its
    columns, in this order. Outside a terminal it may still have more than WIDTH columns,
    because numbers and the words that name a row are never broken.

    Args:
        title: line above the table.
        columns: headings.
        rows: cells of each row, as many as there are headings; None is "-".
    """
    from rich.console import Console
    from rich.measure import Measurement

    headings = [one_line(column) for column in columns]
    cells = [[_cell(value) for value in row] for row in rows]
    console = Console(highlight=False, markup=False)  # units in [brackets] are not markup
    if not console.is_terminal:
        console = Console(highlight=False, markup=False, width=WIDTH)
    unlimited = console.options.update(width=10 * WIDTH)  # no limit to a measured width
    for narrower in _narrower(headings, cells):
        table = _table(one_line(title), *narrower)
        needed = Measurement.get(console, unlimited, table)
        if needed.maximum <= console.width:
            break
    if not console.is_terminal:  # sentences may be folded, numbers and names of rows not
        width = max(needed.minimum, WIDTH)
        console = Console(highlight=False, markup=False, width=width)
    console.print(table)


_Layout = tuple[list[str], list[list[str]], int]
"""Headings, cells by row, and spaces around a column."""


def _narrower(headings: list[str], cells: list[list[str]]) -> Iterator[_Layout]:
    """Layouts of a table, each narrower than the one before; the first is the widest.

    Args:
        headings: headings of the columns.
        cells: cells by row.
    """
    space = 1
    yield headings, cells, space
    for broken in _broken(headings, cells):
        headings = broken
        yield headings, cells, space
    headings = [heading.removesuffix(JOINT) for heading in headings]
    short: list[list[str]] = []
    for first, *others in cells:
        short.append([first.removesuffix(JOINT), *others])
    yield headings, short, space
    # With a word a line, headings of numbers are as narrow as their longest word. Only
    # columns of text are wider than their longest word then; these can be folded.
    words: list[str] = []
    for heading, is_number in zip(headings, _numeric(headings, short), strict=True):
        words.append(heading.replace(" ", "\n") if is_number else heading)
    yield words, short, 0


def _broken(headings: list[str], cells: list[list[str]]) -> Iterator[list[str]]:
    """Narrower headings: each step breaks the longest heading at its last space.

    Only headings of columns of numbers are broken, until none is longer than
    LONG_HEADING.

    Args:
        headings: headings of the columns, which stay as they are.
        cells: cells by row.

    Yields:
        All headings after each step.
    """
    headings = list(headings)
    numeric = _numeric(headings, cells)
    while True:
        widest = None  # the column with the longest heading that can be broken
        largest_width = LONG_HEADING
        for column, heading in enumerate(headings):
            width = max(map(len, heading.split("\n")))
            if numeric[column] and " " in heading and width > largest_width:
                widest = column
                largest_width = width
        if widest is None:
            return
        before, _, behind = headings[widest].rpartition(" ")
        headings[widest] = f"{before}\n{behind}"
        yield list(headings)


def _numeric(headings: list[str], cells: list[list[str]]) -> list[bool]:
    """Whether a column has nothing but numbers, for each column; False without rows."""
    numeric: list[bool] = []
    for column in range(len(headings)):
        numbers = [_NUMBER.fullmatch(row[column]) is not None for row in cells]
        numeric.append(bool(numbers) and all(numbers))
    return numeric


def _table(title: str, headings: list[str], cells: list[list[str]], space: int) -> Table:
    """A table of rich, in which numbers and the words that name a row stay whole.

    Args:
        title: line above the table.
        headings: headings of the columns; they may have several lines.
        cells: cells by row.
        space: blanks on either side of a column.
    """
    from rich import box
    from rich.table import Table

    table = Table(
        title=title, title_justify="left", box=box.SIMPLE_HEAD, title_style="bold"
    )
    table.padding = (0, space)
    numeric = _numeric(headings, cells)
    for column, heading in enumerate(headings):
        names_rows = column == 0 and all(" " not in row[0] for row in cells)
        table.add_column(
            heading,
            justify="left" if column == 0 else "right",
            overflow="fold",  # a number without its last digits would be another one
            no_wrap=names_rows or numeric[column],
        )
    for row in cells:
        table.add_row(*row)
    return table


def print_values(title: str, values: Mapping[str, Any], hidden: Collection[str]) -> None:
    """Print values on stdout as a table, with a row for each.

    Args:
        title: title of the table.
        values: values by name, such as the JSON of a command.
        hidden: names that are left out.
    """
    rows = [(name, value) for name, value in values.items() if name not in hidden]
    print_table(title, ("", "value"), rows)


def print_objects(
    title: str, objects: Iterable[Any], columns: Mapping[str, str | Callable[[Any], Any]]
) -> None:
    """Print a table with a row for each object.

    Args:
        title: title of the table.
        objects: dataclasses or mappings.
        columns: values of the columns by heading: a key or attribute of the objects, or a
            function of an object.
    """

    def cell(each: Any, column: str | Callable[[Any], Any]) -> Any:
        """The value of one object in one column."""
        if callable(column):
            return column(each)
        return each[column] if isinstance(each, Mapping) else getattr(each, column)

    rows = [[cell(each, column) for column in columns.values()] for each in objects]
    print_table(title, tuple(columns), rows)


@contextmanager
def progress(title: str) -> Iterator[Callable[..., None]]:
    """Show the progress of a task on stderr: a bar in a terminal, elsewhere one line.

    Args:
        title: title of the task.

    Yields:
        A function that shows how far the task is. Its arguments are the fraction that is
        done (0 to 1, NaN if unknown) and, where the title changes, the new title.
    """
    from rich import progress as rich
    from rich.console import Console

    console = Console(stderr=True)
    bar = rich.Progress(
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.TextColumn("{task.percentage:>3.0f}%"),
        rich.TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    task = bar.add_task(one_line(title), total=1.0)
    began = time.monotonic()
    named = not bar.disable  # whether the user has seen the title

    def report(fraction: float, text: str | None = None) -> None:
        """Show a fraction that is done, and a new title if it is not None."""
        nonlocal named
        if math.isfinite(fraction):
            bar.update(task, total=1.0, completed=fraction)
        else:
            bar.update(task, total=None, completed=0.0)
        if text is not None:
            bar.update(task, description=one_line(text))
        if not named and time.monotonic() - began > QUIET:
            note(f"{title} ...")
            named = True

    with bar:
        yield report


def _cell(value: Any) -> str:
    """A cell of a table as text; "-" for None, NaN and infinity."""
    if value is None:
        return "-"
    if isinstance(value, Real) and not isinstance(value, Integral):
        return "-" if not math.isfinite(value) else unsigned_zeros(f"{value:.4g}")
    return known(one_line(str(value)))
