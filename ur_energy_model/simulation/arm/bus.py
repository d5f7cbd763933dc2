"""The 48 V bus: supply with source resistance, capacitor, braking resistor, energy counters.

Power flows from the supply only. What the drives give back feeds standby and other joints first,
then charges the capacitor, and above a threshold the braking resistor burns it, so that power at
the supply is never negative (Heredia et al.).
"""

from __future__ import annotations

import math

from ur_energy_model.simulation.arm.parameters import constants

SUBSTEP = 5e-4
"""Longest step of the capacitor's voltage while the supply rests [s]."""


class Bus:
    """State of the bus.

    Attributes:
        voltage: V.
        current: from the supply, mean of the last step [A].
        supplied, braked: energy from the supply and into the braking resistor [J].
        surplus: energy in the capacitor above the supply's voltage [J].
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
        """Serve `power` [W], negative where the drives give back, for `dt` s."""
        missing = 0.0
        if power >= 0.0 and self.surplus == 0.0:
            missing = dt * power
        else:
            steps = max(1, math.ceil(dt / SUBSTEP))
            for _ in range(steps):
                missing += self._without_supply(dt / steps, power)
        given = missing / dt
        self.supplied += missing
        self.current = self._supply_current(given)
        if self.surplus == 0.0:
            self.voltage = self._open - self._source * self.current

    def switch_off(self) -> None:
        """Take the bus off the supply: what the capacitor holds above it is burned."""
        self.braked += self.surplus
        self.surplus = self.voltage = self.current = 0.0

    def _without_supply(self, h: float, power: float) -> float:
        """One step on the capacitor; the energy it lacked and the supply has to give [J]."""
        self.surplus -= h * power
        if self.voltage > self._brake_voltage:
            burned = min(h * self.voltage**2 / self._brake_resistance, max(self.surplus, 0.0))
            self.braked += burned
            self.surplus -= burned
        missing = max(0.0, -self.surplus)
        self.surplus = max(0.0, self.surplus)
        self.voltage = math.sqrt(self._open**2 + 2.0 * self.surplus / self._capacitance)
        return missing

    def _supply_current(self, power: float) -> float:
        """Current [A] at which the supply gives a power [W] behind its source resistance.

        Beyond its greatest power the voltage would collapse; a real supply limits earlier, so the
        current at half voltage is the most that is reported.
        """
        root = self._open**2 - 4.0 * self._source * power
        return (self._open - math.sqrt(max(root, 0.0))) / (2.0 * self._source)
