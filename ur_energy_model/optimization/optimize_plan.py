"""A planned trajectory with less energy: same path, same duration, another time law."""

from __future__ import annotations

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
    zero = np.zeros_like(q[-1:])
    holding = model.from_link_torque(
        dynamics.gravity_torque(q[-1:]), zero, zero, temperature=temperature, std=False
    )
    found = Allocator(
        [EnergyLaws(arm, limits)], float(holding.total_power[0]), [fastest], limits.jerk
    ).allocate(wanted)
    new = Plan(*found.laws[0].stretched(wanted).sample(PERIOD), source=plan.source)
    if duration is not None and duration != plan.duration:
        return new
    before, after = (
        predict_energy(model, each, dynamics=dynamics, temperature=temperature).total
        for each in (plan, new)
    )
    return new if after < before else plan
