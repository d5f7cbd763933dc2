# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""cell_node: logger and estimator in one process, with one RTDE connection."""

from __future__ import annotations

from typing import Any

from ur_energy_model.errors import InputError
from ur_energy_model.model.robots import load_robot
from ur_energy_model.nodes.estimator import EstimatorNode
from ur_energy_model.nodes.lines import WARN
from ur_energy_model.nodes.logger import LoggerNode
from ur_energy_model.nodes.managed_node import ManagedNode
from ur_energy_model.nodes.process import run_nodes
from ur_energy_model.telemetry.fields import ENERGY_FIELDS
from ur_energy_model.telemetry.rtde.source import RtdeSource
from ur_energy_model.telemetry.shared_source import SharedSource


def nodes(**options: Any) -> list[ManagedNode]:
    """Logger and estimator on one connection, whose address is the logger's.

    The connection has the fields of both nodes. The robot is taken from the logger's
    robot_model, else from the estimator's model, else from the controller.

    Args:
        options: further arguments of rclpy's nodes.

    Raises:
        InputError: the estimator has another source than rtde.
    """

    def connect() -> RtdeSource:
        """The connection, with the shorter batches of the two nodes."""
        wanted = (
            *(logger.parameters.fields or ENERGY_FIELDS),
            *estimator.fields,
        )
        named = logger.parameters.robot_model
        robot = load_robot(named).name if named else estimator.robot_name
        shortest = min(
            logger.parameters.batch_seconds, estimator.parameters.batch_seconds
        )
        address = logger.parameters.robot_ip
        return RtdeSource(address, robot=robot, fields=wanted, batch_seconds=shortest)

    shared = SharedSource(connect)
    logger = LoggerNode(
        lambda: shared.consumer(logger.parameters.batch_seconds), **options
    )
    estimator = EstimatorNode(
        lambda: shared.consumer(estimator.parameters.batch_seconds), **options
    )
    if estimator.parameters.source != "rtde":
        problem = (
            f"is {estimator.parameters.source}, but both nodes share an RTDE connection"
        )
        raise InputError(
            "cell_node", problem, "start estimator_node instead", field="source"
        )
    if estimator.parameters.robot_ip != logger.parameters.robot_ip:
        address = logger.parameters.robot_ip
        estimator.log(
            WARN, f"robot_ip is ignored: the connection is the logger's, to {address}"
        )
    return [logger, estimator]


def main() -> int:
    """Console script."""
    return run_nodes(nodes)
