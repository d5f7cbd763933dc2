"""`ur_energy demo`: the complete workflow with the simulated controller and the ROS nodes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ur_energy_model.cli import arguments

if TYPE_CHECKING:
    import argparse


def register(subparsers: arguments.Subparsers) -> None:
    """Add the subcommand."""
    parser = arguments.add_command(
        subparsers,
        "demo",
        run,
        summary="run the complete workflow with a simulated arm",
        description="Record a simulated arm on trajectory A, identify its model, run trajectory B "
        "with logger and live estimator, and print the tables of the paper beside the simulated "
        "truth.",
        examples="ur_energy demo -o demo_output",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("demo_output"),
        metavar="FOLDER",
        help="folder for all results (default: %(default)s)",
    )
    parser.add_argument(
        "--robot", default="ur5e", metavar="NAME", help="robot to simulate (default: %(default)s)"
    )
    parser.add_argument(
        "--host",
        type=arguments.host_address,
        default="127.0.0.2",
        metavar="ADDRESS",
        help="loopback address of the simulated arm (default: %(default)s)",
    )
    arguments.add_number(parser, "--seconds", 40.0, "S", "length of each trajectory")
    parser.add_argument(
        "--seed",
        type=arguments.number(int, *arguments.SEEDS),
        metavar="N",
        help="number of the simulated arm (default: another one each time)",
    )


def run(options: argparse.Namespace) -> None:
    """Run the demo."""
    from ur_energy_model.demo.run import DemoOptions, run_demo

    run_demo(
        DemoOptions(options.output, options.robot, options.host, options.seconds, options.seed)
    )
