"""DrivePowers: torques, currents and powers of an arm over samples, with their uncertainty."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ur_energy_model.typing import Array


@dataclass(frozen=True)
class DrivePowers:
    """Torques, currents and powers over samples; [samples, n] unless stated otherwise.

    Attributes:
        motor_torque: motor side [N m].
        current: [A].
        mechanical_power: motor speed times motor torque, friction included [W].
        copper_loss: [W].
        friction_loss: friction's part of the mechanical power [W].
        electrical_power: of the motors [W].
        driver_power, standby_power: whole arm [samples], W; EcBot's inductive term is the drivers'.
        demand: of the whole arm, negative while it regenerates [samples], W.
        total_power: at the supply, which takes no power back [samples], W; `SupplyStore` models
            what the bus capacitance stores of it.
        sensitivity: change of each electrical power per standard deviation of each independent
            parameter error [samples, n, errors], W. The standard deviation of an energy is the
            norm over the errors of the time integral of this; that of a power the norm of this
            itself. No errors if they were not requested.
        total_sensitivity: the same for the total power [samples, all errors], W.
        current_std: standard deviation of predicted currents, scatter of single samples included
            [samples, n], A; empty for measured currents or if not requested.
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
