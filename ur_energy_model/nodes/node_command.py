"""Command lines that start nodes without launch; imports neither ROS nor launch."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from ur_energy_model.nodes.parameter import Value
from ur_energy_model.nodes.parameters import NODES, parameter
from ur_energy_model.resources import config_file

EXECUTABLES: dict[str, str] = {node: f"{node}_node" for node in NODES}
"""Programs in bin/ and lib/ur_energy_model/, by node name."""


def default_parameter_file(node: str) -> Path:
    """The installed parameter file with the default of every parameter of a node."""
    return config_file(f"{node}.yaml")


def node_command(node: str, parameters: Mapping[str, Value], *, namespace: str = "") -> list[str]:
    """Command line that starts a node.

    Args:
        node: name of the node.
        parameters: parameters that differ from their default.
        namespace: such as "/cell_1"; "" for none.

    Raises:
        KeyError: no such node or parameter.
        ValueError: a value that is not allowed.
    """
    command = [
        str(Path(sys.executable).parent / EXECUTABLES[node]),
        "--ros-args",
        "--params-file",
        str(default_parameter_file(node)),
    ]
    if namespace:
        command += ["-r", f"__ns:={namespace}"]
    for name, value in parameters.items():
        problem = parameter(node, name).problem(value)
        if problem is not None:
            raise ValueError(problem)
        command += ["-p", f"{name}:={_yaml(value)}"]
    return command


def _yaml(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "[" + ", ".join(_yaml(item) for item in value) + "]"
    if isinstance(value, str):
        # Quoted, since rcl reads the value as YAML: unquoted, 1e3 or yes would not be a text.
        return "'" + value.replace("'", "''") + "'"
    return str(value)
