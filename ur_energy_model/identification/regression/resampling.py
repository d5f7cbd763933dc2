"""Recorded channels resampled to an even time grid and low-pass filtered.

Recorders store samples at irregular multiples of the controller's tick; filters and derivatives
need an even grid. Each gap-free stretch has its own grid.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.interpolate import CubicSpline

from ur_energy_model.low_pass import low_pass
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array, Mask

_MINIMUM_SAMPLES = 16


@dataclass(frozen=True)
class ResampledRun:
    """A stretch without gaps.

    Attributes:
        time: even grid [samples], s, controller clock.
        rate: its rate [Hz].
        values: filtered channels by name, [samples, k].
    """

    time: Array
    rate: float
    values: dict[str, Array]

    def __getitem__(self, name: str) -> Array:
        return self.values[name]

    def derivative(self, name: str) -> Array:
        """Time derivative of a channel [samples, k] (central differences)."""
        return np.asarray(np.gradient(self.values[name], 1 / self.rate, axis=0))


def resampled_runs(
    telemetry: Telemetry,
    names: Sequence[str],
    good: Mask,
    *,
    rate: float = 100.0,
    bandwidth: float = 15.0,
    shortest: float = 1.6,
) -> Iterator[ResampledRun]:
    """Gap-free stretches of usable samples, interpolated to an even grid and filtered.

    Args:
        telemetry: recording or part of one.
        names: channels to take.
        good: usable samples [samples].
        rate: of the grid [Hz].
        bandwidth: of the zero-phase second-order Butterworth filter [Hz].
        shortest: shortest stretch used [s].
    """
    for rows in _stretches(telemetry, good):
        time = telemetry.time[rows]
        if len(time) < _MINIMUM_SAMPLES or time[-1] - time[0] < shortest:
            continue
        grid = np.arange(time[0], time[-1], 1 / rate)
        values = {
            name: low_pass(CubicSpline(time, telemetry[name][rows])(grid), 1 / rate, bandwidth)
            for name in names
        }
        yield ResampledRun(grid, rate, values)


def _stretches(telemetry: Telemetry, good: Mask) -> Iterator[slice]:
    """Slices of good samples [samples] without a gap."""
    for segment in telemetry.segments():
        flags = np.concatenate([[0], good[segment].astype(int), [0]])
        for start, stop in np.flatnonzero(np.diff(flags)).reshape(-1, 2):
            yield slice(segment.start + int(start), segment.start + int(stop))
