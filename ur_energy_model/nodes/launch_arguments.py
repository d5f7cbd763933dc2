"""The launch files: their arguments, and checks of these before anything is started.

Neither launch nor ROS is imported here, so that tools and tests read the same table as the files
in launch/. An argument of a parameter has its name, default, help and choices from its table.
"""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml
from ament_index_python.packages import get_package_prefix

from ur_energy_model.errors import InputError, UrEnergyError
from ur_energy_model.files import config_file, open_regular, user_path
from ur_energy_model.model.model_file import load_model
from ur_energy_model.nodes.parameters import NODES, parameter
from ur_energy_model.options import Value

SWITCH = ("true", "false")


@dataclass(frozen=True)
class LaunchArgument:
    """One DeclareLaunchArgument of a launch file.

    Attributes:
        name: as typed after `ros2 launch ... name:=value`.
        default: text; None if the user must give a value.
        help: one sentence without a full stop.
        choices: allowed values; empty for any.
    """

    name: str
    default: str | None
    help: str
    choices: tuple[str, ...] = ()


def _of(node: str, *names: str) -> list[LaunchArgument]:
    """Arguments that set parameters of a node, with the defaults of these."""
    found = []
    for entry in (parameter(node, name) for name in names):
        value = entry.parameter
        text = ",".join(value) if isinstance(value, list) else str(value)
        if entry.kind is bool:
            found.append(LaunchArgument(entry.name, text.lower(), entry.help, SWITCH))
        else:
            found.append(LaunchArgument(entry.name, text, entry.help, entry.choices))
    return found


def _switch(name: str, default: str, text: str) -> LaunchArgument:
    return LaunchArgument(name, default, text, SWITCH)


_SINKS = _of("estimator", *(entry.name for entry in NODES["estimator"] if entry.launch))
_BUDGET = _of("logger", *(entry.name for entry in NODES["logger"] if entry.launch))
_NAMESPACE = LaunchArgument("namespace", "", "namespace of all nodes, one per robot")
_PARAMS_FILE = LaunchArgument(
    "params_file", "", "YAML file with node parameters; launch arguments override it"
)
_LEVELS = ("debug", "info", "warn", "error")
_LOG_LEVEL = LaunchArgument(
    "log_level", "info", "lowest severity of messages that are shown", _LEVELS
)
_COMMON = (_NAMESPACE, _PARAMS_FILE, _LOG_LEVEL)
_RVIZ = _switch("rviz", "false", "open rviz with markers and robot model")
_RESPAWN = (
    _switch("respawn", "false", "start a node again when it has ended"),
    LaunchArgument("respawn_delay", "5.0", "pause before a node is started again [s]"),
)
_ADDRESS = "address of the robot controller"

LAUNCH_FILES: dict[str, tuple[LaunchArgument, ...]] = {
    "energy": (
        LaunchArgument(
            "robot_ip",
            "",
            f"{_ADDRESS}; required with source:=rtde, unless params_file has it",
        ),
        *_of("estimator", "robot_model", "model_file", "learn"),
        *_COMMON,
        *_of("estimator", "source", "bag", "effort_unit", "tf_prefix", "publish_rate"),
        *_of("estimator", "state_file"),
        *_of("logger", "record", "bag_directory"),
        *_BUDGET,
        *_of("logger", "publish_joint_states"),
        *_SINKS,
        _switch("logger", "true", "start the logger too (source: rtde only)"),
        _switch("composed", "false", "logger and estimator in one process, on one connection"),
        _switch("use_sim_time", "false", "take the time from /clock"),
        _switch(
            "robot_description",
            "false",
            "publish a simple robot model and its frames; not needed with a driver",
        ),
        _RVIZ,
        *_RESPAWN,
    ),
    "ur_driver": (
        LaunchArgument("robot_ip", None, f"{_ADDRESS}, as given to the driver"),
        *_of("estimator", "model_file", "learn"),
        LaunchArgument(
            "source",
            "rtde",
            "source of samples: a connection of its own to the controller, or the joint_states "
            "topic of the driver",
            ("rtde", "joint_states"),
        ),
        *_of("estimator", "effort_unit"),
        _NAMESPACE,
        *_of("estimator", "tf_prefix", "publish_rate", "robot_model"),
        _switch("logger", "true", "start the logger too, on a connection to the controller"),
        *_of("logger", "record", "bag_directory"),
        *_BUDGET,
        *_SINKS,
        *_of("estimator", "state_file"),
        _PARAMS_FILE,
        _LOG_LEVEL,
        replace(_RVIZ, help="open rviz with markers and the driver's robot model"),
        *_RESPAWN,
    ),
    "demo": (
        *_of("simulated_robot", "host", "robot_model", "motion", "seed"),
        *_of("estimator", "model_file", "learn"),
        *_COMMON,
        _switch("record", "false", "record the simulated arm into bag_directory"),
        *_of("logger", "bag_directory"),
        _RVIZ,
    ),
    "identify": (
        LaunchArgument("bags", None, "bags to identify the model from, separated by commas"),
        LaunchArgument("validation_bags", "", "bags held out for validation, separated by commas"),
        *_of("identification", "robot_model", "output", "friction"),
        *_COMMON,
        _switch("exit_when_done", "true", "end when the model file is written"),
    ),
}
"""Arguments of launch/<name>.launch.py, in the order in which --show-args has them."""


def changed_parameters(
    node: str, arguments: Mapping[str, str], *, without: Collection[str] = ()
) -> dict[str, Value]:
    """Values of launch arguments that differ from the default of the parameter of that name.

    The others are left out, so that a parameter file given by the user can set them.

    Args:
        node: name of the node.
        arguments: text of all launch arguments, by name.
        without: arguments that mean something else to this node.

    Raises:
        ValueError: an argument is not a number, or its value is not allowed.
    """
    values = [
        (entry, entry.parse(arguments[entry.name]))
        for entry in NODES[node]
        if entry.name in arguments and entry.name not in without
    ]
    return {entry.name: value for entry, value in values if value != entry.parameter}


# Checks of launch arguments before anything is started.

VIEWERS: Mapping[str, tuple[str, ...]] = {
    "rviz": ("rviz2",),
    "robot_description": ("robot_state_publisher",),
}
"""Packages that launch arguments need, by argument."""


def check_names(file: str, command: Sequence[str]) -> None:
    """Check that a launch file has the arguments that it was given on the command line.

    Launch itself ignores the others. What another launch file includes is not checked: its command
    line has arguments of its own.

    Args:
        file: name of the launch file, key of LAUNCH_FILES.
        command: the command line.

    Raises:
        UrEnergyError: an argument is unknown.
    """
    words, name_of_file = [Path(word).name for word in command], f"{file}.launch.py"
    if name_of_file not in words:
        return
    declared = [argument.name for argument in LAUNCH_FILES[file]]
    given = command[words.index(name_of_file) + 1 :]
    for name in (word.partition(":=")[0] for word in given if ":=" in word):
        if name not in declared:
            close = difflib.get_close_matches(name, declared, 1)
            hint = f" (did you mean {close[0]}?)" if close else ""
            raise UrEnergyError(
                f"nothing is started: {name_of_file} has no argument {name}{hint}; --show-args "
                f"lists them, and other parameters belong into params_file"
            )


def check_address(arguments: Mapping[str, str]) -> None:
    """Check that the address of the controller is given where it is needed.

    Args:
        arguments: text of all launch arguments, by name: robot_ip, source, params_file.

    Raises:
        InputError: params_file cannot be read.
        UrEnergyError: it is not given.
    """
    if arguments["robot_ip"] or arguments["source"] != "rtde":
        return
    if "robot_ip" in parameters_of(arguments):
        return
    raise UrEnergyError(
        "nothing is started: robot_ip is missing; give the address of the controller, such as "
        "robot_ip:=192.168.0.10"
    )


def parameters_of(arguments: Mapping[str, str]) -> dict[str, Any]:
    """Parameters in the params_file.

    Raises:
        InputError: it cannot be read, or a value is not allowed.
    """
    if not arguments["params_file"]:
        return {}
    path = user_path(arguments["params_file"])
    try:
        with open_regular(path) as file:
            content = yaml.safe_load(file.read())
    except (OSError, ValueError, yaml.YAMLError, InputError) as error:
        problem = f"cannot be read, nothing is started ({error})"
        raise InputError(path, problem, "name a YAML file of parameters") from error
    if misshapen := _misshapen(content):
        raise InputError(
            path, f"nothing is started: {misshapen}", "write `estimator: {ros__parameters: {...}}`"
        )
    found = {}
    for nodes, name, value in _parameters(content):
        entries = [entry for node in nodes for entry in NODES[node] if entry.name == name]
        problems = [entry.problem(entry.normalized(value)) for entry in entries]
        # Of two files with values of different types, ROS would take one without a word.
        if problems and all(problems):
            raise InputError(path, f"nothing is started: {problems[0]}", "correct it")
        found[name] = value
    return found


def _misshapen(content: object) -> str | None:
    """What is wrong with the form of a parameter file, with which no node would start."""
    if content is not None and not isinstance(content, dict):
        return "it has no parameters by name of the node"
    for key, value in (content or {}).items():
        if value is not None and not isinstance(value, dict):
            if key == "ros__parameters":
                return "ros__parameters are not names and values"
            return f"{key} is not the name of a node with ros__parameters"
        if key != "ros__parameters" and (problem := _misshapen(value)):
            return problem
    return None


def _parameters(content: object, name: str = "") -> Iterator[tuple[Sequence[str], str, Any]]:
    """Nodes of this package, and their parameters in a parameter file with names and values."""
    for key, value in content.items() if isinstance(content, dict) else ():
        if key == "ros__parameters" and isinstance(value, dict):
            nodes = tuple(NODES) if "*" in name else tuple({name} & set(NODES))
            yield from ((nodes, str(each), value[each]) for each in value if nodes)
        else:
            yield from _parameters(value, str(key).rpartition("/")[2])


def check_packages(
    arguments: Mapping[str, str], needed: Mapping[str, tuple[str, ...]] = VIEWERS
) -> None:
    """Check that the packages that arguments need are installed.

    Args:
        arguments: text of all launch arguments, by name.
        needed: packages by the name of the argument; they are needed if it is "true".

    Raises:
        UrEnergyError: one is not; names the packages and the arguments.
    """
    missing = {
        package: argument
        for argument, packages in needed.items()
        if arguments[argument] == "true"
        for package in packages
        if not _is_installed(package)
    }
    if missing:
        switches = " ".join(f"{name}:=true" for name in dict.fromkeys(missing.values()))
        distribution = os.environ.get("ROS_DISTRO", "$ROS_DISTRO")
        names = " ".join(f"ros-{distribution}-{each.replace('_', '-')}" for each in missing)
        raise UrEnergyError(
            f"nothing is started: {switches} needs {' and '.join(missing)}, which is not "
            f"installed; install it with 'sudo apt install {names}', or leave out {switches}"
        )


def _is_installed(package: str) -> bool:
    try:
        get_package_prefix(package)
    except (LookupError, OSError):
        return False
    return True


def ignored_arguments(arguments: Mapping[str, str], reason: str) -> Iterator[str]:
    """Lines about what a cell lacks, and which arguments have no effect, without a logger.

    Args:
        arguments: text of all launch arguments, by name.
        reason: argument because of which no logger is started.
    """
    if arguments["record"] == "true":
        yield f"nothing is recorded: no logger is started with {reason}"
    for name, default in (
        ("bag_directory", str(parameter("logger", "bag_directory").parameter)),
        ("composed", "false"),
    ):
        value = arguments.get(name, default)
        if value != default:
            yield f"{name}:={value} has no effect: no logger is started with {reason}"


def described_robot(arguments: Mapping[str, str]) -> str:
    """Name of the robot, or path of the robot file, that robot_state_publisher describes.

    Args:
        arguments: text of all launch arguments, by name: robot_model, model_file.

    Raises:
        ModelFileError: the model file cannot be used.
        UrEnergyError: no argument names the robot.
    """
    if arguments["robot_model"]:
        return arguments["robot_model"]
    if arguments["model_file"]:
        return load_model(user_path(arguments["model_file"])).robot
    raise UrEnergyError(
        "nothing is started: robot_description:=true needs robot_model, such as "
        "robot_model:=ur5e, or model_file"
    )


# Command lines that start nodes without launch; imports neither ROS nor launch.

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
