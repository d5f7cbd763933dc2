"""Files of an optimized cycle: program, set points, ROS trajectory, and CSV for `predict`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from ur_energy_model.errors import InputError
from ur_energy_model.experiment.energy_cycle.joint_trajectory import trajectory_yaml
from ur_energy_model.experiment.energy_cycle.program import urscript_of
from ur_energy_model.files import write_text
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.optimization.cycle_motion import TimedMoves, new_motion, plan_at
from ur_energy_model.optimization.optimized_cycle import OptimizedCycle
from ur_energy_model.optimization.pendant import sheet_csv
from ur_energy_model.plain import plain
from ur_energy_model.trajectory.plan_csv import csv_text

SHEET = "pendant.csv"
PROGRAM = "cycle.script"
SET_POINTS = "servoj.csv"
TRAJECTORY = "joint_trajectory.yaml"
PREDICTION = "cycle.csv"
RESULT = "result.json"


@dataclass(frozen=True)
class ExportedFile:
    """A written file and what it is for."""

    path: Path
    purpose: str


def export_cycle(
    optimized: OptimizedCycle, robot: RobotDescription, folder: str | Path
) -> tuple[ExportedFile, ...]:
    """Write all files of an optimized cycle.

    Args:
        optimized: with what to type.
        robot: the arm; gives joint names and the rate of its controller.
        folder: created if necessary; files of the same names are replaced.

    Returns:
        The files, in the order of their use.

    Raises:
        InputError: a file cannot be written, or the moves of the cycle do not follow each other.
    """
    motion = new_motion(optimized)
    texts = {
        SHEET: (sheet_csv(optimized.sheet), "what to type, step by step"),
        PROGRAM: (urscript_of(optimized, robot), "URScript program: moves and waits"),
        SET_POINTS: (
            set_points(motion, robot.rate),
            f"servoJ set points at the controller's {robot.rate:g} Hz: time, joint positions",
        ),
        TRAJECTORY: (
            trajectory_yaml(motion, robot),
            "trajectory_msgs/JointTrajectory for `ros2 topic pub`",
        ),
        PREDICTION: (prediction_csv(motion, robot.rate), "motion for `ur_energy predict`"),
        RESULT: (json.dumps(plain(optimized.as_json()), indent=1) + "\n", "all figures"),
    }
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(target, f"cannot be made ({error})", "name another folder") from error
    out = []
    for name, (text, purpose) in texts.items():
        write_text(target / name, text)
        out.append(ExportedFile(target / name, purpose))
    return tuple(out)


def set_points(motion: TimedMoves, rate: float) -> str:
    """CSV of joint positions, one row per cycle of the controller, for servoJ."""
    plan = plan_at(motion, rate, SET_POINTS)
    return csv_text(plan.time, plan.q)


def prediction_csv(motion: TimedMoves, rate: float) -> str:
    """CSV of positions, velocities and accelerations for `ur_energy predict`."""
    plan = plan_at(motion, rate, PREDICTION)
    assert plan.qd is not None
    assert plan.qdd is not None
    return csv_text(plan.time, plan.q, plan.qd, plan.qdd)
