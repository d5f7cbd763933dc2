"""Plausible ranges of an arm's telemetry: rated values with a generous margin."""

from __future__ import annotations

import numpy as np

from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.telemetry.plausibility import (
    ACCELERATION,
    ANY_ARM,
    CURRENT,
    POSITION,
    TORQUE,
    PlausibleRanges,
)

_SPEED_MARGIN = 2.0
_CURRENT_MARGIN = 5.0
_TORQUE_MARGIN = 5.0
_POWER_MARGIN = 3.0
_LEAST_POWER = 2000.0
_LEAST_CURRENT = 20.0
_LARGEST_CURRENT = 200.0
MOST_POWER = 1.0e5
"""Power that no arm takes [W]: the largest ones take some kilowatts."""


def most_power(robot: RobotDescription) -> float:
    """Largest power that a sample of an arm can show [W].

    Three times the sum of the joints' rated torques times rated speeds, at least 2 kW; MOST_POWER
    where they are unknown. Recordings of real arms stay below an eighth of that sum.
    """
    rated = float((robot.max_torque * robot.max_velocity).sum())
    return max(_POWER_MARGIN * rated, _LEAST_POWER) if rated < MOST_POWER else MOST_POWER


def rated_limits(robot: RobotDescription) -> PlausibleRanges:
    """Lowest and highest plausible value of each RTDE field of an arm.

    Positions: four turns to either side (endless joints count on; arms have reported more than
    two). Speeds: twice the rated ones. Torques: five times the rated ones. Motor currents: five
    times that of the rated torque, at least 20 A; 200 A where the motor is unknown.
    """
    unknown = ~(np.isfinite(robot.torque_constant) & np.isfinite(robot.max_torque))
    with np.errstate(invalid="ignore"):
        current = _CURRENT_MARGIN * robot.max_torque / (robot.gear_ratio * robot.torque_constant)
    largest = np.where(robot.gear_ratio > 1, _LARGEST_CURRENT, CURRENT)
    current = np.where(unknown, largest, np.maximum(current, _LEAST_CURRENT))
    position = np.maximum(POSITION, 2 * robot.max_position)
    torque = np.where(unknown, TORQUE, _TORQUE_MARGIN * robot.max_torque)
    speed = _SPEED_MARGIN * robot.max_velocity
    acceleration = np.maximum(ACCELERATION, 10 * robot.max_acceleration)
    joint_limits = {
        "actual_q": position,
        "target_q": position,
        "actual_qd": speed,
        "target_qd": speed,
        "target_qdd": acceleration,
        "target_moment": torque,
        "actual_current_as_torque": torque,
        "actual_current": current,
        "target_current": current,
        "joint_control_output": current,
    }
    voltage = max(80.0, 1.7 * robot.nominal_voltage)
    supply = {
        name: (np.array([-1.0]), np.array([voltage]))
        for name in ("actual_joint_voltage", "actual_main_voltage", "actual_robot_voltage")
    }
    return {**ANY_ARM, **supply, **{name: (-high, high) for name, high in joint_limits.items()}}
