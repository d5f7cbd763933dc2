# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What the room adds to the package."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from ur_energy_model.cli.tables import (
    MOTIONS,
    ExecutionOptions,
    SurroundingsOptions,
    json_option,
    payload_option,
    robots,
)
from ur_energy_model.options import option, part
from ur_energy_model.rooms import Command, Extension, Room, choices_of

_PROOF = "proof on the arm"


DESIGN = "design"
"""Subject of the rooms' extensions that provide a `DesignSearch`."""


@dataclass(frozen=True, kw_only=True)
class ExciteOptions:
    """Options of `ur_energy excite`."""

    robot: str | None = option(
        None,
        "robot to design for, or to check, export or run a trajectory of, such as ur5e, or "
        "its YAML file or URDF (default: that of the trajectory or of --for-gap)",
        metavar="NAME",
        offered=robots,
    )
    execute: str | None = option(
        None,
        "run a trajectory (a file, or the included one of a robot) and record it",
        one_of="action",
        metavar="TRAJECTORY",
    )
    check: str | None = option(
        None,
        "check a trajectory without moving a robot",
        one_of="action",
        metavar="TRAJECTORY",
    )
    export: str | None = option(
        None,
        "write a trajectory as URScript (.script) or as a table (.csv)",
        one_of="action",
        metavar="TRAJECTORY",
    )
    output: Path | None = option(
        None,
        "trajectory, bag or export to write",
        flags=("-o", "--output"),
        metavar="PATH",
    )
    overwrite: bool = option(
        False,
        "replace an existing trajectory or export, never a bag",
    )
    objective: Literal["condition", "logdet", "energy"] = option(
        "condition",
        "condition number of the base regressor, its log-determinant, or "
        "the accuracy of the energy model's own parameters",
        heading="design",
    )
    for_gap: Path | None = option(
        None,
        "design for what this learned model lacks only: the joints and "
        "speeds that ordinary work has not shown (replaces --objective)",
        heading="design",
        metavar="MODEL.yaml",
        holds="model",
    )
    optimizer: str = option(
        "gradient",
        "search method; another one than gradient is for comparison",
        choices=partial(choices_of, "gradient", DESIGN),
        heading="design",
    )
    harmonics: int = option(
        5,
        "harmonics of the Fourier series, 2 to 50",
        heading="design",
        metavar="N",
        limits=(2, 50),
    )
    period: float = option(
        10.0,
        "period of the trajectory [s], 0.1 to 1000",
        heading="design",
        metavar="S",
        unit="s",
        limits=(0.1, 1000),
    )
    repetitions: int = option(
        3, "periods per run", heading="design", metavar="N", limits=(1, 100000)
    )
    seed: int = option(
        0,
        "seed of the random starts",
        heading="design",
        metavar="N",
        limits=(0, 4294967295),
    )
    time_limit: float = option(
        55.0,
        "maximum time for the search [s]",
        heading="design",
        metavar="S",
        unit="s",
        limits=(0.1, 1e5),
    )
    payload: tuple[float, ...] | None = payload_option("none")
    surroundings: SurroundingsOptions = part(SurroundingsOptions, "surroundings")
    tool_speed: float = option(
        1.5,
        "speed limit of flange and elbow [m/s]",
        heading="surroundings",
        metavar="M/S",
        unit="m/s",
        limits=(0.001, 20),
    )
    execution: ExecutionOptions = part(ExecutionOptions, "execution")
    speed_fraction: float = option(
        1.0,
        "share of the designed speed",
        heading="execution",
        metavar="F",
        unit="share",
        limits=(0.001, 1),
    )
    json: bool = json_option()


@dataclass(frozen=True, kw_only=True)
class CycleExecutionOptions:
    """The proof on the arm, for `ur_energy optimize`."""

    execute: bool = option(
        False,
        "run the cycle as recorded and as typed from the sheet in turns, and measure the "
        "saving at the bus; the recording goes to the folder of -o",
        heading=_PROOF,
    )
    execution: ExecutionOptions = part(ExecutionOptions, _PROOF)
    cycles: int = option(
        6,
        "cycles of each kind; even numbers cancel drift",
        metavar="N",
        limits=(1, 1000),
        heading=_PROOF,
    )
    front_point: int | None = option(
        None,
        "run a point of the front of energy against peak power (--pareto) instead of the "
        "sheet: its number",
        metavar="N",
        limits=(1, 50),
        heading=_PROOF,
    )
    surroundings: SurroundingsOptions = part(
        SurroundingsOptions, "surroundings, for --execute"
    )


ROOM = Room(
    name="experiment",
    purpose="motions that make a model identifiable: design, checks, execution",
    requires=("optimization",),
    commands=(
        Command(
            name="excite",
            options=ExciteOptions,
            run="ur_energy_model.experiment.commands:excite",
            summary="design and run a trajectory that excites all parameters",
            description="Design a Fourier trajectory that makes the parameters of an arm "
            "identifiable, check it, export it, or run and record it. Only "
            "--execute moves a robot.",
            examples=(
                "ur_energy excite --robot ur5e -o trajectory.yaml",
                "ur_energy excite --robot my_arm.yaml -o trajectory.yaml",
                "ur_energy excite --for-gap model.yaml -o gap.yaml",
                "ur_energy excite --check trajectory.yaml",
                "ur_energy excite --execute trajectory.yaml --host 192.168.56.101 -o cell_3",
                "ur_energy excite --export trajectory.yaml -o trajectory.script",
            ),
            notes="The package includes checked trajectories: --execute ur5e runs the UR5e's.\n"
            "Walls are given in the base frame: --wall NX NY NZ OFFSET keeps the arm where\n"
            "NX x + NY y + NZ z > OFFSET, so --wall -1 0 0 -0.6 is a wall at x = 0.6 m.",
            group=MOTIONS,
            subjects=("design",),
        ),
    ),
    extensions=(
        Extension(
            subject="cycle execution",
            provides="ur_energy_model.experiment.run_cycle:CYCLE_EXECUTION",
            options=CycleExecutionOptions,
        ),
    ),
    tests=("test/experiment",),
    pages=("docs/experiment",),
)
