"""FleetDays: energies of every arm on every day, of the fleet in every hour, and cycles by day.

This is all that the report of a plant is made of; its size does not depend on the number of
seconds in the store.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np

from ur_energy_model.plant.history.database import HistoryDatabase
from ur_energy_model.typing import Array, Indices

QUANTITIES: tuple[str, ...] = (
    "energy", "standby", "motion", "left_on", "bus", "bus_model", "duration", "motion_time",
    "left_on_time", "unaccounted",
)  # fmt: skip
"""Of an arm on a day, J and s. left_on is the energy in hours in which no joint moved at all;
bus_model is that by the model while the bus was measured."""
CYCLE_SUMS: tuple[str, ...] = ("cycles", "energy", "energy_squared", "duration", "idle")
"""Of an arm's program on a day: number, J, J^2, s, J."""

_HOURS = """
    SELECT arm, CAST(second AS DATE) AS day, CAST(extract('hour' FROM second) AS INTEGER) AS hour,
        sum(total_energy) AS energy, sum(standby_energy) AS standby,
        sum(moving_energy) AS motion, sum(bus_energy) AS bus,
        sum(if(bus_energy IS NULL, 0, total_energy)) AS bus_model, sum(accounted) AS duration,
        sum(moving_time) AS motion_time, sum(unaccounted) AS unaccounted
    FROM seconds GROUP BY 1, 2, 3"""
_SUMS = """
    sum(energy) AS energy, sum(standby) AS standby, sum(motion) AS motion,
    sum(if(motion_time > 0, 0, energy)) AS left_on, coalesce(sum(bus), 0) AS bus,
    sum(bus_model) AS bus_model, sum(duration) AS duration, sum(motion_time) AS motion_time,
    sum(if(motion_time > 0, 0, duration)) AS left_on_time, sum(unaccounted) AS unaccounted"""
_DAYS = f"""
    SELECT arm, day, hour, {_SUMS} FROM ({_HOURS})
    GROUP BY GROUPING SETS ((arm, day), (day, hour)) ORDER BY arm, day, hour"""
_CYCLES = """
    SELECT arm, coalesce(program, '') AS program, CAST(start AS DATE) AS day, count(*) AS cycles,
        sum(total_energy) AS energy, sum(total_energy * total_energy) AS energy_squared,
        sum(duration) AS duration, sum(idle_energy) AS idle
    FROM cycles GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"""
_ARMS = """
    SELECT arm, max(robot) AS robot, string_agg(DISTINCT model, ', ' ORDER BY model) AS models
    FROM seconds GROUP BY arm ORDER BY arm"""


@dataclass(frozen=True)
class Work:
    """The cycles of one program of one arm, by day.

    Attributes:
        arm, program: names; "" for a program whose name is not known.
        days: with cycles [k], days since 1970.
        sums: CYCLE_SUMS by name [k].
    """

    arm: str
    program: str
    days: Indices
    sums: dict[str, Array]

    @property
    def name(self) -> str:
        """In words."""
        return f"{self.arm}: {self.program}" if self.program else self.arm

    @property
    def mean(self) -> Array:
        """Energy per cycle [k], J."""
        return self.sums["energy"] / self.sums["cycles"]

    @property
    def deviation(self) -> Array:
        """Standard deviation of the energies of a day's cycles [k], J."""
        square = self.sums["energy_squared"] / self.sums["cycles"] - self.mean**2
        return np.asarray(np.sqrt(np.maximum(square, 0.0)))


@dataclass(frozen=True)
class FleetDays:
    """Energies of a fleet.

    Attributes:
        arms: names, in alphabetical order.
        robots, models: type of each arm; models that were used for it.
        first: first day, days since 1970.
        daily: QUANTITIES by name [arms, days]; NaN where an arm has no rows.
        hourly: energy of the fleet [days, 24], J; NaN where there are no rows.
        works: cycles, those with the most energy first.
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
        """Days since 1970 of the columns."""
        return self.first + np.arange(self.hourly.shape[0], dtype=np.intp)

    def by_arm(self, quantity: str) -> Array:
        """Sums over the days [arms]."""
        return np.asarray(np.nansum(self.daily[quantity], axis=1))

    def total(self, quantity: str) -> float:
        """Sum over arms and days."""
        return float(np.nansum(self.daily[quantity]))


def day_of(number: int) -> date:
    """The date of a number of days since 1970."""
    return date.fromordinal(int(number) + _EPOCH)


_EPOCH = date(1970, 1, 1).toordinal()


def read_fleet_days(database: HistoryDatabase) -> FleetDays:
    """Sum up the database's period by its days and hours.

    Raises:
        SqlError: the store cannot be read.
    """
    arms = database.rows(_ARMS)
    rows = database.columns(_DAYS)
    day = rows["day"].astype("datetime64[D]").astype(np.intp)
    first = int(day.min()) if len(day) else 0
    count = int(day.max()) - first + 1 if len(day) else 0
    place = {row["arm"]: number for number, row in enumerate(arms)}
    of_arm = np.array([place.get(name, -1) for name in rows["arm"]], dtype=np.intp)
    by_arm, by_hour = of_arm >= 0, of_arm < 0
    daily = {}
    for name in QUANTITIES:
        daily[name] = np.full((len(arms), count), np.nan)
        daily[name][of_arm[by_arm], day[by_arm] - first] = rows[name][by_arm]
    hourly = np.full((count, 24), np.nan)
    hours = rows["hour"][by_hour].astype(float).astype(np.intp)
    hourly[day[by_hour] - first, hours] = rows["energy"][by_hour]
    works = sorted(_works(database.columns(_CYCLES)), key=lambda w: -w.sums["energy"].sum())
    return FleetDays(
        tuple(row["arm"] for row in arms),
        tuple(row["robot"] or "" for row in arms),
        tuple(row["models"] or "" for row in arms),
        first,
        daily,
        hourly,
        tuple(works),
    )


def _works(rows: dict[str, Any]) -> list[Work]:
    """One entry per arm and program; rows are in this order."""
    days = rows["day"].astype("datetime64[D]").astype(np.intp)
    keys = list(zip(rows["arm"], rows["program"], strict=True))
    starts = [k for k in range(len(keys)) if k == 0 or keys[k] != keys[k - 1]]
    found = []
    for start, end in zip(starts, [*starts[1:], len(keys)][: len(starts)], strict=True):
        sums = {name: np.asarray(rows[name][start:end], dtype=float) for name in CYCLE_SUMS}
        found.append(Work(*keys[start], days[start:end], sums))
    return found
