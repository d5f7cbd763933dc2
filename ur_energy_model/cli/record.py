"""`ur_energy record`: a robot's telemetry into a bag, every sample of it."""

from __future__ import annotations

import argparse
import math
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from ur_energy_model.cli.output import add_json_option, note, print_json, print_table, progress

if TYPE_CHECKING:
    from ur_energy_model.telemetry.recording.recorder import Recorder
    from ur_energy_model.telemetry.recording.recorder_status import RecorderStatus

_EXAMPLE = """example:
  ur_energy record --host 192.168.0.10 --robot ur5e --duration 60 -o monday

Ctrl-C finishes the bag. The robot is only read from, never commanded.
"""
GRACE_SECONDS = 2.0
WATCH_SECONDS = 0.2


def register(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "record",
        help="record a robot's telemetry into a bag",
        description="Record the telemetry of a robot (RTDE, port 30004) into a rosbag2 directory, "
        "without losing a sample; losses of the connection are bridged and recorded as gaps.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--host", required=True, metavar="ADDRESS", help="of the controller")
    parser.add_argument("--robot", required=True, metavar="NAME", help="such as ur5e")
    parser.add_argument(
        "-o", "--output", required=True, type=Path, metavar="BAG", help="directory to make"
    )
    parser.add_argument("--duration", type=_positive, metavar="S", help="stop after S seconds")
    parser.add_argument(
        "--fields",
        type=_names,
        metavar="NAME,...",
        help="RTDE fields to record (default: all that energy work needs)",
    )
    parser.add_argument(
        "--rate", type=_positive, metavar="HZ", help="default: every cycle of the controller"
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
        help="go on trying to connect for S seconds",
    )
    add_json_option(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Record."""
    from ur_energy_model.errors import RecordingError
    from ur_energy_model.model.robots import load_robot
    from ur_energy_model.telemetry.bag.file_split import FileSplit
    from ur_energy_model.telemetry.fields import ENERGY_FIELDS
    from ur_energy_model.telemetry.recording.recorder import Recorder
    from ur_energy_model.telemetry.recording.recorder_options import RecorderOptions
    from ur_energy_model.telemetry.rtde.source import RtdeSource

    robot = load_robot(options.robot).name
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
        if source.missing_fields:
            note(f"the controller does not have: {', '.join(source.missing_fields)}")
        _tell_rate(options.rate, source.info.rate)
        split = FileSplit(
            None if options.split_minutes is None else 60.0 * options.split_minutes,
            None if options.split_mb is None else round(1e6 * options.split_mb),
        )
        recorder = Recorder(source, options=RecorderOptions(split=split, duration=options.duration))
        with recorder:
            began = time.monotonic()
            recorder.start(options.output)
            with _interrupted() as interrupted:
                _watch(recorder, options.duration, interrupted)
                status = recorder.stop()
            elapsed = time.monotonic() - began
    _report(options, status, 100.0 * (time.process_time() - processor) / max(elapsed, 1e-9))
    if status.stopped_because is not None:
        raise RecordingError(
            options.output,
            f"recording ended early: {status.stopped_because}",
            "what was recorded is readable",
        )
    return 0


def _tell_rate(wanted: float | None, sent: float | None) -> None:
    """Say so where the controller sends at another rate than asked for."""
    if wanted is not None and sent is not None and not math.isclose(wanted, sent, rel_tol=1e-3):
        note(f"recording at {sent:g} Hz, not {wanted:g}: a controller can only leave out cycles")


@contextmanager
def _interrupted() -> Iterator[threading.Event]:
    """An event that Ctrl-C and SIGTERM set, so that the bag is finished in peace.

    Also where the shell that started us in the background made SIGINT ignored.
    """
    event = threading.Event()

    def handle(number: int, frame: FrameType | None) -> None:
        event.set()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield event
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _watch(recorder: Recorder, duration: float | None, interrupted: threading.Event) -> None:
    """Show how it goes until the bag ends."""
    began = advanced = time.monotonic()
    limit = math.inf if duration is None else duration + GRACE_SECONDS
    samples = 0
    said: str | None = None
    with progress("recording") as report:
        while not recorder.wait(WATCH_SECONDS):
            if interrupted.is_set():
                note("finishing the bag")
                return
            status = recorder.status
            now = time.monotonic()
            seconds = now - began
            if status.samples > samples:
                samples, advanced = status.samples, now
            if seconds > limit and now - advanced > GRACE_SECONDS:
                return  # without samples the controller's clock does not end the bag
            text = f"recording: {status.samples} samples, {status.lost} lost"
            report(0.0 if duration is None else min(1.0, seconds / duration), text)
            problem = (
                status.last_error if not status.connected or status.state != "recording" else None
            )
            if problem is not None and problem != said:
                note(problem)
            said = problem


def _report(options: argparse.Namespace, status: RecorderStatus, cpu_percent: float) -> None:
    result = {
        "bag": str(options.output),
        "samples": status.samples,
        "lost": status.lost,
        "duplicates": status.duplicates,
        "gaps": [asdict(gap) for gap in status.gaps],
        "seconds": status.seconds,
        "cpu_percent": cpu_percent,
    }
    if options.json:
        print_json(result)
        return
    rows = [(key, len(status.gaps) if key == "gaps" else value) for key, value in result.items()]
    print_table("Recorded", ("", "value"), rows)


def _positive(text: str) -> float:
    value = float(text)
    if not (value > 0 and math.isfinite(value)):
        raise argparse.ArgumentTypeError("must be positive")
    return value


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise argparse.ArgumentTypeError("needs at least one field name")
    return names
