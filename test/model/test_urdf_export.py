"""The exported URDF has the kinematics of the arm (read with pinocchio)."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin
import pytest

from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import RobotDescription, available_robots, load_robot
from ur_energy_model.model.urdf_export import link_names, urdf


def flange(model: pin.Model, q: np.ndarray, prefix: str = "") -> np.ndarray:
    data = model.createData()
    pin.framesForwardKinematics(model, data, q)
    base, tool = (data.oMf[model.getFrameId(prefix + name)] for name in ("base", "tool0"))
    return (base.inverse() * tool).homogeneous


def check(robot: RobotDescription) -> None:
    model = pin.buildModelFromXML(urdf(robot))
    dynamics = ArmDynamics(robot)
    for q in np.random.default_rng(5).uniform(-3.0, 3.0, (5, robot.dof)):
        assert flange(model, q) == pytest.approx(dynamics.flange_pose(q[None])[0], abs=1e-7)


@pytest.mark.parametrize("name", available_robots())
def test_kinematics_of_every_arm(name: str) -> None:
    check(load_robot(name))


def test_modified_parameters_and_fixed_joints() -> None:
    robot = load_robot("ur5e")
    check(replace(robot, convention="modified"))
    check(replace(robot, theta=np.linspace(0.1, 0.6, 6)))
    fixed = np.array([False, False, True, False, False, False])
    each: tuple[str, ...] = ("max_position", "max_velocity", "max_acceleration", "max_torque")
    names = tuple(name for i, name in enumerate(robot.joint_names) if i != 2)
    check(
        replace(
            robot,
            fixed=fixed,
            joint_names=names,
            **{key: np.delete(getattr(robot, key), 2) for key in each},  # type: ignore[arg-type]
        )
    )


def test_names_limits_and_visuals() -> None:
    robot = load_robot("ur10e")
    root = ElementTree.fromstring(urdf(robot, prefix="left_").partition("\n")[2])
    joints = [joint for joint in root.iter("joint") if joint.get("type") == "revolute"]
    assert [joint.get("name") for joint in joints] == [f"left_{n}" for n in robot.joint_names]
    limits = [float(limit.attrib["velocity"]) for j in joints for limit in j.iter("limit")]
    assert limits == pytest.approx(robot.max_velocity, rel=1e-5)
    links = {link.get("name"): link for link in root.iter("link")}
    assert {f"left_{name}" for name in link_names(robot)} < set(links)
    # The long links have a cylinder of at least their length.
    lengths = [float(c.attrib["length"]) for c in links["left_upper_arm_link"].iter("cylinder")]
    assert max(lengths) == pytest.approx(abs(robot.a[1]))
