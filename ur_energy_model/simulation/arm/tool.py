"""Tool quantities of the simulated arm: poses, speeds, forces, momentum."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pinocchio as pin

from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.simulation.arm.rtde_outputs import RtdeOutputs, RtdeValue
from ur_energy_model.simulation.arm.sensors import Sensors
from ur_energy_model.typing import Array


def pose_vector(pose: Array) -> Array:
    """Position and rotation vector [6], m and rad, of a homogeneous pose [4, 4]."""
    return np.concatenate([pose[:3, 3], pin.log3(pose[:3, :3])])


class Tool:
    """Tool quantities of the current cycle, computed on demand.

    Args:
        dynamics: of the arm with the configured payload; may be replaced.
    """

    def __init__(self, dynamics: ArmDynamics) -> None:
        self.dynamics = dynamics

    def values(self, outputs: RtdeOutputs, sensors: Sensors) -> dict[str, Callable[[], RtdeValue]]:
        """Functions by RTDE name; each computes a field from the joint fields of `outputs`."""

        def joint(name: str) -> Array:
            return np.asarray(outputs[name])

        return {
            "actual_TCP_pose": lambda: self.pose(joint("actual_q")),
            "target_TCP_pose": lambda: self.pose(joint("target_q")),
            "actual_TCP_speed": lambda: self.speed(joint("actual_q"), joint("actual_qd")),
            "target_TCP_speed": lambda: self.speed(joint("target_q"), joint("target_qd")),
            "actual_TCP_force": sensors.wrench,
            "ft_raw_wrench": sensors.wrench,
            "actual_tool_accelerometer": lambda: sensors.accelerometer(
                self.acceleration(joint("actual_q"), joint("actual_qd"), joint("target_qdd"))
            ),
            "actual_momentum": lambda: self.momentum(joint("actual_q"), joint("actual_qd")),
        }

    def pose(self, q: Array) -> Array:
        """Flange pose as in RTDE [6] at joint positions [n]."""
        return pose_vector(self.dynamics.flange_pose(q[None])[0])

    def speed(self, q: Array, qd: Array) -> Array:
        """Linear and angular velocity of the flange in base axes [6], m/s and rad/s."""
        linear = self.dynamics.flange_speed(q[None], qd[None])[0]
        data, last = self.dynamics.data, self.dynamics.dof
        return np.concatenate([linear, data.oMi[last].rotation @ data.v[last].angular])

    def momentum(self, q: Array, qd: Array) -> float:
        """Norm of the linear momentum of links and payload [kg m/s]."""
        total = pin.computeCentroidalMomentum(self.dynamics.model, self.dynamics.data, q, qd)
        return float(np.linalg.norm(total.linear))

    def acceleration(self, q: Array, qd: Array, qdd: Array) -> Array:
        """Proper acceleration of the last joint's origin in its axes [3], m/s^2.

        At rest with the tool down it is about -9.8 on the z axis, as on real arms.
        """
        model, data, last = self.dynamics.model, self.dynamics.data, self.dynamics.dof
        pin.forwardKinematics(model, data, q, qd, qdd)
        moving = pin.getClassicalAcceleration(model, data, last, pin.ReferenceFrame.LOCAL).linear
        gravity = np.asarray(self.dynamics.setup.gravity, float)
        return np.asarray(moving - data.oMi[last].rotation.T @ gravity)
