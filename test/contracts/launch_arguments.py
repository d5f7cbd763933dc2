# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Prints the arguments of launch files as JSON, with a stand-in for launch and launch_ros."""

import json
import runpy
import sys
from pathlib import Path
from types import ModuleType
from typing import Any


class StandIn:
    """Any class of launch or launch_ros; keeps what it was made with."""

    def __init__(self, *words: Any, **named: Any) -> None:
        self.words = words
        self.named = named


class StandInModule(ModuleType):
    """Has every class."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        setattr(self, name, type(name, (StandIn,), {}))
        return getattr(self, name)


for module in ("launch", "launch_ros"):
    for below in (
        "",
        ".actions",
        ".conditions",
        ".events",
        ".events.process",
        ".substitutions",
    ):
        sys.modules[module + below] = StandInModule(module + below)


def declared(value: Any) -> list[Any]:
    """Each argument that is declared anywhere in a description: name, default, choices."""
    if isinstance(value, (list, tuple)):
        return [argument for each in value for argument in declared(each)]
    if not isinstance(value, StandIn):
        return []
    if type(value).__name__ != "DeclareLaunchArgument":
        return declared([*value.words, *value.named.values()])
    default = value.named.get("default_value")
    choices = value.named.get("choices")
    described = bool(value.named.get("description"))
    return [
        (value.words[0], {"default": default, "choices": choices, "described": described})
    ]


files = {}
for path in map(Path, sys.argv[1:]):
    description = runpy.run_path(str(path))["generate_launch_description"]()
    files[path.name] = dict(declared(description))
print(json.dumps(files))
