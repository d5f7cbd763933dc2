"""Robot files: those of the package are complete, invalid ones are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml

from ur_energy_model.errors import RobotFileError
from ur_energy_model.files import config_file
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import available_robots, load_robot

UNIVERSAL = ["ur3", "ur5", "ur10", "ur3e", "ur5e", "ur10e", "ur16e", "ur20", "ur30"]


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
    robot, universal = load_robot(name), name in UNIVERSAL
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
def test_faulty_files_name_the_key(tmp_path: Path, key: str, value: object, problem: str) -> None:
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
