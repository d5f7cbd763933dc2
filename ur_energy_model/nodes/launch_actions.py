"""What the launch files start; no other module imports launch and launch_ros."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, LogInfo, OpaqueFunction
from launch_ros.actions import Node

from ur_energy_model.files import PACKAGE, config_file, user_path
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.urdf_export import urdf
from ur_energy_model.nodes.launch_arguments import (
    EXECUTABLES,
    LAUNCH_FILES,
    VIEWERS,
    Arguments,
    changed_parameters,
    check_address,
    check_names,
    check_packages,
    default_parameter_file,
    described_robot,
    ignored_arguments,
    parameters_of,
)
from ur_energy_model.options import Value

if TYPE_CHECKING:
    from launch.events.process import ProcessExited


def description(file: str) -> LaunchDescription:
    """What launch/<file>.launch.py describes: its arguments, and what it starts with them."""
    table = LAUNCH_FILES[file]

    def start(context: LaunchContext) -> list[Any]:
        check_names(file, sys.argv)
        given = context.launch_configurations
        return STARTED[file]({argument.name: given[argument.name] for argument in table})

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


def energy(arguments: Arguments, *, driver: bool = False) -> list[Any]:
    """Estimator and logger, a robot model and rviz; a driver beside them publishes joint_states."""
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
        lines = [LogInfo(msg=line) for line in ignored_arguments(arguments, alone)]
        actions = [*lines, _node("estimator", arguments, estimator)]
    elif rtde if driver else arguments["composed"] == "true":
        # The process gets no name, which would rename both nodes, and no default files, since the
        # defaults are built in.
        files = [*_params_file(arguments), {**estimator, **logger}]
        actions = [_process("cell_node", arguments, files, ["estimator", "logger"])]
    else:
        actions = [_node("estimator", arguments, estimator), _node("logger", arguments, logger)]
    if arguments.get("robot_description") == "true":
        robot = described_robot(arguments)
        actions.append(_robot_state_publisher(arguments, robot, arguments["tf_prefix"]))
    return [*actions, *_rviz(arguments)]


def demo(arguments: Arguments) -> list[Any]:
    """A simulated arm, logger and estimator; the estimator finds out which arm it is."""
    check_packages(arguments, {"rviz": ("rviz2", "robot_state_publisher")})
    robot = changed_parameters("simulated_robot", arguments)
    logger = changed_parameters("logger", arguments, without=["record"])
    estimator = changed_parameters("estimator", arguments, without=["robot_model"])
    address: dict[str, Value] = {"robot_ip": arguments["host"]}
    record: dict[str, Value] = {"record": arguments["record"] == "true"}
    actions = [
        _node("simulated_robot", arguments, robot),
        _node("logger", arguments, address | record | logger),
        _node("estimator", arguments, address | estimator),
    ]
    if arguments["rviz"] == "true":
        actions.append(_robot_state_publisher(arguments, arguments["robot_model"]))
    return [*actions, *_rviz(arguments)]


def identify(arguments: Arguments) -> list[Any]:
    """One identification."""
    parameters = {"identify_on_start": True} | changed_parameters("identification", arguments)
    return [_node("identification", arguments, parameters)]


STARTED: dict[str, Callable[[Arguments], list[Any]]] = {
    "energy": energy,
    "ur_driver": partial(energy, driver=True),
    "demo": demo,
    "identify": identify,
}
"""What each launch file starts."""


def _node(node: str, arguments: Arguments, parameters: Mapping[str, Value]) -> Node:
    """A node of this package; later sources of parameters win: defaults, params_file, these."""
    files = [str(default_parameter_file(node)), *_params_file(arguments)]
    return _process(EXECUTABLES[node], arguments, [*files, dict(parameters)], [node], name=node)


def _viewer(name: str, space: str, **options: Any) -> Node:
    """A node of another package, which is called as the package."""
    return Node(
        package=name, executable=name, name=name, namespace=space, output="screen", **options
    )


def _robot_state_publisher(arguments: Arguments, robot: str, prefix: str = "") -> Node:
    """robot_state_publisher with a simple model of a robot."""
    described = {"robot_description": urdf(load_robot(robot), prefix=prefix)}
    return _viewer("robot_state_publisher", arguments["namespace"], parameters=[described])


def _rviz(arguments: Arguments) -> list[Node]:
    """Rviz with the markers and the robot model, if it is asked for."""
    layout, space = ["-d", str(config_file("rviz", "energy.rviz"))], arguments["namespace"]
    return [_viewer("rviz2", space, arguments=layout)] if arguments["rviz"] == "true" else []


def _params_file(arguments: Arguments) -> list[str]:
    path = arguments["params_file"]
    parameters_of(arguments)  # nodes would fail one by one, with the words of a parser
    return [str(user_path(path))] if path else []


def _process(
    executable: str,
    arguments: Arguments,
    parameters: list[Any],
    loggers: list[str],
    **options: Any,
) -> Node:
    level, respawn = arguments["log_level"], arguments.get("respawn") == "true"
    delay = arguments.get("respawn_delay", "0")
    try:
        seconds = float(delay)
    except ValueError as error:
        raise ValueError(f"respawn_delay:={delay} is not a number") from error
    return Node(
        package=PACKAGE,
        executable=executable,
        namespace=arguments["namespace"],
        parameters=parameters,
        ros_arguments=[word for name in loggers for word in ("--log-level", f"{name}:={level}")],
        output="screen",
        respawn=respawn,
        respawn_delay=seconds,
        on_exit=None if respawn else _remember_failure,
        **options,
    )


def _remember_failure(event: ProcessExited, context: LaunchContext) -> None:
    """Launch returns 1 at its end if the process has failed; the other nodes go on until then."""
    if event.returncode:
        text = f"{event.process_name} ended with exit code {event.returncode}"
        context.asyncio_loop.call_exception_handler({"message": text})
