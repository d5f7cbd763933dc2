"""A planned trajectory with the same path and duration for less energy."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ur_energy_model.errors import InputError
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.optimization.allocation import Allocator
from ur_energy_model.optimization.cycle_motion import TimedMoves
from ur_energy_model.optimization.motion_limits import PathLimits, reached
from ur_energy_model.optimization.path import JointPath
from ur_energy_model.optimization.path_dynamics import PathDynamics
from ur_energy_model.optimization.time_law import EnergyLaws, TimeLaw
from ur_energy_model.trajectory.motions import Motion, Sampled
from ur_energy_model.trajectory.plan import Motion as SampledMotion
from ur_energy_model.trajectory.plan import Plan
from ur_energy_model.typing import Array

LONGEST = 300.0
"""Longest plan that is optimized [s]; bounds time and memory."""
MOST_MOVES = 50
"""Most moves from rest to rest of a plan that is optimized."""
SAMPLE_PERIOD = 0.004
"""Sample period of paths and new time laws [s]."""
STILL = 1e-4
"""Joint speed below which a point of a plan is at rest [rad/s]."""
SHORTEST = 1e-3
"""Joint travel below which the arm rests between two points [rad]."""


def optimize_plan(
    model: EnergyModel,
    plan: Plan,
    *,
    dynamics: ArmDynamics | None = None,
    temperature: Array | None = None,
) -> TimedMoves:
    """The motion of a plan with new time laws: the same path, stops and duration.

    A stop is a point of the plan at rest. Each move from stop to stop keeps its time; a move that
    would creep in it ends early and waits. Limits are the robot's, raised to what the plan itself
    reaches.

    Args:
        model: of the arm in its session.
        plan: starts and ends at rest.
        dynamics: of the arm in its setup; the model's where None.
        temperature: of the joints [n], degC; None if unknown.

    Raises:
        InputError: the plan does not start and end at rest, does not move, is too long, or has too
            many stops.
    """
    dynamics = model.dynamics() if dynamics is None else dynamics
    motion = _sampled(plan)
    stops = _stops(plan)
    if len(stops) > MOST_MOVES + 1 or plan.duration > LONGEST:
        raise InputError(
            plan.source,
            f"lasts over {LONGEST:.0f} s or has over {MOST_MOVES} stops",
            "optimize it in parts",
        )
    torque = model.predict(
        motion.q, motion.qd, motion.qdd, dynamics=dynamics, temperature=temperature
    )
    ratio = np.array([joint.gear_ratio for joint in model.joints])
    limits = PathLimits.of_robot(dynamics.robot).at_least(
        [reached(motion.q, motion.qd, motion.qdd, torque.motor_torque * ratio, dynamics)]
    )
    starts: list[float] = []
    moves: list[Motion] = []
    for begin, end in pairwise(stops):
        rows = (motion.time >= begin - 1e-9) & (motion.time <= end + 1e-9)
        time, q, qd = motion.time[rows], motion.q[rows], motion.qd[rows]
        if np.ptp(q, axis=0).max() < SHORTEST:
            continue
        arm = PathDynamics(model, dynamics, JointPath.through(time, q, qd), temperature)
        law = _law(EnergyLaws(arm, limits), end - begin, holding_power(model, dynamics, q[[0, -1]]))
        starts.append(begin)
        moves.append(Sampled(*law.sample(SAMPLE_PERIOD)))
    if not moves:
        raise InputError(plan.source, "does not move", "send a plan that moves")
    return TimedMoves(tuple(starts), tuple(moves), plan.duration)


def holding_power(model: EnergyModel, dynamics: ArmDynamics, q: Array) -> float:
    """The least supply power of standing still at one of some positions [k, n], rad, in W."""
    zero = np.zeros_like(q)
    powers = model.from_link_torque(dynamics.gravity_torque(q), zero, zero, std=False)
    return float(powers.total_power.min())


def _law(laws: EnergyLaws, duration: float, holding: float) -> TimeLaw:
    return Allocator([laws], holding).allocate(duration).laws[0]


def _stops(plan: Plan) -> list[float]:
    """Times since the start at which the arm is at rest [s], with both ends.

    Raises:
        InputError: it moves at an end.
    """
    time = plan.time - plan.time[0]
    if plan.qd is None:
        return [0.0, float(time[-1])]
    still = np.abs(plan.qd).max(axis=1) < STILL
    if not (still[0] and still[-1]):
        raise InputError(
            plan.source, "does not start and end at rest", "send whole motions for optimization"
        )
    return [float(value) for value in time[still]]


def _sampled(plan: Plan) -> SampledMotion:
    """The plan at even times, as one."""
    parts = list(plan.motion(SAMPLE_PERIOD))
    return SampledMotion(
        *(
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("time", "q", "qd", "qdd")
        )
    )
