# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""`ur_energy live`: powers and energies of an arm while it works, without ROS."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from ur_energy_model.cli.arguments import chosen_model, tariff_of
from ur_energy_model.cli.measures import print_measures
from ur_energy_model.cli.output import note
from ur_energy_model.cli.recording_options import LiveViewOptions
from ur_energy_model.consistency.arm_samples import FIELDS as ARM_TYPE_FIELDS
from ur_energy_model.energy.advice import Advice, adviser
from ur_energy_model.energy.live import LIVE_FIELDS, LiveOptions
from ur_energy_model.energy.program import read_script
from ur_energy_model.errors import ControllerError, InputError, UrEnergyError
from ur_energy_model.interrupts import on_stop_signal
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import load_robot
from ur_energy_model.rooms import Given
from ur_energy_model.sinks.live_arm import LiveArm, SinkGroup
from ur_energy_model.sinks.options import check_ports, common_options
from ur_energy_model.sinks.sink import open_sinks
from ur_energy_model.sinks.terminal import (
    LinePrinter,
    Screen,
    json_line,
    last_text_line,
    text_line,
)
from ur_energy_model.telemetry.bag.source import BagSource
from ur_energy_model.telemetry.clock import HOST_CLOCK
from ur_energy_model.telemetry.rtde.source import RtdeSource
from ur_energy_model.telemetry.samples import RecordingInfo
from ur_energy_model.telemetry.source import TelemetrySource

SAVE_PERIOD = 1.0  # time between two savings of the counters [s]
WAITING = 60.0  # time between two lines for people while no samples come [s]
LONGEST_BATCH = 0.05  # longest time span of packets that are decoded together [s]


def run(given: Given) -> None:
    """`ur_energy live`: show the arm until the user quits, the source or the time ends.

    Raises:
        UrEnergyError: the source, the model or a sink cannot be used.
    """
    options = given.of(LiveViewOptions)
    tariff_of(options.tariff)  # refused before anything is counted
    check_ports(given)
    robot = None if options.robot is None else load_robot(options.robot).name
    span = min(LONGEST_BATCH, 1.0 / common_options(given).sink_rate)
    fields = tuple(dict.fromkeys((*LIVE_FIELDS, *ARM_TYPE_FIELDS)))
    host = options.host or ""  # the table needs one of --host and --bag

    def source() -> TelemetrySource:
        """The recording or the controller, not opened yet."""
        if options.bag is not None:
            return BagSource(
                options.bag, fields=fields, real_time=True, batch_seconds=span
            )
        return RtdeSource(host, robot=robot, fields=fields, batch_seconds=span)

    arm = LiveArm(
        str(options.bag or host),
        source,
        _model(options),
        LiveOptions(state_file=options.state_file, same_arm=options.same_arm),
        clock=HOST_CLOCK if options.bag is None else None,
        script=None if options.script is None else read_script(options.script),
    )
    stop = threading.Event()
    opened = open_sinks(given, arm.actions, options.state_file)
    sinks = SinkGroup(opened, common_options(given).sink_rate)
    viewer = _viewer(options, arm, stop)
    with closing(sinks), on_stop_signal(stop.set), closing(arm), viewer:
        arm.start(sinks)
        _watch(viewer, arm, options.duration)
    _end(options, arm)


def _viewer(
    options: LiveViewOptions, arm: LiveArm, stop: threading.Event
) -> Screen | LinePrinter:
    """The view: JSON line by line, the whole terminal, or lines of text elsewhere.

    Args:
        options: options of the command.
        arm: arm that is shown.
        stop: event that signals set, and the view where the terminal is closed.
    """
    from rich.console import Console

    if options.json:
        return LinePrinter(arm.state, stop, json_line, note)
    console = Console(highlight=False)
    if console.is_terminal and not console.is_dumb_terminal:
        return Screen(console, arm.state, stop)
    return LinePrinter(arm.state, stop, text_line, note, patience=WAITING)


def _model(
    options: LiveViewOptions,
) -> Callable[[RecordingInfo], tuple[EnergyModel, str]]:
    """A function that finds the model for the arm that the first samples name.

    Args:
        options: options of the command; a model, a robot or a recording decide at once,
            so that mistakes are errors before anything is counted.

    Returns:
        A function of what the first samples state, which returns the model and the model
        in words. It raises ControllerError where neither the user nor the controller
        names the arm.
    """
    bags = [] if options.bag is None else [options.bag]
    if options.model is not None or options.robot is not None or bags:
        chosen = chosen_model(options.model, options.robot, bags)
        known = chosen.model, chosen.words
        return lambda info: known

    def named_by_controller(info: RecordingInfo) -> tuple[EnergyModel, str]:
        """The generic model of the arm that the controller names."""
        if info.robot is None:
            problem = "its dashboard server does not name the arm"
            remedy = "name the arm: --robot NAME, such as --robot ur5e"
            raise ControllerError(options.host or "", problem, remedy)
        chosen = chosen_model(None, info.robot)
        return chosen.model, chosen.words

    return named_by_controller


def _watch(viewer: Screen | LinePrinter, arm: LiveArm, duration: float | None) -> None:
    """Update the view and save the counters until the user quits or the source ends.

    Args:
        viewer: viewer that shows the arm, and waits for the user.
        arm: arm whose reading has started.
        duration: time after which the view ends [s]; None for no end.
    """
    start = time.monotonic()
    due = start  # time of the next update
    saved = start  # time at which the counters were last saved
    end = float("inf") if duration is None else start + duration
    while not (arm.reader.ended or arm.reader.failure):
        due = max(due + viewer.period, time.monotonic())
        left = min(due, end) - time.monotonic()
        while left > 0.0:
            if viewer.wait(left):
                return
            left = min(due, end) - time.monotonic()
        # Printed once, as the error that ends the command.
        if arm.reader.failure is not None:
            return
        viewer.update()
        now = time.monotonic()
        if now - saved >= SAVE_PERIOD:
            saved = now
            arm.save()
        if now >= end:
            return


def measures_seen(
    arm: LiveArm,
    *,
    model_path: Path | None = None,
    bag: Path | None = None,
    host: str = "",
) -> Advice:
    """What can be done for less energy, by the samples that were read from an arm.

    Before the first sample there is no advice.

    Args:
        arm: arm whose reading has ended.
        model_path: path of the model of the arm, for commands to type; None for a generic
            model.
        bag: recording that was played; None for a controller.
        host: address of the controller.

    Raises:
        UrEnergyError: what was seen cannot be written or read.
        OSError: there is no room for the recording of what was seen.
    """
    from ur_energy_model.identification.payload_check import wrong_payload

    work = arm.finished_work()
    if work is None:
        return adviser().together(())
    model, log = work
    with TemporaryDirectory() as folder:
        seen = Path(folder, "seen")
        if bag is not None and arm.reader.ended:
            seen = bag
        elif not arm.recent.write(seen, model.description().joint_names):
            return adviser().together(())
        return adviser().advise(
            model,
            seen,
            log,
            model_path=model_path,
            wrong_payload=wrong_payload(model, seen),
            named=bag,
            host=host if bag is None else None,
        )


def _measures(options: LiveViewOptions, arm: LiveArm) -> Advice:
    """What can be done for less energy; no advice, with a line, where that fails.

    The user has asked for energies, which are printed already: neither an error in the
    advice nor Ctrl-C during its computation turns the command into a failure.

    Args:
        options: options of the command.
        arm: arm whose reading has ended.
    """
    try:
        return measures_seen(
            arm, model_path=options.model, bag=options.bag, host=options.host or ""
        )
    except (UrEnergyError, OSError) as error:
        note(f"what can be done is not known: {error}")
    except KeyboardInterrupt:
        note("what can be done was not looked for to the end")
    return adviser().together(())


def _end(options: LiveViewOptions, arm: LiveArm) -> None:
    """Report how the reading ended, and what can be done for less energy.

    Args:
        options: options of the command.
        arm: arm whose reading has ended.

    Raises:
        UrEnergyError: the source cannot be used, or sent no samples in time.
    """
    if arm.reader.failure is not None:
        raise arm.reader.failure
    state = arm.state("end")
    tariff = tariff_of(options.tariff)
    if state.reading is None:
        if options.duration is None and not arm.reader.ended:
            return
        if options.bag is not None:
            raise InputError(
                options.bag, "holds no samples that can be used", "record again"
            )
        raise UrEnergyError(f"{options.host}: no samples came: {state.silence}")
    if not options.json:
        print(last_text_line(state), flush=True)
    measures = _measures(options, arm)
    if options.json:
        print(json_line(state, ended=measures.as_json(tariff)))
    else:
        print_measures(measures, tariff)
    if state.disk_problem is not None:
        note(f"the counters are not saved: {state.disk_problem}")
    elif options.state_file is not None:
        note(f"counters saved in {options.state_file}")
