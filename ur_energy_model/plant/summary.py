# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Energy of a plant, summed up by arm, calendar, program, program node or joint.

`summarise` returns what `ur_energy history summary` prints. DuckDB sums up; the size of
what is read does not depend on the number of seconds in the store.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ur_energy_model.energy.powers import TotalSource
from ur_energy_model.errors import InputError
from ur_energy_model.plant.database import HistoryDatabase

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
        local = f"CAST({time} AS TIMESTAMP)"  # time in the session's time zone
        midnight = f"date_trunc('day', {local})"
        minute = f"(60 * extract('hour' FROM {local}) + extract('minute' FROM {local}))"
        cases = " ".join(
            f"WHEN {minute} >= {start} THEN {midnight} + INTERVAL ({start}) MINUTE"
            for start in reversed(shifts)
        )
        columns["shift"] = f"strftime(CASE {cases} END, '%Y-%m-%d %H:%M')"
    return "".join(f"{columns.get(key, key)} AS {key}, " for key in keys)


def _select_list(expressions: Mapping[str, str]) -> str:
    """Select list in SQL with all columns of SUMS, in their order.

    Args:
        expressions: expressions in SQL by name of the column; a column of SUMS without
            one is NULL, and columns that SUMS does not contain follow.
    """
    names = (*SUMS, *(name for name in expressions if name not in SUMS))
    return ", ".join(f"{expressions.get(name, 'NULL')} AS {name}" for name in names)


WHOLE = "unaccounted_s < 1e-6"
"""Condition in SQL for cycles without a gap, whose energy is the energy of a whole cycle."""
_OF_ROWS = {
    **{
        name: f"sum({name})"
        for name in (
            "standby_energy", "driver_energy", "regeneration_energy", "unexplained_energy",
            "model_energy", "wall_energy", "wall_std", "measured",
        )
    },
    "energy": "sum(total_energy)",
    "bus_energy": "if(count(bus_energy) = count(*), sum(bus_energy), NULL)",
    "measured_energy": "coalesce(sum(bus_energy), 0)",
    "explained_energy": "coalesce(sum(model_energy) FILTER (bus_energy IS NOT NULL), 0)",
}  # fmt: skip
"""Expressions in SQL for the columns of SUMS that `seconds` and `cycles` have in common."""
_SECONDS = _select_list(
    {
        **_OF_ROWS,
        "motion_energy": "sum(moving_energy)",
        "idle_energy": "sum(total_energy) - sum(moving_energy)",
        "duration": "sum(accounted)",
        "motion_time": "sum(moving_time)",
        "unaccounted": "sum(unaccounted)",
    }
)
_CYCLES = _select_list(
    {
        **_OF_ROWS,
        "motion_energy": "sum(motion_energy)",
        "idle_energy": "sum(idle_energy)",
        "duration": "sum(motion_time + idle_time)",
        "motion_time": "sum(motion_time)",
        "unaccounted": "sum(unaccounted_s)",
        "cycles": "count(*)",
        "mean_duration": f"avg(duration) FILTER ({WHOLE})",
        "energy_per_cycle": f"avg(total_energy) FILTER ({WHOLE})",
    }
)
_NODES = _select_list(
    {
        "energy": "sum(joules)",
        "unexplained_energy": "sum(joules - model_joules)",
        "model_energy": "sum(model_joules)",
        "duration": "sum(seconds)",
        "measured": "sum(measured)",
        "unaccounted": "0",
        "executions": "CAST(sum(count) AS BIGINT)",
    }
)

PARTS = {"drivers": "driver_energy", "standby": "standby_energy",
         "regeneration": "regeneration_energy", "unexplained": "unexplained_energy"}  # fmt: skip
"""Parts of an arm that are listed beside its joints; together they are all of its
energy."""
_FIRST_PART = 1000  # place of the first part; places of joints begin with 0
_USES = ("mechanical_energy", "friction_energy", "copper_energy")
"""Uses of the energy of a joint; lists of `seconds` without their prefix "joint_"."""


_UNEXPLAINED = _FIRST_PART + list(PARTS).index("unexplained")
_JOINTS = _select_list(
    {
        **{
            column: f"sum(if(place = {place}, energy, 0))"
            for place, column in enumerate(PARTS.values(), start=_FIRST_PART)
        },
        "energy": "sum(energy)",
        "model_energy": f"if(min(place) = {_UNEXPLAINED}, 0, sum(energy))",
        "duration": "sum(accounted)",
        "unaccounted": "sum(unaccounted)",
        "place": "min(place)",
        **{name: f"sum({name})" for name in _USES},
    }
)


def _joints(columns: str, most: int) -> str:
    """A subquery with the sums of the lists of `seconds`, a row per joint and part of an arm.

    The lists are summed up entry by entry, and unnested then. Rows of the parts follow
    the joints: their `place` is _FIRST_PART and more, and their energy is the energy of
    the part.

    Args:
        columns: select list of the keys, from `_key_columns`.
        most: largest number of joints of an arm.
    """
    names = ("energy", *_USES)
    lists = []
    for name in names:
        entries_of_list = [f"sum(joint_{name}[{joint}])" for joint in range(1, most + 1)]
        lists.append(f"[{', '.join(entries_of_list)}] AS {name}")
    parts = ", ".join(PARTS.values())
    sums = [
        f"sum({name}) AS {name}" for name in (*PARTS.values(), "accounted", "unaccounted")
    ]
    places = list(range(_FIRST_PART, _FIRST_PART + len(PARTS)))
    entries = {name: f"{name}[:len(joints)]" for name in names}
    entries["energy"] = f"list_concat({entries['energy']}, [{parts}])"
    entries["joint"] = f"list_concat(joints, {list(PARTS)})"
    entries["place"] = f"list_concat(range(len(joints)), {places})"
    unnested = ", ".join(f"unnest({entry}) AS {name}" for name, entry in entries.items())
    return f"""(SELECT * EXCLUDE ({parts}, joints, {", ".join(names)}), {unnested}
        FROM (SELECT {columns} joints, {", ".join([*lists, *sums])}
            FROM seconds GROUP BY ALL))"""


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
        database: database of the store.
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
                for name in _USES:
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
        database: database of the store.
        keys: keys of the rows, at least one, see `summarise`.
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
        sums = _JOINTS
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
