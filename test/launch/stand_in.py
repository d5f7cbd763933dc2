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

from ur_energy_model.resources import share_directory


@dataclass(frozen=True)
class Context:
    """Values of all launch arguments."""

    launch_configurations: Mapping[str, str]


@dataclass(frozen=True)
class LaunchConfiguration:
    name: str

    def perform(self, context: Context) -> str:
        return context.launch_configurations[self.name]


@dataclass(frozen=True)
class PathJoinSubstitution:
    parts: list[Any]

    def perform(self, context: Context) -> str:
        return str(Path(*(text_of(part, context) for part in self.parts)))


@dataclass(frozen=True)
class FindPackageShare:
    package: str

    def perform(self, context: Context) -> str:
        assert self.package == "ur_energy_model"
        return str(share_directory())


def text_of(value: Any, context: Context) -> str:
    """Text of a substitution, a text, or a list of them."""
    if isinstance(value, list):
        return "".join(text_of(part, context) for part in value)
    return str(value) if isinstance(value, str | Path) else value.perform(context)


@dataclass(frozen=True)
class IfCondition:
    expression: Any

    def holds(self, context: Context) -> bool:
        return {"true": True, "false": False}[text_of(self.expression, context)]


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
class LaunchDescription:
    entities: list[Any]


@dataclass(frozen=True)
class Node:
    package: str
    executable: str
    namespace: Any
    output: str
    name: str = ""
    parameters: list[Any] = field(default_factory=list)
    arguments: list[Any] = field(default_factory=list)
    ros_arguments: list[Any] = field(default_factory=list)
    condition: IfCondition | None = None


MODULES = {
    "launch": (LaunchDescription,),
    "launch.actions": (DeclareLaunchArgument, OpaqueFunction),
    "launch.conditions": (IfCondition,),
    "launch.substitutions": (LaunchConfiguration, PathJoinSubstitution),
    "launch_ros": (),
    "launch_ros.actions": (Node,),
    "launch_ros.substitutions": (FindPackageShare,),
}


@dataclass(frozen=True)
class StartedNode:
    """A node that a launch file starts, with the texts of its substitutions.

    Attributes:
        package, executable, name, namespace, output: as launch gets them.
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
    parameter_files: tuple[Path, ...]
    parameters: dict[str, Any]
    arguments: tuple[str, ...]
    ros_arguments: tuple[str, ...]


def launch_description(path: Path) -> LaunchDescription:
    """What a launch file describes."""
    with pytest.MonkeyPatch.context() as patch:
        for name, classes in MODULES.items():
            module = ModuleType(name)
            for each in classes:
                setattr(module, each.__name__, each)
            patch.setitem(sys.modules, name, module)
        return runpy.run_path(str(path))["generate_launch_description"]()


def started_nodes(path: Path, **arguments: str) -> list[StartedNode]:
    """Nodes that a launch file starts with these arguments.

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
    context = Context(values)
    nodes: list[Node] = []
    for entity in entities:
        if isinstance(entity, OpaqueFunction):
            nodes += entity.function(context)
        elif isinstance(entity, Node):
            nodes.append(entity)
    return [
        started(node, context)
        for node in nodes
        if node.condition is None or node.condition.holds(context)
    ]


def started(node: Node, context: Context) -> StartedNode:
    kinds = [isinstance(source, dict) for source in node.parameters]
    assert kinds == sorted(kinds), "files come first: later parameters win"
    values = [source for source in node.parameters if isinstance(source, dict)]
    return StartedNode(
        node.package,
        node.executable,
        node.name,
        text_of(node.namespace, context),
        node.output,
        tuple(Path(text_of(p, context)) for p in node.parameters if not isinstance(p, dict)),
        {name: value for each in values for name, value in each.items()},
        tuple(text_of(argument, context) for argument in node.arguments),
        tuple(text_of(argument, context) for argument in node.ros_arguments),
    )
