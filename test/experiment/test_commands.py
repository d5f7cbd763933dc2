# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""`ur_energy excite`, as a user calls it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from test.absent_rooms import needs_room
from test.cli.conftest import Capture, answer, end_of
from ur_energy_model.cli.listing import chosen_command
from ur_energy_model.cli.parser import call_of
from ur_energy_model.codec import plain
from ur_energy_model.experiment.commands import request_of
from ur_energy_model.experiment.room import ExciteOptions
from ur_energy_model.files import config_file
from ur_energy_model.model.model_file import load_model, save_model
from ur_energy_model.model.needs import NEEDS, Need
from ur_energy_model.model.robots import load_robot
from ur_energy_model.trajectory.fourier import load_trajectory

# The genetic search has no time limit, so its result is the same on every machine.
QUICK = (
    "--optimizer", "genetic", "--population", "30", "--generations", "1", "--clearance", "0",
    "--seed", "2", "--period", "12", "--harmonics", "4",
)  # fmt: skip


def test_a_trajectory_is_designed_checked_and_exported(
    tmp_path: Path, capsys: Capture
) -> None:
    needs_room("papers")  # the genetic search
    path = tmp_path / "trajectory.yaml"
    result = answer(capsys, "excite", "--robot", "ur5e", *QUICK, "-o", path)
    assert result["objective"] == "condition"
    assert 0 < result["max_velocity_ratio"] <= 1
    assert 0 < result["max_acceleration_ratio"] <= 1
    trajectory = load_trajectory(path)
    assert (trajectory.harmonics, trajectory.period, trajectory.robot) == (
        4,
        12.0,
        "ur5e",
    )
    verdict = answer(capsys, "excite", "--check", path, "--clearance", 0)
    assert verdict["passed"]
    for key in ("condition_number", "clearance", "max_velocity_ratio"):
        assert verdict[key] == pytest.approx(result[key])
    crowded = ["excite", "--check", path, "--wall", 1, 0, 0, 0.1]
    assert not answer(capsys, *crowded, code=1)["passed"]


def test_a_trajectory_for_the_gap_of_a_learned_model(
    tmp_path: Path, capsys: Capture
) -> None:
    needs_room("papers")  # the genetic search
    generic = load_model(config_file("models", "ur5e.yaml"))
    need = Need(
        4, "speed", (0.2, 2.0), 1.8, "wrist_2_joint has not moved faster than 0.2 rad/s"
    )
    learned = replace(generic, provenance={"origin": "learned", NEEDS: plain([need])})
    model = tmp_path / "model.yaml"
    path = tmp_path / "gap.yaml"
    save_model(learned, model)
    words = ["excite", "--for-gap", str(model), *QUICK, "-o", str(path), "--overwrite"]
    (shown,) = answer(capsys, *words, "--robot", "ur5e")["for_gap"]
    assert (shown["joint"], shown["speed_range"]) == ("wrist_2_joint", [0.2, 2.0])
    assert shown["seconds"] > 1.0
    assert load_trajectory(path).design["for_gap"] == [shown]
    assert "is of a ur5e, not a ur3e" in end_of([*words, "--robot", "ur3e"], capsys)[2]
    save_model(generic, model)
    assert "has no list of what it lacks" in end_of(words, capsys)[2]


def test_payload_walls_and_tool() -> None:
    words = [
        "--payload",
        "1.5,0,0,0.1",
        "--wall",
        "-2",
        "0",
        "0",
        "-1.2",
        "--tool",
        "0.2",
        "0.05",
    ]
    call = call_of(*chosen_command(["excite", "--robot", "ur5e", *words]))
    found = request_of(call.given.of(ExciteOptions), load_robot("ur5e"))
    assert found.setup.payload.mass == 1.5
    assert np.array_equal(found.setup.payload.center_of_mass, [0, 0, 0.1])
    table, wall = found.walls
    assert table.name == "table"
    assert np.array_equal(wall.normal, [-1, 0, 0])
    assert wall.offset == pytest.approx(-0.6)
    (tool,) = found.tool
    assert tool.radius == 0.05
    # its rounded end is part of it
    assert tool.end[2] + tool.radius == pytest.approx(0.2)
