"""EnergyParts: cuts the powers of a recording into parts, from which rows of the history are made.

A part ends where a second, a possible cycle or the time that another source covers begins or ends.
Energies are those of the EnergyMeter, as `ur_energy estimate` counts them. What the meter adds or
deducts once the standby power of the session is known concerns time before that moment, and is
attributed to the parts of that time; the sum over all parts stays the meter's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.energy.cycles import Marks
from ur_energy_model.energy.meter import EnergyMeter, MeterReading
from ur_energy_model.energy.powers import ArmState, Channels, PowerTable
from ur_energy_model.telemetry.samples import Telemetry, run_starts
from ur_energy_model.typing import Array, Indices, Mask

# TimeRanges: stretches of host time, such as those that a source of the history covers.

SECOND = 1_000_000_000
"""ns."""
Times = NDArray[np.int64]
"""Host times, ns since 1970 UTC."""


@dataclass(frozen=True)
class TimeRanges:
    """Ascending stretches of time that do not overlap.

    Attributes:
        edges: begin and end of each [ranges, 2], ns since 1970 UTC.
    """

    edges: Times

    @classmethod
    def of(cls, pairs: Iterable[tuple[int, int]], pause: int = 0) -> TimeRanges:
        """From begins and ends [ns] in any order.

        Those that overlap, touch, or have at most a pause [ns] in between become one.
        """
        merged: list[list[int]] = []
        for start, end in sorted(pairs):
            if merged and start <= merged[-1][1] + pause:
                merged[-1][1] = max(merged[-1][1], end)
            else:
                merged.append([start, end])
        return cls(np.array(merged, dtype=np.int64).reshape(-1, 2))

    def __bool__(self) -> bool:
        return bool(len(self.edges))

    def joined(self, later: TimeRanges) -> TimeRanges:
        """With the ranges that follow; pauses of a second between two ranges count as covered."""
        return TimeRanges.of([*self.pairs(), *later.pairs()], SECOND)

    def without(self, others: TimeRanges) -> TimeRanges:
        """The parts that are outside other ranges."""
        out = []
        for start, end in self.pairs():
            begin = start
            for taken, free in others.within(start, end).pairs():
                if begin < taken:
                    out.append((begin, taken))
                begin = free
            if begin < end or start == end:
                out.append((begin, end))
        return TimeRanges(np.array(out, dtype=np.int64).reshape(-1, 2))

    def pairs(self) -> list[tuple[int, int]]:
        """Begin and end of each [ns]."""
        return [(int(start), int(end)) for start, end in self.edges]

    def holds(self, times: Times) -> Mask:
        """Times after the begin of a range and not after its end [n].

        The step to the first sample of a source is not part of its time.
        """
        if not len(self.edges):
            return np.zeros(len(times), dtype=bool)
        before = np.searchsorted(self.edges[:, 0], times, side="left") - 1
        return np.asarray((before >= 0) & (times <= self.edges[before, 1]))

    def within(self, start: int, end: int) -> TimeRanges:
        """The parts of the ranges between two times [ns]."""
        low = np.maximum(self.edges[:, 0], start)
        high = np.minimum(self.edges[:, 1], end)
        return TimeRanges(np.column_stack([low, high])[low < high])


NOTHING = TimeRanges.of(())
"""No time at all."""

# PartTable: energies of consecutive short parts of a recording.


@dataclass(frozen=True)
class PartTable:
    """Consecutive parts, one entry each.

    Attributes:
        begin, end: host time of the first and last sample [parts], ns, in one second.
        marks: `Mark` with which the part begins, None where it begins with none [parts].
        covered: whether another source covers the part [parts].
        samples: number of samples [parts].
        bus_measured: whether bus power was measured at all of them [parts].
        accounted, unaccounted: [parts], s.
        peak: largest total power [parts], W.
        net, consumed: integrals of the powers and of their positive parts [parts, channels], J.
        held: time by state before the standby power was known [parts, states], s.
        temperature: sums over the samples that have joint temperatures [parts, n], degC, and their
            number in a last column.
        scaling: sum over the samples that have a speed scaling, and their number [parts, 2].
    """

    begin: Times
    end: Times
    marks: NDArray[np.object_]
    covered: Mask
    samples: Indices
    bus_measured: Mask
    accounted: Array
    unaccounted: Array
    peak: Array
    net: Array
    consumed: Array
    held: Array
    temperature: Array
    scaling: Array

    def __len__(self) -> int:
        return len(self.begin)

    @property
    def second(self) -> Times:
        """Seconds since 1970 UTC [parts]."""
        return np.asarray(self.begin // SECOND)

    def cut(self, rows: slice | Mask | Indices) -> PartTable:
        """Some of the parts."""
        return PartTable(*(getattr(self, field.name)[rows] for field in fields(self)))

    @classmethod
    def join(cls, tables: Sequence[PartTable]) -> PartTable:
        """Consecutive tables as one; at least one."""
        return cls(*(np.concatenate([getattr(t, f.name) for t in tables]) for f in fields(cls)))

    def ranges(self) -> TimeRanges:
        """Time that the parts cover which no other source covers; pauses of a second end it."""
        own = ~self.covered
        joined = own[1:] & own[:-1] & (np.abs(self.begin[1:] - self.end[:-1]) <= SECOND)
        starts = np.flatnonzero(own & ~np.append(False, joined))
        ends = np.flatnonzero(own & ~np.append(joined, False))
        edges = np.column_stack([self.begin[starts], self.end[ends]])
        return TimeRanges.of(map(tuple, edges.tolist()))

    def reading(self, rows: slice) -> MeterReading:
        """Energy of some of the parts together."""
        return MeterReading(
            self.net[rows].sum(axis=0),
            self.consumed[rows].sum(axis=0),
            float(self.accounted[rows].sum()),
            float(self.unaccounted[rows].sum()),
        )


def has_host_time(samples: Telemetry) -> bool:
    """Whether it is known when the samples were taken: host stamps, or a clock since 1970."""
    return samples.stamp is not None or float(samples.time[0]) > _YEAR_2000


def host_times(samples: Telemetry) -> Times:
    """Host time of each sample [samples], ns since 1970 UTC.

    Without host stamps it is the controller's clock, as if that had started in 1970.
    """
    if samples.stamp is not None:
        return samples.stamp
    return np.asarray(np.round(np.clip(samples.time, 0.0, _LATEST) * SECOND), dtype=np.int64)


def bus_measured(samples: Telemetry, first: Indices) -> Mask:
    """Whether bus power was measured at all samples of each part that begins at `first`."""
    power = samples.bus_power
    if power is None:
        return np.zeros(len(first), dtype=bool)
    return np.asarray(np.logical_and.reduceat(np.isfinite(power), first))


def temperature_sums(samples: Telemetry, first: Indices, joints: int) -> Array:
    """`PartTable.temperature` of parts that begin at samples `first`."""
    values = samples.columns.get("joint_temperatures")
    if values is None:
        return np.zeros((len(first), joints + 1))
    return _sums_and_count(values, first)


def scaling_sums(samples: Telemetry, first: Indices) -> Array:
    """`PartTable.scaling` of parts that begin at samples `first`: slider times limiter."""
    columns = samples.columns
    if "speed_scaling" not in columns:
        return np.zeros((len(first), 2))
    values = columns["speed_scaling"]
    if "target_speed_fraction" in columns:
        values = values * columns["target_speed_fraction"]
    return _sums_and_count(values[:, None], first)


def _sums_and_count(values: Array, first: Indices) -> Array:
    """Sums over the finite rows of values [samples, k] by part, and their number: [parts, k + 1]"""
    known = np.isfinite(values).all(axis=1, keepdims=True)
    return np.add.reduceat(np.hstack([np.where(known, values, 0.0), known]), first, axis=0)


_YEAR_2000 = 946_684_800.0
_LATEST = 9.0e9
"""Clock times beyond the years that 64 bits of nanoseconds can count to are cut off [s]."""

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
        settled = self._known and self.meter.pending is None
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
