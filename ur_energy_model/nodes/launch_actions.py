"""Launch actions that the launch files share; no other module imports launch and launch_ros."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, LogInfo, OpaqueFunction
from launch_ros.actions import Node

from ur_energy_model.files import PACKAGE, config_file, user_path
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.urdf_export import urdf
from ur_energy_model.nodes.launch_arguments import (
    EXECUTABLES,
    LaunchArgument,
    check_names,
    common,
    default_parameter_file,
    ignored_arguments,
    of_parameters,
    parameters_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from launch.events.process import ProcessExited

    from ur_energy_model.options import Value


def common_arguments(*names: str) -> list[DeclareLaunchArgument]:
    """Declarations of arguments that mean the same in every launch file that has them."""
    return [_declared(argument) for argument in common(*names)]


def parameter_arguments(node: str, *names: str) -> list[DeclareLaunchArgument]:
    """Declarations of arguments that set parameters of a node, with the defaults of these."""
    return [_declared(argument) for argument in of_parameters(node, *names)]


def description(
    file: str,
    arguments: list[DeclareLaunchArgument],
    setup: Callable[[LaunchContext], list[Any]],
) -> LaunchDescription:
    """A launch file: its arguments, and what it starts with them.

    Args:
        file: its path.
        arguments: their declarations.
        setup: returns the actions; not called if an argument is unknown.
    """

    def checked(context: LaunchContext) -> list[Any]:
        check_names(file, [argument.name for argument in arguments], sys.argv)
        return setup(context)

    return LaunchDescription([*arguments, OpaqueFunction(function=checked)])


def package_node(
    node: str,
    arguments: Mapping[str, str],
    parameters: Mapping[str, Value],
    **options: Any,
) -> Node:
    """A node of this package.

    Later sources of parameters win: defaults, params_file, `parameters`.

    Args:
        node: its name.
        arguments: text of all launch arguments, by name: namespace, params_file, log_level, and
            respawn and respawn_delay where the launch file has them.
        parameters: launch arguments that differ from their default.
        options: further ones of launch's Node.
    """
    return _process(
        EXECUTABLES[node],
        arguments,
        [str(default_parameter_file(node)), *_params_file(arguments), dict(parameters)],
        [node],
        name=node,
        **options,
    )


def cell_node(arguments: Mapping[str, str], parameters: Mapping[str, Value]) -> Node:
    """Logger and estimator in one process.

    The process gets no name, which would rename both nodes, and no default files, since the
    defaults are built in.
    """
    return _process(
        "cell_node",
        arguments,
        [*_params_file(arguments), dict(parameters)],
        ["estimator", "logger"],
    )


def estimator_and_logger(
    arguments: Mapping[str, str],
    estimator: Mapping[str, Value],
    logger: Mapping[str, Value],
    *,
    composed: bool,
    alone_because: str = "",
) -> list[Any]:
    """The nodes of a cell, and lines about arguments that have no effect.

    Args:
        arguments: text of all launch arguments, by name.
        estimator: parameters of the estimator.
        logger: parameters of the logger.
        composed: start both in one process, on one connection.
        alone_because: argument because of which no logger is started; empty to start it.
    """
    if alone_because:
        lines = ignored_arguments(arguments, alone_because)
        said = [LogInfo(msg=line) for line in lines]
        return [*said, package_node("estimator", arguments, estimator)]
    if composed:
        return [cell_node(arguments, {**estimator, **logger})]
    return [
        package_node("estimator", arguments, estimator),
        package_node("logger", arguments, logger),
    ]


def robot_state_publisher(arguments: Mapping[str, str], robot: str, prefix: str = "") -> Node:
    """robot_state_publisher with a simple model of a robot.

    Args:
        arguments: text of all launch arguments, by name: namespace.
        robot: name of the robot or path of a robot file.
        prefix: of the joint and frame names.
    """
    description = urdf(load_robot(robot), prefix=prefix)
    return Node(
        package="robot_state_publisher",
        executable="robot_state_publisher",
        name="robot_state_publisher",
        namespace=arguments["namespace"],
        parameters=[{"robot_description": description}],
        output="screen",
    )


def rviz(arguments: Mapping[str, str]) -> Node:
    """Rviz with the markers and the robot model."""
    return Node(
        package="rviz2",
        executable="rviz2",
        name="rviz2",
        namespace=arguments["namespace"],
        arguments=["-d", str(config_file("rviz", "energy.rviz"))],
        output="screen",
    )


def _declared(argument: LaunchArgument) -> DeclareLaunchArgument:
    return DeclareLaunchArgument(
        argument.name,
        default_value=argument.default_value,
        description=argument.description,
        choices=list(argument.choices) or None,
    )


def _params_file(arguments: Mapping[str, str]) -> list[str]:
    path = arguments["params_file"]
    parameters_of(arguments)  # nodes would fail one by one, with the words of a parser
    return [str(user_path(path))] if path else []


def _process(
    executable: str,
    arguments: Mapping[str, str],
    parameters: list[Any],
    loggers: list[str],
    **options: Any,
) -> Node:
    level = arguments["log_level"]
    respawn = arguments.get("respawn") == "true"
    return Node(
        package=PACKAGE,
        executable=executable,
        namespace=arguments["namespace"],
        parameters=parameters,
        ros_arguments=[word for name in loggers for word in ("--log-level", f"{name}:={level}")],
        output="screen",
        respawn=respawn,
        respawn_delay=_seconds(arguments.get("respawn_delay", "0")),
        on_exit=None if respawn else _remember_failure,
        **options,
    )


def _remember_failure(event: ProcessExited, context: LaunchContext) -> None:
    """Launch returns 1 at its end if the process has failed; the other nodes go on until then."""
    if event.returncode:
        text = f"{event.process_name} ended with exit code {event.returncode}"
        context.asyncio_loop.call_exception_handler({"message": text})


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise ValueError(f"respawn_delay:={text} is not a number") from error
