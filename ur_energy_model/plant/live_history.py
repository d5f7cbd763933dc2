"""LiveHistory: the history that the live estimator writes, and LiveHours: its rows, by hours.

Every minute, the rows whose energies are final are committed as a small file; at the end of an hour
one file replaces those of the minutes. A store that cannot be written costs no sample: rows wait in
memory, for some hours, and are written once it can be.
"""

from __future__ import annotations

import threading
import time
import uuid
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path

import numpy as np
import pyarrow as pa

from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.energy.cycles import Marks
from ur_energy_model.energy.powers import Channels, PowerTable
from ur_energy_model.errors import UrEnergyError
from ur_energy_model.plant.energy_parts import (
    NOTHING,
    SECOND,
    EnergyParts,
    PartTable,
    TimeRanges,
    has_host_time,
)
from ur_energy_model.plant.rows import CycleRows, HealthRows, joint_rows, second_rows
from ur_energy_model.plant.schema import LIVE, SourceKeys
from ur_energy_model.plant.store import MOST_SMALL, HistoryStore, OverlapError
from ur_energy_model.plant.store_files import day_name, with_arm
from ur_energy_model.telemetry.samples import arm_name, equal_runs

HOUR = 3600 * SECOND
"""ns."""
MOST_HOURS = 24
"""Hours whose rows wait while the store cannot be written."""
MOST_PARTS = 6 * 3600
"""Parts that wait for the store before they are rows."""
MOST_HEALTH = MOST_HOURS * 60
"""Tables of health, mostly of a minute each, that wait for the store."""
Rows = tuple[pa.Table, TimeRanges]
"""Rows and the time that they cover."""


@dataclass
class _Written:
    """Rows of one table in an hour, and where they are in the store.

    Attributes:
        final: rows whose energies do not change any more.
        count: how many of these are in `files`.
        files: paths of files that hold nothing else.
        open: paths of the file with the other rows, which the next writing replaces.
    """

    final: list[Rows] = field(default_factory=list)
    count: int = 0
    files: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)


class LiveHours:
    """Rows of one arm, with one model.

    Args:
        arm: name of the arm.
        keys: of the writer.
        channels: of the powers.
        path: of the model file; None for a generic model.

    Attributes:
        parts: of the seconds that were not collected yet.
        lost: number of seconds that had to be given up.
    """

    def __init__(
        self, arm: str, keys: SourceKeys, channels: Channels, path: Path | None = None
    ) -> None:
        self.parts, self.lost = EnergyParts(channels), 0
        self._arm, self._keys, self._channels, self._path = arm, keys, channels, path
        self._calculator: EnergyCalculator | None = None
        self._minutes: HealthRows | None = None
        self._health: list[pa.Table] = []
        """Complete minutes that wait for the store."""
        self._cycles = CycleRows(channels)
        self._hours: dict[int, dict[str, _Written]] = {}
        self._fixed: list[PartTable] = []
        self._waiting: PartTable | None = None

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
        if self._minutes is None or calculator is not self._calculator:
            self._collect_minutes(last=True)
            self._calculator, self._minutes = calculator, HealthRows(calculator)
        self.parts.update(table, cycles)
        self._minutes.update(table)

    def collect(self, *, last: bool = False) -> None:
        """Take the rows so far; these are not updated meanwhile.

        An hour does not wait until its energies are final: at its end all its parts are taken as
        they are, and what the meter adds or deducts later is attributed to later ones.

        Args:
            last: no more will follow.
        """
        self._collect_minutes(last=last)
        self._waiting = None
        if not self.parts.waiting:
            return
        begin = self.parts.so_far().begin
        passed = int(begin[0]) // HOUR != int(begin[-1]) // HOUR
        fixed = self.parts.take(anyway=passed or last)
        self._fixed += [] if fixed is None else [fixed]
        rest = self.parts.so_far()
        if last:
            self._fixed.append(rest)
            self.parts = EnergyParts(self._channels)
        elif rest.second[0] != rest.second[-1]:  # the second in progress alone can wait
            self._waiting = rest
        while sum(map(len, self._fixed)) > MOST_PARTS:
            self.lost += len(self._fixed.pop(0))

    def _collect_minutes(self, *, last: bool) -> None:
        if self._minutes is not None:
            complete = self._minutes.rows if last else self._minutes.complete
            rows = complete(self._keys)
            if len(rows):
                self._health = [*self._health, rows][-MOST_HEALTH:]
        if last:
            self._calculator = self._minutes = None

    def write(self, store: HistoryStore, *, last: bool = False) -> None:
        """Write what was collected.

        Args:
            store: to write to.
            last: no more will follow.

        Raises:
            StoreError: the store cannot be written; the rows stay in memory.
        """
        if self._calculator is not None:
            store.keep_model(self._keys, self._calculator.model, self._path)
        self._fix(store)
        newest = max(self._hours, default=0)
        for number in sorted(self._hours):
            tables, waiting = self._hours[number], None
            if self._waiting is not None and number == newest:
                begin = int(self._waiting.begin[0])
                waiting = self._rows(self._waiting, self._others(store, begin))
            ended = last or number != newest
            for table in ("cycles", "health"):
                self._write(store, number, table, None, ended)
            try:
                self._write(store, number, "seconds", waiting, ended)
            except OverlapError:  # another process has just added a recording of this time
                waiting = self._leave_out(store, tables["seconds"], waiting)
                self._write(store, number, "seconds", waiting, ended)
            joints = tables["joint_seconds"]
            for rows, _ in tables["seconds"].final[len(joints.final) :]:
                joints.final.append((joint_rows(with_arm(rows, self._arm)), NOTHING))
            if waiting is not None:
                waiting = joint_rows(with_arm(waiting[0], self._arm)), NOTHING
            self._write(store, number, "joint_seconds", waiting, ended)
            if ended:
                del self._hours[number]

    def _fix(self, store: HistoryStore) -> None:
        """Make rows of the parts whose energies do not change any more."""

        def hour(time: int) -> dict[str, _Written]:
            names = ("cycles", "health", "seconds", "joint_seconds")
            return self._hours.setdefault(time // HOUR, {name: _Written() for name in names})

        while self._fixed:
            others = self._others(store, int(self._fixed[0].begin[0]))
            for run in equal_runs(self._fixed[0].begin // HOUR):
                parts = self._fixed[0].cut(run)
                tables = hour(int(parts.begin[0]))
                tables["seconds"].final.append(self._rows(parts, others))
                self._cycles.update(_marked(parts, others))
                tables["cycles"].final.append((self._cycles.take(self._keys), NOTHING))
            del self._fixed[0]
        if self._waiting is not None:
            hour(int(self._waiting.begin[-1]))
        # A minute may be complete only in the hour after its own, whose file is final by then.
        while self._health and self._hours:
            rows = (self._health.pop(0), NOTHING)
            self._hours[max(self._hours)]["health"].final.append(rows)
        for number in sorted(self._hours)[:-MOST_HOURS]:
            self.lost += sum(len(rows) for rows, _ in self._hours.pop(number)["seconds"].final)

    def _write(
        self, store: HistoryStore, number: int, table: str, waiting: Rows | None, ended: bool
    ) -> None:
        """Write the rows of a table in an hour that are not in the store as they are now."""
        own, day = self._hours[number][table], day_name(number * HOUR)
        merged = ended and len(own.files) > 0 and (len(own.final) > own.count or len(own.files) > 1)
        rows = [*own.final[0 if merged else own.count :], *([] if waiting is None else [waiting])]
        replaced = [*own.open, *(own.files if merged else [])]
        if not any(len(each) for each, _ in rows) and not replaced:
            return
        ranges = reduce(TimeRanges.joined, (each for _, each in rows), NOTHING)
        found = pa.concat_tables(each for each, _ in rows)
        new = store.write_live(table, self._arm, self._keys.source, (day, found, ranges), replaced)
        if waiting is not None:
            own.open = new
        else:
            own.files, own.open = new if merged else [*own.files, *new], []
            own.count = len(own.final)

    def _rows(self, parts: PartTable, others: TimeRanges) -> Rows:
        marked = _marked(parts, others)
        rows = second_rows(marked, self._keys, self._channels)
        return rows, marked.ranges().without(others)

    def _others(self, store: HistoryStore, begin: int) -> TimeRanges:
        """Time that other sources of the arm cover from a host time [ns] on."""
        return store.covered(self._arm, begin, besides=self._keys.source)

    def _leave_out(self, store: HistoryStore, own: _Written, waiting: Rows | None) -> Rows | None:
        """Leave out of the rows that were not written the seconds that others cover now."""
        new = [*own.final[own.count :], *([] if waiting is None else [waiting])]
        start = min(int(ranges.edges[0, 0]) for _, ranges in new if ranges)
        others = self._others(store, start)

        def cut(rows: pa.Table, ranges: TimeRanges) -> Rows:
            begin = rows["second"].cast("int64").to_numpy() * 1000
            return rows.filter(~others.holds(begin + SECOND // 2)), ranges.without(others)

        own.final[own.count :] = [cut(*each) for each in own.final[own.count :]]
        return None if waiting is None else cut(*waiting)


def _marked(parts: PartTable, others: TimeRanges) -> PartTable:
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
        robot: type of the arm, where the telemetry does not give it.
        model: name of the model, see `model_key`.
        path: of the model file; None for a generic model.
        arm: name of the arm; None takes the serial number (or type) in the telemetry.
        period: between two writings [s].

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
        self._lost, self._hour = 0, int(time.time()) // 3600
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
        robot = info.robot or self._robot
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
                current = LiveHours(arm, keys, channels, self._path)
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
            self._lost, hours.lost = self._lost + hours.lost, 0
            hours.write(self._store, last=hours is not current)
        hour = int(time.time()) // 3600
        if hour != self._hour and hour % 24 == int(self._source[-2:], 16) % 24:
            self._store.compact(least=MOST_SMALL)  # once a day, each writer at an hour of its own
        self._hour = hour
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
