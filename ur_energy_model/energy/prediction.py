"""Prediction of the energy of a planned trajectory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ur_energy_model.energy.joint_powers import PlanPowers
from ur_energy_model.energy.meter import EnergyMeter, interval
from ur_energy_model.energy.powers import JointEnergies
from ur_energy_model.energy.telemetry_checks import rated_limits
from ur_energy_model.errors import InputError
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.trajectory.plan import MotionSamples, Plan
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
        each = interval(self.electrical, self.electrical_std)
        total: dict[str, float | Array] = {
            "supply_energy": self.total,
            "supply_energy_std": self.total_std,
            "supply_energy_interval": interval(self.total, self.total_std),
        }
        return {
            "duration": self.duration,
            **self.energy_json({"electrical_energy_interval": each}, total),
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
    """Energy of a planned trajectory, in constant memory.

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
    if not 0 < speed_scaling < np.inf:
        raise InputError(plan.source, "the robot's speed scaling is zero", "raise the speed slider")
    robot = model.description() if dynamics is None else dynamics.robot
    dynamics = model.dynamics() if dynamics is None else dynamics
    powers_of = PlanPowers(model, temperature)
    meter: EnergyMeter | None = None
    n, errors, peak, last = model.dof, 0, -np.inf, 0.0
    for motion in plan.motion():
        _check_limits(plan.source, robot, motion.q, motion.qd, motion.qdd)
        time, qd = motion.time / speed_scaling, motion.qd * speed_scaling
        scaled = MotionSamples(time, motion.q, qd, motion.qdd * speed_scaling**2)
        split, total = powers_of(scaled, dynamics)
        powers = np.column_stack(
            [
                split.mechanical_power,
                split.electrical_power,
                total,
                split.sensitivity.reshape(len(time), -1),
                split.total_sensitivity,
            ]
        )
        if meter is None:
            meter = EnergyMeter(powers.shape[1], gap_limit=np.inf)
        meter.integrate(time, powers)
        errors, last = split.sensitivity.shape[-1], float(time[-1])
        peak = max(peak, float(total.max()))
    assert meter is not None
    ends = np.cumsum([n, n, 1, n * errors])
    mechanical, electrical, whole, each, all_errors = np.split(meter.reading.net, ends)
    return PlanEnergy(
        names=tuple(joint.name for joint in model.joints),
        duration=last,
        mechanical=mechanical,
        electrical=electrical,
        electrical_std=np.linalg.norm(each.reshape(n, errors), axis=1),
        total=float(whole[0]),
        total_std=float(np.linalg.norm(all_errors)),
        peak_power=peak,
    )


SPEED_TOLERANCE = 1.05
"""Factor by which the speed between points may exceed the limit: splines overshoot."""


def _check_limits(source: str, robot: RobotDescription, q: Array, qd: Array, qdd: Array) -> None:
    """Refuse motions beyond the limits, such as positions in degrees.

    Args:
        source: of the plan.
        robot: the arm, n joints.
        q: positions [samples, n], rad.
        qd: velocities [samples, n], rad/s.
        qdd: accelerations [samples, n], rad/s^2.
    """
    acceleration = rated_limits(robot)["target_qdd"][1]
    checks = [
        (np.abs(values).max(axis=0), margin, limit, unit, remedy)
        for values, margin, limit, unit, remedy in (
            (q, 1.0, robot.max_position, "rad, beyond", "give positions in radians"),
            (qd, SPEED_TOLERANCE, robot.max_velocity, "rad/s, above", "make the motion slower"),
            (qdd, 1.0, acceleration, "rad/s^2, above", "give fewer points, or a smoother motion"),
        )
    ]
    for j, name in enumerate(robot.joint_names):
        for reach, margin, limit, unit, remedy in checks:
            if not reach[j] <= margin * limit[j]:
                raise InputError(
                    source,
                    f"reaches {reach[j]:.4g} {unit} the joint's limit of {limit[j]:.4g} "
                    f"{unit.partition(',')[0]}",
                    remedy,
                    field=name,
                )
