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


def test_source_loads_the_same_description(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(config_file("robots", "ur5e.yaml").read_text().replace("8.058", "9.0"))
    assert load_robot("ur5e").source == "ur5e"
    assert load_robot(load_robot(own).source).mass[1] == pytest.approx(9.0)


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


def test_known_reach_of_the_ur5e() -> None:
    """Extended along x at the zero position; the data sheet's working radius is 850 mm."""
    flange = ArmDynamics(load_robot("ur5e")).flange_pose(np.zeros((1, 6)))[0]
    assert np.allclose(flange[:3, 3], [-0.8172, -0.2329, 0.0628], atol=1e-9)


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("joint_names", [], "list of names"),
        ("joint_names", ["a", "b"], "6 moving joints"),
        ("kinematics.convention", "craig", "standard, modified, urdf"),
        ("kinematics.a", [0, 0], "has 2 values, 6 are needed"),
        ("kinematics.d", KeyError, "'d' is missing"),
        ("links.mass", [1, 1, 1, -1, 1, 1], "negative"),
        ("links.mass", [1, 1, 1, "heavy", 1, 1], "not a number"),
        ("links.center_of_mass", KeyError, "missing"),
        ("kinematics.alpha", [float("nan")] * 6, "finite"),
        ("drive.gear_ratio", [0] * 6, "positive"),
        ("limits.velocity", [float("inf")] * 6, "finite"),
        ("links.inertia", [[1, 2, 0, 1, 0, 1] for _ in range(6)], "principal moment"),
        ("kinematics.fixed", [9], "link"),
        ("rate", "fast", "number"),
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


@pytest.mark.parametrize(
    ("content", "problem"),
    [(None, "cannot be read"), ("just words", "generic_models"), ("a: [1, 2", "not YAML")],
)
def test_unreadable_files(tmp_path: Path, content: str | None, problem: str) -> None:
    path = tmp_path / "some.yaml"
    if content is not None:
        path.write_text(content)
    with pytest.raises(RobotFileError, match=problem):
        load_robot(path)


def test_unknown_names() -> None:
    with pytest.raises(RobotFileError, match="ur10e, ur16e"):
        load_robot("ur6")
    with pytest.raises(RobotFileError):
        load_robot("../robots/ur5e")
