"""`ur_energy protocol`: the experiments of the papers, from design to verdict."""

from __future__ import annotations

import argparse
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ur_energy_model.cli import arguments
from ur_energy_model.cli.output import ask, note, print_json, print_table, progress

if TYPE_CHECKING:
    from ur_energy_model.experiment.execution.execution_plan import ExecutionPlan, ExecutionResult
    from ur_energy_model.experiment.protocols.protocol_run import Mount
    from ur_energy_model.telemetry.samples import RecordingInfo

_EXAMPLES = """\
ur_energy protocol s1 --host 192.168.56.101 -o cell_3_s1
ur_energy protocol s0 --host 127.0.0.2 -o try_s0 --yes      (a simulated arm)
"""
_PROTOCOLS = {
    "s0": "test motions A and B through random points: torque, current, energy (Robotica 2024)",
    "s1": "exciting trajectory, base parameters, validation (RAAD 2021)",
    "s2": "sinusoids, power model with all terms free (EcBot)",
    "s4": "self and general verification, known payload (Machines 2024)",
}


def register(subparsers: arguments.Subparsers) -> None:
    """Add the subcommand."""
    parser = arguments.add_command(
        subparsers,
        "protocol",
        run,
        summary="repeat the experiment of a paper and compare the results",
        description="Design, run, record, identify and evaluate as in a paper, and compare the "
        "results with the published ones. This moves the robot.",
        examples=_EXAMPLES,
        notes=arguments.definition_list("experiments", _PROTOCOLS),
    )
    parser.add_argument("protocol", choices=tuple(_PROTOCOLS), help="experiment (listed below)")
    arguments.add_controller(parser)
    arguments.add_output(parser, "DIR", "new folder for all results")
    arguments.add_robot(parser, "the one that the controller reports")
    arguments.add_yes(parser)
    arguments.add_number(parser, "--seed", 0, "N", "seed of the random choices", arguments.SEEDS)
    arguments.add_number(
        parser, "--design-time", 25.0, "S", "time to design each trajectory [s]", (0, 1e5)
    )
    arguments.add_json(parser)


def run(options: argparse.Namespace) -> None:
    """Run a protocol."""
    from ur_energy_model.cli.run_trajectory import run_recorded
    from ur_energy_model.errors import InputError
    from ur_energy_model.experiment.protocols.catalogue import run_protocol
    from ur_energy_model.experiment.protocols.outcome import cell
    from ur_energy_model.experiment.protocols.protocol_run import ProtocolRun
    from ur_energy_model.model.robots import load_robot
    from ur_energy_model.telemetry.rtde.source import RtdeSource

    folder: Path = options.output
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(folder, "exists and is not an empty folder", "choose another folder")
    with RtdeSource(options.host, fields=("timestamp",)) as source:
        info = source.info
    name = options.robot or _robot_at(options.host, info)
    folder.mkdir(parents=True, exist_ok=True)

    def execute(plan: ExecutionPlan, bag: Path) -> ExecutionResult:
        note(f"recording {bag}")
        return run_recorded(plan, options.host, bag, assume_yes=options.yes)

    with progress(f"protocol {options.protocol}") as bar:
        session = ProtocolRun(
            robot=load_robot(name),
            folder=folder,
            run=execute,
            mount=_mount(options.host, simulated=info.simulated, assume_yes=options.yes),
            progress=bar,
            seed=options.seed,
            design_seconds=options.design_time,
            simulated=info.simulated,
        )
        outcome = run_protocol(options.protocol, session)
    if options.json:
        print_json(outcome.as_dict())
        return
    rows = [[row.figure, cell(row.published), cell(row.here)] for row in outcome.rows]
    print_table(
        f"Protocol {outcome.protocol} on {outcome.robot}", ["figure", "published", "here"], rows
    )
    note(f"published: {outcome.source}")
    for warning in outcome.warnings:
        note(f"warning: {warning}")
    note(f"results are in {folder}; the table is in {folder / 'verdict.md'}")


def _robot_at(host: str, info: RecordingInfo) -> str:
    """Name of the robot description for a controller.

    Raises:
        InputError: the controller does not report a known robot.
    """
    from ur_energy_model.errors import InputError
    from ur_energy_model.model.robots import available_robots

    if info.robot in available_robots():
        return str(info.robot)
    raise InputError(host, "does not report its robot", "name the robot with --robot, such as ur5e")


def _mount(host: str, *, simulated: bool, assume_yes: bool) -> Mount | None:
    """How to mount a payload: by a command to a simulated arm, or by asking the user.

    None without a user to ask.
    """
    if simulated:
        return lambda mass: _carry(host, mass)
    if assume_yes or not sys.stdin.isatty():
        return None

    def mount(mass: float) -> None:
        what = f"Mount {mass:g} kg on the flange" if mass else "Take the payload off"
        ask(f"{what}, do not change the payload setting, then press Enter: ")

    return mount


def _carry(host: str, mass: float) -> None:
    """Mount a payload on a simulated arm.

    Raises:
        ControllerError: the simulation refuses or does not answer.
    """
    from ur_energy_model.errors import ControllerError
    from ur_energy_model.simulation.ports.simulated_controller import CONTROL_PORT

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
        raise ControllerError(
            host, f"does not mount the payload ({answer})", "use 'ur_energy simulate'"
        )
