# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Kinds of files on the command line: a model in place of a recording, and the reverse.

The tables of commands state what a path holds (`Option.holds`); a path that is plainly of
another kind is refused before anything is read, with what to give instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ur_energy_model.cli.options import options_of_tables
from ur_energy_model.cli.parser import Call, command_tables
from ur_energy_model.errors import InputError
from ur_energy_model.files import is_recording
from ur_energy_model.options import Option

_CSV_SUFFIXES = (".csv", ".csv.gz", ".txt")
_MODELS = ("model", "trajectory")


class StatedPath(NamedTuple):
    """A path of the command line.

    Attributes:
        option: option whose value the path is.
        path: the path as it was typed.
    """

    option: Option
    path: Path


def check_kinds(call: Call) -> None:
    """Refuse a model where a recording is expected, and the reverse.

    Only the name of a path and the type of the file decide; no content is read.

    Args:
        call: a command with its options.

    Raises:
        InputError: a path is of another kind than its option takes.
    """
    recordings: list[Path] = []
    models: list[StatedPath] = []
    for each in _stated_paths(call):
        path = each.path
        holds = each.option.holds
        if holds == "csv" and is_recording(path):
            raise InputError(path, "is a bag already", "use it as it is")
        if holds == "recording":
            recordings.append(path)
        elif holds in _MODELS:
            models.append(each)
    for path in [*recordings, *[each.path for each in models]]:
        if path.name == "metadata.yaml" and path.is_file():
            remedy = f"name the folder of the bag: {path.parent}"
            raise InputError(path, "is a file of a bag", remedy)
    for each in models:
        others = [other.path for other in models if other.path is not each.path]
        _check_model(call, each, [*recordings, *others])
    for path in recordings:
        alone = len(recordings) == 1 and not models
        _check_recording(path, bag_is_missing=alone and "model" in call.values)


def _stated_paths(call: Call) -> list[StatedPath]:
    """The paths of a command line whose kind matters."""
    found: list[StatedPath] = []
    for option in options_of_tables(command_tables(call.command)):
        if option.holds:
            value = call.values[option.name]
            paths = value if isinstance(value, tuple) else (value,)
            found += [StatedPath(option, path) for path in paths if path is not None]
    return found


def _check_model(call: Call, stated: StatedPath, others: Sequence[Path]) -> None:
    """Refuse a recording in place of a model or trajectory.

    An optional argument MODEL.yaml may be a recording: then the model was left out. A
    model behind the recording is a usage error.

    Args:
        call: a command with its options.
        stated: path in place of a model or trajectory.
        others: all other paths whose kind matters.

    Raises:
        InputError: the path is a recording, and the option is not optional.
    """
    option = stated.option
    path = stated.path
    recorded = is_recording(path)
    is_no_model = recorded or path.suffix == ".csv"
    model_follows = any(_is_yaml(other) for other in others)
    if option.name == "model" and is_no_model and model_follows:
        call.given.refuse(f"the model comes first, then {path}")
    may_be_left_out = option.positional and option.default is None
    if recorded and not may_be_left_out:
        raise InputError(path, "is a recording", f"give {option.metavar} instead")


def _check_recording(path: Path, *, bag_is_missing: bool) -> None:
    """Refuse a model or a table in place of a recording.

    Args:
        path: path that was given in place of a recording.
        bag_is_missing: whether the command line has no other path, so that the user has
            given the model alone.

    Raises:
        InputError: the path is a model or a table.
    """
    if not path.is_file():
        return
    if _is_yaml(path):
        remedy = "the bag is missing, add it" if bag_is_missing else "give a bag"
        raise InputError(path, "is a model or robot file, not a recording", remedy)
    if path.name.endswith(_CSV_SUFFIXES):
        remedy = "make a bag of a CSV file with: ur_energy import"
        raise InputError(path, "is no bag", remedy)


def _is_yaml(path: Path) -> bool:
    """Whether the name of a file ends like the name of a model or robot file."""
    return path.suffix in (".yaml", ".yml")
