"""LiveHistory: the history of an arm while it works, written by the live estimator.

One file per table, arm and hour, replaced once a minute. A store that cannot be written costs no
sample: rows wait in memory, for some hours, and are written once it can be.
"""

from __future__ import annotations

import itertools
import threading
import time
import uuid
from dataclasses import replace
from pathlib import Path

import numpy as np

from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.energy.live.cycles import Marks
from ur_energy_model.energy.power_table import PowerTable
from ur_energy_model.errors import UrEnergyError
from ur_energy_model.plant.history.live_hours import LiveHours
from ur_energy_model.plant.history.part_table import has_host_time
from ur_energy_model.plant.history.source_keys import LIVE, SourceKeys, robot_key
from ur_energy_model.plant.history.store import HistoryStore
from ur_energy_model.telemetry.arm_identity import arm_name

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
