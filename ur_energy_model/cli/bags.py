"""`ur_energy import` and `ur_energy recover`: recordings in, and back after a crash."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ur_energy_model.cli.output import add_json_option, note, print_json, print_table, progress
from ur_energy_model.telemetry.csv.layouts import LAYOUTS

_IMPORT_DESCRIPTION = """\
Turn CSV recordings of RTDE data into a bag: separated by commas, semicolons, tabs or
blanks, plain or gzipped. Columns carry RTDE field names (actual_q_0 ...), as ur_rtde's
recorder and Universal Robots' Python client write them; a unit may follow in brackets.
Files without a header line need --columns or --layout. Rows that are no samples of this
arm are counted, named and left out; a file with more than one in a hundred of them is
refused. docs/importing.md has the details."""
_IMPORT_EXAMPLE = """example:
  ur_energy import pick_place.csv.gz --robot ur5e -o pick_place
  ur_energy import log.txt --columns timestamp,actual_q,actual_qd,- --robot ur5e -o log

layouts:
"""
_RECOVER_EXAMPLE = """example:
  ur_energy recover night_shift
"""


def _layouts() -> str:
    """Known layouts, a line each."""
    return "".join(f"  {name:26} {layout.source}\n" for name, layout in LAYOUTS.items())


def register(subparsers: Any) -> None:
    """Add the subcommands."""
    importer = subparsers.add_parser(
        "import",
        help="turn CSV recordings into a bag",
        description=_IMPORT_DESCRIPTION,
        epilog=_IMPORT_EXAMPLE + _layouts(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    importer.add_argument("csv", nargs="+", type=Path, metavar="CSV", help="recordings, in order")
    importer.add_argument("--robot", required=True, metavar="NAME", help="such as ur5e")
    importer.add_argument(
        "-o", "--output", required=True, type=Path, metavar="BAG", help="directory to make"
    )
    importer.add_argument(
        "--columns",
        metavar="NAMES",
        help="names of the columns, separated by commas, in place "
        "of the header line: actual_q or actual_q[6] stands for six, '-' skips one, '-[3]' three",
    )
    importer.add_argument(
        "--layout", metavar="LAYOUT", help="column order of a known kind of file (see below)"
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
    from ur_energy_model.energy.rated_limits import rated_limits
    from ur_energy_model.model.robots import load_robot
    from ur_energy_model.telemetry.bag.files import new_bag
    from ur_energy_model.telemetry.bag.writer import BagWriter
    from ur_energy_model.telemetry.csv.options import CsvOptions
    from ur_energy_model.telemetry.csv.reader import CsvReader

    robot = load_robot(options.robot)
    with new_bag(options.output, overwrite=options.overwrite) as folder:
        reading = CsvOptions(robot.dof, options.columns, options.layout, rated_limits(robot))
        with progress("reading") as report:
            telemetry = CsvReader(options.csv, robot.name, reading, note)
            name = options.output.resolve().name
            with BagWriter(
                folder, telemetry.info, telemetry.fields, name=name, joint_names=robot.joint_names
            ) as bag:
                for batch in telemetry:
                    bag.write(batch)
                    report(float("nan"), f"reading: {bag.samples} samples")
    result = {
        "bag": str(options.output),
        "robot": robot.name,
        "samples": bag.samples,
        "seconds": telemetry.duration,
        "rate": telemetry.info.rate,
        "gaps": len(bag.gaps),
        "lost": sum(gap.missing for gap in bag.gaps),
        "fields": list(telemetry.fields),
        "time_zone": telemetry.info.extra.get("time_zone"),
    }
    if options.json:
        print_json(result)
    else:
        hidden = {"fields"} if result["time_zone"] else {"fields", "time_zone"}
        rows = [(key, value) for key, value in result.items() if key not in hidden]
        print_table("Imported", ("", "value"), rows)
    return 0


def run_recover(options: argparse.Namespace) -> int:
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
    return 0
