"""Energy balance of the arm per cycle: bus, whole-arm losses, heating of the joints."""

from __future__ import annotations

import numpy as np

from ur_energy_model.simulation.arm.bus import Bus
from ur_energy_model.simulation.arm.drive_integration import (
    ABS_CURRENT,
    COPPER,
    FRICTION,
    GEAR,
    SHAFT,
)
from ur_energy_model.simulation.arm.parameters import ArmParameters
from ur_energy_model.simulation.arm.power_supply import PowerSupply
from ur_energy_model.simulation.arm.thermal import ThermalState
from ur_energy_model.simulation.arm.truth import Energies
from ur_energy_model.typing import Array

THERMAL_STEP = 0.1
"""Time step of the joint temperatures [s]."""


class EnergyBalance:
    """Energies of an arm since its start, integrated cycle by cycle.

    Args:
        parameters: of the arm, n joints.
        dt: length of a controller cycle [s].
        ambient: ambient temperature [degC].
        warmth: initial warmth of the joints, see `ThermalState`.

    Attributes:
        bus: supply, capacitance and braking resistor.
        thermal: temperatures of the joints.
    """

    def __init__(
        self, parameters: ArmParameters, dt: float, ambient: float, warmth: float = 1.0
    ) -> None:
        self.bus = Bus()
        self.thermal = ThermalState(parameters, ambient, warmth)
        self._parameters, self._dt = parameters, dt
        self._thermal_step = max(1, round(THERMAL_STEP / dt)) * dt
        self._passed = 0.0
        self._driver = self._standby = 0.0
        self._drives = np.zeros((5, len(parameters.gear_ratio)))
        self._heated = np.zeros(len(parameters.gear_ratio))

    def integrate(self, drives: Array, supply: PowerSupply) -> bool:
        """Integrate one cycle.

        Args:
            drives: sums of the plant since the start [5, n] (`Plant.energy`).
            supply: power mode of the arm.

        Returns:
            Whether the joint temperatures changed.
        """
        p, dt = self._parameters, self._dt
        spent = drives - self._drives
        self._drives = drives.copy()
        driver = p.driver_loss * float(spent[ABS_CURRENT].sum())
        standby = dt * supply.standby(p.standby_power, len(p.gear_ratio))
        self._driver += driver
        self._standby += standby
        if supply.powered:
            electrical = float((spent[SHAFT] + spent[COPPER]).sum())
            self.bus.advance(dt, (electrical + driver + standby) / dt)
        else:
            self.bus.switch_off()
        self._passed += dt
        if self._passed < self._thermal_step - 0.5 * dt:
            return False
        heat = drives[COPPER] + drives[FRICTION] + drives[GEAR]
        losses = (heat - self._heated) / self._passed
        self.thermal.advance(self._passed, losses, supply.powered)
        self._heated, self._passed = heat, 0.0
        return True

    def energies(self, time: float) -> Energies:
        """All energies since the start, at a controller time [s]."""
        return Energies(
            time=time,
            mechanical=self._drives[SHAFT],
            copper=self._drives[COPPER],
            friction=self._drives[FRICTION] + self._drives[GEAR],
            bus=self.bus.supplied,
            driver=self._driver,
            standby=self._standby,
            braking=self.bus.braked,
        )
