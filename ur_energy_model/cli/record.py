"""`ur_energy record`: a robot's telemetry into a bag, without losing a sample."""

from __future__ import annotations

import argparse
import math
import threading
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ur_energy_model.cli import arguments
from ur_energy_model.cli.output import note, on_stop_signal, print_json, print_table, progress

if TYPE_CHECKING:
    from pathlib import Path

    from ur_energy_model.telemetry.recording.reception import RecorderStatus
    from ur_energy_model.telemetry.recording.recorder import Recorder
    from ur_energy_model.telemetry.source import TelemetrySource

GRACE_SECONDS = 2.0
"""Time without samples after which a recording whose duration is over ends."""
_positive = arguments.number(float, 1e-3, 1e9)
WATCH_SECONDS = 0.2
"""Period of the progress display."""


def register(subparsers: arguments.Subparsers) -> None:
    """Add the subcommand."""
    parser = arguments.add_command(
        subparsers,
        "record",
        run,
        summary="record a robot's telemetry into a bag",
        description="Record the telemetry of a robot (RTDE, port 30004) into a rosbag2 directory "
        "without losing a sample. Connection losses are bridged and recorded as gaps.",
        examples="ur_energy record --host 192.168.0.10 --duration 60 -o monday",
        notes="Ctrl-C finishes the bag. The robot is only read, never commanded. Exit code 3: less "
        "is in the bag than was asked for, because the robot was away at the end, the disk was "
        "full, or files of the bag were deleted or changed; what is missing is counted as lost.",
    )
    arguments.add_controller(parser)
    arguments.add_robot(parser, "the one that the controller names")
    arguments.add_output(parser, "BAG", "directory to create")
    parser.add_argument(
        "--duration", type=_positive, metavar="S", help="stop after S seconds (default: on Ctrl-C)"
    )
    parser.add_argument(
        "--fields",
        type=_names,
        metavar="NAME,...",
        help="RTDE fields to record (default: all that energy models need)",
    )
    parser.add_argument(
        "--rate",
        type=_positive,
        metavar="HZ",
        help="samples per second (default: every cycle of the controller)",
    )
    parser.add_argument(
        "--split-minutes", type=_positive, metavar="M", help="start a new file every M minutes"
    )
    parser.add_argument(
        "--split-mb", type=_positive, metavar="M", help="start a new file every M megabytes"
    )
    parser.add_argument(
        "--wait",
        type=_positive,
        default=0.0,
        metavar="S",
        help="retry the connection for up to S seconds (default: try once)",
    )
    arguments.add_json(parser)


def run(options: argparse.Namespace) -> None:
    """Record."""
    from ur_energy_model.errors import IncompleteRecordingError, InputError, RecordingError
    from ur_energy_model.model.robots import load_robot
    from ur_energy_model.telemetry.bag.files import FileSplit
    from ur_energy_model.telemetry.fields import ENERGY_FIELDS
    from ur_energy_model.telemetry.recording.reception import RecorderOptions
    from ur_energy_model.telemetry.recording.recorder import Recorder
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
                "its dashboard server does not say which arm it is",
                "name the arm: --robot NAME, such as --robot ur5e",
            )
        if source.missing_fields:
            note(f"the controller does not have: {', '.join(source.missing_fields)}")
        _report_rate(options.rate, source.info.rate)
        split = FileSplit(
            None if options.split_minutes is None else 60.0 * options.split_minutes,
            None if options.split_mb is None else round(1e6 * options.split_mb),
        )
        recorder = Recorder(
            source,
            options=RecorderOptions(split=split, duration=options.duration),
            record=options.output,
        )
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
    used = 100.0 * (time.process_time() - processor) / max(elapsed, 1e-9)
    result = {
        **recording_json(options.output, status),
        "identity": source.status.identity,
        "cpu_percent": used,
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
        "bag": str(bag),
        "samples": status.samples,
        "lost": status.lost,
        "lost_seconds": status.lost_seconds,
        "unreadable": status.unreadable,
        "duplicates": status.duplicates,
        "gaps": [asdict(gap) for gap in status.gaps],
        "seconds": status.seconds,
    }


def _report_rate(requested: float | None, actual: float | None) -> None:
    """Report a rate other than the requested one."""
    if (
        requested is not None
        and actual is not None
        and not math.isclose(requested, actual, rel_tol=1e-3)
    ):
        note(f"recording at {actual:g} Hz, not {requested:g}: a controller can only skip cycles")


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


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise argparse.ArgumentTypeError("needs at least one field name")
    return names
