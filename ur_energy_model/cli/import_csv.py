"""`ur_energy import`: CSV recordings into a bag."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ur_energy_model.cli import arguments
from ur_energy_model.cli.output import note, print_json, print_table, progress
from ur_energy_model.files import real_path
from ur_energy_model.telemetry.csv.layouts import LAYOUTS

if TYPE_CHECKING:
    import argparse

_EXAMPLES = """\
ur_energy import pick_place.csv.gz --robot ur5e -o pick_place
ur_energy import log.txt --robot ur5e -o log \\
    --columns timestamp,actual_q,actual_qd,-
"""


def register(subparsers: arguments.Subparsers) -> None:
    """Add the subcommand."""
    parser = arguments.add_command(
        subparsers,
        "import",
        run,
        summary="turn CSV recordings into a bag",
        description="Turn CSV recordings of RTDE data into a bag. Values are separated by commas, "
        "semicolons, tabs or blanks; files may be gzipped. Columns have RTDE field names "
        "(actual_q_0 ...), as written by ur_rtde's recorder and Universal Robots' Python client; "
        "a unit in brackets may follow. Files without a header line need --columns or --layout. "
        "Rows that cannot be samples of this arm are reported and left out; a file with more than "
        "1 % of them is refused. See docs/recording.md.",
        examples=_EXAMPLES,
        notes=arguments.definition_list(
            "layouts", {name: layout.source for name, layout in LAYOUTS.items()}
        ),
    )
    parser.add_argument(
        "csv", nargs="+", type=Path, metavar="CSV", help="recordings, in order of time"
    )
    arguments.add_robot(parser, "none: CSV files do not name the arm")
    arguments.add_output(parser, "BAG", "directory to create")
    parser.add_argument(
        "--columns",
        metavar="NAMES",
        help="column names, separated by commas, for files without a header line: actual_q or "
        "actual_q[6] names six columns, '-' skips one and '-[3]' three",
    )
    parser.add_argument(
        "--layout", metavar="LAYOUT", help="column order of a known kind of file (listed below)"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace an existing bag")
    arguments.add_json(parser)


def run(options: argparse.Namespace) -> None:
    """Import CSV recordings."""
    from ur_energy_model.energy.telemetry_checks import rated_limits
    from ur_energy_model.model.robots import load_robot
    from ur_energy_model.telemetry.bag.files import new_bag
    from ur_energy_model.telemetry.bag.writer import BagWriter
    from ur_energy_model.telemetry.csv.open_csv import CsvOptions
    from ur_energy_model.telemetry.csv.reader import CsvReader

    if options.robot is None:
        options.parser.error(
            "give --robot NAME, such as --robot ur5e: CSV files do not name the arm"
        )
    robot = load_robot(options.robot)
    with new_bag(options.output, overwrite=options.overwrite) as folder:
        reading = CsvOptions(robot.dof, options.columns, options.layout, rated_limits(robot))
        with progress("reading") as report:
            telemetry = CsvReader(options.csv, robot.name, reading, note)
            name = real_path(options.output).name
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
        "repeated": telemetry.repeated,
        "fields": list(telemetry.fields),
        "time_zone": telemetry.info.extra.get("time_zone"),
    }
    if options.json:
        print_json(result)
    else:
        hidden = {"fields"} if result["time_zone"] else {"fields", "time_zone"}
        rows = [(key, value) for key, value in result.items() if key not in hidden]
        print_table("Imported", ("", "value"), rows)
