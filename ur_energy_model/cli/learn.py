"""`ur_energy learn`: a model that improves over recordings, as the estimator would learn live."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ur_energy_model.cli import arguments
from ur_energy_model.cli.model_option import recorded_robot
from ur_energy_model.cli.output import note, print_json, print_table, progress
from ur_energy_model.errors import InputError

if TYPE_CHECKING:
    import argparse

    from ur_energy_model.learning.learner import Learner, LearningHistory
    from ur_energy_model.model.energy_model import EnergyModel
    from ur_energy_model.model.robots import RobotDescription

_FORMATS = ("png", "svg")


def register(subparsers: arguments.Subparsers) -> None:
    """Add the subcommand."""
    parser = arguments.add_command(
        subparsers,
        "learn",
        run,
        summary="learn an arm's model from recordings of its ordinary work",
        description="Go through recordings as the estimator would live: fit the model again as "
        "data accumulate, and take it over only where it predicts the following minutes better. "
        "Writes the last model, and prints the history of attempts and the changes of the arm.",
        examples="ur_energy learn monday tuesday --robot ur5e -o model.yaml\n"
        "ur_energy learn wednesday --robot ur5e --model model.yaml -o model.yaml --json",
    )
    arguments.add_bags(parser, "recordings in order of time")
    arguments.add_robot(parser, "the one that the model or the bags name")
    parser.add_argument(
        "--model",
        type=Path,
        metavar="MODEL.yaml",
        help="model to start from (default: the generic model of the arm)",
    )
    arguments.add_output(
        parser, "MODEL.yaml", "model file to write; an existing one is kept beside it"
    )
    parser.add_argument(
        "--figure",
        type=Path,
        metavar="FILE",
        help="picture of errors, intervals and versions over time, PNG or SVG (default: beside "
        "the output)",
    )
    arguments.add_json(parser)


def run(options: argparse.Namespace) -> None:
    """Learn, save and print."""
    from ur_energy_model.files import check_target
    from ur_energy_model.learning.learner import Learner, learn
    from ur_energy_model.learning.state import save_learned
    from ur_energy_model.model.model_file import load_model
    from ur_energy_model.model.robots import load_robot

    figure = options.figure or options.output.with_suffix(".png")
    if figure.suffix.lstrip(".") not in _FORMATS:
        raise InputError("--figure", f"{figure} is neither PNG nor SVG", "end it in .png or .svg")
    for path in (options.output, figure):
        check_target(path)
    if options.robot is None and options.model is not None:
        robot = load_model(options.model).description()
    else:
        robot = load_robot(options.robot or recorded_robot(options.bags))
    learner = Learner(robot, _first_model(robot, options.model))
    with progress("learning") as report:
        history = learn(learner, options.bags, progress=report)
    save_learned(learner.model, options.output)
    drawn = _draw(history, learner, figure)
    if options.json:
        print_json({"history": history.attempts, "events": history.changes})
    else:
        _print(history, learner)
        note(f"model written to {options.output}" + (f", picture to {figure}" if drawn else ""))


def _first_model(robot: RobotDescription, path: Path | None) -> EnergyModel:
    """The model of a file; without one the generic model, or that of the robot file."""
    from ur_energy_model.energy.telemetry_checks import check_joints
    from ur_energy_model.learning.learner import first_model
    from ur_energy_model.model.model_file import load_model

    model = first_model(robot) if path is None else load_model(path)
    check_joints(model, robot)
    return model


def _draw(history: LearningHistory, learner: Learner, path: Path) -> bool:
    """Draw the picture; False without attempts."""
    from ur_energy_model.errors import optional_import

    if not history.attempts:
        return False
    with optional_import():
        from ur_energy_model.report.figures import save_chart
        from ur_energy_model.report.model_charts import learning_chart

        chart = learning_chart(history.attempts, learner.robot.joint_names)
        save_chart(chart, path.parent, formats=(path.suffix.lstrip("."),), name=path.stem)
    return True


def _print(history: LearningHistory, learner: Learner) -> None:
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
