"""`ur_energy estimate`."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING, Any

from ur_energy_model.cli import output
from ur_energy_model.cli.payload_option import add_payload_option, payload_given

if TYPE_CHECKING:
    from ur_energy_model.energy.energy_summary import EnergySummary


def register(subparsers: Any) -> None:
    """Add the subcommand."""
    command = subparsers.add_parser(
        "estimate",
        help="energy of a recording, per joint and whole arm",
        description="Mechanical and electrical energy and efficiency of a recording under a model.",
        epilog="example: ur_energy estimate model.yaml task --csv power.csv",
    )
    command.add_argument("model", metavar="MODEL.yaml")
    command.add_argument("bag", metavar="BAG")
    command.add_argument("--csv", metavar="FILE", help="also write the powers over time")
    add_payload_option(command, purpose="by default the model's")
    output.add_json_option(command)
    command.set_defaults(run=run_estimate)


def run_estimate(options: argparse.Namespace) -> int:
    """Integrate and print."""
    from ur_energy_model.energy.recording_energy import estimate_energy
    from ur_energy_model.model.file.model_file import load_model

    model, payload = load_model(options.model), payload_given(options.payload)
    if payload is not None:
        model = model.with_payload(payload)
    with output.progress("estimating") as report:
        summary = estimate_energy(
            model,
            options.bag,
            series=options.csv,
            progress=lambda f, text: report(0.0 if math.isnan(f) else f, text),
        )
    if options.json:
        output.print_json(summary.as_json())
    else:
        _print_summary(summary)
    if options.csv:
        output.note(f"powers over time written to {options.csv}")
    return 0


def _print_summary(summary: EnergySummary) -> None:
    from ur_energy_model.energy.meter import CONFIDENCE

    content = summary.as_json()
    rows = [
        [
            row["name"],
            row["mechanical_energy"],
            row["electrical_energy"],
            CONFIDENCE * row["electrical_energy_std"],
            row["efficiency"],
            row["regenerated_energy"],
        ]
        for row in content["joints"]
    ]
    total = content["total"]
    rows.append(
        [
            "joints together",
            total["mechanical_energy"],
            total["electrical_energy"],
            CONFIDENCE * total["electrical_energy_std"],
            total["efficiency"],
            None,
        ]
    )
    output.print_table(
        f"energy over {summary.duration:.1f} s [J]",
        ["joint", "mechanical", "electrical", "± 95 %", "efficiency", "regenerated"],
        rows,
    )
    measured = "not recorded" if summary.bus is None else f"{summary.bus:.1f} J measured"
    half = CONFIDENCE * summary.supply_std
    output.note(
        f"at the supply: {summary.supply:.1f} ± {half:.1f} J modelled (standby "
        f"{summary.standby:.1f} J, drivers {summary.driver:.1f} J), {measured}"
    )
    session = summary.session
    if session.anchored:
        output.note(
            f"standby power of this session: {session.power:.1f} ± "
            f"{CONFIDENCE * session.std:.1f} W, from {session.still_seconds:.1f} s of standstill"
        )
    else:
        output.note(
            f"standby power is the model's, {session.power:.1f} ± "
            f"{CONFIDENCE * session.std:.1f} W: no standstill with bus power shows that of "
            "this session (a second of it would do)"
        )
    if summary.refused:
        output.note(f"{summary.refused} samples are left out: values not finite or impossible")
    if summary.unaccounted:
        output.note(f"gaps of {summary.unaccounted:.2f} s in all are not in these energies")
