"""Recorded signals on an even time grid, zero-phase filtered, stretch by stretch.

Recorders store samples at irregular multiples of the controller's tick; filters and derivatives
need an even grid. Gaps are never bridged: each gap-free stretch has a grid of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.signal import butter, sosfiltfilt

from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array, Mask

_MINIMUM_SAMPLES = 16


@dataclass(frozen=True)
class UniformRun:
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


def uniform_runs(
    telemetry: Telemetry,
    names: Sequence[str],
    good: Mask,
    *,
    rate: float = 100.0,
    bandwidth: float = 15.0,
    shortest: float = 1.6,
) -> Iterator[UniformRun]:
    """Gap-free stretches of usable samples, interpolated to an even grid and filtered.

    Args:
        telemetry: recording or part of one.
        names: channels to take.
        good: usable samples [samples].
        rate: of the grid [Hz].
        bandwidth: of the zero-phase second-order Butterworth filter, run both ways [Hz].
        shortest: stretches shorter than this are left out [s].
    """
    for rows in stretches(telemetry, good):
        time = telemetry.time[rows]
        if len(time) < _MINIMUM_SAMPLES or time[-1] - time[0] < shortest:
            continue
        grid = np.arange(time[0], time[-1], 1 / rate)
        values = {
            name: zero_phase(CubicSpline(time, telemetry[name][rows])(grid), rate, bandwidth)
            for name in names
        }
        yield UniformRun(grid, rate, values)


def stretches(telemetry: Telemetry, good: Mask) -> Iterator[slice]:
    """Slices of samples that are good [samples] and that no gap interrupts."""
    for segment in telemetry.segments():
        flags = np.concatenate([[0], good[segment].astype(int), [0]])
        for start, stop in np.flatnonzero(np.diff(flags)).reshape(-1, 2):
            yield slice(segment.start + int(start), segment.start + int(stop))


def zero_phase(values: Array, rate: float, bandwidth: float) -> Array:
    """Second-order Butterworth low pass run both ways along the first axis [samples, ...].

    Args:
        values: any shape.
        rate: of the samples [Hz].
        bandwidth: cut-off [Hz].
    """
    sections = butter(2, 2 * bandwidth / rate, output="sos")
    return np.asarray(sosfiltfilt(sections, values, axis=0))
