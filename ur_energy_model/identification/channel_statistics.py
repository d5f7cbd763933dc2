"""Running statistics of a recording's channels: what a quality verdict is made of.

Every class here takes consecutive parts of one recording and keeps a few numbers per channel.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.telemetry.samples import Array, Telemetry


@dataclass
class Extremes:
    """Smallest and largest value of each component of a channel."""

    low: Array | None = None
    high: Array | None = None

    def add(self, values: Array) -> None:
        """Take in values [samples, k]; NaN is ignored."""
        finite = values[np.isfinite(values).all(axis=1)]
        if not len(finite):
            return
        low, high = finite.min(axis=0), finite.max(axis=0)
        self.low = low if self.low is None else np.minimum(self.low, low)
        self.high = high if self.high is None else np.maximum(self.high, high)

    def span(self, width: int) -> Array:
        """Largest minus smallest [width]; NaN where there was nothing."""
        if self.low is None or self.high is None:
            return np.full(width, np.nan)
        return np.asarray(self.high - self.low)

    def largest(self, width: int) -> Array:
        """Largest magnitude [width]; NaN where there was nothing."""
        if self.low is None or self.high is None:
            return np.full(width, np.nan)
        return np.asarray(np.maximum(np.abs(self.low), np.abs(self.high)))


@dataclass
class Repeats:
    """Stretches in which a noisy channel does not change: frozen, or stuck at a limit.

    Attributes:
        longest: longest run of identical values per component, in samples.
        at_limit: samples per component within runs of three or more at its extreme value.
    """

    longest: NDArray[np.int64] | None = None
    at_limit: NDArray[np.int64] | None = None
    _limits: Array | None = None

    def add(self, values: Array) -> None:
        """Take in values [samples, k]."""
        width = values.shape[1]
        if self.longest is None:
            self.longest = np.zeros(width, dtype=np.int64)
            self.at_limit = np.zeros(width, dtype=np.int64)
            self._limits = np.full((2, width), np.nan)
        assert self.at_limit is not None
        assert self._limits is not None
        for k in range(width):
            start, length = _runs(values[:, k])
            if not len(start):
                continue
            self.longest[k] = max(int(self.longest[k]), int(length.max()))
            for side, extreme in enumerate((np.nanmin, np.nanmax)):
                if np.isnan(values[:, k]).all():
                    continue
                limit = float(extreme(values[:, k]))
                known = self._limits[side, k]
                beyond = np.isnan(known) or (limit < known if side == 0 else limit > known)
                if beyond:
                    self._limits[side, k] = limit
                    if not np.isnan(known):
                        self.at_limit[k] = 0
                stuck = (values[start, k] == self._limits[side, k]) & (length >= 3)
                self.at_limit[k] += int(length[stuck].sum())


def _runs(values: Array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Start and length of runs of identical values."""
    if not len(values):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    start = np.concatenate([[0], np.flatnonzero(np.diff(values) != 0) + 1])
    return start, np.diff(np.append(start, len(values)))


@dataclass
class Proportion:
    """Whether one channel is an exact multiple of another, component by component."""

    squares: Array | None = None
    products: Array | None = None
    reference: Array | None = None

    def add(self, values: Array, reference: Array) -> None:
        """Take in two channels [samples, k]."""
        finite = np.isfinite(values).all(axis=1) & np.isfinite(reference).all(axis=1)
        a, b = values[finite], reference[finite]
        sums = [(a * a).sum(axis=0), (a * b).sum(axis=0), (b * b).sum(axis=0)]
        if self.squares is None or self.products is None or self.reference is None:
            self.squares, self.products, self.reference = sums
        else:
            self.squares = self.squares + sums[0]
            self.products = self.products + sums[1]
            self.reference = self.reference + sums[2]

    @property
    def exact(self) -> bool:
        """True where every component that is not zero leaves less than 0.01 % RMS."""
        if self.squares is None or self.products is None or self.reference is None:
            return False
        active = (self.squares > 0) & (self.reference > 0)
        if not active.any():
            return False
        left = 1 - self.products[active] ** 2 / (self.squares[active] * self.reference[active])
        return bool((left < 1e-8).all())


@dataclass
class JointActivity:
    """How much each joint was moved.

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
    def of(cls, joints: int) -> JointActivity:
        """Nothing seen yet of this many joints."""
        return cls(np.zeros(joints), np.zeros(joints, dtype=np.int64), 0.0, np.zeros(joints))

    def add(self, part: Telemetry, speed: Array) -> None:
        """Take in joint speeds [samples, n], rad/s."""
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
