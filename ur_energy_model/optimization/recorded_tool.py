"""The tool centre point that a recording was made with."""

from __future__ import annotations

import numpy as np

from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.simulation.arm.tool import pose_vector
from ur_energy_model.simulation.control.kinematics import matrix_of
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array


def recorded_tool(telemetry: Telemetry, robot: RobotDescription) -> Array | None:
    """Pose of the tool centre point in the flange frame [6], m and rad.

    It is taken from the sample at which the arm is slowest, with the nominal kinematics: an arm's
    own calibration makes it wrong by a millimetre or two, which does not change what is straight.

    Args:
        telemetry: with actual_q, actual_qd and actual_TCP_pose.
        robot: the arm.

    Returns:
        None if a field is missing.
    """
    if any(name not in telemetry for name in ("actual_q", "actual_qd", "actual_TCP_pose")):
        return None
    at = int(np.argmin(np.abs(telemetry["actual_qd"]).max(axis=1)))
    pose = telemetry["actual_TCP_pose"][at]
    if not np.isfinite(pose).all():
        return None
    flange = ArmDynamics(robot).flange_pose(telemetry["actual_q"][at : at + 1])[0]
    return pose_vector(np.linalg.inv(flange) @ matrix_of(pose))
