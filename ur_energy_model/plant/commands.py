# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""`ur_energy history`: a store of the energy of many arms over months, and questions to it."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ur_energy_model.cli.arguments import (
    CommandBags,
    chosen_model,
    failed_json,
    report_failed,
    tariff_of,
)
from ur_energy_model.cli.output import (
    note,
    print_json,
    print_line,
    print_objects,
    print_table,
    progress,
    warn,
)
from ur_energy_model.codec import plain
from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.energy.tariff import JOULES_PER_KWH
from ur_energy_model.errors import InputError, UrEnergyError, span
from ur_energy_model.files import check_output, user_path, write_text
from ur_energy_model.interrupts import on_stop_signal
from ur_energy_model.plant.room import (
    ArmModelOptions,
    HistoryAddOptions,
    HistoryExportOptions,
    HistoryReportOptions,
    HistorySqlOptions,
    HistorySummaryOptions,
    HistoryWatchOptions,
    PeriodOptions,
    StoreOptions,
)
from ur_energy_model.plant.schema import model_key
from ur_energy_model.plant.store import HistoryStore
from ur_energy_model.plant.store_files import StoreError
from ur_energy_model.rooms import Given
from ur_energy_model.telemetry.samples import RecordingInfo, arm_name

if TYPE_CHECKING:
    import pyarrow

    from ur_energy_model.plant.add import Added, BagWork
    from ur_energy_model.plant.database import HistoryDatabase, Period
    from ur_energy_model.plant.holdings import Holdings
    from ur_energy_model.plant.query import Query


def opened_store(address: str) -> HistoryStore:
    """A store to be read.

    Args:
        address: folder, or s3://BUCKET/PREFIX.

    Raises:
        StoreError: there is no such folder.
    """
    store = HistoryStore(address)
    if "://" not in address and not user_path(address).is_dir():
        raise StoreError(
            address, "is not there", "make a store with ur_energy history add"
        )
    return store


def _work_of(store: str, options: ArmModelOptions) -> BagWork:
    """The work on each bag that is added to a store.

    Args:
        store: its address.
        options: which model and which name the arm has, and what starts its cycles.

    Raises:
        UrEnergyError: the model or a script cannot be read.
    """
    from ur_energy_model.energy.program import read_script
    from ur_energy_model.plant.add import BagWork

    named = options.model is not None or options.robot is not None
    return BagWork(
        store,
        chosen_model(options.model, options.robot).model if named else None,
        model_key(options.model),
        arm=None if options.arm is None else arm_name(RecordingInfo(serial=options.arm)),
        path=options.model,
        scripts=tuple(map(read_script, options.script)),
        script_files=tuple(options.script),
        cycle_trigger=options.cycle_trigger,
        cycle_output=options.cycle_output,
        same_arm=options.same_arm,
    )


def add(given: Given) -> None:
    """`ur_energy history add`: add recordings to a store.

    Raises:
        UrEnergyError: the store, the model or an option cannot be used, or recordings
            failed; the others are added before.
    """
    from ur_energy_model.plant.add import add_bags

    options = given.of(HistoryAddOptions)
    work = _work_of(options.store, options.arm_model)
    work_on = CommandBags(given, options.bags, options.workers)
    with progress("adding") as report, work_on.executor() as each:
        added = add_bags(work, options.bags, each, report)
    done = len(added.records) + len(added.skipped)
    if options.json or done:
        _print_added(added, options.store, as_json=options.json)
    warn(added.warnings)
    report_failed(added.failed, done + len(added.failed))


def _print_added(added: Added, store: str, *, as_json: bool, **further: object) -> None:
    """Print how many recordings and how much energy were added.

    Args:
        added: the result.
        store: its address.
        as_json: whether to print JSON.
        further: entries of the JSON.
    """
    count = len(added.records)
    joules = added.sum("energy")
    if as_json:
        content: dict[str, object] = {
            "added": count,
            "skipped": len(added.skipped),
            "failed": failed_json(added.failed),
            "seconds": sum(record.rows["seconds"] for record in added.records),
            "energy": joules,
            "left_out": added.sum("left_out"),
            "warnings": added.warnings,
        }
        print_json(further | content)
        return
    note(
        f"{store}: {count} bag{'' if count == 1 else 's'} added "
        f"({span(added.sum('accounted'))}, {joules:.1f} J), "
        f"{len(added.skipped)} were there already, {len(added.failed)} failed"
    )
    for record in added.records:
        if record.left_out >= 0.05:
            note(
                f"{record.bag}: {record.left_out:.1f} s are already in the store, left out"
            )
        if not record.host_time:
            note(
                f"{record.bag}: has no time of day; its rows are in 1970, by its own clock"
            )


def watch(given: Given) -> None:
    """`ur_energy history watch`: add recordings as they appear, until Ctrl-C.

    Raises:
        UrEnergyError: the folder is not there; with --once, a recording failed.
    """
    from ur_energy_model.plant.add import BagFolder

    options = given.of(HistoryWatchOptions)
    if not options.folder.is_dir():
        raise InputError(
            options.folder, "is not a folder", "name the folder with the bags"
        )
    folder = BagFolder(options.folder)
    stop = threading.Event()
    with on_stop_signal(stop.set):
        while not stop.is_set():
            for bag in folder.take():
                if stop.is_set() or not _add_watched(options, bag):
                    folder.put_back(bag)
            if options.once or stop.wait(options.interval):
                return


def _add_watched(options: HistoryWatchOptions, bag: Path) -> bool:
    """Add a bag that has appeared in the watched folder.

    Returns:
        False if it has to be tried again later.

    Raises:
        UrEnergyError: a problem, with --once; otherwise it is printed.
    """
    from ur_energy_model.plant.add import add_bags

    try:
        added = add_bags(_work_of(options.store, options.arm_model), [bag])
    except UrEnergyError as error:
        if options.once:
            raise
        note(str(error))
        return False
    if options.json or added.records:
        _print_added(added, options.store, as_json=options.json, bag=str(bag))
    warn(added.warnings)
    for result in added.failed:
        note(f"failed: {result.reason}")
    return True


def compact(given: Given) -> None:
    """`ur_energy history compact`: write one file per arm and day.

    Raises:
        StoreError: the store is not there, or damaged.
    """
    options = given.of(StoreOptions)
    store = opened_store(options.store)
    with progress("compacting"):
        found = store.compact()
    warn(store.notes)
    if options.json:
        print_json(found)
    else:
        note(
            f"{options.store}: {found['files_before']} files are {found['files_after']} now, "
            f"{found['removed']} old ones removed"
        )


# Questions.


def _period_of(options: PeriodOptions) -> Period:
    """The time that options select; InputError for a text that is not a date."""
    from ur_energy_model.plant.database import Period

    return Period.from_text(options.first, options.last, options.time_zone)


def _database_of(store: str, options: PeriodOptions) -> HistoryDatabase:
    """The tables of a store, as far as the options select them, for a `with` statement.

    Args:
        store: its address.
        options: which time and which arms.

    Raises:
        UrEnergyError: the store is not there, or a text is not a date.
    """
    from ur_energy_model.plant.database import HistoryDatabase

    return HistoryDatabase(opened_store(store), _period_of(options), arms=options.arm)


_ENERGIES = {"J": 1.0, "Wh": 3600.0, "kWh": JOULES_PER_KWH, "MWh": 1e3 * JOULES_PER_KWH}
_TIMES = {"s": 1.0, "minutes": 60.0, "hours": 3600.0}


def _unit(total: float | None, units: Mapping[str, float]) -> tuple[str, float]:
    """The unit in which a table is short: the largest in which its total is ten or more.

    Args:
        total: in the smallest unit; None if unknown.
        units: sizes by name, ascending.

    Returns:
        Name and size.
    """
    fitting = [each for each in units.items() if (total or 0.0) >= 10.0 * each[1]]
    return fitting[-1] if fitting else next(iter(units.items()))


def _damage(holdings: Holdings) -> dict[str, object]:
    """For JSON: what is wrong with the store in words, what it has lost, and what mends it."""
    lost = [loss.entry() for loss in holdings.lost]
    return {
        "warnings": list(holdings.warnings),
        "lost": lost,
        "repairs": list(holdings.repairs),
    }


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

    def completed(row: Mapping[str, Any]) -> dict[str, Any]:
        """A row with the source of its total, the share that the model explains, cost and CO2."""
        source = total_source(dict(row))
        found = {
            **row,
            "total_source": None if source is None else source.name,
            "total_measured_share": None if source is None else source.share,
            "explained_share": explained_share(dict(row)),
        }
        if row["energy"] is None:
            return {**found, "cost": None, "co2": None}
        paid = row["energy"], row["wall_energy"]
        return {**found, "cost": tariff.cost(*paid), "co2": tariff.emission(*paid)}

    rows = [completed(row) for row in summary.rows]
    total = completed(summary.total)
    outside = {} if summary.outside_cycles is None else completed(summary.outside_cycles)
    if options.json:
        content = {
            "rows": rows,
            "total": total,
            "time_zone": options.period.time_zone,
            "currency": options.tariff.currency,
        }
        content |= {"outside_cycles": outside} if outside else {}
        print_json({**content, **_damage(holdings)})
        return

    def share(part: str) -> Callable[[Mapping[str, Any]], float | None]:
        name = f"{part}_energy"
        return lambda row: (
            100 * row[name] / row["energy"]
            if row["energy"] and row[name] is not None
            else None
        )

    def over(name: str, divisor: float) -> Callable[[Mapping[str, Any]], float | None]:
        return lambda row: None if row[name] is None else row[name] / divisor

    unit, joules = _unit(total["energy"], _ENERGIES)
    span, seconds = _unit(total["duration"], _TIMES)
    columns: dict[str, Any] = {key: key for key in keys}
    columns |= {unit: over("energy", joules)}
    if "node" in keys:
        columns["times"] = lambda row: row.get("executions")
    else:
        parts = ("standby", "unexplained", "idle", "motion")
        columns |= {f"{part} %": share(part) for part in parts}
        columns |= {f"wall {unit}": over("wall_energy", joules)}
        columns |= {"± 95 %": over("wall_std", joules / CONFIDENCE)}
    columns |= {span: over("duration", seconds)}
    if tariff.price is None and tariff.co2 is None:
        columns["W"] = lambda row: (
            row["energy"] / row["duration"]
            if row["energy"] is not None and row["duration"]
            else None
        )
    columns |= {} if tariff.price is None else {tariff.currency: "cost"}
    columns |= {} if tariff.co2 is None else {"kg CO2": "co2"}

    def name(key: str, value: Any) -> str:
        if value is None:
            return "unnamed"
        if key == "month":
            return f"{value:%Y-%m}"
        return f"{value:%Y-%m-%d %H:%M}" if hasattr(value, "hour") else str(value)

    shown = [{**row, **{key: name(key, row[key]) for key in keys}} for row in rows]
    for first, row in (("outside", outside), ("total", total)):
        shown += [{**row, **dict.fromkeys(keys, ""), keys[0]: first}] if row else []
    arms = summary.total["arms"]
    title = f"energy of {arms} arm{'' if arms == 1 else 's'}"
    print_objects(
        title + (", without rows that are lost" if holdings.lost else ""), shown, columns
    )
    if not summary.rows:
        missing = "energy"
        remedy = "add recordings with history add"
        if arms:
            missing = "complete cycle"
            remedy = "its energy is outside of cycles"
        of_arms = " of these arms" if options.period.arm else ""
        note(f"{options.store}: has no {missing}{of_arms} of this time; {remedy}")
    source = total_source(summary.total)
    if summary.rows and source is not None:
        print_line(f"total: {source.words(explained_share(summary.total))}")
    note(f"days and hours are those of {options.period.time_zone}")


def report(given: Given) -> None:
    """`ur_energy history report`: write one page about all arms.

    Raises:
        UrEnergyError: the store or an option cannot be used, or the page exists.
    """
    from ur_energy_model.plant.page import make_plant_report, plant_page
    from ur_energy_model.report.page import render

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
    if options.json:
        energy, wall = (report.fleet.total(name) for name in ("energy", "wall"))
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
                "anomalies": [
                    vars(each) | {"text": each.text} for each in report.anomalies
                ],
                **_damage(holdings),
            }
        )
        return
    print_line(verdict.headline)
    for item in verdict.statements:
        print_line(f"- {item.text}")
    note(f"report written to {options.output}; open it in a browser")


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
        entries = [{"arm": a.arm, "robot": a.robot, "levels": a.levels} for a in arms]
        print_json({"arms": entries, "changes": changes, **_damage(holdings)})
        return
    for arm in arms:
        print_objects(
            f"{arm.arm} ({arm.robot}): levels now, at equal temperature",
            arm.levels,
            {
                "joint": lambda level: level["joint"] or "whole arm",
                "what": "what",
                "level": lambda level: f"{level['value']:.4g}",
                "± 95 %": lambda level: (
                    f"{(level['interval'][1] - level['interval'][0]) / 2:.2g}"
                ),
                "unit": "unit",
                "degC": lambda level: (
                    "-" if level["temperature"] is None else f"{level['temperature']:.0f}"
                ),
                "days": lambda level: len(level["days"]),
            },
        )
    for change in changes:
        low, high = change.interval
        interval = f"{100 * low:+.0f} to {100 * high:+.0f} %"
        if change.what == "standby power":
            interval = f"{low:+.1f} to {high:+.1f} W"
        print_line(f"{change.words} (95 % interval {interval})")
    quiet = sum(not arm.changes for arm in arms)
    note(
        f"{quiet} of {len(arms)} arms without a change that is larger than its uncertainty"
    )


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
        file = str(options.output)
        print_json(
            {"file": file, "table": options.table, "rows": rows, **_damage(holdings)}
        )
    else:
        note(f"{rows} rows of {options.table} written to {options.output}")


WIDEST = 8  # columns that a table in the terminal can have; of more, each row is a table


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
        shown = [
            [_cell(plain(value)) for value in row] for row in islice(rows, options.limit)
        ]
        more = next(rows, None) is not None
    if not shown:
        print_line(f"no rows; columns: {', '.join(names)}")
    elif len(names) <= WIDEST:
        print_table(f"{len(shown)} row{'' if len(shown) == 1 else 's'}", names, shown)
    else:
        for number, row in enumerate(shown, start=1):
            print_table(
                f"row {number}", ("column", "value"), list(zip(names, row, strict=True))
            )
    if more:
        note(f"only the first {len(shown)} rows; --limit N prints more, --json all")


def _rows(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[tuple[Any, ...]]:
    """Rows of a result as values of Python, batch by batch.

    Dates and times beyond the years of Python, 1 to 9999, become text.
    """

    def value(scalar: pyarrow.Scalar) -> Any:
        try:
            return scalar.as_py()
        except (ValueError, OverflowError):
            return "out of range"

    def values(column: pyarrow.Array) -> list[Any]:
        try:
            found = list(column.to_pylist())
            if str(column.type).startswith("decimal128") and column.type.scale == 0:
                # sums of integers
                return [None if each is None else int(each) for each in found]
            return found
        except (ValueError, OverflowError):  # one by one takes six times as long
            return list(map(value, column))

    for batch in batches:
        yield from zip(*map(values, batch.columns), strict=True)


def _write_json(names: list[str], rows: Iterator[tuple[Any, ...]], result: Query) -> None:
    """Write a result as one JSON object, row by row: it may be larger than memory.

    Args:
        names: of the columns.
        rows: of values, which are read as they are written; if the query fails before
            the first of them, nothing is printed.
        result: the query, whose time does not run while a reader of the pipe waits.
    """

    def text(row: tuple[Any, ...]) -> str:
        return json.dumps(
            plain(dict(zip(names, row, strict=True))), allow_nan=False, default=str
        )

    def write(part: str) -> None:
        with result.paused():  # such as a pager that waits for its user
            sys.stdout.write(part)

    first = next(rows, None)  # a query that fails prints nothing
    write(f'{{"columns": {json.dumps(names)}, "rows": [')
    write("" if first is None else text(first))
    for row in rows:
        write(f", {text(row)}")
    told = {"warnings": result.warnings, "lost": result.lost}
    write(f"], {json.dumps(told)[1:]}\n")


def _cell(value: Any) -> Any:
    """A value for a table.

    Numbers have all digits before the point, lists and mappings are text, and everything
    else is as it is.
    """

    def text(item: Any) -> str:
        if not isinstance(item, float):
            return str(item)
        counted = 1000.0 <= abs(item) < 1e15 or item == 0.0
        return f"{item:.0f}" if counted or item.is_integer() else f"{item:.4g}"

    if isinstance(value, list):
        return f"[{', '.join(map(text, value))}]"
    return text(value) if isinstance(value, dict | float) else value
