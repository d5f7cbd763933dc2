"""A stand-in for launch and launch_ros that says what a launch file starts, without starting it."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ur_energy_model.files import share_directory


@dataclass(frozen=True)
class Context:
    """Values of all launch arguments."""

    launch_configurations: Mapping[str, str]


@dataclass(frozen=True)
class DeclareLaunchArgument:
    name: str
    default_value: str | None = None
    description: str = ""
    choices: list[str] | None = None


@dataclass(frozen=True)
class OpaqueFunction:
    function: Callable[[Context], list[Any]]


@dataclass(frozen=True)
class LogInfo:
    msg: str


@dataclass(frozen=True)
class LaunchDescription:
    entities: list[Any]


@dataclass(frozen=True)
class Node:
    package: str
    executable: str
    namespace: str
    output: str
    name: str = ""
    respawn: bool = False
    respawn_delay: float | None = None
    parameters: list[Any] = field(default_factory=list)
    arguments: list[Any] = field(default_factory=list)
    ros_arguments: list[Any] = field(default_factory=list)
    on_exit: Callable[[Any, Context], None] | None = None


class LaunchContext:
    """Only a name in annotations."""


class ProcessExited:
    """The same."""


MODULES = {
    "launch": (LaunchContext, LaunchDescription),
    "launch.events": (),
    "launch.events.process": (ProcessExited,),
    "launch.actions": (DeclareLaunchArgument, LogInfo, OpaqueFunction),
    "launch_ros": (),
    "launch_ros.actions": (Node,),
}
SHARED = "ur_energy_model.nodes.launch_actions"
"""The module that uses launch_ros for all launch files."""


@dataclass(frozen=True)
class StartedNode:
    """A node that a launch file starts.

    Attributes:
        package, executable, name, namespace, output, respawn, respawn_delay: as launch gets them.
        parameter_files: in order; they come before `parameters`.
        parameters: values that are given to the node itself.
        arguments: command line arguments.
        ros_arguments: those after --ros-args.
    """

    package: str
    executable: str
    name: str
    namespace: str
    output: str
    respawn: bool
    respawn_delay: float | None
    parameter_files: tuple[Path, ...]
    parameters: dict[str, Any]
    arguments: tuple[str, ...]
    ros_arguments: tuple[str, ...]


def launch_file(name: str) -> Path:
    """Path of launch/<name>.launch.py."""
    return share_directory() / "launch" / f"{name}.launch.py"


def launch_description(path: Path) -> LaunchDescription:
    """What a launch file describes."""
    with pytest.MonkeyPatch.context() as patch:
        for name, classes in MODULES.items():
            module = ModuleType(name)
            for each in classes:
                setattr(module, each.__name__, each)
            patch.setitem(sys.modules, name, module)
        patch.setitem(sys.modules, SHARED, None)  # the patch restores what was there before
        del sys.modules[SHARED]
        return runpy.run_path(str(path))["generate_launch_description"]()


def started_nodes(path: Path, **arguments: str) -> list[StartedNode]:
    """Nodes that a launch file starts with these arguments.

    Raises:
        ValueError: an argument that the launch file refuses.
    """
    return [started(action) for action in actions(path, **arguments) if isinstance(action, Node)]


def said_lines(path: Path, **arguments: str) -> list[str]:
    """Lines that a launch file writes with these arguments."""
    return [action.msg for action in actions(path, **arguments) if isinstance(action, LogInfo)]


def actions(path: Path, **arguments: str) -> list[Any]:
    """What a launch file does with these arguments."""
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
    context = Context(values)
    return [
        action
        for entity in entities
        if isinstance(entity, OpaqueFunction)
        for action in entity.function(context)
    ]


def started(node: Node) -> StartedNode:
    kinds = [isinstance(source, dict) for source in node.parameters]
    assert kinds == sorted(kinds), "files come first: later parameters win"
    values = [source for source in node.parameters if isinstance(source, dict)]
    return StartedNode(
        node.package,
        node.executable,
        node.name,
        node.namespace,
        node.output,
        node.respawn,
        node.respawn_delay,
        tuple(Path(each) for each in node.parameters if not isinstance(each, dict)),
        {name: value for each in values for name, value in each.items()},
        tuple(node.arguments),
        tuple(node.ros_arguments),
    )
