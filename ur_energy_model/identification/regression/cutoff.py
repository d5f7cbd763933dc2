"""Cut-off frequency of the low-pass filter, chosen from the spectrum of the recorded speed."""

from __future__ import annotations

import numpy as np
from scipy.signal import welch

from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array

CUTOFF_RANGE = (2.5, 6.0)
"""Lowest and highest cut-off [Hz]: faster motion is compliance of the gears, which a rigid-body
model lacks. The highest is also limited to 0.35 of the sample rate."""
_DEFAULT_CUTOFF = 5.0
_MOVING = 0.02
_ACCEPTED_LOSS = 0.05


def sample_period(time: Array) -> float:
    """Median time step [s]; 0.002 without any."""
    steps = np.diff(time)
    steps = steps[steps > 0]
    return float(np.median(steps)) if steps.size else 0.002


def choose_cutoff(telemetry: Telemetry) -> float:
    """Cut-off with the least error of the acceleration: lost motion plus remaining noise.

    The speed's spectrum (Welch) is split into a flat noise floor, read at its upper end, and the
    motion above it; both are turned into acceleration, and the frequency that minimises the sum
    of motion above and noise below is taken, the median over joints that move.

    Args:
        telemetry: some seconds with actual_qd.

    Returns:
        Cut-off [Hz] within CUTOFF_RANGE.
    """
    telemetry = telemetry.distinct()
    period = sample_period(telemetry.time)
    highest = min(CUTOFF_RANGE[1], 0.35 / period)
    speed = telemetry["actual_qd"]
    found: list[float] = []
    longest = max(telemetry.segments(), key=lambda s: s.stop - s.start, default=slice(0, 0))
    span = longest if longest.stop - longest.start > 256 else slice(0, len(telemetry))
    count = span.stop - span.start
    if count < 64:
        return min(_DEFAULT_CUTOFF, highest)
    grid = telemetry.time[span.start] + period * np.arange(count)
    for j in range(speed.shape[1]):
        column = np.nan_to_num(speed[span, j])
        if np.ptp(column) < _MOVING:
            continue
        even = np.interp(grid, telemetry.time[span], column)
        frequency, density = welch(even, 1 / period, nperseg=min(count, int(8 / period)))
        floor = float(np.median(density[int(0.7 * len(density)) :]))
        signal = np.maximum(density - floor, 0.0) * frequency**2
        noise = floor * frequency**2
        error = signal.sum() - np.cumsum(signal) + np.cumsum(noise)
        enough = np.flatnonzero(error < _ACCEPTED_LOSS * signal.sum())
        found.append(float(frequency[enough[0] if enough.size else np.argmin(error)]))
    cutoff = float(np.median(found)) if found else _DEFAULT_CUTOFF
    return float(np.clip(cutoff, CUTOFF_RANGE[0], highest))
