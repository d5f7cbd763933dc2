# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The launch file of the demo: a simulated arm, the logger and the estimator.

`host` and `robot_model` are parameters of the simulated arm. Logger and estimator read
this arm as they would read a real one: they get its address only.
"""

from __future__ import annotations

from collections.abc import Iterator

from ur_energy_model.nodes.launch_checks import Arguments, check_packages
from ur_energy_model.nodes.launch_files import (
    COMMON_ARGUMENTS,
    RVIZ,
    LaunchArgument,
    LaunchFile,
    Started,
    changed_parameters,
    node_process,
    parameter_arguments,
    robot_state_publisher,
    rviz,
    switch,
)
from ur_energy_model.options import Value
from ur_energy_model.rooms import has_room


def start(arguments: Arguments) -> Iterator[Started]:
    """The processes; the estimator finds out from the controller which arm it is.

    Args:
        arguments: text of all launch arguments.

    Raises:
        UrEnergyError: a package that rviz needs, or the parameter file, is missing.
        ValueError: the text of an argument is no value of its parameter.
    """
    check_packages(arguments, {"rviz": ("rviz2", "robot_state_publisher")})
    address: dict[str, Value] = {"robot_ip": arguments["host"]}
    logger = address | {"record": arguments["record"] == "true"}
    logger |= changed_parameters("logger", arguments, without=["record"])
    estimator = address | changed_parameters(
        "estimator", arguments, without=["robot_model"]
    )
    robot = changed_parameters("simulated_robot", arguments)
    yield node_process("simulated_robot", arguments, robot)
    yield node_process("logger", arguments, logger)
    yield node_process("estimator", arguments, estimator)
    if arguments["rviz"] == "true":
        yield robot_state_publisher(arguments["robot_model"])
    yield from rviz(arguments)


def _learning() -> list[LaunchArgument]:
    """The argument that makes the estimator learn; none without the room `learning`."""
    if not has_room("learning"):
        return []
    return parameter_arguments("estimator", "learn")


DEMO = LaunchFile(
    arguments=(
        *parameter_arguments("simulated_robot", "host", "robot_model", "motion", "seed"),
        *parameter_arguments("estimator", "model_file"),
        *_learning(),
        *COMMON_ARGUMENTS,
        switch("record", "false", "record the simulated arm into bag_directory"),
        *parameter_arguments("logger", "bag_directory"),
        RVIZ,
    ),
    start=start,
)
