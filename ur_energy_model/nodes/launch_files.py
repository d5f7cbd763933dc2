# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The launch files: their arguments, and what they start.

Only `description` imports launch, so that tools, tests and the demo read the same tables
as the files in launch/. An argument that sets a parameter has the name, default, help and
choices of the parameter. Rooms register launch files of their own, such as demo;
`launch_files` returns them all.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ur_energy_model.files import PACKAGE, config_file
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.urdf_export import urdf
from ur_energy_model.nodes.launch_checks import (
    VIEWERS,
    Arguments,
    check_address,
    check_names,
    check_packages,
    described_robot,
    ignored_arguments,
    params_file,
)
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
        name: name as users type it after `ros2 launch ...`, as in `name:=value`.
        default: text; None if the user must give a value.
        help: one sentence without a full stop.
        choices: allowed values; empty for any.
    """

    name: str
    default: str | None
    help: str
    choices: tuple[str, ...] = ()


class Started(NamedTuple):
    """A process that a launch file starts.

    Attributes:
        executable: the program; a program of another package has the name of that
            package.
        parameters: files, and tables of values by name; later values replace earlier
            values.
        nodes: nodes of this package in the process, none for a program of another
            package; a single node gives the process its name.
        arguments: arguments of the command line.
    """

    executable: str
    parameters: tuple[Any, ...] = ()
    nodes: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()


class LaunchFile(NamedTuple):
    """Content of launch/<name>.launch.py.

    Attributes:
        arguments: arguments of the launch file, in the order of --show-args.
        start: function of the text of all arguments that yields the processes to start,
            and lines to write; raises UrEnergyError or ValueError where nothing is to be
            started.
    """

    arguments: tuple[LaunchArgument, ...]
    start: Callable[[Arguments], Iterator[Started | str]]


# Arguments.


def parameter_arguments(node: str, *names: str) -> list[LaunchArgument]:
    """Arguments that set parameters of a node, with their defaults, help and choices.

    Args:
        node: name of the node.
        names: names of the node's parameters, and so of the arguments.

    Raises:
        KeyError: the node has no such parameter.
    """
    found: list[LaunchArgument] = []
    for name in names:
        entry = parameter(node, name).elsewhere
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
    """Arguments of all parameters of a node, and of rooms, that are marked for launch."""
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
    # An address that the user has not given must not replace the address in the parameter
    # file.
    without = () if arguments["robot_ip"] else ("robot_ip",)
    estimator: dict[str, Value] = {}
    logger: dict[str, Value] = {}
    if arguments.get("use_sim_time") == "true":
        estimator["use_sim_time"] = True
        logger["use_sim_time"] = True
    if driver:
        logger["publish_joint_states"] = False
    estimator |= changed_parameters("estimator", arguments, without=without)
    logger |= changed_parameters("logger", arguments, without=without)
    reads_controller = arguments["source"] == "rtde"
    composed = reads_controller if driver else arguments["composed"] == "true"
    no_logger = ""  # the argument that excludes the logger
    if not (reads_controller or driver):
        no_logger = f"source:={arguments['source']}"
    elif arguments["logger"] == "false":
        no_logger = "logger:=false"
    if no_logger:
        yield from ignored_arguments(arguments, no_logger)
        yield node_process("estimator", arguments, estimator)
    elif composed:
        # The process gets no name, which would rename both nodes, and no default files,
        # since the defaults are built in.
        files = (*params_file(arguments), {**estimator, **logger})
        yield Started("cell_node", files, ("estimator", "logger"))
    else:
        yield node_process("estimator", arguments, estimator)
        yield node_process("logger", arguments, logger)
    if arguments.get("robot_description") == "true":
        yield robot_state_publisher(described_robot(arguments), arguments["tf_prefix"])
    yield from rviz(arguments)


def identify(arguments: Arguments) -> Iterator[Started]:
    """One identification, after which launch ends by default.

    Args:
        arguments: text of all launch arguments.

    Raises:
        InputError: the parameter file is missing.
        ValueError: the text of an argument is no value of its parameter.
    """
    parameters: dict[str, Value] = {"identify_on_start": True}
    parameters |= changed_parameters("identification", arguments)
    yield node_process("identification", arguments, parameters)


def changed_parameters(
    node: str, arguments: Arguments, *, without: Collection[str] = ()
) -> dict[str, Value]:
    """Values of launch arguments that differ from the defaults of the parameters.

    Arguments with the default are left out, so that a parameter file of the user can set
    these parameters.

    Args:
        node: name of the node.
        arguments: text of all launch arguments.
        without: arguments that are left out as well, because they do not mean the
            parameter of this name.

    Raises:
        ValueError: the text of an argument is no value of its parameter.
    """
    found: dict[str, Value] = {}
    for entry in NODES[node]:
        if entry.name not in arguments or entry.name in without:
            continue
        value = entry.elsewhere.parse(arguments[entry.name])
        if value != entry.parameter:
            found[entry.name] = value
    return found


def node_process(
    node: str, arguments: Arguments, parameters: Mapping[str, Value]
) -> Started:
    """A process with one node.

    The node gets the parameter file of the user, or else the installed file with the
    defaults. It never gets both: where two files have values of different types, ROS
    silently takes the value of the first, and the node cannot refuse a wrong type.

    Args:
        node: name of the node.
        arguments: text of all launch arguments.
        parameters: values that replace values of the file.

    Raises:
        InputError: the parameter file of the user is missing.
    """
    files = params_file(arguments) or [str(default_parameter_file(node))]
    return Started(EXECUTABLES[node], (*files, dict(parameters)), (node,))


def robot_state_publisher(robot: str, prefix: str = "") -> Started:
    """robot_state_publisher with a simple model of a robot.

    Args:
        robot: name of the robot, or path of a robot file.
        prefix: prefix of joint and frame names.
    """
    described = {"robot_description": urdf(load_robot(robot), prefix=prefix)}
    return Started("robot_state_publisher", (described,))


def rviz(arguments: Arguments) -> Iterator[Started]:
    """Rviz with the markers and the robot model, if the argument `rviz` is true."""
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
            *parameter_arguments("estimator", "friction_laws"),
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
            *parameter_arguments("estimator", "model_file", "friction_laws"),
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
            *parameter_arguments("identification", "robot_model", "output"),
            *parameter_arguments("identification", "friction", "friction_laws"),
            *COMMON_ARGUMENTS,
            switch("exit_when_done", "true", "end when the model file is written"),
        ),
        start=identify,
    ),
}
"""The launch files that are always there."""


def launch_files() -> dict[str, LaunchFile]:
    """The launch files of the core and of the rooms that are there, by name."""
    found = dict(CORE_LAUNCH_FILES)
    for room in rooms():
        for name, place in room.launch_files.items():
            found[name] = loaded(place)
    return found


def description(file: str) -> LaunchDescription:
    """The launch description of launch/<file>.launch.py: arguments and processes.

    The processes are chosen once the values of the arguments are known. An error then
    ends launch with its line, and nothing is started.

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
        options: dict[str, Any] = {
            "package": started.executable,
            "name": started.executable,
        }
        if started.nodes:
            options = _options(started.nodes, arguments)
        if started.parameters:
            options["parameters"] = list(started.parameters)
        if started.arguments:
            options["arguments"] = list(started.arguments)
        return Node(
            executable=started.executable,
            namespace=arguments["namespace"],
            output="screen",
            **options,
        )

    def start(context: LaunchContext) -> list[Any]:
        """The actions, once the values of the arguments are known."""
        check_names(file, [argument.name for argument in table], sys.argv)
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
    """Options of launch_ros for a process with nodes of this package.

    Args:
        nodes: names of the nodes; several of them keep their names in the process.
        arguments: text of all launch arguments.

    Raises:
        ValueError: respawn_delay is not a number.
    """
    level = arguments["log_level"]
    respawn = arguments.get("respawn") == "true"
    delay = arguments.get("respawn_delay", "0")
    try:
        seconds = float(delay)
    except ValueError as error:
        raise ValueError(f"respawn_delay:={delay} is not a number") from error

    def remember_failure(event: ProcessExited, context: LaunchContext) -> None:
        """Let launch return 1 at its end if the process has failed; other nodes go on."""
        if event.returncode:
            text = f"{event.process_name} ended with exit code {event.returncode}"
            context.asyncio_loop.call_exception_handler({"message": text})

    levels: list[str] = []
    for name in nodes:
        levels += ["--log-level", f"{name}:={level}"]
    return {
        "package": PACKAGE,
        "name": nodes[0] if len(nodes) == 1 else None,
        "ros_arguments": levels,
        "respawn": respawn,
        "respawn_delay": seconds,
        "on_exit": None if respawn else remember_failure,
    }


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
        namespace: namespace of the node, such as "/cell_1".

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
    if namespace:
        command += ["-r", f"__ns:={namespace}"]
    for name, value in parameters.items():
        problem = parameter(node, name).elsewhere.problem(value)
        if problem is not None:
            raise ValueError(problem)
        command += ["-p", f"{name}:={_yaml(value)}"]
    return command


def _yaml(value: Value) -> str:
    """A value of a parameter as rcl reads it from a command line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        items = ", ".join(map(_yaml, value))
        return f"[{items}]"
    if isinstance(value, str):
        # Quoted: rcl reads the value as YAML, where 1e3 or yes would not be a text.
        escaped = value.replace("'", "''")
        return f"'{escaped}'"
    return str(value)
