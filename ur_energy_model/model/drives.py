"""Drives and the supply: from currents and speeds to powers, and what these are uncertain by.

Per motor (Clochiatti et al., Robotica 2024, eq. 19-23), w the motor speed,

    electrical power = R I^2 + k_b w I,   mechanical power = w * torque,   torque = k_t I

and for the whole arm (Heredia et al., EcBot, eq. 13-21)

    P = max(floor, standby + sum over joints (electrical + driver * |I| + L I dI/dt)).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ur_energy_model.model.bus_model import BusModel
from ur_energy_model.model.drive_powers import DrivePowers
from ur_energy_model.typing import Array

KT_OVER_KB = 0.89
"""k_t/k_b that Clochiatti et al. 2024 (S0) take from the catalogue."""
CATALOGUE_MOTOR_CONSTANT = {3: 0.27426, 1: 0.06632}
"""Motor constants k_m that S0 takes from the catalogue, by joint size [N m/sqrt(W)]."""


def motor_constant(torque_constant: float, winding_resistance: float) -> float:
    """k_m = k_t / sqrt(R): torque per square root of copper loss [N m/sqrt(W)]; NaN without R."""
    if not winding_resistance > 0:
        return float("nan")
    return float(torque_constant / np.sqrt(winding_resistance))


@dataclass(frozen=True)
class Drives:
    """The motors of an arm and its supply, as arrays over the joints.

    Attributes:
        gear_ratio, torque_constant, winding_resistance, back_emf_constant: [n].
        bus: the supply.
    """

    gear_ratio: Array
    torque_constant: Array
    winding_resistance: Array
    back_emf_constant: Array
    bus: BusModel

    def powers(
        self,
        current: Array,
        qd: Array,
        friction: Array,
        *,
        spread: Sequence[Array] | None = None,
        standby: float | None = None,
        current_rate: Array | None = None,
    ) -> DrivePowers:
        """The split of powers.

        Args:
            current: motor currents [samples, n], A.
            qd: joint velocities [samples, n], rad/s.
            friction: motor-side friction torque [samples, n], N m.
            spread: change of each joint's current per independent error [samples, k]; None leaves
                the sensitivities out.
            standby: in place of the model's [W].
            current_rate: dI/dt [samples, n], A/s, for EcBot's inductive term.
        """
        motor_speed = self.gear_ratio * qd
        torque = self.torque_constant * current
        copper = self.winding_resistance * current**2
        electrical = copper + self.back_emf_constant * motor_speed * current
        driver = np.abs(current) @ self.bus.driver
        idle = np.full(len(qd), self.bus.standby if standby is None else standby)
        total = idle + electrical.sum(axis=1) + driver
        if current_rate is not None:
            total = total + (current * current_rate) @ self.bus.inductance
        each, whole = (
            (np.zeros((*qd.shape, 0)), np.zeros((len(qd), 0)))
            if spread is None
            else self._sensitivities(current, motor_speed, spread)
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
            demand=total,
            total_power=np.maximum(total, self.bus.floor),
            sensitivity=each,
            total_sensitivity=whole,
        )

    @cached_property
    def _errors(self) -> tuple[Array, Array, Array, Array]:
        """The bus model's errors: of standby [k], and of R, k_b and driver losses [n, k]."""
        n = len(self.gear_ratio)
        errors = self.bus.errors if self.bus.errors.size else np.zeros((0, 1 + 3 * n))
        resistance, back_emf, driver = errors[:, 1:].reshape(-1, 3, n).transpose(1, 2, 0)
        return errors[:, 0], resistance, back_emf, driver

    def _sensitivities(
        self, current: Array, motor_speed: Array, spread: Sequence[Array]
    ) -> tuple[Array, Array]:
        """Sensitivities of the electrical powers [samples, n, k] and of the total [samples, K]."""
        standby, resistance, back_emf, driver = self._errors
        slope = 2 * self.winding_resistance * current + self.back_emf_constant * motor_speed
        own = [slope[:, [j]] * part for j, part in enumerate(spread)]
        square, product = current**2, motor_speed * current
        shared = square[..., None] * resistance + product[..., None] * back_emf
        each = np.zeros((*current.shape, max(part.shape[1] for part in own) + shared.shape[2]))
        for j, part in enumerate(own):
            each[:, j, : part.shape[1]] = part
        each[:, :, each.shape[2] - shared.shape[2] :] = shared
        bus = shared.sum(axis=1) + np.abs(current) @ driver + standby
        return each, np.concatenate([*own, bus], axis=1)
