"""A robot file from the URDF of a serial arm.

    python -m ur_energy_model.model.urdf_import arm.urdf > arm.yaml

A URDF has kinematics, inertias and limits only; gear ratios, motors and bus are added by hand.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import yaml
from scipy.spatial.transform import Rotation

from ur_energy_model import ranges
from ur_energy_model.errors import RobotFileError
from ur_energy_model.typing import Array
from ur_energy_model.yaml_reader import (
    Quantity,
    ReadingLimits,
    UnreadableError,
    excerpt,
    read_bytes,
)

_MOVING = ("revolute", "continuous")
_LIMITS = ReadingLimits(size=16_000_000)
_MOST_JOINTS = 500


def robot_content(path: str | Path) -> dict[str, Any]:
    """Content of a robot file from the URDF of a serial arm.

    Every joint becomes a link entry. The link frame is the URDF's child link frame, rotated so
    that its z axis is the joint axis.

    Raises:
        RobotFileError: not a URDF, or not a serial arm of revolute joints.
    """
    path = Path(path)
    try:
        root = ElementTree.fromstring(read_bytes(path, _LIMITS))
    except OSError as error:
        raise RobotFileError(
            path, f"cannot be read ({error.strerror})", "check the path"
        ) from error
    except UnreadableError as error:
        raise RobotFileError(path, error.problem, "name a URDF file") from error
    except ElementTree.ParseError as error:
        raise RobotFileError(path, f"is not XML ({error})", "expand xacro files first") from error
    if root.tag != "robot":
        raise RobotFileError(path, f"begins with <{excerpt(root.tag)}>", "name a URDF file")
    try:
        return _SerialArm(path, root).content()
    except (ValueError, OverflowError) as error:
        raise RobotFileError(
            path,
            f"contains something that is not a number ({excerpt(str(error))})",
            "correct the URDF",
        ) from error


class _SerialArm:
    """The links and joints of a URDF that describes a serial arm."""

    def __init__(self, path: Path, root: ElementTree.Element) -> None:
        self.path, self.root = path, root
        self.links = {str(link.get("name")): link for link in root.findall("link")}
        self.joints = root.findall("joint")
        if len(self.joints) > _MOST_JOINTS:
            raise self.refuse("joint", f"has {len(self.joints)} joints", "cut the URDF to one arm")
        children: set[str] = set()
        for joint in self.joints:
            ends = _link(joint, "parent"), _link(joint, "child")
            for end in ends:
                if end not in self.links:
                    raise self.refuse(
                        str(joint.get("name")), f"has no link '{excerpt(end)}'", "correct the URDF"
                    )
            if ends[1] in children:
                raise self.refuse(ends[1], "has two parents", "cut the URDF to one arm")
            children.add(ends[1])

    def refuse(self, name: str, problem: str, remedy: str) -> RobotFileError:
        return RobotFileError(self.path, problem, remedy, field=name)

    def content(self) -> dict[str, Any]:
        chain = self._chain()
        turns, places, masses, centers, tensors = [], [], [], [], []
        before = Rotation.identity()
        for joint in chain:
            turn = self._turn_to_z(joint) if joint.get("type") in _MOVING else Rotation.identity()
            offset, rotation = _pose(joint.find("origin"))
            places.append(before.inv().apply(offset))
            turns.append(before.inv() * rotation * turn)
            mass, center, tensor = self._inertial(joint)
            masses.append(mass)
            centers.append(turn.inv().apply(center))
            spin = turn.inv().as_matrix()
            tensors.append((spin @ tensor @ spin.T)[[0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]])
            before = turn
        moving = [joint for joint in chain if joint.get("type") in _MOVING]
        return {
            "schema": 1,
            "name": self.root.get("name", self.path.stem),
            "generation": "other",
            "joint_names": [str(joint.get("name")) for joint in moving],
            "kinematics": {
                "convention": "urdf",
                "fixed": [k for k, joint in enumerate(chain) if joint.get("type") == "fixed"],
                "xyz": _plain(places),
                "rpy": _plain([turn.as_euler("xyz") for turn in turns]),
            },
            "links": {
                "mass": _plain(masses),
                "center_of_mass": _plain(centers),
                "inertia": _plain(tensors),
            },
            "limits": {
                "position": [_limit(joint, "upper", ranges.POSITION_LIMIT) for joint in moving],
                "velocity": [_limit(joint, "velocity", ranges.SPEED) for joint in moving],
                "torque": [_limit(joint, "effort", ranges.TORQUE) or 1e3 for joint in moving],
            },
        }

    def _chain(self) -> list[ElementTree.Element]:
        """Joints from the base to the last moving one, and the fixed ones with mass after it."""
        after: dict[str, list[ElementTree.Element]] = {}
        for joint in self.joints:
            after.setdefault(_link(joint, "parent"), []).append(joint)
        children = {_link(joint, "child") for joint in self.joints}
        roots = [name for name in self.links if name not in children]
        if len(roots) != 1:
            raise self.refuse("link", f"has {len(roots)} root links", "name the URDF of one arm")
        chain: list[ElementTree.Element] = []
        place = roots[0]
        while candidates := after.get(place):
            deep = [joint for joint in candidates if self._moves_behind(joint, after)]
            if len(deep) > 1:
                raise self.refuse(place, "has several moving branches", "cut the URDF to one arm")
            if not deep and (len(candidates) > 1 or not self._massive(candidates[0])):
                break
            joint = (deep or candidates)[0]
            if joint.get("type") not in (*_MOVING, "fixed"):
                raise self.refuse(
                    str(joint.get("name")),
                    f"is a {joint.get('type')} joint",
                    "only revolute and fixed joints are supported",
                )
            chain.append(joint)
            place = _link(joint, "child")
        if not any(joint.get("type") in _MOVING for joint in chain):
            raise self.refuse("joint", "has no revolute joint", "name the URDF of an arm")
        return chain

    def _moves_behind(
        self, joint: ElementTree.Element, after: dict[str, list[ElementTree.Element]]
    ) -> bool:
        if joint.get("type") != "fixed":
            return True
        behind = after.get(_link(joint, "child"), [])
        return any(self._moves_behind(child, after) for child in behind)

    def _massive(self, joint: ElementTree.Element) -> bool:
        return self._inertial(joint)[0] > 0

    def _turn_to_z(self, joint: ElementTree.Element) -> Rotation:
        """Rotation from the z axis to the joint's axis."""
        element = joint.find("axis")
        axis = np.array([1.0, 0.0, 0.0]) if element is None else _numbers(element.get("xyz"))
        size = np.linalg.norm(axis)
        if not size:
            raise self.refuse(str(joint.get("name")), "has no axis", "give it one")
        axis = axis / size
        if np.allclose(axis, [0, 0, -1]):
            return Rotation.from_euler("x", np.pi)
        return Rotation.align_vectors(axis[None], np.array([[0.0, 0.0, 1.0]]))[0]

    def _inertial(self, joint: ElementTree.Element) -> tuple[float, Array, Array]:
        """Mass, centre of mass and tensor about it of a joint's child link, link frame."""
        element = self.links[_link(joint, "child")].find("inertial")
        if element is None:
            return 0.0, np.zeros(3), np.zeros((3, 3))
        mass, entries = element.find("mass"), element.find("inertia")
        center, rotation = _pose(element.find("origin"))
        value = 0.0 if mass is None else float(mass.get("value", 0.0))
        if entries is None:
            return value, center, np.zeros((3, 3))
        xx, xy, xz, yy, yz, zz = (
            float(entries.get(name, 0.0)) for name in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
        )
        tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        spin = rotation.as_matrix()
        return value, center, spin @ tensor @ spin.T


def _limit(joint: ElementTree.Element, name: str, quantity: Quantity) -> float | None:
    """Limit of a joint; None if it is missing, or so large that it means no limit."""
    element = joint.find("limit")
    value = abs(float(element.get(name, 0.0))) if element is not None else 0.0
    return value if 0 < value <= quantity.high else None


def _link(joint: ElementTree.Element, which: str) -> str:
    element = joint.find(which)
    return "" if element is None else str(element.get("link"))


def _numbers(text: str | None) -> Array:
    return np.array([float(part) for part in (text or "0 0 0").split()])


def _pose(origin: ElementTree.Element | None) -> tuple[Array, Rotation]:
    if origin is None:
        return np.zeros(3), Rotation.identity()
    return _numbers(origin.get("xyz")), Rotation.from_euler("xyz", _numbers(origin.get("rpy")))


def _plain(values: Any) -> Any:
    return np.round(np.asarray(values, dtype=float), 12).tolist()


def main() -> int:
    """Print the robot file of the URDF named on the command line."""
    if len(sys.argv) != 2:
        print(
            "usage: python -m ur_energy_model.model.urdf_import ARM.urdf > ARM.yaml",
            file=sys.stderr,
        )
        return 2
    try:
        content = robot_content(sys.argv[1])
    except RobotFileError as error:
        print(error, file=sys.stderr)
        return 1
    print(yaml.safe_dump(content, sort_keys=False, default_flow_style=None), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
