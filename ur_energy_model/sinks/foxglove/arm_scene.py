"""The moving arm for 3D panels: links coloured by power, and their frames."""

from __future__ import annotations

from itertools import pairwise

from foxglove import messages as fox

from ur_energy_model.energy_topics.power_scale import color, diameter, level_of
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.sinks.foxglove.link_shapes import Cylinder, LinkShapes, relative
from ur_energy_model.telemetry.bag.message_types import MessageType
from ur_energy_model.typing import Array

SHOWN = fox.Duration(2)
"""The arm vanishes this long after the last reading, as the markers of rviz do."""
SHELL = 1.1
"""Radius of the coloured links relative to those of the URDF, which they cover."""
TEXT_HEIGHT, TEXT_ABOVE = 0.12, 0.25
"""Size of the total power, and its height above the highest joint [m]."""
GREY = fox.Color(r=0.5, g=0.5, b=0.5, a=0.9)
WHITE = fox.Color(r=1.0, g=1.0, b=1.0, a=1.0)


def foxglove_type(message: type[fox.SceneUpdate] | type[fox.FrameTransforms]) -> MessageType:
    """Message type of a Foxglove schema."""
    schema = message.get_schema()
    return MessageType(schema.name, schema.data, "", schema.encoding, "protobuf")


class ArmScene:
    """Makes the messages of one arm.

    Args:
        robot: the arm, n joints.
        joints: names of its joints, prefix included, n.

    Attributes:
        urdf: of the arm, with the prefix of its joints.
    """

    def __init__(self, robot: RobotDescription, joints: tuple[str, ...]) -> None:
        self._joints = joints
        self._shapes = LinkShapes(robot, joints[0].removesuffix(robot.joint_names[0]))
        self.urdf = self._shapes.urdf

    def messages(self, stamp: int, q: Array, power: Array, total: float) -> tuple[bytes, bytes]:
        """The encoded FrameTransforms of all links, and the SceneUpdate.

        Args:
            stamp: ns.
            q: joint angles [n], rad.
            power: electrical power of each joint [n], W.
            total: power of the whole arm [W].
        """
        time = fox.Timestamp(*divmod(stamp, 1_000_000_000))
        poses = self._shapes.poses(q)
        base, *links = self._shapes.frames[1:-1]
        text = self._text(total, float(poses[1:-1, 2, 3].max()))
        entities = [self._entity(time, base, base, GREY, texts=[text])]
        for joint, link, watt in zip(self._joints, links, power.tolist(), strict=True):
            red, green, blue, alpha = color(level_of(watt))
            size = diameter(level_of(watt))
            paint = fox.Color(r=red, g=green, b=blue, a=alpha)
            sphere = fox.SpherePrimitive(
                pose=fox.Pose(), size=fox.Vector3(x=size, y=size, z=size), color=paint
            )
            entities.append(self._entity(time, joint, link, paint, spheres=[sphere]))
        return self._transforms(time, poses), fox.SceneUpdate(entities=entities).encode()

    def _transforms(self, time: fox.Timestamp, poses: Array) -> bytes:
        transforms = [
            fox.FrameTransform(
                timestamp=time,
                parent_frame_id=parent,
                child_frame_id=child,
                translation=_vector(place),
                rotation=_quaternion(turn),
            )
            for (parent, child), place, turn in zip(
                pairwise(self._shapes.frames), *relative(poses), strict=True
            )
        ]
        return fox.FrameTransforms(transforms=transforms).encode()

    def _entity(
        self,
        time: fox.Timestamp,
        name: str,
        link: str,
        paint: fox.Color,
        *,
        spheres: list[fox.SpherePrimitive] | None = None,
        texts: list[fox.TextPrimitive] | None = None,
    ) -> fox.SceneEntity:
        return fox.SceneEntity(
            timestamp=time,
            frame_id=link,
            id=name,
            lifetime=SHOWN,
            frame_locked=True,
            cylinders=[_primitive(each, paint) for each in self._shapes.cylinders(link)],
            spheres=spheres or [],
            texts=texts or [],
        )

    @staticmethod
    def _text(total: float, highest: float) -> fox.TextPrimitive:
        return fox.TextPrimitive(
            pose=fox.Pose(position=fox.Vector3(z=highest + TEXT_ABOVE)),
            billboard=True,
            font_size=TEXT_HEIGHT,
            color=WHITE,
            text=f"{total:.0f} W",
        )


def _primitive(cylinder: Cylinder, paint: fox.Color) -> fox.CylinderPrimitive:
    width = 2.0 * SHELL * cylinder.radius
    return fox.CylinderPrimitive(
        pose=fox.Pose(position=_vector(cylinder.place), orientation=_quaternion(cylinder.turn)),
        size=fox.Vector3(x=width, y=width, z=cylinder.length),
        bottom_scale=1.0,
        top_scale=1.0,
        color=paint,
    )


def _vector(values: Array) -> fox.Vector3:
    x, y, z = values.tolist()
    return fox.Vector3(x=x, y=y, z=z)


def _quaternion(values: Array) -> fox.Quaternion:
    x, y, z, w = values.tolist()
    return fox.Quaternion(x=x, y=y, z=z, w=w)
