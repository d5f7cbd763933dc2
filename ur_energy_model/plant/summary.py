# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Energy of a plant: sums by arm, calendar, program or joint, days of every arm, unusual days.

`summarise` is what `ur_energy history summary` prints, `read_fleet_days` and
`find_anomalies` are what the report of a plant is made of. DuckDB sums up; the size of
what is read does not depend on the number of seconds in the store.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np

from ur_energy_model.energy.powers import TotalSource
from ur_energy_model.errors import InputError
from ur_energy_model.plant.database import HistoryDatabase
from ur_energy_model.typing import Array, Indices

# What the energy can be summed up by, as SQL.


def _key_columns(keys: Sequence[str], time: str, shifts: Sequence[int]) -> str:
    """Select list of keys in SQL, "" or ending in a comma.

    Args:
        keys: names of columns, or hour, shift, day, week and month.
        time: column with the begin of a row.
        shifts: begins in minutes since midnight, the first one on the day before. A shift
            is named by its local begin as text.
    """
    columns = {
        "hour": f"date_trunc('hour', {time})",
        "day": f"CAST({time} AS DATE)",
        "week": f"CAST(date_trunc('week', {time}) AS DATE)",
        "month": f"CAST(date_trunc('month', {time}) AS DATE)",
    }
    if shifts:
        local = f"CAST({time} AS TIMESTAMP)"  # in the session's time zone
        midnight = f"date_trunc('day', {local})"
        minute = f"(60 * extract('hour' FROM {local}) + extract('minute' FROM {local}))"
        cases = " ".join(
            f"WHEN {minute} >= {start} THEN {midnight} + INTERVAL ({start}) MINUTE"
            for start in reversed(shifts)
        )
        columns["shift"] = f"strftime(CASE {cases} END, '%Y-%m-%d %H:%M')"
    return "".join(f"{columns.get(key, key)} AS {key}, " for key in keys)


Row = dict[str, Any]
"""A row of a result: values by name of the column."""
SUMS: tuple[str, ...] = (
    "energy", "standby_energy", "driver_energy", "regeneration_energy", "unexplained_energy",
    "model_energy", "motion_energy", "idle_energy", "bus_energy", "measured_energy",
    "explained_energy", "wall_energy", "wall_std", "duration", "motion_time", "measured",
    "unaccounted",
)  # fmt: skip
"""Columns of each row of a summary besides its keys; energies in J, times in s.

- energy: at the supply, measured where bus power is measured, else by the model.
- standby_energy, driver_energy, regeneration_energy, unexplained_energy: parts of the
  energy; the rest are the joints. unexplained_energy is what the model lacks of the
  measured energy.
- model_energy: the energy without unexplained_energy.
- motion_energy, idle_energy: while a joint moves, and while none does; their sum is the
  energy.
- bus_energy: the measured energy; None unless it was measured throughout.
- measured_energy, explained_energy: measured energy and energy of the model in the rows
  of the store that are measured.
- wall_energy, wall_std: at the mains, and its standard deviation.
- duration: time that the store accounts for, which includes motion_time and measured.
- unaccounted: time in gaps, without energy.
"""


def total_source(row: Row) -> TotalSource | None:
    """Where the energy of a row of SUMS comes from.

    It is None for a joint, which is always modelled.
    """
    if row["measured"] is None or row["duration"] is None:
        return None
    return TotalSource.of(row["measured"], row["duration"])


def explained_share(row: Row) -> float | None:
    """Modelled over measured energy of a row of SUMS; None where nothing is measured."""
    if not row["measured_energy"] or row["measured_energy"] < 0.0:
        return None
    return float(row["explained_energy"] / row["measured_energy"])


def _throughout(name: str) -> str:
    """The sum of a column in SQL; NULL unless all rows have it."""
    return f"if(count({name}) = count(*), sum({name}), NULL) AS {name}"


_MEASURED = """
    coalesce(sum(bus_energy), 0) AS measured_energy,
    coalesce(sum(model_energy) FILTER (bus_energy IS NOT NULL), 0) AS explained_energy"""
_SECONDS = f"""
    sum(total_energy) AS energy, sum(standby_energy) AS standby_energy,
    sum(driver_energy) AS driver_energy, sum(regeneration_energy) AS regeneration_energy,
    sum(unexplained_energy) AS unexplained_energy, sum(model_energy) AS model_energy,
    sum(moving_energy) AS motion_energy, sum(total_energy) - sum(moving_energy) AS idle_energy,
    {_throughout("bus_energy")}, {_MEASURED},
    sum(wall_energy) AS wall_energy, sum(wall_std) AS wall_std,
    sum(accounted) AS duration, sum(moving_time) AS motion_time,
    sum(measured) AS measured, sum(unaccounted) AS unaccounted"""
WHOLE = "unaccounted_s < 1e-6"
"""Whether a cycle was seen from its beginning to its end, so that its energy is that of
a cycle."""
_CYCLES = f"""
    sum(total_energy) AS energy, sum(standby_energy) AS standby_energy,
    sum(driver_energy) AS driver_energy, sum(regeneration_energy) AS regeneration_energy,
    sum(unexplained_energy) AS unexplained_energy,
    sum(model_energy) AS model_energy, sum(motion_energy) AS motion_energy,
    sum(idle_energy) AS idle_energy, {_throughout("bus_energy")}, {_MEASURED},
    sum(wall_energy) AS wall_energy, sum(wall_std) AS wall_std,
    sum(motion_time + idle_time) AS duration, sum(motion_time) AS motion_time,
    sum(measured) AS measured, sum(unaccounted_s) AS unaccounted, count(*) AS cycles,
    avg(duration) FILTER ({WHOLE}) AS mean_duration,
    avg(total_energy) FILTER ({WHOLE}) AS energy_per_cycle"""
_NODES = f"""
    sum(joules) AS energy, {", ".join(f"NULL AS {name}" for name in SUMS[1:4])},
    sum(joules - model_joules) AS unexplained_energy, sum(model_joules) AS model_energy,
    {", ".join(f"NULL AS {name}" for name in SUMS[6:13])},
    sum(seconds) AS duration, NULL AS motion_time, sum(measured) AS measured, 0 AS unaccounted,
    CAST(sum(count) AS BIGINT) AS executions"""
PARTS = {"drivers": "driver_energy", "standby": "standby_energy",
         "regeneration": "regeneration_energy", "unexplained": "unexplained_energy"}  # fmt: skip
"""Parts of an arm that are listed beside its joints; together they are all of its
energy."""
_FIRST_PART = 1000  # place of the first part; places of joints begin with 0
_OF_JOINT = ("energy", "mechanical_energy", "friction_energy", "copper_energy")
"""Lists of `seconds` without their prefix "joint_"."""


def _joints(columns: str, most: int) -> str:
    """A subquery with the sums of the lists of `seconds`, a row per joint and part of an arm.

    The lists are summed up entry by entry, and unnested then. Rows of the parts follow
    the joints: their `place` is _FIRST_PART and more, and they have one of PARTS as their
    energy.

    Args:
        columns: select list of the keys, from `_key_columns`.
        most: largest number of joints of an arm.
    """
    lists = []
    for name in _OF_JOINT:
        entries_of_list = [f"sum(joint_{name}[{joint}])" for joint in range(1, most + 1)]
        lists.append(f"[{', '.join(entries_of_list)}] AS {name}")
    parts = ", ".join(PARTS.values())
    sums = [f"sum({name}) AS {name}" for name in (*PARTS.values(), *_TIMES)]
    places = list(range(_FIRST_PART, _FIRST_PART + len(PARTS)))
    entries = {name: f"{name}[:len(joints)]" for name in _OF_JOINT}
    entries["energy"] = f"list_concat({entries['energy']}, [{parts}])"
    entries["joint"] = f"list_concat(joints, {list(PARTS)})"
    entries["place"] = f"list_concat(range(len(joints)), {places})"
    unnested = ", ".join(f"unnest({entry}) AS {name}" for name, entry in entries.items())
    return f"""(SELECT * EXCLUDE ({parts}, joints, {", ".join(_OF_JOINT)}), {unnested}
        FROM (SELECT {columns} joints, {", ".join([*lists, *sums])}
            FROM seconds GROUP BY ALL))"""


_TIMES = ("accounted", "unaccounted")
_UNEXPLAINED = _FIRST_PART + list(PARTS).index("unexplained")
_ONE_JOINT = ", ".join(
    [
        "min(place) AS place, sum(energy) AS energy",
        *(
            f"sum(if(place = {place}, energy, 0)) AS {name}"
            for place, name in enumerate(PARTS.values(), start=_FIRST_PART)
        ),
        f"if(min(place) = {_UNEXPLAINED}, 0, sum(energy)) AS model_energy",
        "NULL AS motion_energy, NULL AS idle_energy, NULL AS bus_energy",
        "NULL AS measured_energy, NULL AS explained_energy, NULL AS wall_energy",
        "NULL AS wall_std, sum(accounted) AS duration, NULL AS motion_time",
        "NULL AS measured, sum(unaccounted) AS unaccounted",
        *(f"sum({name}) AS {name}" for name in _OF_JOINT[1:]),
    ]
)


@dataclass(frozen=True)
class HistorySummary:
    """Energy by some keys.

    Attributes:
        rows: SUMS by key, in the order of the keys. By program, rows also have `cycles`,
            and `mean_duration` and `energy_per_cycle` of cycles without gaps; by node
            `executions`; by joint `mechanical_energy`, `friction_energy` and
            `copper_energy`, and there are rows of PARTS.
        total: SUMS of the whole period, and the number of `arms`.
        outside_cycles: SUMS of what no complete cycle contains, by program; else None.
    """

    rows: tuple[Row, ...]
    total: Row
    outside_cycles: Row | None = None


def summarise(
    database: HistoryDatabase, keys: Sequence[str] = ("arm",), shifts: Sequence[int] = ()
) -> HistorySummary:
    """Sum up the energy of the database's period.

    Args:
        database: of the store.
        keys: arm, program, node, joint, and begins of hour, shift, day, week (Monday) and
            month; () for the total alone.
        shifts: begins in minutes since midnight, from `shift_starts`.

    Raises:
        InputError: keys that do not go together, or a store that cannot be read.
    """
    keys = tuple(dict.fromkeys(keys))
    for other in ("program", "node"):
        if "joint" in keys and other in keys:
            problem = f"{other} and joint do not go together"
            raise InputError("--by", problem, "choose one")
    if "shift" in keys and not shifts:
        remedy = "add --shifts 06:00,14:00,22:00"
        raise InputError("--by shift", "needs the begins of shifts", remedy)
    rows: list[Row] = []
    if keys:
        rows = database.rows(_summary_query(database, keys, shifts))
    if "joint" in keys:
        for row in rows:
            if row.pop("place") >= _FIRST_PART:
                for name in _OF_JOINT[1:]:
                    del row[name]
    whole = rows
    if not keys or {"program", "node", "joint"} & set(keys):
        whole = database.rows(f"SELECT {_SECONDS} FROM seconds HAVING count(*) > 0")
    (arms,) = database.rows("SELECT count(DISTINCT arm) AS arms FROM seconds")
    total = _added(whole)
    outside = None
    if "program" in keys and "node" not in keys:
        outside = _difference(total, _added(rows))
    return HistorySummary(tuple(rows), {**total, **arms}, outside)


def _summary_query(
    database: HistoryDatabase, keys: Sequence[str], shifts: Sequence[int]
) -> str:
    """The query for the rows of a summary.

    Args:
        database: of the store.
        keys: at least one, see `summarise`.
        shifts: begins in minutes since midnight.
    """
    table = "seconds"
    time = "second"
    sums = _SECONDS
    if "node" in keys:
        table = "program_nodes"
        time = "minute"
        sums = _NODES
    elif "program" in keys:
        table = "cycles"
        time = "start"
        sums = _CYCLES
        end = database.period.end
        if end is not None:  # without a cycle that ends after the period
            until = f"epoch(start) + duration <= {end.timestamp()!r}"
            table = f"(SELECT * FROM cycles WHERE {until})"
    columns = _key_columns([key for key in keys if key != "joint"], time, shifts)
    if "joint" in keys:
        (most,) = database.rows("SELECT max(len(joints)) AS joints FROM seconds")
        sums = _ONE_JOINT
        table = _joints(columns, most["joints"] or 1)
        columns = f"{', '.join(keys)},"
    order = [f"{key} NULLS LAST" for key in keys if key not in ("joint", "node")]
    if "node" in keys:
        order += ["energy DESC", "node"]
    if "joint" in keys:
        order += ["place", "joint"]
    # By number: `day` is a column of the tables, too.
    grouped = ", ".join(str(number) for number in range(1, len(keys) + 1))
    return (
        f"SELECT {columns} {sums} FROM {table} GROUP BY {grouped} "
        f"ORDER BY {', '.join(order)}"
    )


def _added(rows: Sequence[Row]) -> Row:
    """Sums of rows by column of SUMS; None where a row has None."""
    total: Row = {}
    for name in SUMS:
        values = [row[name] for row in rows]
        total[name] = None if None in values else math.fsum(values)
    return total


def _difference(total: Row, within: Row) -> Row:
    """A row of SUMS minus another row.

    Differences are None where a row has None, and 0 where only rounding is left.
    """
    outside: Row = dict.fromkeys(SUMS)
    for name in SUMS:
        if total[name] is not None and within[name] is not None:
            rest = total[name] - within[name]
            outside[name] = rest if abs(rest) > 1e-9 * abs(total[name]) else 0.0
    return outside


# FleetDays: energies of every arm on every day, of the fleet in every hour, and cycles by
# day. This is all that the report of a plant is made of; its size does not depend on the
# number of seconds in the store.

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
    rows = database.rows(_DAYS)
    days = [row["day"].toordinal() - _EPOCH for row in rows]
    first = min(days, default=0)
    count = max(days) - first + 1 if days else 0
    numbers = {row["arm"]: number for number, row in enumerate(arms)}
    daily = {name: np.full((len(arms), count), np.nan) for name in QUANTITIES}
    hourly = np.full((count, 24), np.nan)
    for day, row in zip(days, rows, strict=True):
        if row["arm"] is None:  # an hour of all arms
            hourly[day - first, row["hour"]] = row["energy"]
        else:
            for name, values in daily.items():
                values[numbers[row["arm"]], day - first] = row[name]
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


# Days on which a quantity of an arm was unusual for this arm, in words. A quantity of an
# arm on a day is compared with its median over all days. It is unusual if it is further
# away than OUTLIER standard deviations (1.4826 times the median absolute deviation;
# Rousseeuw and Croux, J. Am. Stat. Assoc. 88 (1993), eq. 1.2) and further than what
# matters to a user.

OUTLIER = 6.0  # standard deviations
FEWEST_DAYS = 7  # with fewer days it is not known what is usual
LEAST_TIME = 600.0  # time accounted for on a day that is compared [s]
LEAST_CYCLES = 5  # cycles of a day that is compared
LEAST_SHARE = 0.05  # least change that matters, as a share of the usual value


@dataclass(frozen=True)
class Anomaly:
    """Consecutive days on which a quantity of an arm was unusual.

    Attributes:
        arm: name of the arm.
        first: first day, days since 1970.
        last: last day, days since 1970.
        quantity: name of the quantity, in words.
        unit: of the values.
        value: the value that is furthest from the usual one.
        usual: median over all days.
        deviations: distance between value and usual value in standard deviations.
    """

    arm: str
    first: int
    last: int
    quantity: str
    unit: str
    value: float
    usual: float
    deviations: float

    @property
    def when(self) -> str:
        """The days in words: "2026-05-04", or "2026-05-04 to 2026-05-06"."""
        begin = day_of(self.first)
        end = day_of(self.last)
        return f"{begin}" if begin == end else f"{begin} to {end}"

    @property
    def text(self) -> str:
        """The anomaly in one sentence."""
        change = "above" if self.value > self.usual else "below"
        return (
            f"{self.arm}, {self.when}: {self.quantity} {number_text(self.value)} {self.unit}, "
            f"{change} the usual {number_text(self.usual)} {self.unit}."
        )


def number_text(value: float) -> str:
    """A number with four digits, or all digits before the point, for people."""
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return text.replace("-", "−")


def find_anomalies(fleet: FleetDays) -> tuple[Anomaly, ...]:
    """Days on which a quantity was unusual for its arm, the strongest anomaly first.

    Quantities are standby power (by 2 W at least), the share of the measured energy that
    the model leaves unexplained (by 3 percentage points), and energy and duration of the
    cycles of each program; all of them by LEAST_SHARE at least. Days with less than
    LEAST_TIME or LEAST_CYCLES are not compared.

    Args:
        fleet: energies by day.
    """
    daily = fleet.daily
    duration = np.where(daily["duration"] >= LEAST_TIME, daily["duration"], np.nan)
    measured = np.where((daily["bus"] > 0) & np.isfinite(duration), daily["bus"], np.nan)
    standby = daily["standby"] / duration
    unexplained = 100 * daily["unexplained"] / measured
    found: list[Anomaly] = []
    for number, arm in enumerate(fleet.arms):
        found += _unusual(arm, "standby power", "W", 2.0, fleet.days, standby[number])
        quantity = "measured energy that the model leaves unexplained"
        found += _unusual(arm, quantity, "%", 3.0, fleet.days, unexplained[number])
    for work in fleet.works:
        of_program = f" of {work.program}" if work.program else ""
        cycles = work.sums["cycles"]
        enough = cycles >= LEAST_CYCLES
        energy = np.where(enough, work.mean, np.nan)
        quantity = f"energy per cycle{of_program}"
        found += _unusual(work.arm, quantity, "J", 0.0, work.days, energy)
        duration = np.where(enough, work.sums["duration"] / cycles, np.nan)
        quantity = f"duration of a cycle{of_program}"
        found += _unusual(work.arm, quantity, "s", 0.0, work.days, duration)
    return tuple(sorted(found, key=lambda anomaly: -anomaly.deviations))


def _unusual(
    arm: str, quantity: str, unit: str, least: float, days: Indices, values: Array
) -> Iterator[Anomaly]:
    """Runs of days with unusual values; days without a value do not end a run.

    Args:
        arm: name of the arm.
        quantity: what the values are, in words.
        unit: of the values.
        least: least difference from the usual value that matters.
        days: ascending [k], days since 1970.
        values: of the quantity [k], NaN where there is none.
    """
    known = np.isfinite(values)
    days = days[known]
    values = values[known]
    if len(values) < FEWEST_DAYS:
        return
    usual = float(np.median(values))
    distance = np.abs(values - usual)
    deviations = distance / max(1.4826 * float(np.median(distance)), 1e-12)
    matters = max(least, LEAST_SHARE * abs(usual))
    unusual = np.flatnonzero((deviations > OUTLIER) & (distance > matters))
    breaks = np.flatnonzero(np.diff(unusual) > 1) + 1
    for run in np.split(unusual, breaks) if len(unusual) else ():
        worst = run[np.argmax(distance[run])]
        first = int(days[run[0]])
        last = int(days[run[-1]])
        value = float(values[worst])
        yield Anomaly(
            arm, first, last, quantity, unit, value, usual, float(deviations[worst])
        )
