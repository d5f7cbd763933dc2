"""Options of `ur_energy excite`: the trajectory, the arm's surroundings and the run."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ur_energy_model.experiment.design.problem import DesignRequest


def add_design_options(group: argparse._ArgumentGroup) -> None:
    """What the trajectory shall be, and how it is searched for."""
    group.add_argument("--harmonics", type=int, default=5, metavar="N", help="default %(default)s")
    group.add_argument(
        "--period", type=float, default=10.0, metavar="S", help="default %(default)s s"
    )
    group.add_argument(
        "--repetitions", type=int, default=3, metavar="N", help="periods a run, default %(default)s"
    )
    group.add_argument(
        "--objective",
        choices=("condition", "logdet", "energy"),
        default="condition",
        help="condition number of the base regressor, its log-determinant, or the accuracy of the "
        "energy model's own parameters (default %(default)s)",
    )
    group.add_argument("--seed", type=int, default=0, metavar="N", help="default %(default)s")
    group.add_argument(
        "--time-limit", type=float, default=55.0, metavar="S", help="default %(default)s s"
    )
    group.add_argument(
        "--optimizer",
        choices=("gradient", "genetic"),
        default="gradient",
        help="genetic is that of Raviola et al. 2021, for comparison (default %(default)s)",
    )
    group.add_argument(
        "--population", type=int, default=300, metavar="N", help="genetic, default %(default)s"
    )
    group.add_argument(
        "--generations", type=int, default=5, metavar="N", help="genetic, default %(default)s"
    )
    group.add_argument(
        "--payload",
        type=float,
        nargs=4,
        metavar=("KG", "X", "Y", "Z"),
        help="mass on the flange and its centre [m]",
    )


def add_surroundings(group: argparse._ArgumentGroup) -> None:
    """What the arm must keep clear of."""
    group.add_argument(
        "--clearance",
        type=float,
        default=0.03,
        metavar="M",
        help="distance to keep, default %(default)s m",
    )
    group.add_argument(
        "--tool-speed",
        type=float,
        default=1.5,
        metavar="M/S",
        help="largest speed of flange and elbow, default %(default)s m/s",
    )
    group.add_argument(
        "--table",
        type=float,
        default=0.0,
        metavar="M",
        help="height of the table above the base flange, default %(default)s m",
    )
    group.add_argument(
        "--wall",
        type=float,
        nargs=4,
        action="append",
        default=[],
        metavar=("NX", "NY", "NZ", "OFFSET"),
        help="half-space to keep out of; may be repeated",
    )
    group.add_argument(
        "--tool",
        type=float,
        nargs=2,
        metavar=("LENGTH", "RADIUS"),
        help="tool that sticks out of the flange [m]",
    )


def add_execution_options(group: argparse._ArgumentGroup) -> None:
    """How it is run."""
    group.add_argument("--host", metavar="ADDRESS", help="controller that runs the trajectory")
    group.add_argument("--yes", action="store_true", help="move without asking")
    group.add_argument(
        "--warm-up",
        type=float,
        default=0.0,
        metavar="MIN",
        help="move for this long before recording, so that the joints are warm",
    )
    group.add_argument(
        "--speed-fraction",
        type=float,
        default=1.0,
        metavar="F",
        help="run slower by this factor, for a first try",
    )


def request_of(options: argparse.Namespace, robot: str) -> DesignRequest:
    """What the options ask for.

    Args:
        options: as parsed.
        robot: name or file of the arm.

    Raises:
        InputError: a value that cannot be.
    """
    import numpy as np

    from ur_energy_model.errors import InputError
    from ur_energy_model.experiment.design.problem import DesignRequest
    from ur_energy_model.model.capsules import Capsule, Wall
    from ur_energy_model.model.robots import load_robot
    from ur_energy_model.model.setup import Payload, Setup

    positive = ("period", "time_limit", "tool_speed", "repetitions", "population", "generations")
    for name in positive:
        if not getattr(options, name) > 0:
            raise InputError(f"--{name.replace('_', '-')}", "must be positive", "give more")
    if options.harmonics < 2:
        raise InputError(
            "--harmonics", "one harmonic cannot start and end at rest", "give 2 or more"
        )
    description = load_robot(robot)
    walls = [Wall("table", np.array([0.0, 0.0, 1.0]), options.table)]
    for number, (*normal, offset) in enumerate(options.wall, 1):
        length = float(np.linalg.norm(normal))
        if length == 0:
            raise InputError("--wall", "has no direction", "give a normal that is not zero")
        walls.append(Wall(f"wall {number}", np.array(normal) / length, offset / length))
    tool: tuple[Capsule, ...] = ()
    if options.tool:
        reach, radius = options.tool
        end = np.array([0.0, 0.0, max(reach - radius, 0.0)])
        tool = (Capsule(description.dof, np.zeros(3), end, radius),)
    setup = Setup()
    if options.payload:
        setup = Setup(payload=Payload(options.payload[0], np.array(options.payload[1:])))
    return DesignRequest(
        robot=description,
        setup=setup,
        harmonics=options.harmonics,
        period=options.period,
        repetitions=options.repetitions,
        objective=options.objective,
        walls=tuple(walls),
        tool=tool,
        clearance=options.clearance,
        tool_speed=options.tool_speed,
        seed=options.seed,
    )
