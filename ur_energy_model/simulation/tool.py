"""Tool quantities of the simulated arm, from joint states: poses, speeds, forces, momentum."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from ur_energy_model.model.dynamics import ArmDynamics

Array = NDArray[np.float64]


def pose_vector(pose: Array) -> Array:
    """Position and rotation vector [6], m and rad, of a homogeneous pose [4, 4]."""
    return np.concatenate([pose[:3, 3], pin.log3(pose[:3, :3])])


def tool_pose(dynamics: ArmDynamics, q: Array) -> Array:
    """Pose of the flange as RTDE reports it [6], at joint positions [n]."""
    return pose_vector(dynamics.flange_pose(q[None])[0])


def tool_speed(dynamics: ArmDynamics, q: Array, qd: Array) -> Array:
    """Linear and angular speed of the flange in base axes [6], m/s and rad/s."""
    linear = dynamics.flange_speed(q[None], qd[None])[0]
    last = dynamics.dof
    angular = dynamics.data.oMi[last].rotation @ dynamics.data.v[last].angular
    return np.concatenate([linear, angular])


def momentum(dynamics: ArmDynamics, q: Array, qd: Array) -> float:
    """Norm of the linear momentum of links and payload [kg m/s]."""
    total = pin.computeCentroidalMomentum(dynamics.model, dynamics.data, q, qd)
    return float(np.linalg.norm(total.linear))


def accelerometer(dynamics: ArmDynamics, q: Array, qd: Array, qdd: Array) -> Array:
    """Acceleration of the flange against free fall, in its axes [3], m/s^2, sign as on real arms.

    At rest with the tool down a real arm reports about -9.8 on its z axis of the sensor.
    """
    pin.forwardKinematics(dynamics.model, dynamics.data, q, qd, qdd)
    last = dynamics.dof
    moving = pin.getClassicalAcceleration(
        dynamics.model, dynamics.data, last, pin.ReferenceFrame.LOCAL
    ).linear
    falling = dynamics.data.oMi[last].rotation.T @ np.asarray(dynamics.setup.gravity, float)
    return np.asarray(moving - falling)
