"""`ur_energy history summary`: energy by arm, calendar, program or joint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ur_energy_model.cli import arguments
from ur_energy_model.cli.arguments import add_tariff_options, tariff_given
from ur_energy_model.cli.history import add_store
from ur_energy_model.cli.history_options import (
    add_period_options,
    add_shift_option,
    database_given,
    shifts_given,
)
from ur_energy_model.cli.output import note, print_json, print_table, warn
from ur_energy_model.codec import plain
from ur_energy_model.plant.summary import KEYS, summarise

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from ur_energy_model.plant.summary import Row, Summary
    from ur_energy_model.report.tariff import Tariff

_NOTES = """what the figures are:
  kWh          by the model, at the supply of the arm; --json has J, and what the bus measured
  standby      the part of the energy that the arm takes at all times, also in motion
  idle         the energy while no joint moves, standby included
  motion       the energy while a joint moves, standby included; idle and motion are all of it
  outside      what no complete cycle contains
  hours, W     time that the store accounts for, of all arms; mean power"""


def register(subparsers: arguments.Subparsers) -> None:
    """Add the subcommand."""
    parser = arguments.add_command(
        subparsers,
        "summary",
        run,
        summary="sum up the energy by arm, calendar, program or joint",
        description="Sum up the energy in a history store by arm, hour, shift, day, week, month, "
        "program or joint, with the shares of standby, idle and motion, and its cost and CO2.",
        examples="ur_energy history summary plant\n"
        "ur_energy history summary plant --by month --tariff 0.25 --co2 0.38\n"
        "ur_energy history summary plant --by shift --shifts 06:00,14:00,22:00 "
        "--time-zone Europe/Berlin\n"
        "ur_energy history summary plant --by arm --by joint --from 2026-05-01 --to 2026-05-31",
        notes=_NOTES,
    )
    add_store(parser)
    parser.add_argument(
        "--by",
        action="append",
        choices=KEYS,
        help="what the rows are (default: arm; may be repeated)",
    )
    add_period_options(parser)
    add_shift_option(parser)
    add_tariff_options(parser.add_argument_group("cost"))
    arguments.add_json(parser)


def run(options: argparse.Namespace) -> None:
    """Sum up and print."""
    tariff, keys = tariff_given(options), options.by or ["arm"]
    with database_given(options) as database:
        summary = summarise(database, keys, shifts_given(options))
        warnings = database.warnings
    warn(warnings)
    if options.json:
        print_json({**as_json(summary, tariff, options), "warnings": list(warnings)})
    else:
        _print(summary, tuple(dict.fromkeys(keys)), tariff, options)


def as_json(summary: Summary, tariff: Tariff, options: argparse.Namespace) -> dict[str, Any]:
    """The content of `--json`."""
    content: dict[str, Any] = {
        "rows": [priced(row, tariff) for row in summary.rows],
        "total": priced(summary.total, tariff),
        "time_zone": options.time_zone,
        "currency": options.currency,
    }
    if summary.outside_cycles is not None:
        content["outside_cycles"] = priced(summary.outside_cycles, tariff)
    return content


def priced(row: Row, tariff: Tariff) -> dict[str, Any]:
    """A row with its cost and CO2 [kg]; None without a tariff."""
    energy = row["energy"]
    return {
        **plain(row),
        "cost": None if energy is None else tariff.cost(energy),
        "co2": None if energy is None else tariff.emission(energy),
    }


def _print(
    summary: Summary, keys: tuple[str, ...], tariff: Tariff, options: argparse.Namespace
) -> None:
    rows = [_cells(row, [_name(key, row[key]) for key in keys], tariff) for row in summary.rows]
    blank = [""] * (len(keys) - 1)
    if summary.outside_cycles is not None:
        rows.append(_cells(summary.outside_cycles, ["outside", *blank], tariff))
    rows.append(_cells(summary.total, ["total", *blank], tariff))
    columns = [*keys, "kWh", "standby %", "idle %", "motion %", "hours"]
    if tariff.price is None and tariff.co2 is None:
        columns.append("W")
    if tariff.price is not None:
        columns.append(tariff.currency)
    if tariff.co2 is not None:
        columns.append("kg CO2")
    arms = summary.total["arms"]
    print_table(f"energy of {arms} arm{'' if arms == 1 else 's'}", columns, rows)
    if not summary.rows:
        if arms:
            missing, remedy = "complete cycle", "its energy is outside of cycles"
        else:
            missing, remedy = "energy", "add recordings with history add"
        of_arms = " of these arms" if options.arm else ""
        note(f"{options.store}: has no {missing}{of_arms} of this time; {remedy}")
    note(f"days and hours are those of {options.time_zone}")


def _cells(row: Mapping[str, Any], names: list[str], tariff: Tariff) -> list[Any]:
    from ur_energy_model.report.tariff import JOULES_PER_KWH

    energy, time = row["energy"], row["duration"]

    def share(name: str) -> float | None:
        part = row[name]
        return None if part is None or not energy else 100 * part / energy

    cells = [
        *names,
        None if energy is None else energy / JOULES_PER_KWH,
        share("standby_energy"),
        share("idle_energy"),
        share("motion_energy"),
        None if time is None else time / 3600,
    ]
    if tariff.price is None and tariff.co2 is None:
        cells.append(energy / time if energy is not None and time else None)
    if tariff.price is not None:
        cells.append(None if energy is None else tariff.cost(energy))
    if tariff.co2 is not None:
        cells.append(None if energy is None else tariff.emission(energy))
    return cells


def _name(key: str, value: Any) -> str:
    """A key in words."""
    if value is None:
        return "unnamed"
    return f"{value:%Y-%m-%d %H:%M}" if hasattr(value, "hour") else str(value)
