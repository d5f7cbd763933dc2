"""A motion to be run on a robot: the plan, what a person is shown before, what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ur_energy_model.experiment.limits import SafetyLimits
from ur_energy_model.experiment.periodic_motion import PeriodicMotion
from ur_energy_model.telemetry.recording.recorder_status import RecorderStatus
from ur_energy_model.typing import Array


@dataclass(frozen=True)
class ExecutionPlan:
    """What shall be run.

    Attributes:
        trajectory: checked against `limits` before anything moves.
        limits: of the arm in its place.
        warm_up: time to run the trajectory before recording, so that the joints are warm [s].
        speed_fraction: of the designed speed, at most 1.
    """

    trajectory: PeriodicMotion
    limits: SafetyLimits
    warm_up: float = 0.0
    speed_fraction: float = 1.0

    @property
    def duration(self) -> float:
        """Time that the recorded run lasts [s]."""
        return self.trajectory.duration / self.speed_fraction


@dataclass(frozen=True)
class MotionSummary:
    """What a robot is about to do, for the person who is asked.

    Attributes:
        host, robot, serial: who moves.
        here, start: joint positions now and at the trajectory's start [n], rad.
        travel: largest joint travel of the trajectory [n], rad.
        joint_speed: largest of each joint [n], rad/s.
        tool_speed: largest of flange and elbow [m/s].
        clearance: smallest distance by the check [m].
        duration, warm_up: s.
        program_running: a program runs on the controller and will be replaced.
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


@dataclass(frozen=True)
class ExecutionResult:
    """What became of it.

    Attributes:
        completed: the trajectory ran to its end.
        reason: why it did not, "" where it did.
        bag: what was recorded, None where recording had not begun.
        status: of the recorder at the end.
        following_error: largest while the trajectory ran [rad].
        temperatures: of the joints before and after [2, n], degC; NaN where unknown.
    """

    completed: bool
    reason: str
    bag: Path | None
    status: RecorderStatus
    following_error: float
    temperatures: Array
