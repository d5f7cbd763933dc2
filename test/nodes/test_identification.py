# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The identification node, from a simulated robot through the logger to a model."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from test.absent_rooms import needs_room
from test.nodes.conftest import Cell
from ur_energy_model.model.model_file import load_model
from ur_energy_model.nodes.identification import IdentificationNode
from ur_energy_model.nodes.logger import LoggerNode
from ur_energy_model.telemetry.bag.reader import read_bag


def test_from_a_simulated_robot_to_a_model(
    cell: Cell, fresh_host: Callable[[], str]
) -> None:
    """The logger waits for the controller; the model identified from its bag is the true one."""
    needs_room("simulation")
    observer = cell.observer
    host = fresh_host()
    truth = cell.folder / "truth.json"
    observer.subscribe("/diagnostics", "diagnostic_msgs/DiagnosticArray")
    observer.subscribe("/joint_states", "sensor_msgs/JointState")
    bags = cell.folder / "bags"
    logger = cell.start_node(
        LoggerNode, robot_ip=host, record=True, bag_directory=str(bags)
    )
    name = "logger: connection"
    observer.status_that(name, lambda s: "connection" in s["message"], "no controller")
    robot = cell.start_process(
        "simulated_robot", host=host, motion="trajectory_a", seed=7, truth_file=str(truth)
    )
    observer.wait(lambda: "/joint_states" in observer.latest, "samples")
    name = "simulated_robot: controller"
    status = observer.status_that(name, lambda s: s["message"] == "serving", "the robot")
    assert status["host"] == host
    observer.wait_for_messages("/joint_states", 150)
    logger.end()
    assert cell.stop(robot)[0] == 0
    known = json.loads(truth.read_text())
    assert (truth.parent / "truth.npz").is_file()
    (bag,) = bags.iterdir()
    telemetry = read_bag(bag)
    assert telemetry.info.simulated
    assert len(telemetry) > 1000

    path = cell.folder / "model.yaml"
    given = {"bags": [str(bag)], "output": str(path), "friction": "stribeck"}
    cell.start_node(IdentificationNode, **given)
    observer.subscribe(
        "/identification/result", "diagnostic_msgs/DiagnosticArray", latched=True
    )
    answer = observer.call("/identification/identify")
    assert answer.success, answer.message
    model = load_model(path)
    assert model.robot_name == "ur5e"  # as the bag names it
    found = [joint.reflected_inertia for joint in model.joints]
    assert found == pytest.approx(known["parameters"]["reflected_inertia"], rel=0.05)
    observer.wait(lambda: "/identification/result" in observer.latest, "the result")
    names = [entry.name for entry in observer.latest["/identification/result"].status]
    assert names == [f"model: {joint.name}" for joint in model.joints] + ["model: arm"]
