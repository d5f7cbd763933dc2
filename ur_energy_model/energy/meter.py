# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Power to energy: trapezoidal integrals on the controller's clock, regeneration, efficiency.

Clochiatti et al., Robotica 2024, eq. 24-26: electrical and mechanical energy are the time
integrals of the powers, the efficiency is their ratio.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.telemetry.gaps import Gap
from ur_energy_model.telemetry.samples import changes
from ur_energy_model.typing import Array, Mask

# Integrals over time bridge the steps between samples, and leave out gaps. A step is a gap
# where it is longer than both a fixed limit and 2.5 sample periods. The period is the
# median of the steps before it. So the same rule fits recordings of 5 Hz and of 500 Hz, a
# single missing sample is bridged, and the result depends neither on how samples are
# batched nor on later samples. Before there are enough steps, the period follows from
# the rate that the recording states, if it states one: the first steps of a recording of one
# sample a second are bridged, too. Where the controller's clock started again, the
# recorded gaps or the host's stamps show for how long samples were missing.

DEFAULT_GAP_LIMIT = 0.1  # longest step that is bridged at any sample rate [s]
PERIODS = 2.5  # longest step that is bridged at low sample rates, in sample periods
WINDOW = 15  # number of steps whose median is the sample period
FEWEST = 5  # least number of steps that determines the sample period
FIRST_LIMIT = 2.5
"""Longest step that is bridged while the period is unknown [s]: 2.5 periods of 1 Hz."""
LONGEST_GAP = 1.0e8
"""Longest step that is a gap [s], three years; a longer one leads to another clock."""


@dataclass(frozen=True)
class Steps:
    """Time from the previous sample to each of a batch.

    Attributes:
        bridged: steps to integrate over [samples], s; 0 for the very first sample, across
            gaps and where the clock did not advance.
        lost: steps that are gaps, and time away over restarts of the clock [samples], s;
            else 0.
        back: whether the clock went backwards (a restarted controller), or ahead by years
            (another clock) [samples].
    """

    bridged: Array
    lost: Array
    back: Mask

    def cut(self, part: slice | Mask) -> Steps:
        """Steps of some of the samples."""
        return Steps(self.bridged[part], self.lost[part], self.back[part])

    def without(self, refused: Mask, before: float = 0.0) -> tuple[Steps, float]:
        """Steps without refused samples; the time to these counts as lost.

        Args:
            refused: whether each sample is refused [samples].
            before: time to samples refused directly before these [s].

        Returns:
            The steps of the samples that are kept, and the time to samples refused after
            the last of them [s].
        """
        passed = before + np.cumsum(np.where(refused, self.bridged + self.lost, 0.0))
        kept = self.cut(~refused)
        until = passed[~refused]
        lost = kept.lost + np.diff(until, prepend=0.0)
        rest = float(passed[-1])
        if len(until):
            rest -= float(until[-1])
        return replace(kept, lost=lost), rest


class StepRule:
    """Distinguishes steps from gaps, batch by batch.

    Args:
        limit: longest step that is bridged at any sample rate [s].

    Raises:
        ValueError: the limit is not positive.
    """

    def __init__(self, limit: float = DEFAULT_GAP_LIMIT) -> None:
        if not limit > 0:
            raise ValueError(f"the gap limit must be positive, not {limit}")
        self.limit = limit
        self._last: float | None = None
        self._last_stamp: int | None = None
        self._recent: list[float] = []

    def __call__(
        self,
        time: Array,
        stamp: NDArray[np.int64] | None = None,
        gaps: Sequence[Gap] = (),
        rate: float | None = None,
    ) -> Steps:
        """Steps to samples that follow those of the last call.

        Args:
            time: controller timestamps [samples], s.
            stamp: host time [samples], ns, None if unknown.
            gaps: recorded gaps; a gap over a restart of the clock counts for its `away`.
            rate: nominal samples per second, for the first steps; None if unknown.
        """
        first = self._last is None
        n = len(time)
        if not n:
            return Steps(np.zeros(0), np.zeros(0), np.zeros(0, dtype=bool))
        steps = changes(time, float(time[0]) if self._last is None else self._last)
        self._last = float(time[-1])
        last_stamp = self._last_stamp
        self._last_stamp = None if stamp is None else int(stamp[-1])
        if not gaps and steps.min() > 0.0 and steps.max() <= self.limit:  # the usual case
            self._recent = [*self._recent, *steps[-WINDOW:].tolist()][-WINDOW:]
            return Steps(steps, np.zeros(n), np.zeros(n, dtype=bool))
        forward = (steps > 0.0) & (steps < LONGEST_GAP)
        gap = forward & (steps > self.limit)
        recent = np.concatenate([self._recent, steps[forward]])
        for k in np.flatnonzero(gap):
            # A step is a gap only if it is also longer than the periods before it.
            end = len(self._recent) + int(np.count_nonzero(forward[:k]))
            steps_before = recent[max(0, end - WINDOW) : end]
            gap[k] = steps[k] > _longest_bridged(steps_before, rate)
        self._recent = recent[-WINDOW:].tolist()
        back = ~forward & (steps != 0.0)
        bridged = np.where(forward & ~gap, steps, 0.0)
        lost = np.where(gap, steps, 0.0)
        if stamp is not None and back.any():
            before_stamp = stamp[0] if last_stamp is None else last_stamp
            host_steps = 1e-9 * np.diff(stamp, prepend=before_stamp)
            lost[back] = np.maximum(host_steps[back], 0.0)
        for recorded in gaps:
            away = recorded.away
            before_all = first and recorded.index == 0
            if away is None or before_all or not 0.0 <= away < LONGEST_GAP:
                continue
            if recorded.index < n:
                bridged[recorded.index] = 0.0
                lost[recorded.index] = away
            else:  # behind the last sample
                lost[-1] += away
        return Steps(bridged, lost, back)


def _longest_bridged(before: Array, rate: float | None) -> float:
    """Longest step that is bridged [s], from the steps before it [k], s, and the nominal rate."""
    if len(before) >= FEWEST or (len(before) > 0 and rate is None):
        return PERIODS * float(np.median(before))
    return FIRST_LIMIT if rate is None else PERIODS / rate


def bridged_steps(time: Array, limit: float = DEFAULT_GAP_LIMIT) -> Array:
    """`Steps.bridged` of a whole recording [samples], s."""
    return StepRule(limit)(time).bridged


CONFIDENCE = 1.96
"""Half width of a 95 % interval in standard deviations, behind every ± that users see."""


@dataclass(frozen=True)
class MeterReading:
    """Energy counted up to one moment, or between two moments.

    Attributes:
        net: integral of each power [channels], J.
        consumed: integral of the positive part of each power [channels], J; it never
            decreases.
        accounted: time integrated over [s].
        unaccounted: time in gaps longer than the limit, or without any clock [s].
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
            net=self.net - earlier.net,
            consumed=self.consumed - earlier.consumed,
            accounted=self.accounted - earlier.accounted,
            unaccounted=self.unaccounted - earlier.unaccounted,
        )

    def __add__(self, other: MeterReading) -> MeterReading:
        return MeterReading(
            net=self.net + other.net,
            consumed=self.consumed + other.consumed,
            accounted=self.accounted + other.accounted,
            unaccounted=self.unaccounted + other.unaccounted,
        )

    def __mul__(self, share: float) -> MeterReading:
        return MeterReading(
            net=share * self.net,
            consumed=share * self.consumed,
            accounted=share * self.accounted,
            unaccounted=share * self.unaccounted,
        )

    @classmethod
    def zero(cls, channels: int) -> MeterReading:
        """Nothing counted yet."""
        return cls(np.zeros(channels), np.zeros(channels), 0.0, 0.0)


class Totals(NamedTuple):
    """Energy counted up to k moments: the values of a MeterReading for each moment.

    Attributes:
        net: net energies [k, channels], J.
        consumed: consumed energies [k, channels], J.
        accounted: accounted times [k], s.
        unaccounted: unaccounted times [k], s.
    """

    net: Array
    consumed: Array
    accounted: Array
    unaccounted: Array

    def first(self, count: int) -> Totals:
        """The energy up to each of the first moments, at least one."""
        return Totals(*(each[:count] for each in self))

    def readings(self, start: MeterReading | None = None) -> list[MeterReading]:
        """Energy up to each moment, or since an earlier reading."""
        rows = zip(
            self.net,
            self.consumed,
            self.accounted.tolist(),
            self.unaccounted.tolist(),
            strict=True,
        )
        readings = [MeterReading(*each) for each in rows]
        return readings if start is None else [each - start for each in readings]


class EnergyMeter:
    """Integrates several powers that share one clock, batch by batch.

    Gaps add unaccounted time and no energy; so does a clock that goes backwards (a
    restarted controller) where the host's stamps show for how long. Consumed and
    regenerated energy are the integrals of the positive and the negative part, so that
    consumed - regenerated = net exactly. What was counted is never changed afterwards.

    Args:
        channels: number of powers.
        gap_limit: longest step that is bridged at any sample rate [s].
        start: reading to continue from.

    Attributes:
        reading: energy counted so far.
        restarts: number of backward steps of the clock.
        last_power: powers of the last sample [channels], W.
    """

    def __init__(
        self,
        channels: int,
        *,
        gap_limit: float = DEFAULT_GAP_LIMIT,
        start: MeterReading | None = None,
    ) -> None:
        self.gaps = StepRule(gap_limit)
        self.restarts = 0
        self.reading = MeterReading.zero(channels) if start is None else start
        self.last_power = np.zeros(channels)

    def integrate(self, time: Array, power: Array) -> None:
        """Integrate powers [n, channels], W, finite, at times [n], s, behind the previous ones."""
        self.integrate_steps(self.gaps(time), power)

    def integrate_steps(
        self, steps: Steps, power: Array, stops: Sequence[int] = ()
    ) -> Totals:
        """Integrate powers of samples whose steps are known.

        Args:
            steps: steps to the samples [n].
            power: powers at the samples, finite [n, channels], W.
            stops: numbers of samples after which the energy is returned, too.

        Returns:
            The energy after each of these numbers of samples, and after all of them.
        """
        count = len(power)
        rows = np.concatenate((self.last_power[None], power))
        self.last_power = rows[-1]
        self.restarts += int(np.count_nonzero(steps.back))
        # One row of weights per moment: the steps up to it, and zero behind it.
        until = np.arange(count) < np.array((*stops, count))[:, None]
        bridged = np.where(until, steps.bridged, 0.0)
        lost = np.where(until, steps.lost, 0.0)
        weights = trapezoid_weights(bridged)
        before = self.reading
        totals = Totals(
            net=before.net + weights @ rows,
            consumed=before.consumed + weights @ np.maximum(rows, 0.0),
            accounted=before.accounted + bridged.sum(axis=1),
            unaccounted=before.unaccounted + lost.sum(axis=1),
        )
        self.reading = totals.readings()[-1]
        return totals

    @property
    def totals(self) -> Totals:
        """The energy counted so far, as the energy up to a single moment."""
        now = self.reading
        return Totals(
            now.net[None],
            now.consumed[None],
            np.array([now.accounted]),
            np.array([now.unaccounted]),
        )


def trapezoid(steps: Array, power: Array) -> Array:
    """Trapezoidal integral of powers [n + 1, ...] over steps [n] s: [...], J."""
    return np.asarray(trapezoid_weights(steps) @ power)


def trapezoid_weights(steps: Array) -> Array:
    """Weights of powers [..., n + 1] in their trapezoidal integral over steps [..., n], s."""
    halves = np.zeros((*steps.shape[:-1], steps.shape[-1] + 2))
    np.multiply(0.5, steps, out=halves[..., 1:-1])
    return np.asarray(halves[..., 1:] + halves[..., :-1])


def integrate(
    time: Array, power: Array, *, gap_limit: float = DEFAULT_GAP_LIMIT
) -> MeterReading:
    """Energy of a whole recording: power [n] or [n, channels], W, at times [n], s."""
    columns = power.reshape(len(time), -1)
    meter = EnergyMeter(columns.shape[1], gap_limit=gap_limit)
    meter.integrate(time, columns)
    return meter.reading


def interval(value: Array | float, std: Array | float) -> Array:
    """Ends of the 95 % interval of values [...] with standard deviations [...]: [..., 2]."""
    half = CONFIDENCE * np.asarray(std)
    return np.stack([value - half, value + half], axis=-1)


def efficiency(mechanical: Array, electrical: Array) -> Array:
    """Mechanical over electrical energy [n], NaN where no electrical energy was taken."""
    ratio = np.full(np.shape(electrical), np.nan)
    np.divide(mechanical, electrical, out=ratio, where=np.asarray(electrical) > 0)
    return ratio
