# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""`ur_energy protocol`: the experiments of the papers, from design to verdict."""

from __future__ import annotations

import socket
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

from ur_energy_model.cli.output import (
    ask,
    note,
    print_json,
    print_table,
    progress,
    warn,
)
from ur_energy_model.errors import ControllerError, InputError
from ur_energy_model.experiment.commands import run_recorded
from ur_energy_model.experiment.execution import ExecutionPlan, ExecutionResult
from ur_energy_model.experiment.same_arm import arm_of_plan
from ur_energy_model.model.arm_shape import with_shape
from ur_energy_model.model.robots import available_robots, load_robot
from ur_energy_model.papers.protocol import Mount, Outcome, ProtocolRun
from ur_energy_model.papers.published import cell
from ur_energy_model.papers.room import ProtocolOptions
from ur_energy_model.rooms import Given
from ur_energy_model.telemetry.rtde.source import RtdeSource


def protocol(given: Given) -> None:
    """Run a protocol.

    Raises:
        UrEnergyError: an option, the controller or the folder cannot be used, or a stage
            fails.
    """
    options = given.of(ProtocolOptions)
    if options.simulated == (options.host is not None):
        remedy = "give one of them: --host ADDRESS of a robot, or --simulated"
        raise InputError(
            "--host", "and --simulated exclude each other, and one is needed", remedy
        )
    if options.protocol == "all":
        _run_all(options)
        return
    folder = options.output
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(
            folder, "exists and is not an empty folder", "choose another folder"
        )
    if options.campaign and options.protocol != "s1":
        raise InputError(
            "--campaign", "belongs to s1", "leave it out, or run protocol s1"
        )
    if not options.simulated:
        _report(_run_on_robot(options, str(options.host)), folder, as_json=options.json)
        return
    from ur_energy_model.papers.stages import stage_for

    stage = stage_for(
        options.protocol,
        options.robot,
        campaign=options.campaign,
        paper_settings=options.paper_settings,
        geometry=options.geometry,
    )
    with progress(f"protocol {options.protocol}") as bar:
        outcome = stage.run(folder, seed=options.seed, quick=options.quick, progress=bar)
    _report(outcome, folder, as_json=options.json)


def _run_all(options: ProtocolOptions) -> None:
    """Run every protocol on simulated arms, and write the page that compares them.

    Raises:
        InputError: a robot is named, or a stage failed; the page is written before.
    """
    from ur_energy_model.papers.page import MARKDOWN, run_papers

    if not options.simulated:
        remedy = "add --simulated, without --host"
        raise InputError("protocol all", "moves simulated arms only", remedy)
    with progress("protocol all") as bar:
        results = run_papers(
            options.output, seed=options.seed, quick=options.quick, progress=bar
        )
    failed = [error for result in results for error in result.errors]
    if options.json:
        print_json({result.paper.key: result.as_dict() for result in results})
    else:
        print_table(
            "The papers, side by side",
            ["paper", "rows", "verdicts", "nothing obtained for"],
            [result.summary() for result in results],
        )
        note(f"page: {options.output / MARKDOWN}")
    if failed:
        problem = f"failed: {'; '.join(failed)}"
        raise InputError(options.output, problem, "run it again to repeat these")


def _run_on_robot(options: ProtocolOptions, host: str) -> Outcome:
    """Run one protocol on a robot, or on a simulated controller.

    Payloads are mounted between recordings: on a simulated arm by a command, on a robot by
    the user, who is asked. Without a terminal or with --yes nobody can mount them.

    Args:
        options: options of the command.
        host: address of the controller.

    Raises:
        UrEnergyError: the controller does not name its arm, or a stage fails.
    """
    from ur_energy_model.papers.stages import run_protocol

    with RtdeSource(host, fields=("timestamp",)) as source:
        info = source.info
    if options.robot is None and info.robot not in available_robots():
        remedy = "name the robot with --robot, such as ur5e"
        raise InputError(host, "does not report its robot", remedy)
    robot = load_robot(options.robot or str(info.robot))
    if options.geometry is not None:
        robot = with_shape(robot, options.geometry)
    options.output.mkdir(parents=True, exist_ok=True)

    def execute(plan: ExecutionPlan, bag: Path) -> ExecutionResult:
        note(f"recording {bag}")
        limits = plan.limits.dynamics
        arm = arm_of_plan("the protocol", limits.setup, limits.robot.name, info.serial)
        plan = replace(plan, arm=arm, another_arm=options.another_arm)
        return run_recorded(plan, host, bag, assume_yes=options.yes)

    mount: Mount | None = None
    if info.simulated:
        mount = partial(_carry, host)
    elif not options.yes and sys.stdin.isatty():

        def mount(mass: float) -> None:
            what = f"Mount {mass:g} kg on the flange" if mass else "Take the payload off"
            ask(f"{what}, do not change the payload setting, then press Enter: ")

    with progress(f"protocol {options.protocol}") as bar:
        session = ProtocolRun(
            robot=robot,
            folder=options.output,
            run=execute,
            mount=mount,
            progress=bar,
            simulated=info.simulated,
            seed=options.seed,
            design_seconds=options.design_time,
            paper_settings=options.paper_settings,
            quick=options.quick,
            campaign=options.campaign,
        )
        return run_protocol(options.protocol, session)


def _report(outcome: Outcome, folder: Path, *, as_json: bool) -> None:
    """Print the published figures beside the obtained figures.

    Args:
        outcome: outcome of a protocol.
        folder: folder with its results.
        as_json: whether to print JSON.
    """
    if as_json:
        print_json(outcome.as_dict())
        return
    print_table(
        f"Protocol {outcome.protocol} on {outcome.robot}",
        ["in the paper", "figure", "published", "here", "verdict"],
        [
            [row.place, row.figure, cell(row.published), cell(row.here), row.verdict]
            for row in outcome.rows
        ],
    )
    note(f"published: {outcome.source}")
    warn(outcome.warnings)
    note(f"results are in {folder}; the table is in {folder / 'verdict.md'}")


def _carry(host: str, mass: float) -> None:
    """Mount a payload on a simulated arm.

    Args:
        host: address of the simulated controller.
        mass: mass of the payload [kg].

    Raises:
        ControllerError: the controller refuses, or does not answer.
    """
    from ur_energy_model.simulation.simulated_controller import CONTROL_PORT

    try:
        with (
            socket.create_connection((host, CONTROL_PORT), timeout=5.0) as connection,
            connection.makefile("rw", newline="\n") as lines,
        ):
            lines.readline()
            lines.write(f"carry {mass:g}\n")
            lines.flush()
            answer = lines.readline().strip()
    except OSError as error:
        answer = str(error)
    if not answer.startswith("ok"):
        problem = f"does not mount the payload ({answer})"
        raise ControllerError(host, problem, "use 'ur_energy simulate'")
