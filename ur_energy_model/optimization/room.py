# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What the room adds to the package."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ur_energy_model.cli.tables import (
    EVERYDAY,
    SavingsOptions,
    json_option,
    overwrite_option,
    same_arm_option,
    text_list,
)
from ur_energy_model.options import option, part
from ur_energy_model.rooms import Command, Extension, Room


@dataclass(frozen=True, kw_only=True)
class OptimizeOptions:
    """Options of `ur_energy optimize`."""

    model: Path | None = option(
        None, "identified model", positional=True, metavar="MODEL.yaml", holds="model"
    )
    bag: Path | None = option(
        None,
        "recording of the running program (a rosbag2 directory)",
        positional=True,
        metavar="BAG",
        holds="recording",
    )
    same_arm: bool = same_arm_option()
    cycle_time: float | None = option(
        None,
        "duration of the new cycle in seconds (default: that of the recorded one)",
        metavar="S",
        unit="s",
        limits=(0.001, 3600),
    )
    power_off_after: float | None = option(
        None,
        "let the arm switch off in waits longer than this, in seconds",
        metavar="S",
        unit="s",
        limits=(0.001, 3600),
    )
    jerk: float | None = option(
        None,
        "largest jerk of the joints (default: no limit)",
        metavar="RAD/S^3",
        unit="rad/s^3",
        limits=(1, 1e6),
    )
    tool_speed: float | None = option(
        None,
        "largest speed of tool flange and elbow (default: 1.5; that of the "
        "recording where the cycle time needs it)",
        metavar="M/S",
        unit="m/s",
        limits=(0.01, 20),
    )
    max_speedup: float | None = option(
        None,
        "largest factor on recorded speeds and accelerations, at least 1 "
        "(default: the limits of the robot; moves that become faster are "
        "listed)",
        metavar="FACTOR",
        unit="share",
        limits=(1, 1000),
    )
    keep_dwell: float = option(
        0.5,
        "waits up to this long must stay, in seconds (gripper, sensor); "
        "longer ones are slack",
        metavar="S",
        unit="s",
        limits=(0, 3600),
    )
    pareto: bool = option(
        False,
        "also compute the least energy over the cycle time, up to twice the recorded one, "
        "and the front of energy against peak power at the cycle time",
    )
    pareto_points: int = option(
        6,
        "number of points of the front of energy against peak power, for --pareto",
        metavar="N",
        limits=(2, 50),
    )
    keep: tuple[int, ...] = option(
        (),
        "moves (or waits) that stay exactly as recorded: their step numbers in the sheet",
        metavar="MOVE[,MOVE]",
        parse=text_list(
            r" *[1-9][0-9]*( *, *[1-9][0-9]*)* *",
            "a list of step numbers such as 3,5",
            int,
        ),
    )
    keep_slow: bool = option(
        True,
        "keep moves that are deliberately slow, as near a part (default: on)",
    )
    recorded_limits: bool = option(
        False,
        "stay within the speeds, accelerations and torques of the "
        "recording, instead of those of the robot",
    )
    output: Path | None = option(
        None,
        "write the sheet (pendant.csv), a URScript program, servoJ set "
        "points, a ROS trajectory, a CSV for `predict`, the figures and the "
        "page (optimize.html) to this folder",
        flags=("-o", "--output"),
        metavar="FOLDER",
    )
    report: Path | None = option(
        None,
        "write the page, which opens offline, to this file",
        flags=("--html", "--report"),
        metavar="FILE.html",
    )
    overwrite: bool = overwrite_option()
    tariff: SavingsOptions = part(SavingsOptions, "cost, for the page")
    json: bool = json_option()


ROOM = Room(
    name="optimization",
    purpose="less energy for the same work",
    requires=(),
    commands=(
        Command(
            name="optimize",
            options=OptimizeOptions,
            run="ur_energy_model.optimization.commands:optimize",
            summary="find the cheapest way to do a recorded cycle in the same time",
            description="Find the repeated cycle in a recording and the time law of every "
            "move that takes the least energy at the supply: same paths, same "
            "cycle time, same or shorter waits. Moves slow down where waiting "
            "is left over, and trade time with each other.",
            examples=(
                "ur_energy optimize model.yaml bags/cell",
                "ur_energy optimize model.yaml bags/cell --cycle-time 12 --pareto --json",
                "ur_energy optimize model.yaml bags/cell --keep 3,5 --max-speedup 1.5",
                "ur_energy optimize model.yaml bags/cell -o cheaper --tariff 0.28",
            ),
            group=EVERYDAY,
            subjects=("optimize", "cycle execution"),
        ),
    ),
    extensions=(
        Extension(
            subject="measures",
            provides="ur_energy_model.optimization.measures.find:ADVISER",
        ),
        Extension(
            subject="plans",
            provides="ur_energy_model.optimization.plan_optimization:optimized_points",
        ),
    ),
    tests=("test/optimization",),
    pages=("docs/optimization",),
    files=(
        "tools/optimization_case.py",
        "examples/cheaper_cycle.py",
    ),
)
