"""The 48 V bus: supply with source resistance, capacitance, braking resistor, energy counters.

The supply cannot absorb power. Regenerated power first feeds standby and other joints, then charges
the bus capacitance; above a threshold the braking resistor dissipates it. Power at the supply is
therefore never negative (Heredia et al.).
"""

from __future__ import annotations

import math

from ur_energy_model.simulation.arm.parameters import constants

SUBSTEP = 5e-4
"""Longest time step of the bus voltage while the supply is idle [s]."""


class Bus:
    """State of the bus.

    Attributes:
        voltage: V.
        current: from the supply, mean over the last step [A].
        supplied, braked: energy from the supply and into the braking resistor [J].
        surplus: energy in the bus capacitance above that at open-circuit voltage [J].
    """

    def __init__(self) -> None:
        table = constants()["bus"]
        self._open = float(table["open_voltage"])
        self._source = float(table["source_resistance"])
        self._capacitance = float(table["capacitance"])
        self._brake_voltage = float(table["brake_voltage"])
        self._brake_resistance = float(table["brake_resistance"])
        self.voltage = self._open
        self.current = 0.0
        self.supplied = 0.0
        self.braked = 0.0
        self.surplus = 0.0

    def advance(self, dt: float, power: float) -> None:
        """Deliver `power` [W] for `dt` s; negative power is regenerated."""
        missing = 0.0
        if power >= 0.0 and self.surplus == 0.0:
            missing = dt * power
        else:
            steps = max(1, math.ceil(dt / SUBSTEP))
            for _ in range(steps):
                missing += self._without_supply(dt / steps, power)
        self.supplied += missing
        self.current = self._supply_current(missing / dt)
        if self.surplus == 0.0:
            self.voltage = self._open - self._source * self.current

    def switch_off(self) -> None:
        """Disconnect the supply: the braking resistor dissipates the surplus."""
        self.braked += self.surplus
        self.surplus = self.voltage = self.current = 0.0

    def _without_supply(self, h: float, power: float) -> float:
        """One step on the capacitance; returns the energy [J] that the supply must add."""
        self.surplus -= h * power
        if self.voltage > self._brake_voltage:
            dissipated = min(h * self.voltage**2 / self._brake_resistance, max(self.surplus, 0.0))
            self.braked += dissipated
            self.surplus -= dissipated
        missing = max(0.0, -self.surplus)
        self.surplus = max(0.0, self.surplus)
        self.voltage = math.sqrt(self._open**2 + 2.0 * self.surplus / self._capacitance)
        return missing

    def _supply_current(self, power: float) -> float:
        """Current [A] at which the supply delivers a power [W] behind its source resistance.

        Beyond the maximum power the voltage would collapse; a real supply limits earlier, so the
        current is limited to that at half voltage.
        """
        root = self._open**2 - 4.0 * self._source * power
        return (self._open - math.sqrt(max(root, 0.0))) / (2.0 * self._source)
