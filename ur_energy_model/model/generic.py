# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Generic models: the prior of an arm not yet identified.

config/models contains a model of each arm type, made by `python -m tools.generic_models`. Its
standard deviations are the spread between arms of the type; docs/generic_models.md states
their sources.
"""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from pathlib import Path

from ur_energy_model.errors import ModelFileError
from ur_energy_model.files import config_file
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.model_file import load_model
from ur_energy_model.model.robots import RobotDescription, load_robot

GENERIC = "generic"
"""`model` in JSON output if no file was given, and `origin` in the provenance of such a
model."""


def generic_models() -> tuple[str, ...]:
    """Names of the robots that have a generic model."""
    return tuple(sorted(path.stem for path in config_file("models").glob("*.yaml")))


def generic_model(robot: str | RobotDescription) -> EnergyModel:
    """The generic model of an arm type: mounted upright, without payload.

    Args:
        robot: description of the arm, or its name ("ur5e").

    Raises:
        RobotFileError: no such robot.
        ModelFileError: the robot has no generic model, as robots of the user's files.
    """
    description = load_robot(robot) if isinstance(robot, str) else robot
    known = generic_models()
    # A file of the user may describe another arm under a known name.
    if description.source not in known:
        problem = f"this robot has no generic model, only {', '.join(known)} have one"
        remedy = "identify a model of it (ur_energy identify) and give that"
        raise ModelFileError(description.source or description.name, problem, remedy)
    return deepcopy(_of_package(config_file("models", f"{description.source}.yaml")))


@cache
def _of_package(path: Path) -> EnergyModel:
    """A model that comes with the package, read once; callers may change their copies."""
    return load_model(path)


def is_generic(model: EnergyModel) -> bool:
    """Whether a model is a generic one of the package."""
    return model.provenance.get("origin") == GENERIC


def model_words(model: EnergyModel, path: str | Path | None) -> str:
    """The model in words: "generic ur5e, not identified", or the path of its file."""
    if path is None or is_generic(model):
        return f"generic {model.robot_name}, not identified"
    return str(path)


def model_entry(path: str | Path | None) -> str:
    """`model` in JSON output: the path of the model file, "generic" without one."""
    return GENERIC if path is None else str(path)
