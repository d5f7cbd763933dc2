# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Questions to a history store: `ur_energy history summary`, `report`, `health`, `export`, `sql`.

Each command prints a table for people, or one JSON object with `--json`; what the store
has lost is printed as warnings on stderr, and is a part of the JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from ur_energy_model.cli.arguments import tariff_of
from ur_energy_model.cli.output import (
    note,
    print_json,
    print_line,
    print_table,
    progress,
    warn,
)
from ur_energy_model.codec import plain
from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.energy.tariff import JOULES_PER_KWH, Tariff
from ur_energy_model.files import check_output, write_text
from ur_energy_model.plant.commands import opened_store
from ur_energy_model.plant.room import (
    HistoryExportOptions,
    HistoryReportOptions,
    HistorySqlOptions,
    HistorySummaryOptions,
    PeriodOptions,
    StoreOptions,
)
from ur_energy_model.rooms import Given

if TYPE_CHECKING:  # need packages that `ur_energy --help` does not
    import pyarrow

    from ur_energy_model.plant.database import HistoryDatabase, Period
    from ur_energy_model.plant.holdings import Holdings
    from ur_energy_model.plant.plant_health import HealthChange
    from ur_energy_model.plant.query import Query


def _period_of(options: PeriodOptions) -> Period:
    """The time that options select; InputError for a text that is not a date."""
    from ur_energy_model.plant.database import Period

    return Period.from_text(options.first, options.last, options.time_zone)


def _database_of(store: str, options: PeriodOptions) -> HistoryDatabase:
    """The tables of a store, as far as the options select them, for a `with` statement.

    Args:
        store: address of the store.
        options: options that select time and arms.

    Raises:
        UrEnergyError: the store is not there, or a text is not a date.
    """
    from ur_energy_model.plant.database import HistoryDatabase

    return HistoryDatabase(opened_store(store), _period_of(options), arms=options.arm)


def _damage(holdings: Holdings) -> dict[str, object]:
    """For JSON: what is wrong with the store in words, what it has lost, and what mends it."""
    return {
        "warnings": list(holdings.warnings),
        "lost": [loss.entry() for loss in holdings.lost],
        "repairs": list(holdings.repairs),
    }


# Summary.


class _Unit(NamedTuple):
    """A unit of a table.

    Attributes:
        name: heading of its column.
        size: size of the unit in J or s.
    """

    name: str
    size: float


_ENERGIES = (
    _Unit("J", 1.0),
    _Unit("Wh", 3600.0),
    _Unit("kWh", JOULES_PER_KWH),
    _Unit("MWh", 1e3 * JOULES_PER_KWH),
)
_TIMES = (_Unit("s", 1.0), _Unit("minutes", 60.0), _Unit("hours", 3600.0))


def summary(given: Given) -> None:
    """`ur_energy history summary`: sum up the energy.

    Raises:
        UrEnergyError: the store or an option cannot be used.
    """
    from ur_energy_model.energy.calendar import shift_starts
    from ur_energy_model.plant.summary import explained_share, summarise, total_source

    options = given.of(HistorySummaryOptions)
    tariff = tariff_of(options.tariff)
    keys = tuple(dict.fromkeys(options.by or ("arm",)))
    with _database_of(options.store, options.period) as database:
        shifts = () if options.shifts is None else shift_starts(options.shifts)
        summary = summarise(database, keys, shifts)
        holdings = database.holdings
    warn(holdings.warnings)
    rows = [_completed(row, tariff) for row in summary.rows]
    total = _completed(summary.total, tariff)
    outside = {}
    if summary.outside_cycles is not None:
        outside = {"outside_cycles": _completed(summary.outside_cycles, tariff)}
    if options.json:
        content = {
            "rows": rows,
            "total": total,
            "time_zone": options.period.time_zone,
            "currency": options.tariff.currency,
        }
        print_json({**content, **outside, **_damage(holdings)})
        return
    shown = [{**row, **_key_texts(row, keys)} for row in rows]
    for name, row in (("outside", outside.get("outside_cycles")), ("total", total)):
        if row is not None:
            shown.append({**row, **dict.fromkeys(keys, ""), keys[0]: name})
    energy = _unit(total["energy"], _ENERGIES)
    time = _unit(total["duration"], _TIMES)
    table = [_summary_cells(row, keys, energy, time, tariff) for row in shown]
    arms = summary.total["arms"]
    title = f"energy of {arms} arm{'' if arms == 1 else 's'}"
    if holdings.lost:
        title += ", without rows that are lost"
    print_table(title, list(table[-1]), [list(cells.values()) for cells in table])
    if not rows:
        note(f"{options.store}: {_nothing_found(arms, options.period)}")
    source = total_source(summary.total)
    if rows and source is not None:
        print_line(f"total: {source.words(explained_share(summary.total))}")
    note(f"days and hours are those of {options.period.time_zone}")


def _completed(row: Mapping[str, Any], tariff: Tariff) -> dict[str, Any]:
    """A row of a summary with the source of its total, the explained share, cost and CO2."""
    from ur_energy_model.plant.summary import explained_share, total_source

    source = total_source(dict(row))
    cost = None
    co2 = None
    if row["energy"] is not None:
        cost = tariff.cost(row["energy"], row["wall_energy"])
        co2 = tariff.emission(row["energy"], row["wall_energy"])
    return {
        **row,
        "total_source": None if source is None else source.name,
        "total_measured_share": None if source is None else source.share,
        "explained_share": explained_share(dict(row)),
        "cost": cost,
        "co2": co2,
    }


def _unit(total: float | None, units: Sequence[_Unit]) -> _Unit:
    """The unit in which a table is short: the largest in which its total is ten or more.

    Args:
        total: total of the column in the smallest unit; None if unknown.
        units: units in ascending order.
    """
    found = units[0]
    for unit in units:
        if (total or 0.0) >= 10.0 * unit.size:
            found = unit
    return found


def _key_texts(row: Mapping[str, Any], keys: Sequence[str]) -> dict[str, str]:
    """What the keys of a row are in words: months and times as ISO 8601 without seconds."""
    texts = {}
    for key in keys:
        value = row[key]
        if value is None:
            texts[key] = "unnamed"
        elif key == "month":
            texts[key] = f"{value:%Y-%m}"
        elif hasattr(value, "hour"):
            texts[key] = f"{value:%Y-%m-%d %H:%M}"
        else:
            texts[key] = str(value)
    return texts


def _summary_cells(
    row: Mapping[str, Any],
    keys: Sequence[str],
    energy: _Unit,
    time: _Unit,
    tariff: Tariff,
) -> dict[str, Any]:
    """Cells of a row of the summary by heading; None where a value is unknown.

    Args:
        row: row of the summary, with texts for its keys.
        keys: what the energy is summed up by.
        energy: unit of the energies.
        time: unit of the times.
        tariff: price and CO2; without them there is the mean power in their place.
    """
    cells = {key: row[key] for key in keys}
    cells[energy.name] = _ratio(row["energy"], energy.size)
    if "node" in keys:
        cells["times"] = row.get("executions")
    else:
        for part in ("standby", "unexplained", "idle", "motion"):
            cells[f"{part} %"] = _ratio(row[f"{part}_energy"], row["energy"], 100.0)
        cells[f"wall {energy.name}"] = _ratio(row["wall_energy"], energy.size)
        cells["± 95 %"] = _ratio(row["wall_std"], energy.size, CONFIDENCE)
    cells[time.name] = _ratio(row["duration"], time.size)
    if tariff.price is None and tariff.co2 is None:
        cells["W"] = _ratio(row["energy"], row["duration"])
    if tariff.price is not None:
        cells[tariff.currency] = row["cost"]
    if tariff.co2 is not None:
        cells["kg CO2"] = row["co2"]
    return cells


def _ratio(part: float | None, whole: float | None, factor: float = 1.0) -> float | None:
    """Part over whole, times a factor; None where one is unknown, or the whole is 0."""
    return factor * part / whole if part is not None and whole else None


def _nothing_found(arms: int, period: PeriodOptions) -> str:
    """Why a summary has no rows, and what helps.

    Args:
        arms: number of arms that have energy in the period.
        period: options that select the period and the arms.
    """
    of_arms = " of these arms" if period.arm else ""
    if arms:
        return f"has no complete cycle{of_arms} of this time; its energy is outside of cycles"
    return f"has no energy{of_arms} of this time; add recordings with history add"


# Report, health and export.


def report(given: Given) -> None:
    """`ur_energy history report`: write one page about all arms.

    Raises:
        UrEnergyError: the store or an option cannot be used, or the page exists.
    """
    from ur_energy_model.plant.page import make_plant_report, plant_page
    from ur_energy_model.report.render import render

    options = given.of(HistoryReportOptions)
    check_output(options.output, overwrite=options.overwrite)
    tariff = tariff_of(options.tariff)
    opened = _database_of(options.store, options.period)
    with progress("report") as show, opened as database:
        report = make_plant_report(database, options.store, tariff)
        show(0.9, "writing")
        write_text(options.output, render(plant_page(report)))
        holdings = database.holdings
    warn(holdings.warnings)
    verdict = report.verdict
    if not options.json:
        print_line(verdict.headline)
        for item in verdict.statements:
            print_line(f"- {item.text}")
        note(f"report written to {options.output}; open it in a browser")
        return
    energy = report.fleet.total("energy")
    wall = report.fleet.total("wall")
    print_json(
        {
            "report": str(options.output),
            "bytes": options.output.stat().st_size,
            "arms": len(report.fleet.arms),
            "days": len(report.fleet.days),
            "energy": energy,
            "wall_energy": wall,
            "cost": tariff.cost(energy, wall),
            "co2": tariff.emission(energy, wall),
            "headline": verdict.headline,
            "statements": [item.text for item in verdict.statements],
            "anomalies": [vars(each) | {"text": each.text} for each in report.anomalies],
            **_damage(holdings),
        }
    )


def health(given: Given) -> None:
    """`ur_energy history health`: friction, torque constants and standby power over days.

    Raises:
        StoreError: the store is not there, or damaged.
    """
    from ur_energy_model.plant.plant_health import plant_health

    options = given.of(StoreOptions)
    store = opened_store(options.store)
    with progress("following the arms") as report:
        arms, holdings = plant_health(store.address, progress=report)
    warn(holdings.warnings)
    changes = [change for arm in arms for change in arm.changes]
    if options.json:
        entries = [
            {"arm": arm.arm, "robot": arm.robot, "levels": arm.levels} for arm in arms
        ]
        print_json({"arms": entries, "changes": changes, **_damage(holdings)})
        return
    for arm in arms:
        print_table(
            f"{arm.arm} ({arm.robot}): levels now, at equal temperature",
            ("joint", "what", "level", "± 95 %", "unit", "degC", "days"),
            [_level_cells(level) for level in arm.levels],
        )
    for change in changes:
        print_line(f"{change.words} (95 % interval {_interval_text(change)})")
    quiet = sum(not arm.changes for arm in arms)
    note(
        f"{quiet} of {len(arms)} arms without a change that is larger than its uncertainty"
    )


def _level_cells(level: Mapping[str, Any]) -> list[Any]:
    """The level of a joint, or of the whole arm, as cells of a table."""
    low, high = level["interval"]
    temperature = level["temperature"]
    return [
        level["joint"] or "whole arm",
        level["what"],
        f"{level['value']:.4g}",
        f"{(high - low) / 2:.2g}",
        level["unit"],
        "-" if temperature is None else f"{temperature:.0f}",
        len(level["days"]),
    ]


def _interval_text(change: HealthChange) -> str:
    """The interval of a change in W or percent."""
    low, high = change.interval
    if change.what == "standby power":
        return f"{low:+.1f} to {high:+.1f} W"
    return f"{100 * low:+.0f} to {100 * high:+.0f} %"


def export(given: Given) -> None:
    """`ur_energy history export`: write seconds or cycles to a CSV file.

    Raises:
        UrEnergyError: the store or an option cannot be used, or the file exists.
    """
    from ur_energy_model.plant.database import export_csv

    options = given.of(HistoryExportOptions)
    check_output(options.output, overwrite=options.overwrite)
    period = _period_of(options.period)
    store = opened_store(options.store)
    with progress("exporting") as report:
        rows, holdings = export_csv(
            store,
            options.table,
            options.output,
            period=period,
            arms=options.period.arm,
            progress=report,
        )
    warn(holdings.warnings)
    if options.json:
        content = {"file": str(options.output), "table": options.table, "rows": rows}
        print_json(content | _damage(holdings))
    else:
        note(f"{rows} rows of {options.table} written to {options.output}")


# SQL.

WIDEST = 8
"""Columns that a table in the terminal can have; a result of more has a table for each
row."""


def sql(given: Given) -> None:
    """`ur_energy history sql`: run one SELECT statement, and print its result.

    Raises:
        UrEnergyError: the store or the statement cannot be used.
    """
    from ur_energy_model.plant.query import Query

    options = given.of(HistorySqlOptions)
    store = opened_store(options.store)
    query = Query(
        store.address,
        options.sql,
        _period_of(options.period),
        arms=options.period.arm,
        timeout=options.timeout,
    )
    with query as result:
        warn(result.warnings)
        names = result.schema.names
        rows = _rows(result.batches)
        if options.json:
            _write_json(names, rows, result)
            return
        shown = [_cells(row) for row in islice(rows, options.limit)]
        more = next(rows, None) is not None
    if not shown:
        print_line(f"no rows; columns: {', '.join(names)}")
    elif len(names) <= WIDEST:
        print_table(f"{len(shown)} row{'' if len(shown) == 1 else 's'}", names, shown)
    else:
        for number, cells in enumerate(shown, start=1):
            pairs = list(zip(names, cells, strict=True))
            print_table(f"row {number}", ("column", "value"), pairs)
    if more:
        note(f"only the first {len(shown)} rows; --limit N prints more, --json all")


def _rows(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[tuple[Any, ...]]:
    """Rows of a result as values of Python, batch by batch.

    Dates and times beyond the years of Python, 1 to 9999, become text.
    """
    for batch in batches:
        yield from zip(*map(_values, batch.columns), strict=True)


def _values(column: pyarrow.Array) -> list[Any]:
    """Values of a column.

    Sums of integers, which DuckDB gives as decimals, are integers.
    """
    try:
        values = list(column.to_pylist())
    except (ValueError, OverflowError):  # one by one takes six times as long
        return [_value(scalar) for scalar in column]
    if str(column.type).startswith("decimal128") and column.type.scale == 0:
        return [None if each is None else int(each) for each in values]
    return values


def _value(scalar: pyarrow.Scalar) -> Any:
    """A value; "out of range" for a date or time that Python cannot have."""
    try:
        return scalar.as_py()
    except (ValueError, OverflowError):
        return "out of range"


def _write_json(names: list[str], rows: Iterator[tuple[Any, ...]], result: Query) -> None:
    """Write a result as one JSON object, row by row: it may be larger than memory.

    Args:
        names: names of the columns.
        rows: rows of values, which are read as they are written; if the query fails
            before the first of them, nothing is printed.
        result: the query, whose time does not run while a reader of the pipe waits.
    """

    def text(row: tuple[Any, ...]) -> str:
        """A row as a JSON object."""
        content = plain(dict(zip(names, row, strict=True)))
        return json.dumps(content, allow_nan=False, default=str)

    def write(part: str) -> None:
        """Write to stdout, where a pager may wait for its user."""
        with result.paused():
            sys.stdout.write(part)

    first = next(rows, None)
    write(f'{{"columns": {json.dumps(names)}, "rows": [')
    if first is not None:
        write(text(first))
    for row in rows:
        write(f", {text(row)}")
    damage = json.dumps({"warnings": result.warnings, "lost": result.lost})
    write(f"], {damage.removeprefix('{')}\n")


def _cells(row: tuple[Any, ...]) -> list[Any]:
    """The values of a row for a table.

    Numbers have all digits before the point, lists and mappings are text, and everything
    else is as it is.
    """
    cells = []
    for item in row:
        value = plain(item)
        if isinstance(value, list):
            value = f"[{', '.join(map(_text, value))}]"
        elif isinstance(value, dict | float):
            value = _text(value)
        cells.append(value)
    return cells


def _text(item: Any) -> str:
    """A value as text: numbers below 1000 with four digits, larger ones without decimals."""
    if not isinstance(item, float):
        return str(item)
    whole = item.is_integer() or 1000.0 <= abs(item) < 1e15
    return f"{item:.0f}" if whole else f"{item:.4g}"
