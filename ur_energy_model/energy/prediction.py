"""Prediction of the energy of a planned trajectory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ur_energy_model.energy.gaps import bridged_steps
from ur_energy_model.energy.joint_energies import JointEnergies
from ur_energy_model.energy.meter import integrate
from ur_energy_model.energy.powers.bus_capacitor import BusCapacitor
from ur_energy_model.errors import InputError
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.trajectory.plan import Plan
from ur_energy_model.typing import Array


@dataclass(frozen=True)
class PlanEnergy(JointEnergies):
    """Predicted energy of a planned trajectory.

    Attributes:
        duration: of the motion [s].
        total, total_std: whole arm, standby and drivers included [J].
        peak_power: largest total power [W].
    """

    duration: float
    total: float
    total_std: float
    peak_power: float

    def as_json(self) -> dict[str, Any]:
        """`ur_energy predict --json`: the keys of `EnergySummary.as_json`, as far as they apply."""
        total = {"supply_energy": self.total, "supply_energy_std": self.total_std}
        return {
            "duration": self.duration,
            **self.energy_json({}, total),
            "peak_power": self.peak_power,
        }


def predict_energy(
    model: EnergyModel,
    plan: Plan,
    *,
    dynamics: ArmDynamics | None = None,
    temperature: Array | None = None,
    speed_scaling: float = 1.0,
) -> PlanEnergy:
    """Energy of a planned trajectory.

    Args:
        model: of the arm, in the current session (`EnergyModel.in_session`) or in any.
        plan: the trajectory.
        dynamics: of the arm in its setup; the model's where None.
        temperature: of the joints [n], degC.
        speed_scaling: of the controller; the motion takes 1 / speed_scaling times as long.

    Raises:
        InputError: the plan has another number of joints or exceeds their limits, or
            speed_scaling is not positive.
    """
    if plan.q.shape[1] != model.dof:
        raise InputError(
            plan.source,
            f"has {plan.q.shape[1]} joints, the model {model.dof}",
            "give a trajectory of this robot",
        )
    if not speed_scaling > 0:
        raise InputError(plan.source, "the robot's speed scaling is zero", "raise the speed slider")
    time, q, qd, qdd = plan.sampled()
    _check_limits(plan.source, model.description() if dynamics is None else dynamics.robot, q, qd)
    time = time / speed_scaling
    split = model.predict(
        q, qd * speed_scaling, qdd * speed_scaling**2, dynamics=dynamics, temperature=temperature
    )
    steps = bridged_steps(time, np.inf)
    total = BusCapacitor(model.bus.capacitor_energy, model.bus.floor)(steps, split.demand)
    n, samples = model.dof, len(time)
    powers = np.column_stack(
        [
            split.mechanical_power,
            split.electrical_power,
            total,
            split.sensitivity.reshape(samples, -1),
            split.total_sensitivity,
        ]
    )
    energy = integrate(time, powers, gap_limit=np.inf).net
    errors = split.sensitivity.shape[-1]
    ends = np.cumsum([n, n, 1, n * errors])
    mechanical, electrical, whole, each, all_errors = np.split(energy, ends)
    return PlanEnergy(
        names=tuple(joint.name for joint in model.joints),
        duration=float(time[-1]),
        mechanical=mechanical,
        electrical=electrical,
        electrical_std=np.linalg.norm(each.reshape(n, errors), axis=1),
        total=float(whole[0]),
        total_std=float(np.linalg.norm(all_errors)),
        peak_power=float(total.max()),
    )


SPEED_TOLERANCE = 1.05
"""Factor by which the speed between points may exceed the limit: splines overshoot."""


def _check_limits(source: str, robot: RobotDescription, q: Array, qd: Array) -> None:
    """Refuse motions beyond the limits, such as positions in degrees.

    Args:
        source: of the plan.
        robot: the arm, n joints.
        q: positions [samples, n], rad.
        qd: velocities [samples, n], rad/s.
    """
    reach, speed = np.abs(q).max(axis=0), np.abs(qd).max(axis=0)
    for j, name in enumerate(robot.joint_names):
        if reach[j] > robot.max_position[j]:
            raise InputError(
                source,
                f"reaches {reach[j]:.4g} rad, beyond the joint's limit of "
                f"{robot.max_position[j]:.4g} rad",
                "give positions in radians",
                field=name,
            )
        if speed[j] > SPEED_TOLERANCE * robot.max_velocity[j]:
            raise InputError(
                source,
                f"reaches {speed[j]:.4g} rad/s, above the joint's limit of "
                f"{robot.max_velocity[j]:.4g} rad/s",
                "make the motion slower",
                field=name,
            )
