# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Printing: JSON and tables on stdout, notes and progress on stderr."""

from __future__ import annotations

import math
import re
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from ur_energy_model.errors import one_line, unsigned_zeros

if TYPE_CHECKING:
    from pathlib import Path

    from rich.table import Table

    from ur_energy_model.telemetry.recording.writing_thread import RecorderStatus

WIDTH = 80  # columns of tables outside a terminal, and of descriptions in help texts
LONG_HEADING = 7  # headings of tables that are longer may be broken into lines


_NO_NUMBER = re.compile(r"(?<![\w./\"-])[-+]?(?:nan|inf)(?![\w./\"-])")
"""Formatted numbers that are none."""


def known(text: str) -> str:
    """Text for people: a formatted NaN or infinity is "unknown"."""
    return _NO_NUMBER.sub("unknown", text)


def print_json(value: Any) -> None:
    """Print one JSON document on stdout.

    Args:
        value: of dictionaries, lists, dataclasses, arrays and numbers; arrays become lists,
            paths text, NaN and infinity null.
    """
    import json

    from ur_energy_model.codec import plain

    print(known(json.dumps(plain(value), allow_nan=False)))


def picked(source: object, names: str, **further: Any) -> dict[str, Any]:
    """Attributes of an object as entries of JSON.

    Args:
        source: the object.
        names: of attributes, separated by blanks; "told=controller" is the attribute
            `controller` with the key "told".
        further: entries that are added.
    """
    pairs = (name.rpartition("=") for name in names.split())
    return {key or name: getattr(source, name) for key, _, name in pairs} | further


def recording_json(bag: Path, status: RecorderStatus) -> dict[str, Any]:
    """JSON of a finished recording: where it is, its samples, and what was lost.

    Args:
        bag: the recording.
        status: of the recorder at its end.
    """
    lost = {"lost": status.losses.samples, "lost_seconds": status.losses.seconds}
    others = picked(status, "unreadable duplicates skipped gaps seconds")
    return {"bag": bag, "samples": status.samples, **lost, **others}


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


def defined(title: str, entries: Mapping[str, str]) -> str:
    """A heading, and terms with their descriptions side by side, as text for people."""
    column = 4 + max(map(len, entries))
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


_NUMBER = re.compile(r"-|nan|[-+]?[0-9][0-9.,e+-]*")  # cells that must stay in one line
_HEADING = re.compile(r"(.*) ", re.DOTALL)
"""A heading up to where it is broken last: at a space."""
JOINT = "_joint"  # at the end of the name of a joint; left out where a table is too wide


def ask(question: str) -> str:
    """Ask the user at the terminal; the question is on stderr, the answer without line end."""
    print(one_line(question), end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip()


def print_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]
) -> None:
    """Print a table on stdout: numbers with four significant digits, first column left-aligned.

    A table that is too wide gets headings of several lines, joints without "_joint", no
    space around its columns, and outside a terminal more than `WIDTH` columns. Words that
    name a row stay whole.
    """
    from rich.console import Console
    from rich.measure import Measurement

    headings = [one_line(column) for column in columns]
    cells = [[_cell(value) for value in row] for row in rows]
    console = Console(highlight=False, markup=False)  # units in [brackets] are not markup
    if not console.is_terminal:
        console = Console(highlight=False, markup=False, width=WIDTH)
    measured = console.options.update(width=10 * WIDTH)
    for narrower in _narrower(headings, cells):
        table = _table(one_line(title), *narrower)
        needed = Measurement.get(console, measured, table)
        if needed.maximum <= console.width:
            break
    if not console.is_terminal:  # sentences may be folded, numbers and names of rows not
        width = max(needed.minimum, WIDTH)
        console = Console(highlight=False, markup=False, width=width)
    console.print(table)


_Layout = tuple[list[str], list[list[str]], int]
"""Headings, cells by row, and spaces around a column."""


def _narrower(headings: list[str], cells: list[list[str]]) -> Iterator[_Layout]:
    """Layouts of a table, each narrower than the one before."""
    space = 1
    yield headings, cells, space
    yield from ((broken, cells, space) for broken in _broken(headings, cells))
    *_, headings = (headings, *_broken(headings, cells))
    headings = [heading.removesuffix(JOINT) for heading in headings]
    cells = [[row[0].removesuffix(JOINT), *row[1:]] if row else row for row in cells]
    yield headings, cells, space
    # What is wider than its longest word is then a sentence, and can be folded.
    numeric = _numeric(headings, cells)
    words = [
        heading.replace(" ", "\n") if number else heading
        for heading, number in zip(headings, numeric, strict=True)
    ]
    yield words, cells, 0


def _broken(headings: list[str], cells: list[list[str]]) -> Iterator[list[str]]:
    """Headings of numbers, of which the longest is broken at a space, again and again."""
    headings = list(headings)
    numeric = _numeric(headings, cells)
    while True:
        lengths = {
            max(map(len, heading.split("\n"))): column
            for column, heading in reversed(list(enumerate(headings)))
            if numeric[column] and _HEADING.match(heading)
        }
        if max(lengths, default=0) <= LONG_HEADING:
            return
        longest = lengths[max(lengths)]
        headings[longest] = _HEADING.sub(r"\1\n", headings[longest], count=1)
        yield list(headings)


def _numeric(headings: list[str], cells: list[list[str]]) -> list[bool]:
    """Whether a column has nothing but numbers, for each of them."""
    return [
        bool(cells) and all(_NUMBER.fullmatch(row[column]) for row in cells)
        for column in range(len(headings))
    ]


def _table(title: str, headings: list[str], cells: list[list[str]], space: int) -> Table:
    """A table of rich."""
    from rich import box
    from rich.table import Table

    table = Table(
        title=title, title_justify="left", box=box.SIMPLE_HEAD, title_style="bold"
    )
    table.padding = (0, space)
    numeric = _numeric(headings, cells)
    for column, heading in enumerate(headings):
        named = column == 0 and all(" " not in row[0] for row in cells)
        table.add_column(
            heading,
            justify="left" if column == 0 else "right",
            overflow="fold",  # a number without its last digits would be another one
            no_wrap=named or numeric[column],
        )
    for row in cells:
        table.add_row(*row)
    return table


def print_objects(
    title: str, objects: Iterable[Any], columns: Mapping[str, str | Callable[[Any], Any]]
) -> None:
    """Print a table with a row for each object.

    Args:
        title: of the table.
        objects: dataclasses or mappings.
        columns: by heading, a key or attribute of the objects, or a function of one of
            them.
    """

    def cell(each: Any, column: str | Callable[[Any], Any]) -> Any:
        if callable(column):
            return column(each)
        return each[column] if isinstance(each, Mapping) else getattr(each, column)

    rows = [[cell(each, column) for column in columns.values()] for each in objects]
    print_table(title, tuple(columns), rows)


QUIET = 1.0  # time after which a task that takes long is named where there is no bar [s]


@contextmanager
def progress(title: str) -> Iterator[Callable[..., None]]:
    """Show the progress of a task on stderr: a bar in a terminal, elsewhere one line.

    What the context gives takes the fraction done (0 to 1, NaN if unknown) and, where it
    changes, what is being done.
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
    named = not bar.disable

    def report(fraction: float, text: str | None = None) -> None:
        nonlocal named
        known = math.isfinite(fraction)
        bar.update(
            task, total=1.0 if known else None, completed=fraction if known else 0.0
        )
        if text is not None:
            bar.update(task, description=one_line(text))
        if not named and time.monotonic() - began > QUIET:
            note(f"{title} ...")
            named = True

    with bar:
        yield report


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, Real) and not isinstance(value, Integral):
        return "-" if not math.isfinite(value) else unsigned_zeros(f"{value:.4g}")
    return known(one_line(str(value)))
