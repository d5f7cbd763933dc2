"""Execution of a motion on a robot: plan, summary for approval, result."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ur_energy_model.experiment.limits import PeriodicMotion, SafetyLimits
from ur_energy_model.experiment.same_arm import KnownArm
from ur_energy_model.telemetry.recording.reception import RecorderStatus
from ur_energy_model.typing import Array


@dataclass(frozen=True)
class ExecutionPlan:
    """Plan of an execution.

    Attributes:
        trajectory: checked against `limits` before the robot moves.
        limits: limits of the arm in its workplace.
        warm_up: time to run the trajectory before recording, to warm up the joints [s].
        speed_fraction: fraction of the designed speed, at most 1.
        arm: the one that the motion was recorded on or planned for; None if nothing is known.
        another_arm: run on another arm, too, if it is of the same model.
    """

    trajectory: PeriodicMotion
    limits: SafetyLimits
    warm_up: float = 0.0
    speed_fraction: float = 1.0
    arm: KnownArm | None = None
    another_arm: bool = False

    @property
    def duration(self) -> float:
        """Duration of the recorded run [s]."""
        return self.trajectory.duration / self.speed_fraction


@dataclass(frozen=True)
class MotionSummary:
    """Planned motion, shown for approval.

    Attributes:
        host, robot, serial: the robot.
        here, start: current joint positions and those at the start [n], rad.
        travel: joint travel of the trajectory [n], rad.
        joint_speed: largest speed of each joint [n], rad/s.
        tool_speed: largest speed of flange and elbow [m/s].
        clearance: smallest distance found by the check [m].
        duration, warm_up: s.
        program_running: whether a running program will be replaced.
        other_arm: how the robot differs from the expected one, "" if it does not.
        remarks: on what could not be compared.
    """

    host: str
    robot: str
    serial: str | None
    here: Array
    start: Array
    travel: Array
    joint_speed: Array
    tool_speed: float
    clearance: float
    duration: float
    warm_up: float
    program_running: bool
    other_arm: str = ""
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class ExecutionResult:
    """Result of an execution.

    Attributes:
        completed: whether the trajectory ran to its end.
        reason: why it did not, "" otherwise.
        bag: the recording, None if recording had not started.
        status: status of the recorder at the end.
        following_error: largest during the trajectory [rad].
        temperatures: of the joints before and after [2, n], degC; NaN if unknown.
    """

    completed: bool
    reason: str
    bag: Path | None
    status: RecorderStatus
    following_error: float
    temperatures: Array
