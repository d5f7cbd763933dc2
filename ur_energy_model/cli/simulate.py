"""`ur_energy simulate`: a simulated arm behind the ports of a UR controller."""

from __future__ import annotations

import argparse
import contextlib
import math
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ur_energy_model.cli import arguments
from ur_energy_model.cli.output import note, on_stop_signal
from ur_energy_model.simulation.faults import FAULTS

if TYPE_CHECKING:
    from ur_energy_model.model.setup import Payload
    from ur_energy_model.simulation.simulated_controller import SimulatedController

_EXAMPLES = """\
ur_energy simulate --robot ur5e --host 127.0.0.2 --truth truth.json
ur_energy simulate --robot ur10 --host 127.0.0.3 --motion hold \\
    --fault voltage_dip@10:30
"""
_NOTES = """\
The simulation is ready when it prints `ready ADDRESS:30004`; Ctrl-C ends it.
RTDE is on port 30004, the dashboard on 29999, scripts and state on 30001 to
30003. Port 29998 takes faults at run time, one per line, such as
`fault stalled_stream@0+2`.

Faults are written NAME[@T[+D]][:ARGUMENT], T seconds after the start for D
seconds.

"""


def register(subparsers: arguments.Subparsers) -> None:
    """Add the subcommand."""
    parser = arguments.add_command(
        subparsers,
        "simulate",
        run,
        summary="run a simulated arm for RTDE clients",
        description="Run a simulated UR controller with a moving arm in real time.",
        examples=_EXAMPLES,
        notes=_NOTES + arguments.definition_list("faults", _faults()),
    )
    arguments.add_robot(parser)
    parser.add_argument(
        "--host",
        type=arguments.host_address,
        default="127.0.0.1",
        metavar="ADDRESS",
        help="loopback address to listen on (default: %(default)s)",
    )
    parser.add_argument(
        "--allow-network",
        action="store_true",
        help="allow a --host that other machines can reach",
    )
    parser.add_argument(
        "--controller-version",
        type=_version,
        metavar="X.Y.Z",
        help="software version to report, which also determines the RTDE fields (default: a recent "
        "one of the robot's generation)",
    )
    parser.add_argument(
        "--motion",
        default="trajectory_a",
        metavar="NAME|FILE",
        help="trajectory_a, trajectory_b, hold, sinusoids, pick_and_place, warm_up "
        "or a trajectory file (default: %(default)s)",
    )
    parser.add_argument(
        "--duration",
        type=arguments.number(float, 0, 1e9),
        metavar="S",
        help="end after S seconds (default: on Ctrl-C)",
    )
    arguments.add_number(
        parser,
        "--seed",
        0,
        "N",
        "number of the arm of its type, and seed of its noise",
        arguments.SEEDS,
    )
    arguments.add_number(
        parser,
        "--session",
        0,
        "N",
        "number of the arm's session: standby power, friction and temperatures differ between "
        "sessions; 0 is the arm without these differences",
        (-1_000_000, 1_000_000),
    )
    arguments.add_number(parser, "--ambient", 25.0, "C", "ambient temperature [degC]", (-40, 80))
    arguments.add_number(parser, "--speed", 1.0, "X", "speed relative to real time", (0, 1e3))
    parser.add_argument(
        "--payload",
        type=_payload,
        metavar="KG[,X,Y,Z]",
        help="payload set in the controller, with its centre of mass [m] (default: none)",
    )
    parser.add_argument(
        "--carried",
        type=_payload,
        metavar="KG[,X,Y,Z]",
        help="payload that the arm actually carries (default: as set in the controller)",
    )
    parser.add_argument(
        "--mounting",
        type=_mounting,
        metavar="TILT[,ROTATION]",
        help="orientation of the base in degrees; 90 is a wall (default: upright)",
    )
    arguments.add_choice(
        parser, "--controller", ("feedforward", "pd"), "type of the joint controller"
    )
    arguments.add_choice(
        parser,
        "--drive-set",
        ("typical", "s3"),
        "gears: typical of the arm's type, or those of the UR5 model of Battistini et al.",
    )
    parser.add_argument(
        "--fault",
        action="append",
        default=[],
        metavar="SPEC",
        help="fault to simulate (listed below; may be repeated)",
    )
    parser.add_argument(
        "--truth", type=Path, metavar="FILE", help="write the ground truth (JSON) here at the end"
    )


def run(options: argparse.Namespace) -> None:
    """Simulate until Ctrl-C, SIGTERM or the end of the duration."""
    server: SimulatedController | None = None

    def stop() -> None:
        if server is None:  # still being set up
            raise SystemExit(0)
        server.stop()

    with on_stop_signal(stop):  # the imports take seconds
        from ur_energy_model.model.setup import Payload, Setup, gravity_of_mounting
        from ur_energy_model.simulation.simulation import Simulation
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


def _faults() -> dict[str, str]:
    """Faults and their effects."""
    return {
        kind.name: f"{kind.effect} (:{kind.argument}, {kind.default} by default)"
        if kind.argument
        else kind.effect
        for kind in FAULTS.values()
    }


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
    from ur_energy_model.model.setup import Payload

    mass, *center = _numbers(text, "KG or KG,X,Y,Z", (1, 4))
    if not 0 <= mass <= 1000 or max(map(abs, center)) > 10:
        raise argparse.ArgumentTypeError("the mass must be 0 to 1000 kg, its centre within 10 m")
    return Payload(mass, np.array(center))


def _mounting(text: str) -> tuple[float, ...]:
    return _numbers(text, "TILT or TILT,ROTATION in degrees", (1, 2))
