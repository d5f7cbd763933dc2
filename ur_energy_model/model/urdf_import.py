# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""A robot file from the URDF of a serial arm.

    python -m ur_energy_model.model.urdf_import arm.urdf > arm.yaml

A URDF has kinematics, inertias, limits and collision shapes only; gear ratios, motors and
bus are added by hand.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import numpy as np
import yaml
from scipy.spatial.transform import Rotation

from ur_energy_model import ranges
from ur_energy_model.codec import plain
from ur_energy_model.errors import RobotFileError
from ur_energy_model.forms import Scope
from ur_energy_model.model.capsules import SHAPE
from ur_energy_model.model.setup import tensor_of
from ur_energy_model.typing import Array
from ur_energy_model.yaml_nodes import Origin, ReadingLimits, excerpt
from ur_energy_model.yaml_reader import Quantity

_MOVING = ("revolute", "continuous")
_LIMITS = ReadingLimits(size=16_000_000)
_MOST_JOINTS = 500
_ONE_ARM = "cut the URDF to one arm"
_DIGITS = 5  # significant digits of capsules
_ANY_TORQUE = 1e3  # torque limit of a joint whose URDF has none [N m]


def robot_content(path: str | Path) -> dict[str, Any]:
    """Content of a robot file from the URDF of a serial arm.

    Every joint becomes a link entry. The link frame is the URDF's child link frame,
    rotated so that its z axis is the joint axis.

    Raises:
        RobotFileError: not a URDF, or not a serial arm of revolute joints.
    """
    path = Path(path)
    try:
        return _content(serial_arm(path))
    except (ValueError, OverflowError) as error:
        problem = f"contains something that is not a number ({excerpt(str(error))})"
        raise RobotFileError(path, problem, "correct the URDF") from None


def serial_arm(path: Path) -> SerialArm:
    """The links and joints of a URDF.

    Raises:
        RobotFileError: not a URDF, or not a serial arm of revolute joints.
    """
    try:
        content = Origin(path, RobotFileError, "name a URDF file").content(_LIMITS)
        root = Xml.fromstring(content)
    except Xml.ParseError as error:
        raise RobotFileError(
            path, f"is not XML ({error})", "expand xacro files first"
        ) from None
    if root.tag != "robot":
        raise RobotFileError(
            path, f"begins with <{excerpt(root.tag)}>", "name a URDF file"
        )
    return SerialArm(path, root)


class SerialArm:
    """The links and joints of a URDF that describes a serial arm.

    Attributes:
        path: path of the URDF.
        root: element "robot" of the URDF.
        links: elements of the links by name.
        base: name of the only link that no joint moves.
        after: joints of each link to the links behind it, by the name of the link.
        chain: joints from the base to the last moving one, and the fixed ones with mass
            after it.
        moving: revolute joints of the chain.

    Raises:
        RobotFileError: the URDF is none of a serial arm.
    """

    def __init__(self, path: Path, root: Xml.Element) -> None:
        self.path = path
        self.root = root
        self.links = {str(link.get("name")): link for link in root.findall("link")}
        self.after: dict[str, list[Xml.Element]] = {}
        self.base = self._base()
        self.chain = self._chain_from(self.base)
        self.moving = [joint for joint in self.chain if joint.get("type") in _MOVING]
        if not self.moving:
            raise self.refuse("joint", "has no revolute joint", "name the URDF of an arm")

    def _base(self) -> str:
        """Fill `after`; returns the name of the only link that no joint moves."""
        joints = self.root.findall("joint")
        if len(joints) > _MOST_JOINTS:
            raise self.refuse("joint", f"has {len(joints)} joints", _ONE_ARM)
        children = set[str]()
        for joint in joints:
            parent = end_of(joint, "parent")
            child = end_of(joint, "child")
            for end in (parent, child):
                if end not in self.links:
                    problem = f"has no link '{excerpt(end)}'"
                    raise self.refuse(str(joint.get("name")), problem, "correct the URDF")
            if child in children:
                raise self.refuse(child, "has two parents", _ONE_ARM)
            children.add(child)
            self.after.setdefault(parent, []).append(joint)
        roots = [name for name in self.links if name not in children]
        if len(roots) != 1:
            problem = f"has {len(roots)} root links"
            raise self.refuse("link", problem, "name the URDF of one arm")
        return roots[0]

    def _chain_from(self, link: str) -> list[Xml.Element]:
        """Joints from a link to the last moving one, and the fixed ones with mass after it."""
        chain = []
        while candidates := self.after.get(link):
            deep = [joint for joint in candidates if self._moves_behind(joint)]
            if len(deep) > 1:
                raise self.refuse(link, "has several moving branches", _ONE_ARM)
            joint = (deep or candidates)[0]
            if not deep:
                mass, _, _ = self.inertial(joint)
                if len(candidates) > 1 or not mass > 0:
                    break
            kind = joint.get("type")
            if kind not in (*_MOVING, "fixed"):
                remedy = "only revolute and fixed joints are supported"
                raise self.refuse(str(joint.get("name")), f"is a {kind} joint", remedy)
            chain.append(joint)
            link = end_of(joint, "child")
        return chain

    def refuse(self, name: str, problem: str, remedy: str) -> RobotFileError:
        """The error of an element of the URDF, by its name."""
        return RobotFileError(self.path, problem, remedy, field=name)

    def _moves_behind(self, joint: Xml.Element) -> bool:
        """Whether a joint, or any joint behind it, moves."""
        if joint.get("type") != "fixed":
            return True
        behind = self.after.get(end_of(joint, "child"), [])
        return any(self._moves_behind(other) for other in behind)

    def turn_to_z(self, joint: Xml.Element) -> Rotation:
        """Rotation from the z axis to the joint's axis."""
        if joint.get("type") not in _MOVING:
            return Rotation.identity()
        element = joint.find("axis")
        axis = np.array([1.0, 0.0, 0.0])
        if element is not None:
            axis = _numbers(element.get("xyz"))
        size = np.linalg.norm(axis)
        if not size:
            raise self.refuse(str(joint.get("name")), "has no axis", "give it one")
        axis = axis / size
        if np.allclose(axis, [0, 0, -1]):
            return Rotation.from_euler("x", np.pi)
        return Rotation.align_vectors(axis[None], np.array([[0.0, 0.0, 1.0]]))[0]

    def inertial(self, joint: Xml.Element) -> tuple[float, Array, Array]:
        """Inertia of the link that a joint moves, in the frame of the link.

        Returns:
            Mass [kg], centre of mass [3], m, and tensor about it [3, 3], kg m^2; zeros
            without an element "inertial".
        """
        element = self.links[end_of(joint, "child")].find("inertial")
        if element is None:
            return 0.0, np.zeros(3), np.zeros((3, 3))
        mass = element.find("mass")
        entries = element.find("inertia")
        center, rotation = pose_of(element.find("origin"))
        kilograms = 0.0 if mass is None else float(mass.get("value", 0.0))
        values = {} if entries is None else entries.attrib
        names = ("ixx", "ixy", "iyy", "ixz", "iyz", "izz")
        tensor = tensor_of(np.array([float(values.get(name, 0.0)) for name in names]))
        turn = rotation.as_matrix()
        return kilograms, center, turn @ tensor @ turn.T


def _content(arm: SerialArm) -> dict[str, Any]:
    """Content of the robot file of an arm."""
    turns = []
    places = []
    masses = []
    centers = []
    tensors = []
    before = Rotation.identity()
    for joint in arm.chain:
        turn = arm.turn_to_z(joint)
        offset, rotation = pose_of(joint.find("origin"))
        places.append(before.inv().apply(offset))
        turns.append((before.inv() * rotation * turn).as_euler("xyz"))
        mass, center, tensor = arm.inertial(joint)
        masses.append(mass)
        centers.append(turn.inv().apply(center))
        back = turn.inv().as_matrix()
        tensors.append((back @ tensor @ back.T)[np.triu_indices(3)])
        before = turn
    fixed = [k for k, joint in enumerate(arm.chain) if joint.get("type") == "fixed"]
    efforts = _limits(arm, "effort", ranges.TORQUE)
    return {
        "schema": 1,
        "name": arm.root.get("name", arm.path.stem),
        "generation": "other",
        "joint_names": [str(joint.get("name")) for joint in arm.moving],
        "kinematics": {
            "convention": "urdf",
            "fixed": fixed,
            "xyz": _plain(places),
            "rpy": _plain(turns),
        },
        "links": {
            "mass": _plain(masses),
            "center_of_mass": _plain(centers),
            "inertia": _plain(tensors),
        },
        "limits": {
            "position": _positions(arm),
            "velocity": _limits(arm, "velocity", ranges.SPEED),
            "torque": [effort or _ANY_TORQUE for effort in efforts],
        },
    }


def _limits(arm: SerialArm, name: str, quantity: Quantity) -> list[float | None]:
    """Limits of the joints; None where missing, or so large that there is no limit."""
    limits: list[float | None] = []
    for joint in arm.moving:
        element = joint.find("limit")
        size = 0.0 if element is None else abs(float(element.get(name, 0.0)))
        limits.append(size if 0 < size <= quantity.high else None)
    return limits


def _positions(arm: SerialArm) -> list[Any]:
    """Position limits of the joints: one for both directions, a pair, or None without any."""
    limits: list[Any] = []
    for joint in arm.moving:
        element = joint.find("limit")
        low = 0.0
        high = 0.0
        if element is not None:
            low = float(element.get("lower", 0.0))
            high = float(element.get("upper", 0.0))
        largest = max(abs(low), abs(high))
        is_limited = joint.get("type") != "continuous" and low < high
        if not is_limited or not largest <= ranges.POSITION_LIMIT.high:
            limits.append(None)
        else:
            limits.append(high if low == -high else [low, high])
    return limits


def end_of(joint: Xml.Element, which: str) -> str:
    """Name of the "parent" or "child" link of a joint; empty without one."""
    element = joint.find(which)
    return "" if element is None else str(element.get("link"))


def _numbers(text: str | None) -> Array:
    """Three numbers of an attribute; zeros without it."""
    return np.array([float(part) for part in (text or "0 0 0").split()])


def pose_of(origin: Xml.Element | None) -> tuple[Array, Rotation]:
    """Translation [3], m, and rotation of an element "origin"; none without it."""
    if origin is None:
        return np.zeros(3), Rotation.identity()
    rotation = Rotation.from_euler("xyz", _numbers(origin.get("rpy")))
    return _numbers(origin.get("xyz")), rotation


def _plain(values: Any) -> Any:
    """Numbers as lists, without the errors of rounding that rotations leave."""
    return np.round(np.asarray(values, dtype=float), 12).tolist()


def file_content(path: str | Path) -> dict[str, Any]:
    """Content of a robot file, with capsules around the collision shapes of the URDF.

    Shapes that cannot be read are reported on stderr.

    Raises:
        RobotFileError: not a URDF, or not a serial arm of revolute joints.
    """
    # These import this module, or take long to import.
    from ur_energy_model.model.robots import load_robot
    from ur_energy_model.model.urdf_shapes import urdf_shape

    content = robot_content(path)
    shape = urdf_shape(load_robot(path), path)
    for remark in shape.remarks:
        print(remark, file=sys.stderr)
    if shape.capsules:
        content["geometry"] = plain(SHAPE.write(shape, Scope()), digits=_DIGITS)
    return content


def main() -> int:
    """Print the robot file of the URDF named on the command line."""
    if len(sys.argv) != 2:
        print(
            "usage: python -m ur_energy_model.model.urdf_import ARM.urdf > ARM.yaml",
            file=sys.stderr,
        )
        return 2
    try:
        content = file_content(sys.argv[1])
    except RobotFileError as error:
        print(error, file=sys.stderr)
        return 1
    print(yaml.safe_dump(content, sort_keys=False, default_flow_style=None), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
