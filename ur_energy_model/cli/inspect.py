"""`ur_energy inspect`: what a recording is good for."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ur_energy_model.cli.output import add_json_option, print_json, print_table, say

_EXAMPLE = """example:
  ur_energy inspect night_shift
"""


def register(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "inspect",
        help="say what a recording is good for",
        description="Judge a recording: rate, gaps, excitation of each joint, speeds and torques, "
        "condition number, frozen or clipped channels, freedrive, temperatures, simulators. The "
        "exit code is 0 also where the verdict is bad; identify refuses such a bag.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("bag", type=Path, metavar="BAG", help="rosbag2 directory")
    parser.add_argument(
        "--robot", metavar="NAME", help="for the condition number; by default as the bag says"
    )
    add_json_option(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Judge and print."""
    from ur_energy_model.identification.quality.verdict import assess
    from ur_energy_model.model.robots import available_robots, load_robot
    from ur_energy_model.telemetry.bag.reader import iterate_bag

    batches = iterate_bag(options.bag)
    first = next(batches)
    name = options.robot or first.info.robot
    told = options.robot is not None or name in available_robots()
    robot = load_robot(name) if told and name is not None else None
    quality = assess(_chained(first, batches), robot=robot)
    if options.json:
        print_json({"bag": str(options.bag), **quality.as_dict()})
        return 0
    _print(quality)
    return 0


def _chained(first: Any, rest: Any) -> Any:
    yield first
    yield from rest


def _print(quality: Any) -> None:
    lost = f", {quality.lost} lost in {quality.gaps} gaps" if quality.gaps else ", no gaps"
    uneven = ", uneven" if quality.irregular else ""
    print_table(
        f"{quality.source}: {quality.duration:.1f} s, {quality.samples} samples, "
        f"{quality.rate:.0f} Hz{uneven}{lost}",
        ("joint", "travel", "speed", "torque", "current", "moving", "turns", "degC", "motion"),
        [
            (
                j + 1,
                joint.travel,
                joint.speed,
                joint.torque,
                joint.current,
                joint.moving,
                joint.reversals,
                joint.temperature[1],
                joint.activity,
            )
            for j, joint in enumerate(quality.joints)
        ],
    )
    print("travel [rad], largest speed [rad/s], torque range [N m], largest current [A],")
    print("time moving [s], changes of direction, highest temperature [degC]")
    if quality.condition_number is not None:
        print(f"condition number of the base regressor: {quality.condition_number:.0f}")
    print_table(
        "good for",
        ("purpose", "verdict", "why"),
        [(use.purpose.replace("_", " "), use.grade, use.reason) for use in quality.uses],
    )
    for warning in quality.warnings:
        say(f"warning: {warning}")
    say(f"verdict: {quality.verdict}")
