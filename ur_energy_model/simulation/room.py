# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What the room adds to the package."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ur_energy_model.cli.tables import DESK, overwrite_option, payload_numbers, text_list
from ur_energy_model.options import option
from ur_energy_model.rooms import Command, Node, Room

_DEGREES = r" *-?[0-9]{1,9}([.][0-9]*)? *"


@dataclass(frozen=True, kw_only=True)
class SimulateOptions:
    """Options of `ur_energy simulate`."""

    robot: str = option(
        help="name of the robot, such as ur5e, or its YAML file", metavar="NAME"
    )
    host: str = option(
        "127.0.0.1", "loopback address to listen on", metavar="ADDRESS", address=True
    )
    allow_network: bool = option(
        False,
        "allow a --host that other machines can reach",
    )
    motion: str = option(
        "trajectory_a",
        "trajectory_a, trajectory_b, hold, sinusoids, pick_and_place, "
        "warm_up or a trajectory file",
        metavar="NAME|FILE",
    )
    duration: float | None = option(
        None,
        "end after S seconds (default: on Ctrl-C)",
        metavar="S",
        unit="s",
        limits=(0, 1e9),
    )
    seed: int = option(
        0,
        "number of the arm of its type, and seed of its noise",
        metavar="N",
        limits=(0, 4294967295),
    )
    session: int = option(
        0,
        "number of the arm's session: standby power, friction and "
        "temperatures differ between sessions; 0 is the arm without these "
        "differences",
        metavar="N",
        limits=(-1000000, 1000000),
    )
    ambient: float = option(
        25.0, "ambient temperature [degC]", metavar="C", unit="degC", limits=(-40, 80)
    )
    speed: float = option(
        1.0, "speed relative to real time", metavar="X", unit="share", limits=(0, 1e3)
    )
    controller_version: tuple[int, ...] | None = option(
        None,
        "software version to report, which also determines the RTDE fields "
        "(default: a recent one of the robot's generation)",
        metavar="X.Y.Z",
        parse=text_list(
            r"[0-9]+([.][0-9]+){1,3}", "a version such as 5.11.1", int, mark="."
        ),
    )
    payload: tuple[float, ...] | None = option(
        None,
        "payload set in the controller, with its centre of mass [m] (default: none)",
        metavar="KG[,X,Y,Z]",
        parse=payload_numbers,
    )
    carried: tuple[float, ...] | None = option(
        None,
        "payload that the arm actually carries (default: as set in the controller)",
        metavar="KG[,X,Y,Z]",
        parse=payload_numbers,
    )
    mounting: tuple[float, ...] | None = option(
        None,
        "orientation of the base in degrees; 90 is a wall (default: upright)",
        metavar="TILT[,ROTATION]",
        parse=text_list(
            rf"{_DEGREES}(,{_DEGREES})?",
            "TILT or TILT,ROTATION in degrees",
            float,
            unit="deg",
        ),
    )
    controller: Literal["feedforward", "pd"] = option(
        "feedforward",
        "type of the joint controller",
    )
    drive_set: Literal["typical", "s3"] = option(
        "typical",
        "gears: typical of the arm's type, or those of the UR5 model of "
        "Battistini et al.",
    )
    torque_field: Literal["with_gravity", "without_gravity"] = option(
        "with_gravity",
        "content of actual_current_as_torque, which controllers have since 5.23",
    )
    fault: tuple[str, ...] = option(
        (), "fault to simulate (listed below; may be repeated)", metavar="SPEC"
    )
    wall: tuple[str, ...] = option(
        (),
        "serve a power meter at the mains: http://A:P (a Shelly device) or "
        "modbus://A:P; or publish it to a broker: mqtt://A:P/TOPIC (may be "
        "repeated)",
        metavar="URL",
    )
    truth: Path | None = option(
        None,
        "write the ground truth (JSON, and power over time as .npz) here at the end",
        metavar="FILE",
    )
    overwrite: bool = overwrite_option()


# fmt: off


@dataclass(frozen=True)
class SimulatedRobotParameters:
    """Parameters of the node `simulated_robot`."""

    robot_model: str = option(
        "ur5e", "name of the robot, such as ur5e, or path of a robot file", flags=("--robot",)
    )
    host: str = option(
        "127.0.0.2", "loopback address of the RTDE, dashboard and script servers", address=True
    )
    motion: str = option(
        "trajectory_b", "named motion (trajectory_a, trajectory_b, hold, sinusoids, "
        "pick_and_place, warm_up) or path of a Fourier trajectory file",
    )
    duration: float = option(
        0.0, "stop the motion and the servers after this time; 0 for never", unit="s",
        limits=(0.0, 1e6),
    )
    seed: int = option(
        0, "random seed of the true parameters and of the noise", limits=(0, 2**31 - 1)
    )
    session: int = option(
        0, "number of the session: standby power, friction and temperatures differ between "
        "sessions; 0 for the nominal values of the arm", limits=(0, 2**31 - 1),
    )
    ambient: float = option(25.0, "ambient temperature", unit="degC", limits=(-20.0, 60.0))
    truth_file: Path | None = option(
        None, "JSON file for the true parameters and energies; empty for none"
    )

# fmt: on


ROOM = Room(
    name="simulation",
    purpose="the arm on the desk: a simulated controller with an arm of known truth",
    requires=(),
    commands=(
        Command(
            name="simulate",
            options=SimulateOptions,
            run="ur_energy_model.simulation.commands:simulate",
            summary="run a simulated arm for RTDE clients",
            description="Run a simulated UR controller with a moving arm in real time.",
            examples=(
                "ur_energy simulate --robot ur5e --host 127.0.0.2 --truth truth.json",
                "ur_energy simulate --robot ur10 --host 127.0.0.3 --motion hold \\\n"
                "    --fault voltage_dip@10:30",
            ),
            notes="ur_energy_model.simulation.commands:notes",
            group=DESK,
        ),
    ),
    nodes=(
        Node(
            "simulated_robot",
            SimulatedRobotParameters,
            "ur_energy_model.simulation.node:main",
        ),
    ),
    tests=("test/simulation",),
    pages=("docs/simulation",),
    files=("config/simulated_robot.yaml",),
)
