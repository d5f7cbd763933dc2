"""From the launch table to actions of launch and launch_ros; only launch files import this."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch_ros.actions import Node

from ur_energy_model.launching import ARGUMENTS, Start, starts


def description(launch_file: str | Path) -> LaunchDescription:
    """The launch description of launch/<name>.launch.py.

    Args:
        launch_file: path of the file that calls.
    """
    name = Path(launch_file).name.removesuffix(".launch.py")
    arguments = [
        DeclareLaunchArgument(
            entry.name,
            default_value=entry.default,
            description=entry.description,
            choices=list(entry.choices) or None,
        )
        for entry in ARGUMENTS[name]
    ]

    def start_all(context: Any) -> list[Any]:
        values = {
            entry.name: context.launch_configurations[entry.name] for entry in ARGUMENTS[name]
        }
        return [action(start, values["namespace"]) for start in starts(name, values)]

    return LaunchDescription([*arguments, OpaqueFunction(function=start_all)])


def action(start: Start, namespace: str) -> Node:
    """The action that starts one process."""
    parameters: list[Any] = [str(path) for path in start.parameter_files]
    if start.parameters:
        parameters.append(dict(start.parameters))
    return Node(
        package=start.package,
        executable=start.executable,
        name=start.name or None,
        namespace=namespace or None,
        parameters=parameters,
        arguments=list(start.arguments),
        output="screen",
    )
