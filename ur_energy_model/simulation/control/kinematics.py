"""Forward and inverse kinematics of the tool centre point.

A pose is a position and a rotation vector [6], m and rad, in base axes, as in URScript.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.simulation.arm.tool import pose_vector
from ur_energy_model.typing import Array

POSITION_TOLERANCE, ANGLE_TOLERANCE = 1e-7, 1e-7
"""Convergence of the inverse kinematics [m, rad]."""
ITERATIONS, DAMPING, LONGEST_STEP = 200, 1e-4, 0.3


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
    """Nominal kinematics of an arm with n joints, as its controller computes them."""

    def __init__(self, robot: RobotDescription) -> None:
        self._dynamics = ArmDynamics(robot)
        self._limits = robot.max_position

    def forward(self, q: Array, tool: Array) -> Array:
        """Pose [6] of the tool centre point `tool` [6] (flange frame) at joint positions [n]."""
        flange = self._dynamics.flange_pose(np.asarray(q, dtype=float)[None])[0]
        return pose_vector(flange @ matrix_of(tool))

    def jacobian(self, q: Array, tool: Array) -> Array:
        """Geometric Jacobian [6, n] of the tool centre point in base axes."""
        model, data, last = self._dynamics.model, self._dynamics.data, self._dynamics.dof
        pin.computeJointJacobians(model, data, np.asarray(q, dtype=float))
        jacobian = np.array(
            pin.getJointJacobian(model, data, last, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)
        )
        lever = self.forward(q, tool)[:3] - data.oMi[last].translation
        jacobian[:3] += np.cross(jacobian[3:], lever, axis=0)
        return jacobian

    def inverse(self, pose: Array, near: Array, tool: Array) -> Array | None:
        """Joint positions [n] for a pose [6], or None if the solver does not converge.

        Damped least squares (Nakamura and Hanafusa 1986), started at `near` [n].
        """
        q, goal = np.array(near, dtype=float), matrix_of(pose)
        for _ in range(ITERATIONS):
            pose_now = matrix_of(self.forward(q, tool))
            angle = pose_now[:3, :3] @ pin.log3(pose_now[:3, :3].T @ goal[:3, :3])
            error = np.concatenate([goal[:3, 3] - pose_now[:3, 3], angle])
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
        """Whether joint positions [n] are within the joint limits."""
        return bool((np.abs(q) <= self._limits).all())
