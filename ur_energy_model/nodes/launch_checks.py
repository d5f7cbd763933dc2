"""Checks of launch arguments before anything is started; does not import launch."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from ament_index_python.packages import get_package_prefix

from ur_energy_model.errors import UrEnergyError
from ur_energy_model.files import user_path
from ur_energy_model.model.file.model_file import load_model

VIEWERS: Mapping[str, tuple[str, ...]] = {
    "rviz": ("rviz2",),
    "robot_description": ("robot_state_publisher",),
}
"""Packages that launch arguments need, by argument."""

_OF_LOGGER: Mapping[str, str] = {"record": "false", "bag_directory": "bags", "composed": "false"}
"""Arguments of the logger, with their defaults."""


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
    """Lines about the arguments that only a logger uses, where none is started.

    Args:
        arguments: text of all launch arguments, by name.
        reason: argument because of which no logger is started.
    """
    for name, default in _OF_LOGGER.items():
        value = arguments.get(name, default)
        if value != default:
            yield f"{name}:={value} has no effect: no logger is started with {reason}"


def described_robot(arguments: Mapping[str, str]) -> str:
    """Name of the robot, or path of the robot file, that robot_state_publisher describes.

    Args:
        arguments: text of all launch arguments, by name: robot_model, model_file.

    Raises:
        ModelFileError: the model file cannot be used.
        UrEnergyError: no argument tells the robot.
    """
    if arguments["robot_model"]:
        return arguments["robot_model"]
    if arguments["model_file"]:
        return load_model(user_path(arguments["model_file"])).robot
    raise UrEnergyError(
        "nothing is started: robot_description:=true needs robot_model, such as "
        "robot_model:=ur5e, or model_file"
    )
