# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""A planned trajectory of several moves with less energy: same path, stops and duration."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ur_energy_model.energy.prediction import predict_energy
from ur_energy_model.errors import InputError
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.optimization.cycle_problem import Allocator
from ur_energy_model.optimization.least_energy import fastest_law
from ur_energy_model.optimization.path import (
    PathDynamics,
    PathLimits,
    holding_power,
    reached,
)
from ur_energy_model.optimization.time_law import TimeLaw
from ur_energy_model.trajectory.motions import Chain, Motion, Sampled
from ur_energy_model.trajectory.plan import Plan
from ur_energy_model.typing import Array

LONGEST = 300.0  # longest plan that is optimized [s]; bounds time and memory
MOST_MOVES = 50  # most moves from rest to rest of such a plan
# period of the points of the new plan [s]; quintics between them carry the motion
PERIOD = 0.01
SAMPLE_PERIOD = 0.004  # sample period of the plan's path [s]
STILL = 1e-4  # joint speed below which a point of a plan is at rest [rad/s]
REST = 1e-4  # time between the points at which acceleration ends and a wait begins [s]
LEAST_WAY = 1e-3  # travel of a joint below which a part of a plan is no move [rad]


def optimize_moves(
    model: EnergyModel,
    plan: Plan,
    *,
    dynamics: ArmDynamics | None = None,
    temperature: Array | None = None,
) -> Chain:
    """The motion of a plan with the time laws of least energy between its stops.

    A stop is a point of the plan at rest. Each move keeps its path and its duration.

    Args:
        model: model of the arm in its session.
        plan: plan of a motion that starts and ends at rest.
        dynamics: dynamics of the arm in its setup; None for the dynamics of the model.
        temperature: temperatures of the joints [n], degC; None if unknown.

    Raises:
        InputError: the plan does not start and end at rest, does not move, is too long,
            or has too many stops.
    """
    stops = np.array([0, len(plan.time) - 1])
    if plan.qd is not None:
        still = np.abs(plan.qd).max(axis=1) < STILL
        if not (still[0] and still[-1]):
            raise InputError(
                plan.source,
                "does not start and end at rest",
                "send whole motions for optimization",
            )
        stops = np.flatnonzero(still)
    if len(stops) > MOST_MOVES + 1 or plan.duration > LONGEST:
        problem = f"lasts over {LONGEST:.0f} s or has over {MOST_MOVES} stops"
        raise InputError(plan.source, problem, "optimize it in parts")
    starts: list[float] = []
    moves: list[Motion] = []
    for first, last in pairwise(stops.tolist()):
        part = plan.part(first, last)
        if np.ptp(part.q, axis=0).max() >= LEAST_WAY:
            cheaper = optimize_plan(
                model, part, dynamics=dynamics, temperature=temperature
            )
            starts.append(float(plan.time[first] - plan.time[0]))
            moves.append(Sampled(*cheaper.sampled(SAMPLE_PERIOD)))
    if not moves:
        raise InputError(plan.source, "does not move", "send a plan that moves")
    return Chain(moves, starts, plan.duration)


def optimize_plan(
    model: EnergyModel,
    plan: Plan,
    *,
    duration: float | None = None,
    dynamics: ArmDynamics | None = None,
    temperature: Array | None = None,
    limits: PathLimits | None = None,
) -> Plan:
    """The plan with the time law of least energy on its path, from rest to rest.

    Args:
        model: model of the arm in its session.
        plan: starts and ends at rest.
        duration: duration of the new plan [s]; None keeps the duration of the given plan.
        dynamics: dynamics of the arm in its setup; None for the dynamics of the model.
        temperature: temperatures of the joints [n], degC; None if unknown.
        limits: limits of the motion; None for the limits of the robot file, raised to
            what the plan itself needs.

    Returns:
        The new plan; the plan itself if none is cheaper.

    Raises:
        InputError: the duration is below the time-optimal one.
    """
    dynamics = model.dynamics() if dynamics is None else dynamics
    time, q, qd, qdd = plan.sampled()
    if limits is None:
        ratio = np.array([joint.gear_ratio for joint in model.joints])
        link = dynamics.inverse_dynamics(q, qd, qdd)
        torque = model.from_link_torque(link, qd, qdd, temperature=temperature, std=False)
        shown = reached(q, qd, qdd, torque.motor_torque * ratio, dynamics)
        limits = PathLimits.of_robot(dynamics.robot).at_least(shown)
    length = plan.duration if duration is None else duration
    arm = PathDynamics(model, dynamics, (time, q, qd), temperature)
    fastest = fastest_law(arm, limits, plan.source)
    if length < fastest.duration:
        problem = f"takes at least {fastest.duration:.3f} s within the limits, not {length:.3f} s"
        raise InputError(plan.source, problem, "give it more time")
    holding = holding_power(model, dynamics, q[[0, -1]], temperature)
    allocator = Allocator([(arm, limits)], float(holding.min()), [fastest])
    law = allocator.allocate(length).laws[0]
    wait_first = bool(holding[0] < holding[1])
    new = _with_wait(law, length, plan.source, wait_first=wait_first)
    if duration is not None and duration != plan.duration:
        return new
    before = predict_energy(model, plan, dynamics=dynamics, temperature=temperature)
    after = predict_energy(model, new, dynamics=dynamics, temperature=temperature)
    return new if after.total < before.total else plan


def _with_wait(law: TimeLaw, duration: float, source: str, *, wait_first: bool) -> Plan:
    """The plan of a move and a wait that take a duration [s] together.

    Args:
        law: time law of the move.
        duration: duration of move and wait [s].
        source: name of the plan.
        wait_first: whether the arm waits before the move, not after it.
    """
    time, q, qd, qdd = law.sample(PERIOD)
    end = float(time[-1])
    wait = duration - end
    if wait < PERIOD:
        return Plan(time * (duration / end), q, qd, qdd, source)
    rest = np.zeros((2, q.shape[1]))
    if wait_first:
        time = np.concatenate([[0.0, wait - REST], time + wait])
        q = np.concatenate([q[[0, 0]], q])
        qd = np.concatenate([rest, qd])
        qdd = np.concatenate([rest, qdd])
    else:
        time = np.concatenate([time, [end + REST, duration]])
        q = np.concatenate([q, q[[-1, -1]]])
        qd = np.concatenate([qd, rest])
        qdd = np.concatenate([qdd, rest])
    return Plan(time, q, qd, qdd, source)


# The points of the new motion, for controllers and topics.

# times between points that are tried, largest first [s]
STEPS = (0.08, 0.04, 0.02, 0.01, 0.005)
POSITION_ERROR = 1.5e-4
"""Largest distance between the motion and the quintic between its points [rad]."""
# from the rest point before a move to the first point with its acceleration [s]
_AFTER = 2e-3


def trajectory_points(motion: Chain) -> Plan:
    """Few points of a motion, between which a quintic follows it within `POSITION_ERROR`.

    Within moves there is a point every step and at both ends, in the rests between them
    there is none. Each end of a move has two points, because its acceleration may start
    with a step. The step is the largest of STEPS that suffices, else the shortest.

    Args:
        motion: moves from rest to rest, and the pauses between them.

    Returns:
        Times [k], positions, speeds and accelerations of the joints [k, n]; rad, s.
    """
    fine = np.arange(0.0, motion.duration, SAMPLE_PERIOD)
    truth = motion.sample(fine)[0]
    for step in STEPS:
        times = [np.array([0.0, motion.duration])]
        edges = [0.0]
        for start, move in zip(motion.starts, motion.moves, strict=True):
            end = start + move.duration
            edges += [start, end]
            count = max(2, round((end - start) / step))
            times.append(np.linspace(start + _AFTER, end - _AFTER, count))
        time = np.unique(np.round(np.concatenate([*times, edges]), 9))
        time = time[np.r_[True, np.diff(time) > 1e-6]]
        q, qd, qdd = motion.sample(time)
        to_edge = np.abs(time[:, None] - np.array(edges)).min(axis=1)
        qdd[to_edge < 1e-6] = 0.0
        plan = Plan(time, q, qd, qdd, source="trajectory")
        sampled, between, _, _ = plan.sampled(SAMPLE_PERIOD)
        columns = [np.interp(fine, sampled, column) for column in between.T]
        if np.abs(np.column_stack(columns) - truth).max() < POSITION_ERROR:
            break
    return plan


def optimized_points(
    model: EnergyModel, plan: Plan, *, dynamics: ArmDynamics, temperature: Array | None
) -> Plan:
    """A plan with the time laws of least energy, as few points.

    Args:
        model: model of the arm in its session.
        plan: starts and ends at rest.
        dynamics: dynamics of the arm in its setup.
        temperature: temperatures of the joints [n], degC; None if unknown.

    Raises:
        InputError: the plan cannot be optimized, as for `optimize_moves`.
    """
    motion = optimize_moves(model, plan, dynamics=dynamics, temperature=temperature)
    return trajectory_points(motion)
