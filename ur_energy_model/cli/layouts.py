"""`ur_energy layouts`: layouts of PlotJuggler, Foxglove, rviz and Grafana for one arm."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ur_energy_model.cli import arguments
from ur_energy_model.cli.output import note, print_json, print_table

if TYPE_CHECKING:
    import argparse

DEFAULT_ROBOT = "ur5e"
"""Every UR arm has its joint names."""


def register(subparsers: arguments.Subparsers) -> None:
    """Add the subcommand."""
    parser = arguments.add_command(
        subparsers,
        "layouts",
        run,
        summary="write layouts of PlotJuggler, Foxglove, rviz and Grafana for an arm",
        description="Write layouts of PlotJuggler (live topics and bags), Foxglove and rviz for "
        "the energy topics of an arm, with the namespace and the tf_prefix of its nodes, and a "
        "dashboard of Grafana with a configuration of Prometheus. Those without namespace and "
        "prefix are in the package's config folder.",
        examples="ur_energy layouts --namespace cell1 --tf-prefix left_ -o layouts",
    )
    parser.add_argument(
        "--namespace", default="", metavar="NAME", help="namespace of the nodes (default: none)"
    )
    parser.add_argument(
        "--tf-prefix",
        default="",
        metavar="PREFIX",
        help="parameter tf_prefix of the nodes (default: none)",
    )
    arguments.add_robot(parser, default=DEFAULT_ROBOT)
    arguments.add_output(parser, "DIR", "folder for the files")
    parser.add_argument("--overwrite", action="store_true", help="replace existing files")
    arguments.add_json(parser)


def run(options: argparse.Namespace) -> None:
    """Write the files."""
    from ur_energy_model.errors import InputError
    from ur_energy_model.files import check_target, write_text
    from ur_energy_model.layouts.files import PURPOSES, ArmTopics, layout_files
    from ur_energy_model.model.robots import load_robot

    robot = load_robot(options.robot or DEFAULT_ROBOT)
    arm = ArmTopics(tuple(robot.joint_names), options.namespace, options.tf_prefix)
    files = {options.output / name: text for name, text in layout_files(arm).items()}
    for path in files:
        check_target(path)
    taken = [path for path in files if path.exists()]
    if taken and not options.overwrite:
        raise InputError(taken[0], "exists already", "name another folder, or add --overwrite")
    for path, text in files.items():
        write_text(path, text)
    if options.json:
        print_json({"files": [str(path) for path in files], "topic": arm.energies})
        return
    rows = [(str(path), purpose) for path, purpose in zip(files, PURPOSES.values(), strict=True)]
    print_table("Layouts", ("file", "for"), rows)
    note(f"all curves are in {arm.energies}")
