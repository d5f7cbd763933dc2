# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Forward and inverse kinematics of the tool centre point.

A pose is a position and a rotation vector [6], m and rad, in base axes, as in URScript.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
import pinocchio as pin

from ur_energy_model.errors import UrEnergyError
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.trajectory.motions import Trapezoid
from ur_energy_model.typing import Array

POSITION_TOLERANCE = 1e-7  # error of the position at which inverse kinematics ends [m]
ANGLE_TOLERANCE = 1e-7  # error of the rotation at which inverse kinematics ends [rad]
ITERATIONS = 200  # most steps of the inverse kinematics
DAMPING = 1e-4  # damping of its least squares over the square of the error
LONGEST_STEP = 0.3  # longest step of a joint in the inverse kinematics [rad]


def pose_vector(pose: Array) -> Array:
    """Position and rotation vector [6], m and rad, of a homogeneous pose [4, 4]."""
    return np.concatenate([pose[:3, 3], pin.log3(pose[:3, :3])])


def matrix_of(pose: Array) -> Array:
    """Homogeneous transform [4, 4] of a pose [6]."""
    transform = np.eye(4)
    transform[:3, :3] = pin.exp3(np.asarray(pose[3:], dtype=float))
    transform[:3, 3] = pose[:3]
    return transform


def compose(first: Array, second: Array) -> Array:
    """Product of two poses [6]: `second` is given in the frame of `first`."""
    return pose_vector(matrix_of(first) @ matrix_of(second))


class ArmKinematics:
    """Nominal kinematics of an arm with n joints, as its controller computes them.

    Args:
        robot: type of the arm.
    """

    def __init__(self, robot: RobotDescription) -> None:
        self._dynamics = ArmDynamics(robot)
        self._robot = robot

    def forward(self, q: Array, tool: Array) -> Array:
        """Pose of the tool centre point [6], base frame.

        Args:
            q: joint positions [n], rad.
            tool: tool centre point in the flange frame [6].
        """
        flange = self._dynamics.flange_pose(np.asarray(q, dtype=float)[None])[0]
        return pose_vector(flange @ matrix_of(tool))

    def jacobian(self, q: Array, tool: Array) -> Array:
        """Geometric Jacobian of the tool centre point in base axes [6, n]: m, then rad.

        Args:
            q: joint positions [n], rad.
            tool: tool centre point in the flange frame [6].
        """
        model = self._dynamics.model
        data = self._dynamics.data
        last = self._dynamics.dof
        pin.computeJointJacobians(model, data, np.asarray(q, dtype=float))
        jacobian = np.array(
            pin.getJointJacobian(
                model, data, last, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
            )
        )
        lever = self.forward(q, tool)[:3] - data.oMi[last].translation
        jacobian[:3] += np.cross(jacobian[3:], lever, axis=0)
        return jacobian

    def inverse(self, pose: Array, near: Array, tool: Array) -> Array | None:
        """Joint positions for a pose, by damped least squares (Nakamura and Hanafusa 1986).

        Args:
            pose: pose of the tool centre point in the base frame [6], m and rad.
            near: joint positions at which the search starts [n], rad.
            tool: tool centre point in the flange frame [6].

        Returns:
            Joint positions [n], rad; None if the search does not converge, or ends beyond
            the joint limits.
        """
        q = np.array(near, dtype=float)
        goal = matrix_of(pose)
        for _ in range(ITERATIONS):
            pose_now = matrix_of(self.forward(q, tool))
            angle = pose_now[:3, :3] @ pin.log3(pose_now[:3, :3].T @ goal[:3, :3])
            error = np.concatenate([goal[:3, 3] - pose_now[:3, 3], angle])
            at_position = np.linalg.norm(error[:3]) < POSITION_TOLERANCE
            if at_position and np.linalg.norm(angle) < ANGLE_TOLERANCE:
                return q if self.within_limits(q) else None
            jacobian = self.jacobian(q, tool)
            damped = jacobian @ jacobian.T + DAMPING * float(error @ error) * np.eye(6)
            try:
                step = jacobian.T @ np.linalg.solve(damped, error)
            except np.linalg.LinAlgError:
                return None
            q = q + step * min(1.0, LONGEST_STEP / max(float(np.abs(step).max()), 1e-12))
        return None

    def within_limits(self, q: Array) -> bool:
        """Whether joint positions [n] are within the joint limits."""
        return bool((self._robot.position_shares(q) <= 1.0).all())


class ScriptError(UrEnergyError):
    """Stops the running program; the message is sent to the clients."""


class Program(Protocol):
    """A program that a client has uploaded.

    Attributes:
        name: given by the client.
        needs_arm: whether it can start only while the arm is able to move.
    """

    name: str
    needs_arm: bool

    def step(self) -> bool:
        """Run one controller cycle; returns False when the program has ended.

        Raises:
            ScriptError: the program cannot continue.
            MotionRefusedError: the arm cannot execute a requested motion.
        """
        ...


SPACING = 0.01  # largest distance between two solved points of a straight line [m]
TURN = 0.1  # largest angle between two solved points of a straight line [rad]
FEWEST_POINTS = 6  # least number of solved points of a straight line
MOST_POINTS = 60  # largest number of solved points of a straight line


class StraightLine:
    """A joint trajectory along a line: spline path, trapezoidal speed profile.

    Args:
        path: joint positions at equal steps along the line [points, n], rad.
        length: length of the line [m]; the angle [rad] if the tool only turns.
        speed: along the line [m/s or rad/s]; it is reduced to keep `max_speed`.
        acceleration: along the line [m/s^2 or rad/s^2].
        max_speed: speed limits of the joints [n], rad/s.
    """

    def __init__(
        self,
        path: Array,
        length: float,
        speed: float,
        acceleration: float,
        max_speed: Array,
    ) -> None:
        from scipy.interpolate import CubicSpline  # slow to import

        self._points = path
        self._max_speed = max_speed
        self._path = CubicSpline(np.linspace(0.0, 1.0, len(path)), path)
        slopes = self._path(np.linspace(0.0, 1.0, 4 * len(path)), 1)
        slope = np.abs(slopes).max(axis=0) / length
        fastest = float((max_speed / np.maximum(slope, 1e-9)).min())
        self._length = length
        self._profile = Trapezoid(length, min(speed, fastest), acceleration)

    def with_profile(self, speed: float, acceleration: float) -> StraightLine:
        """The same line with another speed and acceleration."""
        return StraightLine(
            self._points, self._length, speed, acceleration, self._max_speed
        )

    @property
    def duration(self) -> float:
        """Duration of the move [s]."""
        return self._profile.duration

    def sample(self, time: Array) -> tuple[Array, Array, Array]:
        """As `Motion.sample`."""
        profile = np.stack(self._profile.sample(np.asarray(time))) / self._length
        position, speed, acceleration = profile[..., None]
        q = self._path(position[:, 0])
        slope = self._path(position[:, 0], 1)
        curvature = self._path(position[:, 0], 2)
        return q, slope * speed, curvature * speed**2 + slope * acceleration


class LinePlanner:
    """Solves a straight line point by point, one per call, to keep controller cycles short.

    Args:
        kinematics: kinematics of the arm, n joints.
        q: joint positions at the begin [n], rad.
        pose: pose of the tool centre point at the end [6].
        tool: tool centre point in the flange frame [6].
        speed: speed of the tool [m/s]; rad/s if it only turns.
        acceleration: acceleration of the tool [m/s^2]; rad/s^2 if it only turns.
        max_speed: speed limits of the joints [n], rad/s.
    """

    def __init__(
        self,
        kinematics: ArmKinematics,
        q: Array,
        pose: Array,
        tool: Array,
        speed: float,
        acceleration: float,
        max_speed: Array,
    ) -> None:
        self._kinematics = kinematics
        self._tool = tool
        self._max_speed = max_speed
        self._speed = speed
        self._acceleration = acceleration
        self._start = matrix_of(kinematics.forward(q, tool))
        goal = matrix_of(pose)
        self._shift = goal[:3, 3] - self._start[:3, 3]
        self._turn = pin.log3(self._start[:3, :3].T @ goal[:3, :3])
        length = float(np.linalg.norm(self._shift))
        angle = float(np.linalg.norm(self._turn))
        self._length = length if length > 1e-6 else angle
        points = math.ceil(max(length / SPACING, angle / TURN))
        self._points = min(max(points, FEWEST_POINTS), MOST_POINTS)
        self._path = [np.array(q, dtype=float)]

    def advance(self) -> StraightLine | None:
        """Solve the next point.

        Returns:
            The trajectory once the last point is solved; None before.

        Raises:
            ScriptError: the arm cannot reach a point of the line.
        """
        share = len(self._path) / self._points
        transform = self._start.copy()
        transform[:3, 3] += share * self._shift
        transform[:3, :3] = self._start[:3, :3] @ pin.exp3(share * self._turn)
        q = self._kinematics.inverse(pose_vector(transform), self._path[-1], self._tool)
        if q is None:
            raise ScriptError("the arm cannot reach a point of the straight line")
        self._path.append(q)
        if len(self._path) <= self._points:
            return None
        return StraightLine(
            np.array(self._path),
            length=max(self._length, 1e-6),
            speed=self._speed,
            acceleration=self._acceleration,
            max_speed=self._max_speed,
        )


FARTHEST = 100.0  # largest coordinate of a pose [m], far beyond every arm
MOST_TURN = 1000.0  # largest component of a rotation vector [rad]


def checked_pose(pose: Array, what: str = "the pose") -> Array:
    """A pose as numbers of possible size.

    Args:
        pose: position and rotation vector [6], m and rad.
        what: name of the pose, for the error.

    Raises:
        ScriptError: a value is not finite or beyond `FARTHEST` or `MOST_TURN`.
    """
    pose = np.asarray(pose, dtype=float)
    limits = np.repeat([FARTHEST, MOST_TURN], 3)
    if pose.shape != (6,) or not (np.abs(pose) <= limits).all():
        raise ScriptError(
            f"{what} needs six numbers, up to {FARTHEST:g} m and {MOST_TURN:g} rad in size"
        )
    return pose
