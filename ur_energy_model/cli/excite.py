"""`ur_energy excite`: exciting trajectories designed, checked, exported and executed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ur_energy_model.cli import arguments
from ur_energy_model.cli.excite_options import (
    add_design_options,
    add_execution_options,
    add_surroundings,
    add_tool_speed,
    check_execution,
    request_of,
)
from ur_energy_model.cli.output import note, print_json, print_table, progress

if TYPE_CHECKING:
    import argparse

    from ur_energy_model.experiment.design import Design
    from ur_energy_model.experiment.design_problem import DesignRequest
    from ur_energy_model.experiment.limits import TrajectoryVerdict
    from ur_energy_model.model.energy_model import EnergyModel
    from ur_energy_model.trajectory.fourier import FourierTrajectory

_EXAMPLES = """\
ur_energy excite --robot ur5e -o trajectory.yaml
ur_energy excite --for-gap model.yaml -o gap.yaml
ur_energy excite --check trajectory.yaml
ur_energy excite --execute trajectory.yaml --host 192.168.56.101 -o cell_3
ur_energy excite --export trajectory.yaml -o trajectory.script
"""
_NOTES = """\
The package includes checked trajectories: --execute ur5e runs the UR5e's.
Walls are given in the base frame: --wall NX NY NZ OFFSET keeps the arm where
NX x + NY y + NZ z > OFFSET, so --wall -1 0 0 -0.6 is a wall at x = 0.6 m."""


def register(subparsers: arguments.Subparsers) -> None:
    """Add the subcommand."""
    parser = arguments.add_command(
        subparsers,
        "excite",
        run,
        summary="design and run a trajectory that excites all parameters",
        description="Design a Fourier trajectory that makes the parameters of an arm identifiable, "
        "check it, export it, or run and record it. Only --execute moves a robot.",
        examples=_EXAMPLES,
        notes=_NOTES,
    )
    action = parser.add_mutually_exclusive_group()
    action.add_argument(
        "--robot",
        metavar="NAME",
        help="design a trajectory for this robot (default: that of --for-gap)",
    )
    action.add_argument(
        "--execute",
        metavar="TRAJECTORY",
        help="run a trajectory (a file, or the included one of a robot) and record it",
    )
    action.add_argument(
        "--check", metavar="TRAJECTORY", help="check a trajectory without moving a robot"
    )
    action.add_argument(
        "--export",
        metavar="TRAJECTORY",
        help="write a trajectory as URScript (.script) or as a table (.csv)",
    )
    parser.add_argument(
        "-o", "--output", type=Path, metavar="PATH", help="trajectory, bag or export to write"
    )
    add_design_options(parser.add_argument_group("design"))
    surroundings = parser.add_argument_group("surroundings")
    add_surroundings(surroundings)
    add_tool_speed(surroundings)
    execution = parser.add_argument_group("execution")
    add_execution_options(execution)
    arguments.add_number(
        execution, "--speed-fraction", 1.0, "F", "share of the designed speed", (0, 1)
    )
    arguments.add_json(parser)
    parser.set_defaults(parser=parser)


def run(options: argparse.Namespace) -> None:
    """Design, check, export or execute."""
    check_execution(options, "BAG")
    actions = (options.robot, options.for_gap, options.execute, options.check, options.export)
    if not any(actions):
        options.parser.error("give --robot NAME to design, or --execute, --check or --export")
    if options.execute is not None:
        _execute(options)
    elif options.check is not None:
        _check(options)
    elif options.output is None:
        options.parser.error("-o PATH is required")
    elif options.export is not None:
        _export(options)
    else:
        _design(options)


def _design(options: argparse.Namespace) -> None:
    from ur_energy_model.experiment.design import design_trajectory, genetic_search
    from ur_energy_model.files import check_target
    from ur_energy_model.model.model_file import load_model
    from ur_energy_model.trajectory.fourier import save_trajectory

    check_target(options.output)
    if options.for_gap is None:
        request = request_of(options, options.robot)
    else:
        model = load_model(options.for_gap)
        request = request_of(options, options.robot or model.robot_name)
        request = _for_gap(request, model, options.for_gap)
    with progress(f"designing for {request.robot.name}, at most {options.time_limit:g} s") as bar:
        if options.optimizer == "genetic":
            design = genetic_search(
                request,
                population=options.population,
                generations=options.generations,
                time_limit=options.time_limit,
                progress=bar,
            )
        else:
            design = design_trajectory(request, time_limit=options.time_limit, progress=bar)
    save_trajectory(options.output, design.trajectory)
    if options.json:
        print_json(design.figures() | _shown(design))
    else:
        _print_design(design)
        note(f"wrote {options.output}; check it with: ur_energy excite --check {options.output}")


def _for_gap(request: DesignRequest, model: EnergyModel, path: Path) -> DesignRequest:
    """The request for what a learned model lacks; reports what no trajectory can show."""
    from ur_energy_model.errors import InputError
    from ur_energy_model.experiment.design_problem import gaps_among, needs_of

    if model.robot_name != request.robot.name:
        raise InputError(
            path, f"is of a {model.robot_name}, not a {request.robot.name}", "change --robot"
        )
    needs = needs_of(model, path)
    gaps = gaps_among(needs, request.robot, path)
    covered = {gap.joint for gap in gaps}
    for need in needs:
        place = "the trajectory shows" if need.joint in covered else "no trajectory shows"
        note(f"{place}: {need.words}")
    return replace(request, gaps=gaps, objective="energy")


def _shown(design: Design) -> dict[str, Any]:
    """What the trajectory shows of the gap that it was designed for."""
    shown = design.trajectory.design.get("for_gap")
    return {} if shown is None else {"for_gap": shown}


def _check(options: argparse.Namespace) -> None:
    from ur_energy_model.errors import MotionRefusedError
    from ur_energy_model.experiment.design_problem import DesignProblem
    from ur_energy_model.experiment.limits import check

    trajectory = _trajectory(options.check)
    problem = DesignProblem(request_of(options, trajectory.robot))
    verdict = check(trajectory, problem.limits)
    condition = problem.condition_number(trajectory)
    if options.json:
        print_json({"condition_number": condition, "passed": verdict.passed, **verdict.as_dict()})
    else:
        rows: list[list[str | float]] = [["condition number", condition], *_rows(verdict)]
        print_table(f"{options.check} ({trajectory.robot})", ["check", "value"], rows)
    if not verdict.passed:
        raise MotionRefusedError(f"{options.check}: {'; '.join(verdict.problems)}")


def _export(options: argparse.Namespace) -> None:
    from ur_energy_model.experiment.motion_process import export_trajectory
    from ur_energy_model.model.robots import load_robot

    trajectory = _trajectory(options.export)
    export_trajectory(options.output, trajectory, load_robot(trajectory.robot).rate)
    if options.json:
        print_json({"output": str(options.output), "duration": trajectory.duration})
    else:
        note(f"wrote {options.output}")


def _execute(options: argparse.Namespace) -> None:
    from ur_energy_model.cli.run_trajectory import run_and_report
    from ur_energy_model.experiment.design_problem import limits_of
    from ur_energy_model.experiment.execution_plan import ExecutionPlan
    from ur_energy_model.experiment.same_arm import arm_of_plan

    if not 0 < options.speed_fraction <= 1:
        options.parser.error("--speed-fraction must be above 0 and at most 1")
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
    run_and_report(plan, options.host, options.output, assume_yes=options.yes, as_json=options.json)


def _trajectory(name: str) -> FourierTrajectory:
    """A trajectory file, or the trajectory that the package includes for a robot."""
    from ur_energy_model.files import config_file
    from ur_energy_model.trajectory.fourier import load_trajectory

    included = config_file("excitation", f"{name.lower()}.yaml")
    return load_trajectory(included if included.is_file() and not Path(name).is_file() else name)


def _print_design(design: Design) -> None:
    rows: list[list[str | float]] = [
        ["condition number of the base regressor", design.condition_number]
    ]
    for gap in _shown(design).get("for_gap", []):
        low, high = gap["speed_range"]
        rows.append([f"{gap['joint']} at {low:.2g} to {high:.2g} rad/s, s", gap["seconds"]])
    if design.objective != "condition":
        rows.append([f"objective ({design.objective})", design.value])
    rows += _rows(design.verdict)
    rows += [["descents tried", design.starts], ["seconds", design.seconds]]
    print_table(f"Exciting trajectory for {design.trajectory.robot}", ["figure", "value"], rows)


def _rows(verdict: TrajectoryVerdict) -> list[list[str | float]]:
    """Rows of a table from a verdict."""
    return [
        ["maximum share of the joint position limits", verdict.max_position_ratio],
        ["maximum share of the joint velocity limits", verdict.max_velocity_ratio],
        ["maximum share of the joint acceleration limits", verdict.max_acceleration_ratio],
        ["maximum share of the joint torque limits, no friction", verdict.max_torque_ratio],
        ["maximum speed of flange and elbow, m/s", verdict.max_tool_speed],
        [f"clearance, m: {' to '.join(verdict.closest)}", verdict.clearance],
    ]
