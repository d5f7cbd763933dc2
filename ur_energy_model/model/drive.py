"""Drives and the supply: from currents and speeds to powers, and what these are uncertain by.

Per motor (Clochiatti et al., Robotica 2024, eq. 19-23), w the motor speed,

    electrical power = R I^2 + k_b w I,   mechanical power = w * torque,   torque = k_t I

and for the whole arm (Heredia et al., EcBot, eq. 13-21)

    P = max(floor, standby + sum over joints (electrical + driver * |I| + L I dI/dt)).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

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
class BusModel:
    """From motors to the supply.

    Attributes:
        kind: "physical" or "ecbot".
        standby: power at standstill, brakes released [W].
        driver: driver loss per ampere [n], W/A.
        inductance: of the windings [n], H (EcBot's L I dI/dt; zero in the physical model).
        capacitor_energy: energy that the bus capacitor holds above the supply's voltage [J].
        floor: lowest power the supply can show [W]; it cannot take power back.
        std: standard deviations of "standby" and, in common, "driver".
        errors: independent parameter errors of one standard deviation each [k, 1 + 3 n]: changes
            of standby, winding resistances, back-EMF constants and driver losses that go together.
        mode_power: mean power in robot modes other than running, where recorded, by mode name [W].
        residual: RMS of measured minus modelled power [W], NaN where no bus power was recorded.
        source: "bus_power" or "prior".
        reason: which terms entered, and why.
    """

    kind: str
    standby: float
    driver: Array
    inductance: Array
    capacitor_energy: float = 0.0
    floor: float = 0.0
    std: Mapping[str, float] = field(default_factory=dict)
    errors: Array = field(default_factory=lambda: np.zeros((0, 0)))
    mode_power: Mapping[str, float] = field(default_factory=dict)
    residual: float = float("nan")
    source: str = "prior"
    reason: str = ""


@dataclass(frozen=True)
class Prediction:
    """Torques, currents and powers over samples; [samples, n] unless said.

    Attributes:
        motor_torque: motor side [N m].
        current: [A].
        mechanical_power: motor speed times motor torque, friction included [W].
        copper_loss: [W].
        friction_loss: the part of mechanical power that friction takes [W].
        electrical_power: of the motors [W].
        driver_power, standby_power: whole arm [samples], W.
        demand: of the whole arm, negative where it gives back [samples], W.
        total_power: at the supply, which takes nothing back [samples], W; without the bus capacitor
            (`BusCapacitor`).
        sensitivity: change of each electrical power per standard deviation of each independent
            parameter error [samples, n, errors], W. The deviation of an energy is the norm over
            the errors of the time integral of this; that of a power the norm of this itself.
            No errors where it was not asked for.
        total_sensitivity: the same for the total power [samples, all errors], W.
        current_std: standard deviation of predicted currents, what single samples scatter by
            included [samples, n], A; empty for measured currents or where not asked for.
    """

    motor_torque: Array
    current: Array
    mechanical_power: Array
    copper_loss: Array
    friction_loss: Array
    electrical_power: Array
    driver_power: Array
    standby_power: Array
    demand: Array
    total_power: Array
    sensitivity: Array
    total_sensitivity: Array
    current_std: Array = field(default_factory=lambda: np.zeros((0, 0)))

    @property
    def total_power_std(self) -> Array:
        """Standard deviation of the total power from the model's parameters [samples], W."""
        return np.asarray(np.linalg.norm(self.total_sensitivity, axis=-1))


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
    ) -> Prediction:
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
        return Prediction(
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
