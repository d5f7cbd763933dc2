"""Checks of launch arguments before anything is started; does not import launch."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from ament_index_python.packages import get_package_prefix

from ur_energy_model.errors import UrEnergyError

VIEWERS: Mapping[str, str] = {"rviz": "rviz2", "robot_description": "robot_state_publisher"}
"""Packages that launch arguments need, by argument."""

_OF_LOGGER: Mapping[str, str] = {"record": "false", "bag_directory": "bags", "composed": "false"}
"""Arguments of the logger, with their defaults."""


def check_packages(arguments: Mapping[str, str], needed: Mapping[str, str] = VIEWERS) -> None:
    """Check that the packages of the arguments that are "true" are installed.

    Args:
        arguments: text of all launch arguments, by name.
        needed: package by argument.

    Raises:
        UrEnergyError: one is not; names the package and the argument.
    """
    for argument, package in needed.items():
        if arguments.get(argument) != "true":
            continue
        try:
            get_package_prefix(package)
        except (LookupError, OSError):
            distribution = os.environ.get("ROS_DISTRO", "$ROS_DISTRO")
            name = package.replace("_", "-")
            raise UrEnergyError(
                f"{argument}:=true needs the package {package}, which is not installed; install "
                f"it (sudo apt install ros-{distribution}-{name}) or leave out {argument}:=true"
            ) from None


def ignored_arguments(arguments: Mapping[str, str]) -> Iterator[str]:
    """Lines about arguments of the logger, where a launch file starts none.

    Args:
        arguments: text of all launch arguments, by name.
    """
    source = arguments["source"]
    if source == "rtde" and arguments["logger"] == "true":
        return
    reason = f"source:={source}" if source != "rtde" else "logger:=false"
    for name, default in _OF_LOGGER.items():
        if arguments[name] != default:
            yield f"{name}:={arguments[name]} has no effect: no logger is started with {reason}"
