# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The estimator node takes the arm's torque constants from the stream, and names another arm's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from test.nodes.conftest import LEARNING_OFF, Cell
from ur_energy_model.energy.live import LIVE_FIELDS
from ur_energy_model.model.controller_constants import ControllerConstants
from ur_energy_model.model.generic import generic_model
from ur_energy_model.model.model_file import save_model
from ur_energy_model.model.robots import load_robot
from ur_energy_model.nodes.estimator import EstimatorNode
from ur_energy_model.simulation.simulated_arm import SimulatedArm, record_arm
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.telemetry.samples import RecordingInfo
from ur_energy_model.trajectory.named_motions import named_motion

ROBOT = load_robot("ur5e")


@pytest.fixture(scope="module")
def arm() -> SimulatedArm:
    return SimulatedArm(ROBOT, motion=named_motion("pick_and_place", ROBOT), seed=4412)


@pytest.fixture(scope="module")
def bag(arm: SimulatedArm, tmp_path_factory: pytest.TempPathFactory) -> Path:
    telemetry = record_arm(arm, 8.0, LIVE_FIELDS)
    path = tmp_path_factory.mktemp("stream") / "bag"
    stamp = ((1_700_000_000 + telemetry.time) * 1e9).astype(np.int64)
    info = RecordingInfo(robot="ur5e", rate=500.0)
    with BagWriter(path, info, tuple(telemetry.columns)) as writer:
        writer.write(replace(telemetry, info=info, stamp=stamp))
    return path


def test_a_generic_model_gets_the_constants_of_the_arm(
    cell: Cell, arm: SimulatedArm, bag: Path
) -> None:
    observer = cell.observer
    observer.subscribe("/diagnostics", "diagnostic_msgs/DiagnosticArray")
    cell.start_node(EstimatorNode, source="bag", bag=str(bag), **LEARNING_OFF)
    key = "controller_constants_N_m_per_A"
    found = observer.status_that(
        "estimator: model",
        lambda s: s.get(key, "unknown").count("unknown") <= 3,
        "constants",
    )
    elbow = float(found[key].split(", ")[2])
    assert elbow == pytest.approx(arm.parameters.stated_current_to_torque[2], rel=0.01)
    assert "another arm" not in found["message"]


def test_the_model_of_another_arm_is_named_on_diagnostics_and_summary(
    cell: Cell, arm: SimulatedArm, bag: Path
) -> None:
    stated = arm.parameters.stated_current_to_torque * [1.0, 1.0, 1.08, 1.0, 1.0, 1.0]
    model = replace(
        generic_model(ROBOT),
        provenance={"tool": "identify"},
        controller_constants=ControllerConstants(stated, 0.002 * stated),
    )
    path = cell.folder / "model.yaml"
    save_model(model, path)
    observer = cell.observer
    observer.subscribe("/diagnostics", "diagnostic_msgs/DiagnosticArray")
    observer.subscribe("/energy/summary", "diagnostic_msgs/DiagnosticArray")
    cell.start_node(
        EstimatorNode,
        source="bag",
        bag=str(bag),
        model_file=str(path),
        **LEARNING_OFF,
        loop=True,
    )
    found = observer.status_that(
        "estimator: model", lambda s: "elbow_joint" in s["message"], "another arm"
    )
    assert "same_arm:=true" in found["message"]
    observer.status_that(
        "energy: model",
        lambda s: "elbow_joint" in s["message"],
        "warning",
        "/energy/summary",
    )
