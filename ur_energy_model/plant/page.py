# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The page of a plant: many arms over months, in charts and tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.energy.powers import TotalSource
from ur_energy_model.energy.tariff import JOULES_PER_KWH, Tariff
from ur_energy_model.plant.database import HistoryDatabase
from ur_energy_model.plant.holdings import lost_sentences
from ur_energy_model.plant.summary import (
    CYCLE_SUMS,
    Anomaly,
    FleetDays,
    Work,
    day_of,
    find_anomalies,
    number_text,
    read_fleet_days,
)
from ur_energy_model.report.chart import (
    BarChart,
    Bars,
    Chart,
    HeatMap,
    HeatPanel,
    Line,
    LineChart,
    Panel,
)
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
from ur_energy_model.typing import Array, Indices

UNEXPLAINED = (3.0, 10.0)
"""Largest share of the measured energy that the models leave unexplained, percent: good, fair."""
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
        """What an energy manager needs first."""
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
    """Sum up the store and period of a database, and find what is unusual.

    Args:
        database: of the store and period.
        store: its folder or address, for people.
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
    """What all arms used, in one sentence."""
    energy = fleet.total("energy")
    digits = 1 if energy > 100.0 * JOULES_PER_KWH else 3
    arms = _counted(len(fleet.arms), "arm")
    days = _counted(len(fleet.days), "day")
    used = f"{arms} used {energy / JOULES_PER_KWH:,.{digits}f} kWh in {days}"
    paid = " and ".join(f"{amount}{of}" for amount, of in _paid(tariff, fleet))
    return f"{used}: {paid}." if paid else f"{used}."


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _paid(tariff: Tariff, fleet: FleetDays) -> list[tuple[str, str]]:
    """Cost and CO₂ of all energy, as far as the tariff has them: amount, and of what."""
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
    for sentence in report.lost:
        yield Statement("poor", sentence)
    fleet = report.fleet
    if fleet.total("energy") <= 0:
        return
    yield _idle_statement(fleet, report.tariff)
    source = TotalSource.of(fleet.total("measured"), fleet.total("duration"))
    bus = fleet.total("bus")
    if bus > 0:
        share = fleet.total("unexplained") / bus
        yield Statement(
            grade_of(abs(100 * share), UNEXPLAINED),
            f"The models explain {100 * (1 - share):.1f} % of the measured energy.",
        )
    yield Statement("good", f"Source of the energy: {source.words()}.")
    gaps = fleet.total("unaccounted")
    known = fleet.total("duration")
    if gaps > 0.01 * (gaps + known):
        share = 100 * gaps / (gaps + known)
        missing = f"Gaps in the recordings are {share:.1f} % of the time: their energy is"
        yield Statement("fair", f"{missing} not included.")
    for anomaly in report.anomalies[:MOST_STATED]:
        yield Statement("fair", anomaly.text)
    more = len(report.anomalies) - MOST_STATED
    if more > 0:
        yield Statement("fair", f"The table of anomalies has {more} more.")


def _idle_statement(fleet: FleetDays, tariff: Tariff) -> Statement:
    """Energy without motion, and that of whole hours without motion."""
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
            f"; {100 * left_on / energy:.0f} % ({amounts}) in whole hours without any motion, in "
            "which the arms could have been switched off"
        )
    return Statement("fair" if left_on > 0.1 * energy else "good", f"{text}.")


# Charts of many arms over months: days, hours of the week, arms and cycles.

WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
SHOWN_ARMS = 40  # arms in charts; the table has more
SHOWN_WORKS = 9  # programs whose cycles are drawn
MOST_DAYS = 100  # columns of a heat map; of a longer period they are weeks
LEFT_ON_COLOUR = 1
INSTANT = 1e-6  # between the end of a step and the begin of the next one, in days


def plant_charts(fleet: FleetDays) -> list[Chart]:
    """Charts of the fleet's energy over time."""
    if not len(fleet.days):
        return []
    charts = (_daily(fleet), _measured(fleet), _calendar(fleet), _week(fleet))
    return [chart for chart in charts if chart is not None]


def arm_charts(fleet: FleetDays) -> list[Chart]:
    """The arms with the most energy: ranked, and by day; none where nothing was recorded."""
    if not len(fleet.days):
        return []
    order = np.argsort(-fleet.by_arm("energy"), kind="stable")[:SHOWN_ARMS]
    return [_ranking(fleet, order), _arm_days(fleet, order)]


def _ranking(fleet: FleetDays, order: Indices) -> BarChart:
    """Energy of arms, by their numbers in the order of the bars."""
    arms = [shortened(fleet.arms[k]) for k in order]
    energy = fleet.by_arm("energy")[order] / JOULES_PER_KWH
    motion = fleet.by_arm("motion")[order] / JOULES_PER_KWH
    left_on = fleet.by_arm("left_on")[order] / JOULES_PER_KWH
    caption = "In motion, idle, and left on for whole hours without motion."
    if len(fleet.arms) > SHOWN_ARMS:
        caption += f" The {SHOWN_ARMS} with the most energy."
    return BarChart(
        key="arms",
        title="Arms by energy",
        caption=caption,
        y_label="energy [kWh]",
        categories=arms,
        joints=[None] * len(arms),
        bars=(
            Bars("motion", motion),
            Bars("idle", energy - motion - left_on, role="measured"),
            Bars("left on", np.where(left_on > 0, left_on, np.nan), joint=LEFT_ON_COLOUR),
        ),
        stacked=True,
    )


def _arm_days(fleet: FleetDays, order: Indices) -> HeatMap:
    """Energy of arms, by their numbers from top to bottom, on each day or in each week."""
    energies = fleet.daily["energy"][order] / JOULES_PER_KWH
    starts = fleet.days
    weekly = len(starts) > MOST_DAYS
    of = ""
    span = "day"
    if weekly:
        of = "week of "
        span = "week"
        week = (starts + 3) // 7  # that of day 4 (a Monday) is 1
        first = np.flatnonzero(np.diff(week, prepend=week[0] - 1))
        known = np.add.reduceat(np.isfinite(energies), first, axis=1) > 0
        sums = np.add.reduceat(np.nan_to_num(energies), first, axis=1)
        energies = np.where(known, sums, np.nan)
        starts = starts[first]
    dates = [day_of(day) for day in starts]
    arms = [fleet.arms[k] for k in order]
    names = [[f"{arm}, {of}{day:%d %b %Y}" for day in dates] for arm in arms]
    ticks = []
    for column, day in enumerate(dates):
        if weekly or day.weekday() == 0:
            ticks.append((column, f"{day:%d %b}"))
    rows = [shortened(arm) for arm in arms]
    return HeatMap(
        key="arm_days",
        title=f"Arms by {span}",
        caption=f"Energy of each arm in each {span}; blank: no recording.",
        value_label="kWh",
        panels=[HeatPanel("", rows, names, energies, ticks)],
    )


def cycle_chart(works: Sequence[Work]) -> LineChart | None:
    """Energy per cycle by day, of the programs with the most energy.

    Args:
        works: cycles of each arm and program by day, the one with the most energy first.

    Returns:
        The chart; None without any cycle.
    """
    if not works:
        return None
    panels = []
    for work in works[:SHOWN_WORKS]:
        days = work.days.astype(float)
        half_width = CONFIDENCE * work.deviation
        one = len(days) == 1
        line = Line("mean of the day", days, work.mean, half_width=half_width, points=one)
        panels.append(
            Panel(work.name, [line], note=f"{int(work.sums['cycles'].sum())} cycles")
        )
    caption = "Mean of each day; 95 % of the day's cycles are in the band."
    if len(works) > SHOWN_WORKS:
        caption += f" The {SHOWN_WORKS} with the most energy of {len(works)}."
    return LineChart(
        key="cycles_over_time",
        title="Energy per cycle over time",
        caption=caption,
        x_label="day",
        y_label="energy per cycle [J]",
        panels=panels,
        from_zero=True,
        group="days",
        dates=True,
    )


def _daily(fleet: FleetDays) -> LineChart:
    """Energy per day, stacked, as steps."""

    def steps(values: Array) -> Array:
        """Values of days [days] at the begin and at the end of each day [2 days]."""
        return np.repeat(values, 2)

    motion = np.nansum(fleet.daily["motion"], axis=0) / JOULES_PER_KWH
    energy = np.nansum(fleet.daily["energy"], axis=0) / JOULES_PER_KWH
    left_on = np.nansum(fleet.daily["left_on"], axis=0) / JOULES_PER_KWH
    x = (fleet.days[:, None] + [0.0, 1.0 - INSTANT]).reshape(-1)
    nothing = steps(np.zeros_like(motion))
    until_motion = steps(motion)
    until_idle = steps(energy - left_on)
    lines = [
        Line("motion", x, until_motion, base=nothing),
        Line("idle", x, until_idle, "measured", base=until_motion),
        Line("left on", x, steps(energy), joint=LEFT_ON_COLOUR, base=until_idle),
    ]
    return LineChart(
        key="daily_energy",
        title="Energy per day",
        caption="All arms: in motion, idle (in hours with some motion), and left on (in hours in "
        "which the arm did not move at all).",
        x_label="day",
        y_label="energy [kWh]",
        panels=[Panel("", lines)],
        group="days",
        dates=True,
    )


def _measured(fleet: FleetDays) -> LineChart | None:
    """Measured and modelled energy per day, and the share that is unexplained; None without any."""
    measured = np.nansum(fleet.daily["bus"], axis=0)
    unexplained = np.nansum(fleet.daily["unexplained"], axis=0)
    known = measured > 0
    if not known.any():
        return None
    days = fleet.days[known].astype(float)
    of_bus = measured[known] / JOULES_PER_KWH
    of_model = (measured - unexplained)[known] / JOULES_PER_KWH
    share = 100 * unexplained[known] / measured[known]
    one = len(days) == 1
    return LineChart(
        key="measured_energy",
        title="Measured and modelled energy per day",
        caption="All arms while their bus power is measured, and the share of the measured energy "
        "that the models leave unexplained.",
        x_label="day",
        y_label="energy [kWh]",
        panels=[
            Panel(
                "",
                [
                    Line("measured", days, of_bus, "measured", points=one),
                    Line("model", days, of_model, points=one),
                ],
            ),
            Panel(
                "Unexplained: measured minus model",
                [Line("unexplained", days, share, points=one)],
                y_label="share [%]",
            ),
        ],
        columns=1,
        group="days",
        dates=True,
    )


def _calendar(fleet: FleetDays) -> HeatMap:
    """Energy of each day, one column per week, one panel per year."""
    energy = np.nansum(fleet.daily["energy"], axis=0) / JOULES_PER_KWH
    energy[np.isnan(fleet.daily["energy"]).all(axis=0)] = np.nan
    dates = [day_of(day) for day in fleet.days]
    panels = []
    for year in sorted({day.year for day in dates}):
        chosen = [k for k, day in enumerate(dates) if day.year == year]
        monday = fleet.days[chosen[0]] - dates[chosen[0]].weekday()
        week = (fleet.days[chosen] - monday) // 7
        values = np.full((7, int(week[-1]) + 1), np.nan)
        names = [[""] * values.shape[1] for _ in WEEKDAYS]
        for k, column in zip(chosen, week.tolist(), strict=True):
            row = dates[k].weekday()
            values[row, column] = energy[k]
            names[row][column] = f"{WEEKDAYS[row]} {dates[k]:%d %b %Y}"
        ticks: list[tuple[int, str]] = []
        for column in range(values.shape[1]):
            month = f"{day_of(monday + 7 * column):%b}"
            if not ticks or month != ticks[-1][1]:
                ticks.append((column, month))
        panels.append(HeatPanel(str(year), WEEKDAYS, names, values, ticks))
    return HeatMap(
        key="calendar",
        title="Calendar",
        caption="Energy of all arms on each day; one column per week.",
        value_label="kWh",
        panels=panels,
    )


def _week(fleet: FleetDays) -> HeatMap:
    """Mean power of the fleet in each hour of the week."""
    weekday = np.array([day_of(day).weekday() for day in fleet.days])
    values = np.full((7, 24), np.nan)
    for row in np.unique(weekday):
        of_day = fleet.hourly[weekday == row]
        values[row] = np.nan_to_num(of_day).mean(axis=0) / 3600
        values[row, np.isnan(of_day).all(axis=0)] = np.nan
    names = [
        [f"{day} {h:02d}:00 to {h + 1:02d}:00" for h in range(24)] for day in WEEKDAYS
    ]
    ticks = [(hour, f"{hour:02d}:00") for hour in range(0, 24, 3)]
    return HeatMap(
        key="week",
        title="Hours of the week",
        caption="Mean power of all arms together; hours without a recording count as 0, and hours "
        "that never have one are blank. Energy at night and on Sundays is often that of arms that "
        "were not switched off.",
        value_label="W",
        panels=[HeatPanel("", WEEKDAYS, names, values, ticks)],
    )


def shortened(name: str, most: int = 14) -> str:
    """A name that fits beside a chart: its middle is left out.

    Args:
        name: of any length.
        most: characters that fit.
    """
    return name if len(name) <= most else f"{name[: most - 5]}…{name[-4:]}"


# Tables of many arms: energies, cycles, unusual days, and where the figures are from.

MOST_ROWS = 200  # of a table
MOST_MODELS = 20  # that are named


def arms_table(fleet: FleetDays, tariff: Tariff) -> Table | None:
    """Every arm: energy, shares, mean power, cost; the arm with the most energy first.

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
        "Standby is what the arm takes at all times, also in motion; idle is all energy while no "
        "joint moves; left on are the hours without any motion, a part of idle. Measured is the "
        "share of the time, unexplained what the model lacks of the measured energy."
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
    columns += [] if tariff.price is None else [f"1000 cycles [{tariff.currency}]"]
    rows = []
    for work in works[:MOST_ROWS]:
        sums = {name: float(work.sums[name].sum()) for name in CYCLE_SUMS}
        count = sums["cycles"]
        energy = sums["energy"]
        mean = energy / count
        cost = tariff.cost(1000 * mean, 1000 * sums["wall"] / count)
        spread = float(np.sqrt(max(sums["energy_squared"] / count - mean**2, 0.0)))
        cells: list[Cell] = [
            work.name,
            f"{count:.0f}",
            sums["duration"] / count,
            mean,
            spread,
        ]
        cells.append(100 * sums["idle"] / energy if energy > 0 else None)
        rows.append(cells if cost is None else [*cells, cost])
    note = f"The first {MOST_ROWS} of {len(works)}." if len(works) > MOST_ROWS else ""
    return Table("Cycles", columns, rows, note)


def anomalies_table(anomalies: Sequence[Anomaly]) -> Table | None:
    """Unusual days."""
    if not anomalies:
        return None
    rows = [
        (
            each.arm,
            each.when,
            f"{each.quantity} [{each.unit}]",
            number_text(each.value),
            number_text(each.usual),
            f"{each.deviations:.0f}" if each.deviations < 1000 else "> 1000",
        )
        for each in anomalies[:MOST_ROWS]
    ]
    return Table(
        "Unusual days",
        ("arm", "day", "what", "value", "usual", "standard deviations"),
        rows,
        "Compared with the median of the same arm over the period. A change of standby power or "
        "of the energy per cycle can also come from another model or another program; ask "
        "ur_energy history health about changes that stay.",
    )


def history_table(report: PlantReport) -> Table:
    """Where the figures are from."""
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
        "Energy is that at the supply of the arm: bus voltage times current where the controller "
        "states them, else by the model; its computer and power supply are not included."
    )
    return Table("Where the figures are from", ("", ""), rows, note)


# The layout of the page of a plant.

_NO_ANOMALIES = (
    "No arm was unlike itself on any day, in standby power, in the share of the measured energy "
    "that its model leaves unexplained, or in the energy and duration of its cycles."
)


def plant_page(report: PlantReport) -> Page:
    """The page of a plant."""
    fleet = report.fleet
    tariff = report.tariff
    days = report.fleet.days
    anomalies = items(anomalies_table(report.anomalies))
    works = items(cycle_chart(fleet.works), works_table(fleet.works, tariff))
    sections = (
        PageSection("fleet", "The fleet", "", items(*plant_charts(fleet))),
        PageSection(
            "arms", "The arms", "", items(*arm_charts(fleet), arms_table(fleet, tariff))
        ),
        PageSection("cycles", "Cycles over time", "", works),
        PageSection(
            "anomalies", "Anomalies", "" if anomalies else _NO_ANOMALIES, anomalies
        ),
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
        sections=[each for each in sections if each.items or (each.text and fleet.arms)],
    )


def _tiles(report: PlantReport) -> list[Tile]:
    fleet = report.fleet
    tariff = report.tariff
    energy = fleet.total("energy")
    time = fleet.total("duration")
    if energy <= 0:
        return []
    share = 100 / energy
    at = "" if tariff.price is None else f"at {tariff.price:g} per kWh"
    cycles = sum(float(work.sums["cycles"].sum()) for work in fleet.works)
    return [
        Tile(
            energy_text(energy),
            f"by {len(fleet.arms)} arms in {duration_text(time)} of work",
        ),
        Tile(f"{energy / time:.0f} W", "mean power of an arm that is on"),
        Tile(
            f"{share * fleet.total('standby'):.0f} %",
            "standby, which arms take at all times",
        ),
        Tile(
            f"{share * (energy - fleet.total('motion')):.0f} %",
            "of the energy without motion",
        ),
        Tile(energy_text(fleet.total("left_on")), "in whole hours without motion"),
        *(Tile(text, of.strip() or at) for text, of in _paid(tariff, fleet)),
        *([Tile(f"{cycles:,.0f}", "program cycles")] if cycles else []),
    ]
