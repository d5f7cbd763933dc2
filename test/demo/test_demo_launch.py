# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The launch file of the demo."""

from __future__ import annotations

import pytest

from test.launch.test_launch_files import actions, installed_viewers
from ur_energy_model.errors import UrEnergyError
from ur_energy_model.nodes import launch_checks
from ur_energy_model.nodes.parameters import parameter

__all__ = ["installed_viewers"]  # a fixture
HOST = "127.0.0.9"


def test_logger_and_estimator_read_the_simulated_arm() -> None:
    nodes, _ = actions("demo", host=HOST, seed="5", robot_model="ur10e")
    assert list(nodes) == ["simulated_robot", "logger", "estimator"]
    robot = {"host": HOST, "seed": 5, "robot_model": "ur10e"}
    assert nodes["simulated_robot"].parameters == robot
    # A demo keeps no bags unless it is asked for, and the estimator finds out which arm it is.
    own = {"robot_ip": HOST, "record": False, "robot_model": "ur10e"}
    assert nodes["logger"].parameters == own
    assert nodes["estimator"].parameters == {"robot_ip": HOST}
    for node, started in nodes.items():
        for name, value in started.parameters.items():
            assert parameter(node, name).problem(value) is None


def test_rviz_has_a_model_of_the_simulated_arm(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes, _ = actions("demo", rviz="true")
    assert list(nodes)[-2:] == ["robot_state_publisher", "rviz2"]

    def missing(package: str) -> str:
        raise LookupError(package)

    monkeypatch.setattr(launch_checks, "get_package_prefix", missing)
    needed = "rviz2 and robot_state_publisher"
    with pytest.raises(UrEnergyError, match=f"rviz:=true needs {needed}, which is not"):
        actions("demo", rviz="true")
    with pytest.raises(ValueError, match="seed"):
        actions("demo", seed="-1")
