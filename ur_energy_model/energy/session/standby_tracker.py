"""Standby power of the session, tracked at standstill.

An arm's standby power differs by several watts between days. While all joints stand still, it is
the bus power less that of motors and drivers, averaged over blocks of the controller's clock so
that the result does not depend on how samples are batched. An error of the power that holds the arm
is then in the standby power with the opposite sign, so that the whole arm's power at standstill
does not have it, and that in motion only the difference.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ur_energy_model.energy.session.running_mean import RunningMean
from ur_energy_model.telemetry.runs import run_starts
from ur_energy_model.typing import Array, Mask

BLOCK = 0.05
"""Length of the averaging blocks [s]."""
SETTLING = 0.15
"""Standstill before averaging begins, so that transients have decayed [s]."""
ANCHORING = 0.5
"""Settled standstill after which the session's standby counts as known [s]."""
STANDBY_TIME_CONSTANT = 10.0
"""Of the tracked standby power [s]: bus noise of 3 W a sample at 500 Hz leaves 0.03 W."""
ANCHORED_STD = 0.4
"""Standard deviation of a session's standby after long standstill [W]: holding currents depend on
the pose, and standby drifts between standstills."""
BLOCK_NOISE = 0.8
"""Standard deviation of a block's mean for fewer than four blocks [W]."""


@dataclass(frozen=True)
class Standby:
    """Standby power of consecutive samples.

    Attributes:
        power, std: in use, and its standard deviation [samples], W.
        errors: its change per error of the power of motors and drivers [samples, k], W.
        anchor: index of the first sample at which the session's own standby power is in use,
            if that is among these samples; else None.
    """

    power: Array
    std: Array
    errors: Array
    anchor: int | None


class StandbyTracker:
    """Standby power of a session from the bus power at standstill.

    Before ANCHORING seconds of settled standstill it is the model's, with the spread between
    sessions as its standard deviation.

    Args:
        nominal: the model's standby power [W].
        spread: standard deviation of standby power between sessions [W].
        limit: largest deviation from the nominal power [W].
        enabled: False keeps the nominal power.
    """

    def __init__(
        self, nominal: float, spread: float, limit: float = 15.0, enabled: bool = True
    ) -> None:
        self.nominal, self.spread = nominal, spread
        self.limit, self.enabled = limit, enabled
        self._mean = RunningMean(STANDBY_TIME_CONSTANT)
        self._blocks = 0
        self._still = 0.0
        """Duration of the current standstill [s]."""
        self._open: float | None = None
        """Number of the block in progress."""
        self._gathered = np.zeros(3)
        """Of that block: time [s], energy without motors and drivers [J], number of samples in
        motion or without bus power; then its changes per error of motors and drivers [J]."""
        self._errors = np.zeros(0)
        """Mean change of the power of motors and drivers at standstill per error [k], W."""

    def update(
        self,
        time: Array,
        steps: Array,
        still: Mask,
        unexplained: Array,
        sensitivities: Array | None = None,
    ) -> Standby:
        """Standby power at samples that follow those of the last call.

        Args:
            time: controller timestamps [samples], s.
            steps: bridged steps to the samples [samples], s.
            still: whether the arm is held at standstill [samples].
            unexplained: bus power less motors and drivers [samples], W; NaN where unknown.
            sensitivities: change of the power of motors and drivers per error [samples, k], W.
        """
        changes = np.zeros((len(time), 0)) if sensitivities is None else sensitivities
        if len(self._errors) != changes.shape[1]:
            self._errors = np.zeros(changes.shape[1])
            self._gathered = np.zeros(3 + changes.shape[1])
        block = np.floor(time / BLOCK)
        if (block == self._open).all():  # the usual case of few samples
            known = still & np.isfinite(unexplained)
            self._gathered[0] += steps.sum()
            self._gathered[1] += steps[known] @ unexplained[known]
            self._gathered[2] += len(time) - np.count_nonzero(known)
            self._gathered[3:] += steps @ changes
            n = len(time)
            errors = np.tile(-self._errors, (n, 1)) if self.anchored else np.zeros(changes.shape)
            return Standby(np.full(n, self.power), np.full(n, self.std), errors, None)
        power, std, errors = np.empty(len(time)), np.empty(len(time)), np.zeros(changes.shape)
        anchored, anchor = self.anchored, None
        known = still & np.isfinite(unexplained)
        energy = np.where(known, steps * unexplained, 0.0)
        columns = np.column_stack([steps, energy, ~known, steps[:, None] * changes])
        starts = run_starts(block)
        sums = np.add.reduceat(columns, starts, axis=0)
        stops = np.append(starts[1:], len(time))
        for start, stop, gathered in zip(starts.tolist(), stops.tolist(), sums, strict=True):
            if self._open != block[start]:
                self._close_block()
                self._open = float(block[start])
            self._gathered += gathered
            power[start:stop], std[start:stop] = self.power, self.std
            if self.anchored:
                errors[start:stop] = -self._errors
            if self.anchored and not anchored:
                anchored, anchor = True, start
        return Standby(power, std, errors, anchor)

    @property
    def measured(self) -> float | None:
        """Mean measured standby power without limit [W]; None until the session is anchored."""
        return self._mean.mean if self._mean.elapsed >= ANCHORING - 1e-9 else None

    @property
    def still_seconds(self) -> float:
        """Settled standstill in the average [s]."""
        return self._mean.elapsed

    @property
    def anchored(self) -> bool:
        """Whether the session's own standby power is in use."""
        return self.enabled and self.measured is not None

    @property
    def power(self) -> float:
        """Standby power in use [W]."""
        if not self.enabled or self.measured is None:
            return self.nominal
        return min(max(self.measured, self.nominal - self.limit), self.nominal + self.limit)

    @property
    def std(self) -> float:
        """Standard deviation of `power` [W]."""
        if not self.enabled or self.measured is None:
            return self.spread
        noise = self._mean.std if self._blocks >= 4 else max(self._mean.std, BLOCK_NOISE)
        return math.hypot(ANCHORED_STD, noise / math.sqrt(self._blocks))

    @property
    def at_limit(self) -> bool:
        """Whether the measured standby exceeds the limit."""
        return self.measured is not None and abs(self.measured - self.nominal) > self.limit

    def _close_block(self) -> None:
        """Include the completed block in the average."""
        duration, energy, moving = self._gathered[:3].tolist()
        changes = self._gathered[3:].copy()
        self._gathered[:] = 0.0
        if duration <= 0.0:
            return
        if moving:
            self._still = 0.0
        elif self._still < SETTLING:
            self._still += duration
        else:
            weight = self._mean.update(duration, energy / duration)
            self._errors = self._errors + weight * (changes / duration - self._errors)
            self._blocks += 1
