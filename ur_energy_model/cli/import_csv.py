# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""`ur_energy import`: CSV recordings into a bag."""

from __future__ import annotations

from typing import Any

from ur_energy_model.cli.output import note, print_json, print_values, progress, warn
from ur_energy_model.cli.recording_options import ImportOptions
from ur_energy_model.cli.recordings import note_packing, print_constants
from ur_energy_model.consistency.arm_type import ArmTypeCheck
from ur_energy_model.consistency.contradiction import Contradiction, refuse
from ur_energy_model.consistency.controller_constants import ControllerConstantsFit
from ur_energy_model.consistency.effort_unit import CurrentCheck
from ur_energy_model.consistency.time_unit import time_contradictions
from ur_energy_model.energy.telemetry_checks import rated_limits
from ur_energy_model.errors import InputError
from ur_energy_model.files import real_path
from ur_energy_model.model.robots import RobotDescription, load_robot
from ur_energy_model.rooms import Given
from ur_energy_model.telemetry.bag.files import new_bag
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.telemetry.csv.reader import CsvReader
from ur_energy_model.telemetry.csv.table import CsvOptions
from ur_energy_model.telemetry.samples import Telemetry

_REMEDY = "import it with {options}"
"""Remedy of contradictions, a format for the options that agree with the samples."""
_HIDDEN = ("fields", "contradictions", "controller_constants")
"""Entries of JSON that a table does not show: long ones, and sentences."""
_LONGEST_LOOK = 120.0
"""Time span of the samples by which the arm is recognised without --robot [s]."""


def import_csv(given: Given) -> None:
    """Make a bag of CSV recordings, and print what it holds.

    Raises:
        UrEnergyError: the files cannot be read, are not of this arm, or the bag exists.
    """
    options = given.of(ImportOptions)
    if options.robot is None:
        given.refuse(_missing_robot(options))
    robot = load_robot(options.robot)
    checks = _SampleChecks(robot)
    note_packing()
    reading = _reading(options)._replace(joints=robot.dof, limits=rated_limits(robot))
    with new_bag(options.output, overwrite=options.overwrite) as folder:
        with progress("reading") as report:
            telemetry = CsvReader(options.csv, robot.name, reading, note)
            with BagWriter(
                folder,
                telemetry.info,
                telemetry.fields,
                name=real_path(options.output).name,
                joint_names=robot.joint_names,
            ) as bag:
                for batch in telemetry:
                    bag.write(batch)
                    checks.observe(batch)
                    report(float("nan"), f"reading: {bag.samples} samples")
        contradictions = checks.contradictions(telemetry, options)
        refuse(options.csv[0], contradictions)
    units = checks.constants.contradiction()
    if units is not None:
        contradictions = (*contradictions, units)
    constants = checks.constants.result()
    result = {
        "bag": options.output,
        "robot": robot.name,
        **_imported_json(telemetry, bag),
        "controller_constants": constants,
        "contradictions": [each.as_json() for each in contradictions],
    }
    if options.json:
        print_json(result)
    else:
        hidden = _HIDDEN if result["time_zone"] else (*_HIDDEN, "time_zone")
        print_values("Imported", {**result, "time": telemetry.time.words}, hidden)
        print_constants(constants, robot)
        warn([] if units is None else [units.words()])


def _imported_json(telemetry: CsvReader, bag: BagWriter) -> dict[str, Any]:
    """Entries of JSON about the samples that were imported.

    Args:
        telemetry: the CSV files, read to their end.
        bag: the bag that was written.
    """
    return {
        "samples": bag.samples,
        "seconds": telemetry.duration,
        "rate": telemetry.info.rate,
        "gaps": len(bag.gaps),
        "lost": sum(gap.missing for gap in bag.gaps),
        "repeated": telemetry.repeated,
        "time": telemetry.time._asdict(),
        "fields": list(telemetry.fields),
        "time_zone": telemetry.info.extra.get("time_zone"),
    }


class _SampleChecks:
    """Compares samples of CSV files with the stated arm and units of current and time.

    Attributes:
        constants: fit of the torque constants that the controller states.
    """

    def __init__(self, robot: RobotDescription) -> None:
        """Begin without samples of an arm of this description."""
        self._robot = robot
        self._arm_type = ArmTypeCheck()
        self._currents = CurrentCheck()
        self.constants = ControllerConstantsFit(robot)

    def observe(self, batch: Telemetry) -> None:
        """Take the next samples."""
        self._arm_type.observe(batch)
        self._currents.observe(batch)
        self.constants.accumulate(batch)

    def contradictions(
        self, telemetry: CsvReader, options: ImportOptions
    ) -> tuple[Contradiction, ...]:
        """Contradictions for which the files are refused.

        A wrong unit of time or a wrong arm makes currents look wrong, so that currents
        are compared only where time and arm agree.

        Args:
            telemetry: the files, read to their end.
            options: options of the command, as the user states them.
        """
        of_time = time_contradictions(
            telemetry.time_scale.result,
            stated=f"the time is read as {telemetry.time.words}",
            remedy=_REMEDY,
            unit=telemetry.time.unit,
            rate=options.rate,
        )
        of_arm = self._arm_type.contradictions(
            self._robot,
            stated=f"is imported as a recording of a {self._robot.name}",
            remedy=_REMEDY,
        )
        found = (*of_time, *of_arm)
        return found or tuple(self._currents.contradictions(self._robot))


def _reading(options: ImportOptions) -> CsvOptions:
    """Options of reading the files, for arms of six joints and any size."""
    return CsvOptions(
        columns=options.columns,
        layout=options.layout,
        rate=options.rate,
        time_unit=None if options.time_unit == "auto" else options.time_unit,
    )


def _missing_robot(options: ImportOptions) -> str:
    """The problem of an import without --robot, with the arms that the samples fit.

    Args:
        options: options of the command; the beginning of the CSV files is read.
    """
    general = "give --robot NAME, such as --robot ur5e: CSV files do not name it"
    check = ArmTypeCheck()
    try:
        for batch in CsvReader(options.csv, None, _reading(options), lambda text: None):
            check.observe(batch)
            if check.seconds > _LONGEST_LOOK:
                break
    except InputError:
        return general
    names = check.fitting_arms()
    if not names:
        return general
    named = " or ".join(f"--robot {name}" for name in names)
    return (
        f"give {named}, whose torques and poses these are: CSV files do not name the arm"
    )
