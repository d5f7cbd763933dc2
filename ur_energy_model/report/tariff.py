"""Cost and CO2 of energy."""

from __future__ import annotations

from dataclasses import dataclass

from ur_energy_model.errors import InputError

JOULES_PER_KWH = 3.6e6


@dataclass(frozen=True)
class Tariff:
    """Cost and CO2 [kg] of energy, per kWh; None omits them.

    `supply_efficiency` is the share of the power from the wall that reaches the robot bus;
    telemetry does not include the controller's power supply and computer.
    """

    price: float | None = None
    currency: str = "EUR"
    co2: float | None = None
    supply_efficiency: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.supply_efficiency <= 1:
            raise InputError(
                "--supply-efficiency",
                f"{self.supply_efficiency:g} is not a share",
                "give a number above 0 and at most 1, such as 0.85",
            )

    def cost(self, joules: float) -> float | None:
        """Cost of an energy at the bus."""
        return None if self.price is None else self.price * self.kwh(joules)

    def emission(self, joules: float) -> float | None:
        """CO2 of an energy at the bus [kg]."""
        return None if self.co2 is None else self.co2 * self.kwh(joules)

    def columns(self) -> list[str]:
        """Headings of `amounts` in a table."""
        cost = [] if self.price is None else [f"cost [{self.currency}]"]
        return cost + ([] if self.co2 is None else ["CO₂ [kg]"])

    def amounts(self, joules: float) -> list[float]:
        """Cost and CO2 of an energy at the bus, as far as they are known."""
        return [each for each in (self.cost(joules), self.emission(joules)) if each is not None]

    def kwh(self, joules: float) -> float:
        """Energy at the wall [kWh] of an energy at the bus [J]."""
        return joules / JOULES_PER_KWH / self.supply_efficiency
