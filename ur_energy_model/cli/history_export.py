"""`ur_energy history export`: rows of a history store as CSV."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ur_energy_model.cli import arguments
from ur_energy_model.cli.history import add_store
from ur_energy_model.cli.history_options import add_period_options, period_given, store_given
from ur_energy_model.cli.output import note, print_json, progress, warn

if TYPE_CHECKING:
    import argparse

TABLES = ("seconds", "cycles")


def register(subparsers: arguments.Subparsers) -> None:
    """Add the subcommand."""
    parser = arguments.add_command(
        subparsers,
        "export",
        run,
        summary="write seconds or cycles to a CSV file",
        description="Write the rows of a table to a CSV file, in order of arm and time, with one "
        "column per joint. Other programs can also read the Parquet files of the store directly.",
        examples="ur_energy history export plant -o may.csv --from 2026-05-01 --to 2026-05-31\n"
        "ur_energy history export plant -o cycles.csv --table cycles --arm 20225500123",
    )
    add_store(parser)
    arguments.add_output(parser, "FILE.csv", "file to write")
    arguments.add_choice(parser, "--table", TABLES, "what to write")
    add_period_options(parser)
    arguments.add_json(parser)


def run(options: argparse.Namespace) -> None:
    """Write."""
    from ur_energy_model.plant.database import export_csv

    period, store = period_given(options), store_given(options)
    with progress("exporting") as report:
        rows, warnings = export_csv(
            store,
            options.table,
            options.output,
            period=period,
            arms=tuple(options.arm),
            progress=report,
        )
    warn(warnings)
    if options.json:
        file = str(options.output)
        print_json({"file": file, "table": options.table, "rows": rows, "warnings": list(warnings)})
    else:
        note(f"{rows} rows of {options.table} written to {options.output}")
