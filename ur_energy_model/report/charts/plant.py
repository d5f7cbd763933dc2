"""Charts of many arms over months: days, hours of the week, arms and cycles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.plant.history.fleet_days import FleetDays, Work, day_of
from ur_energy_model.report.charts.chart import (
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
from ur_energy_model.report.tariff import JOULES_PER_KWH
from ur_energy_model.typing import Array, Indices

WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
SHOWN_ARMS = 40
"""Arms in charts; the table has more."""
SHOWN_WORKS = 9
"""Programs whose cycles are drawn."""
MOST_DAYS = 100
"""Columns of a heat map; of a longer period they are weeks."""
LEFT_ON_COLOUR = 1
INSTANT = 1e-6
"""Between the end of a step and the begin of the next one, in days."""


def plant_charts(fleet: FleetDays) -> list[Chart]:
    """Charts of the fleet's energy over time."""
    return [_daily(fleet), _calendar(fleet), _week(fleet)] if len(fleet.days) else []


def arm_charts(fleet: FleetDays) -> list[Chart]:
    """Arms by their energy, and their days."""
    if not len(fleet.days):
        return []
    order = np.argsort(-fleet.by_arm("energy"), kind="stable")[:SHOWN_ARMS]
    return [_ranking(fleet, order), _arm_days(fleet, order)]


def cycle_chart(works: Sequence[Work]) -> LineChart | None:
    """Energy per cycle by day, of the programs with the most energy."""
    if not works:
        return None
    panels = [
        Panel(
            work.name,
            (
                Line(
                    "mean of the day",
                    work.days.astype(float),
                    work.mean,
                    half_width=CONFIDENCE * work.deviation,
                    points=len(work.days) == 1,
                ),
            ),
            note=f"{int(work.sums['cycles'].sum())} cycles",
        )
        for work in works[:SHOWN_WORKS]
    ]
    more = f" The {SHOWN_WORKS} with the most energy of {len(works)}."
    return LineChart(
        key="cycles_over_time",
        title="Energy per cycle over time",
        caption="Mean of each day; 95 % of the day's cycles are in the band."
        + (more if len(works) > SHOWN_WORKS else ""),
        x_label="day",
        y_label="energy per cycle [J]",
        panels=tuple(panels),
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
    idle = energy - motion - left_on
    x = (fleet.days[:, None] + [0.0, 1.0 - INSTANT]).reshape(-1)

    def area(label: str, low: Array, high: Array, role: Role, joint: int | None) -> Line:
        return Line(label, x, np.repeat(high, 2), role, joint, base=np.repeat(low, 2))

    zero = np.zeros(len(motion))
    return LineChart(
        key="daily_energy",
        title="Energy per day",
        caption="All arms: in motion, idle (in hours with some motion), and left on (in hours in "
        "which the arm did not move at all).",
        x_label="day",
        y_label="energy [kWh]",
        panels=(
            Panel(
                "",
                (
                    area("motion", zero, motion, "model", None),
                    area("idle", motion, motion + idle, "measured", None),
                    area("left on", motion + idle, energy, "model", LEFT_ON_COLOUR),
                ),
            ),
        ),
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
        weeks = [day_of(monday + 7 * column) for column in range(values.shape[1])]
        ticks = tuple(
            (column, f"{day:%b}")
            for column, day in enumerate(weeks)
            if column == 0 or day.month != weeks[column - 1].month
        )
        panels.append(HeatPanel(str(year), WEEKDAYS, _cells(names), values, ticks))
    return HeatMap(
        key="calendar",
        title="Calendar",
        caption="Energy of all arms on each day; one column per week.",
        value_label="kWh",
        panels=tuple(panels),
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
        [f"{day} {hour:02d}:00 to {hour + 1:02d}:00" for hour in range(24)] for day in WEEKDAYS
    ]
    return HeatMap(
        key="week",
        title="Hours of the week",
        caption="Mean power of all arms together; hours without a recording count as 0, and hours "
        "that never have one are blank. Energy at night and on Sundays is often that of arms that "
        "nobody switched off.",
        value_label="W",
        panels=(
            HeatPanel(
                "",
                WEEKDAYS,
                _cells(names),
                values,
                tuple((hour, f"{hour:02d}:00") for hour in range(0, 24, 3)),
            ),
        ),
    )


def _ranking(fleet: FleetDays, order: Indices) -> BarChart:
    energy, motion, left_on = (
        fleet.by_arm(name)[order] / JOULES_PER_KWH for name in ("energy", "motion", "left_on")
    )
    return BarChart(
        key="arms",
        title="Arms by energy",
        caption="In motion, idle, and left on for whole hours without motion."
        + (f" The {SHOWN_ARMS} with the most energy." if len(fleet.arms) > SHOWN_ARMS else ""),
        y_label="energy [kWh]",
        categories=tuple(shortened(fleet.arms[k]) for k in order),
        joints=(None,) * len(order),
        bars=(
            Bars("motion", motion),
            Bars("idle", energy - motion - left_on, role="measured"),
            Bars("left on", np.where(left_on > 0, left_on, np.nan), joint=LEFT_ON_COLOUR),
        ),
        stacked=True,
    )


def _arm_days(fleet: FleetDays, order: Indices) -> HeatMap:
    """Energy of each arm on each day, or in each week."""
    energy = fleet.daily["energy"][order] / JOULES_PER_KWH
    starts = fleet.days
    weekly = len(starts) > MOST_DAYS
    if weekly:
        week = (starts + 3) // 7  # that of day 4 (a Monday) is 1
        first = np.flatnonzero(np.diff(week, prepend=week[0] - 1))
        known = np.add.reduceat(np.isfinite(energy), first, axis=1) > 0
        energy = np.where(known, np.add.reduceat(np.nan_to_num(energy), first, axis=1), np.nan)
        starts = starts[first]
    dates = [day_of(day) for day in starts]
    of = "week of " if weekly else ""
    names = [[f"{fleet.arms[k]}, {of}{day:%d %b %Y}" for day in dates] for k in order]
    ticks = tuple(
        (column, f"{day:%d %b}") for column, day in enumerate(dates) if weekly or not day.weekday()
    )
    return HeatMap(
        key="arm_days",
        title=f"Arms by {'week' if weekly else 'day'}",
        caption=f"Energy of each arm in each {'week' if weekly else 'day'}; blank: no recording.",
        value_label="kWh",
        panels=(
            HeatPanel(
                "", tuple(shortened(fleet.arms[k]) for k in order), _cells(names), energy, ticks
            ),
        ),
    )


def shortened(name: str, most: int = 14) -> str:
    """A name that fits beside a chart."""
    return name if len(name) <= most else f"{name[: most - 5]}…{name[-4:]}"


def _cells(names: list[list[str]]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(row) for row in names)
