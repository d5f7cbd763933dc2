# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The page of a plant: many arms over months, in statements, charts and tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ur_energy_model.energy.powers import TotalSource
from ur_energy_model.energy.tariff import JOULES_PER_KWH, Tariff
from ur_energy_model.plant.database import HistoryDatabase
from ur_energy_model.plant.fleet_days import (
    CYCLE_SUMS,
    FleetDays,
    Work,
    day_of,
    read_fleet_days,
)
from ur_energy_model.plant.holdings import lost_sentences
from ur_energy_model.plant.plant_charts import arm_charts, cycle_chart, plant_charts
from ur_energy_model.plant.unusual_days import Anomaly, find_anomalies, number_text
from ur_energy_model.report.page import (
    Cell,
    Page,
    PageSection,
    Table,
    Tile,
    duration_text,
    energy_text,
    items,
)
from ur_energy_model.report.verdict import ModelVerdict, Statement, grade_of, worst_of
from ur_energy_model.typing import Array

UNEXPLAINED = (3.0, 10.0)
"""Largest share of the measured energy that the models leave unexplained, percent: good,
fair."""
MOST_STATED = 3  # anomalies at the top of the page; the others are in a table


@dataclass(frozen=True)
class PlantReport:
    """The content of the page.

    Attributes:
        store: folder or address of the store.
        zone: IANA name of the time zone of days and hours.
        fleet: energies of all arms by day.
        anomalies: unusual days, the most unusual first.
        tariff: price and CO2 of energy.
        lost: sentences about rows that the store has lost.
    """

    store: str
    zone: str
    fleet: FleetDays
    anomalies: tuple[Anomaly, ...]
    tariff: Tariff
    lost: tuple[str, ...] = ()

    @property
    def verdict(self) -> ModelVerdict:
        """The head of the page: the energy in one sentence, and statements with grades.

        The grade of the page is the worst one of its statements; "fair" without any.
        """
        headline = "The store has no energy of this time."
        if self.fleet.arms:
            headline = _energy_sentence(self.fleet, self.tariff)
        statements = tuple(_statements(self))
        if not statements:
            return ModelVerdict("fair", headline, statements)
        grade = worst_of(statement.grade for statement in statements)
        return ModelVerdict(grade, headline, statements)


def make_plant_report(
    database: HistoryDatabase, store: str, tariff: Tariff | None = None
) -> PlantReport:
    """Sum up the store and period of a database, and find unusual days.

    Args:
        database: database of the store and period.
        store: folder or address of the store, for people.
        tariff: price and CO2 of energy; None for neither.

    Raises:
        SqlError: the store cannot be read.
    """
    fleet = read_fleet_days(database)
    zone = database.period.zone.key
    lost = tuple(lost_sentences(database.holdings))
    return PlantReport(
        store, zone, fleet, find_anomalies(fleet), tariff or Tariff(), lost
    )


def _energy_sentence(fleet: FleetDays, tariff: Tariff) -> str:
    """Energy, cost and CO₂ of all arms, in one sentence."""
    energy = fleet.total("energy")
    digits = 1 if energy > 100.0 * JOULES_PER_KWH else 3
    arms = _counted(len(fleet.arms), "arm")
    days = _counted(len(fleet.days), "day")
    used = f"{arms} used {energy / JOULES_PER_KWH:,.{digits}f} kWh in {days}"
    paid = " and ".join(f"{amount}{of_what}" for amount, of_what in _paid(tariff, fleet))
    return f"{used}: {paid}." if paid else f"{used}."


def _counted(count: int, noun: str) -> str:
    """A number of things, with their noun in singular or plural."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _paid(tariff: Tariff, fleet: FleetDays) -> list[tuple[str, str]]:
    """Cost and CO₂ of all energy, as far as the tariff has them.

    Returns:
        Amount with its unit, and what it is of (" of CO₂"; "" for a cost).
    """
    energy = fleet.total("energy")
    wall = fleet.total("wall")
    paid = []
    cost = tariff.cost(energy, wall)
    if cost is not None:
        paid.append((f"{cost:,.2f} {tariff.currency}", ""))
    emission = tariff.emission(energy, wall)
    if emission is not None:
        paid.append((f"{emission:,.1f} kg", " of CO₂"))
    return paid


def _statements(report: PlantReport) -> Iterator[Statement]:
    """Statements at the head of the page, in the order in which they are read.

    Lost rows, idle energy, agreement of models and measurements, source of the energy,
    gaps of more than 1 % of the time, and the strongest anomalies.
    """
    for sentence in report.lost:
        yield Statement("poor", sentence)
    fleet = report.fleet
    if fleet.total("energy") <= 0:
        return
    yield _idle_statement(fleet, report.tariff)
    source = TotalSource.of(fleet.total("measured"), fleet.total("duration"))
    bus = fleet.total("bus")
    if bus > 0:
        unexplained = 100 * fleet.total("unexplained") / bus
        explained = (
            f"The models explain {100 - unexplained:.1f} % of the measured energy."
        )
        yield Statement(grade_of(abs(unexplained), UNEXPLAINED), explained)
    yield Statement("good", f"Source of the energy: {source.words()}.")
    gaps = fleet.total("unaccounted")
    known = fleet.total("duration")
    if gaps > 0.01 * (gaps + known):
        share = (
            f"Gaps in the recordings are {100 * gaps / (gaps + known):.1f} % of the time"
        )
        yield Statement("fair", f"{share}: their energy is not included.")
    for anomaly in report.anomalies[:MOST_STATED]:
        yield Statement("fair", anomaly.text)
    more = len(report.anomalies) - MOST_STATED
    if more > 0:
        yield Statement("fair", f"The table of anomalies has {more} more.")


def _idle_statement(fleet: FleetDays, tariff: Tariff) -> Statement:
    """Energy without motion, and energy of whole hours without motion.

    The grade is "fair" where arms that are left on take more than 10 % of the energy.
    """
    energy = fleet.total("energy")
    idle = energy - fleet.total("motion")
    left_on = fleet.total("left_on")
    text = f"{100 * idle / energy:.0f} % of the energy was used while no joint moved"
    if left_on > 0.01 * energy:
        amounts = f"{left_on / JOULES_PER_KWH:,.1f} kWh"
        cost = tariff.cost(left_on, fleet.total("left_on_wall"))
        if cost is not None:
            amounts += f", {cost:,.2f} {tariff.currency}"
        text += (
            f"; {100 * left_on / energy:.0f} % ({amounts}) in whole hours without any "
            "motion, in which the arms could have been switched off"
        )
    return Statement("fair" if left_on > 0.1 * energy else "good", f"{text}.")


# Tables of many arms: energies, cycles, unusual days, and where the figures are from.

MOST_ROWS = 200  # most rows of a table
MOST_MODELS = 20  # most models that are named


def arms_table(fleet: FleetDays, tariff: Tariff) -> Table | None:
    """Every arm: energy, shares, mean power, cost; the arm with the most energy first.

    Shares of an arm whose time, energy or measured energy is 0 are NaN.

    Args:
        fleet: energies by day.
        tariff: price and CO2; without them there are no such columns.

    Returns:
        The table; None without any arm.
    """
    if not fleet.arms:
        return None

    def ratio(part: Array, whole: Array) -> Array:
        """Part over whole [arms]; NaN where the whole is 0."""
        return np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), np.nan)

    energy = fleet.by_arm("energy")
    time = fleet.by_arm("duration")
    bus = fleet.by_arm("bus")
    idle = energy - fleet.by_arm("motion")
    wall = fleet.by_arm("wall")
    figures = {
        "time [h]": time / 3600,
        "energy [kWh]": energy / JOULES_PER_KWH,
        "at the wall [kWh]": wall / JOULES_PER_KWH,
        "share of all [%]": 100 * energy / max(fleet.total("energy"), 1e-12),
        "measured [%]": 100 * ratio(fleet.by_arm("measured"), time),
        "unexplained [%]": 100 * ratio(fleet.by_arm("unexplained"), bus),
        "mean [W]": ratio(energy, time),
        "standby [%]": 100 * ratio(fleet.by_arm("standby"), energy),
        "idle [%]": 100 * ratio(idle, energy),
        "left on [h]": fleet.by_arm("left_on_time") / 3600,
        "left on [kWh]": fleet.by_arm("left_on") / JOULES_PER_KWH,
    }
    days = np.isfinite(fleet.daily["energy"]).sum(axis=1)
    rows: list[tuple[Cell, ...]] = []
    for k in np.argsort(-energy, kind="stable")[:MOST_ROWS]:
        values = [float(values[k]) for values in figures.values()]
        paid = tariff.amounts(float(energy[k]), float(wall[k]))
        rows.append((fleet.arms[k], fleet.robots[k], f"{days[k]}", *values, *paid))
    note = (
        "Standby is what the arm takes at all times, also in motion; idle is all energy "
        "while no joint moves; left on are the hours without any motion, a part of idle. "
        "Measured is the share of the time, unexplained what the model lacks of the "
        "measured energy."
    )
    if len(fleet.arms) > MOST_ROWS:
        note += f" The first {MOST_ROWS} of {len(fleet.arms)} arms."
    note += f" {tariff.note()}" if tariff.columns() else ""
    columns = ("arm", "type", "days", *figures, *tariff.columns())
    return Table("Arms", columns, rows, note)


def works_table(works: tuple[Work, ...], tariff: Tariff) -> Table | None:
    """Cycles by arm and program, with their mean energy and its scatter.

    Args:
        works: cycles of each arm and program by day.
        tariff: price of energy; without it there is no such column.

    Returns:
        The table; None without any cycle.
    """
    if not works:
        return None
    columns = ["arm: program", "cycles", "duration [s]", "energy per cycle [J]",
               "standard deviation [J]", "idle [%]"]  # fmt: skip
    if tariff.price is not None:
        columns.append(f"1000 cycles [{tariff.currency}]")
    rows = []
    for work in works[:MOST_ROWS]:
        sums = {name: float(work.sums[name].sum()) for name in CYCLE_SUMS}
        count = sums["cycles"]
        mean = sums["energy"] / count
        variance = max(sums["energy_squared"] / count - mean**2, 0.0)
        cells: list[Cell] = [
            work.name,
            f"{count:.0f}",
            sums["duration"] / count,
            mean,
            float(np.sqrt(variance)),
            100 * sums["idle"] / sums["energy"] if mean > 0 else None,
        ]
        cost = tariff.cost(1000 * mean, 1000 * sums["wall"] / count)
        if cost is not None:
            cells.append(cost)
        rows.append(cells)
    note = f"The first {MOST_ROWS} of {len(works)}." if len(works) > MOST_ROWS else ""
    return Table("Cycles", columns, rows, note)


def anomalies_table(anomalies: Sequence[Anomaly]) -> Table | None:
    """Days on which a quantity of an arm was unusual, with the usual value.

    The table is None without any such day.
    """
    if not anomalies:
        return None
    rows = []
    for each in anomalies[:MOST_ROWS]:
        deviations = f"{each.deviations:.0f}" if each.deviations < 1000 else "> 1000"
        what = f"{each.quantity} [{each.unit}]"
        value = number_text(each.value)
        usual = number_text(each.usual)
        rows.append((each.arm, each.when, what, value, usual, deviations))
    return Table(
        "Unusual days",
        ("arm", "day", "what", "value", "usual", "standard deviations"),
        rows,
        "Compared with the median of the same arm over the period. A change of standby "
        "power or of the energy per cycle can also come from another model or another "
        "program; ask ur_energy history health about changes that stay.",
    )


def history_table(report: PlantReport) -> Table:
    """Where the figures are from: store, time zone, period and models."""
    fleet = report.fleet
    rows = [("store", report.store), ("days and hours", report.zone)]
    if len(fleet.days):
        names: set[str] = set()
        for text in fleet.models:
            names.update(text.split(", "))
        models = sorted(names - {""})
        listed = ", ".join(models[:MOST_MODELS])
        if len(models) > MOST_MODELS:
            listed += ", …"
        generic = sum("generic" in text for text in fleet.models)
        rows += [
            ("period", f"{day_of(fleet.days[0])} to {day_of(fleet.days[-1])}"),
            ("models", listed),
            ("arms with a generic model", f"{generic} of {len(fleet.arms)}"),
        ]
    note = (
        "Energy is that at the supply of the arm: bus voltage times current where the "
        "controller states them, else by the model; its computer and power supply are not included."
    )
    return Table("Where the figures are from", ("", ""), rows, note)


# The layout of the page of a plant.

_NO_ANOMALIES = (
    "No arm was unlike itself on any day, in standby power, in the share of the measured "
    "energy that its model leaves unexplained, or in the energy and duration of its cycles."
)


def plant_page(report: PlantReport) -> Page:
    """The page of a plant, to be rendered as HTML.

    Sections without content are left out.
    """
    fleet = report.fleet
    tariff = report.tariff
    days = fleet.days
    arms = items(*arm_charts(fleet), arms_table(fleet, tariff))
    works = items(cycle_chart(fleet.works), works_table(fleet.works, tariff))
    anomalies = items(anomalies_table(report.anomalies))
    no_anomalies = _NO_ANOMALIES if fleet.arms and not anomalies else ""
    sections = (
        PageSection("fleet", "The fleet", "", items(*plant_charts(fleet))),
        PageSection("arms", "The arms", "", arms),
        PageSection("cycles", "Cycles over time", "", works),
        PageSection("anomalies", "Anomalies", no_anomalies, anomalies),
        PageSection("source", "Source", "", items(history_table(report))),
    )
    where = f"Store {report.store}."
    if len(days):
        first = str(day_of(days[0]))
        last = str(day_of(days[-1]))
        span = first if first == last else f"{first} to {last}"
        where = f"Store {report.store}, {span}; days and hours of {report.zone}."
    return Page(
        title="Energy of the plant",
        subtitle=where,
        verdict=report.verdict,
        tiles=_tiles(report),
        joint_names=(),
        recordings=(),
        sections=[section for section in sections if section.items or section.text],
    )


def _tiles(report: PlantReport) -> list[Tile]:
    """The figures at the top of the page; none without any energy."""
    fleet = report.fleet
    tariff = report.tariff
    energy = fleet.total("energy")
    time = fleet.total("duration")
    if energy <= 0:
        return []
    standby = 100 * fleet.total("standby") / energy
    idle = 100 * (energy - fleet.total("motion")) / energy
    arms = f"by {len(fleet.arms)} arms in {duration_text(time)} of work"
    tiles = [
        Tile(energy_text(energy), arms),
        Tile(f"{energy / time:.0f} W", "mean power of an arm that is on"),
        Tile(f"{standby:.0f} %", "standby, which arms take at all times"),
        Tile(f"{idle:.0f} %", "of the energy without motion"),
        Tile(energy_text(fleet.total("left_on")), "in whole hours without motion"),
    ]
    price = "" if tariff.price is None else f"at {tariff.price:g} per kWh"
    for amount, of_what in _paid(tariff, fleet):
        tiles.append(Tile(amount, of_what.strip() or price))
    cycles = sum(float(work.sums["cycles"].sum()) for work in fleet.works)
    if cycles:
        tiles.append(Tile(f"{cycles:,.0f}", "program cycles"))
    return tiles
