# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Files of an optimized cycle: program, set points, ROS trajectory, and CSV for `predict`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from scipy.interpolate import CubicHermiteSpline

from ur_energy_model.codec import plain
from ur_energy_model.errors import InputError
from ur_energy_model.experiment.motion_process import (
    APPROACH_ACCELERATION,
    APPROACH_SPEED,
    GAIN,
    LOOKAHEAD_TIME,
)
from ur_energy_model.files import write_text
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.optimization.cycle import Move, motion_of
from ur_energy_model.optimization.optimized_cycle import OptimizedCycle
from ur_energy_model.optimization.pendant import sheet_csv
from ur_energy_model.optimization.plan_optimization import trajectory_points
from ur_energy_model.optimization.power_front import PowerFront
from ur_energy_model.optimization.programmed import pendant_unit
from ur_energy_model.trajectory.motions import Chain
from ur_energy_model.trajectory.plan_file import csv_text
from ur_energy_model.typing import Array


def trajectory_yaml(motion: Chain, robot: RobotDescription) -> str:
    """A motion as trajectory_msgs/JointTrajectory in YAML, as `ros2 topic pub` takes it.

    Args:
        motion: motion from rest to rest.
        robot: robot whose joints are named as in the URDF.
    """
    plan = trajectory_points(motion)
    assert plan.qd is not None
    assert plan.qdd is not None
    lines = [f"joint_names: [{', '.join(robot.joint_names)}]", "points:"]
    for time, q, qd, qdd in zip(plan.time, plan.q, plan.qd, plan.qdd, strict=True):
        nanoseconds = round(float(time) * 1e9)
        lines += [
            f"- positions: {_numbers(q)}",
            f"  velocities: {_numbers(qd)}",
            f"  accelerations: {_numbers(qdd)}",
            f"  time_from_start: {{sec: {nanoseconds // 10**9}, nanosec: {nanoseconds % 10**9}}}",
        ]
    return "\n".join(lines) + "\n"


def _numbers(values: Array, digits: int = 7) -> str:
    """Numbers as a list in YAML or URScript, without a negative zero."""
    texts = [f"{value + 0.0:.{digits}f}" for value in np.round(values, digits).tolist()]
    return f"[{', '.join(texts)}]"


MOST_SET_POINTS = 4000
"""Most set points of all streamed moves together; simulated controllers run 5000 lines."""


def urscript_of(optimized: OptimizedCycle, robot: RobotDescription) -> str:
    """The program of one cycle: exactly what the sheet has to type.

    A moveL is given by the joint positions of its end, so that it does not depend on the
    tool centre point that is set. A move that is neither moveJ nor moveL is streamed as
    recorded.

    Args:
        optimized: the cycle with its sheet.
        robot: the arm.
    """
    cycle = optimized.cycle
    streamed = 0.0  # duration of the streamed moves [s]
    for step in optimized.sheet:
        if step.do == "move":
            streamed += cycle.moves[step.move].duration
    step_time = max(1.0 / robot.rate, streamed / MOST_SET_POINTS)
    step_time = np.ceil(step_time * robot.rate - 1e-6) / robot.rate
    lines = [
        "def energy_cycle():",
        f"  # {robot.name}: one cycle of {optimized.typed_duration:.2f} s, predicted "
        f"{optimized.typed_energy:.0f} J instead of {optimized.energy:.0f} J",
        "  # gripper and other commands of your program belong to the waits",
        f"  movej({_numbers(cycle.moves[0].q[0], 6)}, a={APPROACH_ACCELERATION}, "
        f"v={APPROACH_SPEED})",
    ]
    for number, step in enumerate(optimized.sheet, 1):
        kept = ", kept" if step.kept else ""
        lines.append(f"  # step {number}: {step.do}{kept}")
        move = cycle.moves[step.move]
        if step.do == "wait":
            if step.new_wait:
                lines.append(f"  sleep({step.new_wait:.2f})")
        elif step.new_speed is None or step.new_acceleration is None:
            lines += _streamed(move, step_time)
        else:
            unit = pendant_unit(step.do)
            lines.append(
                f"  {step.do.lower()}({_numbers(move.q[-1], 6)}, "
                f"a={step.new_acceleration * unit:.6g}, v={step.new_speed * unit:.6g})"
            )
    return "\n".join([*lines, "end", ""])


def _streamed(move: Move, step_time: float) -> list[str]:
    """Lines of URScript that stream a move as recorded, a set point every `step_time` [s]."""
    time = np.arange(step_time, move.duration + step_time, step_time)
    path = CubicHermiteSpline(move.time, move.q, move.qd)
    options = f"0, 0, {step_time:.4g}, {LOOKAHEAD_TIME}, {GAIN}"
    lines = []
    for q in path(np.minimum(time, move.duration)):
        set_point = _numbers(q, 6)
        lines.append(f"  servoj({set_point}, {options})")
    return [*lines, "  stopj(2.0)"]


SHEET = "pendant.csv"
PROGRAM = "cycle.script"
SET_POINTS = "servoj.csv"
TRAJECTORY = "joint_trajectory.yaml"
PREDICTION = "cycle.csv"
FRONT = "power_front"
"""Folder of the points of the front of energy against peak power."""
RESULT = "result.json"


def export_cycle(
    optimized: OptimizedCycle, robot: RobotDescription, folder: str | Path
) -> dict[Path, str]:
    """Write all files of an optimized cycle.

    Args:
        optimized: the cycle.
        robot: the arm.
        folder: is created if necessary; files of the same names are replaced.

    Returns:
        The paths in the order of use, with the purpose of each.

    Raises:
        InputError: a file cannot be written, or the moves of the cycle do not follow each
            other.
    """
    motion = motion_of(optimized.cycle.source, optimized.stretches)
    texts = {
        SHEET: (sheet_csv(optimized.sheet), "what to type, step by step"),
        PROGRAM: (urscript_of(optimized, robot), "URScript program: moves and waits"),
        **_motion_files(motion, robot),
        RESULT: (json.dumps(plain(optimized.as_json()), indent=1) + "\n", "all figures"),
    }
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem = f"cannot be made ({error})"
        raise InputError(target, problem, "name another folder") from error
    for name, (text, _) in texts.items():
        write_text(target / name, text)
    written = {target / name: purpose for name, (_, purpose) in texts.items()}
    if optimized.power_front is not None:
        source = optimized.cycle.source
        front = _export_front(optimized.power_front, source, robot, target / FRONT)
        written[front] = "motions of the front of energy against peak power, by point"
    return written


def _motion_files(motion: Chain, robot: RobotDescription) -> dict[str, tuple[str, str]]:
    """Set points, ROS trajectory and CSV of a motion: text and purpose, by name of the file."""
    time = np.arange(0.0, motion.duration, 1.0 / robot.rate)
    if motion.duration - time[-1] > 1e-6:
        time = np.append(time, motion.duration)
    q, qd, qdd = motion.sample(time)
    return {
        SET_POINTS: (
            csv_text(time, q),
            f"servoJ set points at the controller's {robot.rate:g} Hz: time, joint positions",
        ),
        TRAJECTORY: (
            trajectory_yaml(motion, robot),
            "trajectory_msgs/JointTrajectory for `ros2 topic pub`",
        ),
        PREDICTION: (
            csv_text(time, q, qd, qdd),
            "motion for `ur_energy predict`",
        ),
    }


def _export_front(
    front: PowerFront, source: str, robot: RobotDescription, folder: Path
) -> Path:
    """Write the motion of each point of a front to a folder `point_N`.

    Files of points that an earlier front had and this one has not are removed.

    Args:
        front: the front.
        source: name of the recording, for errors.
        robot: the arm.
        folder: folder of the points; is created if necessary.

    Returns:
        The folder.
    """
    texts: dict[Path, str] = {}
    for number, point in enumerate(front.points, 1):
        files = _motion_files(motion_of(source, point.stretches), robot)
        for name, (text, _) in files.items():
            texts[folder / f"point_{number}" / name] = text
    for name in (SET_POINTS, TRAJECTORY, PREDICTION):
        for old in folder.glob(f"point_*/{name}"):
            if old not in texts:
                old.unlink()
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, text)
    return folder
