"""The node of the simulated robot."""

from __future__ import annotations

import pytest

from test.nodes.conftest import Cell
from ur_energy_model.nodes.simulated_robot import SimulatedRobotNode


def test_a_simulated_robot_serves_loopback_only(
    cell: Cell, capfd: pytest.CaptureFixture[str]
) -> None:
    assert not cell.make_node(SimulatedRobotNode, host="192.0.2.1").begin()
    assert "loopback" in capfd.readouterr().err
