"""Narrow low-pass filter of measurement and model columns (parallel filtering), and its cut-off."""

from __future__ import annotations

import numpy as np
from scipy.signal import welch

from ur_energy_model.identification.regression.filtered_motion import FilteredMotion
from ur_energy_model.low_pass import low_pass
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array, Mask

SHORTEST = 12
"""Samples of the shortest stretch that is filtered."""
_STILL_SHARE = 0.1
_PADDING = 1.5
"""Extension at either end, in periods of the cut-off."""

CUTOFF_RANGE = (2.5, 6.0)
"""Lowest and highest cut-off [Hz]: faster motion is compliance of the gears, which a rigid-body
model lacks. The highest is also limited to 0.35 of the sample rate."""
_DEFAULT_CUTOFF = 5.0
_MOVING = 0.02
_ACCEPTED_LOSS = 0.05


class NarrowFilter:
    """Low-pass filter for measurement and model columns of one recording alike.

    Args:
        cutoff: [Hz].
    """

    def __init__(self, cutoff: float) -> None:
        self.cutoff = cutoff

    def inside(self, motion: FilteredMotion) -> slice:
        """Samples out of reach of the ends of the stretch, thinned to what the cut-off needs."""
        if len(motion) < SHORTEST:
            return slice(0, 0)
        rate = 1 / motion.period
        edge = int(np.ceil(0.5 * rate / self.cutoff))
        return slice(edge, max(edge, len(motion) - edge), max(1, int(rate / (8 * self.cutoff))))

    def __call__(self, motion: FilteredMotion, values: Array) -> Array:
        """Values [samples, ...] of a motion's samples, filtered along time."""
        return low_pass(values, round(motion.period, 9), self.cutoff, padding=_PADDING)

    def moving(self, motion: FilteredMotion, speed: float) -> Mask:
        """Samples [samples, n] of joints that move, clear of standstill by the filter's reach.

        At standstill friction takes any value up to its limit, and the filter carries that into
        the neighbouring motion.
        """
        still = self(motion, (np.abs(motion.qd) < speed).astype(float))
        return np.asarray((np.abs(motion.qd) >= speed) & (still < _STILL_SHARE))


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
