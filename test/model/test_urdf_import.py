"""Imported URDF arms agree with pinocchio's own URDF reader."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
import yaml
from scipy.spatial.transform import Rotation

from ur_energy_model.errors import RobotFileError
from ur_energy_model.model import urdf_import
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.urdf_export import urdf


def write_urdf(path: Path, axes: list[str], *, extra: str = "", seed: int = 0) -> Path:
    """A made-up arm: odd axes, odd frames, a fixed link in the middle, tensors, and a tool."""
    random = np.random.default_rng(seed)
    parts = ['<link name="link0"/>']
    for k, axis in enumerate(axes):
        xyz, center = random.uniform(-0.3, 0.3, (2, 3))
        rpy, turn = random.uniform(-1.4, 1.4, (2, 3))
        xx, yy, zz = random.uniform(0.01, 0.02, 3)
        kind = "fixed" if axis == "fixed" else "revolute"
        about = "" if axis == "fixed" else f'<axis xyz="{axis}"/>'
        parts.append(
            f'<link name="link{k + 1}"><inertial><mass value="{random.uniform(0.5, 3)}"/>'
            f'<origin xyz="{_text(center)}" rpy="{_text(turn)}"/>'
            f'<inertia ixx="{xx}" iyy="{yy}" izz="{zz}" ixy="0.001" ixz="-0.002" iyz="0.0005"/>'
            f"</inertial></link>"
            f'<joint name="joint{k + 1}" type="{kind}"><parent link="link{k}"/>'
            f'<child link="link{k + 1}"/><origin xyz="{_text(xyz)}" rpy="{_text(rpy)}"/>{about}'
            f'<limit lower="-2" upper="2.5" velocity="1.5" effort="40"/></joint>'
        )
    path.write_text(f'<robot name="odd">{"".join(parts)}{extra}</robot>')
    return path


def _text(values: np.ndarray) -> str:
    return " ".join(repr(float(v)) for v in values)


AXES = ["0 0 1", "0 1 0", "1 0 0", "fixed", "0 0 -1", "0.6 0 0.8", "0 -1 0", "fixed"]


def test_torques_are_those_of_pinocchios_own_reader(tmp_path: Path) -> None:
    path = write_urdf(tmp_path / "odd.urdf", AXES)
    robot = load_robot(path)
    assert robot.joint_names == ("joint1", "joint2", "joint3", "joint5", "joint6", "joint7")
    random = np.random.default_rng(1)
    q, qd, qdd = random.normal(0, 1, (3, 10, 6))
    arm = ArmDynamics(robot)
    model = pin.buildModelFromXML(path.read_text())
    model.gravity.linear = arm.setup.gravity
    data = model.createData()
    expected = [pin.rnea(model, data, *state) for state in zip(q, qd, qdd, strict=True)]
    assert np.allclose(arm.inverse_dynamics(q, qd, qdd), expected, atol=1e-9)
    pin.framesForwardKinematics(model, data, q[0])
    tip = data.oMf[model.getFrameId("link8")]
    assert np.allclose(arm.flange_pose(q[:1])[0, :3, 3], tip.translation, atol=1e-9)
    assert np.allclose(arm.regressor(q, qd, qdd) @ arm.parameters(), expected, atol=1e-9)


def test_limits_are_imported(tmp_path: Path) -> None:
    robot = load_robot(write_urdf(tmp_path / "odd.urdf", ["0 0 1", "0 1 0"]))
    assert np.allclose(robot.max_position, 2.5)
    assert np.allclose(robot.max_velocity, 1.5)
    assert np.allclose(robot.max_torque, 40)


def test_printed_robot_file_is_the_same_arm(tmp_path: Path, capsys, monkeypatch) -> None:
    path = write_urdf(tmp_path / "odd.urdf", AXES)
    monkeypatch.setattr("sys.argv", ["urdf", str(path)])
    assert urdf_import.main() == 0
    (tmp_path / "odd.yaml").write_text(capsys.readouterr().out)
    q = np.random.default_rng(2).normal(0, 1, (5, 6))
    ours, theirs = (ArmDynamics(load_robot(tmp_path / f"odd.{end}")) for end in ("yaml", "urdf"))
    assert np.allclose(ours.gravity_torque(q), theirs.gravity_torque(q))
    assert yaml.safe_load((tmp_path / "odd.yaml").read_text())["kinematics"]["fixed"] == [3, 7]


def test_a_known_arm_through_a_urdf(tmp_path: Path) -> None:
    """The UR10e written as URDF from its DH parameters."""
    known = ArmDynamics(load_robot("ur10e"))
    parts = ['<link name="l0"/>']
    for k in range(6):
        pose = known.model.jointPlacements[k + 1]
        body = known.model.inertias[k + 1]
        i = body.inertia
        rpy = Rotation.from_matrix(pose.rotation).as_euler("xyz")
        parts.append(
            f'<link name="l{k + 1}"><inertial><mass value="{body.mass}"/>'
            f'<origin xyz="{_text(body.lever)}"/><inertia ixx="{i[0, 0]}" ixy="{i[0, 1]}" '
            f'ixz="{i[0, 2]}" iyy="{i[1, 1]}" iyz="{i[1, 2]}" izz="{i[2, 2]}"/></inertial></link>'
            f'<joint name="j{k + 1}" type="continuous">'
            f'<parent link="l{k}"/><child link="l{k + 1}"/><axis xyz="0 0 1"/>'
            f'<origin xyz="{_text(pose.translation)}" rpy="{_text(rpy)}"/></joint>'
        )
    path = tmp_path / "ur.urdf"
    path.write_text(f'<robot name="ur">{"".join(parts)}</robot>')
    random = np.random.default_rng(3)
    state = random.normal(0, 1, (3, 8, 6))
    found = ArmDynamics(load_robot(path)).inverse_dynamics(*state)
    assert np.allclose(found, known.inverse_dynamics(*state), atol=1e-8)


def test_the_urdf_for_viewers_has_the_same_kinematics(tmp_path: Path) -> None:
    """The URDF written for viewers of an arm that came from a URDF."""
    robot = load_robot(write_urdf(tmp_path / "odd.urdf", AXES))
    model = pin.buildModelFromXML(urdf(robot))
    data = model.createData()
    q = np.random.default_rng(4).uniform(-2, 2, (4, 6))
    poses = ArmDynamics(robot).flange_pose(q)
    half_turn = np.diag([-1.0, -1.0, 1.0, 1.0])
    for angles, pose in zip(q, poses, strict=True):
        pin.framesForwardKinematics(model, data, angles)
        tool = data.oMf[model.getFrameId("tool0")].homogeneous
        assert np.allclose(tool, half_turn @ pose, atol=1e-9)


BRANCH = (
    '<link name="a"/><link name="b"/>'
    '<joint name="ja" type="revolute"><parent link="link1"/><child link="a"/></joint>'
    '<joint name="jb" type="prismatic"><parent link="link2"/><child link="b"/></joint>'
)
SLIDE = (
    '<link name="b"/>'
    '<joint name="slide" type="prismatic"><parent link="link2"/><child link="b"/></joint>'
)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("no xml", "is not XML"),
        ("<sdf/>", "begins with <sdf>"),
        ('<robot name="x"><link name="a"/><link name="b"/></robot>', "2 root links"),
        ('<robot name="x"><link name="a"/></robot>', "no revolute joint"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "wrong.urdf"
    path.write_text(text)
    with pytest.raises(RobotFileError, match=problem):
        load_robot(path)


def test_refuses_branches_and_prismatic_joints(tmp_path: Path) -> None:
    with pytest.raises(RobotFileError, match="several moving branches"):
        load_robot(write_urdf(tmp_path / "two.urdf", ["0 0 1", "0 1 0"], extra=BRANCH))
    with pytest.raises(RobotFileError, match="slide: is a prismatic joint"):
        load_robot(write_urdf(tmp_path / "slide.urdf", ["0 0 1", "0 1 0"], extra=SLIDE))
    with pytest.raises(RobotFileError, match="cannot be read"):
        load_robot(tmp_path / "none.urdf")


ARM = (
    '<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/></inertial></link>'
    '<joint name="j" type="revolute"><parent link="a"/><child link="b"/>'
    '<axis xyz="0 0 1"/><limit upper="2" velocity="1" effort="5"/></joint></robot>'
)


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ('mass value="1"', 'mass value="heavy"', "not a number"),
        ('mass value="1"', 'mass value="-1"', "negative"),
        ('mass value="1"', 'mass value="nan"', "finite"),
        ('velocity="1"', 'velocity="fast"', "not a number"),
        ("<limit", '<origin xyz="1 2"/><limit', "not a number"),
        ("<limit", '<origin xyz="1000 0 0"/><limit', "m is impossible"),
        ('child link="b"', 'child link="c"', "no link 'c'"),
        (
            "</robot>",
            '<joint name="k" type="fixed"><parent link="b"/><child link="b"/></joint></robot>',
            "two parents",
        ),
    ],
)
def test_invalid_values_in_a_urdf_are_refused_in_one_line(
    tmp_path: Path, before: str, after: str, problem: str
) -> None:
    path = tmp_path / "r.urdf"
    path.write_text(ARM)
    load_robot(path)
    assert before in ARM
    path.write_text(ARM.replace(before, after))
    with pytest.raises(RobotFileError, match=problem) as refusal:
        load_robot(path)
    assert "\n" not in str(refusal.value)


def test_placeholders_for_no_limit_become_defaults(tmp_path: Path) -> None:
    path = tmp_path / "r.urdf"
    path.write_text(ARM.replace('upper="2" velocity="1" effort="5"', 'upper="1e16" effort="0"'))
    robot = load_robot(path)
    assert robot.max_position[0] == pytest.approx(2 * np.pi)
    assert robot.max_velocity[0] == pytest.approx(np.pi)
    assert robot.max_torque[0] == 1000
