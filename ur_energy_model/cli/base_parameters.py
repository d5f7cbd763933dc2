"""`ur_energy base-parameters`: rank, regrouping and values of an arm's base parameters."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ur_energy_model.cli.output import add_json_option, note, print_json, print_table, progress

_EXAMPLE = """example:
  ur_energy base-parameters excitation --robot ur5e --validate other_motion
"""


def register(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "base-parameters",
        help="identify the arm's base parameters",
        description="Identify the combinations of inertial and drive parameters that an arm's "
        "motion can show: rank, regrouping, weighted least squares with standard deviations, and "
        "the physically consistent parameters nearest to them. Torque is measured current times "
        "torque constant and gear ratio; --from target_moment takes the controller's own torque "
        "instead (no friction). Units: kg, m, N m; friction joint side.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("bags", nargs="+", type=Path, metavar="BAG", help="bags to fit")
    parser.add_argument("--robot", required=True, metavar="NAME", help="such as ur5e")
    parser.add_argument(
        "--validate",
        action="append",
        default=[],
        type=Path,
        metavar="BAG",
        help="bag to predict, not to fit (may be repeated)",
    )
    parser.add_argument(
        "--from",
        dest="torque",
        choices=("current", "target_moment"),
        default="current",
        help="where the torque comes from (default: current)",
    )
    parser.add_argument(
        "--model",
        type=Path,
        metavar="MODEL.yaml",
        help="take the torque constants of this model, not the robot file's",
    )
    add_json_option(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Identify and print."""
    import numpy as np

    from ur_energy_model.errors import WrongRobotError
    from ur_energy_model.identification.dynamics.base_parameter_bags import identify_base_parameters
    from ur_energy_model.model.file.model_file import load_model
    from ur_energy_model.model.robots import load_robot

    robot = load_robot(options.robot)
    constants = None
    if options.model is not None:
        model = load_model(options.model)
        if model.robot_name != robot.name:
            raise WrongRobotError(
                options.model, f"is of a {model.robot_name}", f"use a model of a {robot.name}"
            )
        constants = np.array([joint.torque_constant for joint in model.joints])
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
    found = result.parameters
    if options.json:
        print_json(_as_json(result))
        return 0
    rows = zip(found.regrouping.expressions, found.values, found.std, strict=True)
    print_table(
        f"{found.regrouping.rank} base parameters of {robot.name}, condition number "
        f"{found.condition_number:.0f}",
        ("expression", "value", "std"),
        list(rows),
    )
    verification = result.verification
    checks = [("fit", found.torque_rms, found.torque_r2)]
    if verification is not None:
        checks.append(("held-out", verification.torque_rms, verification.torque_r2))
    print_table(
        f"torque [N m], normalised error {result.normalised_error:.4g} N m "
        f"({'validation bags' if verification else 'cross-validated'})",
        ("joint", *(f"{name} {what}" for name, *_ in checks for what in ("RMS", "R2"))),
        [
            (name, *(value for _, rms, r2 in checks for value in (rms[j], r2[j])))
            for j, name in enumerate(robot.joint_names)
        ],
    )
    return 0


def _as_json(result: Any) -> dict[str, Any]:
    found = result.parameters
    regrouping = found.regrouping
    columns = (regrouping.expressions, found.values, found.std, found.ordinary)
    verification = result.verification
    return {
        "rank": regrouping.rank,
        "condition_number": found.condition_number,
        "parameters": [
            {"expression": text, "value": value, "std": std, "ordinary": ordinary}
            for text, value, std, ordinary in zip(*columns, strict=True)
        ],
        "normalised_error": result.normalised_error,
        "normalised_error_on": "cross-validation" if verification is None else "validation",
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
