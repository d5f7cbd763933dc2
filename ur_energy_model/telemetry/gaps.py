# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Gaps: missing samples of a recording or stream, the one rule that finds them, and their sum.

Telemetry is never resampled, so that every missing sample is a step of the controller's
clock that is too long. `GapRule` decides which steps are; sources, recorder, bags, CSV
tables and the quality check all use it. A gap is an entry in the list of its recording,
and `Losses` sums up such a list: nothing else counts lost samples.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from ur_energy_model.typing import Array

SKIPPED = "skipped"
"""Cause of a gap that nothing but the clock shows."""
RESTARTED = "controller restarted"
"""Cause of a gap behind which the controller's clock is smaller."""
CLOCK_JUMPED = "clock jumped"
"""Cause of a gap behind which the controller's clock is far ahead of what passed."""
NOMINAL_LIMIT = 1.5
"""Longest step that is no gap, in nominal sample periods."""
TYPICAL_LIMIT = 2.5
"""Longest step that is no gap, in typical steps, where no period is known."""
_LATEST = 1e15
"""Impossible times are cut off here [s], so that counts stay in the range of integers."""


@dataclass(frozen=True)
class Gap:
    """Samples of the controller that are missing in a recording or stream.

    Attributes:
        index: index of the first sample behind the gap. It is 0 in a batch of a stream if
            the gap lies in front of the batch, and the number of samples if the recording
            ends with the gap.
        start: controller time of the last sample before the gap [s].
        end: controller time of the first sample behind the gap [s]; smaller than `start`
            if the controller restarted.
        missing: number of samples missing, estimated from the sample period; 0 if it is
            unknown.
        cause: reason as far as it is known, such as "connection lost: ...".
        away: time without samples by the host's clock [s], where the controller's clock
            cannot show it (the controller restarted, or never came back); None otherwise.
    """

    index: int
    start: float
    end: float
    missing: int
    cause: str = "unknown"
    away: float | None = None

    @property
    def seconds(self) -> float:
        """Time without samples [s]; 0 where neither clock shows it."""
        return max(self.end - self.start, 0.0) if self.away is None else self.away

    def before(self, later: Gap) -> Gap:
        """One gap for this one and a later one with no sample between them.

        The longer cause is kept, since it says more.
        """
        away = None
        if self.away is not None or later.away is not None:
            away = self.seconds + later.seconds
        cause = max(self.cause, later.cause, key=len)
        missing = self.missing + later.missing
        return replace(self, end=later.end, missing=missing, cause=cause, away=away)


@dataclass(frozen=True)
class Losses:
    """Samples that are known to be lost: the sum over the gaps of a recording or stream.

    A gap is known once a sample behind it has come, or once the stream has ended in it.
    An outage that lasts is no loss yet: its samples may still be on their way.

    Attributes:
        samples: number of lost samples.
        seconds: time of the gaps [s].
        gaps: number of gaps.
    """

    samples: int = 0
    seconds: float = 0.0
    gaps: int = 0

    def after(self, gaps: Iterable[Gap]) -> Losses:
        """These losses together with the losses of further gaps."""
        samples = self.samples
        seconds = self.seconds
        count = self.gaps
        for gap in gaps:
            samples += gap.missing
            seconds += gap.seconds
            count += 1
        return Losses(samples, seconds, count)

    def __add__(self, other: Losses) -> Losses:
        seconds = self.seconds + other.seconds
        return Losses(self.samples + other.samples, seconds, self.gaps + other.gaps)

    def __sub__(self, earlier: Losses) -> Losses:
        seconds = self.seconds - earlier.seconds
        return Losses(self.samples - earlier.samples, seconds, self.gaps - earlier.gaps)


NO_LOSSES = Losses()


def typical_step(steps: Array) -> float:
    """Larger of median and mean of a clock's forward steps [n], s; NaN if there are none.

    Robust where a recorder stored samples at irregular multiples of the controller's
    tick. Steps of more than ten times the median are gaps and do not count for the mean.
    """
    forward = steps[steps > 0]
    if not forward.size:
        return float("nan")
    middle = float(np.median(forward))
    return max(middle, float(np.mean(forward[forward <= 10 * middle])))


@dataclass(frozen=True)
class GapRule:
    """Which steps of the controller's clock are gaps, and how many samples they lack.

    A step is a gap if it is longer than `limit`, or goes back (the controller restarted).
    Equal times are no gap but a sample recorded twice, see `Telemetry.distinct`.

    Attributes:
        limit: longest step that is no gap [s].
        period: time between samples [s]; None if unknown: then the number of missing
            samples is 0.
    """

    limit: float
    period: float | None

    @classmethod
    def of_period(cls, period: float) -> GapRule:
        """The rule of a recording with a nominal sample period [s]."""
        return cls(NOMINAL_LIMIT * period, period)

    @classmethod
    def of_typical_step(cls, step: float) -> GapRule:
        """The rule where no period is known, by the `typical_step` [s]; NaN stands for 1 s."""
        step = step if step > 0 else 1.0
        return cls(TYPICAL_LIMIT * step, step)

    def missing(self, step: float) -> int:
        """Number of samples that are missing in a step [s]; 0 if the period is not known."""
        if self.period is None:
            return 0
        return max(0, round(step / self.period) - 1)

    def find(self, time: Array) -> tuple[Gap, ...]:
        """Gaps in a series of controller times [n], s."""
        steps = np.diff(np.clip(time, -_LATEST, _LATEST))
        is_gap = (steps > self.limit) | (steps < 0)
        gaps: list[Gap] = []
        for before in np.flatnonzero(is_gap).tolist():
            start = float(time[before])
            end = float(time[before + 1])
            step = float(steps[before])
            cause = SKIPPED if step > 0 else RESTARTED
            gaps.append(Gap(before + 1, start, end, self.missing(step), cause))
        return tuple(gaps)

    def find_behind(self, before: float | None, time: Array) -> tuple[Gap, ...]:
        """Gaps in and in front of controller times [n], s, that follow another sample.

        Args:
            before: time of the sample before [s]; None or NaN if there is none.
            time: times of the samples [n], s.

        Returns:
            Gaps whose indexes are those in `time`.
        """
        if before is None or np.isnan(before):
            return self.find(time)
        found = self.find(np.append(before, time))
        return tuple(replace(gap, index=gap.index - 1) for gap in found)


def find_gaps(
    time: Array, period: float | None = None, *, before: float | None = None
) -> tuple[Gap, ...]:
    """Gaps in a series of controller times, by the rule that fits it.

    Args:
        time: controller times [n], s.
        period: nominal sample period [s]; None if there is none.
        before: time of the sample in front of these [s]; None or NaN if there is none.

    Returns:
        A gap for each step longer than 1.5 nominal periods (2.5 typical steps where there
        is no period), and for each step backwards; indexes are those in `time`.
    """
    if period is not None:
        return GapRule.of_period(period).find_behind(before, time)
    first = np.nan if before is None else before
    typical = typical_step(np.diff(time, prepend=first))
    return GapRule.of_typical_step(typical).find_behind(before, time)


def with_found_gaps(known: Iterable[Gap], found: Iterable[Gap]) -> tuple[Gap, ...]:
    """Known gaps, and gaps that the clock shows at other places, in order of their indexes.

    What is known of a gap (its cause, its time by the host's clock) has precedence over
    what its step of the clock shows.

    Args:
        known: recorded gaps of a recording.
        found: gaps by the clock, with indexes in the same recording.
    """
    gaps = list(known)
    indexes = {gap.index for gap in gaps}
    gaps += [gap for gap in found if gap.index not in indexes]
    return tuple(sorted(gaps, key=lambda gap: gap.index))
