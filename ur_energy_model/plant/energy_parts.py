# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""EnergyParts: the parts and cycles of a recording, from which rows of the history are made.

A part ends where a second, a possible cycle or the time that another source covers begins
or ends. Energies are those of the EnergyMeter, as `ur_energy estimate` counts them.
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
from ur_energy_model.telemetry.samples import host_times, run_starts
from ur_energy_model.typing import Array, Indices, Mask

SECOND = 1_000_000_000  # ns
Times = NDArray[np.int64]  # host times, ns since 1970 UTC
_EARLIEST = np.iinfo(np.int64).min
_LATEST = np.iinfo(np.int64).max


@dataclass(frozen=True)
class TimeRanges:
    """Ascending stretches of time that do not overlap: `edges` [ranges, 2], ns since 1970 UTC."""

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
        """With the ranges that follow; pauses of a second between two ranges count as covered."""
        return TimeRanges.of([*self.pairs(), *later.pairs()], SECOND)

    def without(self, others: TimeRanges) -> TimeRanges:
        """The parts that are outside other ranges."""
        free = (
            np.array([_EARLIEST, *others.edges.ravel(), _LATEST]).reshape(-1, 2).tolist()
        )
        return TimeRanges.of(pair for gap in free for pair in self.within(*gap).pairs())

    def pairs(self) -> list[tuple[int, int]]:
        """Begin and end of each [ns]."""
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
    """Consecutive parts, one entry each."""

    # begin, end: host time of the first and last sample, ns, in one second
    begin: Times
    end: Times
    covered: Mask  # whether another source covers the part
    samples: Indices
    bus_measured: Mask  # whether bus power was measured at all of its samples
    # accounted, unaccounted, peak: time, s; largest total power, W
    accounted: Array
    unaccounted: Array
    peak: Array
    net: Array  # integrals of the powers [parts, channels], J
    # sums over the samples that have joint temperatures [parts, n], degC, and their
    # number in a last column
    temperature: Array
    # sum over the samples that have a speed scaling, and their number [parts, 2]
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
        return cls(
            *(np.concatenate([getattr(t, f.name) for t in tables]) for f in fields(cls))
        )

    def ranges(self) -> TimeRanges:
        """Time that the parts cover which no other source covers; pauses of a second end it."""
        own = ~self.covered
        joined = own[1:] & own[:-1] & (np.abs(self.begin[1:] - self.end[:-1]) <= SECOND)
        starts = np.flatnonzero(own & ~np.append(False, joined))
        ends = np.flatnonzero(own & ~np.append(joined, False))
        edges = np.column_stack([self.begin[starts], self.end[ends]])
        return TimeRanges.of(map(tuple, edges.tolist()))


class EnergyParts:
    """Parts and cycles of one recording or stream, batch by batch.

    Args:
        channels: of the powers.
        covered: time that other sources cover.

    Attributes:
        meter: has counted all energies so far.
        waiting: number of parts not taken yet.
        cycles: complete ones not taken yet, also those that other sources cover.
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
        """Take powers that follow those of the last call.

        Args:
            table: powers of consecutive samples.
            marks: of cycles, by the row at which they begin; None for none.
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
        gained = Totals(
            *(
                np.diff(each, axis=0, prepend=old)
                for old, each in zip(before, after, strict=True)
            )
        )
        arm = self._channels.arm
        peak = np.maximum.reduceat(table.power[:, arm["total"]], first)
        readings = [*before.readings(), *after.readings()]  # at the begin of each part
        for begin, reading, power in zip(begins, readings, peak.tolist(), strict=False):
            if begin in marked:
                self._mark(times, begin, reading, marked[begin])
            self._counter.observe(power)
        self._end = int(times[-1])

        def sums(values: Array) -> Array:
            """Of the finite rows of values [samples, k] by part, and their number [parts, k + 1]"""
            finite = np.isfinite(values).all(axis=1, keepdims=True)
            counted = np.hstack([np.where(finite, values, 0.0), finite])
            return np.add.reduceat(counted, first, axis=0)

        columns = samples.columns
        unknown = np.full((len(samples), 1), np.nan)
        joints = len(self._channels.joints)
        warmth = columns.get("joint_temperatures", unknown.repeat(joints, axis=1))
        scaling = columns.get("speed_scaling", unknown[:, 0])
        # slider times limiter
        scaling = scaling * columns.get("target_speed_fraction", 1.0)
        self._parts.append(
            PartTable(
                begin=times[first],
                end=times[behind - 1],
                covered=covered[first],
                samples=behind - first,
                bus_measured=np.logical_and.reduceat(
                    table.power[:, arm["measured"]] > 0.0, first
                ),
                accounted=gained.accounted,
                unaccounted=gained.unaccounted,
                peak=peak,
                net=gained.net,
                temperature=sums(warmth),
                scaling=sums(scaling[:, None]),
            )
        )
        self.waiting += len(first)

    def _mark(self, times: Times, begin: int, reading: MeterReading, mark: Mark) -> None:
        """Take a mark at a row of samples at these times, with the energies before it."""
        last = int(times[0]) if self._end is None else self._end
        before = int(times[begin - 1]) if begin else last
        self.cycles += self._counter.mark(before, reading, mark)

    def take(self) -> PartTable | None:
        """Remove and return the parts but those of the second in progress; None without any."""
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
