# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""`ur_energy learn`: a model that improves over recordings, as the estimator learns live."""

from __future__ import annotations

from ur_energy_model.cli.output import (
    note,
    print_json,
    print_line,
    print_objects,
    progress,
)
from ur_energy_model.energy.telemetry_checks import check_joints
from ur_energy_model.errors import InputError
from ur_energy_model.files import check_output
from ur_energy_model.learning import learner as learning
from ur_energy_model.learning.charts import learning_chart
from ur_energy_model.learning.room import LearnOptions
from ur_energy_model.learning.state import save_learned
from ur_energy_model.model.model_file import load_model
from ur_energy_model.model.robots import load_robot
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
    figure = options.figure or options.output.with_suffix(".png")
    if figure.suffix not in (".png", ".svg"):
        raise InputError(
            "--figure", f"{figure} is neither PNG nor SVG", "end it in .png or .svg"
        )
    for path in (options.output, figure):
        check_output(path, overwrite=options.overwrite)
    if options.robot is None and options.model is not None:
        robot = load_model(options.model).description()
    else:
        robot = load_robot(options.robot or recorded_robot(options.bags))
    first = (
        learning.first_model(robot)
        if options.model is None
        else load_model(options.model)
    )
    check_joints(first, robot)
    learner = learning.Learner(robot, first)
    with progress("learning") as report:
        attempts, changes = learning.learn(learner, options.bags, progress=report)
    save_learned(learner.model, options.output)
    if attempts:
        chart = learning_chart(attempts, robot.joint_names)
        save_chart(
            chart, figure.parent, formats=(figure.suffix.lstrip("."),), name=figure.stem
        )
    if options.json:
        print_json({"history": attempts, "events": changes})
        return
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
                ("taken over: " if each.accepted else "kept: ") + each.reason
            ),
        },
    )
    for change in changes:
        print_line(change.words)
    print_line(
        f"model in use: version {learner.version}, learned from {learner.learned_minutes:.1f} min "
        f"of work; {learner.left_out} samples left out"
    )
    drawn = f", picture to {figure}" if attempts else ""
    note(f"model written to {options.output}{drawn}")
