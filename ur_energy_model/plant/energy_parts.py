# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""EnergyParts: the parts and cycles of a recording, from which rows of the history are made.

A part ends where a second, a possible cycle or the time that another source covers begins
or ends. The EnergyMeter counts the energies, as in `ur_energy estimate`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.energy.cycle_energies import Cycle, CycleCounter
from ur_energy_model.energy.cycles import Mark, Marks
from ur_energy_model.energy.meter import EnergyMeter, MeterReading, Totals
from ur_energy_model.energy.powers import Channels, PowerTable
from ur_energy_model.telemetry.samples import Telemetry, host_times, run_starts
from ur_energy_model.typing import Array, Indices, Mask

SECOND = 1_000_000_000  # ns
Times = NDArray[np.int64]  # host times, ns since 1970 UTC
_EARLIEST = np.iinfo(np.int64).min
_LATEST = np.iinfo(np.int64).max


@dataclass(frozen=True)
class TimeRanges:
    """Ascending stretches of time that do not overlap.

    Attributes:
        edges: begin and end of each [ranges, 2], ns since 1970 UTC.
    """

    edges: Times

    @classmethod
    def of(cls, pairs: Iterable[tuple[int, int]], pause: int = 0) -> TimeRanges:
        """Ranges from pairs in any order, which may overlap.

        Args:
            pairs: begins and ends [ns].
            pause: longest time between two pairs that are one range [ns].
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
        """With the ranges that follow.

        Pauses of a second between two ranges count as covered.
        """
        return TimeRanges.of([*self.pairs(), *later.pairs()], SECOND)

    def without(self, others: TimeRanges) -> TimeRanges:
        """The parts of these ranges that are outside other ranges."""
        edges = np.array([_EARLIEST, *others.edges.ravel(), _LATEST])
        free: list[tuple[int, int]] = []
        for begin, end in edges.reshape(-1, 2).tolist():
            free += self.within(begin, end).pairs()
        return TimeRanges.of(free)

    def pairs(self) -> list[tuple[int, int]]:
        """Begin and end of each range [ns]."""
        return [(int(start), int(end)) for start, end in self.edges]

    def overlaps(self, start: int, end: int) -> bool:
        """Whether a range has a part between two times [ns]."""
        return bool(self.within(start, end))

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


NOTHING = TimeRanges.of(())  # no time at all


# PartTable: energies of consecutive short parts of a recording.


@dataclass(frozen=True)
class PartTable:
    """Consecutive parts of a recording, one entry each; a part is within one second.

    Attributes:
        begin: host time of the first sample of each part [parts], ns since 1970 UTC.
        end: host time of the last sample of each part [parts], ns since 1970 UTC.
        covered: whether another source covers the part [parts].
        samples: number of samples [parts].
        bus_measured: whether bus power was measured at all samples of the part [parts].
        accounted: time integrated over [parts], s.
        unaccounted: time in gaps, without energy [parts], s.
        peak: largest total power [parts], W.
        net: integrals of the powers [parts, channels], J.
        temperature: sums of the joint temperatures over the samples that have them, degC,
            and the number of these samples in a last column [parts, n + 1].
        scaling: sum of the speed scaling over the samples that have it, and the number of
            these samples [parts, 2].
    """

    begin: Times
    end: Times
    covered: Mask
    samples: Indices
    bus_measured: Mask
    accounted: Array
    unaccounted: Array
    peak: Array
    net: Array
    temperature: Array
    scaling: Array

    def __len__(self) -> int:
        return len(self.begin)

    @property
    def second(self) -> Times:
        """Seconds since 1970 UTC [parts]."""
        return np.asarray(self.begin // SECOND)

    def cut(self, rows: slice | Mask | Indices) -> PartTable:
        """Some of the parts, by their numbers, a mask [parts] or a slice."""
        return PartTable(*(getattr(self, field.name)[rows] for field in fields(self)))

    @classmethod
    def join(cls, tables: Sequence[PartTable]) -> PartTable:
        """Consecutive tables, at least one, as one table."""
        columns = {}
        for field in fields(cls):
            columns[field.name] = np.concatenate(
                [getattr(table, field.name) for table in tables]
            )
        return cls(**columns)

    def ranges(self) -> TimeRanges:
        """Time that the parts cover, and no other source.

        Pauses of more than a second end it.
        """
        own = ~self.covered
        near = np.abs(self.begin[1:] - self.end[:-1]) <= SECOND
        joined = own[1:] & own[:-1] & near  # whether a part goes on in the next one
        starts = np.flatnonzero(own & ~np.append(False, joined))
        ends = np.flatnonzero(own & ~np.append(joined, False))
        edges = np.column_stack([self.begin[starts], self.end[ends]])
        return TimeRanges.of(map(tuple, edges.tolist()))


class EnergyParts:
    """Parts and cycles of one recording or stream, batch by batch.

    Args:
        channels: channels of the powers.
        covered: time that other sources cover.

    Attributes:
        meter: has counted all energies so far.
        waiting: number of parts not taken yet.
        cycles: complete cycles not taken yet, also cycles that other sources cover.
    """

    def __init__(self, channels: Channels, covered: TimeRanges = NOTHING) -> None:
        self.meter = EnergyMeter(len(channels))
        self.waiting = 0
        self.cycles: list[Cycle] = []
        self._channels = channels
        self._covered = covered
        self._counter = CycleCounter()
        self._end: int | None = None  # host time of the last sample so far [ns]
        self._parts: list[PartTable] = []

    def update(self, table: PowerTable, marks: Marks | None = None) -> None:
        """Take powers that follow the powers of the last call.

        Args:
            table: powers of consecutive samples.
            marks: marks of cycles, by the row at which they begin; None for none.
        """
        samples = table.samples
        marked = {} if marks is None else marks
        times = host_times(samples)
        covered = self._covered.holds(times)
        edges = run_starts(np.column_stack([times // SECOND, covered]))
        begins = sorted({0, *edges.tolist(), *marked})
        first = np.array(begins)
        behind = np.append(first[1:], len(times))
        before = self.meter.totals
        after = self.meter.integrate_steps(table.steps, table.power, behind[:-1].tolist())
        gained = []
        for totals_before, totals_after in zip(before, after, strict=True):
            gained.append(np.diff(totals_after, axis=0, prepend=totals_before))
        energies = Totals(*gained)
        arm = self._channels.arm
        peak = np.maximum.reduceat(table.power[:, arm["total"]], first)
        measured = table.power[:, arm["measured"]] > 0.0
        readings = [*before.readings(), *after.readings()]  # at the begin of each part
        for begin, reading, power in zip(begins, readings, peak.tolist(), strict=False):
            if begin in marked:
                self._mark(times, begin, reading, marked[begin])
            self._counter.observe(power)
        self._end = int(times[-1])
        temperature, scaling = self._states(samples)
        parts = PartTable(
            begin=times[first],
            end=times[behind - 1],
            covered=covered[first],
            samples=behind - first,
            bus_measured=np.logical_and.reduceat(measured, first),
            accounted=energies.accounted,
            unaccounted=energies.unaccounted,
            peak=peak,
            net=energies.net,
            temperature=_finite_sums(temperature, first),
            scaling=_finite_sums(scaling, first),
        )
        self._parts.append(parts)
        self.waiting += len(parts)

    def _states(self, samples: Telemetry) -> tuple[Array, Array]:
        """Joint temperatures [samples, n], degC, and speed scaling [samples, 1]; NaN if unknown.

        The speed scaling is the slider times the limiter.
        """
        columns = samples.columns
        unknown = np.full((len(samples), 1), np.nan)
        joints = len(self._channels.joints)
        temperature = columns.get("joint_temperatures", unknown.repeat(joints, axis=1))
        slider = columns.get("speed_scaling", unknown[:, 0])
        scaling = slider * columns.get("target_speed_fraction", 1.0)
        return temperature, scaling[:, None]

    def _mark(self, times: Times, begin: int, reading: MeterReading, mark: Mark) -> None:
        """Count a mark of a cycle.

        Args:
            times: host times of the samples [samples], ns since 1970 UTC.
            begin: sample at which the cycle begins.
            reading: energies before this sample.
            mark: the mark.
        """
        last = int(times[0]) if self._end is None else self._end
        before = int(times[begin - 1]) if begin else last
        self.cycles += self._counter.mark(before, reading, mark)

    def take(self) -> PartTable | None:
        """Remove and return all parts before the second in progress.

        Returns:
            The parts; None if there are none.
        """
        if not self.waiting:
            return None
        parts = self.so_far()
        earlier = np.flatnonzero(parts.second != parts.second[-1])
        if not len(earlier):
            return None
        stop = int(earlier[-1]) + 1
        self._parts = [parts.cut(slice(stop, None))]
        self.waiting = len(parts) - stop
        return parts.cut(slice(stop))

    def so_far(self) -> PartTable:
        """All parts that were not taken yet; at least one is waiting."""
        parts = PartTable.join(self._parts)
        self._parts = [parts]
        return parts


def _finite_sums(values: Array, first: Indices) -> Array:
    """Sums over the samples of each part whose values are all finite.

    Args:
        values: values of the samples [samples, k].
        first: first sample of each part [parts].

    Returns:
        Sums, and the number of samples in a last column [parts, k + 1].
    """
    finite = np.isfinite(values).all(axis=1, keepdims=True)
    counted = np.hstack([np.where(finite, values, 0.0), finite])
    return np.asarray(np.add.reduceat(counted, first, axis=0))
