# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""HostClock, the one clock of a process, and ClockCheck of recorded times."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from ur_energy_model.errors import RecordingError
from ur_energy_model.telemetry.gaps import CLOCK_JUMPED, Gap, GapRule, with_found_gaps
from ur_energy_model.telemetry.plausibility import ANY_ARM, IMPOSSIBLE_SHARE
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array, Mask

# HostClock: the one clock of a process, for the stamps of samples, events, marks and bag
# names. It follows the monotonic clock, so that nothing jumps when the system's clock is
# set. A step of the system's clock takes effect between recordings: at once where none
# runs, else with the next bag.

STEP_SECONDS = 1.0
"""Change of the system's clock that counts as a step [s]; smaller ones add up until they do."""
READING_NS = 1_000_000
"""Longest time between two readings of the clocks that belong together [ns]."""
_ATTEMPTS = 10


class HostClock:
    """Wall-clock time that does not jump when the system's clock is set.

    Sources stamp samples and events by `now`, which never steps. Consumers add the
    `correction` (`corrected`, `stamp`), which is constant while it is held.

    Attributes:
        correction: what steps of the system's clock have added to `now` [ns].
        steps: number of steps noticed so far.
        last_step: extent of the last step [s], positive where the clock was set forward.
    """

    def __init__(self) -> None:
        self.correction = 0
        self.steps = 0
        self.last_step = 0.0
        self._lock = threading.Lock()
        self._holders = 0
        self._offset = _wall_minus_monotonic()  # when the process started [ns]
        self._seen = self._offset  # behind the last step [ns]

    def now(self) -> int:
        """Nanoseconds since the epoch by the system's clock as it was when the process started."""
        return time.monotonic_ns() + self._offset

    def stamp(self) -> int:
        """Corrected time, for events and names [ns since the epoch]."""
        return self.now() + self.correction

    def corrected(self, batch: Telemetry) -> Telemetry:
        """A live batch with corrected stamps."""
        if self.correction == 0 or batch.stamp is None:
            return batch
        return replace(batch, stamp=batch.stamp + self.correction)

    def check(self) -> int:
        """Compare the system's clock with `now`, and note a step; returns `steps`."""
        offset = _wall_minus_monotonic()
        with self._lock:
            step = (offset - self._seen) * 1e-9
            if abs(step) >= STEP_SECONDS:
                self._seen = offset
                self.last_step = step
                self.steps += 1
            if self._holders == 0:
                self.correction = self._due()
            return self.steps

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep the correction constant in this block."""
        self.hold()
        try:
            yield
        finally:
            self.release()

    def hold(self) -> None:
        """Keep the correction constant until `release` was called as often as this."""
        self.check()
        with self._lock:
            self._holders += 1

    def release(self) -> None:
        """End a `hold`."""
        with self._lock:
            self._holders -= 1

    def describe_step(self) -> str:
        """The last step, for events and diagnostics."""
        direction = "forward" if self.last_step > 0 else "back"
        applied = "stamps follow it"
        if self.correction != self._due():
            applied = "stamps follow it from the next recording on"
        return f"the system's clock was set {direction} by {abs(self.last_step):.1f} s; {applied}"

    def _due(self) -> int:
        """Correction that all steps so far require; steps that cancel out require none [ns]."""
        total = self._seen - self._offset
        return total if abs(total) * 1e-9 >= STEP_SECONDS else 0


def _wall_minus_monotonic() -> int:
    """The system's clock minus the monotonic clock [ns].

    The process may be interrupted between two readings: of some attempts, the one that
    took the shortest time counts.
    """
    shortest: int | None = None
    offset = 0
    for _ in range(_ATTEMPTS):
        before = time.monotonic_ns()
        wall = time.time_ns()
        after = time.monotonic_ns()
        duration = after - before
        if shortest is None or duration < shortest:
            shortest = duration
            offset = wall - (before + after) // 2
        if shortest < READING_NS:
            break
    return offset


HOST_CLOCK = HostClock()  # the clock of this process

# ClockCheck: refuses recordings whose times a controller's clock cannot have. The
# controller's clock advances from sample to sample and starts again when the controller
# does. A recording whose times run backwards or stand still would have no energy at all.

_FEW = 3  # steps back that are allowed in any recording
_SHARE = 1e-3  # largest share of samples at which the clock goes back
_SHARE_OF_FEW = 0.1  # the same among the first _MANY samples
_MANY = 20_000
_SHORTEST_STEP = 1e-5  # shortest mean step of a controller's clock [s]
_LONGEST_STEP = 60.0  # longest step between samples that is not taken for a gap [s]
_JUMP_RULE = GapRule(_LONGEST_STEP, None)
"""Every recording with a nominal period has its gaps already; this finds jumps of the clock."""
IMPOSSIBLE_TIMES = "impossible times"
"""Cause of a gap in place of samples whose times no controller has."""


def possible_times(time: Array) -> Mask:
    """Which times [n], s, are finite and within the range of a clock."""
    low, high = (float(edge[0]) for edge in ANY_ARM["timestamp"])
    possible: Mask = (time >= low) & (time <= high)
    return possible


class ClockCheck:
    """Refuses recordings whose times a controller's clock cannot have.

    Args:
        source: name of the recording, for errors.
    """

    def __init__(self, source: str | Path) -> None:
        self._source = source
        # Numbers so far: of samples, samples with impossible times, steps back, and steps
        # forward.
        self._samples = 0
        self._impossible = 0
        self._back = 0
        self._forward = 0
        self._advance = 0.0  # sum of the steps forward, without long ones [s]
        self._last: float | None = None  # the last possible time [s]

    def update(self, time: Array) -> None:
        """Follow the next times.

        Args:
            time: controller times [n], s.

        Raises:
            RecordingError: too many of them go back, or they advance by less than 10 us.
        """
        use = possible_times(time)
        clock = time[use]
        if self._last is not None:
            clock = np.append(self._last, clock)
        steps = np.diff(clock)
        if len(clock):
            self._last = float(clock[-1])
        forward = steps[steps > 0]
        self._samples += len(time)
        self._impossible += int(np.count_nonzero(~use))
        self._back += int(np.count_nonzero(steps < 0))
        self._forward += len(forward)
        self._advance += float(np.minimum(forward, _LONGEST_STEP).sum())
        self._check_order(_SHARE if self._samples > _MANY else _SHARE_OF_FEW)
        if self._forward > _FEW and self._advance < _SHORTEST_STEP * self._forward:
            raise self._refusal("the time advances by less than 10 us a sample")

    def finish(self) -> None:
        """End of the recording.

        Raises:
            RecordingError: the times go back, stand still, or too many are impossible.
        """
        self._check_order(_SHARE)
        allowed = max(1.0, IMPOSSIBLE_SHARE * self._samples)
        all_but_one = max(self._samples - 1, 0)
        if self._impossible > min(allowed, all_but_one):
            raise self._refusal(
                f"{self._impossible} of {self._samples} samples have times that are impossible"
            )
        if self._samples > 1 and not self._forward:
            raise self._refusal(f"the time does not advance in {self._samples} samples")

    def _check_order(self, share: float) -> None:
        """Refuse times that go back at more than this share of the samples, and some more."""
        if self._back > _FEW + share * self._samples:
            raise self._refusal(
                f"the time goes back {self._back} times in {self._samples} samples, "
                "which no restart of a controller explains"
            )

    def _refusal(self, problem: str) -> RecordingError:
        """The error about the times of the recording."""
        remedy = "record again, or import the CSV recording again"
        return RecordingError(self._source, problem, remedy, field="timestamp")


def checked_clock(
    batches: Iterable[Telemetry], source: str | Path
) -> Iterator[Telemetry]:
    """Batches of a recording without samples of impossible times; at least one sample is left.

    Samples that are left out, and jumps of the clock that are not among the recorded
    gaps, become gaps.

    Args:
        batches: batches of the recording, in order.
        source: name of the recording, for errors.

    Yields:
        The batches; those without a possible time are left out.

    Raises:
        RecordingError: a controller's clock cannot have these times, see `ClockCheck`.
    """
    check = ClockCheck(source)
    last = np.nan  # time of the last sample that was kept
    dropped = 0  # samples behind it that were left out
    for batch in batches:
        check.update(batch.time)
        use = possible_times(batch.time)
        rows = np.flatnonzero(use)
        if not len(rows):
            dropped += len(batch)
            continue
        kept = batch.select(use)
        # Samples left out in front of each sample that is kept.
        missing = np.diff(rows, prepend=-1 - dropped) - 1
        if np.isnan(last):
            missing[0] = 0  # no gap in front of the first sample of all
        before = np.append(last, kept.time[:-1])
        gaps: list[Gap] = []
        for i in np.flatnonzero(missing).tolist():
            start = float(before[i])
            end = float(kept.time[i])
            gaps.append(Gap(i, start, end, int(missing[i]), IMPOSSIBLE_TIMES))
        jumps: list[Gap] = []
        for gap in _JUMP_RULE.find_behind(last, kept.time):
            goes_back = gap.end < gap.start
            jumps.append(gap if goes_back else replace(gap, cause=CLOCK_JUMPED))
        all_gaps = with_found_gaps(kept.gaps, with_found_gaps(gaps, jumps))
        if len(all_gaps) > len(kept.gaps):
            kept = replace(kept, gaps=all_gaps)
        yield kept
        dropped = len(batch) - 1 - int(rows[-1])
        last = float(kept.time[-1])
    check.finish()
