"""`ur_energy history summary|report|health|export|sql`: questions to a store."""

from __future__ import annotations

import json
import sys
from itertools import islice
from typing import TYPE_CHECKING, Any

from ur_energy_model.cli import arguments
from ur_energy_model.cli.arguments import add_tariff_options, tariff_given
from ur_energy_model.cli.history import add_store, store_given
from ur_energy_model.cli.output import note, print_json, print_line, print_table, progress, warn

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping

    import pyarrow

    from ur_energy_model.plant.database import HistoryDatabase, Period, QueryResult
    from ur_energy_model.report.tariff import Tariff


KEYS = ("arm", "hour", "shift", "day", "week", "month", "program", "joint")
"""What the energy can be summed up by."""


def _add_period_options(parser: argparse.ArgumentParser) -> None:
    """`--from`, `--to`, `--time-zone` and `--arm`."""
    parser.add_argument(
        "--from",
        dest="first",
        metavar="DATE",
        help="first day, YYYY-MM-DD, or time, YYYY-MM-DDTHH:MM (default: where the store begins)",
    )
    parser.add_argument(
        "--to",
        dest="last",
        metavar="DATE",
        help="last day, included, or time at which it ends (default: where the store ends)",
    )
    parser.add_argument(
        "--time-zone",
        default="UTC",
        metavar="NAME",
        help="in which days, hours and shifts begin, such as Europe/Berlin (default: %(default)s)",
    )
    parser.add_argument(
        "--arm",
        action="append",
        default=[],
        metavar="NAME",
        help="only this arm (may be repeated; default: all)",
    )


def _period_given(options: argparse.Namespace) -> Period:
    from ur_energy_model.plant.database import Period

    return Period.from_text(options.first, options.last, options.time_zone)


def _database_given(options: argparse.Namespace) -> HistoryDatabase:
    """The tables of STORE, as far as the options select them."""
    from ur_energy_model.plant.database import HistoryDatabase

    return HistoryDatabase(store_given(options), _period_given(options), arms=tuple(options.arm))


# history summary


@arguments.command(
    "history summary",
    "sum up the energy by arm, calendar, program or joint",
    "Sum up the energy in a history store by arm, hour, shift, day, week, month, "
    "program or joint, with the shares of standby, idle and motion, and its cost and CO2.",
    "ur_energy history summary plant\n"
    "ur_energy history summary plant --by month --tariff 0.25 --co2 0.38\n"
    "ur_energy history summary plant --by shift --shifts 06:00,14:00,22:00 "
    "--time-zone Europe/Berlin\n"
    "ur_energy history summary plant --by arm --by joint --from 2026-05-01 --to 2026-05-31",
    add_store,
    arguments.option(
        "--by",
        action="append",
        choices=KEYS,
        help="what the rows are (default: arm; may be repeated)",
    ),
    _add_period_options,
    arguments.option(
        "--shifts",
        metavar="TIMES",
        help="when the shifts of a day begin, such as 06:00,14:00,22:00",
    ),
    (arguments.add_group, "cost", add_tariff_options),
    arguments.add_json,
    notes="""what the figures are:
  kWh          by the model, at the supply of the arm; --json has J, and what the bus measured
  standby      the part of the energy that the arm takes at all times, also in motion
  idle         the energy while no joint moves, standby included
  motion       the energy while a joint moves, standby included; idle and motion are all of it
  outside      what no complete cycle contains
  hours, W     time that the store accounts for, of all arms; mean power""",
)
def _summary(options: argparse.Namespace) -> None:
    from ur_energy_model.plant.database import shift_starts
    from ur_energy_model.plant.summary import summarise

    tariff, keys = tariff_given(options), tuple(dict.fromkeys(options.by or ["arm"]))
    with _database_given(options) as database:
        shifts = () if options.shifts is None else shift_starts(options.shifts)
        summary = summarise(database, keys, shifts)
        warnings = database.warnings
    warn(warnings)

    def priced(row: Mapping[str, Any]) -> dict[str, Any]:
        energy = row["energy"]
        cost, co2 = (
            (None, None) if energy is None else (tariff.cost(energy), tariff.emission(energy))
        )
        return {**row, "cost": cost, "co2": co2}

    if options.json:
        content: dict[str, Any] = {
            "rows": [priced(row) for row in summary.rows],
            "total": priced(summary.total),
            "time_zone": options.time_zone,
            "currency": options.currency,
        }
        if summary.outside_cycles is not None:
            content["outside_cycles"] = priced(summary.outside_cycles)
        print_json({**content, "warnings": list(warnings)})
        return
    rows = [_cells(row, [_name(row[key]) for key in keys], tariff) for row in summary.rows]
    blank = [""] * (len(keys) - 1)
    if summary.outside_cycles is not None:
        rows.append(_cells(summary.outside_cycles, ["outside", *blank], tariff))
    rows.append(_cells(summary.total, ["total", *blank], tariff))
    columns = [*keys, "kWh", "standby %", "idle %", "motion %", "hours"]
    columns += ["W"] if tariff.price is None and tariff.co2 is None else []
    columns += [] if tariff.price is None else [tariff.currency]
    columns += [] if tariff.co2 is None else ["kg CO2"]
    arms = summary.total["arms"]
    print_table(f"energy of {arms} arm{'' if arms == 1 else 's'}", columns, rows)
    if not summary.rows:
        missing, remedy = "energy", "add recordings with history add"
        if arms:
            missing, remedy = "complete cycle", "its energy is outside of cycles"
        of_arms = " of these arms" if options.arm else ""
        note(f"{options.store}: has no {missing}{of_arms} of this time; {remedy}")
    note(f"days and hours are those of {options.time_zone}")


def _cells(row: Mapping[str, Any], names: list[str], tariff: Tariff) -> list[Any]:
    from ur_energy_model.report.tariff import JOULES_PER_KWH

    energy, time = row["energy"], row["duration"]
    parts = [row[f"{name}_energy"] for name in ("standby", "idle", "motion")]
    cells = [
        *names,
        None if energy is None else energy / JOULES_PER_KWH,
        *(None if part is None or not energy else 100 * part / energy for part in parts),
        None if time is None else time / 3600,
    ]
    if tariff.price is None and tariff.co2 is None:
        cells.append(energy / time if energy is not None and time else None)
    if tariff.price is not None:
        cells.append(None if energy is None else tariff.cost(energy))
    if tariff.co2 is not None:
        cells.append(None if energy is None else tariff.emission(energy))
    return cells


def _name(value: Any) -> str:
    """A key in words."""
    if value is None:
        return "unnamed"
    return f"{value:%Y-%m-%d %H:%M}" if hasattr(value, "hour") else str(value)


# history report


@arguments.command(
    "history report",
    "write one HTML page about all arms",
    "Write one HTML page that needs no network: energy of the fleet by day, hour "
    "of the week and arm, cycles over time, days on which an arm was unlike itself, and cost "
    "and CO2.",
    "ur_energy history report plant -o plant.html --tariff 0.25 --co2 0.38\n"
    "ur_energy history report plant -o may.html --from 2026-05-01 --to 2026-05-31 "
    "--time-zone Europe/Berlin",
    add_store,
    (arguments.add_output, "FILE.html", "page to write"),
    _add_period_options,
    (arguments.add_group, "cost", add_tariff_options),
    arguments.add_json,
)
def _report(options: argparse.Namespace) -> None:
    from ur_energy_model.files import check_target, write_text
    from ur_energy_model.report.page import render
    from ur_energy_model.report.plant import make_plant_report, plant_page

    check_target(options.output)
    tariff = tariff_given(options)
    with progress("report") as show, _database_given(options) as database:
        report = make_plant_report(database, options.store, tariff)
        show(0.9, "writing")
        write_text(options.output, render(plant_page(report)))
        warnings = database.warnings
    warn(warnings)
    verdict = report.verdict
    if options.json:
        energy = report.fleet.total("energy")
        print_json(
            {
                "report": str(options.output),
                "bytes": options.output.stat().st_size,
                "arms": len(report.fleet.arms),
                "days": len(report.fleet.days),
                "energy": energy,
                "cost": tariff.cost(energy),
                "co2": tariff.emission(energy),
                "headline": verdict.headline,
                "statements": [item.text for item in verdict.statements],
                "anomalies": [vars(each) | {"text": each.text} for each in report.anomalies],
                "warnings": list(warnings),
            }
        )
        return
    print_line(verdict.headline)
    for item in verdict.statements:
        print_line(f"- {item.text}")
    note(f"report written to {options.output}; open it in a browser")


# history health


@arguments.command(
    "history health",
    "friction, torque constants and standby power over days",
    "Follow the friction and the torque constant of each joint and the standby "
    "power of each arm over days, at equal temperature. Changes that are larger than their "
    "uncertainty are given in words.",
    "ur_energy history health plant\nur_energy history health s3://plant/history --json",
    add_store,
    arguments.add_json,
)
def _health(options: argparse.Namespace) -> None:
    from ur_energy_model.plant.plant_health import plant_health

    store = store_given(options)
    with progress("following the arms") as report:
        arms, warnings = plant_health(store.address, progress=report)
    warn(warnings)
    changes = [change for arm in arms for change in arm.changes]
    if options.json:
        entries = [{"arm": a.arm, "robot": a.robot, "levels": a.levels} for a in arms]
        print_json({"arms": entries, "changes": changes, "warnings": list(warnings)})
        return
    for arm in arms:
        rows = [
            [
                "whole arm" if entry["joint"] is None else entry["joint"],
                entry["what"],
                f"{entry['value']:.4g}",
                f"{(entry['interval'][1] - entry['interval'][0]) / 2:.2g}",
                entry["unit"],
                "-" if entry["temperature"] is None else f"{entry['temperature']:.0f}",
                len(entry["days"]),
            ]
            for entry in arm.levels
        ]
        print_table(
            f"{arm.arm} ({arm.robot}): levels now, at equal temperature",
            ["joint", "what", "level", "± 95 %", "unit", "degC", "days"],
            rows,
        )
    for change in changes:
        low, high = change.interval
        interval = f"{100 * low:+.0f} to {100 * high:+.0f} %"
        if change.what == "standby power":
            interval = f"{low:+.1f} to {high:+.1f} W"
        print_line(f"{change.words} (95 % interval {interval})")
    quiet = sum(not arm.changes for arm in arms)
    note(f"{quiet} of {len(arms)} arms without a change that is larger than its uncertainty")


# history export


@arguments.command(
    "history export",
    "write seconds or cycles to a CSV file",
    "Write the rows of a table to a CSV file, in order of arm and time, with one "
    "column per joint. Other programs can also read the Parquet files of the store directly.",
    "ur_energy history export plant -o may.csv --from 2026-05-01 --to 2026-05-31\n"
    "ur_energy history export plant -o cycles.csv --table cycles --arm 20225500123",
    add_store,
    (arguments.add_output, "FILE.csv", "file to write"),
    (arguments.add_choice, "--table", ("seconds", "cycles"), "what to write"),
    _add_period_options,
    arguments.add_json,
)
def _export(options: argparse.Namespace) -> None:
    from ur_energy_model.plant.database import export_csv

    period, store, arms = _period_given(options), store_given(options), tuple(options.arm)
    with progress("exporting") as report:
        rows, warnings = export_csv(
            store, options.table, options.output, period=period, arms=arms, progress=report
        )
    warn(warnings)
    if options.json:
        file = str(options.output)
        print_json({"file": file, "table": options.table, "rows": rows, "warnings": list(warnings)})
    else:
        note(f"{rows} rows of {options.table} written to {options.output}")


# history sql

_INFINITE_DAY, _INFINITE_TIME = 2**31 - 1, 2**63 - 1
"""As DuckDB has them."""
WIDEST = 8
"""Columns that a table in the terminal can have; of more, each row is a table."""


@arguments.command(
    "history sql",
    "query with SQL",
    "Run one SELECT statement of DuckDB's SQL on a history store and print its result.",
    'ur_energy history sql plant "SELECT arm, max(peak_power) FROM seconds GROUP BY '
    'arm"\n'
    'ur_energy history sql plant "SELECT day, sum(energy) FROM joint_seconds '
    "WHERE joint = 'elbow_joint' GROUP BY day ORDER BY day\" --json",
    add_store,
    arguments.option("sql", metavar="SQL", help="SELECT statement"),
    _add_period_options,
    (
        arguments.add_number,
        "--limit",
        100,
        "N",
        "rows to print; --json prints all",
        (1, 1_000_000),
    ),
    arguments.add_json,
    notes="""tables:
  seconds        one row per arm and second; columns: docs/history.md, or ask
                 DESCRIBE seconds
  cycles         one row per program cycle
  health         one row per minute of work: friction, torque constants, standby
  joint_seconds  the energies of seconds, one row per joint
  models         one row per model: hash, serial number, date, path
Energies are in J, times in s, powers in W. The store is only read; a query
has no access to files and networks, and at most 2 GB of memory.""",
)
def _sql(options: argparse.Namespace) -> None:
    from ur_energy_model.codec import plain

    with _database_given(options) as database, database.stream(options.sql) as result:
        warn(database.warnings)
        names, rows = result.schema.names, _rows(result)
        if options.json:
            _write_json(names, rows, database.warnings)
            return
        shown = [[_cell(plain(value)) for value in row] for row in islice(rows, options.limit)]
        more = next(rows, None) is not None
    if not shown:
        print_line(f"no rows; columns: {', '.join(names)}")
    elif len(names) <= WIDEST:
        print_table(f"{len(shown)} row{'' if len(shown) == 1 else 's'}", names, shown)
    else:
        for number, row in enumerate(shown, start=1):
            print_table(f"row {number}", ("column", "value"), list(zip(names, row, strict=True)))
    if more:
        note(f"only the first {len(shown)} rows; --limit N prints more, --json all")


def _rows(result: QueryResult) -> Iterator[tuple[Any, ...]]:
    for batch in result.batches:
        yield from zip(*map(_values, batch.columns), strict=True)


def _values(column: pyarrow.Array) -> list[Any]:
    """Values of a column; dates and times beyond the years of Python, 1 to 9999, as text."""
    try:
        values: list[Any] = column.to_pylist()
    except (ValueError, OverflowError):
        values = [_value(each) for each in column]
    return values


def _value(scalar: pyarrow.Scalar) -> Any:
    import numpy as np
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


def _write_json(
    names: list[str], rows: Iterator[tuple[Any, ...]], warnings: tuple[str, ...]
) -> None:
    """One object, written row by row: a result may be larger than memory."""
    from ur_energy_model.codec import plain

    def text(row: tuple[Any, ...]) -> str:
        return json.dumps(plain(dict(zip(names, row, strict=True))), allow_nan=False, default=str)

    first = next(rows, None)  # a query that fails prints nothing
    sys.stdout.write(f'{{"columns": {json.dumps(names)}, "rows": [')
    sys.stdout.write("" if first is None else text(first))
    for row in rows:
        sys.stdout.write(f", {text(row)}")
    sys.stdout.write(f'], "warnings": {json.dumps(warnings)}}}\n')


def _cell(value: Any) -> Any:
    """Numbers as they are; lists and mappings as text."""

    def text(item: Any) -> str:
        return f"{item:.4g}" if isinstance(item, float) else str(item)

    if isinstance(value, list):
        return f"[{', '.join(map(text, value))}]"
    return text(value) if isinstance(value, dict) else value
