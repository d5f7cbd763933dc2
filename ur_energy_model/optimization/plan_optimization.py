"""A planned trajectory of several moves with less energy: same path, stops and duration."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from ur_energy_model.errors import InputError
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.optimization.cycle_motion import TimedMoves
from ur_energy_model.optimization.optimize_plan import LEAST_WAY, optimize_plan
from ur_energy_model.trajectory.motions import Motion, Sampled
from ur_energy_model.trajectory.plan import Plan
from ur_energy_model.typing import Array

LONGEST = 300.0
"""Longest plan that is optimized [s]; bounds time and memory."""
MOST_MOVES = 50
"""Most moves from rest to rest of a plan that is optimized."""
SAMPLE_PERIOD = 0.004
"""Sample period of the plan's path [s]."""
STILL = 1e-4
"""Joint speed below which a point of a plan is at rest [rad/s]."""


def optimize_moves(
    model: EnergyModel,
    plan: Plan,
    *,
    dynamics: ArmDynamics | None = None,
    temperature: Array | None = None,
) -> TimedMoves:
    """The motion of a plan with the time laws of least energy between its stops.

    A stop is a point of the plan at rest. Each move keeps its path and its duration.

    Args:
        model: of the arm in its session.
        plan: starts and ends at rest.
        dynamics: of the arm in its setup; the model's where None.
        temperature: of the joints [n], degC; None if unknown.

    Raises:
        InputError: the plan does not start and end at rest, does not move, is too long, or has too
            many stops.
    """
    stops = _stops(plan)
    if len(stops) > MOST_MOVES + 1 or plan.duration > LONGEST:
        raise InputError(
            plan.source,
            f"lasts over {LONGEST:.0f} s or has over {MOST_MOVES} stops",
            "optimize it in parts",
        )
    starts: list[float] = []
    moves: list[Motion] = []
    for first, last in pairwise(stops):
        part = _part(plan, first, last)
        if np.ptp(part.q, axis=0).max() < LEAST_WAY:
            continue
        new = optimize_plan(model, part, dynamics=dynamics, temperature=temperature)
        starts.append(float(plan.time[first] - plan.time[0]))
        moves.append(_motion(new))
    if not moves:
        raise InputError(plan.source, "does not move", "send a plan that moves")
    return TimedMoves(tuple(starts), tuple(moves), plan.duration)


def _part(plan: Plan, first: int, last: int) -> Plan:
    """Points of a plan from one stop to the next."""
    rows = slice(first, last + 1)
    return replace(
        plan,
        time=plan.time[rows] - plan.time[first],
        q=plan.q[rows],
        qd=None if plan.qd is None else plan.qd[rows],
        qdd=None if plan.qdd is None else plan.qdd[rows],
    )


def _motion(plan: Plan) -> Sampled:
    """A plan as a motion that can be sampled at any time."""
    parts = list(plan.motion(SAMPLE_PERIOD))
    names = ("time", "q", "qd", "qdd")
    return Sampled(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def _stops(plan: Plan) -> list[int]:
    """Points at rest, with both ends.

    Raises:
        InputError: the arm moves at an end.
    """
    if plan.qd is None:
        return [0, len(plan.time) - 1]
    still = np.abs(plan.qd).max(axis=1) < STILL
    if not (still[0] and still[-1]):
        raise InputError(
            plan.source, "does not start and end at rest", "send whole motions for optimization"
        )
    return [int(index) for index in np.flatnonzero(still)]
