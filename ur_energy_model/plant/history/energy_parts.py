"""EnergyParts: cuts the powers of a recording into parts, from which rows of the history are made.

A part ends where a second, a possible cycle or the time that another source covers begins or ends.
Energies are those of the EnergyMeter, as `ur_energy estimate` counts them. What the meter adds or
deducts once the standby power of the session is known concerns time before that moment, and is
attributed to the parts of that time; the sum over all parts stays the meter's.
"""

from __future__ import annotations

import numpy as np

from ur_energy_model.energy.arm_state import ArmState
from ur_energy_model.energy.channels import Channels
from ur_energy_model.energy.live.cycles import Marks
from ur_energy_model.energy.meter import EnergyMeter, MeterReading
from ur_energy_model.energy.power_table import PowerTable
from ur_energy_model.plant.history.part_table import (
    PartTable,
    bus_measured,
    host_times,
    scaling_sums,
    temperature_sums,
)
from ur_energy_model.plant.history.time_ranges import NOTHING, SECOND, TimeRanges
from ur_energy_model.telemetry.runs import run_starts
from ur_energy_model.typing import Array

MOST_WAITING = 90_000
"""Parts that wait for the standby power of the session; a day of seconds."""


class EnergyParts:
    """Parts of one recording or stream, batch by batch.

    Args:
        channels: of the powers.
        covered: time that other sources cover.

    Attributes:
        meter: has counted all energies so far.
    """

    def __init__(self, channels: Channels, covered: TimeRanges = NOTHING) -> None:
        self.meter = EnergyMeter(len(channels))
        self._channels, self._covered = channels, covered
        self._waiting: list[PartTable] = []
        self._count = 0
        self._known = False
        """Whether the standby power of the session is in use."""
        self._attributed = np.zeros(len(channels))

    def update(self, table: PowerTable, cycles: Marks | None = None) -> None:
        """Take powers that follow those of the last call.

        Args:
            table: powers of samples.
            cycles: marks of cycles.
        """
        cycles = {} if cycles is None else cycles
        samples, channels = table.samples, self._channels
        times = host_times(samples)
        covered = self._covered.holds(times)
        edges = run_starts(np.column_stack([times // SECOND, covered]))
        readings, held, begins = [], [], []
        for rows, correction in table.parts([*edges.tolist(), *cycles]):
            before, corrected = self.meter.reading, self.meter.corrections
            if correction is not None:
                self._known = True
                self.meter.correct(correction)
            self.meter.integrate_steps(table.steps.cut(rows), table.power[rows])
            moved = self.meter.corrections - corrected
            reading = self.meter.reading - before
            reading = MeterReading(
                reading.net - moved,
                reading.consumed - moved,
                reading.accounted,
                reading.unaccounted,
            )
            begins.append(rows.start)
            readings.append(reading)
            held.append(np.zeros(len(ArmState)) if self._known else self._held(reading.net))
        first = np.array(begins)
        marks = np.full(len(first), None, dtype=np.object_)
        for part in np.flatnonzero(np.isin(first, list(cycles))).tolist():
            marks[part] = cycles[begins[part]]
        self._waiting.append(
            PartTable(
                begin=times[first],
                end=times[np.append(first[1:], len(times)) - 1],
                marks=marks,
                covered=covered[first],
                samples=np.diff(np.append(first, len(samples))),
                bus_measured=bus_measured(samples, first),
                accounted=np.array([reading.accounted for reading in readings]),
                unaccounted=np.array([reading.unaccounted for reading in readings]),
                peak=np.maximum.reduceat(table.power[:, channels.arm["total"]], first),
                net=np.stack([reading.net for reading in readings]),
                consumed=np.stack([reading.consumed for reading in readings]),
                held=np.stack(held),
                temperature=temperature_sums(samples, first, len(channels.joints)),
                scaling=scaling_sums(samples, first),
            )
        )
        self._count += len(first)

    @property
    def waiting(self) -> int:
        """Number of parts that were not taken yet."""
        return self._count

    def take(self, *, anyway: bool = False) -> PartTable | None:
        """Parts whose energies do not change any more, without those of the second in progress.

        They are removed. None if there are none.

        Args:
            anyway: take them even if the standby power of the session is not known yet.
        """
        settled = self._known and not self.meter.deducting
        if not self._count or not (anyway or settled or self._count > MOST_WAITING):
            return None
        parts = self.so_far()
        earlier = np.flatnonzero(parts.second != parts.second[-1])
        if not len(earlier):
            return None
        stop = int(earlier[-1]) + 1
        self._waiting, self._count = [parts.cut(slice(stop, None))], len(parts) - stop
        return parts.cut(slice(stop))

    def so_far(self) -> PartTable:
        """All parts that were not taken yet, with what is known now; at least one is waiting."""
        parts = PartTable.join(self._waiting)
        correction = self.meter.corrections - self._attributed
        self._attributed = self.meter.corrections
        if correction.any():
            change = self._attribute(correction, parts.held)
            parts.net[:] += change
            parts.consumed[:] += change
        self._waiting = [parts]
        return parts

    def _held(self, net: Array) -> Array:
        """Time by state in which the standby power of the model was counted [states], s."""
        start = self._channels.state_time
        held: Array = net[start : start + len(ArmState)].copy()
        held[: ArmState.STANDSTILL] = 0.0  # brakes engaged: counted without standby power
        return held

    def _attribute(self, correction: Array, held: Array) -> Array:
        """Shares of a correction [channels] of parts by their time [parts, states]: [parts, c]."""
        total = held.sum(axis=1)
        if not total.any():  # the parts that it concerns were taken
            total = np.ones(len(held))
        share = total / total.sum()
        change: Array = np.outer(share, correction)
        for state in ArmState:
            seconds = held[:, state].sum()
            column = self._channels.state_energy + state
            own = held[:, state] / seconds if seconds > 0.0 else share
            change[:, column] = own * correction[column]
        return change
