"""Arguments of the launch files, read from their source: launch need not be installed."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

from ur_energy_model.resources import share_directory


@dataclass(frozen=True)
class LaunchArgument:
    """One DeclareLaunchArgument of a launch file.

    Attributes:
        name: as typed after `ros2 launch ... name:=value`.
        default_value: text; None if the user must give a value.
        description: one sentence without a full stop.
        choices: allowed values; empty for any.
    """

    name: str
    default_value: str | None = None
    description: str = ""
    choices: tuple[str, ...] = ()


def launch_file(name: str) -> Path:
    """Path of launch/<name>.launch.py."""
    return share_directory() / "launch" / f"{name}.launch.py"


LAUNCH_FILES = ("energy", "ur_driver", "demo", "identify")
"""Names, in the order of the documentation."""


def declared_arguments(name: str) -> list[LaunchArgument]:
    """Arguments that a launch file declares, in its order.

    Raises:
        ValueError: an argument is not written as literals.
    """
    tree = ast.parse(launch_file(name).read_text(encoding="utf-8"))
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "DeclareLaunchArgument"
    ]
    return [_argument(call) for call in calls]


def _argument(call: ast.Call) -> LaunchArgument:
    (argument_name,) = (ast.literal_eval(value) for value in call.args)
    values = {str(entry.arg): ast.literal_eval(entry.value) for entry in call.keywords}
    values["choices"] = tuple(values.get("choices", ()))
    return LaunchArgument(argument_name, **values)
