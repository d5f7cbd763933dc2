# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""A plant of arms whose energies are known, written as a store of the history."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from pathlib import Path

import numpy as np
import pyarrow as pa

from ur_energy_model.energy.powers import ArmState
from ur_energy_model.plant.energy_parts import NOTHING
from ur_energy_model.plant.schema import arrow_schema, arrow_table
from ur_energy_model.plant.sources import SourceRecord
from ur_energy_model.plant.store import HistoryStore
from ur_energy_model.typing import Array

JOINTS = ("base", "shoulder", "elbow", "wrist_1", "wrist_2", "wrist_3")
SHARES = np.array([0.25, 0.35, 0.2, 0.1, 0.06, 0.04, 0.0, 0.0])
"""Of the motion's power, by joint."""
# W
STANDBY = 70.0
DRIVER = 12.0


@dataclass(frozen=True)
class Arm:
    """One arm: power of all joints in motion [W]; cycles [s], of which two thirds are motion.

    `bus`: whether its power is measured; program names follow each other, "" for an
    unknown one.
    """

    name: str
    joints: tuple[str, ...] = JOINTS
    motion_power: float = 100.0
    bus: bool = True
    programs: tuple[str, ...] = ("palletize",)
    cycle: int = 30


@dataclass(frozen=True)
class Work:
    """When the arms work: from `hour` (UTC) on for `seconds`, every day; with random powers."""

    first: date = date(2026, 5, 4)
    days: int = 2
    hour: int = 6
    seconds: int = 600
    seed: int = 0
    weekend: bool = True

    def starts(self) -> list[datetime]:
        """Begin of each day's work."""
        first = datetime.combine(self.first, time(self.hour), timezone.utc)
        days = (first + timedelta(days=k) for k in range(self.days))
        return [day for day in days if self.weekend or day.weekday() < 5]


def write_plant(store: Path, arms: list[Arm], work: Work = Work()) -> Path:
    """Write both tables; one source per arm."""
    random = np.random.default_rng(work.seed)
    for arm in arms:
        source = f"{arm.name}-{work.first}-{work.hour}-{work.seed}"
        days = [
            seconds_table(arm, start, work.seconds, source, random)
            for start in work.starts()
        ]
        cycles = [cycles_table(arm, seconds, source) for seconds in days]
        tables = {"seconds": pa.concat_tables(days), "cycles": pa.concat_tables(cycles)}
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
    times = [
        1000 * time
        for rows in tables.values()
        for time in rows.column(0).cast("int64").to_pylist()
    ]
    span = (min(times, default=0), max(times, default=0) + 60 * 10**9)
    record = SourceRecord(
        source, source, arm, "ur5e", "generic", *span, True, counts, 0.0, 0.0, 0.0
    )
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
        np.where(moving, arm.motion_power * spread, 8.0)[:, None]
        * SHARES[:n]
        / SHARES[:n].sum()
    )
    standby = STANDBY + 0.2 * random.standard_normal(count)
    regeneration = np.where(at % arm.cycle == 3, 2.5, -0.5 * (at % arm.cycle == 4))
    model = joint.sum(axis=1) + standby + DRIVER + regeneration
    bus = (
        model + 1.5 * random.standard_normal(count) if arm.bus else np.full(count, np.nan)
    )
    total = bus if arm.bus else model
    columns = {
        "second": round(start.timestamp()) * 10**9 + at * 10**9,
        "source": source,
        "robot": "ur5e",
        "model": "generic",
        "accounted": np.ones(count),
        "unaccounted": np.zeros(count),
        "samples": np.full(count, 500),
        "total_energy": total,
        "total_std": np.full(count, 0.1) if arm.bus else 0.02 * total,
        "bus_energy": bus,
        "standby_energy": standby,
        "driver_energy": np.full(count, DRIVER),
        "residual_energy": model - bus,
        "model_energy": model,
        "unexplained_energy": total - model,
        "measured": np.full(count, float(arm.bus)),
        "total_source": "measured" if arm.bus else "modelled",
        "model_std": 0.02 * model,
        "peak_power": 1.4 * total,
        "joints": arm.joints,
        "joint_energy": joint,
        "joint_mechanical_energy": 0.6 * joint,
        "joint_friction_energy": 0.3 * joint,
        "joint_copper_energy": 0.1 * joint,
        "joint_temperature": np.full((count, n), 31.5),
        "speed_scaling": np.ones(count),
        "regeneration_energy": regeneration,
        "wall_energy": 52.0 + 1.1 * total,
        "wall_std": 14.0 + 0.03 * total,
    }
    for state in ArmState:
        here = (
            moving
            if state is ArmState.MOVING
            else ~moving & (state is ArmState.STANDSTILL)
        )
        columns[f"{state.name.lower()}_time"] = here.astype(float)
        columns[f"{state.name.lower()}_energy"] = np.where(here, total, 0.0)
    return arrow_table("seconds", columns)


def cycles_table(arm: Arm, seconds: pa.Table, source: str) -> pa.Table:
    """Complete cycles of one stretch of work."""
    count = len(seconds) // arm.cycle
    whole = seconds.slice(0, count * arm.cycle)

    def summed(name: str) -> Array:
        values = np.array(whole[name].to_pylist(), dtype=float)
        return np.asarray(values.reshape(count, arm.cycle, *values.shape[1:]).sum(axis=1))

    total, motion, moving = map(summed, ("total_energy", "moving_energy", "moving_time"))
    parts = ("standby_energy", "driver_energy", "regeneration_energy", "bus_energy",
             "wall_energy", "wall_std", "model_energy", "unexplained_energy", "measured",
             "model_std")  # fmt: skip
    columns = {
        "start": whole["second"].cast("int64").to_numpy()[:: arm.cycle] * 1000,
        "source": source,
        "robot": "ur5e",
        "model": "generic",
        "number": np.arange(1, count + 1),
        "program": [arm.programs[k % len(arm.programs)] or None for k in range(count)],
        "duration": np.full(count, float(arm.cycle)),
        "total_energy": total,
        "total_std": 0.02 * total,
        "energy_low": 0.96 * total,
        "energy_high": 1.04 * total,
        "peak_power": np.full(count, 250.0),
        "motion_time": moving,
        "motion_energy": motion,
        "idle_time": arm.cycle - moving,
        "idle_energy": total - motion,
        "joints": arm.joints,
        "joint_energy": summed("joint_energy").reshape(count, len(arm.joints)),
        **{name: summed(name) for name in parts},
        "unaccounted_s": np.zeros(count),
        "total_source": "measured" if arm.bus else "modelled",
    }
    return arrow_table("cycles", columns)
