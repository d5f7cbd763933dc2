"""PartTable: energies of consecutive short parts of a recording."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.energy.meter import MeterReading
from ur_energy_model.plant.history.time_ranges import SECOND, TimeRanges, Times
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array, Indices, Mask


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
