"""Arguments of the launch files, read from their source: launch need not be installed."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ur_energy_model.files import share_directory
from ur_energy_model.nodes import launch_arguments
from ur_energy_model.nodes.launch_arguments import LaunchArgument, common, of_parameters

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def launch_file(name: str) -> Path:
    """Path of launch/<name>.launch.py."""
    return share_directory() / "launch" / f"{name}.launch.py"


LAUNCH_FILES = ("energy", "ur_driver", "demo", "identify")
"""Names, in the order of the documentation."""


SHARED: dict[str, Callable[..., list[LaunchArgument]]] = {
    "common_arguments": common,
    "parameter_arguments": of_parameters,
}
"""What the functions that declare several arguments declare."""


def declared_arguments(name: str) -> list[LaunchArgument]:
    """Arguments that a launch file declares, in its order.

    Raises:
        ValueError: an argument is neither a literal nor one of a tuple of launch_arguments.py.
    """
    tree = ast.parse(launch_file(name).read_text(encoding="utf-8"))
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("DeclareLaunchArgument", *SHARED)
    ]
    calls.sort(key=lambda call: call.lineno)
    return [argument for call in calls for argument in _arguments(call)]


def _arguments(call: ast.Call) -> list[LaunchArgument]:
    """Arguments that one call declares."""
    given = [each for value in call.args for each in _literals(value)]
    values = {str(entry.arg): ast.literal_eval(entry.value) for entry in call.keywords}
    if isinstance(call.func, ast.Name) and call.func.id in SHARED:
        return SHARED[call.func.id](*given, **values)
    values["choices"] = tuple(values.get("choices", ()))
    return [LaunchArgument(*given, **values)]


def _literals(value: ast.expr) -> list[Any]:
    """A literal, or those of a tuple of launch_arguments.py that is unpacked."""
    if isinstance(value, ast.Starred) and isinstance(value.value, ast.Name):
        return list(getattr(launch_arguments, value.value.id))
    return [ast.literal_eval(value)]
