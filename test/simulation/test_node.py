# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The simulated robot as a node."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

import pytest

from test.nodes.conftest import Cell, cell
from ur_energy_model import interrupts, rooms, scripts
from ur_energy_model.simulation.node import SimulatedRobotNode

__all__ = ["cell"]  # a fixture


def test_it_serves_for_its_duration_and_writes_the_truth(
    cell: Cell, fresh_host: Callable[[], str]
) -> None:
    truth = cell.folder / "truth.json"
    cell.observer.subscribe("/diagnostics", "diagnostic_msgs/DiagnosticArray")
    node = cell.start_node(
        SimulatedRobotNode,
        host=fresh_host(),
        robot_model="ur3e",
        motion="hold",
        duration=1.5,
        truth_file=str(truth),
    )
    over = "the duration is over"
    name = "simulated_robot: controller"
    status = cell.observer.status_that(name, lambda s: s["message"] == over, over)
    assert int(status["ticks"]) >= 500
    node.end()
    assert (truth.parent / json.loads(truth.read_text())["arrays"]).is_file()


def test_without_its_room_the_program_ends_with_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(rooms, "rooms", lambda: ())
    monkeypatch.setattr(sys, "argv", ["simulated_robot_node"])
    monkeypatch.setattr(interrupts, "exit_at_once", lambda code: None)
    monkeypatch.setattr(interrupts, "ignore", lambda: None)
    assert scripts.simulated_robot_node() == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("simulated_robot_node: ")
