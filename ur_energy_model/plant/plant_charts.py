# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Charts of many arms over months: days, hours of the week, arms and cycles.

Energies are in kWh at the supply of the arms, days are in the time zone of the question.
*Left on* is the energy of whole hours in which an arm did not move.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.energy.tariff import JOULES_PER_KWH
from ur_energy_model.plant.fleet_days import FleetDays, Work, day_of
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
from ur_energy_model.typing import Array, Indices

WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
SHOWN_ARMS = 40  # arms in charts; the table has more
SHOWN_WORKS = 9  # programs whose cycles are drawn
MOST_DAYS = 100  # columns of a heat map; of a longer period they are weeks
LEFT_ON_COLOUR = 1  # number of a joint's colour
INSTANT = 1e-6  # time between the end of a step and the begin of the next step [days]


def plant_charts(fleet: FleetDays) -> list[Chart]:
    """Charts of the energy of all arms together over time.

    Args:
        fleet: energies by day and hour.

    Returns:
        Energy per day, measured and modelled energy (where anything is measured),
        calendar, and hours of the week; none where nothing was recorded.
    """
    if not len(fleet.days):
        return []
    charts = (_daily(fleet), _measured(fleet), _calendar(fleet), _week(fleet))
    return [chart for chart in charts if chart is not None]


def arm_charts(fleet: FleetDays) -> list[Chart]:
    """Charts of the SHOWN_ARMS arms with the most energy.

    Args:
        fleet: energies by day.

    Returns:
        The arms ranked by energy, and their energy by day; none where nothing was
        recorded.
    """
    if not len(fleet.days):
        return []
    order = np.argsort(-fleet.by_arm("energy"), kind="stable")[:SHOWN_ARMS]
    return [_ranking(fleet, order), _arm_days(fleet, order)]


def _ranking(fleet: FleetDays, order: Indices) -> BarChart:
    """Energy of arms, one bar each: in motion, idle and left on.

    Args:
        fleet: energies by day.
        order: numbers of the arms, in the order of the bars.
    """
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
    """Energy of arms on each day, or in each week of a period of more than MOST_DAYS days.

    Args:
        fleet: energies by day.
        order: numbers of the arms, from top to bottom.
    """
    energies = fleet.daily["energy"][order] / JOULES_PER_KWH
    starts = fleet.days
    weekly = len(starts) > MOST_DAYS
    span = "day"
    if weekly:
        span = "week"
        energies, starts = _by_week(energies, starts)
    dates = [day_of(day) for day in starts]
    names = []
    rows = []
    for k in order:
        arm = fleet.arms[k]
        prefix = f"{arm}, week of" if weekly else f"{arm},"
        names.append([f"{prefix} {day:%d %b %Y}" for day in dates])
        rows.append(shortened(arm))
    ticks = []
    for column, day in enumerate(dates):
        if weekly or day.weekday() == 0:
            ticks.append((column, f"{day:%d %b}"))
    return HeatMap(
        key="arm_days",
        title=f"Arms by {span}",
        caption=f"Energy of each arm in each {span}; blank: no recording.",
        value_label="kWh",
        panels=[HeatPanel("", rows, names, energies, ticks)],
    )


def _by_week(energies: Array, days: Indices) -> tuple[Array, Indices]:
    """Sums of energies over calendar weeks, which begin on Monday.

    Args:
        energies: energies by arm and day [arms, days], NaN where there is none.
        days: consecutive days since 1970 [days].

    Returns:
        Energies [arms, weeks], NaN where no day has one, and the first day of each week
        within the period [weeks].
    """
    week = (days + 3) // 7  # day 4, a Monday, begins week 1
    first = np.flatnonzero(np.diff(week, prepend=week[0] - 1))
    known = np.add.reduceat(np.isfinite(energies), first, axis=1) > 0
    sums = np.add.reduceat(np.nan_to_num(energies), first, axis=1)
    return np.where(known, sums, np.nan), days[first]


def cycle_chart(works: Sequence[Work]) -> LineChart | None:
    """Energy per cycle by day, of the programs with the most energy.

    Args:
        works: cycles of each arm's program by day, the program with the most energy
            first.

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
        cycles = int(work.sums["cycles"].sum())
        panels.append(Panel(work.name, [line], note=f"{cycles} cycles"))
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
    """Energy of all arms per day as stacked areas: in motion, idle and left on.

    Each day has two points, at its begin and at its end, so that areas have steps.
    """

    def steps(quantity: str) -> Array:
        """A quantity of all arms at the begin and at the end of each day [2 days], kWh."""
        return np.repeat(np.nansum(fleet.daily[quantity], axis=0), 2) / JOULES_PER_KWH

    time = (fleet.days[:, None] + [0.0, 1.0 - INSTANT]).reshape(-1)
    motion = steps("motion")
    energy = steps("energy")
    used = energy - steps("left_on")
    lines = [
        Line("motion", time, motion, base=np.zeros_like(motion)),
        Line("idle", time, used, "measured", base=motion),
        Line("left on", time, energy, joint=LEFT_ON_COLOUR, base=used),
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
    """Measured and modelled energy per day, and the share that the models leave unexplained.

    Days without measured energy are left out; None where no day has any.
    """
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
    energies = [
        Line("measured", days, of_bus, "measured", points=one),
        Line("model", days, of_model, points=one),
    ]
    shares = [Line("unexplained", days, share, points=one)]
    return LineChart(
        key="measured_energy",
        title="Measured and modelled energy per day",
        caption="All arms while their bus power is measured, and the share of the measured energy "
        "that the models leave unexplained.",
        x_label="day",
        y_label="energy [kWh]",
        panels=[
            Panel("", energies),
            Panel("Unexplained: measured minus model", shares, y_label="share [%]"),
        ],
        columns=1,
        group="days",
        dates=True,
    )


def _calendar(fleet: FleetDays) -> HeatMap:
    """Energy of all arms on each day: a panel per year, a column per week, a row per weekday."""
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
    """Mean power of the fleet in each hour of the week, a row per weekday.

    Hours without a recording count as 0; hours of the week that never have one are blank.
    """
    weekday = np.array([day_of(day).weekday() for day in fleet.days])
    power = np.full((7, 24), np.nan)
    for row in np.unique(weekday):
        energies = fleet.hourly[weekday == row]
        power[row] = np.nan_to_num(energies).mean(axis=0) / 3600
        power[row, np.isnan(energies).all(axis=0)] = np.nan
    hours = [f"{hour:02d}:00 to {hour + 1:02d}:00" for hour in range(24)]
    names = [[f"{day} {hour}" for hour in hours] for day in WEEKDAYS]
    ticks = [(hour, f"{hour:02d}:00") for hour in range(0, 24, 3)]
    return HeatMap(
        key="week",
        title="Hours of the week",
        caption="Mean power of all arms together; hours without a recording count as 0, and hours "
        "that never have one are blank. Energy at night and on Sundays is often that of "
        "arms that were not switched off.",
        value_label="W",
        panels=[HeatPanel("", WEEKDAYS, names, power, ticks)],
    )


def shortened(name: str, most: int = 14) -> str:
    """A name that fits beside a chart: its middle is left out.

    Args:
        name: name of any length.
        most: characters that fit.
    """
    return name if len(name) <= most else f"{name[: most - 5]}…{name[-4:]}"
