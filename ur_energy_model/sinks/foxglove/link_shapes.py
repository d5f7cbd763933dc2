"""Shapes and poses of an arm's links, in the frames of its URDF."""

from __future__ import annotations

from dataclasses import dataclass
from xml.etree import ElementTree as Xml

import numpy as np
from scipy.spatial.transform import Rotation

from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.urdf_export import link_names, urdf
from ur_energy_model.typing import Array

BASE_IN_ROOT = np.diag([-1.0, -1.0, 1.0, 1.0])
"""Pose of `base` in `base_link`, as the URDF has it [4, 4]."""


@dataclass(frozen=True)
class Cylinder:
    """A cylinder along the z axis of its own frame.

    Attributes:
        place: of its centre in the link's frame [3], m.
        turn: quaternion (x, y, z, w) in the link's frame [4].
        radius, length: m.
    """

    place: Array
    turn: Array
    radius: float
    length: float


class LinkShapes:
    """URDF, shapes and frames of an arm.

    Args:
        robot: the arm, n joints.
        prefix: of its joints and frames.

    Attributes:
        urdf: as text.
        frames: names of its frames: `base_link`, `base`, the n moving links, `tool0`.
    """

    def __init__(self, robot: RobotDescription, prefix: str = "") -> None:
        self.urdf = urdf(robot, prefix=prefix)
        names = ("base_link", "base", *link_names(robot), "tool0")
        self.frames = tuple(prefix + name for name in names)
        self._dynamics = ArmDynamics(robot)
        root = Xml.fromstring(self.urdf.partition("\n")[2])
        self._shapes = {
            link.attrib["name"]: tuple(_cylinder(visual) for visual in link.iter("visual"))
            for link in root.iter("link")
        }

    def cylinders(self, link: str) -> tuple[Cylinder, ...]:
        """Shapes of a link, in its frame."""
        return self._shapes[link]

    def poses(self, q: Array) -> Array:
        """Poses of all frames but the first in the base frame [n + 2, 4, 4].

        Args:
            q: joint angles [n], rad.
        """
        links, joints = self._dynamics.frames(q[None])
        return np.concatenate([links[0, :1], joints[0], links[0, -1:]])


def relative(poses: Array) -> tuple[Array, Array]:
    """Poses of a chain's frames, each in the frame before it.

    Args:
        poses: of LinkShapes.poses, m frames.

    Returns:
        Places [m, 3], m, and quaternions (x, y, z, w) [m, 4].
    """
    steps = np.concatenate([BASE_IN_ROOT[None], np.linalg.solve(poses[:-1], poses[1:])])
    return steps[:, :3, 3], Rotation.from_matrix(steps[:, :3, :3]).as_quat()


def _cylinder(visual: Xml.Element) -> Cylinder:
    origin, shape = visual.find("origin"), visual.find("geometry/cylinder")
    if origin is None or shape is None:
        raise ValueError("the URDF has another shape than a cylinder")
    place, angles = (np.array(origin.attrib[key].split(), float) for key in ("xyz", "rpy"))
    turn = Rotation.from_euler("xyz", angles).as_quat()
    return Cylinder(place, turn, float(shape.attrib["radius"]), float(shape.attrib["length"]))
