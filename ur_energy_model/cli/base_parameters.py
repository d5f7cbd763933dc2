"""`ur_energy base-parameters`: rank, regrouping and values of an arm's base parameters."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ur_energy_model.cli import arguments
from ur_energy_model.cli.model_option import recorded_robot
from ur_energy_model.cli.output import note, print_json, print_table, progress

if TYPE_CHECKING:
    import argparse

    from ur_energy_model.identification.base_parameter_bags import BagBaseParameters
    from ur_energy_model.model.robots import RobotDescription
    from ur_energy_model.typing import Array


def register(subparsers: arguments.Subparsers) -> None:
    """Add the subcommand."""
    parser = arguments.add_command(
        subparsers,
        "base-parameters",
        run,
        summary="identify an arm's base parameters",
        description="Identify the base parameters of an arm: rank, regrouping, weighted least "
        "squares with standard deviations, and the nearest physically consistent parameters. "
        "Torque is measured current times torque constant and gear ratio; --from target_moment "
        "uses the controller's torque instead (without friction), --from measured_torque the joint "
        "torque that an arm measures itself (actual_current_as_torque), for arms without known "
        "torque constants. Units: kg, m, N m; friction on the joint side.",
        examples="ur_energy base-parameters excitation --robot ur5e --validate other_motion",
    )
    arguments.add_bags(parser, "recordings to fit, all together")
    arguments.add_robot(parser, "the one that the bags name")
    arguments.add_validate(parser)
    parser.add_argument(
        "--from",
        dest="torque",
        choices=("current", "target_moment", "measured_torque"),
        default="current",
        help="source of the torque (default: %(default)s)",
    )
    parser.add_argument(
        "--model",
        type=Path,
        metavar="MODEL.yaml",
        help="use the torque constants of this model (default: those of the robot file)",
    )
    arguments.add_json(parser)


def run(options: argparse.Namespace) -> None:
    """Identify and print."""
    from ur_energy_model.identification.base_parameter_bags import identify_base_parameters
    from ur_energy_model.model.robots import load_robot

    robot = load_robot(options.robot or recorded_robot(options.bags))
    constants = None if options.model is None else _torque_constants(options.model, robot)
    with progress("identifying base parameters") as report:
        result = identify_base_parameters(
            options.bags,
            robot,
            validate=options.validate,
            torque_source=options.torque,
            torque_constant=constants,
            progress=report,
        )
    for warning in result.warnings:
        note(f"warning: {warning}")
    if options.json:
        print_json(_as_json(result))
    else:
        _print(result, robot)


def _torque_constants(path: Path, robot: RobotDescription) -> Array:
    """Torque constants of a model of this robot [n], N m/A, motor side.

    Raises:
        WrongRobotError: a model of another robot.
    """
    import numpy as np

    from ur_energy_model.errors import WrongRobotError
    from ur_energy_model.model.model_file import load_model

    model = load_model(path)
    if model.robot_name != robot.name:
        raise WrongRobotError(
            path, f"is a model of a {model.robot_name}", f"use a model of a {robot.name}"
        )
    return np.array([joint.torque_constant for joint in model.joints])


def _print(result: BagBaseParameters, robot: RobotDescription) -> None:
    found, verification = result.parameters, result.verification
    rows = zip(found.regrouping.expressions, found.values, found.std, strict=True)
    print_table(
        f"{found.regrouping.rank} base parameters of {robot.name}, condition number "
        f"{found.condition_number:.0f}",
        ("expression", "value", "std"),
        list(rows),
    )
    checks = [("fit", found.torque_rms, found.torque_r2)]
    if verification is not None:
        checks.append(("held-out", verification.torque_rms, verification.torque_r2))
    print_table(
        f"torque [N m], normalised error {result.normalised_error:.4g} N m "
        f"({'validation bags' if verification else 'cross-validated'})",
        ("joint", *(f"{name} {figure}" for name, *_ in checks for figure in ("RMS", "R2"))),
        [
            (name, *(value for _, rms, r2 in checks for value in (rms[j], r2[j])))
            for j, name in enumerate(robot.joint_names)
        ],
    )
    published = result.published_error
    if published is not None:
        note(
            f"normalised error as Raviola et al. define it: {published.value:.4g} N m at "
            f"{published.points} points, {published.rate:.0f} Hz, as recorded"
        )


def _as_json(result: BagBaseParameters) -> dict[str, Any]:
    found = result.parameters
    regrouping = found.regrouping
    columns = (regrouping.expressions, found.values, found.std, found.ordinary)
    verification, published = result.verification, result.published_error
    return {
        "rank": regrouping.rank,
        "condition_number": found.condition_number,
        "parameters": [
            {"expression": text, "value": value, "std": std, "ordinary": ordinary}
            for text, value, std, ordinary in zip(*columns, strict=True)
        ],
        "normalised_error": result.normalised_error,
        "normalised_error_on": "cross-validation" if verification is None else "validation",
        "published_error": None if published is None else asdict(published),
        "torque_from": found.torque_source,
        "gravity": result.gravity,
        "gravity_source": result.gravity_source,
        "samples": found.samples,
        "self_verification": {"rms": found.torque_rms, "r2": found.torque_r2},
        "general_verification": None
        if verification is None
        else {"rms": verification.torque_rms, "r2": verification.torque_r2},
        "physically_consistent": {
            "parameters": dict(zip(regrouping.names, found.consistent.tolist(), strict=True)),
            "rms": found.consistent_rms,
        },
    }
