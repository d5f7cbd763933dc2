"""A planned trajectory with less energy: same path, same duration, another time law."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ur_energy_model.energy.prediction import predict_energy
from ur_energy_model.errors import InputError
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.optimization.allocation import Allocator
from ur_energy_model.optimization.jerk import with_jerk_limit
from ur_energy_model.optimization.least_energy import EnergyLaws
from ur_energy_model.optimization.motion_limits import PathLimits, reached
from ur_energy_model.optimization.path import JointPath
from ur_energy_model.optimization.path_dynamics import PathDynamics
from ur_energy_model.optimization.time_optimal import fastest_law
from ur_energy_model.trajectory.plan import Plan
from ur_energy_model.typing import Array

PERIOD = 0.01
"""Period of the points of the new plan [s]; quintics between them carry the motion."""
REST = 1e-4
"""Time between the points at which acceleration ends and a wait begins [s]."""
LEAST_WAY = 1e-3
"""Length of path below which a plan does not move [rad]."""


def optimize_plan(
    model: EnergyModel,
    plan: Plan,
    *,
    duration: float | None = None,
    dynamics: ArmDynamics | None = None,
    temperature: Array | None = None,
    limits: PathLimits | None = None,
) -> Plan:
    """The plan with the time law of least energy on its path; the plan itself if none is cheaper.

    Args:
        model: of the arm.
        plan: from rest to rest.
        duration: of the new plan [s]; that of the plan if None.
        dynamics: of the arm in its setup; the model's where None.
        temperature: of the joints [n], degC.
        limits: to keep; None takes the robot file's, raised to what the plan itself needs.

    Raises:
        InputError: the plan does not move, or the duration is below the time-optimal one.
    """
    dynamics = model.dynamics() if dynamics is None else dynamics
    parts = list(plan.motion())
    time, q, qd, qdd = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("time", "q", "qd", "qdd")
    )
    if np.linalg.norm(np.diff(q, axis=0), axis=1).sum() < LEAST_WAY:
        raise InputError(plan.source, "does not move", "give a trajectory that moves")
    if limits is None:
        ratio = np.array([joint.gear_ratio for joint in model.joints])
        link = dynamics.inverse_dynamics(q, qd, qdd)
        torque = model.from_link_torque(link, qd, qdd, temperature=temperature, std=False)
        shown = reached(q, qd, qdd, torque.motor_torque * ratio, dynamics)
        limits = PathLimits.of_robot(dynamics.robot).at_least([shown])
    wanted = plan.duration if duration is None else duration
    arm = PathDynamics(model, dynamics, JointPath.through(time, q, qd), temperature)
    fastest = with_jerk_limit(fastest_law(arm, limits, plan.source), limits.jerk)
    if wanted < fastest.duration:
        raise InputError(
            plan.source,
            f"takes at least {fastest.duration:.3f} s within the limits, not {wanted:.3f} s",
            "give it more time",
        )
    ends, zero = q[[0, -1]], np.zeros_like(q[[0, -1]])
    holding = model.from_link_torque(
        dynamics.gravity_torque(ends), zero, zero, temperature=temperature, std=False
    ).total_power
    allocator = Allocator([EnergyLaws(arm, limits)], float(holding.min()), [fastest], limits.jerk)
    found = allocator.allocate(wanted)
    new = _waiting(
        Plan(*found.laws[0].sample(PERIOD), source=plan.source),
        wanted,
        first=bool(holding[0] < holding[1]),
    )
    if duration is not None and duration != plan.duration:
        return new
    before, after = (
        predict_energy(model, each, dynamics=dynamics, temperature=temperature).total
        for each in (plan, new)
    )
    return new if after < before else plan


def _waiting(plan: Plan, duration: float, *, first: bool) -> Plan:
    """The plan with a wait at its start or end that fills a duration [s]."""
    assert plan.qd is not None
    assert plan.qdd is not None
    wait = duration - plan.duration
    if wait < PERIOD:
        return replace(plan, time=plan.time * (duration / plan.duration))
    still = np.zeros((2, plan.q.shape[1]))
    here = np.repeat(plan.q[:1] if first else plan.q[-1:], 2, axis=0)
    own = (plan.time + wait, plan.q, plan.qd, plan.qdd)
    if first:
        added = (np.array([0.0, wait - REST]), here, still, still)
        parts = zip(added, own, strict=True)
    else:
        own = (plan.time, *own[1:])
        added = (np.array([plan.duration + REST, duration]), here, still, still)
        parts = zip(own, added, strict=True)
    time, q, qd, qdd = (np.concatenate(pair) for pair in parts)
    return Plan(time, q, qd, qdd, plan.source)
