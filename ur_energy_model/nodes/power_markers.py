"""Markers for rviz: power as coloured spheres at the joints, total power as text."""

from __future__ import annotations

from builtin_interfaces.msg import Duration, Time
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from ur_energy_model.energy_topics.power_scale import FULL_SCALE, color, diameter, level_of
from ur_energy_model.typing import Array

LIFETIME = Duration(sec=2)
"""Markers vanish this long after the estimator has ended."""


class PowerMarkers:
    """One sphere per joint, coloured by its power, and the total power as text above the arm.

    The message is made once and updated, since making Marker messages takes most of the time.

    Args:
        frame: base frame of the arm.
        joints: number of joints.
        full_scale: power at which a sphere is red [W].
    """

    def __init__(self, frame: str, joints: int, full_scale: float = FULL_SCALE) -> None:
        self._full_scale = full_scale
        self._spheres = [
            Marker(ns="joint_power", id=i, type=Marker.SPHERE, action=Marker.ADD, lifetime=LIFETIME)
            for i in range(joints)
        ]
        self._text = Marker(
            ns="total_power",
            type=Marker.TEXT_VIEW_FACING,
            action=Marker.ADD,
            lifetime=LIFETIME,
            color=ColorRGBA(r=1.0, g=1.0, b=1.0, a=1.0),
        )
        self._text.scale.z = 0.12
        self._array = MarkerArray(markers=[*self._spheres, self._text])
        for marker in self._array.markers:
            marker.header.frame_id = frame

    def message(self, stamp: Time, positions: Array, power: Array, total: float) -> MarkerArray:
        """The updated message; the next call updates the same object.

        Args:
            stamp: time of the sample.
            positions: joint origins in the base frame [n, 3], m.
            power: electrical power of each joint [n], W.
            total: power of the whole arm [W].
        """
        for sphere, (x, y, z), watt in zip(
            self._spheres, positions.tolist(), power.tolist(), strict=True
        ):
            level = level_of(watt, self._full_scale)
            position, scale = sphere.pose.position, sphere.scale
            position.x, position.y, position.z = x, y, z
            scale.x = scale.y = scale.z = diameter(level)
            sphere.color.r, sphere.color.g, sphere.color.b, sphere.color.a = color(level)
        self._text.text = f"{total:.0f} W"
        self._text.pose.position.z = float(positions[:, 2].max()) + 0.25
        for marker in self._array.markers:
            marker.header.stamp = stamp
        return self._array
