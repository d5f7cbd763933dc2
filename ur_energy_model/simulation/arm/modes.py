"""Modes of the simulated controller with their RTDE codes."""

from __future__ import annotations

from enum import IntEnum


class RobotMode(IntEnum):
    """RTDE robot_mode."""

    POWER_OFF = 3
    POWER_ON = 4
    IDLE = 5
    RUNNING = 7


class SafetyMode(IntEnum):
    """RTDE safety_mode."""

    NORMAL = 1
    PROTECTIVE_STOP = 3


class JointMode(IntEnum):
    """RTDE joint_mode."""

    POWER_OFF = 239
    RUNNING = 253
    IDLE = 255


class ProgramState(IntEnum):
    """RTDE runtime_state."""

    STOPPED = 1
    PLAYING = 2
    PAUSED = 4


JOINT_MODE_OF: dict[RobotMode, JointMode] = {
    RobotMode.POWER_OFF: JointMode.POWER_OFF,
    RobotMode.POWER_ON: JointMode.IDLE,
    RobotMode.IDLE: JointMode.IDLE,
    RobotMode.RUNNING: JointMode.RUNNING,
}
"""Mode of the joints in each mode of the robot."""
