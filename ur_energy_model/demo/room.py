# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What the room adds to the package: the command `demo` and the launch file demo."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ur_energy_model.cli.tables import DESK
from ur_energy_model.options import option
from ur_energy_model.rooms import Command, Room


@dataclass(frozen=True, kw_only=True)
class DemoOptions:
    """Options of `ur_energy demo`.

    Attributes:
        output: folder for all results; the folder of an earlier demo is replaced.
        robot: name of the arm that is simulated.
        host: loopback address at which the simulated controller listens.
        seconds: length of each trajectory [s].
        seed: number of the arm; arms of different numbers differ in all true parameters.
            None for a random number.
    """

    output: Path = option(
        Path("demo_output"),
        "folder for all results",
        flags=("-o", "--output"),
        metavar="FOLDER",
    )
    robot: str = option("ur5e", "robot to simulate", metavar="NAME")
    host: str = option(
        "127.0.0.2",
        "loopback address of the simulated arm",
        metavar="ADDRESS",
        address=True,
    )
    seconds: float = option(40.0, "length of each trajectory", metavar="S", unit="s")
    seed: int | None = option(
        None,
        "number of the simulated arm (default: another one each time)",
        metavar="N",
        limits=(0, 4294967295),
    )


ROOM = Room(
    name="demo",
    purpose="the complete workflow with a simulated arm",
    requires=("simulation",),
    commands=(
        Command(
            name="demo",
            options=DemoOptions,
            run="ur_energy_model.demo.commands:demo",
            summary="run the complete workflow with a simulated arm",
            description="Record a simulated arm on trajectory A, identify its model, run "
            "trajectory B with logger and live estimator, and print the tables "
            "of the paper beside the simulated truth.",
            examples=("ur_energy demo -o demo_output",),
            group=DESK,
        ),
    ),
    launch_files={"demo": "ur_energy_model.demo.launch:DEMO"},
    tests=("test/demo",),
    pages=("docs/demo",),
    files=("launch/demo.launch.py",),
)
