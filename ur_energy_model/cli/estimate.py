"""`ur_energy estimate`: energy of a recording."""

from __future__ import annotations

import argparse
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from ur_energy_model.cli import arguments
from ur_energy_model.cli.model_option import ChosenModel, add_optional_model, chosen_model
from ur_energy_model.cli.output import note, print_json, print_table, progress
from ur_energy_model.cli.payload_option import add_payload_option, with_given_payload
from ur_energy_model.errors import InputError

if TYPE_CHECKING:
    from ur_energy_model.energy.energy_summary import EnergySummary
    from ur_energy_model.model.energy_model import EnergyModel
    from ur_energy_model.typing import Progress

LOWEST_RATE, HIGHEST_RATE = 1.0, 500.0
"""Of the messages in a bag [Hz], as of the node's publish_rate."""


def register(subparsers: arguments.Subparsers) -> None:
    """Add the subcommand."""
    parser = arguments.add_command(
        subparsers,
        "estimate",
        run,
        summary="compute the energy of a recording, per joint and in total",
        description="Compute the mechanical and electrical energy and the efficiency of a "
        "recording, per joint and in total, with the model of the arm or, without MODEL.yaml, with "
        "the generic model of its type, whose intervals are wider.",
        examples="ur_energy estimate task --robot ur5e\n"
        "ur_energy estimate model.yaml task --csv power.csv\n"
        "ur_energy estimate model.yaml task --bag task_energy",
    )
    add_optional_model(parser)
    arguments.add_bag(parser)
    parser.add_argument(
        "--csv", type=Path, metavar="FILE", help="also write the powers over time to this file"
    )
    parser.add_argument(
        "--bag",
        dest="energy_bag",
        type=Path,
        metavar="OUT",
        help="also write the topics that the estimator node would publish to this bag, for the "
        "layouts of PlotJuggler and Foxglove",
    )
    arguments.add_number(parser, "--rate", 50.0, "HZ", "messages per second of --bag, 1 to 500")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing bag OUT")
    add_payload_option(parser, "the model's")
    arguments.add_json(parser)


def run(options: argparse.Namespace) -> None:
    """Integrate and print."""
    from ur_energy_model.energy.recording_energy import estimate_energy

    if not LOWEST_RATE <= options.rate <= HIGHEST_RATE:
        raise InputError(
            "--rate",
            f"is {options.rate:g}",
            f"choose {LOWEST_RATE:g} to {HIGHEST_RATE:g} messages per second",
        )
    chosen = chosen_model(options.model, options.robot, [options.bag])
    model = with_given_payload(chosen.model, options.payload)
    with _new_energy_bag(options) as folder, progress("estimating") as report:
        summary = estimate_energy(model, options.bag, series=options.csv, progress=report)
        if folder is not None:
            _write_bag(model, chosen, options, folder, report)
    if options.json:
        print_json({"model": chosen.entry, **summary.as_json()})
    else:
        _print(summary, chosen)
    if options.csv:
        note(f"powers over time written to {options.csv}")
    if options.energy_bag:
        note(f"energy topics written to {options.energy_bag}")


def _new_energy_bag(options: argparse.Namespace) -> AbstractContextManager[Path | None]:
    """Temporary directory of the bag OUT, None if no bag is wanted."""
    from ur_energy_model.telemetry.bag.files import new_bag

    if options.energy_bag is None:
        return nullcontext()
    if options.energy_bag.resolve() == options.bag.resolve():
        raise InputError(options.energy_bag, "is the recording itself", "name another bag OUT")
    return new_bag(options.energy_bag, overwrite=options.overwrite)


def _write_bag(
    model: EnergyModel,
    chosen: ChosenModel,
    options: argparse.Namespace,
    folder: Path,
    progress: Progress,
) -> None:
    from ur_energy_model.energy_topics.energy_bag import write_energy_bag

    write_energy_bag(
        model,
        options.bag,
        folder,
        name=options.energy_bag.resolve().name,
        model_path=chosen.words,
        rate=options.rate,
        progress=progress,
    )


def _print(summary: EnergySummary, chosen: ChosenModel) -> None:
    from ur_energy_model.energy.meter import CONFIDENCE

    content = summary.as_json()
    print_table(
        f"energy over {summary.duration:.1f} s [J]",
        ["joint", "mechanical", "electrical", "± 95 %", "efficiency", "regenerated"],
        [
            [
                row["name"],
                row["mechanical_energy"],
                row["electrical_energy"],
                CONFIDENCE * row["electrical_energy_std"],
                row["efficiency"],
                row.get("regenerated_energy"),
            ]
            for row in (*content["joints"], {"name": "all joints", **content["total"]})
        ],
    )
    note(f"model: {chosen.words}")
    measured = "not recorded" if summary.bus is None else f"{summary.bus:.1f} J"
    note(
        f"at the supply: {summary.supply:.1f} ± {CONFIDENCE * summary.supply_std:.1f} J modelled "
        f"(standby {summary.standby:.1f} J, drivers {summary.driver:.1f} J), measured: {measured}"
    )
    session = summary.session
    power = f"{session.power:.1f} ± {CONFIDENCE * session.std:.1f} W"
    if session.anchored:
        note(
            f"standby power of this session: {power}, measured over {session.still_seconds:.1f} s "
            "of standstill"
        )
    else:
        note(
            f"standby power is the model's, {power}: this recording has no standstill with "
            "measured bus power (one second is enough)"
        )
    if summary.refused:
        note(f"{summary.refused} samples with values not finite or impossible are left out")
    if summary.unaccounted:
        note(f"gaps of {summary.unaccounted:.2f} s in total are not included in these energies")
