"""Options of `ur_energy excite`: the trajectory, the arm's surroundings and its execution."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ur_energy_model.cli import arguments
from ur_energy_model.cli.arguments import add_payload_option, payload_given

if TYPE_CHECKING:
    import argparse

    from ur_energy_model.experiment.design_problem import DesignRequest
    from ur_energy_model.experiment.limits import SafetyLimits
    from ur_energy_model.model.geometry import Capsule, Wall
    from ur_energy_model.model.robots import RobotDescription
    from ur_energy_model.model.setup import Setup

_SHORTEST, _LONGEST = 0.1, 1000.0
"""Periods of trajectories [s]."""
_FARTHEST = 100.0
"""Of obstacles and tools, far beyond any arm [m]."""
TOOL_SPEED = 1.5
"""Speed limit of flange and elbow [m/s]."""
_PLACES = (-_FARTHEST, _FARTHEST)


def add_design_options(group: argparse._ArgumentGroup) -> None:
    """The trajectory to design, and the search for it."""
    arguments.add_number(
        group, "--harmonics", 5, "N", "harmonics of the Fourier series, 2 to 50", (1, 50)
    )
    arguments.add_number(
        group,
        "--period",
        10.0,
        "S",
        f"period of the trajectory [s], {_SHORTEST:g} to {_LONGEST:g}",
        (0, _LONGEST),
    )
    arguments.add_number(group, "--repetitions", 3, "N", "periods per run", (1, 100_000))
    arguments.add_choice(
        group,
        "--objective",
        ("condition", "logdet", "energy"),
        "condition number of the base regressor, its log-determinant, or the accuracy of the "
        "energy model's own parameters",
    )
    group.add_argument(
        "--for-gap",
        type=Path,
        metavar="MODEL.yaml",
        help="design for what this learned model lacks only: the joints and speeds that ordinary "
        "work has not shown (replaces --objective)",
    )
    arguments.add_number(group, "--seed", 0, "N", "seed of the random starts", arguments.SEEDS)
    arguments.add_number(
        group, "--time-limit", 55.0, "S", "maximum time for the search [s]", (0.1, 1e5)
    )
    arguments.add_choice(
        group,
        "--optimizer",
        ("gradient", "genetic"),
        "search method; genetic is that of Raviola et al. 2021, for comparison",
    )
    arguments.add_number(
        group, "--population", 300, "N", "individuals of the genetic search", (2, 100_000)
    )
    arguments.add_number(
        group, "--generations", 5, "N", "generations of the genetic search", (0, 100_000)
    )
    add_payload_option(group, "none")


def add_surroundings(group: argparse._ArgumentGroup) -> None:
    """Obstacles to keep clear of."""
    arguments.add_number(
        group, "--clearance", 0.03, "M", "minimum distance to obstacles [m]", (0, _FARTHEST)
    )
    arguments.add_number(
        group, "--table", 0.0, "M", "height of the table above the base [m]", _PLACES
    )
    group.add_argument(
        "--wall",
        type=arguments.number(float, *_PLACES),
        nargs=4,
        action="append",
        default=[],
        metavar=("NX", "NY", "NZ", "OFFSET"),
        help="half-space to stay out of (may be repeated)",
    )
    group.add_argument(
        "--tool",
        type=arguments.number(float, 0, _FARTHEST),
        nargs=2,
        metavar=("LENGTH", "RADIUS"),
        help="size of the tool on the flange [m] (default: no tool)",
    )


def add_tool_speed(group: argparse._ArgumentGroup) -> None:
    """`--tool-speed`."""
    arguments.add_number(
        group,
        "--tool-speed",
        TOOL_SPEED,
        "M/S",
        "speed limit of flange and elbow [m/s]",
        (0, 100),
    )


def add_execution_options(group: argparse._ArgumentGroup) -> None:
    """How `--execute` runs a motion, on every subcommand that has it."""
    arguments.add_controller(group, required=False)
    arguments.add_consent(group)
    arguments.add_number(
        group, "--warm-up", 0.0, "MIN", "warm-up motion before recording [min]", (0, 1440)
    )


def check_execution(options: argparse.Namespace, output: str) -> None:
    """Refuse an incomplete `--execute`, and its options without it.

    Args:
        options: as parsed.
        output: metavar of -o.
    """
    if options.execute and (options.host is None or options.output is None):
        options.parser.error(f"--execute needs --host ADDRESS and -o {output}")
    for flag, given in (("--host", options.host), ("--another-arm", options.another_arm)):
        if given and not options.execute:
            options.parser.error(f"{flag} is for --execute")


def request_of(options: argparse.Namespace, robot: str) -> DesignRequest:
    """The request that the options describe.

    Args:
        options: as parsed.
        robot: name or file of the arm.

    Raises:
        InputError: a value out of range.
    """
    from ur_energy_model.errors import InputError
    from ur_energy_model.experiment.design_problem import DesignRequest
    from ur_energy_model.model.robots import load_robot
    from ur_energy_model.model.setup import Setup

    for flag, value in (
        ("--time-limit", options.time_limit),
        ("--tool-speed", options.tool_speed),
        ("--repetitions", options.repetitions),
        ("--population", options.population),
        ("--generations", options.generations),
    ):
        if not value > 0:
            raise InputError(flag, "must be positive", "increase it")
    if options.period < _SHORTEST:
        raise InputError("--period", f"is shorter than {_SHORTEST:g} s", "increase it")
    if options.harmonics < 2:
        raise InputError(
            "--harmonics", "one harmonic cannot start and end at rest", "give 2 or more"
        )
    description = load_robot(robot)
    walls, tool = _obstacles(options, description)
    payload = payload_given(options.payload)
    return DesignRequest(
        robot=description,
        setup=Setup() if payload is None else Setup(payload=payload),
        harmonics=options.harmonics,
        period=options.period,
        repetitions=options.repetitions,
        objective=options.objective,
        walls=walls,
        tool=tool,
        clearance=options.clearance,
        tool_speed=options.tool_speed,
        seed=options.seed,
    )


def surroundings_given(
    options: argparse.Namespace, robot: RobotDescription, setup: Setup
) -> SafetyLimits:
    """The safety limits of an arm among the obstacles that the options describe.

    Raises:
        InputError: a wall without direction.
    """
    from ur_energy_model.experiment.limits import SafetyLimits
    from ur_energy_model.model.dynamics import ArmDynamics
    from ur_energy_model.model.geometry import ArmGeometry

    return SafetyLimits(
        ArmDynamics(robot, setup),
        ArmGeometry(robot, *_obstacles(options, robot)),
        clearance=options.clearance,
        tool_speed=options.tool_speed or TOOL_SPEED,
    )


def _obstacles(
    options: argparse.Namespace, robot: RobotDescription
) -> tuple[tuple[Wall, ...], tuple[Capsule, ...]]:
    """Table and walls, and the tool on the flange.

    Raises:
        InputError: a wall without direction.
    """
    import numpy as np

    from ur_energy_model.errors import InputError
    from ur_energy_model.model.geometry import Capsule, Wall

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
        tool = (Capsule(robot.dof, np.zeros(3), end, radius),)
    return tuple(walls), tool
