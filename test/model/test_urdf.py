# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""URDF arms, written and read, agree with pinocchio's own URDF reader."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
import yaml

from ur_energy_model.errors import RobotFileError
from ur_energy_model.model import urdf_import
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import RobotDescription, available_robots, load_robot
from ur_energy_model.model.urdf_export import UrdfBodies, urdf


def check_kinematics(robot: RobotDescription) -> None:
    """The flange of the URDF in its base is that of the arm."""
    model = pin.buildModelFromXML(urdf(robot))
    data = model.createData()
    arm = ArmDynamics(robot)
    for q in np.random.default_rng(5).uniform(-3.0, 3.0, (5, robot.dof)):
        pin.framesForwardKinematics(model, data, q)
        base, tool = (data.oMf[model.getFrameId(name)] for name in ("base", "tool0"))
        flange = (base.inverse() * tool).homogeneous
        assert flange == pytest.approx(arm.flange_pose(q[None])[0], abs=1e-7)


@pytest.mark.parametrize("name", available_robots())
def test_written_kinematics_of_every_arm(name: str) -> None:
    check_kinematics(load_robot(name))


def test_written_kinematics_of_modified_parameters_and_fixed_joints() -> None:
    robot = load_robot("ur5e")
    check_kinematics(replace(robot, convention="modified"))
    check_kinematics(replace(robot, theta=np.linspace(0.1, 0.6, 6)))
    each = (
        "joint_names",
        "max_position",
        "max_velocity",
        "max_acceleration",
        "max_torque",
    )
    others = {key: np.delete(getattr(robot, key), 2) for key in each}
    fixed = np.arange(6) == 2
    names = tuple(others.pop("joint_names"))
    check_kinematics(replace(robot, fixed=fixed, joint_names=names, **others))  # type: ignore[arg-type]


AXES = ("0 0 1", "0 1 0", "1 0 0", "fixed", "0 0 -1", "0.6 0 0.8", "0 -1 0", "fixed")


def text(values: np.ndarray) -> str:
    return " ".join(repr(float(v)) for v in values)


def write_odd(path: Path) -> Path:
    """A made-up arm: odd axes, odd frames, a fixed link in the middle, tensors, and a tool."""
    random = np.random.default_rng(0)
    parts = ['<link name="link0"/>']
    for k, axis in enumerate(AXES):
        xyz, center = random.uniform(-0.3, 0.3, (2, 3))
        rpy, turn = random.uniform(-1.4, 1.4, (2, 3))
        xx, yy, zz = random.uniform(0.01, 0.02, 3)
        kind = "fixed" if axis == "fixed" else "revolute"
        about = "" if axis == "fixed" else f'<axis xyz="{axis}"/>'
        parts.append(
            f'<link name="link{k + 1}"><inertial><mass value="{random.uniform(0.5, 3)}"/>'
            f'<origin xyz="{text(center)}" rpy="{text(turn)}"/>'
            f'<inertia ixx="{xx}" iyy="{yy}" izz="{zz}" ixy="0.001" ixz="-0.002" iyz="0.0005"/>'
            f"</inertial></link>"
            f'<joint name="joint{k + 1}" type="{kind}"><parent link="link{k}"/>'
            f'<child link="link{k + 1}"/><origin xyz="{text(xyz)}" rpy="{text(rpy)}"/>{about}'
            f'<limit lower="-2" upper="2.5" velocity="1.5" effort="40"/></joint>'
        )
    path.write_text(f'<robot name="odd">{"".join(parts)}</robot>')
    return path


def test_read_torques_are_those_of_pinocchios_own_reader(tmp_path: Path) -> None:
    path = write_odd(tmp_path / "odd.urdf")
    robot = load_robot(path)
    assert robot.joint_names == (
        "joint1",
        "joint2",
        "joint3",
        "joint5",
        "joint6",
        "joint7",
    )
    assert (robot.middle_position[0], robot.max_position[0]) == (0.25, 2.25)
    assert (robot.max_velocity[0], robot.max_torque[0]) == (1.5, 40.0)
    q, qd, qdd = np.random.default_rng(1).normal(0, 1, (3, 10, 6))
    arm = ArmDynamics(robot)
    model = pin.buildModelFromXML(path.read_text())
    model.gravity.linear = arm.setup.gravity
    data = model.createData()
    expected = [pin.rnea(model, data, *state) for state in zip(q, qd, qdd, strict=True)]
    assert np.allclose(arm.inverse_dynamics(q, qd, qdd), expected, atol=1e-9)
    assert np.allclose(arm.regressor(q, qd, qdd) @ arm.parameters(), expected, atol=1e-9)
    pin.framesForwardKinematics(model, data, q[0])
    tip = data.oMf[model.getFrameId("link8")]
    assert np.allclose(arm.flange_pose(q[:1])[0, :3, 3], tip.translation, atol=1e-9)
    # the URDF written for viewers, in ROS's base axes
    viewed = pin.buildModelFromXML(urdf(robot))
    data = viewed.createData()
    half_turn = np.diag([-1.0, -1.0, 1.0, 1.0])
    for angles, pose in zip(q, arm.flange_pose(q), strict=True):
        pin.framesForwardKinematics(viewed, data, angles)
        tool = data.oMf[viewed.getFrameId("tool0")].homogeneous
        assert np.allclose(tool, half_turn @ pose, atol=1e-9)


def test_printed_robot_file_is_the_same_arm(tmp_path: Path, capsys, monkeypatch) -> None:
    path = write_odd(tmp_path / "odd.urdf")
    monkeypatch.setattr("sys.argv", ["urdf", str(path)])
    assert urdf_import.main() == 0
    (tmp_path / "odd.yaml").write_text(capsys.readouterr().out)
    q = np.random.default_rng(2).normal(0, 1, (5, 6))
    ours, theirs = (
        ArmDynamics(load_robot(tmp_path / f"odd.{end}")) for end in ("yaml", "urdf")
    )
    assert np.allclose(ours.gravity_torque(q), theirs.gravity_torque(q))
    assert yaml.safe_load((tmp_path / "odd.yaml").read_text())["kinematics"]["fixed"] == [
        3,
        7,
    ]


def arm(mass: str = "1", velocity: str = "1", child: str = "b", more: str = "") -> str:
    return (
        f'<robot name="r"><link name="a"/><link name="b"><inertial><mass value="{mass}"/>'
        f'</inertial></link><joint name="j" type="revolute"><parent link="a"/>'
        f'<child link="{child}"/>{more}'
        f'<axis xyz="0 0 1"/><limit upper="1e16" velocity="{velocity}" effort="0"/></joint></robot>'
    )


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("no xml", "is not XML"),
        ('<robot name="x"><link name="a"/><link name="b"/></robot>', "2 root links"),
        (arm(mass="nan"), "finite"),
        (arm(velocity="fast"), "not a number"),
        (arm(more='<origin xyz="1000 0 0"/>'), "m is impossible"),
        (arm(child="c"), "no link 'c'"),
        (arm().replace("revolute", "prismatic"), "prismatic"),
    ],
)
def test_invalid_urdf_is_refused_in_one_line(
    tmp_path: Path, content: str, problem: str
) -> None:
    path = tmp_path / "r.urdf"
    path.write_text(arm())
    assert load_robot(path).max_position[0] == pytest.approx(2 * np.pi)  # of no limit
    path.write_text(content)
    with pytest.raises(RobotFileError, match=problem) as refusal:
        load_robot(path)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("name", ["ur3", "ur10e", "ur20", "gen3", "odd"])
def test_written_bodies_have_the_torques_of_the_arm(name: str, tmp_path: Path) -> None:
    """By pinocchio's reader and by the package's own, with fixed links in the chain."""
    odd = name == "odd"
    robot = load_robot(write_odd(tmp_path / "odd.urdf") if odd else name)
    tensors = np.where(robot.mass[:, None, None] > 0, 0.02 * np.eye(3), 0.0)
    arm = ArmDynamics(replace(robot, inertia=robot.inertia + tensors))
    bodies = UrdfBodies(arm.in_joint_frames(arm.parameters()))
    path = tmp_path / "written.urdf"
    path.write_text(urdf(arm.robot, bodies=bodies))
    q, qd, qdd = np.random.default_rng(2).normal(0, 1, (3, 10, robot.dof))
    expected = arm.inverse_dynamics(q, qd, qdd)
    model = pin.buildModelFromUrdf(str(path))
    model.gravity.linear = arm.setup.gravity
    data = model.createData()
    torque = [pin.rnea(model, data, *state) for state in zip(q, qd, qdd, strict=True)]
    assert np.allclose(torque, expected, rtol=0, atol=1e-9)
    own = ArmDynamics(load_robot(path)).inverse_dynamics(q, qd, qdd)
    assert np.allclose(own, expected, rtol=0, atol=1e-9)
