# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The launch files: their arguments, what they start, and checks before anything is started.

Only `description` imports launch, so that tools, tests and the demo read the same tables
as the files in launch/. An argument of a parameter has its name, default, help and
choices from its table. Rooms register launch files of their own, such as that of the
demo; `launch_files` returns them all.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import yaml
from ament_index_python.packages import get_package_prefix

from ur_energy_model.errors import InputError, UrEnergyError, closest
from ur_energy_model.files import PACKAGE, config_file, open_regular, user_path
from ur_energy_model.model.model_file import load_model
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.urdf_export import urdf
from ur_energy_model.nodes.parameters import NODES, parameter
from ur_energy_model.options import Value
from ur_energy_model.rooms import loaded, rooms

if TYPE_CHECKING:
    from launch import LaunchContext, LaunchDescription
    from launch.events.process import ProcessExited

SWITCH = ("true", "false")


class LaunchArgument(NamedTuple):
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


# text of all arguments of a launch file, by name
Arguments: TypeAlias = Mapping[str, str]


class Started(NamedTuple):
    """A process that a launch file starts.

    Attributes:
        executable: the program; one of another package is called as that package.
        parameters: files, and tables of values by name; later ones win.
        nodes: of this package in the process, none for a program of another package; a
            single one gives the process its name.
        arguments: of the command line.
    """

    executable: str
    parameters: tuple[Any, ...] = ()
    nodes: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()


class LaunchFile(NamedTuple):
    """What launch/<name>.launch.py describes.

    Attributes:
        arguments: in the order in which --show-args has them.
        start: from the text of all arguments, what is started, and lines that are
            written; raises UrEnergyError or ValueError where nothing is to be started.
    """

    arguments: tuple[LaunchArgument, ...]
    start: Callable[[Arguments], Iterator[Started | str]]


# Arguments.


def parameter_arguments(node: str, *names: str) -> list[LaunchArgument]:
    """Arguments that set parameters of a node, with their defaults, help and choices.

    Args:
        node: name of the node.
        names: of its parameters, and so of the arguments.

    Raises:
        KeyError: the node has no such parameter.
    """
    found: list[LaunchArgument] = []
    for name in names:
        entry = parameter(node, name)
        value = entry.parameter
        text = ",".join(value) if isinstance(value, list) else str(value)
        choices = entry.choices
        if entry.kind is bool:
            text = text.lower()
            choices = SWITCH
        found.append(LaunchArgument(entry.name, text, entry.help, choices))
    return found


def switch(name: str, default: str, text: str) -> LaunchArgument:
    """An argument that is "true" or "false", and no parameter of a node."""
    return LaunchArgument(name, default, text, SWITCH)


def _launch_parameters(node: str) -> list[LaunchArgument]:
    """Arguments of all parameters of a node that are marked for launch, those of rooms too."""
    names = [entry.name for entry in NODES[node] if entry.launch]
    return parameter_arguments(node, *names)


_SINKS = _launch_parameters("estimator")
_RECORDING = _launch_parameters("logger")
_NAMESPACE = LaunchArgument("namespace", "", "namespace of all nodes, one per robot")
_PARAMS_FILE = LaunchArgument(
    "params_file", "", "YAML file with node parameters; launch arguments override it"
)
_LEVELS = ("debug", "info", "warn", "error")
_LOG_LEVEL = LaunchArgument(
    "log_level", "info", "lowest severity of messages that are shown", _LEVELS
)
COMMON_ARGUMENTS = (_NAMESPACE, _PARAMS_FILE, _LOG_LEVEL)
RVIZ = switch("rviz", "false", "open rviz with markers and robot model")
_RESPAWN = (
    switch("respawn", "false", "start a node again when it has ended"),
    LaunchArgument("respawn_delay", "5.0", "pause before a node is started again [s]"),
)
_ADDRESS = "address of the robot controller"


# What the launch files start.


def energy(arguments: Arguments, *, driver: bool = False) -> Iterator[Started | str]:
    """Estimator and logger, each in a process or both in one, a robot model and rviz.

    Args:
        arguments: text of all launch arguments.
        driver: whether a driver runs beside them, which publishes joint_states and the
            robot model; logger and estimator then share a process and a connection, if
            the estimator reads the controller at all.

    Yields:
        The processes, and lines about arguments without effect.

    Raises:
        UrEnergyError: a package, the address or the parameter file is missing.
    """
    check_packages(arguments, {"rviz": ("rviz2",)} if driver else VIEWERS)
    if not driver:
        check_address(arguments)
    without = () if arguments["robot_ip"] else ("robot_ip",)
    both: dict[str, Value] = {}
    if arguments.get("use_sim_time") == "true":
        both["use_sim_time"] = True
    estimator = both | changed_parameters("estimator", arguments, without=without)
    logger = both | ({"publish_joint_states": False} if driver else {})
    logger |= changed_parameters("logger", arguments, without=without)
    rtde = arguments["source"] == "rtde"
    alone = "logger:=false" if arguments["logger"] == "false" else ""
    if not (rtde or driver):
        alone = f"source:={arguments['source']}"
    if alone:
        yield from ignored_arguments(arguments, alone)
        yield node_process("estimator", arguments, estimator)
    elif rtde if driver else arguments["composed"] == "true":
        # The process gets no name, which would rename both nodes, and no default files,
        # since the defaults are built in.
        files = (*_params_file(arguments), {**estimator, **logger})
        yield Started("cell_node", files, ("estimator", "logger"))
    else:
        yield node_process("estimator", arguments, estimator)
        yield node_process("logger", arguments, logger)
    if arguments.get("robot_description") == "true":
        yield robot_state_publisher(described_robot(arguments), arguments["tf_prefix"])
    yield from rviz(arguments)


def identify(arguments: Arguments) -> Iterator[Started]:
    """One identification, with the bags of the arguments; launch ends after it by default."""
    parameters = {"identify_on_start": True} | changed_parameters(
        "identification", arguments
    )
    yield node_process("identification", arguments, parameters)


def changed_parameters(
    node: str, arguments: Arguments, *, without: Collection[str] = ()
) -> dict[str, Value]:
    """Values of launch arguments that differ from the default of the parameter of that name.

    The others are left out, so that a parameter file given by the user can set them, and
    so are those in `without`, which mean something else to this node.

    Args:
        node: name of the node.
        arguments: text of all launch arguments.
        without: names that are left out.

    Raises:
        ValueError: the text of an argument is no value of its parameter.
    """
    found: dict[str, Value] = {}
    for entry in NODES[node]:
        if entry.name not in arguments or entry.name in without:
            continue
        value = entry.parse(arguments[entry.name])
        if value != entry.parameter:
            found[entry.name] = value
    return found


def node_process(
    node: str, arguments: Arguments, parameters: Mapping[str, Value]
) -> Started:
    """A process with one node, with the parameters of a file and these, which win.

    The file is that of the user, else the installed one with the defaults. Not both: of
    two files with values of different types, ROS silently takes that of the first, where
    the node would refuse a wrong type in words.
    """
    files = _params_file(arguments) or [str(default_parameter_file(node))]
    return Started(EXECUTABLES[node], (*files, dict(parameters)), (node,))


def robot_state_publisher(robot: str, prefix: str = "") -> Started:
    """robot_state_publisher with a simple model of a robot.

    Args:
        robot: name of the robot, or path of a robot file.
        prefix: of joint and frame names.
    """
    described = {"robot_description": urdf(load_robot(robot), prefix=prefix)}
    return Started("robot_state_publisher", (described,))


def rviz(arguments: Arguments) -> Iterator[Started]:
    """Rviz with the markers and the robot model, if it is asked for."""
    if arguments["rviz"] == "true":
        yield Started("rviz2", arguments=("-d", str(config_file("rviz", "energy.rviz"))))


# The launch files.

CORE_LAUNCH_FILES = {
    "energy": LaunchFile(
        arguments=(
            LaunchArgument(
                "robot_ip",
                "",
                f"{_ADDRESS}; required with source:=rtde, unless params_file has it",
            ),
            *parameter_arguments("estimator", "robot_model", "model_file"),
            *COMMON_ARGUMENTS,
            *parameter_arguments("estimator", "source", "bag", "effort_unit"),
            *parameter_arguments("estimator", "tf_prefix", "publish_rate"),
            *parameter_arguments("estimator", "state_file"),
            *parameter_arguments("logger", "record", "bag_directory"),
            *_RECORDING,
            *parameter_arguments("logger", "publish_joint_states"),
            *_SINKS,
            switch("logger", "true", "start the logger too (source: rtde only)"),
            switch(
                "composed",
                "false",
                "logger and estimator in one process, on one connection",
            ),
            switch("use_sim_time", "false", "take the time from /clock"),
            switch(
                "robot_description",
                "false",
                "publish a simple robot model and its frames; not needed with a driver",
            ),
            RVIZ,
            *_RESPAWN,
        ),
        start=energy,
    ),
    "ur_driver": LaunchFile(
        arguments=(
            LaunchArgument("robot_ip", None, f"{_ADDRESS}, as given to the driver"),
            *parameter_arguments("estimator", "model_file"),
            LaunchArgument(
                "source",
                "rtde",
                "source of samples: a connection of its own to the controller, or the "
                "joint_states topic of the driver",
                ("rtde", "joint_states"),
            ),
            *parameter_arguments("estimator", "effort_unit"),
            _NAMESPACE,
            *parameter_arguments("estimator", "tf_prefix", "publish_rate", "robot_model"),
            switch(
                "logger",
                "true",
                "start the logger too, on a connection to the controller",
            ),
            *parameter_arguments("logger", "record", "bag_directory"),
            *_RECORDING,
            *_SINKS,
            *parameter_arguments("estimator", "state_file"),
            _PARAMS_FILE,
            _LOG_LEVEL,
            switch(
                "rviz", "false", "open rviz with markers and the driver's robot model"
            ),
            *_RESPAWN,
        ),
        start=partial(energy, driver=True),
    ),
    "identify": LaunchFile(
        arguments=(
            LaunchArgument(
                "bags", None, "bags to identify the model from, separated by commas"
            ),
            LaunchArgument(
                "validation_bags", "", "bags held out for validation, separated by commas"
            ),
            *parameter_arguments("identification", "robot_model", "output", "friction"),
            *COMMON_ARGUMENTS,
            switch("exit_when_done", "true", "end when the model file is written"),
        ),
        start=identify,
    ),
}
"""The launch files that are always there."""


def launch_files() -> dict[str, LaunchFile]:
    """The launch files by name: those of the core, and those of the rooms that are there."""
    found = dict(CORE_LAUNCH_FILES)
    for room in rooms():
        for name, place in room.launch_files.items():
            found[name] = loaded(place)
    return found


def description(file: str) -> LaunchDescription:
    """What launch/<file>.launch.py describes: its arguments, and what it starts with them.

    The processes are chosen when launch knows the arguments; an error then ends launch
    with its line, and nothing is started.

    Args:
        file: name of the launch file, such as "energy".
    """
    from launch import LaunchDescription
    from launch.actions import DeclareLaunchArgument, LogInfo, OpaqueFunction
    from launch_ros.actions import Node

    described = launch_files()[file]
    table = described.arguments

    def action(started: Started | str, arguments: Arguments) -> Any:
        """The action of launch that starts a process, or writes a line."""
        if isinstance(started, str):
            return LogInfo(msg=started)
        named: dict[str, Any] = {
            "package": started.executable,
            "name": started.executable,
        }
        if started.nodes:
            named = _options(started.nodes, arguments)
        for key in ("parameters", "arguments"):
            if values := getattr(started, key):
                named[key] = list(values)
        space = arguments["namespace"]
        return Node(
            executable=started.executable, namespace=space, output="screen", **named
        )

    def start(context: LaunchContext) -> list[Any]:
        """The actions, once the values of the arguments are known."""
        check_names(file, sys.argv)
        given = context.launch_configurations
        arguments = {argument.name: given[argument.name] for argument in table}
        return [action(each, arguments) for each in described.start(arguments)]

    declared = [
        DeclareLaunchArgument(
            argument.name,
            default_value=argument.default,
            description=argument.help,
            choices=list(argument.choices) or None,
        )
        for argument in table
    ]
    return LaunchDescription([*declared, OpaqueFunction(function=start)])


def _options(nodes: Sequence[str], arguments: Arguments) -> dict[str, Any]:
    """Options of launch_ros for a process with these nodes of this package."""
    level = arguments["log_level"]
    respawn = arguments.get("respawn") == "true"
    delay = arguments.get("respawn_delay", "0")
    try:
        seconds = float(delay)
    except ValueError as error:
        raise ValueError(f"respawn_delay:={delay} is not a number") from error

    def remember_failure(event: ProcessExited, context: LaunchContext) -> None:
        """Launch returns 1 at its end if the process has failed; other nodes go on until then."""
        if event.returncode:
            text = f"{event.process_name} ended with exit code {event.returncode}"
            context.asyncio_loop.call_exception_handler({"message": text})

    return {
        "package": PACKAGE,
        "name": nodes[0] if len(nodes) == 1 else None,
        "ros_arguments": [
            word for name in nodes for word in ("--log-level", f"{name}:={level}")
        ],
        "respawn": respawn,
        "respawn_delay": seconds,
        "on_exit": None if respawn else remember_failure,
    }


# Checks of launch arguments before anything is started.

VIEWERS: Mapping[str, tuple[str, ...]] = {
    "rviz": ("rviz2",),
    "robot_description": ("robot_state_publisher",),
}
"""Packages that launch arguments need, by argument."""


def check_names(file: str, command: Sequence[str]) -> None:
    """Refuse an argument on the command line that a launch file does not have.

    Launch itself ignores it. What another launch file includes is not checked: its
    command line has arguments of its own.

    Args:
        file: name of the launch file.
        command: words of the command line of launch.

    Raises:
        UrEnergyError: there is such an argument; the message has the likely right one.
    """
    words = [Path(word).name for word in command]
    name_of_file = f"{file}.launch.py"
    if name_of_file not in words:
        return
    declared = [argument.name for argument in launch_files()[file].arguments]
    given = command[words.index(name_of_file) + 1 :]
    for name in (word.partition(":=")[0] for word in given if ":=" in word):
        if name not in declared:
            meant = closest(name, declared)
            hint = "" if meant is None else f" (did you mean {meant}?)"
            raise UrEnergyError(
                f"nothing is started: {name_of_file} has no argument {name}{hint}; --show-args "
                f"lists them, and other parameters belong into params_file"
            )


def check_address(arguments: Arguments) -> None:
    """Refuse a missing address of the controller.

    Without this check the nodes would connect to their default address, at which no
    controller answers, and report that for ever.

    Raises:
        InputError: there is none, or the params_file cannot be read.
    """
    if arguments["source"] != "rtde" or arguments["robot_ip"]:
        return
    named = [name for path in _params_file(arguments) for name in _parameters_in(path)]
    if "robot_ip" not in named:
        raise InputError(
            "nothing is started",
            "robot_ip is missing",
            "give the address of the controller, such as robot_ip:=192.168.0.10",
        )


def _params_file(arguments: Arguments) -> list[str]:
    """Path of the params_file in a list; none without one.

    launch only warns about a file that is not there, and starts all nodes with their
    defaults: a misspelt path would start a cell with another address, model and folder
    than the user means. What the file contains is checked by each node.

    Raises:
        InputError: there is no such file.
    """
    if not arguments["params_file"]:
        return []
    path = user_path(arguments["params_file"])
    if not path.is_file():
        problem = "is no file, nothing is started"
        raise InputError(path, problem, "name a YAML file of parameters")
    return [str(path)]


def _parameters_in(path: str) -> Iterator[str]:
    """Names of the parameters in a file, of whatever nodes; none if it is no such file."""
    try:
        with open_regular(Path(path)) as file:
            content = yaml.safe_load(file.read())
    except (OSError, ValueError, yaml.YAMLError) as error:
        problem = f"cannot be read, nothing is started ({error})"
        raise InputError(path, problem, "name a YAML file of parameters") from error
    waiting = [content]
    while waiting:
        mapping = waiting.pop()
        if not isinstance(mapping, dict):
            continue
        for name, value in mapping.items():
            if name == "ros__parameters" and isinstance(value, dict):
                yield from map(str, value)
            else:
                waiting.append(value)


def check_packages(
    arguments: Arguments, needed: Mapping[str, tuple[str, ...]] = VIEWERS
) -> None:
    """Refuse arguments that are "true" and need a package which is not installed.

    Args:
        arguments: text of all launch arguments.
        needed: packages by the argument that needs them.

    Raises:
        UrEnergyError: one is missing; the message has the command that installs it.
    """

    def is_installed(package: str) -> bool:
        try:
            return bool(get_package_prefix(package))
        except (LookupError, OSError):
            return False

    missing = {
        package: argument
        for argument, packages in needed.items()
        if arguments[argument] == "true"
        for package in packages
        if not is_installed(package)
    }
    if missing:
        switches = " ".join(f"{name}:=true" for name in dict.fromkeys(missing.values()))
        distribution = os.environ.get("ROS_DISTRO", "$ROS_DISTRO")
        names = " ".join(
            f"ros-{distribution}-{each.replace('_', '-')}" for each in missing
        )
        raise UrEnergyError(
            f"nothing is started: {switches} needs {' and '.join(missing)}, which is not "
            f"installed; install it with 'sudo apt install {names}', or leave out {switches}"
        )


def ignored_arguments(arguments: Arguments, reason: str) -> Iterator[str]:
    """Lines about what a cell lacks, and which arguments have no effect, without a logger.

    Args:
        arguments: text of all launch arguments.
        reason: the argument because of which there is none, such as "logger:=false".
    """
    if arguments["record"] == "true":
        yield f"nothing is recorded: no logger is started with {reason}"
    folder = str(parameter("logger", "bag_directory").parameter)
    for name, default in (("bag_directory", folder), ("composed", "false")):
        if (value := arguments.get(name, default)) != default:
            yield f"{name}:={value} has no effect: no logger is started with {reason}"


def described_robot(arguments: Arguments) -> str:
    """Name of the robot, or path of the robot file, that robot_state_publisher describes.

    Raises:
        UrEnergyError: neither robot_model nor model_file is given; the controller is asked
            by the nodes only, later.
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


def node_command(
    node: str, parameters: Mapping[str, Value], *, namespace: str = ""
) -> list[str]:
    """Command line that starts a node.

    Args:
        node: name of the node.
        parameters: values of its parameters; the others have their defaults.
        namespace: of the node, such as "/cell_1".

    Raises:
        KeyError: there is no such node or parameter.
        ValueError: a value is not allowed.
    """
    program = Path(sys.executable).parent / EXECUTABLES[node]
    command = [
        str(program),
        "--ros-args",
        "--params-file",
        str(default_parameter_file(node)),
    ]
    command += ["-r", f"__ns:={namespace}"] if namespace else []
    for name, value in parameters.items():
        problem = parameter(node, name).problem(value)
        if problem is not None:
            raise ValueError(problem)
        command += ["-p", f"{name}:={_yaml(value)}"]
    return command


def _yaml(value: Value) -> str:
    """A value of a parameter as rcl reads it from a command line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "[" + ", ".join(_yaml(item) for item in value) + "]"
    if isinstance(value, str):
        # Quoted, since rcl reads the value as YAML: unquoted, 1e3 or yes would not be a
        # text.
        return "'" + value.replace("'", "''") + "'"
    return str(value)
