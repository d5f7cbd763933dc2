# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Motions of arms that the package has no files of, from the command line."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from test.absent_rooms import needs_room
from test.cli.conftest import Capture, answer, end_of, refused
from test.model.other_arms import SEVEN_AXES, SIX_AXES
from test.truth import first_fast
from ur_energy_model.experiment.design_problem import DesignProblem, DesignRequest
from ur_energy_model.model.robots import load_robot
from ur_energy_model.trajectory.fourier import load_trajectory, save_trajectory

# The genetic search has no time limit, so its result is the same on every machine.
QUICK = (
    "--optimizer", "genetic", "--population", "30", "--generations", "1", "--seed", "2",
    "--period", "20", "--harmonics", "4", "--clearance", "0.02",
)  # fmt: skip


@pytest.fixture(scope="module")
def slow_motion(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A robot file of another make, and a small random motion of this arm."""
    folder = tmp_path_factory.mktemp("own_arm")
    own = Path(shutil.copy(SIX_AXES, folder))
    problem = DesignProblem(DesignRequest(load_robot(own), harmonics=3, period=30.0))
    random = np.random.default_rng(1)
    for _ in range(50):
        x, verdict = problem.finish(0.3 * problem.random_start(random))
        if verdict.passed:
            trajectory = problem.trajectory(x, {"tool_speed_limit": 1.5})
            save_trajectory(folder / "trajectory.yaml", trajectory)
            return own, folder / "trajectory.yaml"
    raise AssertionError("no random motion passes the checks")


@pytest.mark.parametrize("robot", first_fast([SEVEN_AXES, SIX_AXES]))
def test_a_trajectory_is_designed_checked_and_exported(
    robot: Path, tmp_path: Path, capsys: Capture
) -> None:
    needs_room("papers")  # the genetic search
    path = tmp_path / "trajectory.yaml"
    answer(capsys, "excite", "--robot", robot, *QUICK, "-o", path)
    checked = answer(capsys, "excite", "--check", path, "--clearance", "0.02")
    assert checked["passed"]
    assert checked["condition_number"] < 3000
    table = tmp_path / "trajectory.csv"
    answer(capsys, "excite", "--export", path, "-o", table)
    arm = load_robot(robot)
    names = table.read_text().splitlines()[0].split(",")
    rows = np.genfromtxt(table, delimiter=",", skip_header=1)
    q = rows[:, [names.index(f"q_{j}") for j in range(arm.dof)]]
    # Within the ranges of its joints, which are not the same in both directions.
    assert arm.middle_position.any()
    assert (arm.position_shares(q) <= 1.0).all()
    script = tmp_path / "x.script"
    refused(
        ["excite", "--export", str(path), "-o", str(script)],
        capsys,
        "is for robots of Universal Robots",
    )


def test_the_trajectory_has_the_path_of_the_robot_file(
    slow_motion: tuple[Path, Path], tmp_path: Path, capsys: Capture
) -> None:
    own, path = slow_motion
    assert load_trajectory(path).robot_file == str(own)
    assert answer(capsys, "excite", "--check", path)["passed"]
    moved = Path(shutil.copy(own, tmp_path / "moved.yaml"))
    lost = tmp_path / "trajectory.yaml"
    lost.write_text(path.read_text().replace(str(own), str(tmp_path / "nowhere.yaml")))
    refused(["excite", "--check", str(lost)], capsys, "for the arm xarm6", "--robot")
    assert answer(capsys, "excite", "--check", lost, "--robot", moved)["passed"]
    for other in ("ur5e", str(SEVEN_AXES)):
        words = ["excite", "--check", str(path), "--robot", other]
        refused(words, capsys, "is for a xarm6 with 6 joints, not for a")


def test_a_geometry_file_decides_the_clearance(
    slow_motion: tuple[Path, Path], tmp_path: Path, capsys: Capture
) -> None:
    _, path = slow_motion
    geometry = tmp_path / "geometry.yaml"
    balls = [
        f"  - {{link: {link}, from: [0, 0, 0], to: [0, 0, 0], radius: 0.6}}"
        for link in range(7)
    ]
    geometry.write_text("\n".join(["schema: 1", "robot: xarm6", "capsules:", *balls]))
    words = ["excite", "--check", str(path), "--geometry", str(geometry)]
    code, _, errors = end_of(words, capsys)
    assert code == 1
    assert "collide" in errors
    assert "guess" not in errors
    assert "links 0 and 4" in errors  # as large as the arm: near each other everywhere


def test_a_check_names_the_limit_that_the_design_did_not_have(
    slow_motion: tuple[Path, Path], tmp_path: Path, capsys: Capture
) -> None:
    _, designed = slow_motion
    path = tmp_path / "trajectory.yaml"
    text = designed.read_text()
    path.write_text(text.replace("tool_speed_limit: 1.5", "tool_speed_limit: null"))
    assert load_trajectory(path).design["tool_speed_limit"] is None
    words = ["excite", "--check", str(path), "--tool-speed", "0.01"]
    code, _, errors = end_of(words, capsys)
    assert code == 1
    assert "designed without a limit of the tool speed; --tool-speed" in errors
    assert answer(capsys, "excite", "--check", path, "--tool-speed", "20")["passed"]
