# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The shape of an arm: which source counts, and how good a derived one is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from test.model.other_arms import SEVEN_AXES, SIX_AXES
from test.truth import first_fast
from ur_energy_model.codec import plain
from ur_energy_model.errors import RobotFileError
from ur_energy_model.files import config_file
from ur_energy_model.forms import Scope
from ur_energy_model.model.arm_shape import derived_capsules, shape_of, with_shape
from ur_energy_model.model.capsules import SHAPE, ArmShape
from ur_energy_model.model.geometry import ArmGeometry
from ur_energy_model.model.robots import RobotDescription, load_robot

BALL = {"link": 2, "from": [0, 0, 0], "to": [0, 0, 0], "radius": 0.1}


def file_with(path: Path, robot: Path = SIX_AXES, **changes: object) -> Path:
    """A copy of a robot file with other keys."""
    content = yaml.safe_load(robot.read_text())
    path.write_text(json.dumps(content | changes))
    return path


def geometry_file(path: Path, **changes: object) -> Path:
    """A geometry file for the arm with six axes."""
    content = {"schema": 1, "robot": "xarm6", "capsules": [BALL]} | changes
    path.write_text(json.dumps(content))
    return path


def test_an_arm_without_capsules_gets_derived_ones_and_says_so() -> None:
    for path, joints in ((SIX_AXES, 6), (SEVEN_AXES, 7)):
        robot = load_robot(path)
        shape = shape_of(robot)
        assert {capsule.link for capsule in shape.capsules} == set(range(joints + 1))
        (remark,) = shape.remarks
        assert "guess" in remark
        assert "--clearance" in remark
        # The neighbours touch each other; most of the other pairs are checked.
        assert shape.never_touching is not None
        assert {(j, j + 1) for j in range(joints)} <= shape.never_touching
        assert len(shape.never_touching) < joints * (joints + 1) / 4


def test_the_first_source_counts(tmp_path: Path) -> None:
    own = load_robot(file_with(tmp_path / "own.yaml", geometry={"capsules": [BALL]}))
    (ball,) = (capsule for capsule in shape_of(own).capsules if capsule.link == 2)
    assert (ball.radius, ball.start.tolist()) == (0.1, [0, 0, 0])
    (remark,) = shape_of(own).remarks  # about the other links
    assert "links 0, 1, 3, 4, 5, 6)" in remark
    bigger = geometry_file(tmp_path / "g.yaml", capsules=[BALL | {"radius": 0.2}])
    stated = with_shape(own, bigger).shape
    assert stated is not None
    assert [c.radius for c in stated.capsules if c.link == 2] == [0.2]


def test_a_whole_shape_is_used_as_it_is(tmp_path: Path) -> None:
    capsules = [BALL | {"link": link} for link in range(1, 7)]
    pairs = [[1, 2], [4, 3]]
    shape = {"capsules": capsules, "never_touching": pairs}
    found = shape_of(load_robot(file_with(tmp_path / "own.yaml", geometry=shape)))
    assert (len(found.capsules), found.remarks) == (6, ())
    assert found.never_touching == {(1, 2), (3, 4)}
    written = SHAPE.write(found, Scope())
    assert plain(written)["never_touching"] == [[1, 2], [3, 4]]


def test_an_arm_of_the_package_in_a_file_of_the_user(tmp_path: Path) -> None:
    """Its capsules are used while the kinematics are the same."""
    published = config_file("robots", "ur5e.yaml")
    same = load_robot(file_with(tmp_path / "same.yaml", published))
    assert shape_of(same).remarks == ()
    assert len(shape_of(same).capsules) == len(shape_of(load_robot("ur5e")).capsules)
    longer = replace(same, a=same.a * 1.5)
    assert shape_of(longer).remarks


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"robot": "xarm7"}, "robot: 'xarm7' must be xarm6"),
        ({"capsules": [BALL | {"link": 7}]}, "link 7 must be 0 to 6"),
        ({"never_touching": [[1, 7]]}, "7 must be 0 to 6"),
        ({"never_touching": [[1, 1]]}, "must name two links"),
        ({"capsules": [BALL | {"radius": 80}]}, "radius"),
        ({"capsules": []}, "must not be empty"),
        ({"capsules": [BALL | {"form": "box"}]}, "unknown key 'form'"),
    ],
)
def test_impossible_shapes_are_refused(
    tmp_path: Path, changes: dict[str, object], problem: str
) -> None:
    robot = load_robot(SIX_AXES)
    with pytest.raises(RobotFileError) as caught:
        with_shape(robot, geometry_file(tmp_path / "g.yaml", **changes))
    assert problem in str(caught.value)


def colliding(robot: RobotDescription, shape: ArmShape, q: np.ndarray) -> np.ndarray:
    """Whether an arm of this shape touches itself [samples]."""
    geometry = ArmGeometry(replace(robot, shape=shape), walls=())
    return np.asarray(geometry.distances(q).min(axis=1) < 0)


@pytest.mark.parametrize(
    "arm", first_fast(("ur5e", "ur3e", "ur10e", "ur20", "gen3", "fr3"))
)
def test_derived_capsules_show_most_collisions_of_the_true_ones(arm: str) -> None:
    """At the usual clearance; the derived ones are a guess, not a bound."""
    robot = load_robot(arm)
    true = shape_of(robot)
    derived = shape_of(replace(robot, shape=ArmShape(())))
    q = np.random.default_rng(1).uniform(-np.pi, np.pi, (1500, robot.dof))
    hits = colliding(robot, true, q)
    guess = ArmGeometry(replace(robot, shape=derived), walls=())
    near = guess.distances(q).min(axis=1) < 0.03
    assert hits.mean() > 0.1
    assert (near & hits).sum() > 0.88 * hits.sum()
    assert (near & ~hits).mean() < 0.55  # a motion can still be designed


def test_derived_capsules_reach_from_joint_to_joint() -> None:
    """Along the links of a UR5e, by hand from its Denavit-Hartenberg table."""
    robot = load_robot("ur5e")
    lengths = np.zeros(7)
    for capsule in derived_capsules(robot):
        lengths[capsule.link] += np.linalg.norm(capsule.end - capsule.start)
    expected = [0.0, 0.1625, 0.425, 0.3922, 0.1333, 0.0997, 0.0996]
    assert lengths == pytest.approx(expected, abs=1e-9)
