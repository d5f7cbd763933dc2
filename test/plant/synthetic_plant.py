"""A plant of arms whose energies are known, written as a store of the history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pyarrow as pa

from ur_energy_model.energy.powers import ArmState
from ur_energy_model.plant.energy_parts import NOTHING
from ur_energy_model.plant.schema import arrow_schema
from ur_energy_model.plant.store import HistoryStore
from ur_energy_model.plant.store_files import SourceRecord
from ur_energy_model.typing import Array, Indices

JOINTS = ("base", "shoulder", "elbow", "wrist_1", "wrist_2", "wrist_3")
SHARES = np.array([0.25, 0.35, 0.2, 0.1, 0.06, 0.04, 0.0, 0.0])
"""Of the motion's power, by joint."""
STANDBY, DRIVER = 70.0, 12.0
"""W."""


@dataclass(frozen=True)
class Arm:
    """One arm and how it works.

    Attributes:
        name: of the partition.
        joints: names.
        motion_power: mean electrical power of all joints while moving [W].
        bus: whether its bus power is measured.
        programs: names, one after the other; "" for an unknown name.
        cycle: duration of a cycle [s], of which two thirds are motion.
    """

    name: str
    joints: tuple[str, ...] = JOINTS
    motion_power: float = 100.0
    bus: bool = True
    programs: tuple[str, ...] = ("palletize",)
    cycle: int = 30


@dataclass(frozen=True)
class Work:
    """When the arms work: from `hour` (UTC) on for `seconds`, every day.

    Attributes:
        first: first day.
        days: number of days.
        hour: begin of the work (UTC).
        seconds: per day.
        seed: of the random powers.
        weekend: whether the arms work on Saturday and Sunday too.
    """

    first: date = date(2026, 5, 4)
    days: int = 2
    hour: int = 6
    seconds: int = 600
    seed: int = 0
    weekend: bool = True

    def starts(self) -> list[datetime]:
        """Begin of each day's work."""
        days = (self.first + timedelta(days=k) for k in range(self.days))
        midnight = datetime.min.time()
        return [
            datetime.combine(day, midnight, timezone.utc) + timedelta(hours=self.hour)
            for day in days
            if self.weekend or day.weekday() < 5
        ]


def write_plant(
    store: Path, arms: list[Arm], work: Work = Work(), without: Sequence[str] = ()
) -> Path:
    """Write both tables, without some columns; one source per arm."""
    random = np.random.default_rng(work.seed)
    for arm in arms:
        source = f"{arm.name}-{work.first}-{work.hour}-{work.seed}"
        days = [seconds_table(arm, start, work.seconds, source, random) for start in work.starts()]
        cycles = [cycles_table(arm, seconds, source) for seconds in days]
        tables = {"seconds": pa.concat_tables(days), "cycles": pa.concat_tables(cycles)}
        tables = {name: table.drop_columns(without) for name, table in tables.items()}
        add_tables(store, arm.name, source, tables)
    return store


def add_tables(store: Path, arm: str, source: str, tables: dict[str, pa.Table]) -> None:
    """Add made-up rows of an arm to a store."""
    tables = {"seconds": arrow_schema("seconds").empty_table(), **tables}
    for name, rows in tables.items():
        column = rows.schema.get_field_index("source")
        named = pa.array([source] * len(rows), rows.schema.field(column).type)
        tables[name] = rows.set_column(column, rows.schema.field(column), named)
    counts = {name: len(rows) for name, rows in tables.items()}
    record = SourceRecord(source, source, arm, "ur5e", "generic", 0, 0, True, counts, 0.0, 0.0, 0.0)
    HistoryStore(store).add(record, tables, NOTHING)


def seconds_table(
    arm: Arm, start: datetime, count: int, source: str, random: np.random.Generator
) -> pa.Table:
    """Rows of one stretch of work."""
    n = len(arm.joints)
    at = np.arange(count)
    moving = at % arm.cycle < 2 * arm.cycle // 3
    spread = 1 + 0.05 * random.standard_normal(count)
    joint = (
        np.where(moving, arm.motion_power * spread, 8.0)[:, None] * SHARES[:n] / SHARES[:n].sum()
    )
    standby = STANDBY + 0.2 * random.standard_normal(count)
    driver = np.full(count, DRIVER)
    regeneration = np.where(at % arm.cycle == 3, 2.5, -0.5 * (at % arm.cycle == 4))
    total = joint.sum(axis=1) + standby + driver + regeneration
    bus = total + 1.5 * random.standard_normal(count) if arm.bus else None
    columns = {
        "second": pa.array(_times(start, at), pa.timestamp("us", tz="UTC")),
        **_source(source, count),
        "accounted": np.ones(count),
        "unaccounted": np.zeros(count),
        "samples": np.full(count, 500),
        "total_energy": total,
        "total_std": 0.02 * total,
        "bus_energy": pa.nulls(count, pa.float64()) if bus is None else bus,
        "standby_energy": standby,
        "driver_energy": driver,
        "residual_energy": pa.nulls(count, pa.float64()) if bus is None else total - bus,
        "peak_power": 1.4 * total,
        "joints": _lists(np.tile(np.array(arm.joints, dtype=object), (count, 1)), pa.string()),
        "joint_energy": _lists(joint),
        "joint_mechanical_energy": _lists(0.6 * joint),
        "joint_friction_energy": _lists(0.3 * joint),
        "joint_copper_energy": _lists(0.1 * joint),
        "joint_temperature": _lists(np.full((count, n), 31.5)),
        "speed_scaling": np.ones(count),
        "regeneration_energy": regeneration,
    }
    for state in ArmState:
        here = moving if state is ArmState.MOVING else ~moving & (state is ArmState.STANDSTILL)
        columns[f"{state.name.lower()}_time"] = here.astype(float)
        columns[f"{state.name.lower()}_energy"] = np.where(here, total, 0.0)
    return _table("seconds", columns)


def cycles_table(arm: Arm, seconds: pa.Table, source: str) -> pa.Table:
    """Complete cycles of one stretch of work."""
    count = len(seconds) // arm.cycle

    def summed(name: str) -> Array:
        values = seconds[name].to_numpy()[: count * arm.cycle]
        return np.asarray(values.reshape(count, arm.cycle).sum(axis=1), dtype=float)

    names = [arm.programs[k % len(arm.programs)] or None for k in range(count)]
    total, motion = summed("total_energy"), summed("moving_energy")
    n = len(arm.joints)
    joint = np.array(seconds["joint_energy"].to_pylist()[: count * arm.cycle]).reshape(-1, n)
    columns = {
        "start": seconds["second"].take(pa.array(np.arange(count) * arm.cycle)),
        **_source(source, count),
        "number": np.arange(1, count + 1),
        "program": pa.array(names, pa.string()),
        "duration": np.full(count, float(arm.cycle)),
        "total_energy": total,
        "total_std": 0.02 * total,
        "bus_energy": summed("bus_energy") if arm.bus else pa.nulls(count, pa.float64()),
        "energy_low": 0.96 * total,
        "energy_high": 1.04 * total,
        "peak_power": np.full(count, 250.0),
        "motion_time": summed("moving_time"),
        "motion_energy": motion,
        "idle_time": arm.cycle - summed("moving_time"),
        "idle_energy": total - motion,
        "joints": _lists(np.tile(np.array(arm.joints, dtype=object), (count, 1)), pa.string()),
        "joint_energy": _lists(joint.reshape(count, arm.cycle, n).sum(axis=1)),
        **{
            name: summed(name)
            for name in ("standby_energy", "driver_energy", "regeneration_energy")
        },
    }
    return _table("cycles", columns)


def _times(start: datetime, at: Indices) -> Array:
    return np.asarray(np.datetime64(start.replace(tzinfo=None), "us") + at.astype("timedelta64[s]"))


def _source(source: str, count: int) -> dict[str, pa.Array]:
    values = {"source": source, "robot": "ur5e", "model": "generic"}
    return {name: pa.array([value] * count) for name, value in values.items()}


def _lists(values: Array, kind: pa.DataType | None = None) -> pa.Array:
    """One list per row of `values`."""
    count, n = values.shape
    flat = pa.array(values.reshape(-1), kind or pa.float64())
    return pa.ListArray.from_arrays(pa.array(np.arange(count + 1) * n, pa.int32()), flat)


def _table(table: str, columns: dict[str, object]) -> pa.Table:
    schema = arrow_schema(table)
    arrays = [
        pa.array(columns[name]) if isinstance(columns[name], np.ndarray) else columns[name]
        for name in schema.names
    ]
    return pa.table(arrays, names=schema.names).cast(schema)
