"""Poses of the tool centre point: forward, inverse, and their composition.

A pose is position and rotation vector [6], m and rad, in base axes, as URScript has it.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.simulation.arm.tool import pose_vector
from ur_energy_model.typing import Array

POSITION_TOLERANCE, ANGLE_TOLERANCE = 1e-7, 1e-7
"""Of the inverse kinematics [m, rad]."""
ITERATIONS, DAMPING, LONGEST_STEP = 200, 1e-4, 0.3


def matrix_of(pose: Array) -> Array:
    """Homogeneous transform [4, 4] of a pose [6]."""
    transform = np.eye(4)
    transform[:3, :3] = pin.exp3(np.asarray(pose[3:], dtype=float))
    transform[:3, 3] = pose[:3]
    return transform


def compose(first: Array, second: Array) -> Array:
    """Pose [6] of a frame that has pose `second` [6] in a frame of pose `first` [6]."""
    return pose_vector(matrix_of(first) @ matrix_of(second))


class ArmKinematics:
    """Kinematics of an arm with n joints; nominal, as its controller computes."""

    def __init__(self, robot: RobotDescription) -> None:
        self._dynamics = ArmDynamics(robot)
        self._limits = robot.max_position

    def forward(self, q: Array, tool: Array) -> Array:
        """Pose [6] at joint positions [n] of a tool centre point at `tool` [6] on the flange."""
        flange = self._dynamics.flange_pose(np.asarray(q, dtype=float)[None])[0]
        return pose_vector(flange @ matrix_of(tool))

    def jacobian(self, q: Array, tool: Array) -> Array:
        """Linear and angular speed of the tool centre point, base axes, per joint speed [6, n]."""
        model, data, last = self._dynamics.model, self._dynamics.data, self._dynamics.dof
        pin.computeJointJacobians(model, data, np.asarray(q, dtype=float))
        jacobian = np.array(
            pin.getJointJacobian(model, data, last, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)
        )
        lever = self.forward(q, tool)[:3] - data.oMi[last].translation
        jacobian[:3] += np.cross(jacobian[3:], lever, axis=0)
        return jacobian

    def inverse(self, pose: Array, near: Array, tool: Array) -> Array | None:
        """Joint positions [n] for a pose [6], sought from those nearby [n]; None if not found.

        Damped least squares, one step after the other (Nakamura and Hanafusa 1986).
        """
        q, goal = np.array(near, dtype=float), matrix_of(pose)
        for _ in range(ITERATIONS):
            now = matrix_of(self.forward(q, tool))
            angle = now[:3, :3] @ pin.log3(now[:3, :3].T @ goal[:3, :3])
            error = np.concatenate([goal[:3, 3] - now[:3, 3], angle])
            if (
                np.linalg.norm(error[:3]) < POSITION_TOLERANCE
                and np.linalg.norm(angle) < ANGLE_TOLERANCE
            ):
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
        """Whether joint positions [n] are within the joints' ranges."""
        return bool((np.abs(q) <= self._limits).all())
