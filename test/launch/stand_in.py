"""A stand-in for launch and launch_ros that says what a launch file starts, without starting it."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from ur_energy_model.files import share_directory


class Context(NamedTuple):
    """Values of all launch arguments."""

    launch_configurations: Mapping[str, str]


class DeclareLaunchArgument(NamedTuple):
    name: str
    default_value: str | None = None
    description: str = ""
    choices: list[str] | None = None


class OpaqueFunction(NamedTuple):
    function: Callable[[Context], list[Any]]


class LogInfo(NamedTuple):
    msg: str


class LaunchDescription(NamedTuple):
    entities: list[Any]


class StartedNode:
    """A node that a launch file starts; `parameter_files` come before `parameters`."""

    def __init__(
        self,
        *,
        package: str,
        executable: str,
        namespace: str,
        output: str,
        name: str = "",
        respawn: bool = False,
        respawn_delay: float | None = None,
        parameters: tuple[Any, ...] = (),
        arguments: tuple[str, ...] = (),
        ros_arguments: tuple[str, ...] = (),
        on_exit: object = None,
    ) -> None:
        self.package, self.executable, self.name = package, executable, name
        self.namespace, self.output = namespace, output
        self.respawn, self.respawn_delay = respawn, respawn_delay
        kinds = [isinstance(source, dict) for source in parameters]
        assert kinds == sorted(kinds), "files come first: later parameters win"
        self.parameter_files = tuple(
            Path(each) for each in parameters if not isinstance(each, dict)
        )
        values = [each for each in parameters if isinstance(each, dict)]
        self.parameters = {name: value for each in values for name, value in each.items()}
        self.arguments, self.ros_arguments = tuple(arguments), tuple(ros_arguments)


MODULES: dict[str, dict[str, type]] = {
    "launch": {"LaunchContext": object, "LaunchDescription": LaunchDescription},
    "launch.events": {},
    "launch.events.process": {"ProcessExited": object},
    "launch.actions": {
        each.__name__: each for each in (DeclareLaunchArgument, LogInfo, OpaqueFunction)
    },
    "launch_ros": {},
    "launch_ros.actions": {"Node": StartedNode},
}
SHARED = "ur_energy_model.nodes.launch_actions"
"""The module that uses launch_ros for all launch files."""


def launch_file(name: str) -> Path:
    """Path of launch/<name>.launch.py."""
    return share_directory() / "launch" / f"{name}.launch.py"


def launch_description(path: Path) -> LaunchDescription:
    """What a launch file describes."""
    with pytest.MonkeyPatch.context() as patch:
        for name, classes in MODULES.items():
            module = ModuleType(name)
            vars(module).update(classes)
            patch.setitem(sys.modules, name, module)
        patch.setitem(sys.modules, SHARED, None)  # the patch restores what was there before
        del sys.modules[SHARED]
        return runpy.run_path(str(path))["generate_launch_description"]()


def actions(path: Path, **arguments: str) -> tuple[list[StartedNode], list[str]]:
    """Nodes that a launch file starts with these arguments, and lines that it writes.

    Raises:
        ValueError: an argument that the launch file refuses.
    """
    entities = launch_description(path).entities
    declared = {each.name: each for each in entities if isinstance(each, DeclareLaunchArgument)}
    assert set(arguments) <= set(declared)
    values: dict[str, str] = {}
    for name, each in declared.items():
        value = arguments.get(name, each.default_value)
        assert value is not None, f"{name} must be given"
        if each.choices and value not in each.choices:
            raise ValueError(f"{name}:={value} is not one of {each.choices}")
        values[name] = value
    functions = [each.function for each in entities if isinstance(each, OpaqueFunction)]
    found = [action for function in functions for action in function(Context(values))]
    nodes = [each for each in found if isinstance(each, StartedNode)]
    return nodes, [each.msg for each in found if isinstance(each, LogInfo)]
