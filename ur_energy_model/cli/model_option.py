"""The model of a subcommand: a file, or without one the generic model of the arm."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ur_energy_model.errors import InputError, RecordingError, WrongRobotError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from ur_energy_model.model.energy_model import EnergyModel

_BAG_SUFFIXES = {".mcap", ".db3"}


@dataclass(frozen=True)
class ChosenModel:
    """The model of a subcommand.

    Attributes:
        model: of the arm.
        path: its file; None for the generic model.
    """

    model: EnergyModel
    path: Path | None

    @property
    def entry(self) -> str:
        """`model` in JSON output: the path, or "generic"."""
        from ur_energy_model.model.generic import model_entry

        return model_entry(self.path)

    @property
    def words(self) -> str:
        """The model in words, for people."""
        from ur_energy_model.model.generic import model_words

        return model_words(self.model, self.path)


def add_optional_model(parser: argparse.ArgumentParser) -> None:
    """MODEL.yaml, which may be left out, and `--robot`.

    Call it before the other positional arguments are added.
    """
    parser.add_argument(
        "model",
        nargs="?",
        type=Path,
        metavar="MODEL.yaml",
        help="identified model (default: the generic one of --robot)",
    )
    parser.add_argument(
        "--robot",
        metavar="NAME",
        help="name of the robot, such as ur5e (default: the one of the model, or of the bag)",
    )


def chosen_model(
    model: Path | None, robot: str | None, recordings: Sequence[Path] = ()
) -> ChosenModel:
    """The model of a subcommand.

    Args:
        model: its file; None for the generic model.
        robot: name of the robot, or None.
        recordings: bags that may name the robot.

    Raises:
        InputError: no such model or robot, the model of another robot, or nothing names the robot.
    """
    from ur_energy_model.model.generic import generic_model
    from ur_energy_model.model.model_file import load_model
    from ur_energy_model.model.robots import load_robot

    if model is None:
        return ChosenModel(generic_model(robot or recorded_robot(recordings)), None)
    loaded = load_model(model)
    if robot is not None and load_robot(robot).name != loaded.robot_name:
        raise WrongRobotError(
            model,
            f"is a model of a {loaded.robot_name}, not of a {load_robot(robot).name}",
            "leave out --robot, or give another model",
        )
    return ChosenModel(loaded, model)


def split_model(model: Path | None, bags: Sequence[Path]) -> tuple[Path | None, list[Path]]:
    """A model that may have been left out, so that the first bag took its place, and the bags."""
    if model is not None and (model.is_dir() or model.suffix in _BAG_SUFFIXES):
        return None, [model, *bags]
    return model, list(bags)


def recorded_robot(recordings: Sequence[Path]) -> str:
    """The robot that the first readable recording names.

    Raises:
        InputError: none names it, or none can be read.
    """
    from ur_energy_model.telemetry.bag.reader import read_info

    source: Path | str = "--robot"
    for bag in recordings:
        try:
            name = read_info(bag).robot
        except RecordingError:  # one of several may be damaged
            if bag == recordings[-1]:
                raise
            continue
        if name is not None:
            return name
        source = bag
    raise InputError(
        source,
        "does not name the robot" if recordings else "is missing, and there is no model",
        "give --robot NAME, such as --robot ur5e, or a model file",
    )
