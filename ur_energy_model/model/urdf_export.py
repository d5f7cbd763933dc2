"""A robot description as URDF, for viewers: cylinders along the links."""

from __future__ import annotations

from itertools import pairwise
from xml.etree import ElementTree as Xml

import numpy as np

from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.typing import Array

THICKNESS = 0.06
"""Radius of the first link's cylinders [m]; it decreases to half of that at the last link."""
SHORTEST = 1e-3
"""Shorter segments have no cylinder [m]."""


def link_names(robot: RobotDescription) -> tuple[str, ...]:
    """Names of the moving links; those of UR's own description for its joints."""
    known = {
        "shoulder_pan_joint": "shoulder_link",
        "shoulder_lift_joint": "upper_arm_link",
        "elbow_joint": "forearm_link",
        "wrist_1_joint": "wrist_1_link",
        "wrist_2_joint": "wrist_2_link",
        "wrist_3_joint": "wrist_3_link",
    }
    return tuple(
        known.get(joint, f"{joint.removesuffix('_joint')}_link") for joint in robot.joint_names
    )


def urdf(robot: RobotDescription, *, prefix: str = "") -> str:
    """URDF of an arm whose link frames are its DH frames.

    The root is `base_link`. The kinematics start at `base`, which is rotated by half a turn about
    the z axis of `base_link`, as in UR's description.

    Args:
        robot: the arm.
        prefix: of every link and joint name.
    """
    root = Xml.Element("robot", name=robot.name)
    names = link_names(robot)
    _link(root, prefix + "base_link")
    _link(root, prefix + "base")
    _joint(
        root,
        prefix + "base_link-base",
        "fixed",
        prefix + "base_link",
        prefix + "base",
        np.diag([-1.0, -1.0, 1.0, 1.0]),
    )
    # A DH row rotates about z, then translates; what follows the rotation is fixed to the link.
    parent, placement, moving = "base", np.eye(4), 0
    path: list[Array] = []
    element = root.find("link[@name='" + prefix + "base']")
    for row in range(len(robot.d)):
        along = _move(0.0, 0.0, float(robot.d[row]))
        across = _move(float(robot.a[row]), 0.0, 0.0) @ _turn(0, float(robot.alpha[row]))
        if robot.convention == "urdf":
            across = robot.origin[row]
        offset = _turn(2, float(robot.theta[row]))
        standard = robot.convention == "standard"
        steps = [offset, along, across] if standard else [offset, along]
        if not standard:
            path.append(placement)
            placement = placement @ across
            path.append(placement)
        if not robot.fixed[row]:
            _cylinders(element, [*path, placement], moving, robot.dof)
            name = prefix + names[moving]
            joint = _joint(
                root,
                prefix + robot.joint_names[moving],
                "revolute",
                prefix + parent,
                name,
                placement,
            )
            Xml.SubElement(joint, "axis", xyz="0 0 1")
            reach = float(robot.max_position[moving])
            Xml.SubElement(
                joint,
                "limit",
                lower=f"{-reach:g}",
                upper=f"{reach:g}",
                velocity=f"{robot.max_velocity[moving]:g}",
                effort=f"{np.nan_to_num(robot.max_torque[moving], posinf=1e4):g}",
            )
            element = _link(root, name)
            parent, placement, path = names[moving], np.eye(4), []
            moving += 1
        for step in steps:
            path.append(placement)
            placement = placement @ step
    _cylinders(element, [*path, placement], moving, robot.dof)
    _link(root, prefix + "tool0")
    _joint(root, prefix + "flange-tool0", "fixed", prefix + parent, prefix + "tool0", placement)
    Xml.indent(root)
    return '<?xml version="1.0"?>\n' + Xml.tostring(root, encoding="unicode") + "\n"


def _link(root: Xml.Element, name: str) -> Xml.Element:
    return Xml.SubElement(root, "link", name=name)


def _joint(
    root: Xml.Element, name: str, kind: str, parent: str, child: str, placement: Array
) -> Xml.Element:
    joint = Xml.SubElement(root, "joint", name=name, type=kind)
    Xml.SubElement(joint, "origin", xyz=_text(placement[:3, 3]), rpy=_text(_rpy(placement)))
    Xml.SubElement(joint, "parent", link=parent)
    Xml.SubElement(joint, "child", link=child)
    return joint


def _cylinders(link: Xml.Element | None, places: list[Array], moving: int, joints: int) -> None:
    """A cylinder along each segment between consecutive frames, in link axes."""
    if link is None:
        return
    radius = THICKNESS * (1.0 - 0.5 * moving / joints)
    points = [place[:3, 3] for place in places]
    for start, end in pairwise(points):
        length = float(np.linalg.norm(end - start))
        if length < SHORTEST:
            continue
        visual = Xml.SubElement(link, "visual")
        placement = np.eye(4)
        placement[:3, :3] = _frame_along((end - start) / length)
        Xml.SubElement(visual, "origin", xyz=_text((start + end) / 2), rpy=_text(_rpy(placement)))
        geometry = Xml.SubElement(visual, "geometry")
        Xml.SubElement(geometry, "cylinder", radius=f"{radius:g}", length=f"{length:.6g}")


def _frame_along(direction: Array) -> Array:
    """A rotation [3, 3] whose z axis is `direction`."""
    helper = np.eye(3)[int(np.argmin(np.abs(direction)))]
    x = np.cross(helper, direction)
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(direction, x), direction])


def _rpy(placement: Array) -> Array:
    """Roll, pitch and yaw [3], rad, of the rotation Rz(yaw) Ry(pitch) Rx(roll)."""
    r = placement[:3, :3]
    pitch = np.arctan2(-r[2, 0], np.hypot(r[0, 0], r[1, 0]))
    if abs(r[2, 0]) > 1.0 - 1e-9:  # gimbal lock: roll takes the whole rotation
        return np.array([np.arctan2(-r[2, 0] * r[0, 1], r[1, 1]), pitch, 0.0])
    return np.array([np.arctan2(r[2, 1], r[2, 2]), pitch, np.arctan2(r[1, 0], r[0, 0])])


def _text(values: Array) -> str:
    return " ".join(f"{value:.9g}" for value in np.where(np.abs(values) < 1e-12, 0.0, values))


def _move(x: float, y: float, z: float) -> Array:
    out = np.eye(4)
    out[:3, 3] = (x, y, z)
    return out


def _turn(axis: int, angle: float) -> Array:
    out = np.eye(4)
    i, j = [(1, 2), (2, 0), (0, 1)][axis]
    cos, sin = np.cos(angle), np.sin(angle)
    out[i, i], out[j, j], out[i, j], out[j, i] = cos, cos, -sin, sin
    return out
