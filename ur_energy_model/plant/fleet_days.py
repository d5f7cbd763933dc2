# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Energies of every arm on every day, of the fleet in every hour, and cycles by day.

This is what the report of a plant is made of. DuckDB sums up; the size of what is read
does not depend on the number of seconds in the store.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

import numpy as np

from ur_energy_model.plant.database import HistoryDatabase
from ur_energy_model.plant.summary import WHOLE
from ur_energy_model.typing import Array, Indices

QUANTITIES: tuple[str, ...] = (
    "energy", "standby", "motion", "left_on", "left_on_wall", "bus", "unexplained", "wall",
    "duration", "motion_time", "left_on_time", "measured", "unaccounted",
)  # fmt: skip
"""Quantities of an arm on a day; energies in J, times in s.

left_on is the energy in hours in which no joint moved at all, left_on_wall the same
energy at the mains, and left_on_time the time of these hours; bus is the measured energy,
and unexplained the part of it that the model does not explain; measured is the time in
which energy is measured.
"""
CYCLE_SUMS: tuple[str, ...] = (
    "cycles",
    "energy",
    "energy_squared",
    "wall",
    "duration",
    "idle",
)
"""Sums over the cycles of an arm's program on a day: their number, energy [J], squares of
their energies [J^2], energy at the mains [J], duration [s], and energy without motion [J]."""

_HOURS = """
    SELECT arm, CAST(second AS DATE) AS day, CAST(extract('hour' FROM second) AS INTEGER) AS hour,
        sum(total_energy) AS energy, sum(standby_energy) AS standby,
        sum(moving_energy) AS motion, sum(bus_energy) AS bus,
        sum(bus_energy - model_energy) AS unexplained,
        sum(wall_energy) AS wall, sum(accounted) AS duration,
        sum(moving_time) AS motion_time, sum(measured) AS measured,
        sum(unaccounted) AS unaccounted
    FROM seconds GROUP BY 1, 2, 3"""
_SUMS = """
    sum(energy) AS energy, sum(standby) AS standby, sum(motion) AS motion,
    sum(if(motion_time > 0, 0, energy)) AS left_on,
    sum(if(motion_time > 0, 0, wall)) AS left_on_wall, coalesce(sum(bus), 0) AS bus,
    coalesce(sum(unexplained), 0) AS unexplained, sum(wall) AS wall,
    sum(duration) AS duration, sum(motion_time) AS motion_time, sum(measured) AS measured,
    sum(if(motion_time > 0, 0, duration)) AS left_on_time, sum(unaccounted) AS unaccounted"""
_DAYS = f"""
    SELECT arm, day, hour, {_SUMS} FROM ({_HOURS})
    GROUP BY GROUPING SETS ((arm, day), (day, hour)) ORDER BY arm, day, hour"""
_WORKS = f"""
    SELECT arm, program, list(day ORDER BY day) AS day,
        {", ".join(f"list({name} ORDER BY day) AS {name}" for name in CYCLE_SUMS)}
    FROM (
        SELECT arm, coalesce(program, '') AS program, CAST(start AS DATE) AS day,
            count(*) AS cycles, sum(total_energy) AS energy,
            sum(total_energy * total_energy) AS energy_squared,
            sum(wall_energy) AS wall, sum(duration) AS duration,
            sum(idle_energy) AS idle
        FROM cycles WHERE {WHOLE} GROUP BY 1, 2, 3
    ) GROUP BY 1, 2 ORDER BY sum(energy) DESC, 1, 2"""
_ARMS = """
    SELECT arm, max(robot) AS robot, string_agg(DISTINCT model, ', ' ORDER BY model) AS models
    FROM seconds GROUP BY arm ORDER BY arm"""


@dataclass(frozen=True)
class Work:
    """The cycles of one program of one arm that were seen whole.

    Attributes:
        arm: name of the arm.
        program: name of the program; "" if it is not known.
        days: days with cycles [k], days since 1970.
        sums: CYCLE_SUMS by name [k].
    """

    arm: str
    program: str
    days: Indices
    sums: dict[str, Array]

    @property
    def name(self) -> str:
        """Arm and program in words; the arm alone if the program is not known."""
        return f"{self.arm}: {self.program}" if self.program else self.arm

    @property
    def mean(self) -> Array:
        """Mean energy of a cycle on each day [k], J."""
        return self.sums["energy"] / self.sums["cycles"]

    @property
    def deviation(self) -> Array:
        """Standard deviation of the energies of a day's cycles [k], J."""
        square = self.sums["energy_squared"] / self.sums["cycles"] - self.mean**2
        return np.asarray(np.sqrt(np.maximum(square, 0.0)))


@dataclass(frozen=True)
class FleetDays:
    """Energies of a fleet by day and hour.

    Attributes:
        arms: names of the arms in alphabetical order.
        robots: types of the arms.
        models: keys of the models of each arm.
        first: the first day, days since 1970.
        daily: QUANTITIES by name [arms, days], NaN where there are no rows.
        hourly: energies of the fleet [days, 24], J, NaN where there are no rows.
        works: programs, in descending order of energy.
    """

    arms: tuple[str, ...]
    robots: tuple[str, ...]
    models: tuple[str, ...]
    first: int
    daily: dict[str, Array]
    hourly: Array
    works: tuple[Work, ...]

    @property
    def days(self) -> Indices:
        """Consecutive days from the first to the last one [days], days since 1970."""
        return self.first + np.arange(self.hourly.shape[0], dtype=np.intp)

    def by_arm(self, quantity: str) -> Array:
        """Sums of one of QUANTITIES over the days [arms], J or s."""
        return np.asarray(np.nansum(self.daily[quantity], axis=1))

    def total(self, quantity: str) -> float:
        """Sum of one of QUANTITIES over arms and days, J or s."""
        return float(np.nansum(self.daily[quantity]))


_EPOCH = date(1970, 1, 1).toordinal()


def day_of(number: int) -> date:
    """The date of a number of days since 1970."""
    return date.fromordinal(int(number) + _EPOCH)


def read_fleet_days(database: HistoryDatabase) -> FleetDays:
    """Sum up the database's period by its days and hours.

    Raises:
        SqlError: the store cannot be read.
    """
    arms = database.rows(_ARMS)
    rows = database.rows(_DAYS)
    days = [row["day"].toordinal() - _EPOCH for row in rows]
    first = min(days, default=0)
    count = max(days) - first + 1 if days else 0
    number_of_arm = {row["arm"]: number for number, row in enumerate(arms)}
    daily = {name: np.full((len(arms), count), np.nan) for name in QUANTITIES}
    hourly = np.full((count, 24), np.nan)
    for day, row in zip(days, rows, strict=True):
        if row["arm"] is None:  # an hour of all arms
            hourly[day - first, row["hour"]] = row["energy"]
        else:
            for name, values in daily.items():
                values[number_of_arm[row["arm"]], day - first] = row[name]
    works = []
    for row in database.rows(_WORKS):
        work_days = np.array(row["day"], dtype="datetime64[D]").astype(np.intp)
        sums = {name: np.array(row[name], dtype=float) for name in CYCLE_SUMS}
        works.append(Work(row["arm"], row["program"], work_days, sums))
    return FleetDays(
        arms=tuple(row["arm"] for row in arms),
        robots=tuple(row["robot"] or "" for row in arms),
        models=tuple(row["models"] or "" for row in arms),
        first=first,
        daily=daily,
        hourly=hourly,
        works=tuple(works),
    )
