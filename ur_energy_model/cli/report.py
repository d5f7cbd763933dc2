"""`ur_energy report`: the HTML report, and static figures."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ur_energy_model.cli.output import add_json_option, note, print_json, progress, say
from ur_energy_model.cli.payload_option import add_payload_option, payload_given

_EXAMPLE = """example:
  ur_energy report model.yaml my_bag another_bag -o report.html
  ur_energy report model.yaml monday_shift -o shift.html \\
      --tariff 0.28 --co2 0.38 --cycle program
"""


def register(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "report",
        help="an HTML report of a model and recordings: figures, tables, energy and its cost",
        description="Make one HTML file that opens anywhere, offline: a verdict in plain words, "
        "then measurement beside model for torque, current, power and energy, the identified "
        "parameters with their intervals, and the energy of the shift.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", type=Path, metavar="MODEL.yaml", help="identified model")
    parser.add_argument("bags", nargs="+", type=Path, metavar="BAG", help="recordings of the arm")
    parser.add_argument(
        "-o", "--output", required=True, type=Path, metavar="REPORT.html", help="file to write"
    )
    parser.add_argument(
        "--figures", type=Path, metavar="FOLDER", help="also write the figures as files there"
    )
    parser.add_argument(
        "--format", action="append", choices=("png", "svg"), help="of --figures (default png)"
    )
    add_payload_option(parser, purpose="by default the model's")
    energy = parser.add_argument_group("energy of a shift")
    energy.add_argument("--tariff", type=float, metavar="PRICE", help="price of a kWh")
    energy.add_argument("--currency", default="EUR", metavar="NAME", help="of the price")
    energy.add_argument("--co2", type=float, metavar="KG", help="kg of CO2 a kWh")
    energy.add_argument(
        "--supply-efficiency",
        type=float,
        default=1.0,
        metavar="SHARE",
        help="share of the power at the wall that reaches the robot bus (default 1)",
    )
    energy.add_argument(
        "--cycle",
        choices=("none", "program", "digital_output", "int_register"),
        default="none",
        help="what starts a cycle: a program start, an edge of a digital output, or a change of "
        "output_int_register_0",
    )
    energy.add_argument(
        "--cycle-output", type=int, default=0, metavar="N", help="number of that digital output"
    )
    add_json_option(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Make the report."""
    from ur_energy_model.files import write_text
    from ur_energy_model.model.file.model_file import load_model
    from ur_energy_model.report.page.html import render
    from ur_energy_model.report.page.layout import report_page
    from ur_energy_model.report.report import make_report
    from ur_energy_model.report.tariff import Tariff

    tariff = Tariff(options.tariff, options.currency, options.co2, options.supply_efficiency)
    model, payload = load_model(options.model), payload_given(options.payload)
    if payload is not None:
        model = model.with_payload(payload)
    figures: list[Path] = []
    with progress("report") as show:
        report = make_report(
            model,
            options.bags,
            payload=payload,
            tariff=tariff,
            trigger=options.cycle,
            output=options.cycle_output,
            progress=show,
        )
        show(0.95, "writing")
        page = render(report_page(report))
        if options.figures is not None:
            figures = _figures(report, options)
        write_text(options.output, page)
    if options.json:
        print_json(
            {
                "report": str(options.output),
                "bytes": len(page.encode()),
                "figures": [str(path) for path in figures],
                "verdict": {
                    "grade": report.verdict.grade,
                    "headline": report.verdict.headline,
                    "statements": [
                        {"grade": item.grade, "text": item.text}
                        for item in report.verdict.statements
                    ],
                },
                "energy": report.shift.energy,
                "seconds": report.shift.seconds,
                "idle_share": report.shift.idle_share,
                "cost": tariff.cost(report.shift.energy),
                "co2": tariff.emission(report.shift.energy),
                "cycles": len(report.shift.cycles),
            }
        )
        return 0
    say(report.verdict.headline)
    for item in report.verdict.statements:
        say(f"- {item.text}")
    note(f"report written to {options.output}; open it in a browser")
    return 0


def _figures(report: Any, options: argparse.Namespace) -> list[Path]:
    from ur_energy_model.report.charts.recording import recording_charts
    from ur_energy_model.report.figures.figures import save_chart

    out: list[Path] = []
    for bag in report.bags:
        folder = options.figures
        if len(report.bags) > 1:
            folder = folder / bag.analysis.label
        for chart in recording_charts(bag.analysis):
            out += save_chart(chart, folder, formats=options.format or ("png",))
    return out
