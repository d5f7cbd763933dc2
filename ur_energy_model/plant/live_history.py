# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""LiveHistory: the history that the live estimator writes, and LiveRows: its rows.

Every minute, the rows of the seconds that are over are committed as a small file; at the
end of an hour one file replaces the files of the minutes. A store that cannot be written
costs no sample: rows stay in memory, for some hours, until the store can be written
again.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.energy.cycle_energies import Cycle
from ur_energy_model.energy.cycles import Marks
from ur_energy_model.energy.powers import Channels, PowerTable
from ur_energy_model.energy.program import Script
from ur_energy_model.errors import UrEnergyError
from ur_energy_model.plant.energy_parts import (
    NOTHING,
    SECOND,
    EnergyParts,
    PartTable,
    TimeRanges,
)
from ur_energy_model.plant.health_rows import HealthRows
from ur_energy_model.plant.program_rows import ProgramRows
from ur_energy_model.plant.rows import cycle_rows, joint_rows, second_rows
from ur_energy_model.plant.schema import LIVE, ModelRow, SourceKeys
from ur_energy_model.plant.store import MOST_SMALL, HistoryStore, LivePart
from ur_energy_model.plant.store_changes import OverlapError
from ur_energy_model.plant.store_files import Rows, divided, with_arm
from ur_energy_model.telemetry.samples import arm_name, with_host_time

HOUR = 3600 * SECOND  # ns
MOST_ROWS = 24 * 3600
"""Rows of a table that stay in memory while a store cannot be written."""
MOST_PARTS = 6 * 3600
"""Parts that stay in memory, before they are rows, while a store cannot be written."""
LIVE_TABLES = ("cycles", "health", "program_nodes", "seconds")
"""Tables that are written live; rows of joints follow from `seconds`."""


class LiveRows:
    """Rows of one arm with one model, and the files that they are in.

    Args:
        arm: name of the arm.
        keys: columns that all rows have in common.
        channels: channels of the powers.
        path: path of the model file; None for a generic model.
        script: script that names the nodes of the program; None for none.

    Attributes:
        parts: parts of the seconds that were not collected yet.
        lost: number of seconds that were lost because a store could not be written.
    """

    def __init__(
        self,
        arm: str,
        keys: SourceKeys,
        channels: Channels,
        path: Path | None = None,
        script: Script | None = None,
    ) -> None:
        self.arm = arm
        self.keys = keys
        self.channels = channels
        self.parts = EnergyParts(channels)
        self.lost = 0
        self._path = path
        self._calculator: EnergyCalculator | None = None
        self._health: HealthRows | None = None
        self._nodes = ProgramRows(channels, () if script is None else (script,))
        self._taken: list[PartTable] = []  # parts of seconds that are over
        self._cycles: list[Cycle] = []  # complete cycles that were not written yet
        self._newest = 0  # hour of the newest part
        self._model: ModelRow | None = None
        self._rows: dict[str, list[Rows]] = {table: [] for table in LIVE_TABLES}
        """Rows by table that are not in the store."""
        self._files: dict[int, list[str]] = {}
        """Paths of the files of hours that are not over, by number of the hour."""

    def continues(self, arm: str, keys: SourceKeys, channels: Channels) -> bool:
        """Whether powers of an arm, with these keys and channels, belong to these rows."""
        same_arm = self.arm == arm and self.keys == keys
        return same_arm and self.channels.names == channels.names

    def update(
        self, table: PowerTable, cycles: Marks, calculator: EnergyCalculator
    ) -> None:
        """Take powers that follow the powers of the last call.

        Args:
            table: powers of consecutive samples.
            cycles: marks of cycles in these samples.
            calculator: calculator that has computed the powers; another one ends the
                minute in progress.
        """
        if self._health is None or calculator is not self._calculator:
            self._collect_minutes(last=True)
            self._calculator = calculator
            self._health = HealthRows(calculator)
        self.parts.update(table, cycles)
        self._health.update(table)
        self._nodes.update(table)

    def collect(self, *, last: bool = False) -> None:
        """Take the rows so far; there are no updates meanwhile.

        Args:
            last: whether no updates follow, so that the second in progress ends.
        """
        self._collect_minutes(last=last)
        if last:
            self._calculator = None
            self._health = None
        self._cycles = [*self._cycles, *self.parts.cycles][-MOST_ROWS:]
        self.parts.cycles = []
        if self.parts.waiting:
            self._newest = int(self.parts.so_far().begin[-1]) // HOUR
            over = self.parts.so_far() if last else self.parts.take()
            if over is not None:
                self._taken.append(over)
        if last:
            self.parts = EnergyParts(self.channels)
        while sum(map(len, self._taken)) > MOST_PARTS:
            self.lost += len(self._taken.pop(0))
        for table, waiting in self._rows.items():
            while sum(len(rows) for rows, _ in waiting) > MOST_ROWS:
                rows, _ = waiting.pop(0)
                if table == "seconds":
                    self.lost += len(rows)

    def _collect_minutes(self, *, last: bool) -> None:
        """Take the rows of the minutes that are over.

        Args:
            last: whether the minute in progress ends.
        """
        if self._health is not None:
            health = self._health.rows(self.keys, last=last)
            self._rows["health"].append((health, NOTHING))
            self._rows["program_nodes"].append((self._nodes.rows(self.keys), NOTHING))

    def write(self, store: HistoryStore, *, last: bool = False) -> None:
        """Write what was collected.

        Args:
            store: store to write to.
            last: whether no more rows follow; then the files of the hour are joined.

        Raises:
            StoreError: the store cannot be written; the rows stay in memory.
        """
        if self._calculator is not None:
            model = self._calculator.model
            self._model = store.keep_model(self.keys, model, self._path)
        while self._taken:
            self._rows["seconds"].append(self._seconds(store, self._taken[0]))
            del self._taken[0]
        if self._cycles:
            start = min(cycle.start for cycle in self._cycles)
            others = store.covered(self.arm, start, besides=self.keys.source)
            own = [
                cycle
                for cycle in self._cycles
                if not others.overlaps(cycle.start, cycle.end)
            ]
            rows = cycle_rows(own, self.keys, self.channels)
            self._rows["cycles"].append((rows, NOTHING))
            self._cycles = []
        try:
            self._write(store)
        except OverlapError:  # another process has just added a recording of this time
            self._rows["seconds"] = self._uncovered(store, self._rows["seconds"])
            self._write(store)
        for hour, paths in list(self._files.items()):
            if last or hour < self._newest:
                store.join(paths)
                del self._files[hour]

    def _write(self, store: HistoryStore) -> None:
        """Write the rows of all tables in one change.

        Raises:
            OverlapError: another process has added rows of the same time; nothing is
                written.
        """
        joints: list[Rows] = []
        for seconds, _ in self._rows["seconds"]:
            joints.append((joint_rows(with_arm(seconds, self.arm)), NOTHING))
        parts: dict[str, list[LivePart]] = {}
        hours: dict[str, list[int]] = {}  # number of the hour of each part, by table
        for table, rows_of_table in {**self._rows, "joint_seconds": joints}.items():
            parts[table] = []
            hours[table] = []
            for begin, day, rows, covered in _by_hour(table, rows_of_table):
                parts[table].append(LivePart(day, rows, covered))
                hours[table].append(begin // HOUR)
        if any(parts.values()):
            paths = store.write_live(self.arm, self.keys.source, parts, self._model)
            for table, of_table in hours.items():
                for hour, path in zip(of_table, paths[table], strict=True):
                    self._files.setdefault(hour, []).append(path)
        for rows in self._rows.values():
            rows.clear()

    def _seconds(self, store: HistoryStore, parts: PartTable) -> Rows:
        """Rows of `seconds`, and the time that they cover, without what other sources cover."""
        others = store.covered(self.arm, int(parts.begin[0]), besides=self.keys.source)
        covered = parts.covered | others.holds(parts.begin) | others.holds(parts.end)
        marked = replace(parts, covered=covered)
        rows = second_rows(marked, self.keys, self.channels)
        return rows, marked.ranges().without(others)

    def _uncovered(self, store: HistoryStore, rows: list[Rows]) -> list[Rows]:
        """Rows of `seconds` without the seconds whose middle other sources cover now."""
        start = min((ranges.pairs()[0][0] for _, ranges in rows if ranges), default=0)
        others = store.covered(self.arm, start, besides=self.keys.source)
        found: list[Rows] = []
        for seconds, ranges in rows:
            begin = seconds["second"].cast("int64").to_numpy() * 1000
            free = seconds.filter(~others.holds(begin + SECOND // 2))
            found.append((free, ranges.without(others)))
        return found


def _by_hour(
    table: str, rows: list[Rows]
) -> Iterator[tuple[int, str, pa.Table, TimeRanges]]:
    """Divide rows of a table by hours, as `divided` does; nothing without any row."""
    if any(len(each) for each, _ in rows):
        ranges = NOTHING
        for _, covered in rows:
            ranges = ranges.joined(covered)
        together = pa.concat_tables(each for each, _ in rows)
        yield from divided(table, together, ranges, HOUR)


PERIOD = 60.0  # time between two writings [s]
MOST_WAITING = 4 * 3600
"""Parts, mostly seconds, that stay in memory while the store does not answer; further ones are
lost."""
LAST_CHANCE = 5.0  # longest time that closing takes for the store [s]


class LiveHistory:
    """Writes the history of one arm in a thread of its own.

    Another arm, model or set of channels begins new rows; the former rows are written
    with what they were computed with.

    Args:
        address: address of the store.
        robot: type of the arm, where the telemetry does not state it.
        model: key of the model, see `model_key`.
        path: path of the model file; None for a generic model.
        script: script of the running program; None where it is not known.
        period: time between two writings [s].

    Raises:
        StoreError: no such address.
    """

    def __init__(
        self,
        address: str,
        robot: str,
        model: str,
        *,
        path: Path | None = None,
        script: Script | None = None,
        period: float = PERIOD,
    ) -> None:
        self._store = HistoryStore(address)
        self._robot = robot
        self._model = model
        self._period = period
        self._path = path
        self._script = script
        self._source = f"{LIVE}{uuid.uuid4().hex[:12]}"
        self._changed = threading.Condition()
        self._closing = False
        self._rows: list[LiveRows | None] = [None]
        """The last rows are in use; the rows before get no more powers."""
        self._lost = 0
        self._hour = int(time.time()) // 3600
        self._problem: str | None = None
        self._thread = threading.Thread(target=self._run, name="history", daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        """Address of the store."""
        return self._store.address

    @property
    def problem(self) -> str | None:
        """Why rows are not written yet, or lost, in one line; None if all are written."""
        lost = f"{self._lost} s of history are lost" if self._lost else None
        return "; ".join(filter(None, (self._problem, lost))) or None

    def update(
        self, table: PowerTable, cycles: Marks, calculator: EnergyCalculator
    ) -> None:
        """Take powers that follow the powers of the last call, without waiting for the store.

        Args:
            table: powers; without host stamps, the samples are taken to be from now.
            cycles: marks of cycles in these samples.
            calculator: calculator that has computed the powers.
        """
        info = table.samples.info
        channels = calculator.channels
        robot = info.robot or self._robot
        arm = arm_name(replace(info, robot=robot))
        keys = SourceKeys(self._source, robot, self._model)
        table = replace(table, samples=with_host_time(table.samples, time.time_ns()))
        with self._changed:
            if self._closing:
                return
            rows = self._rows[-1]
            if rows is None or not rows.continues(arm, keys, channels):
                before = rows
                rows = LiveRows(arm, keys, channels, self._path, self._script)
                if before is not None and before.arm == arm:
                    # The step to the first sample with another model begins with the last
                    # power.
                    last = before.parts.meter.last_power
                    rows.parts.meter.last_power = channels.convert_values(
                        last, before.channels.names
                    )
                self._rows.append(rows)
            rows.update(table, cycles, calculator)
            if rows.parts.waiting > MOST_WAITING:
                dropped = rows.parts.take()
                rows.parts.cycles.clear()
                if dropped is not None:
                    self._lost += len(dropped)

    def use_model(self, model: str) -> None:
        """Continue with powers of another model.

        Args:
            model: key of the model, see `model_key`.
        """
        with self._changed:
            self._model = model

    def _write(self) -> None:
        """Write all rows so far; for the thread of this object."""
        with self._changed:
            former = len(self._rows) - 1
            in_use = self._rows[-1]
            everything = [rows for rows in self._rows if rows is not None]
            for rows in everything:
                rows.collect(last=rows is not in_use)
        for rows in everything:
            self._lost = self._lost + rows.lost
            rows.lost = 0
            rows.write(self._store, last=rows is not in_use)
        hour = int(time.time()) // 3600
        own_hour = int(self._source[-2:], 16) % 24  # differs from writer to writer
        if hour != self._hour and hour % 24 == own_hour:  # once a day
            self._store.compact(least=MOST_SMALL)
        self._hour = hour
        with self._changed:
            del self._rows[:former]

    def close(self) -> None:
        """Write all rows, for LAST_CHANCE at most, and end the thread."""
        with self._changed:
            self._closing = True
            self._rows.append(None)
            self._changed.notify()
        self._thread.join(LAST_CHANCE)

    def _run(self) -> None:
        """Write the rows every period, and once more when the history is closed."""
        closing = False
        while not closing:
            with self._changed:
                closing = self._changed.wait_for(lambda: self._closing, self._period)
            try:
                self._write()
                self._problem = None
            except UrEnergyError as error:
                self._problem = str(error)
            except Exception as error:  # whatever a library raises, the estimator goes on
                self._problem = f"{self.address}: {type(error).__name__}: {error}"
