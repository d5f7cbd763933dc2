"""Parameters of an arm besides `identify`: `ur_energy learn`, `payload`, `base-parameters`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ur_energy_model.cli import arguments
from ur_energy_model.cli.arguments import command, option
from ur_energy_model.cli.output import note, print_json, print_table, progress, warn
from ur_energy_model.errors import InputError, WrongRobotError

if TYPE_CHECKING:
    import argparse

    from ur_energy_model.identification.base_parameter_bags import BagBaseParameters
    from ur_energy_model.identification.payload import PayloadEstimate
    from ur_energy_model.learning.learner import Learner, LearningHistory
    from ur_energy_model.model.robots import RobotDescription

# `ur_energy learn`: a model that improves over recordings, as the estimator would learn live.


@command(
    "learn",
    "learn an arm's model from recordings of its ordinary work",
    "Go through recordings as the estimator would live: fit the model again as data accumulate, "
    "and take it over only where it predicts the following minutes better. Writes the last model, "
    "and prints the history of attempts and the changes of the arm.",
    "ur_energy learn monday tuesday --robot ur5e -o model.yaml\n"
    "ur_energy learn wednesday --robot ur5e --model model.yaml -o model.yaml --json",
    (arguments.add_bags, "recordings in order of time"),
    (arguments.add_robot, "the one that the model or the bags name"),
    (
        arguments.add_path,
        "--model",
        "MODEL.yaml",
        "model to start from (default: the generic model of the arm)",
    ),
    (arguments.add_output, "MODEL.yaml", "model file to write; an existing one is kept beside it"),
    (
        arguments.add_path,
        "--figure",
        "FILE",
        "picture of errors, intervals and versions over time, PNG or SVG (default: beside the "
        "output)",
    ),
    arguments.add_json,
)
def learn(options: argparse.Namespace) -> None:
    """Learn, save and print."""
    from ur_energy_model.energy.telemetry_checks import check_joints
    from ur_energy_model.files import check_target
    from ur_energy_model.learning import learner as learning
    from ur_energy_model.learning.state import save_learned
    from ur_energy_model.model.model_file import load_model
    from ur_energy_model.model.robots import load_robot

    figure = options.figure or options.output.with_suffix(".png")
    if figure.suffix not in (".png", ".svg"):
        raise InputError("--figure", f"{figure} is neither PNG nor SVG", "end it in .png or .svg")
    for path in (options.output, figure):
        check_target(path)
    if options.robot is None and options.model is not None:
        robot = load_model(options.model).description()
    else:
        robot = load_robot(options.robot or arguments.recorded_robot(options.bags))
    first = learning.first_model(robot) if options.model is None else load_model(options.model)
    check_joints(first, robot)
    learner = learning.Learner(robot, first)
    with progress("learning") as report:
        history = learning.learn(learner, options.bags, progress=report)
    save_learned(learner.model, options.output)
    if history.attempts:
        from ur_energy_model.report.figures import save_chart
        from ur_energy_model.report.model_charts import learning_chart

        chart = learning_chart(history.attempts, robot.joint_names)
        save_chart(chart, figure.parent, formats=(figure.suffix.lstrip("."),), name=figure.stem)
    if options.json:
        print_json({"history": history.attempts, "events": history.changes})
    else:
        _print_history(history, learner)
        drawn = f", picture to {figure}" if history.attempts else ""
        note(f"model written to {options.output}{drawn}")


def _print_history(history: LearningHistory, learner: Learner) -> None:
    if not history.attempts:
        note("too little motion to learn from: the first model is tried after 20 s of work")
    print_table(
        f"{learner.robot.name}: attempts to improve the model",
        ["time [s]", "version", "error at the supply [%]", "worst joint ± [%]", "result"],
        [
            [
                f"{attempt.time:.0f}",
                attempt.version,
                attempt.supply_energy_error_percent,
                max(attempt.joint_energy_interval_percent),
                ("taken over: " if attempt.accepted else "kept: ") + attempt.reason,
            ]
            for attempt in history.attempts
        ],
    )
    for change in history.changes:
        note(change.words)
    note(
        f"model in use: version {learner.version}, learned from {learner.learned_minutes:.1f} min "
        f"of work; {learner.left_out} samples left out"
    )


# `ur_energy payload`: the payload that an arm carries, from its motor currents.


@command(
    "payload",
    "identify the payload from motor currents",
    "Identify the mass and the centre of mass (flange frame, m) of the payload in a bag from the "
    "motor currents, independent of the controller's payload setting. With a known payload, "
    "calibrate the drives instead, preferably together with a recording of the empty arm; the "
    "calibrated model then identifies other payloads more accurately.",
    "ur_energy payload model.yaml loaded_motion\n"
    "ur_energy payload model.yaml loaded_motion --empty empty_motion\n"
    "ur_energy payload model.yaml loaded_motion --known-payload 2.805 \\\n"
    "    --empty empty_motion -o calibrated.yaml",
    arguments.add_model,
    (arguments.add_bag, "recording with the payload"),
    (
        arguments.add_number,
        "--known-payload",
        None,
        "KG",
        "actual mass, to calibrate with",
        (-1000, 1000),
    ),
    (
        arguments.add_path,
        "--empty",
        "BAG",
        "recording of the same arm with an empty flange; the payload is the difference",
    ),
    (
        arguments.add_path,
        "-o --output",
        "MODEL.yaml",
        "calibrated model to write (needs --known-payload)",
    ),
    (arguments.add_robot, "the one named in the model"),
    arguments.add_json,
)
def payload(options: argparse.Namespace) -> None:
    """Identify the payload and print it."""
    from ur_energy_model.identification.payload import identify_payload, with_torque_constants
    from ur_energy_model.model.generic import is_generic
    from ur_energy_model.model.model_file import load_model, save_model
    from ur_energy_model.model.robots import load_robot

    calibrated = options.known_payload is not None
    if options.output is not None and not calibrated:
        remedy = "give the actual mass with --known-payload"
        raise InputError("-o", "there is no calibration to write", remedy)
    model = load_model(options.model)
    if is_generic(model):
        raise InputError(
            options.model,
            "is the model of an arm type, which does not have the torque constants of this arm",
            "identify a model of this arm first (ur_energy identify)",
        )
    robot = None if options.robot is None else load_robot(options.robot)
    with progress("identifying the payload") as report:
        found = identify_payload(
            model,
            options.bag,
            robot=robot,
            known_mass=options.known_payload,
            empty=options.empty,
            progress=report,
        )
    warn(found.warnings)
    if options.output is not None:
        save_model(with_torque_constants(model, found), options.output)
        note(f"calibrated model written to {options.output}")
    constants = None
    if calibrated:
        columns = (model.joints, found.torque_constants, found.torque_constants_std)
        constants = [
            {"name": joint.name, "model": joint.torque_constant, "calibrated": value, "std": std}
            for joint, value, std in zip(*columns, strict=True)
        ]
    if not options.json:
        _print_payload(found, constants)
        return
    print_json(
        {
            "mass": found.shown_mass,  # a calibration has no uncertainty of its known mass
            "std": None if calibrated else found.mass_std,
            "interval": None if calibrated else found.interval,
            "shown_mass": found.shown_mass,
            "center_of_mass": found.payload.center_of_mass,
            "center_of_mass_std": found.center_std,
            "told_mass": found.controller_mass,
            "gravity": found.gravity,
            "gravity_source": found.gravity_source,
            "torque_rms": found.torque_rms,
            "misfit": found.misfit,
            "samples": found.samples,
            **({} if constants is None else {"torque_constants": constants}),
        }
    )


def _print_payload(found: PayloadEstimate, constants: list[dict[str, Any]] | None) -> None:
    import numpy as np

    from ur_energy_model.energy.meter import CONFIDENCE

    half = CONFIDENCE * found.mass_std if constants is None else None
    center = zip("xyz", found.payload.center_of_mass, found.center_std, strict=True)
    rows = [
        ("mass [kg]", found.shown_mass, half),
        *(
            (f"centre of mass {axis} [m]", value, CONFIDENCE * std)
            for axis, value, std in center
            if np.isfinite(std)
        ),
        ("set in the controller [kg]", found.controller_mass, None),
    ]
    print_table("payload", ("", "value", "± 95 %"), rows)
    if constants is not None:
        print_table(
            "torque constants [N m/A]",
            ("joint", "model", "calibrated", "std"),
            [tuple(entry.values()) for entry in constants],
        )


# `ur_energy base-parameters`: rank, regrouping and values of an arm's base parameters.


@command(
    "base-parameters",
    "identify an arm's base parameters",
    "Identify the base parameters of an arm: rank, regrouping, weighted least squares with "
    "standard deviations, and the nearest physically consistent parameters. Torque is measured "
    "current times torque constant and gear ratio; --from target_moment uses the controller's "
    "torque instead (without friction), --from measured_torque the joint torque that an arm "
    "measures itself (actual_current_as_torque), for arms without known torque constants. Units: "
    "kg, m, N m; friction on the joint side.",
    "ur_energy base-parameters excitation --robot ur5e --validate other_motion",
    (arguments.add_bags, "recordings to fit, all together"),
    (arguments.add_robot, "the one that the bags name"),
    arguments.add_validate,
    option(
        "--from",
        dest="torque",
        choices=("current", "target_moment", "measured_torque"),
        default="current",
        help="source of the torque (default: %(default)s)",
    ),
    (
        arguments.add_path,
        "--model",
        "MODEL.yaml",
        "use the torque constants of this model (default: those of the robot file)",
    ),
    arguments.add_json,
)
def base_parameters(options: argparse.Namespace) -> None:
    """Identify and print."""
    import numpy as np

    from ur_energy_model.identification.base_parameter_bags import identify_base_parameters
    from ur_energy_model.model.model_file import load_model
    from ur_energy_model.model.robots import load_robot

    robot = load_robot(options.robot or arguments.recorded_robot(options.bags))
    constants = None
    if options.model is not None:
        model = load_model(options.model)
        if model.robot_name != robot.name:
            problem = f"is a model of a {model.robot_name}"
            raise WrongRobotError(options.model, problem, f"use a model of a {robot.name}")
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
    warn(result.warnings)
    if options.json:
        print_json(_base_parameters_json(result))
    else:
        _print_base_parameters(result, robot)


def _print_base_parameters(result: BagBaseParameters, robot: RobotDescription) -> None:
    found, verification = result.parameters, result.verification
    print_table(
        f"{found.regrouping.rank} base parameters of {robot.name}, condition number "
        f"{found.condition_number:.0f}",
        ("expression", "value", "std"),
        list(zip(found.regrouping.expressions, found.values, found.std, strict=True)),
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


def _base_parameters_json(result: BagBaseParameters) -> dict[str, Any]:
    found, verification = result.parameters, result.verification
    regrouping = found.regrouping
    columns = (regrouping.expressions, found.values, found.std, found.ordinary)
    return {
        "rank": regrouping.rank,
        "condition_number": found.condition_number,
        "parameters": [
            {"expression": text, "value": value, "std": std, "ordinary": ordinary}
            for text, value, std, ordinary in zip(*columns, strict=True)
        ],
        "normalised_error": result.normalised_error,
        "normalised_error_on": "cross-validation" if verification is None else "validation",
        "published_error": result.published_error,
        "torque_from": found.torque_source,
        "gravity": result.gravity,
        "gravity_source": result.gravity_source,
        "samples": found.samples,
        "self_verification": {"rms": found.torque_rms, "r2": found.torque_r2},
        "general_verification": None
        if verification is None
        else {"rms": verification.torque_rms, "r2": verification.torque_r2},
        "physically_consistent": {
            "parameters": dict(zip(regrouping.names, found.consistent, strict=True)),
            "rms": found.consistent_rms,
        },
    }
