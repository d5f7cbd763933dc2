"""Power to energy: trapezoidal integrals on the controller's clock, regeneration, efficiency.

S0 (Clochiatti et al., Robotica 2024) eq. 24-26: the electrical and the mechanical energy are the
time integrals of the powers, the efficiency is their ratio.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ur_energy_model.energy.gaps import DEFAULT_GAP_LIMIT, GapRule, Steps
from ur_energy_model.energy.power_table import EnergyCorrection, PowerTable
from ur_energy_model.typing import Array

CONFIDENCE = 1.96
"""Half width of a 95 % interval in standard deviations; what stands behind every ± for people."""


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

    Gaps (gaps.py) add no energy but unaccounted time; a step that does not go forward (a restarted
    controller) adds neither. Consumed and regenerated energy are the integrals of the positive and
    the negative part, so that consumed - regenerated = net exactly.

    Args:
        channels: number of powers.
        gap_limit: longest step that is bridged by the trapezoid at any rate [s].
        start: reading to continue from.
    """

    def __init__(
        self,
        channels: int,
        *,
        gap_limit: float = DEFAULT_GAP_LIMIT,
        start: MeterReading | None = None,
    ) -> None:
        self.gaps = GapRule(gap_limit)
        self.restarts = 0
        """Number of steps backwards."""
        self._total = MeterReading.zero(channels) if start is None else start
        self.last_power = np.zeros(channels)
        """Powers of the last sample [channels], W."""
        self._credited = np.zeros(channels)
        self._owed: EnergyCorrection | None = None

    def update(self, time: Array, power: Array) -> None:
        """Add samples that follow the previous ones.

        Args:
            time: controller timestamps [n], s.
            power: powers [n, channels], W, finite.
        """
        self.add(self.gaps(time), power)

    def add(self, steps: Steps, power: Array) -> None:
        """Add samples [n] by the steps to each: powers [n, channels], W, finite."""
        if not len(power):
            return
        power = np.concatenate((self.last_power[None], power))
        self.last_power = power[-1]
        self.restarts += int(steps.back.sum())
        gain = MeterReading(
            trapezoid(steps.bridged, power),
            trapezoid(steps.bridged, np.maximum(power, 0.0)),
            float(steps.bridged.sum()),
            float(steps.lost.sum()),
        )
        self._total = self._total + gain
        if self._owed is not None:
            self._pay(steps.bridged, power)

    def add_table(self, table: PowerTable) -> None:
        """Add what the calculator answered, its credit included."""
        for rows, credit in table.parts():
            if credit is not None:
                self.credit(credit)
            self.add(table.steps.cut(rows), table.power[rows])

    def credit(self, credit: EnergyCorrection) -> None:
        """Add energy that no step accounts for.

        What is to be taken off is taken from later gains of the paying channels, at most half of
        the smallest, so that no total ever goes back.
        """
        self._enter(credit.deviation)
        if credit.energy[credit.payers[0]] >= 0.0:
            self._enter(credit.energy)
        else:
            self._owed = credit

    @property
    def credited(self) -> Array:
        """Energy added by `credit` so far [channels], J."""
        return self._credited

    def _pay(self, steps: Array, power: Array) -> None:
        """Take what is owed off the gains of steps [n], s, between powers [n + 1, channels], W."""
        owed = self._owed
        assert owed is not None
        least = np.maximum(power[:, list(owed.payers)], 0.0).min(axis=1, keepdims=True)
        payable = 0.5 * float(trapezoid(steps, least)[0])
        share = min(1.0, payable / -owed.energy[owed.payers[0]])
        self._enter(share * owed.energy)
        rest = replace(owed, energy=(1.0 - share) * owed.energy)
        self._owed = None if share == 1.0 else rest

    def _enter(self, energy: Array) -> None:
        self._credited = self._credited + energy
        self._total = replace(
            self._total, net=self._total.net + energy, consumed=self._total.consumed + energy
        )

    def interrupt(self) -> None:
        """Forget the last sample: the next batch starts a stretch of its own."""
        self.gaps.interrupt()

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
