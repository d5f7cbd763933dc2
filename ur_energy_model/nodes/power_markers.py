"""Coloured balls at the joints and a text above the base, for rviz."""

from __future__ import annotations

from builtin_interfaces.msg import Duration, Time
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from ur_energy_model.typing import Array

LIFETIME = Duration(sec=2)
"""Markers of an estimator that has ended fade after this."""
SMALLEST, GROWTH = 0.10, 0.08
"""Diameter of a ball without power, and what full scale adds [m]."""


class PowerMarkers:
    """A ball per joint, coloured by its power, and the total as text above the base.

    The messages are made once and filled anew: making a Marker takes longer than all the rest.

    Args:
        frame: the arm's base frame.
        joints: their number.
        full_scale: power that is fully red [W].
    """

    def __init__(self, frame: str, joints: int, full_scale: float = 100.0) -> None:
        self._full_scale = full_scale
        self._balls = [
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
        self._array = MarkerArray(markers=[*self._balls, self._text])
        for marker in self._array.markers:
            marker.header.frame_id = frame

    def filled(self, stamp: Time, places: Array, power: Array, total: float) -> MarkerArray:
        """The markers of a moment; the next call fills the same message.

        Args:
            stamp: of the sample.
            places: joint positions in the base frame [n, 3], m.
            power: electrical power of each joint [n], W.
            total: power of the whole arm [W].
        """
        for ball, (x, y, z), watt in zip(self._balls, places.tolist(), power.tolist(), strict=True):
            level = min(max(watt / self._full_scale, -1.0), 1.0)
            place, scale = ball.pose.position, ball.scale
            place.x, place.y, place.z = x, y, z
            scale.x = scale.y = scale.z = SMALLEST + GROWTH * abs(level)
            ball.color.r, ball.color.g, ball.color.b, ball.color.a = color(level)
        self._text.text = f"{total:.0f} W"
        self._text.pose.position.z = float(places[:, 2].max()) + 0.25
        for marker in self._array.markers:
            marker.header.stamp = stamp
        return self._array


def color(level: float) -> tuple[float, float, float, float]:
    """Blue for regeneration (-1), green for no power, yellow to red for consumption (1)."""
    if level < 0:
        return 0.0, 1.0 + level, -level, 0.9
    return min(1.0, 2 * level), min(1.0, 2 - 2 * level), 0.0, 0.9
