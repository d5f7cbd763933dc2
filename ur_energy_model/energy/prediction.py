# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Prediction of the energy of a planned trajectory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ur_energy_model.energy.meter import EnergyMeter, efficiency, interval
from ur_energy_model.energy.powers import STANDSTILL_SPEED, energy_json
from ur_energy_model.energy.supply import BusCapacitor
from ur_energy_model.energy.telemetry_checks import rated_limits
from ur_energy_model.errors import InputError
from ur_energy_model.model.drives import DrivePowers
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.presliding import FrictionDirection
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.trajectory.plan import SHORTEST_STEP, MotionSamples, Plan
from ur_energy_model.typing import Array


class PlanPowers:
    """Powers of consecutive motions of one arm: friction and bus capacitor keep their state.

    Args:
        model: model of the arm, n joints.
        temperature: temperatures of the joints [n], degC; None if unknown.
        std: whether the sensitivities are computed, which standard deviations need.

    Attributes:
        overload: time of the motions so far in which the links alone need more than the
            rated torque of a joint [n], s.
    """

    def __init__(
        self, model: EnergyModel, temperature: Array | None = None, *, std: bool = True
    ) -> None:
        self.model = model
        self.temperature = temperature
        self.std = std
        self._direction = FrictionDirection(model.presliding)
        self._supply = BusCapacitor(model.bus.capacitor_energy, model.bus.floor)
        self._last = 0.0  # time of the last sample [s]
        self._rated_torque = model.description().max_torque
        self.overload = np.zeros(model.dof)

    def restarted(self, *, std: bool) -> PlanPowers:
        """The same state of the arm at time zero, with or without sensitivities."""
        restarted = PlanPowers(self.model, self.temperature, std=std)
        restarted._direction = self._direction
        restarted._supply = self._supply
        return restarted

    def __call__(
        self, motion: MotionSamples, dynamics: ArmDynamics
    ) -> tuple[DrivePowers, Array]:
        """Powers of a motion that follows the motion of the last call, on the same clock.

        Args:
            motion: positions, velocities and accelerations at consecutive times.
            dynamics: dynamics of the arm in its setup.

        Returns:
            Powers of the motors and drivers, and power at the supply [samples], W.
        """
        torque = dynamics.inverse_dynamics(motion.q, motion.qd, motion.qdd)
        powers = self.model.from_link_torque(
            torque,
            motion.qd,
            motion.qdd,
            temperature=self.temperature,
            direction=self._direction(motion.q, motion.qd),
            std=self.std,
        )
        steps = np.diff(motion.time, prepend=self._last)
        self._last = float(motion.time[-1])
        self.overload += steps @ (np.abs(torque) > self._rated_torque)
        return powers, self._supply(np.maximum(steps, SHORTEST_STEP), powers.demand)


@dataclass(frozen=True)
class PlanEnergy:
    """Predicted energy of a planned trajectory.

    Attributes:
        names: names of the joints, n.
        duration: duration of the motion [s].
        mechanical: mechanical energy of each joint [n], J.
        electrical: electrical energy of each joint [n], J.
        electrical_std: standard deviations of `electrical` from the model's parameters
            [n], J.
        total: energy of the whole arm, standby and drivers included [J].
        total_std: standard deviation of `total` [J].
        peak_power: largest total power [W].
        overload: time in which the links alone need more than the rated torque of a joint
            [n], s.
    """

    names: tuple[str, ...]
    duration: float
    mechanical: Array
    electrical: Array
    electrical_std: Array
    total: float
    total_std: float
    peak_power: float
    overload: Array

    @property
    def efficiency(self) -> Array:
        """Mechanical over electrical energy [n], NaN where no electrical energy is taken."""
        return efficiency(self.mechanical, self.electrical)

    def as_json(self) -> dict[str, Any]:
        """`ur_energy predict --json`: the keys of `EnergySummary.as_json`, as far as they apply."""
        joints = {
            "mechanical_energy": self.mechanical,
            "electrical_energy": self.electrical,
            "electrical_energy_std": self.electrical_std,
            "electrical_energy_interval": interval(self.electrical, self.electrical_std),
        }
        total: dict[str, float | Array] = {
            "supply_energy": self.total,
            "supply_energy_std": self.total_std,
            "supply_energy_interval": interval(self.total, self.total_std),
        }
        content = energy_json(self.names, joints, total)
        return {"duration": self.duration, **content, "peak_power": self.peak_power}


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
        model: model of the arm, in the current session (`EnergyModel.in_session`) or in
            any.
        plan: the trajectory.
        dynamics: dynamics of the arm in its setup; the model's where None.
        temperature: temperatures of the joints [n], degC.
        speed_scaling: speed scaling of the controller; the motion takes 1 / speed_scaling
            times as long.

    Raises:
        InputError: the plan has another number of joints or exceeds their limits, or
            speed_scaling is not positive.
    """
    if plan.q.shape[1] != model.dof:
        problem = f"has {plan.q.shape[1]} joints, the model {model.dof}"
        raise InputError(plan.source, problem, "give a trajectory of this robot")
    if not 0 < speed_scaling < np.inf:
        raise InputError(
            plan.source, "the robot's speed scaling is zero", "raise the speed slider"
        )
    robot = model.description() if dynamics is None else dynamics.robot
    dynamics = model.dynamics() if dynamics is None else dynamics
    powers_of = PlanPowers(model, temperature)
    meter: EnergyMeter | None = None
    n = model.dof
    peak = -np.inf
    last = 0.0
    for motion in plan.motion():
        _check_limits(plan.source, robot, motion.q, motion.qd, motion.qdd)
        time = motion.time / speed_scaling
        qd = motion.qd * speed_scaling
        scaled = MotionSamples(time, motion.q, qd, motion.qdd * speed_scaling**2)
        powers, total = powers_of(scaled, dynamics)
        columns = np.column_stack(
            [
                powers.mechanical_power,
                powers.electrical_power,
                total,
                np.abs(qd).max(axis=1) > STANDSTILL_SPEED,
                powers.sensitivity.reshape(len(time), -1),
                powers.total_sensitivity,
            ]
        )
        if meter is None:
            meter = EnergyMeter(columns.shape[1], gap_limit=np.inf)
        meter.integrate(time, columns)
        joint_errors = powers.sensitivity.shape[-1]
        last = float(time[-1])
        peak = max(peak, float(total.max()))
    assert meter is not None
    widths = [n, n, 1, 1, n * joint_errors]
    mechanical, electrical, supply, moving_seconds, of_joints, of_total = np.split(
        meter.reading.net, np.cumsum(widths)
    )
    motion_std = np.sqrt(model.bus.motion_variance * moving_seconds.item())
    return PlanEnergy(
        names=tuple(joint.name for joint in model.joints),
        duration=last,
        mechanical=mechanical,
        electrical=electrical,
        electrical_std=np.linalg.norm(of_joints.reshape(n, joint_errors), axis=1),
        total=supply.item(),
        total_std=float(np.linalg.norm([*of_total, motion_std])),
        peak_power=peak,
        overload=powers_of.overload,
    )


LONGEST_OVERLOAD = 0.1
"""Time above the rated torque of a joint that needs no warning [s]: splines begin with a jerk."""


def too_weak(energy: PlanEnergy, robot: RobotDescription) -> tuple[str, ...]:
    """Warnings for joints whose rated torque cannot move the links along a plan."""
    warnings = []
    joints = zip(robot.joint_names, energy.overload, robot.max_torque, strict=True)
    for name, seconds, rated in joints:
        if seconds > LONGEST_OVERLOAD:
            warnings.append(
                f"{name} would need more than its rated {rated:.0f} N m for {seconds:.1f} s to "
                "move the links alone: the arm cannot follow this plan with this payload"
            )
    return tuple(warnings)


SPEED_TOLERANCE = 1.05
"""Factor by which the speed between points may exceed the limit: splines overshoot."""


def _check_limits(
    source: str, robot: RobotDescription, q: Array, qd: Array, qdd: Array
) -> None:
    """Refuse motions [samples, n], rad, rad/s, rad/s^2, beyond the limits, such as in degrees.

    Raises:
        InputError: a motion exceeds a limit; the error names joint and limit.
    """
    fastest = SPEED_TOLERANCE * robot.max_velocity
    _, most_qdd = rated_limits(robot)["target_qdd"]
    shares = robot.position_shares(q)
    positions = q[shares.argmax(axis=0), np.arange(robot.dof)]
    shares = shares.max(axis=0)
    speeds = np.abs(qd).max(axis=0)
    accelerations = np.abs(qdd).max(axis=0)
    for j, joint in enumerate(robot.joint_names):
        if not shares[j] <= 1.0:
            beyond = np.sign(positions[j] - robot.middle_position[j])
            most = abs(robot.middle_position[j] + beyond * robot.max_position[j])
            limit = f"beyond the joint's limit of {most:.4g} rad"
            problem = f"reaches {abs(positions[j]):.4g} rad, {limit}"
            remedy = "give positions in radians"
        elif not speeds[j] <= fastest[j]:
            limit = f"above the joint's limit of {robot.max_velocity[j]:.4g} rad/s"
            problem = f"reaches {speeds[j]:.4g} rad/s, {limit}"
            remedy = "make the motion slower"
        elif not accelerations[j] <= most_qdd[j]:
            limit = f"above the joint's limit of {most_qdd[j]:.4g} rad/s^2"
            problem = f"reaches {accelerations[j]:.4g} rad/s^2, {limit}"
            remedy = "give fewer points, or a smoother motion"
        else:
            continue
        raise InputError(source, problem, remedy, field=joint)
