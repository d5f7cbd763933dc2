# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Checks of launch arguments before anything is started.

launch itself ignores arguments that a launch file does not have, and only warns about a
parameter file or a package that is missing: nodes would then run with other values than
the user means. Each check ends launch with one line instead.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import yaml
from ament_index_python.packages import get_package_prefix

from ur_energy_model.errors import InputError, UrEnergyError, closest
from ur_energy_model.files import open_regular, user_path
from ur_energy_model.model.model_file import load_model
from ur_energy_model.nodes.parameters import parameter

Arguments: TypeAlias = Mapping[str, str]
"""Text of all arguments of a launch file, by their names."""
VIEWERS: Mapping[str, tuple[str, ...]] = {
    "rviz": ("rviz2",),
    "robot_description": ("robot_state_publisher",),
}
"""Packages that launch arguments need, by argument."""


def check_names(file: str, declared: Collection[str], command: Sequence[str]) -> None:
    """Refuse an argument on the command line that a launch file does not have.

    Launch itself ignores it. A launch file that another one includes is not checked: the
    command line then has the arguments of the other file.

    Args:
        file: name of the launch file.
        declared: names of its arguments.
        command: words of the command line of launch.

    Raises:
        UrEnergyError: there is such an argument; the message has the likely right one.
    """
    words = [Path(word).name for word in command]
    name_of_file = f"{file}.launch.py"
    if name_of_file not in words:
        return
    for word in command[words.index(name_of_file) + 1 :]:
        name, assigned, _ = word.partition(":=")
        if assigned and name not in declared:
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
    named: list[str] = []
    for path in params_file(arguments):
        named += _parameters_in(path)
    if "robot_ip" not in named:
        raise InputError(
            "nothing is started",
            "robot_ip is missing",
            "give the address of the controller, such as robot_ip:=192.168.0.10",
        )


def params_file(arguments: Arguments) -> list[str]:
    """Path of the parameter file that the user gives, in a list; empty without one.

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
    """Names of the parameters in a file, of all nodes in it.

    Args:
        path: path of a YAML file; content of another form has no parameters.

    Raises:
        InputError: the file cannot be read, or is not YAML.
    """
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
    missing: list[str] = []
    switches: list[str] = []  # the arguments that need them
    for argument, packages in needed.items():
        lacking = [package for package in packages if not _is_installed(package)]
        if lacking and arguments[argument] == "true":
            missing += lacking
            switches.append(f"{argument}:=true")
    if not missing:
        return
    distribution = os.environ.get("ROS_DISTRO", "$ROS_DISTRO")
    debian = [f"ros-{distribution}-{package.replace('_', '-')}" for package in missing]
    stated = " ".join(switches)
    raise UrEnergyError(
        f"nothing is started: {stated} needs {' and '.join(missing)}, which is not "
        f"installed; install it with 'sudo apt install {' '.join(debian)}', or leave out "
        f"{stated}"
    )


def _is_installed(package: str) -> bool:
    """Whether ROS finds a package in its index."""
    try:
        return bool(get_package_prefix(package))
    except (LookupError, OSError):
        return False


def ignored_arguments(arguments: Arguments, reason: str) -> Iterator[str]:
    """Lines about arguments that have no effect because no logger is started.

    Args:
        arguments: text of all launch arguments.
        reason: the argument that excludes the logger, such as "logger:=false".
    """
    if arguments["record"] == "true":
        yield f"nothing is recorded: no logger is started with {reason}"
    folder = str(parameter("logger", "bag_directory").parameter)
    for name, default in (("bag_directory", folder), ("composed", "false")):
        value = arguments.get(name, default)
        if value != default:
            yield f"{name}:={value} has no effect: no logger is started with {reason}"


def described_robot(arguments: Arguments) -> str:
    """Name of the robot, or path of the robot file, that robot_state_publisher describes.

    Raises:
        UrEnergyError: neither robot_model nor model_file is given. The controller also
            states its type, but only to the nodes, which start later.
    """
    if arguments["robot_model"]:
        return arguments["robot_model"]
    if arguments["model_file"]:
        return load_model(user_path(arguments["model_file"])).robot
    raise UrEnergyError(
        "nothing is started: robot_description:=true needs robot_model, such as "
        "robot_model:=ur5e, or model_file"
    )
