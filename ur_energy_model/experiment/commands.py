# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Motions on a robot: `ur_energy excite`, and what every command that moves a robot shares."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ur_energy_model.cli.arguments import stated_payload
from ur_energy_model.cli.output import (
    ask,
    note,
    print_json,
    print_table,
    progress,
    recording_json,
    warn,
)
from ur_energy_model.cli.tables import PAYLOAD, ExecutionOptions, SurroundingsOptions
from ur_energy_model.errors import InputError, MotionRefusedError, RobotFileError
from ur_energy_model.experiment.design import design_trajectory
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
from ur_energy_model.experiment.limits import TrajectoryVerdict, check
from ur_energy_model.experiment.motion_process import export_trajectory
from ur_energy_model.experiment.room import DESIGN, ExciteOptions
from ur_energy_model.experiment.same_arm import arm_of_plan
from ur_energy_model.files import check_output, config_file
from ur_energy_model.model.arm_shape import with_shape
from ur_energy_model.model.capsules import Capsule
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.geometry import Wall
from ur_energy_model.model.model_file import load_model
from ur_energy_model.model.robots import RobotDescription, check_payload, load_robot
from ur_energy_model.model.setup import Setup
from ur_energy_model.rooms import Given, chosen
from ur_energy_model.trajectory.fourier import (
    FourierTrajectory,
    load_trajectory,
    save_trajectory,
)


def check_execution(
    given: Given,
    options: ExecutionOptions,
    output: Path | None,
    *,
    execute: bool,
    placeholder: str,
) -> None:
    """Refuse an incomplete --execute, and its options without it, as usage errors.

    Args:
        given: options of the command.
        options: how the robot is to be moved.
        output: path of -o.
        execute: whether a robot is to be moved.
        placeholder: what stands for the value of -o in the help.
    """
    if execute and (options.host is None or output is None):
        given.refuse(f"--execute needs --host ADDRESS and -o {placeholder}")
    if options.host is not None and not execute:
        given.refuse("--host is for --execute")
    if options.another_arm and not execute:
        given.refuse("--another-arm is for --execute")


def request_of(options: ExciteOptions, robot: RobotDescription) -> DesignRequest:
    """The request for a trajectory that is to be designed or checked.

    Warns where the shape of the arm is incomplete.

    Args:
        options: options of the command.
        robot: the arm.

    Raises:
        InputError: the arm cannot carry the payload, or its geometry cannot be used.
    """
    payload = stated_payload(options.payload)
    if payload is not None:
        warn(check_payload(robot, payload.mass, PAYLOAD))
    robot = shaped(robot, options.surroundings.geometry)
    return DesignRequest(
        robot=robot,
        setup=Setup() if payload is None else Setup(payload=payload),
        walls=walls_of(options.surroundings),
        tool=tool_of(options.surroundings, robot),
        harmonics=options.harmonics,
        period=options.period,
        repetitions=options.repetitions,
        objective=options.objective,
        clearance=options.surroundings.clearance,
        tool_speed=options.tool_speed,
        seed=options.seed,
    )


def shaped(robot: RobotDescription, geometry: Path | None) -> RobotDescription:
    """The arm with its shape; warns where parts of it are derived or left out.

    Args:
        robot: the arm.
        geometry: geometry file of the user, or None.

    Raises:
        RobotFileError: the geometry file cannot be used.
    """
    robot = with_shape(robot, geometry)
    assert robot.shape is not None, "with_shape found it"
    warn(robot.shape.remarks)
    return robot


def walls_of(options: SurroundingsOptions) -> tuple[Wall, ...]:
    """The table and the walls to stay out of, in the base frame.

    Raises:
        InputError: a wall without a direction.
    """
    walls = [Wall("table", np.array([0.0, 0.0, 1.0]), options.table)]
    for number, (*direction, offset) in enumerate(options.wall, 1):
        normal = np.array(direction)
        length = float(np.linalg.norm(normal))
        if length == 0.0:
            remedy = "give a normal that is not zero"
            raise InputError("--wall", "has no direction", remedy)
        walls.append(Wall(f"wall {number}", normal / length, offset / length))
    return tuple(walls)


def tool_of(options: SurroundingsOptions, robot: RobotDescription) -> tuple[Capsule, ...]:
    """The tool on the flange as a capsule; none without --tool.

    Its rounded end is part of the length.
    """
    if options.tool is None:
        return ()
    length, radius = options.tool
    end = np.array([0.0, 0.0, max(length - radius, 0.0)])
    return (Capsule(robot.dof, np.zeros(3), end, radius),)


# Running a motion: confirmation, recording, and what is printed.


def run_recorded(
    plan: ExecutionPlan, host: str, bag: Path, *, assume_yes: bool
) -> ExecutionResult:
    """Run a trajectory and record it, with confirmation and progress.

    Args:
        plan: what to run, and the limits that it must keep.
        host: address of the controller.
        bag: recording to make.
        assume_yes: whether to move without asking.

    Raises:
        MotionRefusedError: it is not confirmed, or was stopped before its end; the bag is
            kept.
        UrEnergyError: the controller or the bag cannot be used.
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


def excite(given: Given) -> None:
    """Design, check, export or execute.

    Raises:
        UrEnergyError: a file, the robot or an option cannot be used.
        MotionRefusedError: the motion is not safe, not confirmed, or was stopped.
    """
    options = given.of(ExciteOptions)
    check_execution(
        given,
        options.execution,
        options.output,
        execute=options.execute is not None,
        placeholder="BAG",
    )
    if options.execute is not None:
        assert options.output is not None, "checked above"
        _execute(options, options.execute, options.output)
    elif options.check is not None:
        _check(options, options.check)
    elif options.robot is None and options.for_gap is None and options.export is None:
        given.refuse("give --robot NAME to design, or --execute, --check or --export")
    elif options.output is None:
        given.refuse("-o PATH is required")
    elif options.export is not None:
        _export(options, options.export, options.output)
    else:
        _design(given, options, options.output)


def _execute(options: ExciteOptions, name: str, bag: Path) -> None:
    """Run a trajectory, record it, and print what was recorded."""
    trajectory = _trajectory(name)
    request = request_of(options, _arm_of(trajectory, name, options.robot))
    how = options.execution
    plan = ExecutionPlan(
        trajectory=trajectory,
        limits=limits_of(request),
        arm=arm_of_plan(name, request.setup, trajectory.robot),
        another_arm=how.another_arm,
        warm_up=60.0 * how.warm_up,
        speed_fraction=options.speed_fraction,
    )
    result = run_recorded(plan, str(how.host), bag, assume_yes=how.yes)
    status = result.status
    if options.json:
        print_json(
            {
                **recording_json(bag, status),
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
    print_table(f"Recorded {bag}", ["figure", "value"], rows)
    note(f"next: ur_energy identify {bag} -o model.yaml")


def _export(options: ExciteOptions, name: str, output: Path) -> None:
    """Write a trajectory as URScript or as a table."""
    check_output(output, overwrite=options.overwrite)
    trajectory = _trajectory(name)
    robot = _arm_of(trajectory, name, options.robot)
    if robot.generation == "other" and output.suffix != ".csv":
        problem = (
            f"{output.suffix} is for robots of Universal Robots, not for {robot.name}"
        )
        raise InputError(output, problem, "export to .csv")
    export_trajectory(output, trajectory, robot.rate)
    if options.json:
        print_json({"output": output, "duration": trajectory.duration})
    else:
        note(f"wrote {output}")


def _design(given: Given, options: ExciteOptions, output: Path) -> None:
    """Design a trajectory, write it, and print its figures."""
    check_output(output, overwrite=options.overwrite)
    if options.for_gap is None:
        request = request_of(options, load_robot(str(options.robot)))
    else:
        model = load_model(options.for_gap)
        request = request_of(options, load_robot(options.robot or model.robot))
        request = _for_gap(request, model, options.for_gap)
    title = f"designing for {request.robot.name}, at most {options.time_limit:g} s"
    with progress(title) as bar:
        search = chosen(options.optimizer, DESIGN)
        if search is not None:
            design = search.load().design(
                request, given, time_limit=options.time_limit, progress=bar
            )
        else:
            design = design_trajectory(
                request, time_limit=options.time_limit, keep_best=True, progress=bar
            )
    save_trajectory(output, design.trajectory)
    shown = design.trajectory.design.get("for_gap")  # statement of the gap to be closed
    if options.json:
        print_json(design.figures() | ({} if shown is None else {"for_gap": shown}))
        return
    rows: list[list[Any]] = [
        ["condition number of the base regressor", design.condition_number]
    ]
    for gap in shown or []:
        low, high = gap["speed_range"]
        title = f"{gap['joint']} at {low:.2g} to {high:.2g} rad/s, s"
        rows.append([title, gap["seconds"]])
    if design.objective != "condition":
        rows.append([f"objective ({design.objective})", design.value])
    rows += [*_rows(design.verdict), ["descents tried", design.starts]]
    rows.append(["seconds", design.seconds])
    title = f"Exciting trajectory for {request.robot.name}"
    print_table(title, ["figure", "value"], rows)
    note(f"wrote {output}; check it with: ur_energy excite --check {output}")


def _for_gap(request: DesignRequest, model: EnergyModel, path: Path) -> DesignRequest:
    """The request for a trajectory that shows what a learned model lacks.

    Needs that no trajectory can show are reported.

    Args:
        request: request for any trajectory.
        model: model that was learned; its provenance lists what it lacks.
        path: path of the model, for errors.

    Raises:
        InputError: the model is of another arm, or has no such list.
    """
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


def _check(options: ExciteOptions, name: str) -> None:
    """Print whether a trajectory is safe.

    Raises:
        MotionRefusedError: the trajectory is not safe.
    """
    trajectory = _trajectory(name)
    robot = _arm_of(trajectory, name, options.robot)
    problem = DesignProblem(request_of(options, robot))
    verdict = check(trajectory, problem.limits)
    condition = problem.condition_number(trajectory)
    if options.json:
        print_json(
            {"condition_number": condition, "passed": verdict.passed, **verdict.as_dict()}
        )
    else:
        rows: list[list[str | float]] = [["condition number", condition], *_rows(verdict)]
        print_table(f"{name} ({trajectory.robot})", ["check", "value"], rows)
    if not verdict.passed:
        problems = "; ".join(verdict.problems)
        raise MotionRefusedError(f"{name}: {problems}{_other_limit(trajectory, options)}")


def _other_limit(trajectory: FourierTrajectory, options: ExciteOptions) -> str:
    """Words on a tool speed that a trajectory was designed for and the check was not."""
    if "tool_speed_limit" not in trajectory.design:
        return ""
    designed = trajectory.design["tool_speed_limit"]
    if designed is None:
        words = "without a limit of the tool speed"
    elif float(designed) > options.tool_speed:
        words = f"for a tool speed of {float(designed):g} m/s"
    else:
        return ""
    return f" (it was designed {words}; --tool-speed sets the limit of the check)"


def _arm_of(
    trajectory: FourierTrajectory, name: str, robot: str | None
) -> RobotDescription:
    """The arm of a trajectory.

    Args:
        trajectory: the trajectory.
        name: its name, for errors.
        robot: name or file of the arm that the user states; None for that of the
            trajectory.

    Raises:
        RobotFileError: the robot file is not where it was.
        InputError: the trajectory is for another arm.
    """
    try:
        description = load_robot(robot or trajectory.robot_file or trajectory.robot)
    except RobotFileError as error:
        if robot is not None:
            raise
        raise RobotFileError(
            name,
            f"is for the arm {trajectory.robot}: {error.problem}",
            "name its robot file with --robot",
        ) from None
    if (description.name, description.dof) != (trajectory.robot, trajectory.dof):
        problem = (
            f"is for a {trajectory.robot} with {trajectory.dof} joints, not for a "
            f"{description.name} with {description.dof}"
        )
        raise InputError(name, problem, "name the right robot with --robot")
    return description


def _trajectory(name: str) -> FourierTrajectory:
    """A trajectory file, or the trajectory that the package includes for a robot.

    Args:
        name: name of a file, or else of a robot, such as "ur5e".

    Raises:
        TrajectoryFileError: there is no such file, or it cannot be read.
    """
    included = config_file("excitation", f"{name.lower()}.yaml")
    if included.is_file() and not Path(name).is_file():
        return load_trajectory(included)
    return load_trajectory(name)


def _rows(verdict: TrajectoryVerdict) -> list[list[str | float]]:
    """Rows of a table from a verdict: shares of the limits, and what comes closest to what."""
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
