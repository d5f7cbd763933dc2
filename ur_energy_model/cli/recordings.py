# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Making, mending and judging recordings: `ur_energy record`, `import`, `recover`, `inspect`."""

from __future__ import annotations

import math
import threading
import time
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from ur_energy_model.cli.commands import (
    ImportOptions,
    InspectOptions,
    RecordOptions,
    RecoverOptions,
)
from ur_energy_model.cli.output import (
    note,
    print_json,
    print_line,
    print_objects,
    print_table,
    progress,
    recording_json,
    warn,
)
from ur_energy_model.energy.wall import RecordedMeter
from ur_energy_model.errors import IncompleteRecordingError, InputError, RecordingError
from ur_energy_model.files import real_path
from ur_energy_model.interrupts import on_stop_signal
from ur_energy_model.model.robots import available_robots, load_robot
from ur_energy_model.rooms import Given
from ur_energy_model.telemetry.bag.compression import available_packing
from ur_energy_model.telemetry.bag.files import FileSplit, new_bag
from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.telemetry.bag.recovery import recover_bag
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.telemetry.clock import checked_clock
from ur_energy_model.telemetry.fields import ENERGY_FIELDS
from ur_energy_model.telemetry.meters import Meter, MeteredSource
from ur_energy_model.telemetry.recording.recorder import Recorder
from ur_energy_model.telemetry.recording.writing_thread import (
    RecorderOptions,
)
from ur_energy_model.telemetry.rtde.source import RtdeSource
from ur_energy_model.telemetry.source import ObservedSource, TelemetrySource

if TYPE_CHECKING:  # slow to import
    from collections.abc import Callable

    from ur_energy_model.consistency.contradiction import Contradiction
    from ur_energy_model.model.controller_constants import ControllerConstants
    from ur_energy_model.model.robots import RobotDescription
    from ur_energy_model.telemetry.csv.table import CsvOptions

# time without samples after which a recording whose duration is over ends
GRACE_SECONDS = 2.0
WATCH_SECONDS = 0.2  # period of the progress display


def _note_packing() -> None:
    """A line where the package that packs bags best is not installed."""
    shortcoming = available_packing().shortcoming
    if shortcoming is not None:
        note(shortcoming)


# `ur_energy record`: a robot's telemetry into a bag, without losing a sample.


def record(given: Given) -> None:
    """`ur_energy record`: record until the duration is over, Ctrl-C, or the arm is away.

    Raises:
        IncompleteRecordingError: less is in the bag than was asked for.
        UrEnergyError: the controller, the meter or the bag cannot be used.
    """
    options = given.of(RecordOptions)
    robot = None if options.robot is None else load_robot(options.robot).name
    if options.output.exists():
        raise RecordingError(
            options.output, "exists already", "choose another name for the bag"
        )
    _note_packing()
    source = RtdeSource(
        options.host,
        robot=robot,
        fields=options.fields or ENERGY_FIELDS,
        rate=options.rate,
        patience=options.wait,
    )
    processor = time.process_time()
    with ExitStack() as opened:
        metered: TelemetrySource = source
        meter = (
            None if options.meter is None else opened.enter_context(Meter(options.meter))
        )
        if meter is not None:
            meter.require()
            metered = MeteredSource(source, meter)
        opened.enter_context(metered)
        if source.info.robot is None:
            remedy = "name the arm: --robot NAME, such as --robot ur5e"
            raise InputError(
                options.host, "its dashboard server does not name the arm", remedy
            )
        if source.missing_fields:
            note(f"the controller does not have: {', '.join(source.missing_fields)}")
        rate = source.info.rate
        wanted = options.rate
        if (
            wanted is not None
            and rate is not None
            and not math.isclose(wanted, rate, rel_tol=1e-3)
        ):
            note(
                f"recording at {rate:g} Hz, not {wanted:g}: a controller can only skip cycles"
            )
        split = FileSplit(
            None if options.split_minutes is None else 60.0 * options.split_minutes,
            None if options.split_mb is None else round(1e6 * options.split_mb),
        )
        wanted_bag = RecorderOptions(split=split, duration=options.duration)
        arm = (
            load_robot(source.info.robot)
            if source.info.robot in available_robots()
            else None
        )
        arm_type = None
        if arm is not None:
            from ur_energy_model.consistency.arm_type import ArmTypeMonitor

            arm_type = ArmTypeMonitor(arm)
            metered = ObservedSource(metered, arm_type.observe)
        wall = RecordedMeter(options.meter)
        if meter is not None:
            metered = ObservedSource(metered, wall.observe)

        def contradictions() -> list[Contradiction]:
            """What the samples contradict so far: the arm as stated, the power meter."""
            of_arm = None if arm_type is None else arm_type.contradiction
            return [*([] if of_arm is None else [of_arm]), *wall.contradictions]

        recorder = Recorder(metered, options=wanted_bag, record=options.output)
        began = time.monotonic()
        with recorder:
            interrupted = threading.Event()
            with on_stop_signal(interrupted.set):
                short = _watch(
                    recorder, source, meter, contradictions, options.duration, interrupted
                )
                try:
                    recorder.stop()
                except RecordingError as error:
                    short = short or error.problem
                status = recorder.status
            elapsed = time.monotonic() - began
        if arm_type is not None:
            arm_type.finish()
        wall.finish()
    constants, units = _constants_of(options.output, arm)
    found = [*contradictions(), *units]
    result = {
        **recording_json(options.output, status),
        "identity": source.status.identity,
        "controller_constants": constants,
        "cpu_percent": 100.0 * (time.process_time() - processor) / max(elapsed, 1e-9),
        "contradictions": [each.as_json() for each in found],
    }
    if options.json:
        print_json(result)
    else:
        rows = [
            (key, len(value) if key == "gaps" else value)
            for key, value in result.items()
            if key not in ("contradictions", "controller_constants")
        ]
        print_table("Recorded", ("", "value"), rows)
        _print_constants(constants, arm)
        warn(each.words() for each in found)
    if status.unreadable and short is None:
        short = f"{status.unreadable} samples cannot be read back"
    if status.overflow and short is None:
        short = f"{status.overflow} samples found no place while the disk failed"
    if short is not None or status.stopped_because is not None:
        problem = f"less was recorded than asked for: {status.stopped_because or short}"
        raise IncompleteRecordingError(options.output, problem, "the rest is readable")


def _constants_of(
    bag: Path, robot: RobotDescription | None
) -> tuple[ControllerConstants | None, list[Contradiction]]:
    """Torque constants that the controller states in a bag, and what contradicts their units.

    From the finished bag, so that recording is never delayed. None without a readable
    sample, and for an arm without a description.
    """
    from ur_energy_model.consistency.controller_constants import fit_of_bag

    if robot is None:
        return None, []
    try:
        fit = fit_of_bag(bag, robot)
    except RecordingError:  # reported by what recorded it
        return None, []
    contradiction = fit.contradiction()
    return fit.result(), [] if contradiction is None else [contradiction]


def _print_constants(
    constants: ControllerConstants | None, robot: RobotDescription | None
) -> None:
    """A line with the constants, where any joint's is known."""
    from ur_energy_model.consistency.controller_constants import constants_in_words

    if constants is not None and robot is not None and constants.known.any():
        print_line(constants_in_words(constants, robot))


def _watch(
    recorder: Recorder,
    source: TelemetrySource,
    meter: Meter | None,
    contradictions: Callable[[], list[Contradiction]],
    duration: float | None,
    interrupted: threading.Event,
) -> str | None:
    """Show progress and problems until the recording ends; returns why it ends too early."""
    began = advanced = checked = time.monotonic()
    limit = math.inf if duration is None else duration + GRACE_SECONDS
    samples = 0
    shown: str | None = None
    contradicted = set[str]()  # subjects of the contradictions that were said
    with progress("recording") as report:
        while not recorder.wait(WATCH_SECONDS):
            if interrupted.is_set():
                note("finishing the bag")
                return None
            status = recorder.status
            now = time.monotonic()
            seconds = now - began
            # or it was suspended
            if status.samples > samples or now - checked > GRACE_SECONDS:
                samples = status.samples
                advanced = now
            checked = now
            link = source.status.problem
            if seconds > limit and now - advanced > GRACE_SECONDS:
                # Without samples the controller's clock does not end the bag.
                return f"no samples at the end ({link or 'they come too slowly'})"
            text = f"recording: {status.samples} samples, {status.losses.samples} lost"
            report(0.0 if duration is None else min(1.0, seconds / duration), text)
            problem = link if status.state == "recording" else status.last_error
            if problem is None and meter is not None and meter.problem is not None:
                problem = f"power meter: {meter.problem}"
            if problem is not None and problem != shown:
                note(problem)
            shown = problem
            for each in contradictions():
                if each.subject not in contradicted:
                    contradicted.add(each.subject)
                    warn([each.words()])
    return None


# `ur_energy import`: CSV recordings into a bag.


def import_csv(given: Given) -> None:
    """`ur_energy import`: make a bag of CSV recordings.

    Raises:
        UrEnergyError: the files cannot be read, are not of this arm, or the bag exists.
    """
    from ur_energy_model.consistency.arm_type import ArmTypeCheck
    from ur_energy_model.consistency.contradiction import refuse
    from ur_energy_model.consistency.controller_constants import ControllerConstantsFit
    from ur_energy_model.consistency.effort_unit import CurrentCheck
    from ur_energy_model.consistency.time_unit import time_contradictions
    from ur_energy_model.energy.telemetry_checks import rated_limits
    from ur_energy_model.telemetry.csv.reader import CsvReader

    options = given.of(ImportOptions)
    if options.robot is None:
        given.refuse(_missing_robot(options))
    robot = load_robot(options.robot)
    check = ArmTypeCheck()
    currents = CurrentCheck()
    constants = ControllerConstantsFit(robot)
    _note_packing()
    reading = _reading(options)._replace(joints=robot.dof, limits=rated_limits(robot))
    with new_bag(options.output, overwrite=options.overwrite) as folder:
        with progress("reading") as report:
            telemetry = CsvReader(options.csv, robot.name, reading, note)
            name = real_path(options.output).name
            with BagWriter(
                folder,
                telemetry.info,
                telemetry.fields,
                name=name,
                joint_names=robot.joint_names,
            ) as bag:
                for batch in telemetry:
                    bag.write(batch)
                    check.observe(batch)
                    currents.observe(batch)
                    constants.accumulate(batch)
                    report(float("nan"), f"reading: {bag.samples} samples")
        contradictions = time_contradictions(
            telemetry.time_scale.result,
            stated=f"the time is read as {telemetry.time.words}",
            remedy="import it with {options}",
            unit=telemetry.time.unit,
            rate=options.rate,
        )
        contradictions += check.contradictions(
            robot,
            stated=f"is imported as a recording of a {robot.name}",
            remedy="import it with {options}",
        )
        contradictions = contradictions or currents.contradictions(robot)
        refuse(options.csv[0], contradictions)
        units = constants.contradiction()
    if units is not None:
        contradictions = (*contradictions, units)
    result = {
        "bag": options.output,
        "robot": robot.name,
        "samples": bag.samples,
        "seconds": telemetry.duration,
        "rate": telemetry.info.rate,
        "gaps": len(bag.gaps),
        "lost": sum(gap.missing for gap in bag.gaps),
        "repeated": telemetry.repeated,
        "time": telemetry.time._asdict(),
        "fields": list(telemetry.fields),
        "time_zone": telemetry.info.extra.get("time_zone"),
        "controller_constants": constants.result(),
        "contradictions": [each.as_json() for each in contradictions],
    }
    if options.json:
        print_json(result)
    else:
        shown = {**result, "time": telemetry.time.words}
        hidden = {"fields", "contradictions", "controller_constants"}
        hidden |= set() if result["time_zone"] else {"time_zone"}
        rows = [(key, value) for key, value in shown.items() if key not in hidden]
        print_table("Imported", ("", "value"), rows)
        _print_constants(constants.result(), robot)
        warn([] if units is None else [units.words()])


def _reading(options: ImportOptions) -> CsvOptions:
    """How the files are read by the options, for arms of six joints and any size."""
    from ur_energy_model.telemetry.csv.table import CsvOptions

    return CsvOptions(
        columns=options.columns,
        layout=options.layout,
        rate=options.rate,
        time_unit=None if options.time_unit == "auto" else options.time_unit,
    )


_LONGEST_LOOK = 120.0
"""Time of a recording from which the arm is recognised that --robot does not name [s]."""


def _missing_robot(options: ImportOptions) -> str:
    """Error for an import without --robot, with the arms that the samples show."""
    from ur_energy_model.consistency.arm_type import ArmTypeCheck
    from ur_energy_model.telemetry.csv.reader import CsvReader

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


def recover(given: Given) -> None:
    """`ur_energy recover`: repair a bag in place.

    Raises:
        RecordingError: it is not a bag, or nothing of it can be read.
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
    """`ur_energy inspect`: assess a recording and print what it is suited for.

    Raises:
        UrEnergyError: the recording cannot be read, or there is no such robot.
    """
    from ur_energy_model.consistency.contradiction import with_contradictions
    from ur_energy_model.identification.payload_check import payload_contradictions
    from ur_energy_model.identification.quality import assess
    from ur_energy_model.model.generic import generic_model, generic_models

    options = given.of(InspectOptions)
    batches = checked_clock(iterate_bag(options.bag), options.bag)
    first = next(batches)
    name = options.robot or first.info.robot
    known = options.robot is not None or name in available_robots()
    robot = load_robot(name) if known and name is not None else None
    quality = assess(chain([first], batches), robot=robot)
    if robot is not None and robot.source in generic_models():
        shown = payload_contradictions(generic_model(robot), options.bag)
        quality = with_contradictions(quality, shown)
    constants, units = _constants_of(options.bag, robot)
    quality = with_contradictions(quality, units)
    if options.json:
        found = {"controller_constants": constants}
        print_json({"bag": options.bag, **quality.as_dict(), **found})
        return
    lost = (
        f", {quality.lost} lost in {quality.gaps} gaps" if quality.gaps else ", no gaps"
    )
    uneven = ", uneven" if quality.irregular else ""
    print_objects(
        f"{quality.source}: {quality.duration:.1f} s, {quality.samples} samples, "
        f"{quality.rate:.0f} Hz{uneven}{lost}",
        quality.joints,
        {
            # a row is one line of 80
            "joint": lambda each: each.name.removesuffix("_joint"),
            **{name: name for name in ("travel", "speed", "torque", "current", "moving")},
            "turns": "reversals",
            "degC": lambda each: each.temperature[1],
            "motion": "activity",
        },
    )
    print_line(
        "travel [rad], maximum speed [rad/s], torque range [N m], maximum current [A],"
    )
    print_line("time in motion [s], changes of direction, maximum temperature [degC]")
    if quality.condition_number is not None:
        print_line(
            f"condition number of the base regressor: {quality.condition_number:.0f}"
        )
    _print_constants(constants, robot)
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
