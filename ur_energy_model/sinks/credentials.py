# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The file of credentials: YAML, with a section for each kind of sink that needs secrets.

    mqtt:
      username: cell7
      password: a long one

Secrets are never on the command line, where every user of the machine reads them. What a
section holds, and which variables of the environment complete it, is stated by the kind
of sink (`SinkKind.secrets`) in a chapter `credentials` of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ur_energy_model.errors import InputError
from ur_energy_model.files import user_path
from ur_energy_model.sinks.options import sink_kinds
from ur_energy_model.yaml_reader import Record, YamlTree, text

T = TypeVar("T")
REMEDY = "correct the line; docs/live.md shows the file"


def read_section(path: Path, name: str, read: Callable[[YamlTree], T], without: T) -> T:
    """The section of one kind of sink.

    The other sections are not read, but their names must be names of kinds that are
    there. The section of a kind that is not installed, or a misspelt name, is refused
    rather than
    ignored: a sink would otherwise work without the secrets that its user has stated.

    Args:
        path: the file.
        name: name of the section.
        read: makes what is returned from the section, and refuses what is wrong in it.
        without: what is returned where the file does not have the section.

    Raises:
        InputError: the file cannot be used; the message names the line.
    """
    sections = [kind.secrets for kind in sink_kinds() if kind.secrets is not None]
    with Record(YamlTree.read(path, InputError, REMEDY)) as keys:
        for section in sections:
            keys.get(section)
        return keys.read(name, read, without)


def existing_file(tree: YamlTree) -> Path:
    """The path of a file, which begins at the folder of the credentials unless absolute.

    Raises:
        InputError: there is no such file.
    """
    file = tree.origin.file.parent / user_path(text(tree))
    if not file.is_file():
        raise tree.refuse(f"{file} is not a file")
    return file
