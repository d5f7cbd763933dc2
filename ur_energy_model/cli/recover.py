"""`ur_energy recover`: a readable bag from an interrupted or damaged one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ur_energy_model.cli import arguments
from ur_energy_model.cli.output import note, print_json, progress

if TYPE_CHECKING:
    import argparse


def register(subparsers: arguments.Subparsers) -> None:
    """Add the subcommand."""
    parser = arguments.add_command(
        subparsers,
        "recover",
        run,
        summary="repair an interrupted or damaged bag",
        description="Rebuild the index and metadata.yaml of a bag that is damaged or whose "
        "recording was killed. Everything intact is kept; what is lost is reported.",
        examples="ur_energy recover night_shift",
    )
    arguments.add_bag(parser, "recording to repair in place")
    arguments.add_json(parser)


def run(options: argparse.Namespace) -> None:
    """Recover a bag."""
    from ur_energy_model.telemetry.bag.recovery import recover_bag

    with progress("recovering"):
        result = recover_bag(options.bag)
    for problem in result.problems:
        note(problem)
    if options.json:
        print_json(
            {
                "bag": str(options.bag),
                "samples": result.samples,
                "files": result.files,
                "problems": result.problems,
            }
        )
    else:
        note(f"{options.bag}: {result.samples} samples in {result.files} files are readable")
