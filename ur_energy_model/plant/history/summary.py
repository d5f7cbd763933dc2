"""Energy of a plant, summed up by arm, calendar, program or joint."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ur_energy_model.plant.history.database import HistoryDatabase
from ur_energy_model.plant.history.groupings import check_keys, key_columns

Row = dict[str, Any]
SUMS: tuple[str, ...] = (
    "energy", "standby_energy", "driver_energy", "regeneration_energy", "motion_energy",
    "idle_energy", "bus_energy", "duration", "motion_time", "unaccounted",
)  # fmt: skip
"""Of each row besides its keys, J and s: energy is that at the supply by the model. standby,
drivers and regeneration are parts of it at all times, joints are the rest; motion and idle (without
motion) add up to it. bus_energy is the measured one, None unless it was measured throughout.
duration is the time accounted for."""

_SECONDS = """
    sum(total_energy) AS energy, sum(standby_energy) AS standby_energy,
    sum(driver_energy) AS driver_energy, sum(regeneration_energy) AS regeneration_energy,
    sum(moving_energy) AS motion_energy,
    sum(total_energy) - sum(moving_energy) AS idle_energy,
    if(count(bus_energy) = count(*), sum(bus_energy), NULL) AS bus_energy,
    sum(accounted) AS duration, sum(moving_time) AS motion_time,
    sum(unaccounted) AS unaccounted"""
_CYCLES = """
    sum(total_energy) AS energy,
    if(count(standby_energy) = count(*), sum(standby_energy), NULL) AS standby_energy,
    if(count(driver_energy) = count(*), sum(driver_energy), NULL) AS driver_energy,
    if(count(regeneration_energy) = count(*), sum(regeneration_energy), NULL)
        AS regeneration_energy,
    sum(motion_energy) AS motion_energy, sum(idle_energy) AS idle_energy,
    if(count(bus_energy) = count(*), sum(bus_energy), NULL) AS bus_energy,
    sum(motion_time + idle_time) AS duration, sum(motion_time) AS motion_time,
    sum(duration - motion_time - idle_time) AS unaccounted, count(*) AS cycles,
    avg(duration) AS mean_duration, avg(total_energy) AS energy_per_cycle"""
_ONE_JOINT = """
    sum(energy) AS energy, 0e0 AS standby_energy, 0e0 AS driver_energy,
    0e0 AS regeneration_energy, NULL AS motion_energy, NULL AS idle_energy, NULL AS bus_energy,
    sum(accounted) AS duration, NULL AS motion_time, sum(unaccounted) AS unaccounted,
    sum(mechanical) AS mechanical_energy, sum(friction) AS friction_energy,
    sum(copper) AS copper_energy"""
PARTS = {"drivers": "driver_energy", "standby": "standby_energy",
         "regeneration": "regeneration_energy"}  # fmt: skip
"""Parts of an arm that are listed beside its joints; together they are all of its energy."""


@dataclass(frozen=True)
class Summary:
    """Energy by some keys.

    Attributes:
        rows: SUMS by key, in the order of the keys. By program: also cycles, mean_duration and
            energy_per_cycle, of complete cycles; by joint: mechanical_energy, friction_energy and
            copper_energy, and rows of PARTS.
        total: SUMS of the whole period, and the number of arms.
        outside_cycles: by program, what no complete cycle contains; otherwise None.
    """

    rows: tuple[Row, ...]
    total: Row
    outside_cycles: Row | None = None


def summarise(
    database: HistoryDatabase, keys: Sequence[str] = ("arm",), shifts: Sequence[int] = ()
) -> Summary:
    """Sum up the energy of the database's period.

    Args:
        database: of a store.
        keys: of KEYS; () for the total alone.
        shifts: begins of the shifts of a day, minutes since midnight, ascending.

    Raises:
        InputError: keys that do not go together, or a store that cannot be read.
    """
    keys = tuple(dict.fromkeys(keys))
    check_keys(keys, shifts)
    if "program" in keys:
        rows = _ask(database, keys, key_columns(keys, "start", shifts), _CYCLES, "cycles")
        total = _total(database)
        return Summary(rows, total, _outside(total, rows))
    if "joint" in keys:
        return Summary(_by_joint(database, keys, shifts), _total(database))
    if not keys:
        return Summary((), _total(database))
    columns = key_columns(keys, "second", shifts)
    rows = _ask(database, keys, columns, _SECONDS, "seconds")
    return Summary(rows, _with_arms(database, _added(rows)))


def _total(database: HistoryDatabase) -> Row:
    return _with_arms(
        database, _added(database.rows(f"SELECT {_SECONDS} FROM seconds HAVING count(*) > 0"))
    )


def _with_arms(database: HistoryDatabase, total: Row) -> Row:
    arms = database.rows("SELECT count(DISTINCT arm) AS arms FROM seconds")
    return {**total, **arms[0]}


def _added(rows: Sequence[Row]) -> Row:
    """Sums of rows; None where one of them is None."""
    columns = {name: [row[name] for row in rows] for name in SUMS}
    return {name: None if None in values else math.fsum(values) for name, values in columns.items()}


def _ask(
    database: HistoryDatabase, keys: Sequence[str], columns: str, sums: str, source: str
) -> tuple[Row, ...]:
    places = ", ".join(str(k + 1) for k in range(len(keys)))
    order = ", ".join(f"{k + 1} NULLS LAST" for k in range(len(keys)))
    sql = f"SELECT {columns} {sums} FROM {source} GROUP BY {places} ORDER BY {order}"
    return tuple(database.rows(sql))


def _by_joint(
    database: HistoryDatabase, keys: Sequence[str], shifts: Sequence[int]
) -> tuple[Row, ...]:
    """Rows of joints and PARTS."""
    others = [key for key in keys if key != "joint"]
    columns = key_columns(others, "second", shifts)
    names = "".join(f"{key}, " for key in others)
    places = ", ".join(str(k + 1) for k in range(len(others)))
    joints = f"""
        (SELECT {columns} accounted, unaccounted, unnest(joints) AS joint,
            unnest(range(len(joints))) AS place, unnest(joint_energy) AS energy,
            unnest(joint_mechanical_energy) AS mechanical,
            unnest(joint_friction_energy) AS friction, unnest(joint_copper_energy) AS copper
        FROM seconds)"""
    found = database.rows(
        f"SELECT {names} joint, min(place) AS place, {_ONE_JOINT} FROM {joints} "
        f"GROUP BY {names} joint"
    )
    for place, (part, energy) in enumerate(PARTS.items(), start=1000):
        sums = ", ".join(
            f"{f'sum({name})' if name == energy else '0e0'} AS {name}" for name in PARTS.values()
        )
        found += database.rows(
            f"SELECT {columns} '{part}' AS joint, {place} AS place, sum({energy}) AS energy, "
            f"{sums}, NULL AS motion_energy, NULL AS idle_energy, NULL AS bus_energy, "
            "sum(accounted) AS duration, NULL AS motion_time, sum(unaccounted) AS unaccounted "
            f"FROM seconds {f'GROUP BY {places}' if others else ''} HAVING count(*) > 0"
        )
    return tuple(
        {name: value for name, value in row.items() if name != "place"}
        for row in sorted(
            found, key=lambda r: (*(r[key] for key in others), r["place"], r["joint"])
        )
    )


def _outside(total: Row, rows: Sequence[Row]) -> Row:
    """The total without what the rows contain; None where that is not known."""
    within = _added(rows)
    left: Row = {}
    for name in SUMS:
        if total[name] is None or within[name] is None:
            left[name] = None
        else:
            rest = total[name] - within[name]
            left[name] = rest if abs(rest) > 1e-9 * abs(total[name]) else 0.0
    return left
