"""What is started, and how: the one table behind the launch files and the demo.

It imports neither ROS nor launch, so that launch files, the demo runner and tests can use it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ur_energy_model.nodes.parameters import NODES, Value, parameter
from ur_energy_model.resources import PACKAGE, config_file


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


@dataclass(frozen=True)
class Start:
    """One process that a launch file starts.

    Attributes:
        package, executable: what to run.
        name: node name; empty for a process with several nodes.
        parameters: overrides of its defaults.
        parameter_files: read before the overrides, in order.
        arguments: further command line arguments.
    """

    package: str
    executable: str
    name: str
    parameters: Mapping[str, Value] = field(default_factory=dict)
    parameter_files: tuple[Path, ...] = ()
    arguments: tuple[str, ...] = ()


NODE_TABLE: dict[str, NodeEntry] = {name: NodeEntry(name, f"{name}_node") for name in NODES}
"""Every node by name."""

CELL_EXECUTABLE = "cell_node"
"""Logger and estimator in one process."""


def _from_parameter(node: str, name: str) -> LaunchArgument:
    """A launch argument that sets a node parameter, described by the parameter table."""
    entry = parameter(node, name)
    choices = ("true", "false") if isinstance(entry.default, bool) else entry.choices
    return LaunchArgument(name, _text(entry.default), entry.description, choices)


def _text(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _switch(name: str, default: str, description: str) -> LaunchArgument:
    return LaunchArgument(name, default, description, ("true", "false"))


_COMMON: tuple[LaunchArgument, ...] = (
    LaunchArgument("namespace", "", "namespace of all nodes, one a robot"),
    LaunchArgument(
        "params_file", "", "YAML file with further parameters; arguments given here win over it"
    ),
    LaunchArgument(
        "log_level",
        "info",
        "least severe message that is shown",
        ("debug", "info", "warn", "error"),
    ),
)
_RVIZ = _switch("rviz", "false", "open rviz with markers and robot model")

ARGUMENTS: dict[str, tuple[LaunchArgument, ...]] = {
    "energy": (
        _from_parameter("estimator", "robot_ip"),
        _from_parameter("logger", "robot_model"),
        LaunchArgument("model_file", None, parameter("estimator", "model_file").description),
        *_COMMON,
        _from_parameter("estimator", "source"),
        _from_parameter("estimator", "bag"),
        _from_parameter("estimator", "tf_prefix"),
        _from_parameter("estimator", "state_file"),
        _from_parameter("logger", "record"),
        _from_parameter("logger", "bag_directory"),
        _switch("logger", "true", "start the logger too (source: rtde only)"),
        _switch("composed", "false", "logger and estimator in one process, on one connection"),
        _switch("use_sim_time", "false", "take the time from /clock"),
        _switch(
            "robot_description",
            "false",
            "publish a simple robot model and its frames, where no driver does",
        ),
        _RVIZ,
    ),
    "demo": (
        _from_parameter("simulated_robot", "host"),
        _from_parameter("simulated_robot", "robot_model"),
        _from_parameter("simulated_robot", "motion"),
        _from_parameter("simulated_robot", "seed"),
        LaunchArgument("model_file", "", "start the estimator too, with this identified model"),
        *_COMMON,
        _from_parameter("logger", "record"),
        _from_parameter("logger", "bag_directory"),
        _RVIZ,
    ),
    "identify": (
        LaunchArgument("bags", None, "bags to identify from, separated by commas"),
        LaunchArgument("validation_bags", "", "bags held out for validation, separated by commas"),
        _from_parameter("identification", "robot_model"),
        _from_parameter("identification", "output"),
        _from_parameter("identification", "friction"),
        *_COMMON,
        _switch("exit_when_done", "true", "end when the model file is written"),
    ),
}
"""Arguments of every launch file, by its name (launch/<name>.launch.py)."""


def starts(launch_file: str, arguments: Mapping[str, str]) -> list[Start]:
    """What a launch file starts.

    Args:
        launch_file: its name, such as "energy".
        arguments: values of all its arguments, defaults included.

    Raises:
        ValueError: an argument that the tables refuse.
    """
    for entry in ARGUMENTS[launch_file]:
        if entry.choices and arguments[entry.name] not in entry.choices:
            raise ValueError(
                f"{entry.name}:={arguments[entry.name]} is not one of {', '.join(entry.choices)}"
            )
    return _STARTS[launch_file](arguments)


def _node(node: str, arguments: Mapping[str, str], names: tuple[str, ...], **fixed: Value) -> Start:
    """A node of this package; `names` are arguments that are parameters of the same name.

    Arguments at their default are left to the parameter files, so that params_file can set them.
    """
    values: dict[str, Value] = {}
    for name in names:
        entry = parameter(node, name)
        value = _parsed(name, arguments[name], entry.default)
        if value != entry.default:
            values[name] = value
    values |= fixed
    for name, value in values.items():
        problem = parameter(node, name).problem(value)
        if problem is not None:
            raise ValueError(problem)
    if arguments.get("use_sim_time") == "true":
        values["use_sim_time"] = True
    files = [NODE_TABLE[node].parameter_file]
    if arguments["params_file"]:
        files.append(Path(arguments["params_file"]).expanduser())
    return Start(
        PACKAGE,
        NODE_TABLE[node].executable,
        node,
        values,
        tuple(files),
        ("--ros-args", "--log-level", f"{node}:={arguments['log_level']}"),
    )


def _parsed(name: str, text: str, default: Value) -> Value:
    """An argument's text as the type of a parameter's default."""
    if isinstance(default, bool):
        return text == "true"
    if isinstance(default, list):
        return [item.strip() for item in text.split(",") if item.strip()] or [""]
    try:
        return type(default)(text)
    except ValueError as error:
        raise ValueError(f"{name}:={text} is not a number") from error


def _energy(arguments: Mapping[str, str]) -> list[Start]:
    viewers = _viewers(arguments, arguments["robot_description"] == "true", arguments["tf_prefix"])
    out = [
        _node(
            "estimator",
            arguments,
            ("source", "robot_ip", "model_file", "bag", "tf_prefix", "state_file"),
        )
    ]
    if arguments["logger"] == "true" and arguments["source"] == "rtde":
        names = ("robot_ip", "robot_model", "tf_prefix", "record", "bag_directory")
        out.append(_node("logger", arguments, names))
        if arguments["composed"] == "true":
            out = [_composed(out)]
    return out + viewers


def _composed(parts: list[Start]) -> Start:
    """Several nodes in one process, each with its own name; their defaults are built in."""
    parameters: dict[str, Value] = {}
    for part in parts:
        parameters |= part.parameters
    return Start(
        PACKAGE,
        CELL_EXECUTABLE,
        "",
        parameters,
        parts[0].parameter_files[1:],
        tuple(argument for part in parts for argument in part.arguments),
    )


def _demo(arguments: Mapping[str, str]) -> list[Start]:
    address: dict[str, Value] = {"robot_ip": arguments["host"]}
    out = [
        _node("simulated_robot", arguments, ("host", "robot_model", "motion", "seed")),
        _node("logger", arguments, ("robot_model", "record", "bag_directory"), **address),
    ]
    if arguments["model_file"]:
        out.append(_node("estimator", arguments, ("model_file",), **address))
    return out + _viewers(arguments, arguments["rviz"] == "true", "")


def _identify(arguments: Mapping[str, str]) -> list[Start]:
    names = ("bags", "validation_bags", "robot_model", "output", "friction", "exit_when_done")
    return [_node("identification", arguments, names, identify_on_start=True)]


def _viewers(arguments: Mapping[str, str], description: bool, prefix: str) -> list[Start]:
    """Robot model and frames, and rviz, where they are wanted."""
    out = []
    if description:
        from ur_energy_model.model.robots import load_robot
        from ur_energy_model.model.urdf_export import urdf

        model = urdf(load_robot(arguments["robot_model"]), prefix=prefix)
        out.append(
            Start(
                "robot_state_publisher",
                "robot_state_publisher",
                "robot_state_publisher",
                {"robot_description": model},
            )
        )
    if arguments["rviz"] == "true":
        layout = config_file("rviz", "energy.rviz")
        out.append(Start("rviz2", "rviz2", "rviz2", arguments=("-d", str(layout))))
    return out


_STARTS: dict[str, Callable[[Mapping[str, str]], list[Start]]] = {
    "energy": _energy,
    "demo": _demo,
    "identify": _identify,
}


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
    command = [
        str(Path(sys.executable).parent / entry.executable),
        "--ros-args",
        "--params-file",
        str(entry.parameter_file),
    ]
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
