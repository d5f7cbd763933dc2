"""Limits that a time law keeps: joint speed, acceleration and torque, tool speed, jerk."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.typing import Array

SPEED_SHARE = 0.95
"""Usable part of the joint speeds; the rest is margin for the controller's ripple."""
ACCELERATION_SHARE = 0.95
"""Usable part of the joint accelerations; interpolation between samples overshoots a little."""
TORQUE_SHARE = 0.9
"""Usable part of the joint torques, friction and payload included."""
_DIFFERENCE = 1e-5
"""Joint travel over which velocities of points are differentiated [rad]."""
ROUNDING = 1.0 + 1e-6
STILL = 0.02
"""Share of the usual limit that a joint may use which stood still: a path is exact to noise only.
"""
TOOL_SPEED = 1.5
"""Speed of flange and elbow [m/s] that the controller's safety settings allow by default."""
TOOL_SPEED_SHARE = 0.97
"""Usable part of the tool speed; the rest is margin for the controller's ripple."""


@dataclass(frozen=True)
class PathLimits:
    """Limits of a motion.

    Attributes:
        speed, acceleration, torque: of the joints [n], rad/s, rad/s^2, N m, joint side; the torque
            includes friction.
        tool_speed: of flange and elbow [m/s].
        jerk: of the joints [rad/s^3]; infinite without a limit.
        recorded: whether the recorded motion is allowed in any case.
    """

    speed: Array
    acceleration: Array
    torque: Array
    tool_speed: float = TOOL_SPEED_SHARE * TOOL_SPEED
    jerk: float = np.inf
    recorded: bool = False

    @classmethod
    def of_robot(cls, robot: RobotDescription) -> PathLimits:
        """The robot file's limits, with a margin."""
        return cls(
            SPEED_SHARE * robot.max_velocity,
            ACCELERATION_SHARE * robot.max_acceleration,
            TORQUE_SHARE * robot.max_torque,
        )

    def with_speedup(self, shown: PathLimits, factor: float) -> PathLimits:
        """These limits, lowered to a multiple of a move's speeds and accelerations.

        Args:
            shown: largest values of the move.
            factor: at least 1.
        """
        return replace(
            self,
            speed=np.minimum(self.speed, factor * np.maximum(shown.speed, STILL * self.speed)),
            acceleration=np.minimum(
                self.acceleration,
                factor * np.maximum(shown.acceleration, STILL * self.acceleration),
            ),
            recorded=True,
        )

    def within(self, others: PathLimits, tolerance: float = ROUNDING) -> bool:
        """Whether these values keep other limits, times a tolerance; jerk does not count."""
        return all(
            bool((np.asarray(getattr(self, name)) <= tolerance * getattr(others, name)).all())
            for name in ("speed", "acceleration", "torque", "tool_speed")
        )

    def at_least(self, others: Iterable[PathLimits]) -> PathLimits:
        """These limits, raised to what a recording has shown where that goes beyond.

        Args:
            others: largest values of recorded moves; their jerk does not count.
        """
        out = self
        for other in others:
            out = replace(
                out,
                speed=np.maximum(out.speed, other.speed),
                acceleration=np.maximum(out.acceleration, other.acceleration),
                torque=np.maximum(out.torque, other.torque),
                tool_speed=max(out.tool_speed, other.tool_speed),
            )
        return out


def reached(q: Array, qd: Array, qdd: Array, torque: Array, dynamics: ArmDynamics) -> PathLimits:
    """The largest values of a motion.

    Args:
        q: joint positions [k, n], rad.
        qd: joint velocities [k, n], rad/s.
        qdd: joint accelerations [k, n], rad/s^2.
        torque: of the joints, friction included [k, n], N m.
        dynamics: for the speed of flange and elbow.
    """
    return PathLimits(
        np.abs(qd).max(axis=0),
        np.abs(qdd).max(axis=0),
        np.abs(torque).max(axis=0),
        float(point_speed(dynamics, q, qd).max()),
    )


def point_speed(dynamics: ArmDynamics, q: Array, qd: Array) -> Array:
    """Speed of flange or elbow, whichever is faster [k], m/s.

    The elbow is the far end of the second moving link.

    Args:
        dynamics: of the arm.
        q: joint positions [k, n], rad.
        qd: joint velocities [k, n], rad/s.
    """
    elbow = min(2, q.shape[1])
    step = _DIFFERENCE / max(float(np.abs(qd).max()), 1e-9)
    ahead, behind = (
        dynamics.frames(q + side * step * qd)[0][:, elbow, :3, 3] for side in (1.0, -1.0)
    )
    flange = np.linalg.norm(dynamics.flange_speed(q, qd), axis=1)
    return np.asarray(np.maximum(flange, np.linalg.norm(ahead - behind, axis=1) / (2 * step)))
