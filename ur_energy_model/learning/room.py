# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What the room adds to the package."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ur_energy_model.cli.tables import MODELS, bags_option, json_option, robot_option
from ur_energy_model.options import option
from ur_energy_model.rooms import Command, Extension, Room


@dataclass(frozen=True, kw_only=True)
class LearnOptions:
    """Options of `ur_energy learn`."""

    bags: tuple[Path, ...] = bags_option("recordings in order of time")
    robot: str | None = robot_option("the one that the model or the bags name")
    model: Path | None = option(
        None,
        "model to start from (default: the generic model of the arm)",
        metavar="MODEL.yaml",
        holds="model",
    )
    output: Path = option(
        help="model file to write", flags=("-o", "--output"), metavar="MODEL.yaml"
    )
    figure: Path | None = option(
        None,
        "picture of errors, intervals and versions over time, PNG, SVG or PDF "
        "(default: beside the output)",
        metavar="FILE",
    )
    overwrite: bool = option(
        False,
        "replace what exists already; the earlier model is kept beside the new one",
    )
    json: bool = json_option()


@dataclass(frozen=True)
class LearningParameters:
    """Parameters that the room adds to the node `estimator`."""

    learn: Literal["off", "on", "keep"] = option(
        "on",
        "improve the model while the arm works: on uses what is learned, keep also writes it "
        "to model_file",
        launch=True,
    )


ROOM = Room(
    name="learning",
    purpose="the model that follows the arm while it works",
    requires=(),
    commands=(
        Command(
            name="learn",
            options=LearnOptions,
            run="ur_energy_model.learning.commands:learn",
            summary="learn an arm's model from recordings of its ordinary work",
            description="Go through recordings as the estimator would live: fit the model "
            "again as data accumulate, and take it over only where it predicts "
            "the following minutes better. Writes the last model, and prints "
            "the history of attempts and the changes of the arm.",
            examples=(
                "ur_energy learn monday tuesday --robot ur5e -o model.yaml",
                "ur_energy learn wednesday --model model.yaml -o model.yaml --overwrite",
            ),
            group=MODELS,
        ),
    ),
    extensions=(
        Extension(
            subject="estimator",
            provides="ur_energy_model.learning.node:LearningCompanion",
            options=LearningParameters,
        ),
    ),
    tests=("test/learning",),
    pages=("docs/learning",),
)
