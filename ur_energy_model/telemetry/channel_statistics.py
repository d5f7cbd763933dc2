"""Running statistics of a recording's channels, for the quality verdict.

Every class takes consecutive parts of one recording and keeps a few numbers per channel.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.telemetry.runs import run_starts
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array

_STUCK = 3
"""Number of identical values in a row that noise rarely produces."""


@dataclass
class Extremes:
    """Smallest and largest value of each component of a channel."""

    low: Array | None = None
    high: Array | None = None

    def update(self, values: Array) -> None:
        """Include values [samples, k]; rows with NaN are ignored."""
        finite = np.isfinite(values)
        finite = values if finite.all() else values[finite.all(axis=1)]
        if not len(finite):
            return
        low, high = finite.min(axis=0), finite.max(axis=0)
        self.low = low if self.low is None else np.minimum(self.low, low)
        self.high = high if self.high is None else np.maximum(self.high, high)

    def span(self, width: int) -> Array:
        """Largest minus smallest value [width]; NaN if there were no values."""
        if self.low is None or self.high is None:
            return np.full(width, np.nan)
        return np.asarray(self.high - self.low)

    def largest(self, width: int) -> Array:
        """Largest magnitude [width]; NaN if there were no values."""
        if self.low is None or self.high is None:
            return np.full(width, np.nan)
        return np.asarray(np.maximum(np.abs(self.low), np.abs(self.high)))


@dataclass
class Repeats:
    """Runs in which one noisy channel does not change: frozen, or clipped at a limit.

    Attributes:
        longest: longest run of identical values, in samples.
        value: the repeated value of that run.
        low, high: extreme values.
        at_limit: samples in runs of three or more at an extreme value.
    """

    longest: int = 0
    value: float = float("nan")
    low: float = float("inf")
    high: float = float("-inf")
    at_limit: int = 0

    def update(self, values: Array) -> None:
        """Include values [samples]; NaN is ignored."""
        finite = values[np.isfinite(values)]
        if not len(finite):
            return
        start = run_starts(finite)
        length = np.diff(start, append=len(finite))
        place = int(np.argmax(length))
        if length[place] > self.longest:
            self.longest, self.value = int(length[place]), float(finite[start[place]])
        low, high = float(finite.min()), float(finite.max())
        if low < self.low or high > self.high:
            self.at_limit = 0
            self.low, self.high = min(low, self.low), max(high, self.high)
        limits = np.isin(finite[start], [self.low, self.high]) & (length >= _STUCK)
        self.at_limit += int(length[limits].sum())

    def frozen(self, samples: float) -> bool:
        """Whether the channel was constant for this many samples, and not at a limit."""
        return self.longest >= samples and (
            self.low == self.high or self.value not in {self.low, self.high}
        )

    def clipped(self, samples: float) -> bool:
        """Whether this many samples are clipped at a limit."""
        return self.low < self.high and self.at_limit >= samples


@dataclass
class Proportion:
    """Whether one channel is an exact multiple of another, component by component.

    Attributes:
        sums: of squares, products and squares of the other channel [3, k]; None before any part.
    """

    sums: Array | None = None

    def update(self, values: Array, reference: Array) -> None:
        """Include two channels [samples, k]; rows with NaN are ignored."""
        finite = np.isfinite(values).all(axis=1) & np.isfinite(reference).all(axis=1)
        a, b = values[finite], reference[finite]
        sums = np.stack([(a * a).sum(axis=0), (a * b).sum(axis=0), (b * b).sum(axis=0)])
        self.sums = sums if self.sums is None else self.sums + sums

    @property
    def exact(self) -> bool:
        """Whether the residual of every component that is not zero is below 0.01 % RMS."""
        if self.sums is None:
            return False
        squares, products, reference = self.sums
        active = (squares > 0) & (reference > 0)
        if not active.any():
            return False
        residual = 1 - products[active] ** 2 / (squares[active] * reference[active])
        return bool((residual < 1e-8).all())


@dataclass
class JointActivity:
    """How much each joint moved.

    Attributes:
        moving: seconds above 0.01 rad/s per joint.
        reversals: changes of direction per joint.
        seconds: time covered, gaps left out.
    """

    moving: Array
    reversals: NDArray[np.int64]
    seconds: float = 0.0
    _direction: Array = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def empty(cls, joints: int) -> JointActivity:
        """Start for this many joints."""
        return cls(np.zeros(joints), np.zeros(joints, dtype=np.int64), 0.0, np.zeros(joints))

    def update(self, part: Telemetry, speed: Array) -> None:
        """Include joint speeds [samples, n] of a part, rad/s."""
        for segment in part.segments():
            step = np.diff(part.time[segment])
            moving = np.abs(speed[segment]) > 0.01
            self.moving += step @ moving[1:]
            self.seconds += float(step.sum())
            for j in range(speed.shape[1]):
                signs = np.sign(speed[segment, j][moving[:, j]])
                if not len(signs):
                    continue
                turns = int(np.count_nonzero(np.diff(signs)))
                turns += int(self._direction[j] * signs[0] < 0)
                self.reversals[j] += turns
                self._direction[j] = signs[-1]
