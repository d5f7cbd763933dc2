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
    Role,
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

UNEXPLAINED = (3.0, 10.0)
"""Largest share of the measured energy that the models leave unexplained, percent: good, fair."""
TOLD = 3  # anomalies that stand at the top of the page; the others are in a table


@dataclass(frozen=True)
class PlantReport:
    """The content of the page: of a store, with days and hours of an IANA zone."""

    store: str
    zone: str
    fleet: FleetDays
    anomalies: tuple[Anomaly, ...]
    tariff: Tariff
    lost: tuple[str, ...] = ()
    """Sentences about rows that the store has lost."""

    @property
    def verdict(self) -> ModelVerdict:
        """What an energy manager needs first."""
        fleet = self.fleet
        headline = "The store has no energy of this time."
        if fleet.arms:
            energy = fleet.total("energy")
            count = len(fleet.arms)
            days = len(fleet.days)
            used = f"{energy / 3.6e6:,.{1 if energy > 3.6e8 else 3}f} kWh"
            priced = " and ".join(
                f"{text}{of}" for text, of in _prices(self.tariff, fleet)
            )
            headline = (
                f"{count} arm{'s' * (count > 1)} used {used} in {days} day{'s' * (days > 1)}"
                f"{': ' if priced else ''}{priced}."
            )
        statements = tuple(_statements(self))
        grade = worst_of(item.grade for item in statements) if statements else "fair"
        return ModelVerdict(grade, headline, statements)


def make_plant_report(
    database: HistoryDatabase, store: str, tariff: Tariff | None = None
) -> PlantReport:
    """Sum up the store and period of a database, and find what is unusual.

    Raises:
        SqlError: the store cannot be read.
    """
    fleet = read_fleet_days(database)
    zone = database.period.zone.key
    lost = tuple(lost_sentences(database.holdings))
    return PlantReport(
        store, zone, fleet, find_anomalies(fleet), tariff or Tariff(), lost
    )


def _prices(tariff: Tariff, fleet: FleetDays) -> list[tuple[str, str]]:
    """Cost and CO₂ of all energy as texts, as far as the tariff has them."""
    paid = fleet.total("energy"), fleet.total("wall")
    cost = tariff.cost(*paid)
    emission = tariff.emission(*paid)
    priced = [] if cost is None else [(f"{cost:,.2f} {tariff.currency}", "")]
    return priced + ([] if emission is None else [(f"{emission:,.1f} kg", " of CO₂")])


def _statements(report: PlantReport) -> Iterator[Statement]:
    yield from (Statement("poor", sentence) for sentence in report.lost)
    fleet = report.fleet
    tariff = report.tariff
    energy = fleet.total("energy")
    if energy <= 0:
        return
    left_on = fleet.total("left_on")
    idle = energy - fleet.total("motion")
    cost = tariff.cost(left_on, fleet.total("left_on_wall"))
    worth = "" if cost is None else f", {cost:,.2f} {tariff.currency}"
    text = f"{100 * idle / energy:.0f} % of the energy was used while no joint moved"
    if left_on > 0.01 * energy:
        text += (
            f"; {100 * left_on / energy:.0f} % ({left_on / 3.6e6:,.1f} kWh{worth}) in whole hours "
            "without any motion, in which the arms could have been switched off"
        )
    yield Statement("fair" if left_on > 0.1 * energy else "good", f"{text}.")
    source = TotalSource.of(fleet.total("measured"), fleet.total("duration"))
    if (bus := fleet.total("bus")) > 0:
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
    for anomaly in report.anomalies[:TOLD]:
        yield Statement("fair", anomaly.text)
    if (more := len(report.anomalies) - TOLD) > 0:
        yield Statement("fair", f"The table of anomalies has {more} more.")


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
    """Arms by their energy, and their days."""
    if not len(fleet.days):
        return []
    order = np.argsort(-fleet.by_arm("energy"), kind="stable")[:SHOWN_ARMS]
    arms = [shortened(fleet.arms[k]) for k in order]
    energy, motion, left_on = (
        fleet.by_arm(name)[order] / JOULES_PER_KWH
        for name in ("energy", "motion", "left_on")
    )
    ranking = BarChart(
        key="arms",
        title="Arms by energy",
        caption="In motion, idle, and left on for whole hours without motion."
        + (
            f" The {SHOWN_ARMS} with the most energy."
            if len(fleet.arms) > SHOWN_ARMS
            else ""
        ),
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
    energies = fleet.daily["energy"][order] / JOULES_PER_KWH
    starts = fleet.days
    weekly = len(starts) > MOST_DAYS
    if weekly:
        week = (starts + 3) // 7  # that of day 4 (a Monday) is 1
        first = np.flatnonzero(np.diff(week, prepend=week[0] - 1))
        known = np.add.reduceat(np.isfinite(energies), first, axis=1) > 0
        sums = np.add.reduceat(np.nan_to_num(energies), first, axis=1)
        energies = np.where(known, sums, np.nan)
        starts = starts[first]
    dates = [day_of(day) for day in starts]
    of, span = ("week of ", "week") if weekly else ("", "day")
    names = [[f"{fleet.arms[k]}, {of}{day:%d %b %Y}" for day in dates] for k in order]
    ticks = [
        (k, f"{day:%d %b}") for k, day in enumerate(dates) if weekly or not day.weekday()
    ]
    days = HeatMap(
        key="arm_days",
        title=f"Arms by {span}",
        caption=f"Energy of each arm in each {span}; blank: no recording.",
        value_label="kWh",
        panels=[HeatPanel("", arms, names, energies, ticks)],
    )
    return [ranking, days]


def cycle_chart(works: Sequence[Work]) -> LineChart | None:
    """Energy per cycle by day, of the programs with the most energy."""
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
    more = f" The {SHOWN_WORKS} with the most energy of {len(works)}."
    return LineChart(
        key="cycles_over_time",
        title="Energy per cycle over time",
        caption="Mean of each day; 95 % of the day's cycles are in the band."
        + (more if len(works) > SHOWN_WORKS else ""),
        x_label="day",
        y_label="energy per cycle [J]",
        panels=panels,
        from_zero=True,
        group="days",
        dates=True,
    )


def _daily(fleet: FleetDays) -> LineChart:
    """Energy per day, stacked, as steps."""
    motion, energy, left_on = (
        np.nansum(fleet.daily[name], axis=0) / JOULES_PER_KWH
        for name in ("motion", "energy", "left_on")
    )
    x = (fleet.days[:, None] + [0.0, 1.0 - INSTANT]).reshape(-1)
    edges = [
        np.repeat(each, 2) for each in (0.0 * motion, motion, energy - left_on, energy)
    ]
    looks: tuple[tuple[str, Role, int | None], ...] = (
        ("motion", "model", None), ("idle", "measured", None), ("left on", "model", LEFT_ON_COLOUR)
    )  # fmt: skip
    lines = [
        Line(label, x, edges[k + 1], role, joint, base=edges[k])
        for k, (label, role, joint) in enumerate(looks)
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
        months = [
            f"{day_of(monday + 7 * column):%b}" for column in range(values.shape[1])
        ]
        ticks = [
            (k, name) for k, name in enumerate(months) if k == 0 or name != months[k - 1]
        ]
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
    """A name that fits beside a chart."""
    return name if len(name) <= most else f"{name[: most - 5]}…{name[-4:]}"


# Tables of many arms: energies, cycles, unusual days, and where the figures are from.

MOST_ROWS = 200


def arms_table(fleet: FleetDays, tariff: Tariff) -> Table | None:
    """Every arm: energy, shares, mean power, cost."""
    if not fleet.arms:
        return None
    sums = {name: fleet.by_arm(name) for name in fleet.daily}
    order = np.argsort(-sums["energy"], kind="stable")[:MOST_ROWS]
    names = ("energy", "wall", "duration", "measured", "bus", "unexplained", "standby", "motion",
             "left_on", "left_on_time")  # fmt: skip
    (
        energy,
        wall,
        time,
        measured,
        bus,
        unexplained,
        standby,
        motion,
        left_on,
        left_on_time,
    ) = (sums[name][order] for name in names)
    with np.errstate(divide="ignore", invalid="ignore"):
        figures = {
            "time [h]": time / 3600,
            "energy [kWh]": energy / JOULES_PER_KWH,
            "at the wall [kWh]": wall / JOULES_PER_KWH,
            "share of all [%]": 100 * energy / max(fleet.total("energy"), 1e-12),
            "measured [%]": np.where(time > 0, 100 * measured / time, np.nan),
            "unexplained [%]": np.where(bus > 0, 100 * unexplained / bus, np.nan),
            "mean [W]": np.where(time > 0, energy / time, np.nan),
            "standby [%]": np.where(energy > 0, 100 * standby / energy, np.nan),
            "idle [%]": np.where(energy > 0, 100 * (energy - motion) / energy, np.nan),
            "left on [h]": left_on_time / 3600,
            "left on [kWh]": left_on / JOULES_PER_KWH,
        }
    days = np.isfinite(fleet.daily["energy"]).sum(axis=1)
    rows: list[tuple[Cell, ...]] = [
        (fleet.arms[k], fleet.robots[k], f"{days[k]}", *values, *tariff.amounts(*paid))
        for k, paid, *values in zip(
            order,
            zip(energy.tolist(), wall.tolist(), strict=True),
            *(each.tolist() for each in figures.values()),
            strict=True,
        )
    ]
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
    """Cycles by arm and program."""
    if not works:
        return None
    columns = ["arm: program", "cycles", "duration [s]", "energy per cycle [J]",
               "standard deviation [J]", "idle [%]"]  # fmt: skip
    columns += [] if tariff.price is None else [f"1000 cycles [{tariff.currency}]"]
    rows = []
    for work in works[:MOST_ROWS]:
        count, energy, square, wall, duration, idle = (
            float(work.sums[name].sum()) for name in CYCLE_SUMS
        )
        mean = energy / count
        cost = tariff.cost(1000 * energy / count, 1000 * wall / count)
        spread = float(np.sqrt(max(square / count - mean**2, 0.0)))
        cells: list[Cell] = [work.name, f"{count:.0f}", duration / count, mean, spread]
        cells.append(100 * idle / energy if energy > 0 else None)
        rows.append(cells if cost is None else [*cells, cost])
    note = f"The first {MOST_ROWS} of {len(works)}." if len(works) > MOST_ROWS else ""
    return Table("Cycles", columns, rows, note)


def anomalies_table(anomalies: Sequence[Anomaly]) -> Table | None:
    """Unusual days."""
    if not anomalies:
        return None
    rows = [
        (
            *(each.arm, each.when, f"{each.quantity} [{each.unit}]"),
            *map(number_text, (each.value, each.usual)),
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
        models = sorted(
            {name for text in fleet.models for name in text.split(", ") if name}
        )
        generic = sum("generic" in text for text in fleet.models)
        rows += [
            ("period", f"{day_of(fleet.days[0])} to {day_of(fleet.days[-1])}"),
            ("models", ", ".join(models[:20]) + (", …" if len(models) > 20 else "")),
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
        span = " to ".join(dict.fromkeys(f"{day_of(day)}" for day in (days[0], days[-1])))
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
        *(Tile(text, of.strip() or at) for text, of in _prices(tariff, fleet)),
        *([Tile(f"{cycles:,.0f}", "program cycles")] if cycles else []),
    ]
