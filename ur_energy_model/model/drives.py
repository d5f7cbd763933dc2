"""Drives: the motors of an arm and its supply, which turn currents and speeds into powers.

Per motor (Clochiatti et al., Robotica 2024, eq. 19-23), w the motor speed,

    electrical power = R I^2 + k_b w I,   mechanical power = w * torque,   torque = k_t I

and for the whole arm (Heredia et al., EcBot, eq. 13-21)

    P = max(floor, standby + sum over joints (electrical + driver * |I| + L I dI/dt)).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ur_energy_model.model.bus_model import BusErrors, BusModel
from ur_energy_model.model.current_errors import CurrentDeviations
from ur_energy_model.model.drive_powers import DrivePowers
from ur_energy_model.model.joint_arrays import JointArrays
from ur_energy_model.typing import Array


@dataclass(frozen=True)
class Drives:
    """The motors of an arm with n joints and its supply."""

    joints: JointArrays
    bus: BusModel

    def powers(
        self,
        current: Array,
        qd: Array,
        friction: Array,
        *,
        current_errors: CurrentDeviations | None = None,
        standby: float | None = None,
        current_rate: Array | None = None,
    ) -> DrivePowers:
        """Powers of the motors and of the whole arm.

        Args:
            current: motor currents [samples, n], A.
            qd: joint velocities [samples, n], rad/s.
            friction: motor-side friction torque [samples, n], N m.
            current_errors: of the currents; None leaves the sensitivities out.
            standby: standby power that replaces the model's [W].
            current_rate: dI/dt [samples, n], A/s, for EcBot's inductive term.
        """
        joints, bus = self.joints, self.bus
        motor_speed = joints.gear_ratio * qd
        torque = joints.torque_constant * current
        copper = joints.winding_resistance * current**2
        electrical = copper + joints.back_emf_constant * motor_speed * current
        driver = np.abs(current) @ bus.driver
        idle = np.full(len(qd), bus.standby if standby is None else standby)
        if current_rate is not None:
            driver = driver + (current * current_rate) @ bus.inductance
        demand = idle + electrical.sum(axis=1) + driver
        sensitivity, total_sensitivity = (
            (np.zeros((*qd.shape, 0)), np.zeros((len(qd), 0)))
            if current_errors is None
            else self._sensitivities(current, motor_speed, current_errors)
        )
        return DrivePowers(
            motor_torque=torque,
            current=current,
            mechanical_power=motor_speed * torque,
            copper_loss=copper,
            friction_loss=motor_speed * friction,
            electrical_power=electrical,
            driver_power=driver,
            standby_power=idle,
            demand=demand,
            total_power=np.maximum(demand, bus.floor),
            sensitivity=sensitivity,
            total_sensitivity=total_sensitivity,
        )

    @cached_property
    def _bus_errors(self) -> BusErrors:
        return self.bus.split_errors(len(self.joints.gear_ratio))

    def _sensitivities(
        self, current: Array, motor_speed: Array, current_errors: CurrentDeviations
    ) -> tuple[Array, Array]:
        """Sensitivities of the electrical powers [samples, n, k] and of the total [samples, K]."""
        joints, bus = self.joints, self._bus_errors
        slope = 2 * joints.winding_resistance * current + joints.back_emf_constant * motor_speed
        own = [slope[:, [j]] * errors for j, errors in enumerate(current_errors.own)]
        square, product = current**2, motor_speed * current
        shared = square[..., None] * bus.resistance.T + product[..., None] * bus.back_emf.T
        shared += slope[..., None] * current_errors.shared
        most_own = max(errors.shape[1] for errors in own)
        each = np.zeros((*current.shape, most_own + shared.shape[2]))
        for j, errors in enumerate(own):
            each[:, j, : errors.shape[1]] = errors
        each[:, :, most_own:] = shared
        total = shared.sum(axis=1) + np.abs(current) @ bus.driver.T + bus.standby
        return each, np.concatenate([*own, total], axis=1)
