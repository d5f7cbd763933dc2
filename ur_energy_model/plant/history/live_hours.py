"""LiveHours: rows of a live writer, in files of one hour each."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.energy.channels import Channels
from ur_energy_model.energy.live.cycles import Marks
from ur_energy_model.energy.power_table import PowerTable
from ur_energy_model.missing_packages import needed_here
from ur_energy_model.plant.history.cycle_rows import CycleRows
from ur_energy_model.plant.history.energy_parts import EnergyParts
from ur_energy_model.plant.history.parquet_files import DAY, day_files, day_name
from ur_energy_model.plant.history.part_table import PartTable
from ur_energy_model.plant.history.row_makers import MAKERS, RowMaker
from ur_energy_model.plant.history.second_rows import second_rows
from ur_energy_model.plant.history.source_keys import SourceKeys
from ur_energy_model.plant.history.store import HistoryStore
from ur_energy_model.plant.history.time_ranges import NOTHING, SECOND, TimeRanges
from ur_energy_model.telemetry.runs import equal_runs

if TYPE_CHECKING:
    import pyarrow

HOUR = 3600 * SECOND
"""ns."""
MOST_HOURS = 24
"""Hours whose rows wait while the store cannot be written."""
MOST_PARTS = 6 * 3600
"""Parts that wait for the store before they are rows."""
MOST_FURTHER = MOST_HOURS * 60
"""Pieces of further tables, mostly a minute each, that wait for the store."""


@dataclass
class _Hour:
    """Rows of an hour whose energies do not change any more, and the time that they cover."""

    seconds: list[pyarrow.Table] = field(default_factory=list)
    cycles: list[pyarrow.Table] = field(default_factory=list)
    further: dict[str, list[pyarrow.Table]] = field(default_factory=dict)
    """Rows of further tables that were complete in this hour, by table."""
    ranges: TimeRanges = NOTHING

    @property
    def rows(self) -> int:
        return sum(table.num_rows for table in self.seconds)


class LiveHours:
    """Rows of one arm, with one model.

    Args:
        arm: name of the arm.
        keys: of the writer.
        channels: of the powers.
        part: number of these among those of the writer, a part of the file names.
        path: of the model file; None for a generic model.

    Attributes:
        parts: of the seconds that were not collected yet.
    """

    def __init__(
        self, arm: str, keys: SourceKeys, channels: Channels, part: int, path: Path | None = None
    ) -> None:
        self.parts = EnergyParts(channels)
        self._arm, self._keys, self._channels, self._part = arm, keys, channels, part
        self._path = path
        self._calculator: EnergyCalculator | None = None
        self._makers: list[RowMaker] = []
        self._further: list[tuple[str, pyarrow.Table]] = []
        """Complete rows of further tables that wait for the store."""
        self._cycles = CycleRows(channels)
        self._hours: dict[int, _Hour] = {}
        self._fixed: list[PartTable] = []
        self._waiting: PartTable | None = None
        self._lost = 0

    def is_for(self, arm: str, keys: SourceKeys, channels: Channels) -> bool:
        """Whether rows of this arm, model and these powers belong here."""
        same = channels is self._channels or channels.names == self._channels.names
        return same and (arm, keys) == (self._arm, self._keys)

    def update(self, table: PowerTable, cycles: Marks, calculator: EnergyCalculator) -> None:
        """Take powers that follow those of the last call.

        Args:
            table: powers of samples.
            cycles: marks of cycles.
            calculator: that computed the powers.
        """
        if calculator is not self._calculator:
            self._end_makers()
            self._calculator = calculator
            self._makers = [make(calculator) for make in MAKERS]
        self.parts.update(table, cycles)
        for maker in self._makers:
            maker.update(table)

    def collect(self, *, last: bool = False) -> None:
        """Take the rows so far; these are not updated meanwhile.

        Args:
            last: no more will follow.
        """
        if last:
            self._end_makers()
        for maker in self._makers:
            self._keep(maker.table, maker.complete(self._keys))
        self._waiting = None
        if not self.parts.waiting:
            return
        waiting = self.parts.so_far()
        passed = int(waiting.begin[0]) // HOUR != int(waiting.begin[-1]) // HOUR
        fixed = self.parts.take(anyway=passed or last)
        if fixed is not None:
            self._fixed.append(fixed)
        self._waiting = self.parts.so_far()
        if last:
            self._fixed.append(self._waiting)
            self.parts, self._waiting = EnergyParts(self._channels), None
        while sum(map(len, self._fixed)) > MOST_PARTS:
            self._lost += len(self._fixed.pop(0))

    def _end_makers(self) -> None:
        for maker in self._makers:
            self._keep(maker.table, maker.rows(self._keys))
        self._calculator, self._makers = None, []

    def _keep(self, table: str, rows: pyarrow.Table) -> None:
        if rows.num_rows:
            self._further = [*self._further, (table, rows)][-MOST_FURTHER:]

    def take_lost(self) -> int:
        """Number of seconds that had to be given up since the last call."""
        lost, self._lost = self._lost, 0
        return lost

    def write(self, store: HistoryStore) -> None:
        """Write what was collected.

        Raises:
            StoreError: the store cannot be written; the rows stay in memory.
        """
        with store.exclusive():
            if self._calculator is not None:
                store.keep_model(self._keys, self._calculator.model, self._path)
            self._fix(store)
            self._give_up()
            extra = NOTHING if self._waiting is None else self._others(store, self._waiting)
            for hour in sorted(self._hours):
                waiting = self._waiting
                part = None if waiting is None else _cut(waiting, hour)
                self._write_hour(store, hour, part, extra)
            newest = max(self._hours, default=0)
            for hour in [each for each in self._hours if each != newest]:
                del self._hours[hour]

    def _fix(self, store: HistoryStore) -> None:
        """Make rows of the parts whose energies do not change any more."""
        while self._fixed:
            parts = self._fixed[0]
            others = self._others(store, parts)
            for rows in equal_runs(parts.begin // HOUR):
                part = _left_out(parts.cut(rows), others)
                hour = self._hours.setdefault(int(part.begin[0]) // HOUR, _Hour())
                hour.seconds.append(second_rows(part, self._keys, self._channels))
                hour.ranges = hour.ranges.joined(part.ranges()).without(others)
                self._cycles.update(part)
                hour.cycles.append(self._cycles.take(self._keys))
            del self._fixed[0]
        if self._waiting is not None:
            for number in np.unique(self._waiting.begin // HOUR).tolist():
                self._hours.setdefault(number, _Hour())
        # A minute may be complete in the next hour only, when the files of its own are final.
        while self._further and self._hours:
            table, rows = self._further.pop(0)
            self._hours[max(self._hours)].further.setdefault(table, []).append(rows)

    def _write_hour(
        self, store: HistoryStore, number: int, waiting: PartTable | None, others: TimeRanges
    ) -> None:
        """Write the files of an hour.

        Args:
            store: to write to.
            number: of the hour since 1970.
            waiting: parts of the hour whose energies may still change.
            others: time that other sources cover.
        """
        with needed_here():
            import pyarrow as pa
        hour, seconds, ranges = self._hours[number], [], NOTHING
        if waiting is not None and len(waiting):
            part = _left_out(waiting, others)
            seconds, ranges = [second_rows(part, self._keys, self._channels)], part.ranges()
        tables = {"seconds": [*hour.seconds, *seconds], "cycles": hour.cycles, **hour.further}
        rows = {name: pa.concat_tables(each) for name, each in tables.items() if each}
        file = f"{self._keys.source}-{self._part}-{number}"
        store.write_live(day_files(self._arm, file, rows, hour.ranges.joined(ranges)))

    def _others(self, store: HistoryStore, parts: PartTable) -> TimeRanges:
        """Time that other sources of the arm cover on the days of some parts."""
        days = np.unique(parts.begin // DAY).tolist()
        names = [day_name(day * DAY) for day in days]
        return store.covered(self._arm, names, besides=self._keys.source)

    def _give_up(self) -> None:
        """Forget the oldest hours beyond MOST_HOURS."""
        for hour in sorted(self._hours)[:-MOST_HOURS]:
            self._lost += self._hours.pop(hour).rows


def _cut(parts: PartTable, hour: int) -> PartTable:
    return parts.cut(parts.begin // HOUR == hour)


def _left_out(parts: PartTable, others: TimeRanges) -> PartTable:
    """The parts, those that other sources cover marked."""
    covered = parts.covered | others.holds(parts.begin) | others.holds(parts.end)
    return replace(parts, covered=covered)
