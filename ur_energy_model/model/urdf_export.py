# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""A robot description as URDF: cylinders along the links for viewers, bodies for simulators.

A URDF has masses, centres of mass, tensors, and viscous and Coulomb friction of the joints. It
has no inertia of motors and reducers, which simulators call armature; the file has it as
comments.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from xml.etree import ElementTree as Xml

import numpy as np

from ur_energy_model.errors import InputError
from ur_energy_model.model.robots import RobotDescription, link_transforms
from ur_energy_model.model.setup import (
    FIRST_MOMENT,
    MASS,
    TENSOR,
    entries_of,
    point_tensor,
    tensor_of,
)
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


@dataclass(frozen=True)
class UrdfBodies:
    """Inertias and drives of an arm with n joints, for its URDF.

    Attributes:
        inertial: inertial parameters of the moving links in the frames of their joints [n,
            10], see `ArmDynamics.in_joint_frames`.
        viscous: viscous friction, joint side [n], N m s/rad; None for none.
        coulomb: Coulomb friction, joint side [n], N m; None for none.
        motor_inertia: inertias of motors and reducers, joint side [n], kg m^2, for the
            comments; None for none.
        origin: origin of the values, for a comment.
    """

    inertial: Array
    viscous: Array | None = None
    coulomb: Array | None = None
    motor_inertia: Array | None = None
    origin: str = ""


def urdf(
    robot: RobotDescription, *, prefix: str = "", bodies: UrdfBodies | None = None
) -> str:
    """URDF of an arm; the frame of a moving link is that of its joint.

    The root is `base_link`. The kinematics start at `base`, which is rotated by half a
    turn about the z axis of `base_link`, as in UR's description.

    Args:
        robot: the arm.
        prefix: prefix of link and joint names.
        bodies: inertias and frictions; None for kinematics alone.

    Raises:
        InputError: a body is physically impossible.
    """
    root = Xml.Element("robot", name=robot.name)
    if bodies is not None and bodies.origin:
        _comment(root, bodies.origin)

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
            if bodies is not None:
                _drive(turning, bodies, moving)
                _inertial(element, bodies.inertial[moving])
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
    middle = float(robot.middle_position[number])
    reach = float(robot.max_position[number])
    effort = np.nan_to_num(robot.max_torque[number], posinf=1e4)
    Xml.SubElement(
        joint,
        "limit",
        lower=f"{middle - reach:g}",
        upper=f"{middle + reach:g}",
        velocity=f"{robot.max_velocity[number]:g}",
        effort=f"{effort:g}",
    )


def _drive(joint: Xml.Element, bodies: UrdfBodies, number: int) -> None:
    """Friction of a joint by its number, and its motor inertia as a comment."""
    values = {}
    if bodies.viscous is not None:
        values["damping"] = _number(bodies.viscous[number])
    if bodies.coulomb is not None:
        values["friction"] = _number(bodies.coulomb[number])
    if values:
        Xml.SubElement(joint, "dynamics", values)
    if bodies.motor_inertia is not None:
        inertia = _number(bodies.motor_inertia[number])
        _comment(joint, f"armature (motor and reducer, joint side): {inertia} kg m^2")


def _inertial(link: Xml.Element, parameters: Array) -> None:
    """Mass, centre of mass and tensor about it of a link.

    Args:
        link: element of the link.
        parameters: inertial parameters about the origin and in the axes of the frame of the
            link [10].

    Raises:
        InputError: no mass distribution has these parameters.
    """
    mass = float(parameters[MASS])
    center = parameters[FIRST_MOMENT] / mass if mass > 0 else np.zeros(3)
    tensor = tensor_of(parameters[TENSOR]) - point_tensor(mass, center)
    moments = 0.5 * np.trace(tensor) * np.eye(3) - tensor
    if not (mass > 0 and np.linalg.eigvalsh(moments)[0] > 0):
        problem = "has a mass or a tensor that no body has"
        remedy = "export physically consistent parameters"
        raise InputError(str(link.get("name")), problem, remedy)
    element = Xml.SubElement(link, "inertial")
    placement = np.eye(4)
    placement[:3, 3] = center
    _origin(element, placement)
    Xml.SubElement(element, "mass", value=_number(mass))
    names = ("ixx", "ixy", "iyy", "ixz", "iyz", "izz")
    entries = map(_number, entries_of(tensor))
    Xml.SubElement(element, "inertia", dict(zip(names, entries, strict=True)))


def _comment(element: Xml.Element, text: str) -> None:
    """Add a comment, which XML allows neither two hyphens in a row nor control characters."""
    words = "".join(letter if letter.isprintable() else " " for letter in text)
    while "--" in words:
        words = words.replace("--", "-")
    element.append(Xml.Comment(f" {words} "))


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
    return " ".join(map(_number, rounded))


def _number(value: float) -> str:
    """The shortest text that is read as the same number."""
    text = f"{value:.9g}"
    return text if float(text) == value else repr(float(value))
