# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""A robot description as URDF, for viewers: cylinders along the links."""

from __future__ import annotations

from itertools import pairwise
from xml.etree import ElementTree as Xml

import numpy as np

from ur_energy_model.model.robots import RobotDescription, link_transforms
from ur_energy_model.typing import Array

THICKNESS = 0.06
"""Radius of the first link's cylinders [m]; the last link's cylinders have half of it."""
SHORTEST = 1e-3  # shorter segments have no cylinder [m]
_LINKS_OF_UR = {
    "shoulder_pan_joint": "shoulder_link",
    "shoulder_lift_joint": "upper_arm_link",
    "elbow_joint": "forearm_link",
}


def link_names(robot: RobotDescription) -> tuple[str, ...]:
    """Names of the moving links; for joints of UR as in UR's description."""
    names = []
    for joint in robot.joint_names:
        usual = f"{joint.removesuffix('_joint')}_link"
        names.append(_LINKS_OF_UR.get(joint, usual))
    return tuple(names)


def urdf(robot: RobotDescription, *, prefix: str = "") -> str:
    """URDF of an arm whose link frames are its DH frames.

    The root is `base_link`. The kinematics start at `base`, which is rotated by half a
    turn about the z axis of `base_link`, as in UR's description.

    Args:
        robot: the arm.
        prefix: prefix of link and joint names.
    """
    root = Xml.Element("robot", name=robot.name)

    def link(name: str) -> Xml.Element:
        """Add a link."""
        return Xml.SubElement(root, "link", name=prefix + name)

    def joint(
        name: str, kind: str, parent: str, child: str, placement: Array
    ) -> Xml.Element:
        """Add a joint between two links, at a pose [4, 4] in the frame of the parent."""
        element = Xml.SubElement(root, "joint", name=prefix + name, type=kind)
        _origin(element, placement)
        Xml.SubElement(element, "parent", link=prefix + parent)
        Xml.SubElement(element, "child", link=prefix + child)
        return element

    link("base_link")
    element = link("base")
    joint("base_link-base", "fixed", "base_link", "base", np.diag([-1.0, -1.0, 1.0, 1.0]))
    names = link_names(robot)
    parent = "base"
    moving = 0
    path = [np.eye(4)]  # frames along the present link, in its axes
    for row in range(len(robot.d)):
        before, after = link_transforms(robot, row)
        for step in before:
            path.append(path[-1] @ step)
        if not robot.fixed[row]:
            _cylinders(element, path, moving / robot.dof)
            name = names[moving]
            turning = joint(robot.joint_names[moving], "revolute", parent, name, path[-1])
            _axis_and_limits(turning, robot, moving)
            element = link(name)
            parent = name
            path = [np.eye(4)]
            moving += 1
        for step in after:
            path.append(path[-1] @ step)
    _cylinders(element, path, moving / robot.dof)
    link("tool0")
    joint("flange-tool0", "fixed", parent, "tool0", path[-1])
    Xml.indent(root)
    return '<?xml version="1.0"?>\n' + Xml.tostring(root, encoding="unicode") + "\n"


def _axis_and_limits(joint: Xml.Element, robot: RobotDescription, number: int) -> None:
    """Axis and limits of a revolute joint, by its number among the moving joints."""
    Xml.SubElement(joint, "axis", xyz="0 0 1")
    reach = float(robot.max_position[number])
    effort = np.nan_to_num(robot.max_torque[number], posinf=1e4)
    Xml.SubElement(
        joint,
        "limit",
        lower=f"{-reach:g}",
        upper=f"{reach:g}",
        velocity=f"{robot.max_velocity[number]:g}",
        effort=f"{effort:g}",
    )


def _cylinders(link: Xml.Element, path: list[Array], share: float) -> None:
    """A cylinder along each segment between consecutive frames, in link axes.

    `share` is 0 at the base and 1 at the last link, whose cylinders are half as thick.
    """
    radius = THICKNESS * (1.0 - 0.5 * share)
    for before, after in pairwise(path):
        start = before[:3, 3]
        end = after[:3, 3]
        length = float(np.linalg.norm(end - start))
        if length < SHORTEST:
            continue
        visual = Xml.SubElement(link, "visual")
        along = (end - start) / length
        least = np.eye(3)[int(np.argmin(np.abs(along)))]
        across = np.cross(least, along)
        across /= np.linalg.norm(across)
        placement = np.eye(4)
        placement[:3, 0] = across
        placement[:3, 1] = np.cross(along, across)
        placement[:3, 2] = along
        placement[:3, 3] = (start + end) / 2
        _origin(visual, placement)
        geometry = Xml.SubElement(visual, "geometry")
        Xml.SubElement(geometry, "cylinder", radius=f"{radius:g}", length=f"{length:.6g}")


def _origin(element: Xml.Element, placement: Array) -> None:
    """The element "origin" of a pose [4, 4]."""
    r = placement[:3, :3]
    # Roll, pitch and yaw of the rotation Rz(yaw) Ry(pitch) Rx(roll).
    pitch = np.arctan2(-r[2, 0], np.hypot(r[0, 0], r[1, 0]))
    if abs(r[2, 0]) > 1.0 - 1e-9:  # gimbal lock: roll takes the whole rotation
        roll = np.arctan2(-r[2, 0] * r[0, 1], r[1, 1])
        yaw = 0.0
    else:
        roll = np.arctan2(r[2, 1], r[2, 2])
        yaw = np.arctan2(r[1, 0], r[0, 0])
    xyz = _text_of(placement[:3, 3])
    rpy = _text_of(np.array([roll, pitch, yaw]))
    Xml.SubElement(element, "origin", xyz=xyz, rpy=rpy)


def _text_of(values: Array) -> str:
    """Numbers as an attribute; those that rounding left of zero are 0."""
    rounded = np.where(np.abs(values) < 1e-12, 0.0, values)
    return " ".join(f"{value:.9g}" for value in rounded)
