# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Motions on a robot: `ur_energy excite`, and what every command that moves a robot shares."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ur_energy_model.cli.arguments import PAYLOAD
from ur_energy_model.cli.output import (
    ask,
    note,
    picked,
    print_json,
    print_table,
    progress,
    warn,
)
from ur_energy_model.cli.recordings import recording_json
from ur_energy_model.errors import InputError, MotionRefusedError
from ur_energy_model.experiment.design import design_trajectory, further_searches
from ur_energy_model.experiment.design_problem import (
    DesignProblem,
    DesignRequest,
    gaps_among,
    limits_of,
    needs_of,
)
from ur_energy_model.experiment.execution import (
    ExecutionPlan,
    ExecutionResult,
    MotionSummary,
    execute,
)
from ur_energy_model.experiment.limits import SafetyLimits, TrajectoryVerdict, check
from ur_energy_model.experiment.motion_process import export_trajectory
from ur_energy_model.experiment.same_arm import arm_of_plan
from ur_energy_model.files import check_output, config_file
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.geometry import ArmGeometry, Capsule, Wall
from ur_energy_model.model.model_file import load_model
from ur_energy_model.model.robots import RobotDescription, check_payload, load_robot
from ur_energy_model.model.setup import Setup
from ur_energy_model.rooms import Given
from ur_energy_model.trajectory.fourier import (
    FourierTrajectory,
    load_trajectory,
    save_trajectory,
)

TOOL_SPEED = 1.5  # speed limit of flange and elbow [m/s]


def check_execution(options: argparse.Namespace, output: str) -> None:
    """Refuse an incomplete `--execute`, and its options without it; `output` stands for -o."""
    if options.execute and (options.host is None or options.output is None):
        options.parser.error(f"--execute needs --host ADDRESS and -o {output}")
    for flag, given in (("--host", options.host), ("--another-arm", options.another_arm)):
        if given and not options.execute:
            options.parser.error(f"{flag} is for --execute")


def request_of(options: argparse.Namespace, robot: str) -> DesignRequest:
    """The request that the options describe, for the arm of a name or file."""
    description = load_robot(robot)
    if options.payload is not None:
        warn(check_payload(description, options.payload.mass, PAYLOAD))
    walls, tool = _obstacles(options, description)
    return DesignRequest(
        robot=description,
        setup=Setup() if options.payload is None else Setup(payload=options.payload),
        walls=walls,
        tool=tool,
        **picked(
            options, "harmonics period repetitions objective clearance tool_speed seed"
        ),
    )


def surroundings_given(
    options: argparse.Namespace, robot: RobotDescription, setup: Setup
) -> SafetyLimits:
    """The safety limits of an arm among the obstacles that the options describe."""
    return SafetyLimits(
        ArmDynamics(robot, setup),
        ArmGeometry(robot, *_obstacles(options, robot)),
        clearance=options.clearance,
        tool_speed=options.tool_speed or TOOL_SPEED,
    )


def _obstacles(
    options: argparse.Namespace, robot: RobotDescription
) -> tuple[tuple[Wall, ...], tuple[Capsule, ...]]:
    """Table and walls, and the tool on the flange."""
    walls = [Wall("table", np.array([0.0, 0.0, 1.0]), options.table)]
    for index, (*normal, offset) in enumerate(options.wall, 1):
        length = float(np.linalg.norm(normal))
        if length == 0:
            raise InputError(
                "--wall", "has no direction", "give a normal that is not zero"
            )
        walls.append(Wall(f"wall {index}", np.array(normal) / length, offset / length))
    tool: tuple[Capsule, ...] = ()
    if options.tool:
        reach, radius = options.tool
        end = np.array([0.0, 0.0, max(reach - radius, 0.0)])
        tool = (Capsule(robot.dof, np.zeros(3), end, radius),)
    return tuple(walls), tool


# Running a motion: confirmation, recording, and what is printed of it.


def run_recorded(
    plan: ExecutionPlan, host: str, bag: Path, *, assume_yes: bool
) -> ExecutionResult:
    """Run a trajectory and record it, with confirmation and progress.

    MotionRefusedError if it is not confirmed, or stopped before its end; the bag is kept.
    """

    def approve(summary: MotionSummary) -> bool:
        describe(summary)
        if assume_yes:
            return True
        if not sys.stdin.isatty():
            raise MotionRefusedError(
                "the motion cannot be confirmed without a terminal; add --yes if a script may move "
                "the robot"
            )
        other = " Is this other arm meant?" if summary.other_arm else ""
        question = f"Is the space around the robot free?{other} Type yes to move it: "
        return ask(question).lower() in {"y", "yes"}

    with progress(f"running on {host}") as bar:
        result = execute(plan, host, bag, approve=approve, progress=bar)
    if not result.completed:
        raise MotionRefusedError(
            f"stopped: {result.reason}; {result.status.samples} samples are kept in {bag}"
        )
    return result


def describe(summary: MotionSummary) -> None:
    """Describe on stderr what will move, how far and how fast."""
    travel = np.rad2deg(summary.travel)
    speed = np.rad2deg(summary.joint_speed)
    approach = np.rad2deg(np.abs(summary.start - summary.here).max())
    serial = "" if summary.serial is None else f", serial {summary.serial}"
    note(f"The {summary.robot} at {summary.host}{serial} is going to move:")
    for remark in summary.remarks:
        note(f"  {remark}")
    if summary.other_arm:
        note(f"  ANOTHER ARM: {summary.other_arm}")
    if summary.program_running:
        note("  the program now running on it is replaced")
    note(f"  first slowly to the start, by up to {approach:.0f} degrees per joint")
    if summary.warm_up > 0:
        note(
            f"  then along the trajectory for {summary.warm_up / 60:.3g} min to warm up, "
            "without recording"
        )
    note(
        f"  then for {summary.duration:.0f} s: joints by "
        f"{', '.join(f'{value:.0f}' for value in travel)} degrees at up to "
        f"{', '.join(f'{value:.0f}' for value in speed)} degrees/s"
    )
    note(
        f"  tool and elbow at up to {summary.tool_speed:.2f} m/s, at least "
        f"{1000 * summary.clearance:.0f} mm from itself and from the table and walls described"
    )


# What `ur_energy excite` does: design, check, export or execute.


def run(options: argparse.Namespace) -> None:
    """Design, check, export or execute."""
    check_execution(options, "BAG")
    actions = (
        options.robot,
        options.for_gap,
        options.execute,
        options.check,
        options.export,
    )
    if not any(actions):
        options.parser.error(
            "give --robot NAME to design, or --execute, --check or --export"
        )
    if options.execute is not None:
        trajectory = _trajectory(options.execute)
        request = request_of(options, trajectory.robot)
        plan = ExecutionPlan(
            trajectory=trajectory,
            limits=limits_of(request),
            arm=arm_of_plan(options.execute, request.setup, trajectory.robot),
            another_arm=options.another_arm,
            warm_up=60.0 * options.warm_up,
            speed_fraction=options.speed_fraction,
        )
        result = run_recorded(plan, options.host, options.output, assume_yes=options.yes)
        status = result.status
        if options.json:
            print_json(
                {
                    **recording_json(options.output, status),
                    "completed": result.completed,
                    "max_following_error": result.following_error,
                    "joint_temperatures": result.temperatures,
                }
            )
            return
        hottest = " ".join(f"{value:.1f}" for value in result.temperatures.max(axis=1))
        rows: list[list[Any]] = [
            ["samples", status.samples],
            ["lost", status.losses.samples],
            ["maximum following error, rad", result.following_error],
            ["hottest joint before and after, degC", hottest],
        ]
        print_table(f"Recorded {options.output}", ["figure", "value"], rows)
        note(f"next: ur_energy identify {options.output} -o model.yaml")
    elif options.check is not None:
        _check(options)
    elif options.output is None:
        options.parser.error("-o PATH is required")
    elif options.export is not None:
        check_output(options.output, overwrite=options.overwrite)
        trajectory = _trajectory(options.export)
        export_trajectory(options.output, trajectory, load_robot(trajectory.robot).rate)
        if options.json:
            print_json({"output": options.output, "duration": trajectory.duration})
        else:
            note(f"wrote {options.output}")
    else:
        _design(options)


def _design(options: argparse.Namespace) -> None:
    check_output(options.output, overwrite=options.overwrite)
    if options.for_gap is None:
        request = request_of(options, options.robot)
    else:
        model = load_model(options.for_gap)
        request = request_of(options, options.robot or model.robot_name)
        request = _for_gap(request, model, options.for_gap)
    with progress(
        f"designing for {request.robot.name}, at most {options.time_limit:g} s"
    ) as bar:
        search = further_searches().get(options.optimizer)
        if search is not None:
            table = search.options
            assert table is not None
            chosen = Given(table(**picked(options, "population generations")))
            design = search.load().design(
                request, chosen, time_limit=options.time_limit, progress=bar
            )
        else:
            design = design_trajectory(
                request, time_limit=options.time_limit, keep_best=True, progress=bar
            )
    save_trajectory(options.output, design.trajectory)
    shown = design.trajectory.design.get("for_gap")  # of the gap that it was designed for
    if options.json:
        print_json(design.figures() | ({} if shown is None else {"for_gap": shown}))
    else:
        rows: list[list[Any]] = [
            ["condition number of the base regressor", design.condition_number]
        ]
        for gap in shown or []:
            low, high = gap["speed_range"]
            rows.append(
                [f"{gap['joint']} at {low:.2g} to {high:.2g} rad/s, s", gap["seconds"]]
            )
        if design.objective != "condition":
            rows.append([f"objective ({design.objective})", design.value])
        rows += [*_rows(design.verdict), ["descents tried", design.starts]]
        rows.append(["seconds", design.seconds])
        print_table(
            f"Exciting trajectory for {request.robot.name}", ["figure", "value"], rows
        )
        note(
            f"wrote {options.output}; check it with: ur_energy excite --check {options.output}"
        )


def _for_gap(request: DesignRequest, model: EnergyModel, path: Path) -> DesignRequest:
    """The request for what a learned model lacks; reports what no trajectory can show."""
    if model.robot_name != request.robot.name:
        raise InputError(
            path,
            f"is of a {model.robot_name}, not a {request.robot.name}",
            "change --robot",
        )
    needs = needs_of(model, path)
    gaps = gaps_among(needs, request.robot, path)
    covered = {gap.joint for gap in gaps}
    for need in needs:
        place = "the trajectory shows" if need.joint in covered else "no trajectory shows"
        note(f"{place}: {need.words}")
    return replace(request, gaps=gaps, objective="energy")


def _check(options: argparse.Namespace) -> None:
    trajectory = _trajectory(options.check)
    problem = DesignProblem(request_of(options, trajectory.robot))
    verdict = check(trajectory, problem.limits)
    condition = problem.condition_number(trajectory)
    if options.json:
        print_json(
            {"condition_number": condition, "passed": verdict.passed, **verdict.as_dict()}
        )
    else:
        rows: list[list[str | float]] = [["condition number", condition], *_rows(verdict)]
        print_table(f"{options.check} ({trajectory.robot})", ["check", "value"], rows)
    if not verdict.passed:
        raise MotionRefusedError(f"{options.check}: {'; '.join(verdict.problems)}")


def _trajectory(name: str) -> FourierTrajectory:
    """A trajectory file, or the trajectory that the package includes for a robot."""
    included = config_file("excitation", f"{name.lower()}.yaml")
    return load_trajectory(
        included if included.is_file() and not Path(name).is_file() else name
    )


def _rows(verdict: TrajectoryVerdict) -> list[list[str | float]]:
    """Rows of a table from a verdict."""
    return [
        ["maximum share of the joint position limits", verdict.max_position_ratio],
        ["maximum share of the joint velocity limits", verdict.max_velocity_ratio],
        [
            "maximum share of the joint acceleration limits",
            verdict.max_acceleration_ratio,
        ],
        [
            "maximum share of the joint torque limits, no friction",
            verdict.max_torque_ratio,
        ],
        ["maximum speed of flange and elbow, m/s", verdict.max_tool_speed],
        [f"clearance, m: {' to '.join(verdict.closest)}", verdict.clearance],
    ]
