# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Cost and CO2 of energy."""

from __future__ import annotations

from dataclasses import dataclass

from ur_energy_model.errors import InputError

JOULES_PER_KWH = 3.6e6
_OF_CENTS = ("EUR", "USD", "GBP", "CHF", "AUD", "CAD")
"""Currencies in which a kilowatt-hour costs some hundredths of a unit."""
_DEAREST = 5.0  # magnitude of a price per kWh in these currencies that nobody pays
DAYS_PER_YEAR = 365.0
HOURS_PER_YEAR = 24.0 * DAYS_PER_YEAR  # hours of work of a machine that never stops


@dataclass(frozen=True)
class Tariff:
    """Cost and CO2 of energy.

    What is paid is the energy at the wall where it is known, else the energy at the robot
    bus.

    Attributes:
        price: price of a kWh, in `currency`; None to omit costs.
        currency: code of the currency, such as "EUR".
        co2: CO2 emitted for a kWh [kg]; None to omit CO2.
        supply_efficiency: share of the power from the wall that reaches the robot bus, 0
            to 1; the energy at the bus divided by it then replaces the energy at the
            wall. None to use the energy at the wall.
        hours_per_year: time of work in a year, for all that is stated of a year [h].

    Raises:
        InputError: a price or a share that cannot be meant.
    """

    price: float | None = None
    currency: str = "EUR"
    co2: float | None = None
    supply_efficiency: float | None = None
    hours_per_year: float = HOURS_PER_YEAR

    def __post_init__(self) -> None:
        price = self.price
        if price is not None and self.currency in _OF_CENTS and abs(price) > _DEAREST:
            problem = (
                f"{price:g} {self.currency} per kWh is far from any price of electricity"
            )
            remedy = f"write {price / 100:g} for {price:g} hundredths, or name --currency"
            raise InputError("--tariff", problem, remedy)
        if self.supply_efficiency is not None and not 0 < self.supply_efficiency <= 1:
            problem = f"{self.supply_efficiency:g} is not a share"
            remedy = "give a number above 0 and at most 1, such as 0.85"
            raise InputError("--supply-efficiency", problem, remedy)

    @property
    def seconds_per_year(self) -> float:
        """Time of work in a year [s]."""
        return 3600.0 * self.hours_per_year

    def cost(self, bus: float, wall: float | None) -> float | None:
        """Cost of an energy at bus and wall [J]."""
        return None if self.price is None else self.price * self.kwh(bus, wall)

    def emission(self, bus: float, wall: float | None) -> float | None:
        """CO2 of an energy at bus and wall [kg]."""
        return None if self.co2 is None else self.co2 * self.kwh(bus, wall)

    def columns(self) -> list[str]:
        """Headings of `amounts` in a table."""
        headings = []
        if self.price is not None:
            headings.append(f"cost [{self.currency}]")
        if self.co2 is not None:
            headings.append("CO₂ [kg]")
        return headings

    def amounts(self, bus: float, wall: float | None) -> list[float]:
        """Cost and CO2 [kg] of an energy at bus and wall [J], without those that are omitted."""
        amounts = (self.cost(bus, wall), self.emission(bus, wall))
        return [amount for amount in amounts if amount is not None]

    def kwh(self, bus: float, wall: float | None) -> float:
        """What is paid [kWh] of an energy at the bus and at the wall, None where unknown [J]."""
        if self.supply_efficiency is not None:
            return bus / self.supply_efficiency / JOULES_PER_KWH
        paid = bus if wall is None else wall
        return paid / JOULES_PER_KWH

    def note(self, words: str = "by the models of control boxes and supplies") -> str:
        """A sentence on what is paid; `words` state the energy at the wall."""
        if (share := self.supply_efficiency) is not None:
            words = f"with {100 * share:.0f} % of the power reaching the bus, without control box"
        return f"Cost and CO₂ are at the wall, {words}."
