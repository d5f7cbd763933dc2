# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""`ur_energy learn`: a model that improves over recordings, as the estimator learns live."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ur_energy_model.cli.output import (
    note,
    print_json,
    print_line,
    print_objects,
    progress,
)
from ur_energy_model.energy.matched_model import check_joints
from ur_energy_model.errors import InputError
from ur_energy_model.files import check_output
from ur_energy_model.learning.charts import learning_chart
from ur_energy_model.learning.history import Attempt, Change
from ur_energy_model.learning.learner import Learner, first_model
from ur_energy_model.learning.recordings import learn_from_bags
from ur_energy_model.learning.room import LearnOptions
from ur_energy_model.learning.state import save_learned
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.model_file import load_model
from ur_energy_model.model.robots import RobotDescription, load_robot
from ur_energy_model.report.figures import save_chart
from ur_energy_model.rooms import Given
from ur_energy_model.telemetry.bag.reader import recorded_robot


def learn(given: Given) -> None:
    """Learn from recordings, save the last model, and print the history of attempts.

    Raises:
        UrEnergyError: a recording, the model or the robot cannot be used, or an output
            exists.
    """
    options = given.of(LearnOptions)
    figure = _checked_figure(options)
    robot, first = _arm_and_first_model(options)
    learner = Learner(robot, first)
    with progress("learning") as report:
        attempts, changes = learn_from_bags(learner, options.bags, progress=report)
    save_learned(learner.model, options.output)
    if attempts:
        chart = learning_chart(attempts, robot.joint_names)
        form = figure.suffix.lstrip(".")
        save_chart(chart, figure.parent, formats=(form,), name=figure.stem)
    if options.json:
        print_json({"history": attempts, "events": changes})
        return
    _print_history(learner, attempts, changes)
    drawn = f", picture to {figure}" if attempts else ""
    note(f"model written to {options.output}{drawn}")


def _checked_figure(options: LearnOptions) -> Path:
    """The file of the picture, after all outputs were checked.

    Raises:
        InputError: the picture is neither PNG, SVG nor PDF, or an output exists.
    """
    figure = options.figure or options.output.with_suffix(".png")
    if figure.suffix not in (".png", ".svg", ".pdf"):
        problem = f"{figure} is neither PNG, SVG nor PDF"
        raise InputError("--figure", problem, "end it in .png, .svg or .pdf")
    for path in (options.output, figure):
        check_output(path, overwrite=options.overwrite)
    return figure


def _arm_and_first_model(options: LearnOptions) -> tuple[RobotDescription, EnergyModel]:
    """The arm that was recorded, and the model that learning begins with.

    Raises:
        UrEnergyError: no file and no recording names the arm, or the model is of another
            arm.
    """
    if options.model is None:
        robot = load_robot(options.robot or recorded_robot(options.bags))
        return robot, first_model(robot)
    first = load_model(options.model)
    robot = first.description()
    if options.robot is not None:
        robot = load_robot(options.robot)
    check_joints(first, robot)
    return robot, first


def _print_history(
    learner: Learner, attempts: Sequence[Attempt], changes: Sequence[Change]
) -> None:
    """Print the attempts to improve the model, the changes of the arm, and the model in use."""
    if not attempts:
        note(
            "too little motion to learn from: the first model is tried after 20 s of work"
        )
    print_objects(
        f"{learner.robot.name}: attempts to improve the model",
        attempts,
        {
            "time [s]": lambda each: f"{each.time:.0f}",
            "version": "version",
            "error at the supply [%]": "supply_energy_error_percent",
            "worst joint ± [%]": lambda each: max(each.joint_energy_interval_percent),
            "result": lambda each: (
                f"{'taken over' if each.accepted else 'kept'}: {each.reason}"
            ),
        },
    )
    for change in changes:
        print_line(change.words)
    print_line(
        f"model in use: version {learner.version}, learned from {learner.learned_minutes:.1f} min "
        f"of work; {learner.left_out} samples left out"
    )
