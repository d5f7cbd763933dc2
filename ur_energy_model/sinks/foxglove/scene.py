# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Scene: the moving arm for the 3D panels of Foxglove, as its messages."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple
from xml.etree import ElementTree as Xml

import numpy as np
from foxglove import messages as fox
from scipy.spatial.transform import Rotation

from ur_energy_model.energy.topics import color, diameter, level_of
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.urdf_export import link_names, urdf
from ur_energy_model.typing import Array

BASE_IN_ROOT = np.diag([-1.0, -1.0, 1.0, 1.0])
"""Pose of `base` in `base_link` [4, 4]: half a turn about z, as in the URDF."""
SHOWN = fox.Duration(2)
"""Time after the last reading at which the arm vanishes [s], as the markers of rviz do."""
SHELL = 1.1
"""Radius of the coloured links relative to the links of the URDF, which they cover."""
TEXT_HEIGHT = 0.12
"""Size of the text with the total power [m]."""
TEXT_ABOVE = 0.25
"""Height of the text with the total power above the highest joint [m]."""
GREY = fox.Color(r=0.5, g=0.5, b=0.5, a=0.9)
WHITE = fox.Color(r=1.0, g=1.0, b=1.0, a=1.0)


class ArmScene:
    """The moving arm for 3D panels: links coloured by power, and their frames.

    Attributes:
        urdf: description of the arm (URDF), whose joints and links have the prefix.
    """

    def __init__(self, robot: RobotDescription, joints: tuple[str, ...]) -> None:
        """The scene of an arm.

        Args:
            robot: geometry of the arm.
            joints: names of the joints, prefix included, n.
        """
        self._joints = joints
        self._dynamics = ArmDynamics(robot)
        prefix = joints[0].removesuffix(robot.joint_names[0])
        self.urdf = urdf(robot, prefix=prefix)
        names = ("base_link", "base", *link_names(robot), "tool0")
        self._frames = tuple(prefix + name for name in names)
        _, _, content = self.urdf.partition("\n")  # without the declaration of XML
        self._shells: dict[str, list[_Shell]] = {}
        for link in Xml.fromstring(content).iter("link"):
            shells = [_shell(visual) for visual in link.iter("visual")]
            self._shells[link.attrib["name"]] = shells

    def messages(
        self, stamp: int, q: Array, power: Array, total: float
    ) -> tuple[bytes, bytes]:
        """The messages of one moment, encoded.

        Args:
            stamp: the moment [ns since 1970, UTC].
            q: joint angles [n], rad.
            power: electrical power of each joint [n], W.
            total: power of the whole arm [W].

        Returns:
            The FrameTransforms of all links, and the SceneUpdate.
        """
        seconds, nanoseconds = divmod(stamp, 1_000_000_000)
        time = fox.Timestamp(seconds, nanoseconds)
        links, joints = self._dynamics.frames(q[None])
        base = links[0, :1]
        tool = links[0, -1:]
        poses = np.concatenate([base, joints[0], tool])
        transforms = fox.FrameTransforms(transforms=self._transforms(time, poses))
        heights = joints[0, :, 2, 3]
        text = fox.TextPrimitive(
            pose=fox.Pose(position=fox.Vector3(z=float(heights.max()) + TEXT_ABOVE)),
            billboard=True,
            font_size=TEXT_HEIGHT,
            color=WHITE,
            text=f"{total:.0f} W",
        )
        _, base_frame, *moving, _ = self._frames
        entities = [self._entity(time, base_frame, base_frame, GREY, texts=[text])]
        for joint, link, watts in zip(self._joints, moving, power.tolist(), strict=True):
            level = level_of(watts)
            red, green, blue, alpha = color(level)
            paint = fox.Color(r=red, g=green, b=blue, a=alpha)
            size = diameter(level)
            extent = fox.Vector3(x=size, y=size, z=size)
            sphere = fox.SpherePrimitive(pose=fox.Pose(), size=extent, color=paint)
            entities.append(self._entity(time, joint, link, paint, spheres=[sphere]))
        scene = fox.SceneUpdate(entities=entities)
        return transforms.encode(), scene.encode()

    def _transforms(self, time: fox.Timestamp, poses: Array) -> list[fox.FrameTransform]:
        """The pose of each frame in the frame before it.

        Args:
            time: time of the poses.
            poses: poses of all frames but the first, in `base` [n + 2, 4, 4].
        """
        steps = np.concatenate(
            [BASE_IN_ROOT[None], np.linalg.solve(poses[:-1], poses[1:])]
        )
        transforms: list[fox.FrameTransform] = []
        for (parent, child), step in zip(pairwise(self._frames), steps, strict=True):
            place, turn = _placed(step[:3, 3], Rotation.from_matrix(step[:3, :3]))
            transform = fox.FrameTransform(
                timestamp=time,
                parent_frame_id=parent,
                child_frame_id=child,
                translation=place,
                rotation=turn,
            )
            transforms.append(transform)
        return transforms

    def _entity(
        self,
        time: fox.Timestamp,
        name: str,
        link: str,
        paint: fox.Color,
        **primitives: Any,
    ) -> fox.SceneEntity:
        """A link in a colour, which moves with its frame.

        Args:
            time: time of the reading.
            name: identifies the entity over readings.
            link: name of the link, which is also its frame.
            paint: colour of its shells.
            primitives: texts or spheres in the same frame.
        """
        cylinders: list[fox.CylinderPrimitive] = []
        for shell in self._shells[link]:
            cylinder = fox.CylinderPrimitive(
                pose=shell.pose,
                size=shell.size,
                bottom_scale=1.0,
                top_scale=1.0,
                color=paint,
            )
            cylinders.append(cylinder)
        return fox.SceneEntity(
            timestamp=time,
            frame_id=link,
            id=name,
            lifetime=SHOWN,
            frame_locked=True,
            cylinders=cylinders,
            **primitives,
        )


class _Shell(NamedTuple):
    """A cylinder around a cylinder of the URDF, along its z axis.

    Attributes:
        pose: pose in the frame of the link.
        size: diameters and length [m].
    """

    pose: fox.Pose
    size: fox.Vector3


def _shell(visual: Xml.Element) -> _Shell:
    """The shell of an element `visual` of this package's URDF, which has cylinders only."""
    origin = visual.find("origin")
    shape = visual.find("geometry/cylinder")
    assert origin is not None
    assert shape is not None
    place = np.array(origin.attrib["xyz"].split(), float)
    turn = np.array(origin.attrib["rpy"].split(), float)
    width = 2.0 * SHELL * float(shape.attrib["radius"])
    size = fox.Vector3(x=width, y=width, z=float(shape.attrib["length"]))
    position, orientation = _placed(place, Rotation.from_euler("xyz", turn))
    return _Shell(fox.Pose(position=position, orientation=orientation), size)


def _placed(place: Array, turn: Rotation) -> tuple[fox.Vector3, fox.Quaternion]:
    """A position [3], m, and a rotation as messages."""
    position = fox.Vector3(**dict(zip("xyz", place.tolist(), strict=True)))
    quaternion = dict(zip("xyzw", turn.as_quat().tolist(), strict=True))
    return position, fox.Quaternion(**quaternion)
