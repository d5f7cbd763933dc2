"""`ur_energy report`: the HTML report, and its figures as files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ur_energy_model.cli import arguments
from ur_energy_model.cli.arguments import (
    add_payload_option,
    add_tariff_options,
    payload_given,
    tariff_given,
    with_given_payload,
)
from ur_energy_model.cli.model_option import add_optional_model, chosen_model, split_model
from ur_energy_model.cli.output import note, print_json, print_line, progress, warn

if TYPE_CHECKING:
    import argparse

    from ur_energy_model.report.report import Report

_EXAMPLES = """\
ur_energy report model.yaml my_bag another_bag -o report.html
ur_energy report my_bag --robot ur5e -o report.html
ur_energy report model.yaml monday_shift -o shift.html \\
    --tariff 0.28 --co2 0.38
"""


def register(subparsers: arguments.Subparsers) -> None:
    """Add the subcommand."""
    parser = arguments.add_command(
        subparsers,
        "report",
        run,
        summary="write an HTML report of a model and recordings",
        description="Write one HTML file that opens offline in any browser: a verdict in plain "
        "words, measured and modelled torque, current, power and energy, the identified "
        "parameters with their intervals, and the energy of a shift with its cost.",
        examples=_EXAMPLES,
    )
    add_optional_model(parser)
    arguments.add_bags(parser, "recordings of the arm")
    arguments.add_output(parser, "REPORT.html", "report to write")
    parser.add_argument(
        "--figures", type=Path, metavar="FOLDER", help="also write the figures to this folder"
    )
    parser.add_argument(
        "--format",
        action="append",
        choices=("png", "svg"),
        help="file format of --figures (default: png; may be repeated)",
    )
    add_payload_option(parser, "the model's")
    arguments.add_same_arm(parser)
    energy = parser.add_argument_group("energy of a shift")
    add_tariff_options(energy)
    arguments.add_choice(
        energy,
        "--cycle",
        ("auto", "none", "program", "digital_output", "int_register"),
        "what starts a cycle: program start, edge of a digital output, or change of "
        "output_int_register_0; auto: program start, digital output or repeated motion, whichever "
        "shows cycles",
    )
    arguments.add_number(
        energy, "--cycle-output", 0, "N", "number of the digital output for --cycle digital_output"
    )
    arguments.add_json(parser)


def run(options: argparse.Namespace) -> None:
    """Write the report."""
    from ur_energy_model.files import check_target, write_text
    from ur_energy_model.report.layout import report_page
    from ur_energy_model.report.page import render
    from ur_energy_model.report.report import make_report

    check_target(options.output)
    tariff = tariff_given(options)
    path, bags = split_model(options.model, options.bags)
    chosen = chosen_model(path, options.robot, bags)
    model = with_given_payload(chosen.model, options.payload)
    figures: list[Path] = []
    with progress("report") as show:
        report = make_report(
            model,
            bags,
            payload=payload_given(options.payload),
            tariff=tariff,
            trigger=options.cycle,
            output=options.cycle_output,
            same_arm=options.same_arm,
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
                "model": chosen.entry,
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
                "warnings": report.warnings,
                "serials": report.serials,
            }
        )
        return
    warn(dict.fromkeys(line for bag in report.bags for line in bag.repetition))  # verdict: others
    note(f"model: {chosen.words}")
    print_line(report.verdict.headline)
    for item in report.verdict.statements:
        print_line(f"- {item.text}")
    note(f"report written to {options.output}; open it in a browser")


def _figures(report: Report, options: argparse.Namespace) -> list[Path]:
    """Write the figures, a folder per recording if there are several, and return their paths."""
    from ur_energy_model.report.figures import save_chart
    from ur_energy_model.report.recording_charts import recording_charts

    out: list[Path] = []
    for bag in report.bags:
        folder = options.figures
        if len(report.bags) > 1:
            folder = folder / bag.analysis.label
        for chart in recording_charts(bag.analysis):
            out += save_chart(chart, folder, formats=options.format or ("png",))
    return out
