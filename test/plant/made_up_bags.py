# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Bags of arms whose energies are known, and what a store says about them."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np

from test.energy.known_arm import RATE, known_model, motion
from test.identification.exact_arm import write_bag
from ur_energy_model.energy.energy_summary import EnergySummary
from ur_energy_model.energy.recording_energy import estimate_energy
from ur_energy_model.plant.add import Added, BagWork, add_bags
from ur_energy_model.plant.store import HistoryStore
from ur_energy_model.telemetry.samples import Telemetry

SERIAL = "20235512345"
NOON = int(datetime(2026, 5, 4, 12, tzinfo=timezone.utc).timestamp()) * 10**9
"""Host time of the first sample [ns]."""
HOUR = 3600 * 10**9
MODEL = known_model()


@dataclass(frozen=True)
class Session:
    """One recording: the arm moves, then stands still [s], from a host time [ns] or None on.

    `shift` is that of the standby power from the model's [W], `cycle` the time between
    program starts [s], 0 for one program; `lines` whether the line of the program in
    execution is recorded; every so many samples at RATE are kept.
    """

    at: int | None = NOON
    serial: str | None = SERIAL
    moving: float = 4.0
    still: float = 3.0
    shift: float = 0.0
    cycle: float = 0.0
    lines: bool = False
    every: int = 5

    def telemetry(self) -> Telemetry:
        """Its samples."""
        parts = [motion(self.moving), motion(self.still, speed=0.0)]
        n = sum(map(len, parts))
        columns = {
            name: np.concatenate([part[name] for part in parts])
            for name in parts[0].columns
        }
        columns["actual_robot_current"] += self.shift / 48.0
        time = parts[0].time[0] + np.arange(n) / RATE
        columns["timestamp"] = time
        if self.cycle:
            phase = (time - time[0]) % self.cycle
            columns["runtime_state"] = np.where(phase < 0.2 * self.cycle, 1.0, 2.0)
        if self.lines:
            columns["script_control_line"] = np.where(np.arange(n) // 400 % 2, 5.0, 3.0)
        stamp = None
        if self.at is not None:
            stamp = self.at + np.round((time - time[0]) * 1e9).astype(np.int64)
        info = replace(parts[0].info, robot="ur5e", serial=self.serial)
        whole = Telemetry(time, columns, info, (), stamp)
        if self.every == 1:
            return whole
        thinned = whole.select(np.arange(n) % self.every == 0)
        info = replace(info, rate=RATE / self.every)
        return replace(thinned, info=info, gaps=())

    def bag(self, path: Path) -> Path:
        """As a bag."""
        return write_bag(path, self.telemetry())


def work_for(store: Path | str, **options: object) -> BagWork:
    return BagWork(str(store), MODEL, "known", **options)  # type: ignore[arg-type]


def add(store: Path | str, *bags: Path, **options: object) -> Added:
    return add_bags(work_for(store, **options), bags)


def estimated(bag: Path) -> EnergySummary:
    return estimate_energy(MODEL, bag)


def rows(store: Path, table: str = "seconds", what: str = "*") -> list[dict[str, Any]]:
    """Rows as DuckDB reads them from outside by the log, in the order of time."""
    import duckdb
    from deltalake import DeltaTable

    if not (store / table / "_delta_log").exists():
        return []
    times = {
        "cycles": "start",
        "health": "minute",
        "program_nodes": "minute",
        "sources": '"end"',
    }
    time = times.get(table, "second")
    query = f"SELECT {what} FROM log ORDER BY arm, {time}, source"
    with duckdb.connect() as connection:
        connection.register("log", DeltaTable(store / table).to_pyarrow_dataset())
        found = connection.execute("SET TimeZone = 'UTC'").execute(query)
        names = [column[0] for column in found.description]
        found_rows = [dict(zip(names, row, strict=True)) for row in found.fetchall()]
    return [row | {"day": str(row["day"])} if "day" in row else row for row in found_rows]


def complete_sources(store: Path) -> list[dict[str, Any]]:
    """Rows of `sources` of those that the log of `seconds` has."""
    from deltalake import DeltaTable

    found = rows(store, "sources")
    log = (
        DeltaTable(store / "seconds")
        if (store / "seconds" / "_delta_log").exists()
        else None
    )
    return [r for r in found if log and log.transaction_version(r["source"]) is not None]


def sources_of(store: Path) -> list[str]:
    """Sources that the store has, also before their rows are in the logs of the tables."""
    names = [row.source for row in HistoryStore(store).records()]
    return [name for name in names if HistoryStore(store).has(name)]


def files_of(store: Path, table: str = "seconds") -> list[Path]:
    """Files that count by the log of a table, in the order of days and names."""
    from deltalake import DeltaTable

    return sorted(Path(name) for name in DeltaTable(store / table).file_uris())


def file_count(store: Path) -> int:
    return sum(len(files) for _, _, files in os.walk(store))


def total(store: Path, column: str = "total_energy") -> float:
    return float(np.sum([row[column] for row in rows(store)]))
