"""PlantReport: the history of many arms in a period, before it is laid out as a page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ur_energy_model.plant.history.anomalies import Anomaly, find_anomalies
from ur_energy_model.plant.history.database import HistoryDatabase
from ur_energy_model.plant.history.fleet_days import FleetDays, read_fleet_days
from ur_energy_model.report.tariff import Tariff
from ur_energy_model.report.verdict import ORDER, Grade, ModelVerdict, Statement

MODEL_ERROR = (3.0, 10.0)
"""Largest share by which model and measured bus energy differ, percent: good, fair."""
TOLD = 3
"""Anomalies that are told at the top of the page; the others are in a table."""


@dataclass(frozen=True)
class PlantReport:
    """The content of the page.

    Attributes:
        store: address.
        zone: IANA name; of days and hours.
        fleet: energies.
        anomalies: strongest first.
        tariff: cost of energy.
    """

    store: str
    zone: str
    fleet: FleetDays
    anomalies: tuple[Anomaly, ...]
    tariff: Tariff

    @property
    def verdict(self) -> ModelVerdict:
        """What an energy manager should know first."""
        statements = tuple(_statements(self))
        grade: Grade = max((item.grade for item in statements), key=ORDER.index, default="fair")
        return ModelVerdict(grade, _headline(self), statements)

    @property
    def model_error(self) -> float | None:
        """Energy by the model minus that at the bus, while that was measured, percent."""
        bus = self.fleet.total("bus")
        return 100 * (self.fleet.total("bus_model") - bus) / bus if bus > 0 else None


def make_plant_report(
    database: HistoryDatabase, store: str, tariff: Tariff | None = None
) -> PlantReport:
    """Sum up a store, and find what is unusual.

    Args:
        database: of the store and the period.
        store: address, to be shown.
        tariff: cost of energy.

    Raises:
        SqlError: the store cannot be read.
    """
    fleet = read_fleet_days(database)
    zone = database.period.zone.key
    return PlantReport(store, zone, fleet, find_anomalies(fleet), tariff or Tariff())


def _headline(report: PlantReport) -> str:
    fleet, tariff = report.fleet, report.tariff
    energy = fleet.total("energy")
    arms = "1 arm" if len(fleet.arms) == 1 else f"{len(fleet.arms)} arms"
    days = "1 day" if len(fleet.days) == 1 else f"{len(fleet.days)} days"
    if not fleet.arms:
        return "The store has no energy of this time."
    cost, emission = tariff.cost(energy), tariff.emission(energy)
    price = [] if cost is None else [f"{cost:,.2f} {tariff.currency}"]
    price += [] if emission is None else [f"{emission:,.1f} kg of CO₂"]
    used = f"{energy / 3.6e6:,.{1 if energy > 3.6e8 else 3}f} kWh"
    return f"{arms} used {used} in {days}{': ' if price else ''}{' and '.join(price)}."


def _statements(report: PlantReport) -> Iterator[Statement]:
    fleet, tariff = report.fleet, report.tariff
    energy = fleet.total("energy")
    if energy <= 0:
        return
    left_on, idle = fleet.total("left_on"), energy - fleet.total("motion")
    cost = tariff.cost(left_on)
    worth = "" if cost is None else f", {cost:,.2f} {tariff.currency}"
    text = f"{100 * idle / energy:.0f} % of the energy was used while no joint moved"
    if left_on > 0.01 * energy:
        text += (
            f"; {100 * left_on / energy:.0f} % ({left_on / 3.6e6:,.1f} kWh{worth}) in whole hours "
            "without any motion, in which the arms could have been switched off"
        )
    yield Statement("fair" if left_on > 0.1 * energy else "good", f"{text}.")
    error = report.model_error
    if error is not None:
        grade: Grade = next(
            (g for g, most in zip(ORDER, MODEL_ERROR, strict=False) if abs(error) <= most), "poor"
        )
        told = f"{error:+.1f}".replace("-", "−")
        share = 100 * fleet.total("bus_model") / energy
        yield Statement(
            grade,
            f"The models' energy differs from the measured bus energy by {told} % "
            f"(measured during {share:.0f} % of the energy).",
        )
    gaps, known = fleet.total("unaccounted"), fleet.total("duration")
    if gaps > 0.01 * (gaps + known):
        share = 100 * gaps / (gaps + known)
        yield Statement("fair", f"Gaps in the recordings are {share:.1f} % of the time: their "
                        "energy is not included.")  # fmt: skip
    for anomaly in report.anomalies[:TOLD]:
        yield Statement("fair", anomaly.text)
    if len(report.anomalies) > TOLD:
        more = len(report.anomalies) - TOLD
        yield Statement("fair", f"The table of anomalies has {more} more.")
