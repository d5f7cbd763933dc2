"""What is started, and how: the one table behind the launch files and the demo.

It imports neither ROS nor launch, so that launch files, the demo runner and tests can use it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ur_energy_model.nodes.parameters import NODES, Value, parameter
from ur_energy_model.resources import PACKAGE, config_file

__all__ = ["ARGUMENTS", "LAUNCH_FILES", "NODE_TABLE", "PACKAGE", "LaunchArgument", "NodeEntry"]


@dataclass(frozen=True)
class NodeEntry:
    """One node that can be started.

    Attributes:
        name: node name, key of its parameters in nodes.parameters.NODES.
        executable: its program, in bin/ and lib/ur_energy_model/.
    """

    name: str
    executable: str

    @property
    def parameter_file(self) -> Path:
        """The installed parameter file with every default."""
        return config_file(f"{self.name}.yaml")


@dataclass(frozen=True)
class LaunchArgument:
    """An argument of a launch file.

    Attributes:
        name: as typed after `ros2 launch ... name:=value`.
        default: text; None where the user must give one.
        description: one sentence without a full stop.
        choices: allowed values.
    """

    name: str
    default: str | None
    description: str
    choices: tuple[str, ...] = ()


NODE_TABLE: dict[str, NodeEntry] = {name: NodeEntry(name, f"{name}_node") for name in NODES}
"""Every node by name."""


def _from_parameter(node: str, name: str, default: str | None = "") -> LaunchArgument:
    """A launch argument that sets a node parameter, described by the parameter table."""
    entry = parameter(node, name)
    text = _text(entry.default) if default == "" else default
    return LaunchArgument(name, text, entry.description, entry.choices)


def _text(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


_COMMON: tuple[LaunchArgument, ...] = (
    LaunchArgument("namespace", "", "namespace of all nodes, one a robot"),
    LaunchArgument(
        "params_file", "", "YAML file with further parameters, read after the installed defaults"
    ),
    LaunchArgument("log_level", "info", "least severe message that is shown",
                   ("debug", "info", "warn", "error")),
)  # fmt: skip

ARGUMENTS: dict[str, tuple[LaunchArgument, ...]] = {
    "energy": (
        _from_parameter("estimator", "robot_ip"),
        _from_parameter("logger", "robot_model"),
        _from_parameter("estimator", "model_file", None),
        *_COMMON,
        _from_parameter("estimator", "source"),
        _from_parameter("estimator", "bag"),
        _from_parameter("estimator", "tf_prefix"),
        _from_parameter("estimator", "state_file"),
        _from_parameter("logger", "record"),
        _from_parameter("logger", "bag_directory"),
        LaunchArgument("use_sim_time", "false", "take the time from /clock", ("true", "false")),
        LaunchArgument("logger", "true", "start the logger too (source: rtde only)",
                       ("true", "false")),
        LaunchArgument("robot_description", "false",
                       "publish a simple robot model and its frames, where no driver does",
                       ("true", "false")),
        LaunchArgument("rviz", "false", "open rviz with markers and robot model",
                       ("true", "false")),
    ),
    "demo": (
        LaunchArgument("host", "127.0.0.2", "loopback address of the simulated controller"),
        _from_parameter("simulated_robot", "robot_model"),
        _from_parameter("simulated_robot", "motion"),
        _from_parameter("estimator", "model_file"),
        *_COMMON,
        _from_parameter("logger", "record"),
        _from_parameter("logger", "bag_directory"),
        LaunchArgument("rviz", "false", "open rviz with markers and robot model",
                       ("true", "false")),
    ),
    "identify": (
        LaunchArgument("bags", None, "bags to identify from, separated by commas"),
        LaunchArgument("validation_bags", "", "bags held out for validation, separated by commas"),
        _from_parameter("identification", "robot_model"),
        _from_parameter("identification", "output"),
        _from_parameter("identification", "friction"),
        *_COMMON,
    ),
}  # fmt: skip
"""Arguments of every launch file, by its name (launch/<name>.launch.py)."""

LAUNCH_FILES: tuple[str, ...] = tuple(ARGUMENTS)


def node_command(node: str, parameters: Mapping[str, Value], *, namespace: str = "") -> list[str]:
    """Command line that starts a node without launch, as the demo runner does.

    Args:
        node: name of the node.
        parameters: overrides of its defaults; names and values are checked against the table.
        namespace: such as "/cell_1"; "" for none.

    Raises:
        KeyError: no such node or parameter.
        ValueError: a value that the table refuses.
    """
    entry = NODE_TABLE[node]
    command = [str(Path(sys.executable).parent / entry.executable), "--ros-args",
               "--params-file", str(entry.parameter_file)]  # fmt: skip
    if namespace:
        command += ["-r", f"__ns:={namespace}"]
    for name, value in parameters.items():
        problem = parameter(node, name).problem(value)
        if problem is not None:
            raise ValueError(problem)
        command += ["-p", f"{name}:={_argument(value)}"]
    return command


def _argument(value: Value) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(_argument(item) for item in value) + "]"
    if isinstance(value, str):
        # Quoted, for rcl reads the value as YAML: an unquoted 1e3 or yes would not stay a text.
        return "'" + value.replace("'", "''") + "'"
    return _text(value)
