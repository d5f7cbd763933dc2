"""Slow quantities followed online: standby power, and the residual of model minus bus."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

STILL_BEFORE_TRACKING = 1.0
"""Standstill that must pass before standby is followed, so that transients have decayed [s]."""
STANDBY_TIME_CONSTANT = 10.0
"""Of the tracked standby power [s]: bus noise of 3 W a sample at 500 Hz leaves 0.03 W."""


@dataclass
class RunningMean:
    """Exponentially weighted mean and variance that start unbiased.

    Attributes:
        time_constant: s.
        mean, variance: of the values so far (0 before the first).
        elapsed: time observed [s].
    """

    time_constant: float
    mean: float = 0.0
    variance: float = 0.0
    elapsed: float = 0.0

    def update(self, duration: float, value: float) -> None:
        """Add a value that held for `duration` [s]."""
        if duration <= 0:
            return
        self.elapsed += duration
        # An arithmetic mean at first, exponential once a time constant has passed.
        weight = min(1.0, duration / min(self.elapsed, self.time_constant))
        delta = value - self.mean
        self.mean += weight * delta
        self.variance = (1.0 - weight) * (self.variance + weight * delta * delta)

    @property
    def std(self) -> float:
        """Standard deviation of the values."""
        return math.sqrt(self.variance)


@dataclass
class StandbyTracker:
    """Standby power of an arm, from its bus power at standstill.

    An arm's standby shifts by several watts between days. While all joints stand still, what the
    motors do not explain of the bus power is standby; it is followed slowly and only so far.

    Attributes:
        nominal: the model's standby power [W].
        limit: largest departure from it [W].
        enabled: False to hold the nominal power.
    """

    nominal: float
    limit: float = 10.0
    enabled: bool = True
    _still: float = 0.0
    _mean: RunningMean = field(default_factory=lambda: RunningMean(STANDBY_TIME_CONSTANT))

    def update(self, duration: float, still: bool, unexplained: float) -> None:
        """Add a stretch of samples.

        Args:
            duration: its length [s].
            still: whether the arm was held at standstill throughout.
            unexplained: mean bus power less modelled motor and driver power [W].
        """
        self._still = self._still + duration if still else 0.0
        if self._still >= STILL_BEFORE_TRACKING:
            self._mean.update(duration, unexplained)

    @property
    def measured(self) -> float | None:
        """The mean standby power seen [W], unlimited; None before any standstill."""
        return self._mean.mean if self._mean.elapsed > 0 else None

    @property
    def power(self) -> float:
        """Standby power to use [W]."""
        if not self.enabled or self.measured is None:
            return self.nominal
        return min(max(self.measured, self.nominal - self.limit), self.nominal + self.limit)

    @property
    def at_limit(self) -> bool:
        """Whether the arm's standby departs further from the model's than is allowed for."""
        return self.measured is not None and abs(self.measured - self.nominal) > self.limit


@dataclass
class ResidualMonitor:
    """Model minus measured bus power, with a drift alarm on its mean.

    Attributes:
        alarm: mean residual that raises the alarm [W].
        time_constant: of the mean [s].
    """

    alarm: float = 5.0
    time_constant: float = 60.0
    statistics: RunningMean = field(init=False)

    def __post_init__(self) -> None:
        self.statistics = RunningMean(self.time_constant)

    def update(self, duration: float, residual: float) -> None:
        """Add the mean residual of a stretch of samples [W], `duration` long [s]."""
        self.statistics.update(duration, residual)

    @property
    def drifting(self) -> bool:
        """Whether the mean residual exceeds the alarm after at least one time constant."""
        settled = self.statistics.elapsed >= self.time_constant
        return settled and abs(self.statistics.mean) > self.alarm
