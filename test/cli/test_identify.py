# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""`ur_energy identify`: one arm from one recording or many, and many arms."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from test.cli.conftest import Capture, answer, refused
from test.identification.conftest import made_up_recording
from test.identification.exact_arm import ExactArm
from ur_energy_model.cli.main import DONE
from ur_energy_model.model.robots import load_robot

PARTLY = 3
INERTIA = np.linspace(0.6, 0.1, 7)
"""Joint side, kg m^2: motors of arms with seven joints are not published."""


def test_a_model_depends_on_neither_order_nor_workers_nor_bad_bags(
    tmp_path: Path, capsys: Capture
) -> None:
    bags = [
        ExactArm().bag(tmp_path / str(seed), seed=seed, seconds=15) for seed in (41, 42)
    ]
    truncated = shutil.copytree(bags[0], tmp_path / "truncated")
    (data,) = truncated.glob("*.mcap")
    data.write_bytes(data.read_bytes()[: data.stat().st_size // 3])

    def identified(*words: object, code: int) -> dict[str, Any]:
        output = (
            "--robot",
            "ur5e",
            "--friction",
            "coulomb_viscous",
            "-o",
            tmp_path / "model.yaml",
        )
        return answer(capsys, "identify", *words, *output, "--overwrite", code=code)

    first = identified(bags[0], bags[1], code=DONE)
    second = identified(bags[1], truncated, bags[0], "--workers", 2, code=PARTLY)
    assert first["failed"] == []
    assert [entry["bag"] for entry in second["failed"]] == [str(truncated)]
    for joint in second["joints"]:  # a scale for each bag, in the order of the bags
        joint["friction_session_scales"].reverse()
    assert [entry["bag"] for entry in second["fits"]] == [str(bags[1]), str(bags[0])]
    second["fits"].reverse()
    for key in ("joints", "bus_power", "setup", "fits"):
        assert close(first[key], second[key]), key
    useless = ["identify", str(truncated), "nothing", "--robot", "ur5e"]
    refused([*useless, "-o", str(tmp_path / "new.yaml")], capsys, "no bag can be used")
    assert not (tmp_path / "new.yaml").exists()


def close(first: object, second: object) -> bool:
    """Whether two JSON values agree to 1e-9."""
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(
            close(first[k], second[k]) for k in first
        )
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(close, first, second))
    if isinstance(first, float) and isinstance(second, float):
        return first == pytest.approx(second, rel=1e-9, abs=1e-12)
    return first == second


def test_an_arm_with_seven_joints_from_csv_to_model(
    tmp_path: Path, capsys: Capture
) -> None:
    """Torque constant 0.1 N m/A, friction 2 N m and 1.5 N m s/rad."""
    name = "gen3"
    robot = load_robot("gen3")
    made = made_up_recording(
        robot, reflected_inertia=INERTIA, noise=0.05, coulomb=2.0, viscous=1.5
    )
    names = ["timestamp", *(f"{each}_{j}" for each in made.columns for j in range(7))]
    table = np.column_stack([made.time, *made.columns.values()])
    csv = tmp_path / "motion.csv"
    bag = tmp_path / "bag"
    np.savetxt(csv, table, delimiter=",", header=",".join(names), comments="", fmt="%.9g")
    answer(capsys, "import", csv, "--robot", name, "-o", bag)
    words = [
        bag,
        "--robot",
        name,
        "--friction",
        "coulomb_viscous",
        "-o",
        tmp_path / "m.yaml",
    ]
    joints = answer(capsys, "identify", *words)["joints"]
    assert [joint["name"] for joint in joints] == list(robot.joint_names)
    assert np.allclose([j["reflected_inertia"] for j in joints], INERTIA, rtol=0.01)
    scale = np.array([j["torque_constant"] for j in joints]) / 0.1
    assert np.allclose(scale[:-1], 1.0, rtol=0.03)
    # A last joint, with no weight to carry, shows its constant by its inertia, uncertain
    # by 10 %; friction is current times the constant.
    assert abs(scale[-1] - 1.0) < 2.0 * joints[-1]["std"]["torque_constant"] / 0.1 < 0.4
    assert np.allclose([j["coulomb_direct"] for j in joints], 2.0 * scale, rtol=0.06)
    assert np.allclose([j["viscous"] for j in joints], 1.5 * scale, rtol=0.06)
    assert len(answer(capsys, "inspect", bag)["joints"]) == 7
    words = [bag, "--robot", name, "--from", "target_moment"]
    assert answer(capsys, "base-parameters", *words)["rank"] == 48
