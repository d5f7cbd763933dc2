"""`ur_energy import` and `ur_energy recover`: recordings in, and back after a crash."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ur_energy_model.cli.output import add_json_option, note, print_json, print_table, progress

_IMPORT_EXAMPLE = """example:
  ur_energy import pick_place.csv.gz --robot ur5e -o pick_place
"""
_RECOVER_EXAMPLE = """example:
  ur_energy recover night_shift
"""


def register(subparsers: Any) -> None:
    """Add the subcommands."""
    importer = subparsers.add_parser(
        "import",
        help="turn CSV recordings into a bag",
        description="Turn CSV recordings of RTDE data into a bag: comma-separated as ur_rtde's "
        "recorder writes them, space-separated as Universal Robots' Python client does, plain or "
        "gzipped. Columns carry RTDE field names (actual_q_0 ...); time is kept as it is.",
        epilog=_IMPORT_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    importer.add_argument("csv", nargs="+", type=Path, metavar="CSV", help="recordings, in order")
    importer.add_argument("--robot", required=True, metavar="NAME", help="such as ur5e")
    importer.add_argument(
        "-o", "--output", required=True, type=Path, metavar="BAG", help="directory to make"
    )
    importer.add_argument(
        "--overwrite", action="store_true", help="replace the bag where there is one"
    )
    add_json_option(importer)
    importer.set_defaults(run=run_import)

    recover = subparsers.add_parser(
        "recover",
        help="make an interrupted or damaged bag whole again",
        description="Rebuild index and metadata.yaml of a bag whose recording was killed, or that "
        "was damaged; everything intact is kept, and what is not is named.",
        epilog=_RECOVER_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    recover.add_argument("bag", type=Path, metavar="BAG", help="rosbag2 directory")
    add_json_option(recover)
    recover.set_defaults(run=run_recover)


def run_import(options: argparse.Namespace) -> int:
    """Import CSV recordings."""
    from ur_energy_model.model.robots import load_robot
    from ur_energy_model.telemetry.bag_files import new_bag
    from ur_energy_model.telemetry.bags import BagWriter
    from ur_energy_model.telemetry.csv_import import read_csv

    robot = load_robot(options.robot)
    with new_bag(options.output, overwrite=options.overwrite) as folder:
        with progress("reading"):
            telemetry = read_csv(options.csv, robot.name, joints=robot.dof, note=note)
        name = options.output.resolve().name
        fields = tuple(telemetry.columns)
        with BagWriter(
            folder, telemetry.info, fields, name=name, joint_names=robot.joint_names
        ) as bag:
            bag.write(telemetry)
    result = {
        "bag": str(options.output),
        "robot": robot.name,
        "samples": len(telemetry),
        "seconds": telemetry.duration,
        "rate": telemetry.info.rate,
        "gaps": len(telemetry.gaps),
        "lost": telemetry.lost,
        "fields": list(telemetry.columns),
    }
    if options.json:
        print_json(result)
    else:
        rows = [(key, value) for key, value in result.items() if key != "fields"]
        print_table("Imported", ("", "value"), rows)
    return 0


def run_recover(options: argparse.Namespace) -> int:
    """Recover a bag."""
    from ur_energy_model.telemetry.bag_recovery import recover_bag

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
    return 0
