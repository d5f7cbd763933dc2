# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Repair and quality of recordings: `ur_energy recover` and `inspect`.

The module also has what `record`, `import` and `inspect` print of a recording alike.
"""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from ur_energy_model.cli.output import (
    JOINT,
    note,
    print_json,
    print_line,
    print_objects,
    progress,
)
from ur_energy_model.cli.recording_options import InspectOptions, RecoverOptions
from ur_energy_model.errors import RecordingError
from ur_energy_model.model.robots import available_robots, load_robot
from ur_energy_model.rooms import Given
from ur_energy_model.telemetry.bag.compression import available_packing
from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.telemetry.bag.recovery import recover_bag
from ur_energy_model.telemetry.clock import checked_clock

if TYPE_CHECKING:  # slow to import
    from ur_energy_model.consistency.contradiction import Contradiction
    from ur_energy_model.identification.quality import Quality
    from ur_energy_model.model.controller_constants import ControllerConstants
    from ur_energy_model.model.robots import RobotDescription


# What several commands print of a recording.


def note_packing() -> None:
    """Print a line where the package that packs bags best is not installed."""
    shortcoming = available_packing().shortcoming
    if shortcoming is not None:
        note(shortcoming)


def controller_constants(
    bag: Path, robot: RobotDescription | None
) -> tuple[ControllerConstants | None, list[Contradiction]]:
    """Torque constants that the controller states in a bag, and contradictions of units.

    The constants are read from the finished bag, so that recording is never delayed.

    Args:
        bag: the recording.
        robot: description of the arm; None for one that the package does not know.

    Returns:
        Constants and contradictions; None and no contradiction without a description or a
        readable sample.
    """
    from ur_energy_model.consistency.controller_constants import fit_of_bag

    if robot is None:
        return None, []
    try:
        fit = fit_of_bag(bag, robot)
    except RecordingError:  # the command has reported what is wrong with the bag
        return None, []
    contradiction = fit.contradiction()
    return fit.result(), [] if contradiction is None else [contradiction]


def print_constants(
    constants: ControllerConstants | None, robot: RobotDescription | None
) -> None:
    """Print a line with the torque constants; none where no constant is known.

    Args:
        constants: constants that the controller states [N m/A]; None where they are
            unknown.
        robot: description of the arm; None for one that the package does not know.
    """
    from ur_energy_model.consistency.controller_constants import constants_in_words

    if constants is not None and robot is not None and constants.known.any():
        print_line(constants_in_words(constants, robot))


def recover(given: Given) -> None:
    """`ur_energy recover`: repair a bag in place.

    Raises:
        RecordingError: the path is not a bag, or nothing in the bag can be read.
    """
    options = given.of(RecoverOptions)
    with progress("recovering"):
        result = recover_bag(options.bag)
    for problem in result.problems:
        note(problem)
    if options.json:
        found = {
            "samples": result.samples,
            "files": result.files,
            "problems": result.problems,
        }
        print_json({"bag": options.bag, **found})
    else:
        print_line(
            f"{options.bag}: {result.samples} samples in {result.files} files are readable"
        )


def inspect(given: Given) -> None:
    """`ur_energy inspect`: assess a recording, and print for which purposes it is good.

    Raises:
        UrEnergyError: the recording cannot be read, or there is no such robot.
    """
    from ur_energy_model.consistency.contradiction import with_contradictions
    from ur_energy_model.identification.payload_check import payload_contradictions
    from ur_energy_model.identification.quality_check import assess
    from ur_energy_model.model.generic import generic_model, generic_models

    options = given.of(InspectOptions)
    batches = checked_clock(iterate_bag(options.bag), options.bag)
    first = next(batches)
    name = options.robot or first.info.robot
    robot = None
    if name is not None and (options.robot is not None or name in available_robots()):
        robot = load_robot(name)
    quality = assess(chain([first], batches), robot=robot)
    if robot is not None and robot.source in generic_models():
        shown = payload_contradictions(generic_model(robot), options.bag)
        quality = with_contradictions(quality, shown)
    constants, units = controller_constants(options.bag, robot)
    quality = with_contradictions(quality, units)
    if options.json:
        found = {"controller_constants": constants}
        print_json({"bag": options.bag, **quality.as_dict(), **found})
    else:
        _print_quality(quality, constants, robot)


def _print_quality(
    quality: Quality,
    constants: ControllerConstants | None,
    robot: RobotDescription | None,
) -> None:
    """Print the quality of a recording for people.

    Args:
        quality: quality of the recording.
        constants: torque constants that the controller states; None where they are
            unknown.
        robot: description of the arm; None if it is not known.
    """
    _print_joints(quality)
    if quality.condition_number is not None:
        number = f"{quality.condition_number:.0f}"
        print_line(f"condition number of the base regressor: {number}")
    print_constants(constants, robot)
    if quality.torque_field is not None:
        print_line(f"actual_current_as_torque: {quality.torque_field.words()}")
    print_objects(
        "good for",
        quality.uses,
        {
            "purpose": lambda use: use.purpose.replace("_", " "),
            "verdict": "grade",
            "why": "reason",
        },
    )
    for warning in quality.warnings:
        print_line(f"warning: {warning}")
    print_line(f"verdict: {quality.verdict}")


def _print_joints(quality: Quality) -> None:
    """Print length and losses of a recording, and the motion of each joint.

    A row of the table is one line of 80 columns; the units are below the table.

    Args:
        quality: quality of the recording.
    """
    lost = ", no gaps"
    if quality.gaps:
        lost = f", {quality.lost} lost in {quality.gaps} gaps"
    uneven = ", uneven" if quality.irregular else ""
    print_objects(
        f"{quality.source}: {quality.duration:.1f} s, {quality.samples} samples, "
        f"{quality.rate:.0f} Hz{uneven}{lost}",
        quality.joints,
        {
            "joint": lambda each: each.name.removesuffix(JOINT),
            "travel": "travel",
            "speed": "speed",
            "torque": "torque",
            "current": "current",
            "moving": "moving",
            "turns": "reversals",
            "degC": lambda each: each.temperature[1],
            "motion": "activity",
        },
    )
    print_line(
        "travel [rad], maximum speed [rad/s], torque range [N m], maximum current [A],"
    )
    print_line("time in motion [s], changes of direction, maximum temperature [degC]")
