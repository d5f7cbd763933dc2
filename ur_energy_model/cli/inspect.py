"""`ur_energy inspect`: the quality of a recording and what it is suited for."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from ur_energy_model.cli import arguments
from ur_energy_model.cli.output import print_json, print_line, print_table

if TYPE_CHECKING:
    import argparse

    from ur_energy_model.identification.quality import Quality


def register(subparsers: arguments.Subparsers) -> None:
    """Add the subcommand."""
    parser = arguments.add_command(
        subparsers,
        "inspect",
        run,
        summary="assess the quality of a recording",
        description="Assess a recording: rate, gaps, excitation, speed and torque of each joint, "
        "condition number, frozen or clipped channels, freedrive, temperatures, simulated data. "
        "The exit code is 0 even if the verdict is bad; identify refuses such a bag.",
        examples="ur_energy inspect night_shift",
    )
    arguments.add_bag(parser)
    arguments.add_robot(parser, "the one named in the bag; needed for the condition number")
    arguments.add_json(parser)


def run(options: argparse.Namespace) -> None:
    """Assess and print."""
    from ur_energy_model.identification.verdict import assess
    from ur_energy_model.model.robots import available_robots, load_robot
    from ur_energy_model.telemetry.bag.reader import iterate_bag
    from ur_energy_model.telemetry.clock import checked_clock

    batches = checked_clock(iterate_bag(options.bag), options.bag)
    first = next(batches)
    name = options.robot or first.info.robot
    known = options.robot is not None or name in available_robots()
    robot = load_robot(name) if known and name is not None else None
    quality = assess(chain([first], batches), robot=robot)
    if options.json:
        print_json({"bag": str(options.bag), **quality.as_dict()})
    else:
        _print(quality)


def _print(quality: Quality) -> None:
    lost = f", {quality.lost} lost in {quality.gaps} gaps" if quality.gaps else ", no gaps"
    uneven = ", uneven" if quality.irregular else ""
    print_table(
        f"{quality.source}: {quality.duration:.1f} s, {quality.samples} samples, "
        f"{quality.rate:.0f} Hz{uneven}{lost}",
        ("joint", "travel", "speed", "torque", "current", "moving", "turns", "degC", "motion"),
        [
            (
                joint.name,
                joint.travel,
                joint.speed,
                joint.torque,
                joint.current,
                joint.moving,
                joint.reversals,
                joint.temperature[1],
                joint.activity,
            )
            for joint in quality.joints
        ],
    )
    print_line("travel [rad], maximum speed [rad/s], torque range [N m], maximum current [A],")
    print_line("time in motion [s], changes of direction, maximum temperature [degC]")
    if quality.condition_number is not None:
        print_line(f"condition number of the base regressor: {quality.condition_number:.0f}")
    print_table(
        "good for",
        ("purpose", "verdict", "why"),
        [(use.purpose.replace("_", " "), use.grade, use.reason) for use in quality.uses],
    )
    for warning in quality.warnings:
        print_line(f"warning: {warning}")
    print_line(f"verdict: {quality.verdict}")
