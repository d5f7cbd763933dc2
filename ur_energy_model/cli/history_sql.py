"""`ur_energy history sql`: queries of a history store."""

from __future__ import annotations

import json
import sys
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from ur_energy_model.cli import arguments
from ur_energy_model.cli.history import add_store
from ur_energy_model.cli.history_options import add_period_options, database_given
from ur_energy_model.cli.output import note, print_json, print_line, print_table, warn
from ur_energy_model.codec import plain

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    import pyarrow

    from ur_energy_model.plant.database import QueryResult

_INFINITE_DAY, _INFINITE_TIME = 2**31 - 1, 2**63 - 1
"""As DuckDB has them."""
WIDEST = 8
"""Columns that a table in the terminal can have; of more, each row is a table."""
_NOTES = """tables:
  seconds        one row per arm and second; columns: docs/history.md, or ask
                 DESCRIBE seconds
  cycles         one row per program cycle
  health         one row per minute of work: friction, torque constants, standby
  joint_seconds  the energies of seconds, one row per joint
  models         one row per model: hash, serial number, date, path
Energies are in J, times in s, powers in W. The store is only read; a query
has no access to files and networks, and at most 2 GB of memory."""


def register(subparsers: arguments.Subparsers) -> None:
    """Add the subcommand."""
    parser = arguments.add_command(
        subparsers,
        "sql",
        run,
        summary="query with SQL",
        description="Run one SELECT statement of DuckDB's SQL on a history store and print its "
        "result.",
        examples='ur_energy history sql plant "SELECT arm, max(peak_power) FROM seconds GROUP BY '
        'arm"\n'
        'ur_energy history sql plant "SELECT day, sum(energy) FROM joint_seconds '
        "WHERE joint = 'elbow_joint' GROUP BY day ORDER BY day\" --json",
        notes=_NOTES,
    )
    add_store(parser)
    parser.add_argument("sql", metavar="SQL", help="SELECT statement")
    add_period_options(parser)
    arguments.add_number(
        parser, "--limit", 100, "N", "rows to print; --json prints all", (1, 1_000_000)
    )
    arguments.add_json(parser)


def run(options: argparse.Namespace) -> None:
    """Ask and print."""
    with database_given(options) as database, database.stream(options.sql) as batches:
        warn(database.warnings)
        names, rows = batches.schema.names, _rows(batches)
        if options.json:
            _print_json(names, rows, database.warnings)
            return
        shown = list(islice(rows, options.limit))
        more = next(rows, None) is not None
    _print(names, shown)
    if more:
        note(f"only the first {len(shown)} rows; --limit N prints more, --json all")


def _rows(batches: QueryResult) -> Iterator[tuple[Any, ...]]:
    for batch in batches:
        yield from zip(*map(_values, batch.columns), strict=True)


def _values(column: pyarrow.Array) -> list[Any]:
    """Values of a column; dates and times beyond the years of Python, 1 to 9999, as text."""
    try:
        values: list[Any] = column.to_pylist()
        return values
    except (ValueError, OverflowError):
        return [_value(each) for each in column]


def _value(scalar: pyarrow.Scalar) -> Any:
    import pyarrow as pa

    try:
        return scalar.as_py()
    except (ValueError, OverflowError):
        kind = scalar.type
        if pa.types.is_nested(kind) and not pa.types.is_struct(kind):
            return [_value(each) for each in scalar.values]
        if pa.types.is_struct(kind):
            return {name: _value(each) for name, each in scalar.items()}
        unit: Any = "D" if pa.types.is_date32(kind) else getattr(kind, "unit", None)
        if unit is None:
            return "out of range"
        if abs(scalar.value) >= (_INFINITE_DAY if unit == "D" else _INFINITE_TIME):
            return "infinity" if scalar.value > 0 else "-infinity"
        return str(np.datetime64(scalar.value, unit))


def _print_json(
    names: list[str], rows: Iterator[tuple[Any, ...]], warnings: tuple[str, ...]
) -> None:
    """One object, written row by row: a result may be larger than memory."""
    first = next(rows, None)  # a query that fails prints nothing
    if first is None:
        print_json({"columns": names, "rows": [], "warnings": list(warnings)})
        return
    out = sys.stdout
    out.write(f'{{"columns": {json.dumps(names)}, "rows": [{_object(names, first)}')
    for row in rows:
        out.write(f", {_object(names, row)}")
    out.write(f'], "warnings": {json.dumps(warnings)}}}\n')


def _object(names: list[str], row: tuple[Any, ...]) -> str:
    return json.dumps(plain(dict(zip(names, row, strict=True))), allow_nan=False, default=str)


def _print(names: list[str], rows: list[tuple[Any, ...]]) -> None:
    if not rows:
        print_line(f"no rows; columns: {', '.join(names)}")
        return
    cells = [[_cell(value) for value in row] for row in rows]
    if len(names) <= WIDEST:
        print_table(f"{len(rows)} row{'' if len(rows) == 1 else 's'}", names, cells)
        return
    for number, row in enumerate(cells, start=1):
        print_table(f"row {number}", ("column", "value"), list(zip(names, row, strict=True)))


def _cell(value: Any) -> Any:
    """Numbers as they are; times and lists as text."""
    value = plain(value)
    if isinstance(value, list):
        return "[" + ", ".join(_text(item) for item in value) + "]"
    return _text(value) if isinstance(value, dict) else value


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
