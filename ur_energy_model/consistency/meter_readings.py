# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Readings of a power meter, compared with the terms that the power at the mains depends on.

A reading is the mean of some time that ended before it arrived. Neither the delay nor the
averaging time is known: for each pair of them that is tried, the readings are compared
with the means of the terms (`model.wall`) over that time. Only Gram matrices of these
means and the readings are kept, so that memory does not grow with the recording.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ur_energy_model.model.wall import SUPPLY, TERMS
from ur_energy_model.typing import Array, Indices, Mask

READING_FIELDS = ("wall_power", "wall_reading")
"""Columns of a meter: its last reading [W], NaN where it is silent, and the number of
readings."""
SHIFT = TERMS
READING = TERMS + 1
"""Places in the Gram matrices behind the terms: change of the power's mean per second of
further delay, W/s, and the reading, W."""

_LEAST_COVERED = 0.5  # share of an averaging time with samples
_TIE = 1e-9
"""Share of the readings' squares below which a difference of pairs is rounding."""
_ENOUGH = 15  # number of readings that can show a quick meter
_UNEXPLAINED = 0.1
"""Share of the readings' scatter that the power of the last seconds may leave unexplained if the
meter is quick."""
_TOGETHER = 10  # number of readings of one Gram matrix
_AT_ONCE = 256  # number of readings that are compared at once, which limits memory


class AveragingGrid:
    """Pairs of delay and averaging time that are tried, on a grid of time.

    Args:
        step: step of the grid [s].
        delays: times from the end of the averaging to the reading, in steps, at least 1.
        averaging: averaging times in steps.
        longest: time between two readings beyond which the second one is not compared
            [s].

    Attributes:
        delay: delay of every pair, from the end of the averaging time to the reading
            [pairs], s.
        averaging: averaging time of every pair [pairs], s.
        ends: end of the averaging time before the reading [pairs], in steps.
        begins: begin of the averaging time before the reading [pairs], in steps.
        points: number of grid points before a reading that are compared.
    """

    def __init__(
        self, step: float, delays: list[int], averaging: list[int], longest: float
    ) -> None:
        self.step = step
        self.longest = longest
        self.ends: Indices = np.tile(delays, len(averaging))
        lengths = np.repeat(averaging, len(delays))
        self.begins: Indices = self.ends + lengths
        self.delay = step * self.ends
        self.averaging = step * lengths
        self.points = int(self.begins.max()) + 2

    @property
    def reach(self) -> float:
        """Time before a reading that is compared [s]."""
        return self.step * self.points


FROZEN_SECONDS = 30.0
FROZEN_CHANGE = 20.0
"""A meter is frozen if it repeats a reading for longer than FROZEN_SECONDS [s] while the power
changes by more than FROZEN_CHANGE [W]."""
SETTLED_SECONDS = 180.0
"""Equal readings count as readings of a constant power if they last for this time [s]."""
FINE = AveragingGrid(0.1, [*range(1, 51)], [1, 5, 10, 20, 50, 100], FROZEN_SECONDS)
"""Meters for sockets and rails, which update once in 0.5 to 10 s."""
SLOW = AveragingGrid(1.0, [1, 2, 5, 10, 30, 60], [5, 10, 30, 60, 120], 200.0)
"""Meters of a building, which update once in 5 to 60 s."""


class Integrals:
    """Integrals over the time of samples [samples, k], kept on a grid and linear in between.

    Args:
        grid: step of the times that are kept [s].
        reach: time before the last sample for which they are kept [s].
        width: number of integrals k.

    Attributes:
        last: integrals up to the last sample [k].
    """

    def __init__(self, grid: float, reach: float, width: int) -> None:
        self._grid = grid
        self._reach = reach
        self._time = np.zeros(0)
        self._kept = np.zeros((0, width))
        self.last = np.zeros(width)

    def add(self, time: Array, integrals: Array) -> None:
        """Add samples that follow those before: times [samples], s, and integrals up to them."""
        before = self._time[-1] if len(self._time) else -np.inf
        new = np.diff(np.floor(np.append(before, time) / self._grid)) > 0.0
        new[-1] = True  # readings may come with the last sample
        first = int(np.searchsorted(self._time, time[-1] - self._reach))
        self._time = np.concatenate([self._time[first:], time[new]])
        self._kept = np.concatenate([self._kept[first:], integrals[new]])
        self.last = integrals[-1]

    def at(self, times: Array) -> Array:
        """Integrals [..., k] up to times [...], s, which are within the reach."""
        columns = [np.interp(times, self._time, column) for column in self._kept.T]
        return np.stack(columns, axis=-1)


class FrozenRuns:
    """Runs of equal readings, and whether the power changed so much that a meter must be frozen.

    Meters average over a time that is not known. A changing mean over 10 s proves nothing
    about a meter that averages over a minute: unless earlier readings show a quick meter,
    the means over all times of AVERAGING have to change. A mean counts only if its time
    lies within the run and the reading had time to respond to it.

    Attributes:
        value: reading of the longest frozen run [W].
        seconds: time for which this reading was repeated [s]; 0 without a frozen run.
        change: change of the power in this time [W].
        total: time of all frozen runs [s].
    """

    AVERAGING: Array = np.array([10.0, 30.0, 60.0])
    """Times over which the power is averaged [s]."""
    RESPONSE: Array = AVERAGING + 5.0
    """Times after which a meter with these averaging times shows a change [s]."""
    FEWEST = 3  # equal readings of a run

    def __init__(self) -> None:
        self.value = np.nan
        self.seconds = 0.0
        self.change = 0.0
        self.total = 0.0
        self._run = np.nan
        self._began = 0.0
        self._counted = 0.0
        self._count = 0
        self._low = self._high = np.full(len(self.AVERAGING), np.nan)

    def end(self) -> None:
        """The next reading begins a run: the meter was silent before it."""
        self._run = np.nan

    def includes(self, time: float, watts: float, means: Array, *, quick: bool) -> bool:
        """Whether a reading continues a run that must be frozen.

        Args:
            time: time of the reading [s].
            watts: the reading [W].
            means: mean powers over the times of AVERAGING, which ended RESPONSE before the
                reading [3], W; NaN where unknown.
            quick: whether the meter is known to average over the first of these times at
                most.
        """
        if watts != self._run or time < self._began:
            self._run = watts
            self._began = time
            self._counted = 0.0
            self._count = 0
            self._low = self._high = np.full(len(self.AVERAGING), np.nan)
        self._count += 1
        lasted = time - self._began
        within = np.where(lasted >= self.AVERAGING + self.RESPONSE, means, np.nan)
        self._low = np.fmin(self._low, within)
        self._high = np.fmax(self._high, within)
        if lasted <= FROZEN_SECONDS or self._count < self.FEWEST:
            return False
        changes = self._high - self._low
        change = float(changes[0] if quick else changes.min())
        frozen = change > FROZEN_CHANGE  # false where a mean is unknown
        if frozen:
            self.total += lasted - self._counted
            self._counted = lasted
            if lasted > self.seconds:
                self.value = watts
                self.seconds = lasted
                self.change = change
        return frozen

    def settled(self, time: float) -> bool:
        """Whether the present run is so long that its readings count: the power is constant."""
        return time - self._began > SETTLED_SECONDS


class Compared(NamedTuple):
    """Some readings that were compared.

    Attributes:
        gram: Gram matrices of terms, shift and reading, weighted by time [pairs, 7, 7].
        seconds: time between these readings [s].
        readings: number of the readings.
    """

    gram: Array
    seconds: float
    readings: int


class MeterReadings:
    """Compares a meter's readings with the terms of the power at the mains, batch by batch.

    The first reading, a reading after a silence or without a new number, and readings of
    a frozen meter are left out.

    Args:
        windows: pairs of delay and averaging time.

    Attributes:
        resolution: smallest difference between consecutive readings so far [W].
        frozen: runs of equal readings.
    """

    def __init__(self, windows: AveragingGrid = FINE) -> None:
        self.resolution = np.inf
        self.frozen = FrozenRuns()
        self._windows = windows
        self._gram = np.zeros((len(windows.delay), TERMS + 2, TERMS + 2))
        self._readings = 0  # number of readings in the Gram matrices
        self._judged_at = 0  # number of readings at which `is_quick` is judged again
        self._quick = False
        self._before = np.nan  # the reading before [W]
        # Rows and times of equal readings, until they are known not to be frozen.
        self._held: list[tuple[Array, float]] = []
        self._restart()

    def _restart(self) -> None:
        """Begin anew after a step back of the clock."""
        frozen = float((FrozenRuns.AVERAGING + FrozenRuns.RESPONSE).max())
        reach = max(self._windows.reach, frozen + 1.0)
        self._sums = Integrals(0.5 * self._windows.step, reach, TERMS)
        self._time = -np.inf
        self._terms = np.zeros((0, TERMS))  # terms of the last sample
        self._number = np.nan  # number of the last reading
        self._silences = 0  # number of samples at which the meter was silent
        self._last = np.full((1, 2), np.nan)  # silences and time [s] at the last reading

    def add(
        self, time: Array, steps: Array, terms: Array, watts: Array, number: Array
    ) -> list[Compared]:
        """Compare the readings of samples that follow those of the last call.

        Args:
            time: times [samples], s; a step back begins anew.
            steps: bridged steps to the samples [samples], s; 0 where the terms are unknown.
            terms: rates of the terms [samples, 5].
            watts: column of the meter's last reading [samples], W.
            number: column of the number of readings [samples].

        Returns:
            Readings that were compared and are known not to be frozen.
        """
        if time[0] < self._time:
            self._restart()
        rows = np.concatenate([self._terms if len(self._terms) else terms[:1], terms])
        gains = 0.5 * steps[:, None] * (rows[1:] + rows[:-1])
        sums = self._sums.last + np.cumsum(gains, axis=0)
        self._sums.add(time, sums)
        self._terms = terms[-1:]
        self._time = float(time[-1])
        covered = sums[:, :SUPPLY].sum(axis=1)
        new: Mask = np.isfinite(watts) & (np.diff(number, prepend=self._number) > 0.0)
        silences = self._silences + np.cumsum(np.isnan(watts))
        marks = np.column_stack([silences, covered])[new]
        silent, seconds = np.diff(np.concatenate([self._last, marks]), axis=0).T
        # 0 for the first reading, and for one after a silence or an unchanged number.
        consecutive = (silent == 0.0) & (seconds < self._windows.longest)
        seconds = np.where(consecutive, seconds, 0.0)
        self._number = float(number[-1])
        self._silences = int(silences[-1])
        self._last = np.concatenate([self._last, marks])[-1:]
        counted: list[tuple[Array, float]] = []
        new_time = time[new]
        new_watts = watts[new]
        for start in range(0, len(new_time), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            counted += self._compared(new_time[part], new_watts[part], seconds[part])
        return self._grams(counted)

    def finish(self) -> list[Compared]:
        """The last readings of a recording."""
        held = self._held
        self._held = []
        return self._grams(held)

    def waiting(self) -> Array:
        """Gram matrices of readings that may be from a frozen meter [pairs, 7, 7]."""
        waiting = np.zeros_like(self._gram)
        for part in _parts(self._held):
            waiting += _compared(part).gram
        return waiting

    def _compared(
        self, time: Array, watts: Array, seconds: Array
    ) -> list[tuple[Array, float]]:
        """Compare readings at times [readings], s.

        Args:
            time: times of the readings [readings], s.
            watts: the readings [readings], W.
            seconds: time since the reading before [readings], s; 0 where it is not compared.

        Returns:
            Rows of terms, shift and reading [pairs, 7], and times [s], of the readings that
            are known not to be frozen by now, earlier ones included.
        """
        windows = self._windows
        at = time[:, None] - windows.step * np.arange(windows.points)
        sums = self._sums.at(at)
        spans = sums[:, windows.ends] - sums[:, windows.begins]
        supply = sums[..., SUPPLY]
        later = supply[:, windows.ends + 1] - supply[:, windows.begins + 1]
        earlier = supply[:, windows.ends - 1] - supply[:, windows.begins - 1]
        covered = spans[..., :SUPPLY].sum(axis=-1, keepdims=True)
        enough = covered[..., 0] >= _LEAST_COVERED * windows.averaging
        usable = enough.all(axis=1) & (seconds > 0.0)
        shift = (later - earlier)[..., None] / (2.0 * windows.step)
        means = np.concatenate([spans, shift], axis=2) / np.maximum(covered, 1e-30)
        readings = np.broadcast_to(watts[:, None, None], (*means.shape[:2], 1))
        rows = np.concatenate([means, readings], axis=2)
        ready: list[tuple[Array, float]] = []
        quick = self.is_quick
        powers = self._mean_powers(time)
        for k, row in enumerate(rows):
            moment = float(time[k])
            watt = float(watts[k])
            passed = float(seconds[k])
            if watt != self._before:
                ready += self._held
                self._held = []
                if np.isfinite(self._before):
                    self.resolution = min(self.resolution, abs(watt - self._before))
                self._before = watt
            if passed == 0.0:
                self.frozen.end()
            if self.frozen.includes(moment, watt, powers[k], quick=quick):
                self._held = []
                continue
            if usable[k]:
                self._held.append((row, passed))
            if self.frozen.settled(moment):
                ready += self._held
                self._held = []
        return ready

    def _mean_powers(self, time: Array) -> Array:
        """Mean powers that `FrozenRuns` compares with readings [readings, 3], W."""
        lengths = FrozenRuns.AVERAGING
        ends = time[:, None] - FrozenRuns.RESPONSE
        spans = self._sums.at(ends) - self._sums.at(ends - lengths)
        covered = spans[..., :SUPPLY].sum(axis=-1)
        enough = covered >= _LEAST_COVERED * lengths
        means = spans[..., SUPPLY] / np.where(enough, covered, 1.0)
        return np.where(enough, means, np.nan)

    @property
    def is_quick(self) -> bool:
        """Whether the readings so far show that the meter averages over some seconds only.

        Readings of such a meter follow the power of the last seconds, and a longer averaging
        time explains them less.
        """
        if self._readings >= self._judged_at:
            self._judged_at = max(_ENOUGH, 3 * self._readings // 2)
            self._quick = self._readings >= _ENOUGH and self._follows()
        return self._quick

    def _follows(self) -> bool:
        """Whether means over some seconds explain the readings, and longer ones do not."""
        gram = self._gram
        averaging = self._windows.averaging
        seconds = float(gram[0, :SUPPLY, :SUPPLY].sum())
        mean = float(gram[0, :SUPPLY, READING].sum()) / seconds
        scatter = float(gram[0, READING, READING]) - seconds * mean * mean
        best, left = best_pair(gram)
        return left < _UNEXPLAINED * scatter and averaging[best] < averaging.max()

    def _grams(self, rows: list[tuple[Array, float]]) -> list[Compared]:
        """Gram matrices of rows, some readings each."""
        found = [_compared(part) for part in _parts(rows)]
        for each in found:
            self._gram += each.gram
            self._readings += each.readings
        return found


def _parts(rows: list[tuple[Array, float]]) -> Iterator[list[tuple[Array, float]]]:
    """Rows of readings that are put together."""
    for start in range(0, len(rows), _TOGETHER):
        yield rows[start : start + _TOGETHER]


def _compared(rows: list[tuple[Array, float]]) -> Compared:
    """Rows [pairs, 7] of readings, and their times [s], as Gram matrices."""
    seconds = np.array([passed for _, passed in rows])
    each = np.stack([row for row, _ in rows], axis=1)  # [pairs, readings, 7]
    gram = (each * seconds[:, None]).swapaxes(-1, -2) @ each
    return Compared(gram, float(seconds.sum()), len(rows))


def best_pair(gram: Array) -> tuple[int, float]:
    """The pair of delay and averaging time whose means explain the readings best.

    Args:
        gram: Gram matrices of terms, shift and reading [pairs, 7, 7].

    Returns:
        Number of the pair, the first one where the power is constant, and the part of the
        readings' squares that it leaves unexplained [W^2 s].
    """
    columns = slice(0, READING)  # terms and shift
    cross = gram[:, columns, READING]
    squares = gram[:, READING, READING]
    unit = np.sqrt(np.maximum(np.diagonal(gram[0])[columns], 1e-30))
    normal = gram[:, columns, columns] / np.outer(unit, unit)
    inverse = np.linalg.pinv(normal, 1e-9, hermitian=True)
    scaled = cross / unit
    left = squares - np.einsum("ci,cij,cj->c", scaled, inverse, scaled)
    best = int(np.argmax(left <= left.min() + _TIE * squares[0]))
    return best, max(float(left[best]), 0.0)


def rounding(resolution: float) -> float:
    """Standard deviation of the rounding of readings [W]; 0 where all readings were equal."""
    if not np.isfinite(resolution):
        return 0.0
    return resolution / float(np.sqrt(12.0))
