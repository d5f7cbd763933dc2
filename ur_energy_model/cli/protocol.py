"""`ur_energy protocol`: the experiments of the papers, from design to verdict."""

from __future__ import annotations

import argparse
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ur_energy_model.cli.output import add_json_option, note, print_json, print_table, progress

if TYPE_CHECKING:
    from ur_energy_model.experiment.execution.execution_plan import ExecutionPlan, ExecutionResult
    from ur_energy_model.experiment.protocols.protocol_run import Mount
    from ur_energy_model.telemetry.samples import RecordingInfo

EXAMPLE = """\
examples:
  ur_energy protocol s1 --host 192.168.56.101 -o cell_3_s1
  ur_energy protocol s0 --host 127.0.0.2 -o try_s0 --yes      (a simulated arm)

s0  test motions A and B through random points: torque, current, energy (Robotica 2024)
s1  exciting trajectory, base parameters, validation (RAAD 2021)
s2  sinusoids, power model with all terms free (EcBot)
s4  self and general verification, known payload (Machines 2024)
"""
_CONTROL_PORT = 29998


def register(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "protocol",
        help="run the experiment of a paper and compare with its figures",
        description="Design, run, record, identify and judge as a paper did, and write the figures "
        "beside those it reports. This moves the robot.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("protocol", choices=("s0", "s1", "s2", "s4"), help="see below")
    parser.add_argument("--host", required=True, metavar="ADDRESS", help="controller of the arm")
    parser.add_argument(
        "-o", "--output", required=True, type=Path, metavar="DIR", help="new folder for everything"
    )
    parser.add_argument(
        "--robot", metavar="NAME", help="such as ur5e; the controller is asked by default"
    )
    parser.add_argument("--yes", action="store_true", help="move without asking")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="default %(default)s")
    parser.add_argument(
        "--design-time",
        type=float,
        default=25.0,
        metavar="S",
        help="time for the design of each trajectory, default %(default)s s",
    )
    add_json_option(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run a protocol."""
    from ur_energy_model.cli.motion import run_recorded
    from ur_energy_model.errors import InputError
    from ur_energy_model.experiment.protocols.catalogue import run_protocol
    from ur_energy_model.experiment.protocols.outcome import cell
    from ur_energy_model.experiment.protocols.protocol_run import ProtocolRun
    from ur_energy_model.model.robots import load_robot
    from ur_energy_model.telemetry.rtde.source import RtdeSource

    folder: Path = options.output
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(folder, "exists and is not an empty folder", "name another output")
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
        return 0
    rows = [[row.figure, cell(row.published), cell(row.here)] for row in outcome.rows]
    print_table(
        f"Protocol {outcome.protocol} on {outcome.robot}", ["figure", "published", "here"], rows
    )
    note(f"published: {outcome.source}")
    for warning in outcome.warnings:
        note(f"warning: {warning}")
    note(f"everything is in {folder}; the table is {folder / 'verdict.md'}")
    return 0


def _robot_at(host: str, info: RecordingInfo) -> str:
    """Name of the robot description for a controller.

    Raises:
        InputError: it does not say what it is.
    """
    from ur_energy_model.errors import InputError
    from ur_energy_model.model.robots import available_robots
    from ur_energy_model.telemetry.rtde.controller_identity import identify_controller

    model = identify_controller(host).model
    major = int((info.controller_version or "0").split(".")[0])
    if model is not None:
        name = model.lower()
        candidates = (name + "e", name) if major >= 5 else (name,)
        for candidate in candidates:
            if candidate in available_robots():
                return candidate
    raise InputError(host, "does not say which robot it has", "name it with --robot, such as ur5e")


def _mount(host: str, *, simulated: bool, assume_yes: bool) -> Mount | None:
    """How a payload gets onto the flange: a simulated arm is told, a person is asked."""
    if simulated:
        return lambda mass: _carry(host, mass)
    if assume_yes or not sys.stdin.isatty():
        return None

    def ask(mass: float) -> None:
        what = f"Mount {mass:g} kg on the flange" if mass else "Take the payload off"
        print(f"{what}, leave the payload setting as it is, press Enter: ", end="", file=sys.stderr)
        sys.stderr.flush()
        sys.stdin.readline()

    return ask


def _carry(host: str, mass: float) -> None:
    """Mount a payload on a simulated arm.

    Raises:
        ControllerError: the simulation refuses.
    """
    from ur_energy_model.errors import ControllerError

    try:
        with (
            socket.create_connection((host, _CONTROL_PORT), timeout=5.0) as connection,
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
