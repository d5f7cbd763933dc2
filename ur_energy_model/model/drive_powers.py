"""Powers of an arm's motors and supply over samples, with their sensitivities."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ur_energy_model.typing import Array


@dataclass(frozen=True)
class DrivePowers:
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
        total_power: at the supply, which takes nothing back [samples], W; `SupplyStore` says what
            becomes of what it cannot take.
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
    def electrical_power_std(self) -> Array:
        """Standard deviation of the electrical powers [samples, n], W."""
        return np.asarray(np.linalg.norm(self.sensitivity, axis=-1))

    @property
    def total_power_std(self) -> Array:
        """Standard deviation of the total power from the model's parameters [samples], W."""
        return np.asarray(np.linalg.norm(self.total_sensitivity, axis=-1))
