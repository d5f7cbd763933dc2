# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""A cycle made by hand: a moveJ there, a moveL down, a moveJ back; each slower in the new cycle."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ur_energy_model.model.robots import RobotDescription, load_robot
from ur_energy_model.model.wall import generic_wall
from ur_energy_model.optimization.cycle import (
    Dwell,
    Move,
    Stretch,
    Wait,
    WorkCycle,
    motion_of,
    recorded_stretches,
    with_rest,
)
from ur_energy_model.optimization.optimized_cycle import (
    ArmLoad,
    Ceiling,
    OptimizedCycle,
    OptimizedMove,
)
from ur_energy_model.optimization.pendant import sheet_of, typed_stretches
from ur_energy_model.optimization.programmed import programmed_move
from ur_energy_model.optimization.typed_values import Values
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry
from ur_energy_model.trajectory.kinematics import ArmKinematics, LinePlanner, StraightLine
from ur_energy_model.trajectory.motions import Motion, move
from ur_energy_model.trajectory.named_motions import home_position
from ur_energy_model.trajectory.plan import Plan
from ur_energy_model.typing import Array

ROBOT = load_robot("ur5e")
FAST = (1.5, 3.0)
SLOW = (0.6, 1.5)
"""Speed and acceleration of the moveJs, recorded and new [rad/s, rad/s^2]."""
# the same of the moveL [m/s, m/s^2]
FAST_TOOL = (0.25, 1.2)
SLOW_TOOL = (0.08, 0.5)
WAIT = 1.5
TICK = 0.002
HOME = home_position(ROBOT)
NO_TOOL = np.zeros(6)


def straight_down(
    start: Array, way: float, robot: RobotDescription = ROBOT
) -> StraightLine:
    """A moveL of the flange downwards [m]."""
    kinematics = ArmKinematics(robot)
    pose = kinematics.forward(start, NO_TOOL).copy()
    pose[2] -= way
    planner = LinePlanner(
        kinematics, start, pose, NO_TOOL, *FAST_TOOL, robot.max_velocity
    )
    while (line := planner.advance()) is None:
        pass
    return line


def sampled(motion: Motion) -> tuple[Array, Array, Array, Array]:
    """Time, q, qd and qdd of a motion at the controller's cycles and its end."""
    time = np.arange(0.0, motion.duration, TICK)
    time = np.append(time[motion.duration - time > 1e-6], motion.duration)
    return (time, *motion.sample(time))


def effort(motion: Motion) -> float:
    """A stand-in for energy: squared joint speeds and accelerations over time."""
    time = np.linspace(0.0, motion.duration, 400)
    _, qd, qdd = motion.sample(time)
    return float(np.trapezoid((qd**2 + 0.05 * qdd**2).sum(axis=1), time))


def hand_made_cycle(robot: RobotDescription = ROBOT) -> OptimizedCycle:
    """The cycle with typed values; recorded moves are followed by waits."""
    home = home_position(robot)
    above = home + np.array([0.8, -0.3, 0.5, 0.2, 0.0, 1.1])
    down = straight_down(above, 0.15, robot)
    below = down.sample(np.array([down.duration]))[0][0]
    fast: list[Motion] = [move(home, above, *FAST), down, move(below, home, *FAST)]
    slow: list[Motion] = [
        move(home, above, *SLOW),
        down.with_profile(*SLOW_TOOL),
        move(below, home, *SLOW),
    ]
    moves = []
    duration = 0.0
    for motion in fast:
        time, q, qd, _ = sampled(motion)
        rest = Dwell(WAIT, (Wait(WAIT),))
        one = Move(
            duration, time, q, qd, programmed=programmed_move(time, q, robot), rest=rest
        )
        moves.append(replace(one, energy=effort(motion), peak_power=200.0))
        duration += motion.duration + WAIT
    stretches = [Stretch(Plan(*sampled(motion)), None) for motion in slow]
    left = duration - sum(stretch.plan.duration for stretch in stretches)
    cycle = WorkCycle(
        source="hand",
        robot=robot.name,
        found_by="repetition",
        duration=duration,
        moves=tuple(moves),
        count=3,
        measured_energy=400.0,
        measured_energy_std=1.0,
        temperature=np.full(6, 30.0),
    )
    values = {0: Values(*SLOW), 1: Values(*SLOW_TOOL), 2: Values(*SLOW)}
    sheet = sheet_of(cycle, values, [(2, 0)], left)
    typed = typed_stretches(cycle, sheet)
    steps = (step for step in sheet if step.do != "wait")
    new = [
        OptimizedMove(moves[step.move], step, after.duration, effort(after), effort(run))
        for step, after, run in zip(
            steps, slow, motion_of("hand", typed).moves, strict=True
        )
    ]
    energy = sum(each.energy for each in moves)
    return OptimizedCycle(
        cycle=cycle,
        stretches=[*stretches[:-1], *with_rest(stretches[-1], left, None)],
        duration=duration,
        moves=new,
        energy=energy,
        new_energy=sum(each.energy for each in new),
        saving_interval=(10.0, 20.0),
        time_optimal_duration=3.0,
        time_optimal_energy=1.1 * energy,
        scaled_energy=0.95 * energy,
        bound_gap=0.0,
        pareto=None,
        notes=("A note.",),
        sheet=sheet,
        typed_energy=sum(each.typed_energy for each in new),
        typed_duration=sum(stretch.plan.duration for stretch in typed),
        typed_interval=(9.0, 19.0),
        copied_saving_percent=None,
        ceiling=Ceiling(generic_wall("e-series"), 0.5, 0.7, 20.0, 10.0, 30.0, 60.0),
        loads=(ArmLoad("elbow_joint", 0.3, 0.1, 200.0),) * 3,
    )


def hand_made_recording(cycles: int) -> Telemetry:
    """The recorded cycle, repeated: target motion, temperatures and bus power."""
    motion = motion_of("hand", recorded_stretches(hand_made_cycle().cycle))
    seconds = cycles * motion.duration + 1.0
    time = np.asarray(np.arange(round(seconds / TICK)) * TICK, dtype=np.float64)
    q, qd, qdd = motion.sample(np.mod(time, motion.duration))
    columns = {
        "target_q": q,
        "target_qd": qd,
        "target_qdd": qdd,
        "actual_q": q,
        "actual_qd": qd,
        "joint_temperatures": np.full_like(q, 30.0),
        "actual_robot_voltage": np.full(len(time), 48.0),
        "actual_robot_current": 1.0 + (qd**2).sum(axis=1),
        "robot_mode": np.full(len(time), 7.0),
        "safety_mode": np.ones(len(time)),
    }
    info = RecordingInfo(source="hand", robot="ur5e", rate=1.0 / TICK)
    return Telemetry(100.0 + time, columns, info)
