# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The protocols on arms of another make, which the package has no files of."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from test.contracts.surface import ur_energy
from test.model.other_arms import SEVEN_AXES, SIX_AXES
from test.test_written_files import READERS
from ur_energy_model.errors import MotionRefusedError
from ur_energy_model.experiment.design_problem import limits_of
from ur_energy_model.experiment.limits import check
from ur_energy_model.identification.base_parameters import (
    FullRegressor,
    raviola_base,
    regroup,
)
from ur_energy_model.model.geometry import ArmGeometry
from ur_energy_model.model.model_file import load_model
from ur_energy_model.model.robots import load_robot
from ur_energy_model.papers import s2
from ur_energy_model.papers.protocol import included_trajectory
from ur_energy_model.papers.s1 import paper_request
from ur_energy_model.papers.stages import stage_for
from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.trajectory.fourier import load_trajectory

ARMS = {"six": SIX_AXES, "seven": SEVEN_AXES}
GRAVITY = np.array([0.0, 0.0, -9.81])


@pytest.mark.parametrize(
    ("arm", "rank"), [(SIX_AXES, 52), (SEVEN_AXES, 62), ("gen3", 62), ("fr3", 62)]
)
def test_base_columns_of_both_methods_are_as_many(arm: str | Path, rank: int) -> None:
    """10 n inertial parameters without those that no torque shows, and three of each drive."""
    regressor = FullRegressor(load_robot(arm), GRAVITY)
    assert len(raviola_base(regressor)) == regroup(regressor).rank == rank


@pytest.mark.parametrize("path", ARMS.values(), ids=ARMS)
def test_limits_of_the_paper_are_for_its_own_kinematics(path: Path) -> None:
    robot = load_robot(path)
    request = paper_request(robot)
    assert request.centre is None
    assert np.array_equal(request.robot.max_position, robot.max_position)
    assert np.isinf(request.tool_speed)
    assert paper_request(load_robot("ur5")).centre is not None


@pytest.mark.parametrize("path", ARMS.values(), ids=ARMS)
def test_sinusoids_have_room_at_their_centre(path: Path) -> None:
    robot = load_robot(path)
    centre, width = s2.open_position(robot)
    corners = centre + width * np.random.default_rng(8).choice([-1, 1], (40, robot.dof))
    assert (robot.position_shares(corners) <= 1.0).all()
    assert (ArmGeometry(robot).distances(centre[None]) > 0.03).all()


def test_an_arm_that_is_nowhere_clear_is_refused_in_one_line() -> None:
    robot = load_robot(SIX_AXES)
    fat = ArmGeometry(robot).robot.shape
    assert fat is not None
    capsules = tuple(replace(capsule, radius=0.9) for capsule in fat.capsules)
    with pytest.raises(MotionRefusedError, match="nowhere clear"):
        s2.open_position(replace(robot, shape=replace(fat, capsules=capsules)))


def test_the_included_trajectory_is_that_of_the_package_alone(tmp_path: Path) -> None:
    """A file of the user may have the name of an arm of the package."""
    assert included_trajectory(load_robot("ur5e")) is not None
    assert included_trajectory(load_robot("gen3")) is None
    content = yaml.safe_load(SIX_AXES.read_text())
    own = tmp_path / "own.yaml"
    own.write_text(yaml.safe_dump(content | {"name": "ur5e"}))
    assert included_trajectory(load_robot(own)) is None


@pytest.mark.truth
@pytest.mark.parametrize(
    ("arm", "protocol"),
    [
        ("six", "s0"),
        ("six", "s1"),
        ("six", "s2"),
        ("six", "s3"),
        ("six", "s4"),
        ("seven", "s0"),
        ("seven", "s2"),
        ("seven", "s3"),
    ],
)
def test_every_protocol_runs(arm: str, protocol: str, tmp_path: Path) -> None:
    path = ARMS[arm]
    stage = stage_for(protocol, str(path))
    folder = tmp_path / protocol
    outcome = stage.run(
        folder, seed=0, quick=True, progress=lambda *_: None, draw=protocol == "s1"
    )
    robot = load_robot(path)
    assert outcome.robot == robot.name
    assert any("guess" in warning for warning in outcome.warnings)
    assert json.loads((folder / "verdict.json").read_text())["robot"] == robot.name
    for model in folder.glob("model*.yaml"):
        assert load_model(model).robot == str(path)
    for bag in folder.glob("*/metadata.yaml"):
        batches = list(iterate_bag(bag.parent, ("actual_q",)))
        assert all(batch["actual_q"].shape[1] == robot.dof for batch in batches)
    for name in ("excitation", "validation", "general"):
        file = folder / f"{name}.yaml"
        if file.exists():
            trajectory = load_trajectory(file)
            assert trajectory.robot_file == str(path)
    for written in sorted(file for file in folder.rglob("*") if file.is_file()):
        assert READERS[written.suffix](written) is not None
    rows = {row.key: row for row in outcome.rows}
    if protocol == "s1":
        assert np.all(np.asarray(rows["condition_recorded"].here) < 500)
        assert rows["joint_sample_error"].here < 0.05
    if protocol == "s4":
        assert rows["payload_ratio"].here == pytest.approx(1.0, abs=0.05)
        assert np.min(rows["other_general_r2"].here) > 0.97
        bag = folder / "general_unloaded"
        estimated = ur_energy("estimate", folder / "model.yaml", bag, "--json").json
        assert len(estimated["joints"]) == robot.dof
        refused = ur_energy("estimate", bag)  # there is no generic model of it
        assert refused.code == 1
        lines = [line for line in refused.err.splitlines() if line[-3:] != "..."]
        assert len(lines) == 1


@pytest.mark.truth
@pytest.mark.parametrize("protocol", ["s1", "s4"])
def test_settings_of_the_papers(protocol: str, tmp_path: Path) -> None:
    """What they write has no limit of the tool speed, and is safe for this arm."""
    stage = stage_for(protocol, str(SIX_AXES), paper_settings=True)
    folder = tmp_path / protocol
    stage.run(folder, seed=0, quick=True, progress=lambda *_: None, draw=False)
    trajectory = load_trajectory(folder / "excitation.yaml")
    request = replace(paper_request(load_robot(SIX_AXES)), clearance=0.0)
    assert check(trajectory, limits_of(request)).passed
    if protocol == "s1":
        assert trajectory.design["tool_speed_limit"] is None
