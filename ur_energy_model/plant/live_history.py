"""LiveHistory: the history of an arm while it works, written by the live estimator.

One file per table, arm and hour, replaced once a minute. A store that cannot be written costs no
sample: rows wait in memory, for some hours, and are written once it can be.
"""

from __future__ import annotations

import itertools
import threading
import time
import uuid
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow

from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.energy.cycles import Marks
from ur_energy_model.energy.powers import Channels, PowerTable
from ur_energy_model.errors import UrEnergyError, optional_import
from ur_energy_model.plant.energy_parts import (
    NOTHING,
    SECOND,
    EnergyParts,
    PartTable,
    TimeRanges,
    has_host_time,
)
from ur_energy_model.plant.rows import MAKERS, CycleRows, RowMaker, second_rows
from ur_energy_model.plant.schema import LIVE, SourceKeys, robot_key
from ur_energy_model.plant.source_record import DAY, day_files, day_name
from ur_energy_model.plant.store import HistoryStore
from ur_energy_model.telemetry.samples import arm_name, equal_runs

# LiveHours: rows of a live writer, in files of one hour each.

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
        with optional_import():
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


PERIOD = 60.0
"""Between two writings [s]."""
MOST_WAITING = 4 * 3600
"""Parts, mostly seconds, that wait while the store does not answer; then the oldest are lost."""
LAST_CHANCE = 5.0
"""Longest time that closing waits for the store [s]."""


class LiveHistory:
    """Writes the history of one arm in a thread of its own.

    Args:
        address: of the store: a folder, or s3://BUCKET/PREFIX.
        robot: type of the arm, where the telemetry does not tell it.
        model: name of the model, see `model_key`.
        path: of the model file; None for a generic model.
        arm: name of the arm; None takes the serial number (or type) in the telemetry.
        period: between two writings [s].

    Raises:
        StoreError: no such address.
        MissingPackageError: pyarrow is not installed.
    """

    def __init__(
        self,
        address: str,
        robot: str,
        model: str,
        *,
        path: Path | None = None,
        arm: str | None = None,
        period: float = PERIOD,
    ) -> None:
        self._store = HistoryStore(address)
        self._robot, self._model, self._arm, self._period = robot, model, arm, period
        self._path = path
        self._source = f"{LIVE}{uuid.uuid4().hex[:12]}"
        self._changed = threading.Condition()
        self._closing = False
        self._current: LiveHours | None = None
        self._earlier: list[LiveHours] = []
        self._numbers = itertools.count()
        self._lost = 0
        self._problem: str | None = None
        self._thread = threading.Thread(target=self._run, name="history", daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        """Of the store."""
        return self._store.address

    @property
    def problem(self) -> str | None:
        """Why rows wait or are lost, in one line; None if all are written."""
        lost = f"{self._lost} s of history are lost" if self._lost else None
        return "; ".join(filter(None, (self._problem, lost))) or None

    def update(self, table: PowerTable, cycles: Marks, calculator: EnergyCalculator) -> None:
        """Take powers that follow those of the last call; never waits for the store.

        Args:
            table: powers of samples; without host stamps they are taken as of now.
            cycles: marks of cycles.
            calculator: that computed the powers.
        """
        info, channels = table.samples.info, calculator.channels
        robot = robot_key(info, self._robot)
        arm = arm_name(replace(info, robot=robot)) if self._arm is None else self._arm
        keys = SourceKeys(self._source, robot, self._model)
        table = _stamped(table)
        with self._changed:
            if self._closing:
                return
            current = self._current
            if current is None or not current.is_for(arm, keys, channels):
                if current is not None:
                    self._earlier.append(current)
                current = LiveHours(arm, keys, channels, next(self._numbers), self._path)
                self._current = current
            current.update(table, cycles, calculator)
            if current.parts.waiting > MOST_WAITING:
                dropped = current.parts.take(anyway=True)
                self._lost += 0 if dropped is None else len(dropped)

    def use_model(self, model: str) -> None:
        """Continue with powers of another model, see `model_key`."""
        with self._changed:
            self._model = model

    def _write(self) -> None:
        """Write all rows so far; for the thread of this object.

        Raises:
            StoreError: the store cannot be written; the rows stay in memory.
        """
        with self._changed:
            earlier, current = list(self._earlier), self._current
            for hours in earlier:
                hours.collect(last=True)
            if current is not None:
                current.collect()
        for hours in (*earlier, *(() if current is None else (current,))):
            self._lost += hours.take_lost()
            hours.write(self._store)
        with self._changed:
            self._earlier = [hours for hours in self._earlier if hours not in earlier]

    def close(self) -> None:
        """Write all rows, for LAST_CHANCE at most, and end the thread."""
        with self._changed:
            self._closing = True
            if self._current is not None:
                self._earlier.append(self._current)
                self._current = None
            self._changed.notify()
        self._thread.join(LAST_CHANCE)

    def _run(self) -> None:
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


def _stamped(table: PowerTable) -> PowerTable:
    """The powers with host stamps."""
    samples = table.samples
    if has_host_time(samples):
        return table
    age = np.round((samples.time[-1] - samples.time) * 1e9).astype(np.int64)
    return replace(table, samples=replace(samples, stamp=time.time_ns() - age))
