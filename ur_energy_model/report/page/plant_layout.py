"""The layout of the page of a plant."""

from __future__ import annotations

from ur_energy_model.report.charts.plant import arm_charts, cycle_chart, plant_charts
from ur_energy_model.report.page.layout import duration_text, energy_text
from ur_energy_model.report.page.page import Item, Page, Section, Tile
from ur_energy_model.report.plant import PlantReport
from ur_energy_model.report.tables.plant import (
    anomalies_table,
    arms_table,
    history_table,
    works_table,
)

_NO_ANOMALIES = (
    "No arm was unlike itself on any day, in standby power, in the difference between model and "
    "measured bus energy, or in the energy and duration of its cycles."
)


def plant_page(report: PlantReport) -> Page:
    """The page of a plant."""
    fleet, tariff = report.fleet, report.tariff
    cycles = cycle_chart(fleet.works)
    contents = (
        ("fleet", "The fleet", "", plant_charts(fleet)),
        ("arms", "The arms", "", [*arm_charts(fleet), arms_table(fleet, tariff)]),
        ("cycles", "Cycles over time", "", [cycles, works_table(fleet.works, tariff)]),
        ("anomalies", "Anomalies", _NO_ANOMALIES if not report.anomalies else "",
         [anomalies_table(report)]),
        ("source", "Source", "", [history_table(report)]),
    )  # fmt: skip
    sections = (
        Section(key, title, text, tuple(Item(item) for item in items if item is not None))
        for key, title, text, items in contents
    )
    return Page(
        title="Energy of the plant",
        subtitle=_subtitle(report),
        verdict=report.verdict,
        tiles=_tiles(report),
        joint_names=(),
        recordings=(),
        sections=tuple(s for s in sections if s.items or (s.text and fleet.arms)),
    )


def _subtitle(report: PlantReport) -> str:
    from ur_energy_model.plant.history.fleet_days import day_of

    days = report.fleet.days
    if not len(days):
        return f"Store {report.store}."
    first, last = day_of(days[0]), day_of(days[-1])
    span = f"{first}" if first == last else f"{first} to {last}"
    return f"Store {report.store}, {span}; days and hours of {report.zone}."


def _tiles(report: PlantReport) -> tuple[Tile, ...]:
    fleet, tariff = report.fleet, report.tariff
    energy, time = fleet.total("energy"), fleet.total("duration")
    if energy <= 0:
        return ()
    share = 100 / energy
    tiles = [
        Tile(energy_text(energy), f"by {len(fleet.arms)} arms in {duration_text(time)} of work"),
        Tile(f"{energy / time:.0f} W", "mean power of an arm that is on"),
        Tile(f"{share * fleet.total('standby'):.0f} %", "standby, which arms take at all times"),
        Tile(f"{share * (energy - fleet.total('motion')):.0f} %", "of the energy without motion"),
        Tile(energy_text(fleet.total("left_on")), "in whole hours without motion"),
    ]
    cost, emission = tariff.cost(energy), tariff.emission(energy)
    if cost is not None:
        tiles.append(Tile(f"{cost:,.2f} {tariff.currency}", f"at {tariff.price:g} per kWh"))
    if emission is not None:
        tiles.append(Tile(f"{emission:,.1f} kg", "of CO₂"))
    cycles = sum(float(work.sums["cycles"].sum()) for work in fleet.works)
    if cycles:
        tiles.append(Tile(f"{cycles:,.0f}", "program cycles"))
    return tuple(tiles)
