# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""`ur_energy record`: a robot's telemetry into a bag, without losing a sample."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple

from ur_energy_model.cli.output import (
    note,
    print_json,
    print_values,
    progress,
    recording_json,
    warn,
)
from ur_energy_model.cli.recording_options import RecordOptions
from ur_energy_model.cli.recordings import (
    controller_constants,
    note_packing,
    print_constants,
)
from ur_energy_model.energy.wall import RecordedMeter
from ur_energy_model.errors import IncompleteRecordingError, InputError, RecordingError
from ur_energy_model.interrupts import on_stop_signal
from ur_energy_model.model.robots import available_robots, load_robot
from ur_energy_model.rooms import Given
from ur_energy_model.telemetry.bag.files import FileSplit
from ur_energy_model.telemetry.fields import ENERGY_FIELDS
from ur_energy_model.telemetry.meters import Meter, MeteredSource
from ur_energy_model.telemetry.recording.recorder import Recorder
from ur_energy_model.telemetry.recording.writing_thread import (
    RecorderOptions,
    RecorderStatus,
)
from ur_energy_model.telemetry.rtde.source import RtdeSource
from ur_energy_model.telemetry.source import ObservedSource, TelemetrySource

if TYPE_CHECKING:  # slow to import
    from ur_energy_model.consistency.arm_type import ArmTypeMonitor
    from ur_energy_model.consistency.contradiction import Contradiction
    from ur_energy_model.model.robots import RobotDescription

GRACE_SECONDS = 2.0
"""Time without samples after which a recording whose duration is over ends [s]."""
WATCH_SECONDS = 0.2
"""Period of the display of progress [s]."""
_HIDDEN = ("contradictions", "controller_constants")
"""Entries of JSON that a table does not show: they are sentences."""


def record(given: Given) -> None:
    """`ur_energy record`: record until the end of the duration, Ctrl-C, or a failure.

    Raises:
        IncompleteRecordingError: less is in the bag than was asked for.
        UrEnergyError: the controller, the meter or the bag cannot be used.
    """
    options = given.of(RecordOptions)
    stated = None if options.robot is None else load_robot(options.robot).name
    if options.output.exists():
        remedy = "choose another name for the bag"
        raise RecordingError(options.output, "exists already", remedy)
    note_packing()
    source = RtdeSource(
        options.host,
        robot=stated,
        fields=options.fields or ENERGY_FIELDS,
        rate=options.rate,
        patience=options.wait,
    )
    processor = time.process_time()
    with _opened(source, options.meter) as opened:
        _check_source(source, options)
        robot = _known_robot(source.info.robot)
        checks = _SampleChecks(robot, options.meter)
        recorder = Recorder(
            checks.observed(opened.metered),
            options=_recorder_options(options),
            record=options.output,
        )
        began = time.monotonic()
        with recorder:
            short = _recorded(recorder, source, opened.meter, checks, options.duration)
            status = recorder.status
        elapsed = time.monotonic() - began
        checks.finish()
    constants, units = controller_constants(options.output, robot)
    found = [*checks.contradictions(), *units]
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
        print_values("Recorded", {**result, "gaps": len(status.gaps)}, _HIDDEN)
        print_constants(constants, robot)
        warn(each.words() for each in found)
    _require_complete(options, status, short)


class _OpenedSource(NamedTuple):
    """A source of samples that is connected.

    Attributes:
        metered: samples of the controller, with the readings of the meter if there is
            one.
        meter: power meter at the mains; None for none.
    """

    metered: TelemetrySource
    meter: Meter | None


@contextmanager
def _opened(source: RtdeSource, url: str | None) -> Iterator[_OpenedSource]:
    """The source, connected until the end of the block.

    Args:
        source: telemetry of the controller.
        url: URL of the power meter; None for none.

    Raises:
        UrEnergyError: the controller or the meter does not answer.
    """
    with ExitStack() as opened:
        if url is None:
            opened.enter_context(source)
            yield _OpenedSource(source, None)
            return
        meter = opened.enter_context(Meter(url))
        meter.require()
        metered = opened.enter_context(MeteredSource(source, meter))
        yield _OpenedSource(metered, meter)


def _check_source(source: RtdeSource, options: RecordOptions) -> None:
    """Refuse a controller that does not name its arm; report what it cannot send.

    Args:
        source: telemetry of the connected controller.
        options: options of the command.

    Raises:
        InputError: neither the user nor the controller names the arm.
    """
    if source.info.robot is None:
        problem = "its dashboard server does not name the arm"
        remedy = "name the arm: --robot NAME, such as --robot ur5e"
        raise InputError(options.host, problem, remedy)
    if source.missing_fields:
        note(f"the controller does not have: {', '.join(source.missing_fields)}")
    rate = source.info.rate
    wanted = options.rate
    if wanted is None or rate is None or math.isclose(wanted, rate, rel_tol=1e-3):
        return
    reason = "a controller can only skip cycles"
    note(f"recording at {rate:g} Hz, not {wanted:g}: {reason}")


def _known_robot(name: str | None) -> RobotDescription | None:
    """The description of an arm; None for one that the package does not know."""
    if name is None or name not in available_robots():
        return None
    return load_robot(name)


def _recorder_options(options: RecordOptions) -> RecorderOptions:
    """Duration and size of the files of the bag."""
    seconds = None
    if options.split_minutes is not None:
        seconds = 60.0 * options.split_minutes
    size = None
    if options.split_mb is not None:
        size = round(1e6 * options.split_mb)
    return RecorderOptions(split=FileSplit(seconds, size), duration=options.duration)


class _SampleChecks:
    """Compares samples with the stated arm and a power meter while they are recorded."""

    def __init__(self, robot: RobotDescription | None, meter: str | None) -> None:
        """Begin without samples.

        Args:
            robot: description of the arm as stated; None if it is not known.
            meter: URL of the power meter, None for none.
        """
        self._arm_type: ArmTypeMonitor | None = None
        self._metered = meter is not None
        self._wall = RecordedMeter(meter)
        if robot is not None:
            from ur_energy_model.consistency.arm_type import ArmTypeMonitor

            self._arm_type = ArmTypeMonitor(robot)

    def observed(self, source: TelemetrySource) -> TelemetrySource:
        """A source of the same samples, which are compared on their way.

        Args:
            source: source of the samples.
        """
        if self._arm_type is not None:
            source = ObservedSource(source, self._arm_type.observe)
        if self._metered:
            source = ObservedSource(source, self._wall.observe)
        return source

    def contradictions(self) -> list[Contradiction]:
        """What the samples so far contradict."""
        found = list(self._wall.contradictions)
        if self._arm_type is not None and self._arm_type.contradiction is not None:
            found.insert(0, self._arm_type.contradiction)
        return found

    def finish(self) -> None:
        """Check what is left after the last sample."""
        if self._arm_type is not None:
            self._arm_type.finish()
        self._wall.finish()


# While it records.


def _recorded(
    recorder: Recorder,
    source: TelemetrySource,
    meter: Meter | None,
    checks: _SampleChecks,
    duration: float | None,
) -> str | None:
    """Record to the end, and finish the bag.

    Args:
        recorder: recorder, which is running.
        source: source of the recorder's samples.
        meter: power meter that is read as well; None for none.
        checks: checks of the samples.
        duration: time after which the recorder ends [s]; None for no end.

    Returns:
        Why the recording ended too early; None if it is complete.
    """
    interrupted = threading.Event()
    with on_stop_signal(interrupted.set):
        short = _watch(recorder, source, meter, checks, duration, interrupted)
        try:
            recorder.stop()
        except RecordingError as error:
            return short or error.problem
    return short


def _watch(
    recorder: Recorder,
    source: TelemetrySource,
    meter: Meter | None,
    checks: _SampleChecks,
    duration: float | None,
    interrupted: threading.Event,
) -> str | None:
    """Show progress and problems until the recording ends.

    Args:
        recorder: recorder, which is running.
        source: source of the recorder's samples; its status has the state of the
            connection.
        meter: power meter that is read as well; None for none.
        checks: checks of the samples; each contradiction is printed once.
        duration: time after which the recorder ends [s]; None for no end.
        interrupted: event that a signal sets.

    Returns:
        Why the recording ends too early; None if it is complete.
    """
    began = time.monotonic()
    advanced = began  # when the number of samples last grew
    checked = began  # when this loop last ran
    limit = math.inf if duration is None else duration + GRACE_SECONDS
    samples = 0
    shown: str | None = None  # the problem that was printed last
    contradicted = set[str]()  # subjects of the contradictions that were printed
    with progress("recording") as report:
        while not recorder.wait(WATCH_SECONDS):
            if interrupted.is_set():
                note("finishing the bag")
                return None
            status = recorder.status
            now = time.monotonic()
            seconds = now - began
            suspended = now - checked > GRACE_SECONDS  # the machine slept meanwhile
            if status.samples > samples or suspended:
                samples = status.samples
                advanced = now
            checked = now
            link = source.status.problem
            if seconds > limit and now - advanced > GRACE_SECONDS:
                # Without samples the controller's clock does not end the bag.
                return f"no samples at the end ({link or 'they come too slowly'})"
            text = f"recording: {status.samples} samples, {status.losses.samples} lost"
            done = 0.0
            if duration is not None:
                done = min(1.0, seconds / duration)
            report(done, text)
            problem = _problem(status, link, meter)
            if problem is not None and problem != shown:
                note(problem)
            shown = problem
            for each in checks.contradictions():
                if each.subject not in contradicted:
                    contradicted.add(each.subject)
                    warn([each.words()])
    return None


def _problem(status: RecorderStatus, link: str | None, meter: Meter | None) -> str | None:
    """Present problem of the recording, in words; None without one.

    Args:
        status: status of the recorder, with problems of the disk.
        link: problem of the connection; None for none.
        meter: power meter that is read as well; None for none.
    """
    problem = link if status.state == "recording" else status.last_error
    if problem is None and meter is not None and meter.problem is not None:
        return f"power meter: {meter.problem}"
    return problem


# After it.


def _require_complete(
    options: RecordOptions, status: RecorderStatus, short: str | None
) -> None:
    """End the command with the exit code of an incomplete recording, unless it is complete.

    Args:
        options: options of the command.
        status: status of the recorder at its end.
        short: why the recording ended too early; None if it did not.

    Raises:
        IncompleteRecordingError: less is in the bag than was asked for.
    """
    reason = status.stopped_because or short
    if reason is None and status.unreadable:
        reason = f"{status.unreadable} samples cannot be read back"
    if reason is None and status.overflow:
        reason = f"{status.overflow} samples found no place while the disk failed"
    if reason is not None:
        problem = f"less was recorded than asked for: {reason}"
        raise IncompleteRecordingError(options.output, problem, "the rest is readable")
