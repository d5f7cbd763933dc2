"""Steps between samples that integrals over time bridge, and gaps that they leave out.

A step is a gap where it is longer than both a fixed limit and 2.5 sample periods. The period is
the median of the steps before it: the same rule then fits recordings of 5 Hz and of 500 Hz, a
single missing sample is bridged, and the result depends neither on how samples are batched nor on
later samples. Where the controller's clock started again, the recorded gaps or the host's stamps
tell for how long samples were missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.telemetry.runs import changes
from ur_energy_model.telemetry.samples import Gap
from ur_energy_model.typing import Array, Mask

DEFAULT_GAP_LIMIT = 0.1
"""Longest step that is bridged at any sample rate [s]."""
PERIODS = 2.5
"""Longest step that is bridged at low sample rates, in sample periods."""
WINDOW = 15
"""Steps whose median is the sample period."""
FEWEST = 5
"""Least number of steps that determines the period."""
FIRST_LIMIT = 0.5
"""Longest step that is bridged before the period is known [s]: two periods of 4 Hz."""
LONGEST_GAP = 1.0e8
"""Longest step that is a gap [s], three years; a longer one leads to another clock."""


@dataclass(frozen=True)
class Steps:
    """Time from the previous sample to each of a batch.

    Attributes:
        bridged: steps to integrate over [samples], s; 0 for the very first sample, across gaps
            and where the clock did not advance.
        lost: steps that are gaps, and time away over restarts of the clock [samples], s, else 0.
        back: whether the clock went backwards (a restarted controller), or ahead by years (another
            clock) [samples].
    """

    bridged: Array
    lost: Array
    back: Mask

    def cut(self, part: slice | Mask) -> Steps:
        """Steps of some of the samples."""
        return Steps(self.bridged[part], self.lost[part], self.back[part])

    def without(self, refused: Mask, before: float = 0.0) -> tuple[Steps, float]:
        """Steps of the samples that are not refused; the time to the others is lost.

        Args:
            refused: [samples].
            before: time to samples refused directly before these [s].

        Returns:
            the steps, and the time to samples refused after the last of them [s].
        """
        passed = before + np.cumsum(np.where(refused, self.bridged + self.lost, 0.0))
        kept, until = self.cut(~refused), passed[~refused]
        rest = float(passed[-1]) - (float(until[-1]) if len(until) else 0.0)
        return replace(kept, lost=kept.lost + np.diff(until, prepend=0.0)), rest


class GapRule:
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
        self._recent: Array = np.zeros(0)

    def __call__(
        self,
        time: Array,
        stamp: NDArray[np.int64] | None = None,
        gaps: Sequence[Gap] = (),
    ) -> Steps:
        """Steps to samples that follow those of the last call.

        Args:
            time: controller timestamps [samples], s.
            stamp: host time [samples], ns, None if unknown.
            gaps: recorded ones; those with `away` count for that time.
        """
        first = self._last is None
        if not len(time):
            return Steps(np.zeros(0), np.zeros(0), np.zeros(0, dtype=bool))
        steps = changes(time, float(time[0]) if self._last is None else self._last)
        self._last = float(time[-1])
        if not gaps and steps.min() > 0.0 and steps.max() <= self.limit:  # the usual case
            self._recent = np.concatenate([self._recent, steps[-WINDOW:]])[-WINDOW:]
            self._last_stamp = None if stamp is None else int(stamp[-1])
            return Steps(steps, np.zeros(len(steps)), np.zeros(len(steps), dtype=bool))
        forward = (steps > 0.0) & (steps < LONGEST_GAP)
        gap = forward & (steps > self.limit)
        if gap.any():
            gap[forward] = steps[forward] > self._limits(steps[forward])
        self._recent = np.concatenate([self._recent, steps[forward][-WINDOW:]])[-WINDOW:]
        back = ~forward & (steps != 0.0)
        bridged, lost = np.where(forward & ~gap, steps, 0.0), np.where(gap, steps, 0.0)
        if stamp is not None and back.any():
            before = stamp[0] if self._last_stamp is None else self._last_stamp
            lost[back] = np.maximum(np.diff(stamp, prepend=before)[back] * 1e-9, 0.0)
        self._last_stamp = None if stamp is None else int(stamp[-1])
        for each in gaps:
            away = each.away
            if away is None or (first and each.index == 0) or not 0.0 <= away < LONGEST_GAP:
                continue
            if each.index < len(time):
                bridged[each.index], lost[each.index] = 0.0, away
            else:  # behind the last sample
                lost[-1] += away
        return Steps(bridged, lost, back)

    def _limits(self, forward: Array) -> Array:
        """Longest step that is bridged, for each step forward [m], s."""
        limits = np.full(len(forward), self.limit)
        steps = np.concatenate([self._recent, forward])
        known = len(self._recent)
        for k in np.flatnonzero(forward > self.limit):
            before = steps[max(0, known + k - WINDOW) : known + k]
            period = np.median(before) * PERIODS if len(before) >= FEWEST else FIRST_LIMIT
            limits[k] = max(self.limit, float(period))
        return limits


def bridged_steps(time: Array, limit: float = DEFAULT_GAP_LIMIT) -> Array:
    """`Steps.bridged` of a whole recording [samples], s."""
    return GapRule(limit)(time).bridged
