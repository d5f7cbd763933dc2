"""A motion as a trajectory_msgs/JointTrajectory in YAML."""

from __future__ import annotations

import numpy as np

from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.optimization.cycle_motion import TimedMoves
from ur_energy_model.trajectory.plan import Plan
from ur_energy_model.typing import Array

STEPS = (0.08, 0.04, 0.02, 0.01, 0.005)
"""Times between points that are tried, largest first [s]."""
POSITION_ERROR = 1.5e-4
"""Largest distance between the motion and the quintic between its points [rad]."""
_AFTER = 2e-3
"""From the rest point before a move to the first point with its acceleration [s]."""


def trajectory_points(motion: TimedMoves) -> Plan:
    """Few points of a motion, between which a quintic follows it within `POSITION_ERROR`.

    Two points stand at each end of a move, as its acceleration may start with a step.
    """
    plan = Plan(np.array([0.0, motion.duration]), np.zeros((2, 1)))
    fine = np.arange(0.0, motion.duration, 0.004)
    truth = motion.sample(fine)[0]
    for step in STEPS:
        plan = _points(motion, step)
        parts = list(plan.motion(0.004))
        time = np.concatenate([part.time for part in parts])
        q = np.concatenate([part.q for part in parts])
        error = max(
            float(np.abs(np.interp(fine, time, column) - truth[:, j]).max())
            for j, column in enumerate(q.T)
        )
        if error < POSITION_ERROR:
            break
    return plan


def trajectory_yaml(motion: TimedMoves, robot: RobotDescription) -> str:
    """The message as YAML, as `ros2 topic pub` takes it; joints are named as in the URDF."""
    plan = trajectory_points(motion)
    assert plan.qd is not None
    assert plan.qdd is not None
    lines = [f"joint_names: [{', '.join(robot.joint_names)}]", "points:"]
    for time, *values in zip(plan.time, plan.q, plan.qd, plan.qdd, strict=True):
        nanoseconds = round(float(time) * 1e9)
        lines += [
            f"- positions: {_numbers(values[0])}",
            f"  velocities: {_numbers(values[1])}",
            f"  accelerations: {_numbers(values[2])}",
            f"  time_from_start: {{sec: {nanoseconds // 10**9}, nanosec: {nanoseconds % 10**9}}}",
        ]
    return "\n".join(lines) + "\n"


def _points(motion: TimedMoves, step: float) -> Plan:
    """Points every `step` s within moves and at their ends; the rest between has none."""
    times, edges = [np.array([0.0, motion.duration])], [0.0]
    for start, move in zip(motion.starts, motion.moves, strict=True):
        end = start + move.duration
        edges += [start, end]
        inner = np.linspace(start + _AFTER, end - _AFTER, max(2, round((end - start) / step)))
        times.append(inner)
    time = np.unique(np.round(np.concatenate([*times, edges]), 9))
    time = time[np.r_[True, np.diff(time) > 1e-6]]
    q, qd, qdd = motion.sample(time)
    qdd[np.abs(time[:, None] - np.array(edges)).min(axis=1) < 1e-6] = 0.0
    return Plan(time, q, qd, qdd, source="trajectory")


def _numbers(values: Array) -> str:
    return "[" + ", ".join(f"{round(float(value), 7) + 0.0:.7f}" for value in values) + "]"
