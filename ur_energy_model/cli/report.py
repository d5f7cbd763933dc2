# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""`ur_energy report`: HTML report of a model and recordings, and figures as files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ur_energy_model.cli.arguments import (
    ChosenModel,
    chosen_model,
    split_model,
    stated_payload,
    tariff_of,
    with_payload,
)
from ur_energy_model.cli.command_options import ReportOptions
from ur_energy_model.cli.measures import print_measures
from ur_energy_model.cli.output import (
    note,
    picked,
    print_json,
    print_line,
    progress,
    warn,
)
from ur_energy_model.energy.tariff import Tariff
from ur_energy_model.files import check_output, check_output_folder, write_text
from ur_energy_model.report.figures import save_chart
from ur_energy_model.report.recording_charts import recording_charts
from ur_energy_model.report.render import render
from ur_energy_model.report.report import Report, make_report, report_page
from ur_energy_model.rooms import Given


def report(given: Given) -> None:
    """`ur_energy report`: write the page and the figures, and print the verdict.

    Raises:
        UrEnergyError: the model, a recording or an option cannot be used, or an output
            exists.
    """
    options = given.of(ReportOptions)
    check_output(options.output, overwrite=options.overwrite)
    if options.figures is not None:
        check_output_folder(options.figures, overwrite=options.overwrite)
    tariff = tariff_of(options.tariff)
    payload = stated_payload(options.payload)
    path, bags = split_model(options.model, options.bags)
    chosen = chosen_model(path, options.robot, bags)
    with progress("report") as show:
        made = make_report(
            with_payload(chosen.model, payload),
            bags,
            model_path=chosen.path,
            payload=payload,
            tariff=tariff,
            trigger=options.cycle,
            output=options.cycle_output,
            same_arm=options.same_arm,
            progress=show,
        )
        show(0.95, "writing")
        page = render(report_page(made))
        figures: list[Path] = []
        if options.figures is not None:
            figures = _save_figures(made, options.figures, options.format or ("png",))
        write_text(options.output, page)
    if options.json:
        written = {
            "report": options.output,
            "model": chosen.entry,
            "bytes": len(page.encode()),
            "figures": figures,
        }
        print_json({**written, **_report_json(made, tariff)})
        return
    _print(made, chosen, tariff)
    note(f"report written to {options.output}; open it in a browser")


def _save_figures(made: Report, folder: Path, formats: tuple[str, ...]) -> list[Path]:
    """Write the charts of the recordings; a folder for each where there are several.

    Args:
        made: the report.
        folder: folder for the files.
        formats: any of "png", "svg" and "pdf".

    Returns:
        The files.
    """
    written: list[Path] = []
    for bag in made.bags:
        place = folder / bag.label if len(made.bags) > 1 else folder
        charts = recording_charts(bag.analysis, joint_power=bag.metrics["joint_power"])
        for chart in charts:
            written += save_chart(chart, place, formats=formats)
    return written


def _report_json(made: Report, tariff: Tariff) -> dict[str, Any]:
    """The figures of a report as JSON.

    Args:
        made: the report.
        tariff: price and emission of energy.

    Returns:
        Energies in J, times in s, cost in the currency of the tariff, CO2 in kg.
    """
    shift = made.shift
    wall = made.wall
    return {
        **picked(made, "verdict warnings serials"),
        "contradictions": [each.as_json() for each in made.contradictions],
        **picked(shift, "energy seconds idle_share explained_share"),
        "total_source": shift.total_source.name,
        "total_measured_share": shift.total_source.share,
        **wall.as_json(),
        "cost": tariff.cost(shift.energy, wall.energy),
        "co2": tariff.emission(shift.energy, wall.energy),
        "cycles": len(shift.cycles),
        **made.measures.as_json(tariff),
    }


def _print(made: Report, chosen: ChosenModel, tariff: Tariff) -> None:
    """Print the energy, the verdict, and what can be done for less.

    Only warnings about the repetition of cycles are printed as such: the other warnings
    are among the statements of the verdict.

    Args:
        made: the report.
        chosen: the model as the user has named it.
        tariff: tariff by which savings are stated.
    """
    warn(dict.fromkeys(line for bag in made.bags for line in bag.repetition))
    shift = made.shift
    source = shift.total_source.words(shift.explained_share)
    print_line(f"at the supply: {shift.energy:.1f} ± {shift.half_width:.1f} J, {source}")
    print_line(f"model: {chosen.words}")
    print_line(made.verdict.headline)
    for item in made.verdict.statements:
        print_line(f"- {item.text}")
    print_measures(made.measures, tariff)
