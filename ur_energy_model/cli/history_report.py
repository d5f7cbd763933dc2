"""`ur_energy history report`: one HTML page about all arms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ur_energy_model.cli import arguments
from ur_energy_model.cli.arguments import add_tariff_options, tariff_given
from ur_energy_model.cli.history import add_store
from ur_energy_model.cli.history_options import add_period_options, database_given
from ur_energy_model.cli.output import note, print_json, print_line, progress, warn

if TYPE_CHECKING:
    import argparse


def register(subparsers: arguments.Subparsers) -> None:
    """Add the subcommand."""
    parser = arguments.add_command(
        subparsers,
        "report",
        run,
        summary="write one HTML page about all arms",
        description="Write one HTML page that needs no network: energy of the fleet by day, hour "
        "of the week and arm, cycles over time, days on which an arm was unlike itself, and cost "
        "and CO2.",
        examples="ur_energy history report plant -o plant.html --tariff 0.25 --co2 0.38\n"
        "ur_energy history report plant -o may.html --from 2026-05-01 --to 2026-05-31 "
        "--time-zone Europe/Berlin",
    )
    add_store(parser)
    arguments.add_output(parser, "FILE.html", "page to write")
    add_period_options(parser)
    add_tariff_options(parser.add_argument_group("cost"))
    arguments.add_json(parser)


def run(options: argparse.Namespace) -> None:
    """Write the page."""
    from ur_energy_model.files import check_target, write_text
    from ur_energy_model.report.page import render
    from ur_energy_model.report.plant import make_plant_report, plant_page

    check_target(options.output)
    tariff = tariff_given(options)
    with progress("report") as show, database_given(options) as database:
        report = make_plant_report(database, options.store, tariff)
        show(0.9, "writing")
        page = render(plant_page(report))
        write_text(options.output, page)
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
                "anomalies": [
                    vars(anomaly) | {"text": anomaly.text} for anomaly in report.anomalies
                ],
                "warnings": list(warnings),
            }
        )
        return
    print_line(verdict.headline)
    for item in verdict.statements:
        print_line(f"- {item.text}")
    note(f"report written to {options.output}; open it in a browser")
