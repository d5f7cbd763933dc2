"""Making, mending and judging recordings: `ur_energy record`, `import`, `recover`, `inspect`."""

from __future__ import annotations

import argparse
import math
import threading
import time
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ur_energy_model.cli import arguments
from ur_energy_model.cli.arguments import command, option
from ur_energy_model.cli.output import (
    note,
    on_stop_signal,
    print_json,
    print_line,
    print_table,
    progress,
)
from ur_energy_model.options import number

if TYPE_CHECKING:
    from ur_energy_model.identification.quality import Quality
    from ur_energy_model.telemetry.recording.recorder import Recorder
    from ur_energy_model.telemetry.recording.writing_thread import RecorderStatus
    from ur_energy_model.telemetry.source import TelemetrySource

GRACE_SECONDS = 2.0
"""Time without samples after which a recording whose duration is over ends."""
WATCH_SECONDS = 0.2
"""Period of the progress display."""
_positive = number(float, 1e-3, 1e9)


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise argparse.ArgumentTypeError("needs at least one field name")
    return names


# `ur_energy record`: a robot's telemetry into a bag, without losing a sample.


@command(
    "record",
    "record a robot's telemetry into a bag",
    "Record the telemetry of a robot (RTDE, port 30004) into a rosbag2 directory without losing a "
    "sample. Connection losses are bridged and recorded as gaps.",
    "ur_energy record --host 192.168.0.10 --duration 60 -o monday",
    (arguments.add_controller, True),
    (arguments.add_robot, "the one that the controller names"),
    (arguments.add_output, "BAG", "directory to create"),
    option(
        "--fields",
        type=_names,
        metavar="NAME,...",
        help="RTDE fields to record (default: all that energy models need)",
    ),
    *(
        option(flag, type=_positive, metavar=metavar, help=text)
        for flag, metavar, text in (
            ("--duration", "S", "stop after S seconds (default: on Ctrl-C)"),
            ("--rate", "HZ", "samples per second (default: every cycle of the controller)"),
            ("--split-minutes", "M", "start a new file every M minutes"),
            ("--split-mb", "M", "start a new file every M megabytes"),
        )
    ),
    option(
        "--wait",
        type=_positive,
        default=0.0,
        metavar="S",
        help="retry the connection for up to S seconds (default: try once)",
    ),
    arguments.add_json,
    notes="Ctrl-C finishes the bag. The robot is only read, never commanded. Exit code 3: less "
    "is in the bag than was asked for, because the robot was away at the end, the disk was "
    "full, or files of the bag were deleted or changed; what is missing is counted as lost.",
)
def record(options: argparse.Namespace) -> None:
    """Record."""
    from ur_energy_model.errors import IncompleteRecordingError, InputError, RecordingError
    from ur_energy_model.model.robots import load_robot
    from ur_energy_model.telemetry.bag.files import FileSplit
    from ur_energy_model.telemetry.fields import ENERGY_FIELDS
    from ur_energy_model.telemetry.recording.recorder import Recorder
    from ur_energy_model.telemetry.recording.writing_thread import RecorderOptions
    from ur_energy_model.telemetry.rtde.source import RtdeSource

    robot = None if options.robot is None else load_robot(options.robot).name
    if options.output.exists():
        raise RecordingError(options.output, "exists already", "choose another name for the bag")
    source = RtdeSource(
        options.host,
        robot=robot,
        fields=options.fields or ENERGY_FIELDS,
        rate=options.rate,
        patience=options.wait,
    )
    processor = time.process_time()
    with source:
        if source.info.robot is None:
            raise InputError(
                options.host,
                "its dashboard server does not name the arm",
                "name the arm: --robot NAME, such as --robot ur5e",
            )
        if source.missing_fields:
            note(f"the controller does not have: {', '.join(source.missing_fields)}")
        rate, wanted = source.info.rate, options.rate
        if wanted is not None and rate is not None and not math.isclose(wanted, rate, rel_tol=1e-3):
            note(f"recording at {rate:g} Hz, not {wanted:g}: a controller can only skip cycles")
        split = FileSplit(
            None if options.split_minutes is None else 60.0 * options.split_minutes,
            None if options.split_mb is None else round(1e6 * options.split_mb),
        )
        wanted_bag = RecorderOptions(split=split, duration=options.duration)
        recorder = Recorder(source, options=wanted_bag, record=options.output)
        began = time.monotonic()
        with recorder:
            interrupted = threading.Event()
            with on_stop_signal(interrupted.set):
                short = _watch(recorder, source, options.duration, interrupted)
                try:
                    recorder.stop()
                except RecordingError as error:
                    short = short or error.problem
                status = recorder.status
            elapsed = time.monotonic() - began
    result = {
        **recording_json(options.output, status),
        "identity": source.status.identity,
        "cpu_percent": 100.0 * (time.process_time() - processor) / max(elapsed, 1e-9),
    }
    if options.json:
        print_json(result)
    else:
        rows = [(key, len(value) if key == "gaps" else value) for key, value in result.items()]
        print_table("Recorded", ("", "value"), rows)
    if status.unreadable and short is None:
        short = f"{status.unreadable} samples cannot be read back"
    if short is not None or status.stopped_because is not None:
        raise IncompleteRecordingError(
            options.output,
            f"less was recorded than asked for: {status.stopped_because or short}",
            "the rest is readable",
        )


def recording_json(bag: Path, status: RecorderStatus) -> dict[str, Any]:
    """JSON of a finished recording."""
    return {
        "bag": bag,
        "samples": status.samples,
        "lost": status.lost,
        "lost_seconds": status.lost_seconds,
        "unreadable": status.unreadable,
        "duplicates": status.duplicates,
        "gaps": status.gaps,
        "seconds": status.seconds,
    }


def _watch(
    recorder: Recorder,
    source: TelemetrySource,
    duration: float | None,
    interrupted: threading.Event,
) -> str | None:
    """Show progress and problems until the recording ends; returns why it ends too early."""
    began = advanced = checked = time.monotonic()
    limit = math.inf if duration is None else duration + GRACE_SECONDS
    samples = 0
    shown: str | None = None
    with progress("recording") as report:
        while not recorder.wait(WATCH_SECONDS):
            if interrupted.is_set():
                note("finishing the bag")
                return None
            status = recorder.status
            now = time.monotonic()
            seconds = now - began
            if status.samples > samples or now - checked > GRACE_SECONDS:  # or it was suspended
                samples, advanced = status.samples, now
            checked = now
            link = source.status.problem
            if seconds > limit and now - advanced > GRACE_SECONDS:
                # Without samples the controller's clock does not end the bag.
                return f"no samples at the end ({link or 'they come too slowly'})"
            text = f"recording: {status.samples} samples, {status.lost} lost"
            report(0.0 if duration is None else min(1.0, seconds / duration), text)
            problem = link if status.state == "recording" else status.last_error
            if problem is not None and problem != shown:
                note(problem)
            shown = problem
    return None


# `ur_energy import`: CSV recordings into a bag.


def _layouts() -> str:
    from ur_energy_model.telemetry.csv.columns import LAYOUTS

    sources = {name: layout.source for name, layout in LAYOUTS.items()}
    return arguments.definition_list("layouts", sources)


@command(
    "import",
    "turn CSV recordings into a bag",
    "Turn CSV recordings of RTDE data into a bag. Values are separated by commas, semicolons, tabs "
    "or blanks; files may be gzipped. Columns have RTDE field names (actual_q_0 ...), as written "
    "by ur_rtde's recorder and Universal Robots' Python client; a unit in brackets may follow. "
    "Files without a header line need --columns or --layout. Rows that cannot be samples of this "
    "arm are reported and left out; a file with more than 1 % of them is refused. See "
    "docs/recording.md.",
    "ur_energy import pick_place.csv.gz --robot ur5e -o pick_place\n"
    "ur_energy import log.txt --robot ur5e -o log \\\n"
    "    --columns timestamp,actual_q,actual_qd,-",
    option("csv", nargs="+", type=Path, metavar="CSV", help="recordings, in order of time"),
    (arguments.add_robot, "none: CSV files do not name the arm"),
    (arguments.add_output, "BAG", "directory to create"),
    (
        arguments.add_text,
        "--columns",
        "NAMES",
        "column names, separated by commas, for files without a header line: actual_q or "
        "actual_q[6] names six columns, '-' skips one and '-[3]' three",
    ),
    (
        arguments.add_text,
        "--layout",
        "LAYOUT",
        "column order of a known kind of file (listed below)",
    ),
    (arguments.add_flag, "--overwrite", "replace an existing bag"),
    arguments.add_json,
    notes=lambda: _layouts(),
)
def import_csv(options: argparse.Namespace) -> None:
    """Import CSV recordings."""
    from ur_energy_model.energy.telemetry_checks import rated_limits
    from ur_energy_model.files import real_path
    from ur_energy_model.model.robots import load_robot
    from ur_energy_model.telemetry.bag.files import new_bag
    from ur_energy_model.telemetry.bag.writer import BagWriter
    from ur_energy_model.telemetry.csv.reader import CsvOptions, CsvReader

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
        "bag": options.output,
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


# `ur_energy recover` and `ur_energy inspect`.


@command(
    "recover",
    "repair an interrupted or damaged bag",
    "Rebuild the index and metadata.yaml of a bag that is damaged or whose recording was killed. "
    "Everything intact is kept; what is lost is reported.",
    "ur_energy recover night_shift",
    (arguments.add_bag, "recording to repair in place"),
    arguments.add_json,
)
def recover(options: argparse.Namespace) -> None:
    """Repair a bag in place."""
    from ur_energy_model.telemetry.bag.recovery import recover_bag

    with progress("recovering"):
        result = recover_bag(options.bag)
    for problem in result.problems:
        note(problem)
    if options.json:
        found = {"samples": result.samples, "files": result.files, "problems": result.problems}
        print_json({"bag": options.bag, **found})
    else:
        note(f"{options.bag}: {result.samples} samples in {result.files} files are readable")


@command(
    "inspect",
    "assess the quality of a recording",
    "Assess a recording: rate, gaps, excitation, speed and torque of each joint, condition number, "
    "frozen or clipped channels, freedrive, temperatures, simulated data. The exit code is 0 even "
    "if the verdict is bad; identify refuses such a bag.",
    "ur_energy inspect night_shift",
    arguments.add_bag,
    (arguments.add_robot, "the one named in the bag; needed for the condition number"),
    arguments.add_json,
)
def inspect(options: argparse.Namespace) -> None:
    """Assess a recording and print what it is suited for."""
    from ur_energy_model.identification.quality import assess
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
        print_json({"bag": options.bag, **quality.as_dict()})
    else:
        _print_quality(quality)


def _print_quality(quality: Quality) -> None:
    lost = f", {quality.lost} lost in {quality.gaps} gaps" if quality.gaps else ", no gaps"
    uneven = ", uneven" if quality.irregular else ""
    print_table(
        f"{quality.source}: {quality.duration:.1f} s, {quality.samples} samples, "
        f"{quality.rate:.0f} Hz{uneven}{lost}",
        ("joint", "travel", "speed", "torque", "current", "moving", "turns", "degC", "motion"),
        [
            (
                each.name.removesuffix("_joint"),  # so that a row is a line of 80 columns
                *(each.travel, each.speed, each.torque, each.current, each.moving),
                *(each.reversals, each.temperature[1], each.activity),
            )
            for each in quality.joints
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
