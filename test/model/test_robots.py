# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Robot files: those of the package are complete, invalid ones are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from scipy.spatial.transform import Rotation

from ur_energy_model.arm_names import is_reported_model, may_be, product_of_controller
from ur_energy_model.errors import RobotFileError
from ur_energy_model.files import config_file
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import available_robots, load_robot

UNIVERSAL = ["ur3", "ur5", "ur10", "ur3e", "ur5e", "ur10e", "ur16e", "ur20", "ur30"]
SIBLINGS = {"ur7e": "ur5e", "ur12e": "ur10e"}
"""Arms with the links of another one."""
PUBLISHED: dict[str, Any] = {
    "shoulder": {"z": 0.2186, "mass": 9.9883, "cog": (0.000024, -0.025304, -0.033309)},
    "wrist_1": {"z": 0.1824, "mass": 2.089, "cog": (0.000025, -0.016413, -0.019695)},
    "wrist_2": {"y": -0.1361, "mass": 2.0869, "cog": (0.000025, 0.015886, -0.019960)},
    "wrist_3": {"y": 0.1434, "mass": 1.0666, "cog": (-0.000018, -0.000112, -0.053397)},
}
"""Of the UR15 and its relatives, in the link frames of the manufacturer's ROS description."""
ARMS_OF_UR15: dict[str, Any] = {
    "ur15": ((-0.6475, 14.9255, (-0.228491, -0.000083, 0.192787)),
             (-0.5164, 6.1015, (-0.210929, 0.000019, 0.070552))),
    "ur18": ((-0.475, 14.2009, (-0.166336, -0.000088, 0.190204)),
             (-0.3389, 5.52, (-0.139248, 0.000021, 0.073101))),
    "ur8long": ((-0.8989, 17.0738, (-0.333471, -0.000074, 0.195420)),
                (-0.7149, 7.6393, (-0.298798, 0.000058, 0.065663))),
}  # fmt: skip
"""Length, mass and centre of mass of the upper arm and of the forearm, in the same frames."""


@pytest.mark.parametrize("name", available_robots())
def test_robot_files_are_complete(name: str) -> None:
    robot = load_robot(name)
    n = robot.dof
    assert robot.name == name
    assert len(robot.d) - robot.fixed.sum() == n
    assert (robot.mass > 0).all()
    assert robot.gear_ratio.shape == robot.max_velocity.shape == (n,)
    # Tensors that a body can have, so that dynamics accepts them.
    assert (np.linalg.eigvalsh(robot.inertia) >= 0).all()
    torque = ArmDynamics(robot).gravity_torque(np.zeros((1, n)))
    assert np.isfinite(torque).all()


@pytest.mark.parametrize("name", [*UNIVERSAL, "gen3", "fr3"])
def test_values_are_the_published_ones(facts: Path, name: str) -> None:
    robot = load_robot(name)
    universal = name in UNIVERSAL
    source = "ur_robots.yaml" if universal else "other_arms.yaml"
    published = yaml.safe_load((facts / source).read_text())[name]
    if universal:
        published |= published.pop("dh")
        assert np.allclose(robot.max_velocity, published["max_joint_velocity"])
    else:
        published["alpha"] = np.pi * np.array(published["alpha_over_pi"])
        assert robot.convention == published["convention"]
    for key in ("d", "a", "alpha", "mass", "center_of_mass"):
        assert np.allclose(getattr(robot, key), published[key])


@pytest.mark.parametrize("arm", SIBLINGS)
def test_renamed_arms_have_the_constants_of_the_first_ones(arm: str) -> None:
    first = load_robot(SIBLINGS[arm])
    robot = load_robot(arm)
    assert (robot.name, robot.source) == (arm, arm)
    for name, value in vars(first).items():
        if name not in ("name", "source", "max_payload", "shape"):
            assert np.array_equal(
                getattr(robot, name), value, equal_nan=name not in TEXTS
            ), name


TEXTS = ("generation", "joint_names", "convention")


@pytest.mark.parametrize("arm", ARMS_OF_UR15)
def test_centres_of_mass_are_where_the_published_description_has_them(arm: str) -> None:
    """Two chains of frames: the description's own link frames, and the robot file's DH frames."""
    robot, (upper, fore) = load_robot(arm), ARMS_OF_UR15[arm]
    parts = PUBLISHED
    # Fixed rotation about x and offset of each joint, then its turn about z
    # (default_kinematics); wrist_3's rpy (pi/2, pi, pi) is a rotation by -pi/2 about x.
    chain = (
        (0.0, (0.0, 0.0, parts["shoulder"]["z"]), parts["shoulder"]["cog"]),
        (np.pi / 2, (0.0, 0.0, 0.0), upper[2]),
        (0.0, (upper[0], 0.0, 0.0), fore[2]),
        (0.0, (fore[0], 0.0, parts["wrist_1"]["z"]), parts["wrist_1"]["cog"]),
        (np.pi / 2, (0.0, parts["wrist_2"]["y"], 0.0), parts["wrist_2"]["cog"]),
        (-np.pi / 2, (0.0, parts["wrist_3"]["y"], 0.0), parts["wrist_3"]["cog"]),
    )
    masses = [parts[name]["mass"] for name in parts]
    assert np.allclose(robot.mass, [masses[0], upper[1], fore[1], *masses[1:]])
    for q in np.random.default_rng(8).uniform(-3, 3, (5, 6)):
        links = ArmDynamics(robot).frames(q[None])[0][0, 1:]
        pose = np.eye(4)
        for link, (turn, offset, cog) in enumerate(chain):
            step = np.eye(4)
            step[:3, :3] = Rotation.from_euler("x", turn).as_matrix()
            step[:3, 3] = offset
            spin = np.eye(4)
            spin[:3, :3] = Rotation.from_euler("z", q[link]).as_matrix()
            pose = pose @ step @ spin
            described = pose[:3, :3] @ cog + pose[:3, 3]
            ours = links[link, :3, :3] @ robot.center_of_mass[link] + links[link, :3, 3]
            assert np.allclose(ours, described, atol=1e-9)


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("UR5e", "ur5e"),
        ("ur5", "ur5"),
        ("UR7", "ur7e"),
        ("ur7e", "ur7e"),
        ("UR12", "ur12e"),
        ("UR16", "ur16e"),
        ("UR15", "ur15"),
        ("UR8 Long", "ur8long"),
        ("UR8L", "ur8long"),
        ("UR8LONG", "ur8long"),
        ("ur8", "ur8long"),
    ],
)
def test_robots_are_found_in_the_spellings_of_their_names(typed: str, name: str) -> None:
    assert load_robot(typed).name == name


@pytest.mark.parametrize(
    ("model", "software", "product"),
    [
        ("UR5", 3, "ur5"),
        ("UR5", 5, "ur5e"),
        ("UR10", 10, "ur10e"),
        ("UR7", 5, "ur7e"),
        ("UR7e", 10, "ur7e"),
        ("UR12", 5, "ur12e"),
        ("UR16", 5, "ur16e"),
        ("UR20", 5, "ur20"),
        ("UR8LONG", 5, "ur8long"),
        ("UR8_LONG", 5, "ur8long"),
        ("UR10G-1750", 5, "ur10g-1750"),
    ],
)
def test_controllers_name_their_arms(model: str, software: int, product: str) -> None:
    assert is_reported_model(model)
    assert product_of_controller(model, software) == product
    assert may_be(product, model, software)
    assert not may_be("ur3e", model, software)


def test_controllers_may_name_an_arm_as_the_one_whose_links_it_has() -> None:
    assert may_be("ur7e", "UR5", 5)
    assert may_be("ur12e", "UR10", 5)
    assert not may_be("ur5e", "UR7e", 5)  # but not the other way round
    assert not may_be("ur5", "UR5", 5)  # software 5 drives no CB3 arms
    assert may_be("my_arm", "UR5", 5)
    for answer in ("could not understand: 'get robot model'", "", "URSIM", "5"):
        assert not is_reported_model(answer)


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("joint_names", ["a", "b"], "6 moving joints"),
        ("kinematics.convention", "craig", "standard, modified, urdf"),
        ("kinematics.d", KeyError, "'d' is missing"),
        ("links.mass", [1, 1, 1, -1, 1, 1], "negative"),
        ("kinematics.alpha", [float("nan")] * 6, "finite"),
        ("drive.gear_ratio", [0] * 6, "positive"),
        ("links.inertia", [[1, 2, 0, 1, 0, 1] for _ in range(6)], "principal moment"),
    ],
)
def test_faulty_files_name_the_key(
    tmp_path: Path, key: str, value: object, problem: str
) -> None:
    content = yaml.safe_load(config_file("robots", "ur5e.yaml").read_text())
    *parents, last = key.split(".")
    place = content
    for part in parents:
        place = place[part]
    place[last] = value
    if value is KeyError:
        del place[last]
    path = tmp_path / "faulty.yaml"
    path.write_text(yaml.safe_dump(content))
    with pytest.raises(RobotFileError) as refusal:
        load_robot(path)
    assert problem in str(refusal.value)
    assert str(path) in str(refusal.value)
    assert refusal.value.field is not None
    with pytest.raises(RobotFileError):
        load_robot("../robots/ur5e")
