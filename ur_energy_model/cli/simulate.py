"""`ur_energy simulate`: an arm on the desk, behind the ports of a UR controller."""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from typing_extensions import Self

from ur_energy_model.cli.output import note
from ur_energy_model.simulation.ports.faults import FAULTS

if TYPE_CHECKING:
    from ur_energy_model.simulation.ports.simulated_controller import SimulatedController

EXAMPLE = """\
example:
  ur_energy simulate --robot ur5e --host 127.0.0.2 --motion trajectory_a --truth truth.json
  ur_energy simulate --robot ur10 --host 127.0.0.3 --motion hold --fault voltage_dip@10:30

It is ready when it prints `ready ADDRESS:30004`; Ctrl-C ends it. Clients find RTDE on port 30004,
the dashboard on 29999, scripts and state on 30001 to 30003, and faults at run time on 29998 (one
a line, such as `fault stalled_stream@0+2`).

faults, NAME[@T[+D]][:ARGUMENT], T seconds after the start for D seconds:
"""


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "simulate",
        help="run a simulated arm that RTDE clients connect to",
        description="Run a simulated UR controller with a moving arm, in real time.",
        epilog=EXAMPLE + _fault_table(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--robot", required=True, metavar="NAME", help="such as ur5e")
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="loopback address to listen on (default %(default)s)",
    )
    parser.add_argument(
        "--allow-network", action="store_true", help="accept a --host that other machines can reach"
    )
    parser.add_argument(
        "--controller-version",
        type=_version,
        metavar="X.Y.Z",
        help="software version to claim; RTDE fields follow it",
    )
    parser.add_argument(
        "--motion",
        default="trajectory_a",
        metavar="NAME|FILE",
        help="trajectory_a, trajectory_b, hold, sinusoids, pick_and_place, warm_up "
        "or a trajectory file (default %(default)s)",
    )
    parser.add_argument("--duration", type=float, metavar="S", help="end after this time")
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        metavar="N",
        help="which arm of its type, and its noise (default %(default)s)",
    )
    parser.add_argument(
        "--session",
        type=int,
        default=0,
        metavar="N",
        help="which day of that arm: standby power, friction and temperatures differ from session "
        "to session; 0 for the arm as drawn (default %(default)s)",
    )
    parser.add_argument(
        "--ambient",
        type=float,
        default=25.0,
        metavar="C",
        help="temperature around the arm (default %(default)s)",
    )
    parser.add_argument(
        "--speed",
        type=float,
        default=1.0,
        metavar="X",
        help="factor on real time (default %(default)s)",
    )
    parser.add_argument(
        "--payload",
        type=_payload,
        metavar="KG[,X,Y,Z]",
        help="payload that the controller was told of, centre of mass in m",
    )
    parser.add_argument(
        "--carried",
        type=_payload,
        metavar="KG[,X,Y,Z]",
        help="payload that the arm really carries, where it is another",
    )
    parser.add_argument(
        "--mounting",
        type=_mounting,
        metavar="TILT[,ROTATION]",
        help="of the base, degrees; 90 is a wall",
    )
    parser.add_argument(
        "--controller",
        choices=("feedforward", "pd"),
        default="feedforward",
        help="kind of joint controller (default %(default)s)",
    )
    parser.add_argument(
        "--fault",
        action="append",
        default=[],
        metavar="SPEC",
        help="a fault on request, see below; may be repeated",
    )
    parser.add_argument(
        "--truth", type=Path, metavar="FILE", help="write the ground truth here at the end (JSON)"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Simulate until Ctrl-C, SIGTERM or the end of the duration."""
    with _End() as end:
        return _simulate(options, end)


def _simulate(options: argparse.Namespace, end: _End) -> int:
    from ur_energy_model.model.setup import Payload, Setup, gravity_of_mounting
    from ur_energy_model.simulation.ports.simulated_controller import RTDE_PORT
    from ur_energy_model.simulation.simulation import Simulation

    def payload(numbers: tuple[float, ...] | None) -> Payload | None:
        return None if numbers is None else Payload(numbers[0], np.array(numbers[1:]))

    setup = Setup(payload=payload(options.payload) or Payload())
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
        carried=payload(options.carried),
        controller=options.controller,
        allow_network=options.allow_network,
        session=options.session,
    ).build(report=note)
    end.of(server)
    with contextlib.suppress(OSError):  # a controller comes before other work, where it may
        os.nice(-10)
    server.run(options.duration, lambda: print(f"ready {options.host}:{RTDE_PORT}", flush=True))
    arm.close()
    note(f"simulated {options.robot}: {server.punctuality}")
    return 0


class _End:
    """Within its block SIGINT and SIGTERM end the simulation, also while it is being set up."""

    def __init__(self) -> None:
        self._server: SimulatedController | None = None
        self._before: dict[int, Any] = {}

    def of(self, server: SimulatedController) -> None:
        """From now on let this server come to its end and the truth be written."""
        self._server = server

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._asked)
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _asked(self, number: int, frame: object) -> None:
        if self._server is None:
            raise SystemExit(0)
        self._server.stop()


def _fault_table() -> str:
    lines = []
    for kind in FAULTS.values():
        argument = f" (:{kind.argument}, {kind.default} unless said)" if kind.argument else ""
        lines.append(f"  {kind.name:18s} {kind.effect}{argument}")
    return "\n".join(lines)


def _version(text: str) -> tuple[int, ...]:
    parts = text.split(".")
    if not 2 <= len(parts) <= 4 or not all(part.isdecimal() for part in parts):
        raise argparse.ArgumentTypeError(f"{text!r} is not a version such as 5.11.1")
    return tuple(map(int, parts))


def _numbers(text: str, names: str, counts: tuple[int, int]) -> tuple[float, ...]:
    """Between counts[0] and counts[1] numbers; those left out are 0."""
    try:
        numbers = tuple(float(part) for part in text.split(","))
    except ValueError:
        numbers = ()
    if not counts[0] <= len(numbers) <= counts[1] or not all(map(math.isfinite, numbers)):
        raise argparse.ArgumentTypeError(f"{text!r} is not {names}")
    return numbers + (0.0,) * (counts[1] - len(numbers))


def _payload(text: str) -> tuple[float, ...]:
    numbers = _numbers(text, "KG or KG,X,Y,Z", (1, 4))
    if numbers[0] < 0:
        raise argparse.ArgumentTypeError("a payload is not lighter than nothing")
    return numbers


def _mounting(text: str) -> tuple[float, ...]:
    return _numbers(text, "TILT or TILT,ROTATION in degrees", (1, 2))
