"""What is around the arms: `ur_energy demo`, `simulate`, `layouts` and `completion`."""

from __future__ import annotations

import argparse
import contextlib
import math
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ur_energy_model.cli import arguments
from ur_energy_model.cli.arguments import command, option
from ur_energy_model.cli.output import note, on_stop_signal, print_json, print_table
from ur_energy_model.errors import InputError, optional_import
from ur_energy_model.options import host_address, number

if TYPE_CHECKING:
    from ur_energy_model.model.setup import Payload
    from ur_energy_model.simulation.simulated_controller import SimulatedController

# Values of options.


def _add_loopback(parser: argparse.ArgumentParser, default: str, description: str) -> None:
    parser.add_argument(
        "--host",
        type=host_address,
        default=default,
        metavar="ADDRESS",
        help=f"{description} (default: %(default)s)",
    )


def _version(text: str) -> tuple[int, ...]:
    parts = text.split(".")
    if not 2 <= len(parts) <= 4 or not all(part.isdecimal() for part in parts):
        raise argparse.ArgumentTypeError(f"{text!r} is not a version such as 5.11.1")
    return tuple(map(int, parts))


def _numbers(text: str, names: str, counts: tuple[int, int]) -> tuple[float, ...]:
    """Between counts[0] and counts[1] numbers, padded with zeros to counts[1]."""
    try:
        numbers = tuple(float(part) for part in text.split(","))
    except ValueError:
        numbers = ()
    if not counts[0] <= len(numbers) <= counts[1] or not all(map(math.isfinite, numbers)):
        raise argparse.ArgumentTypeError(f"{text!r} is not {names}")
    return numbers + (0.0,) * (counts[1] - len(numbers))


def _payload(text: str) -> Payload:
    import numpy as np

    from ur_energy_model.model.setup import Payload

    mass, *center = _numbers(text, "KG or KG,X,Y,Z", (1, 4))
    if not 0 <= mass <= 1000 or max(map(abs, center)) > 10:
        raise argparse.ArgumentTypeError("the mass must be 0 to 1000 kg, its centre within 10 m")
    return Payload(mass, np.array(center))


def _mounting(text: str) -> tuple[float, ...]:
    return _numbers(text, "TILT or TILT,ROTATION in degrees", (1, 2))


# `ur_energy demo`: the complete workflow with the simulated controller and the ROS nodes.


@command(
    "demo",
    "run the complete workflow with a simulated arm",
    "Record a simulated arm on trajectory A, identify its model, run trajectory B with logger and "
    "live estimator, and print the tables of the paper beside the simulated truth.",
    "ur_energy demo -o demo_output",
    option(
        "-o",
        "--output",
        type=Path,
        default=Path("demo_output"),
        metavar="FOLDER",
        help="folder for all results (default: %(default)s)",
    ),
    (arguments.add_text, "--robot", "NAME", "robot to simulate (default: %(default)s)", "ur5e"),
    (_add_loopback, "127.0.0.2", "loopback address of the simulated arm"),
    (arguments.add_number, "--seconds", 40.0, "S", "length of each trajectory"),
    option(
        "--seed",
        type=number(int, *arguments.SEEDS),
        metavar="N",
        help="number of the simulated arm (default: another one each time)",
    ),
)
def demo(options: argparse.Namespace) -> None:
    """Run the demo."""
    from ur_energy_model.demo.run import run_demo

    run_demo(options.output, options.robot, options.host, options.seconds, options.seed)


# `ur_energy simulate`: a simulated arm behind the ports of a UR controller.

_NOTES = """\
The simulation is ready when it prints `ready ADDRESS:30004`; Ctrl-C ends it.
RTDE is on port 30004, the dashboard on 29999, scripts and state on 30001 to
30003. Port 29998 takes faults at run time, one per line, such as
`fault stalled_stream@0+2`.

Faults are written NAME[@T[+D]][:ARGUMENT], T seconds after the start for D
seconds.

"""


@command(
    "simulate",
    "run a simulated arm for RTDE clients",
    "Run a simulated UR controller with a moving arm in real time.",
    "ur_energy simulate --robot ur5e --host 127.0.0.2 --truth truth.json\n"
    "ur_energy simulate --robot ur10 --host 127.0.0.3 --motion hold \\\n"
    "    --fault voltage_dip@10:30",
    arguments.add_robot,
    (_add_loopback, "127.0.0.1", "loopback address to listen on"),
    (arguments.add_flag, "--allow-network", "allow a --host that other machines can reach"),
    (
        arguments.add_text,
        "--motion",
        "NAME|FILE",
        "trajectory_a, trajectory_b, hold, sinusoids, pick_and_place, warm_up or a trajectory file "
        "(default: %(default)s)",
        "trajectory_a",
    ),
    *(
        (arguments.add_number, *each)
        for each in (
            ("--duration", None, "S", "end after S seconds (default: on Ctrl-C)", (0, 1e9)),
            (
                "--seed",
                0,
                "N",
                "number of the arm of its type, and seed of its noise",
                arguments.SEEDS,
            ),
            (
                "--session",
                0,
                "N",
                "number of the arm's session: standby power, friction and temperatures differ "
                "between sessions; 0 is the arm without these differences",
                (-1_000_000, 1_000_000),
            ),
            ("--ambient", 25.0, "C", "ambient temperature [degC]", (-40, 80)),
            ("--speed", 1.0, "X", "speed relative to real time", (0, 1e3)),
        )
    ),
    option(
        "--controller-version",
        type=_version,
        metavar="X.Y.Z",
        help="software version to report, which also determines the RTDE fields (default: a recent "
        "one of the robot's generation)",
    ),
    option(
        "--payload",
        type=_payload,
        metavar="KG[,X,Y,Z]",
        help="payload set in the controller, with its centre of mass [m] (default: none)",
    ),
    option(
        "--carried",
        type=_payload,
        metavar="KG[,X,Y,Z]",
        help="payload that the arm actually carries (default: as set in the controller)",
    ),
    option(
        "--mounting",
        type=_mounting,
        metavar="TILT[,ROTATION]",
        help="orientation of the base in degrees; 90 is a wall (default: upright)",
    ),
    (arguments.add_choice, "--controller", ("feedforward", "pd"), "type of the joint controller"),
    (
        arguments.add_choice,
        "--drive-set",
        ("typical", "s3"),
        "gears: typical of the arm's type, or those of the UR5 model of Battistini et al.",
    ),
    option(
        "--fault",
        action="append",
        default=[],
        metavar="SPEC",
        help="fault to simulate (listed below; may be repeated)",
    ),
    (arguments.add_path, "--truth", "FILE", "write the ground truth (JSON) here at the end"),
    notes=lambda: _faults(),
)
def simulate(options: argparse.Namespace) -> None:
    """Simulate until Ctrl-C, SIGTERM or the end of the duration."""
    server: SimulatedController | None = None

    def stop() -> None:
        if server is None:  # still being set up
            raise SystemExit(0)
        server.stop()

    with on_stop_signal(stop):  # the imports take seconds
        import numpy as np

        from ur_energy_model.model.setup import Payload, Setup, gravity_of_mounting
        from ur_energy_model.simulation.simulated_controller import Simulation
        from ur_energy_model.telemetry.rtde.connection import PORT as RTDE_PORT

        setup = Setup(payload=options.payload or Payload())
        if options.mounting is not None:
            setup = replace(setup, gravity=gravity_of_mounting(*np.radians(options.mounting)))
        arm, server = Simulation(
            robot=options.robot,
            host=options.host,
            motion=options.motion,
            version=options.controller_version,
            seed=options.seed,
            ambient=options.ambient,
            speed=options.speed,
            faults=options.fault,
            truth=options.truth,
            setup=setup,
            carried=options.carried,
            controller=options.controller,
            allow_network=options.allow_network,
            session=options.session,
            drive_set=options.drive_set,
        ).build(report=note)
        with contextlib.suppress(OSError):  # a higher priority, if permitted
            os.nice(-10)
        server.run(options.duration, lambda: print(f"ready {options.host}:{RTDE_PORT}", flush=True))
        arm.close()
        note(f"simulated {options.robot}: {server.ticker}")


def _faults() -> str:
    from ur_energy_model.simulation.faults import FAULTS

    effects = {
        kind.name: f"{kind.effect} (:{kind.argument}, {kind.default} by default)"
        if kind.argument
        else kind.effect
        for kind in FAULTS.values()
    }
    return _NOTES + arguments.definition_list("faults", effects)


# `ur_energy layouts`: layouts of PlotJuggler, Foxglove, rviz and Grafana for one arm.

_ANY_ROBOT = "ur5e"
"""Every UR arm has its joint names."""


@command(
    "layouts",
    "write layouts of PlotJuggler, Foxglove, rviz and Grafana for an arm",
    "Write layouts of PlotJuggler (live topics and bags), Foxglove and rviz for the energy topics "
    "of an arm, with the namespace and the tf_prefix of its nodes, and a dashboard of Grafana with "
    "a configuration of Prometheus. Those without namespace and prefix are in the package's config "
    "folder.",
    "ur_energy layouts --namespace cell1 --tf-prefix left_ -o layouts",
    (arguments.add_text, "--namespace", "NAME", "namespace of the nodes (default: none)", ""),
    (
        arguments.add_text,
        "--tf-prefix",
        "PREFIX",
        "parameter tf_prefix of the nodes (default: none)",
        "",
    ),
    (arguments.add_robot, _ANY_ROBOT),
    (arguments.add_output, "DIR", "folder for the files"),
    (arguments.add_flag, "--overwrite", "replace existing files"),
    arguments.add_json,
)
def layouts(options: argparse.Namespace) -> None:
    """Write the files."""
    from ur_energy_model.files import check_target, write_text
    from ur_energy_model.layouts.files import PURPOSES, ArmTopics, layout_files
    from ur_energy_model.model.robots import load_robot

    robot = load_robot(options.robot or _ANY_ROBOT)
    arm = ArmTopics(tuple(robot.joint_names), options.namespace, options.tf_prefix)
    files = {options.output / name: text for name, text in layout_files(arm).items()}
    for path in files:
        check_target(path)
    taken = [path for path in files if path.exists()]
    if taken and not options.overwrite:
        raise InputError(taken[0], "exists already", "name another folder, or add --overwrite")
    for path, text in files.items():
        write_text(path, text)
    if options.json:
        print_json({"files": list(files), "topic": arm.energies})
    else:
        rows = list(zip(files, PURPOSES.values(), strict=True))
        print_table("Layouts", ("file", "for"), rows)
        note(f"all curves are in {arm.energies}")


# `ur_energy completion`: shell completion, generated from the command line's own grammar.


@command(
    "completion",
    "print a completion script for bash, zsh or fish",
    "Print a script that completes subcommands, options, their values and file names in a shell. "
    "Needs the Python package shtab.",
    "ur_energy completion bash > ~/.local/share/bash-completion/completions/ur_energy\n"
    "ur_energy completion zsh > ~/.zfunc/_ur_energy       # a folder of your $fpath\n"
    "ur_energy completion fish > ~/.config/fish/completions/ur_energy.fish",
    option("shell", choices=("bash", "zsh", "fish"), help="shell to complete in"),
)
def completion(options: argparse.Namespace) -> None:
    """Print the script.

    Raises:
        MissingPackageError: shtab is not installed.
        InputError: it is too old for this shell.
    """
    from ur_energy_model.cli.main import build_parser
    from ur_energy_model.model.friction import LAWS
    from ur_energy_model.model.robots import available_robots
    from ur_energy_model.telemetry.csv.columns import LAYOUTS

    with optional_import():
        import shtab
    if options.shell not in shtab.SUPPORTED_SHELLS:
        problem = f"shtab {shtab.__version__} does not support this shell"
        raise InputError(options.shell, problem, "pip install --upgrade shtab")
    words = {"robot": available_robots(), "friction": ("auto", *LAWS), "layout": tuple(LAYOUTS)}
    parser = build_parser()
    (subcommands,) = (
        action for action in parser._actions if isinstance(action, argparse._SubParsersAction)
    )
    for choice in subcommands._choices_actions:
        subparser = subcommands.choices[choice.dest]
        subparser.description = choice.help  # one line, for the menus of zsh and fish
        for action in subparser._actions:
            action.choices = action.choices or words.get(action.dest)
            if action.choices is None and action.nargs != 0 and action.type in (None, Path):
                action.complete = shtab.FILE
    print(shtab.complete(parser, options.shell))
