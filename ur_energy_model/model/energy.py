"""Power to energy: trapezoidal integrals on the controller's clock, regeneration, efficiency.

S0 (Clochiatti et al., Robotica 2024) eq. 24-26: the electrical and the mechanical energy are the
time integrals of the powers, the efficiency is their ratio.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

CONFIDENCE = 1.96
"""Half width of a 95 % interval in standard deviations; what stands behind every ± for people."""
DEFAULT_GAP_LIMIT = 0.1
"""Longest step between samples that the trapezoid still bridges [s]."""


_STEPS_BRIDGED = 2.5


def bridged_gap(rate: float | None) -> float:
    """Longest step between samples of this rate [Hz] that the trapezoid bridges [s].

    DEFAULT_GAP_LIMIT, or more where a recording is so slow that its regular steps come near it.
    """
    if rate is None or not rate > 0:
        return DEFAULT_GAP_LIMIT
    return max(DEFAULT_GAP_LIMIT, _STEPS_BRIDGED / rate)


@dataclass(frozen=True)
class MeterReading:
    """What a meter has counted, a value that later readings do not change.

    Attributes:
        net: integral of each power [channels], J.
        consumed: integral of its positive part [channels], J; never decreases.
        accounted: time integrated over [s].
        unaccounted: time in gaps longer than the limit, and on no clock at all [s].
    """

    net: Array
    consumed: Array
    accounted: float
    unaccounted: float

    @property
    def regenerated(self) -> Array:
        """Integral of the negative part of each power, as a positive number [channels], J."""
        return self.consumed - self.net

    def __sub__(self, earlier: MeterReading) -> MeterReading:
        return MeterReading(
            self.net - earlier.net,
            self.consumed - earlier.consumed,
            self.accounted - earlier.accounted,
            self.unaccounted - earlier.unaccounted,
        )

    def __add__(self, other: MeterReading) -> MeterReading:
        return MeterReading(
            self.net + other.net,
            self.consumed + other.consumed,
            self.accounted + other.accounted,
            self.unaccounted + other.unaccounted,
        )

    @classmethod
    def zero(cls, channels: int) -> MeterReading:
        """Nothing counted yet."""
        return cls(np.zeros(channels), np.zeros(channels), 0.0, 0.0)


class EnergyMeter:
    """Integrates several powers that share one clock, batch by batch.

    A step longer than `gap_limit` adds no energy but unaccounted time; a step that does not go
    forward (a restarted controller) adds neither. Consumed and regenerated energy are the
    integrals of the positive and the negative part, so that consumed - regenerated = net exactly.

    Args:
        channels: number of powers.
        gap_limit: longest step that is bridged by the trapezoid [s].
        start: reading to continue from.
    """

    def __init__(
        self,
        channels: int,
        *,
        gap_limit: float = DEFAULT_GAP_LIMIT,
        start: MeterReading | None = None,
    ) -> None:
        if not gap_limit > 0:
            raise ValueError(f"gap_limit must be positive, not {gap_limit}")
        self.gap_limit = gap_limit
        self.restarts = 0
        """Number of steps that did not go forward."""
        self._total = MeterReading.zero(channels) if start is None else start
        self._last_time: float | None = None
        self._last_power = np.zeros(channels)

    def update(self, time: Array, power: Array) -> None:
        """Add a batch that follows the previous one.

        Args:
            time: controller timestamps [n], s.
            power: powers [n, channels], W, finite.
        """
        if len(time) == 0:
            return
        if self._last_time is None:
            steps = np.diff(time)
        else:
            steps = np.diff(time, prepend=self._last_time)
            power = np.concatenate((self._last_power[None], power))
        self._last_time = float(time[-1])
        self._last_power = power[-1]
        if len(steps) == 0:
            return
        smallest, largest = steps.min(), steps.max()
        unaccounted = 0.0
        if smallest <= 0 or largest > self.gap_limit:
            too_long = steps > self.gap_limit
            unaccounted = float(steps[too_long].sum())
            self.restarts += int((steps <= 0).sum())
            steps = np.where(too_long | (steps <= 0), 0.0, steps)
        before = self._total
        self._total = MeterReading(
            before.net + trapezoid(steps, power),
            before.consumed + trapezoid(steps, np.maximum(power, 0.0)),
            before.accounted + float(steps.sum()),
            before.unaccounted + unaccounted,
        )

    def interrupt(self) -> None:
        """Forget the last sample: the next batch starts a stretch of its own."""
        self._last_time = None

    @property
    def reading(self) -> MeterReading:
        """What has been counted so far."""
        return self._total

    @property
    def net(self) -> Array:
        """Integral of each power [channels], J."""
        return self._total.net

    @property
    def consumed(self) -> Array:
        """Integral of the positive part of each power [channels], J."""
        return self._total.consumed

    @property
    def regenerated(self) -> Array:
        """Integral of the negative part of each power, positive [channels], J."""
        return self._total.regenerated

    @property
    def accounted(self) -> float:
        """Time integrated over [s]."""
        return self._total.accounted

    @property
    def unaccounted(self) -> float:
        """Time in gaps that were too long to bridge [s]."""
        return self._total.unaccounted


def trapezoid(steps: Array, power: Array) -> Array:
    """Trapezoidal integral of powers [n + 1, channels] over steps [n] s: [channels], J."""
    return np.asarray(0.5 * (steps @ power[:-1] + steps @ power[1:]))


def integrate(time: Array, power: Array, *, gap_limit: float = DEFAULT_GAP_LIMIT) -> MeterReading:
    """Energy of a whole recording: power [n] or [n, channels], W, at times [n], s."""
    columns = power.reshape(len(time), -1)
    meter = EnergyMeter(columns.shape[1], gap_limit=gap_limit)
    meter.update(time, columns)
    return meter.reading


def efficiency(mechanical: Array, electrical: Array) -> Array:
    """Mechanical over electrical energy [n], NaN where no electrical energy was taken."""
    ratio = np.full(np.shape(electrical), np.nan)
    np.divide(mechanical, electrical, out=ratio, where=np.asarray(electrical) > 0)
    return ratio
