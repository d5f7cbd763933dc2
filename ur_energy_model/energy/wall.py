"""Readings of a power meter at the mains, and the energy that they and the model give.

A reading is the mean of some time that ended before it arrived. Delay and averaging time are found
from the data: for each pair of them that is tried, the readings are compared with the means of
what the wall depends on (`model.wall`) over that time. All of it is in Gram matrices of these means
and the readings, so memory does not grow with the recording.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ur_energy_model.energy.meter import CONFIDENCE, interval
from ur_energy_model.energy.powers import BOX_TERMS, Channels, PowerTable
from ur_energy_model.model.wall import GENERIC, MEASURED, MODEL, SQUARE, SUPPLY, TERMS
from ur_energy_model.telemetry.fields import FROZEN_CHANGE, FROZEN_SECONDS
from ur_energy_model.typing import Array, Indices

READING_FIELDS = ("wall_power", "wall_reading")
"""Columns of a meter: its last reading [W], NaN where it is silent, and the number of readings."""

STEP = 0.1  # between the delays that are tried [s]
_DELAYS = 50
_AVERAGING = (1, 5, 10, 20, 50, 100)  # in steps
DELAY, AVERAGING = STEP * np.array([(1 + d, a) for a in _AVERAGING for d in range(_DELAYS)]).T
"""Every pair that is tried [pairs], s: meters for sockets update once in 0.5 to 10 s."""
_ENDS = np.rint(DELAY / STEP).astype(int)
_BEGINS = _ENDS + np.rint(AVERAGING / STEP).astype(int)
_STEADY = _DELAYS * _AVERAGING.index(50)
"""The pair whose mean power shows whether the load changes."""
_REACH = STEP * (_BEGINS.max() + 2)  # time before a reading that is compared [s]
_LEAST_COVERED = 0.5  # share of an averaging time with samples
_TOGETHER = 10  # readings of one Gram matrix
_AT_ONCE = 256  # readings compared at once, which bounds memory
_TIE = 1e-9  # of the readings' squares: a smaller difference between pairs is rounding


class WallEnergy(NamedTuple):
    """Energy at the wall of some time."""

    energy: float  # [J]
    std: float  # standard deviation [J]
    source: str  # "meter", "model" (a meter measured this cell before) or "generic"

    def as_json(self) -> dict[str, Any]:
        """The entries of `ur_energy estimate --json`."""
        ends = interval(self.energy, self.std)
        return {"wall_energy": self.energy, "wall_interval": ends, "wall_source": self.source}

    @classmethod
    def summed(cls, parts: Sequence[WallEnergy]) -> WallEnergy:
        """Of several recordings; errors of the model are common and add up."""
        source = max((each.source for each in parts), key=list(SOURCES).index)
        return cls(sum(each.energy for each in parts), sum(each.std for each in parts), source)

    def words(self) -> str:
        """For people."""
        return f"{self.energy:.0f} ± {CONFIDENCE * self.std:.0f} J, {SOURCES[self.source]}"


SOURCES = {
    MEASURED: "measured",
    MODEL: "by the model of this cell's control box and supply",
    GENERIC: "not measured: control box and supply as in other cells",
}
"""Sources of an energy in words, the best first."""


class MeterReadings:
    """Compares a meter's readings with what the wall depends on, batch by batch.

    What it yields are Gram matrices of [terms, shift, reading], each pair's [pairs, 7, 7], weighted
    by time, the time between these readings [s] and their number. The shift is the change of the
    power's mean per second of further delay, W/s: the delays that are tried are 0.1 s apart, and a
    regression on blurred power would find too small a slope.

    `resolution`: smallest difference between consecutive readings so far [W].
    """

    def __init__(self) -> None:
        self.resolution = np.inf
        self._run = (np.nan, 0.0, np.inf, -np.inf)
        """Of equal readings: value [W], first time [s], least and most power meanwhile [W]."""
        self._held: list[tuple[Array, float]] = []
        """Rows and times of equal readings, until they are known not to be frozen."""
        self._restart()

    def _restart(self) -> None:
        """Begin anew after a step back of the clock."""
        self._time, self._sums = np.zeros(0), np.zeros((0, TERMS))
        self._terms = np.zeros((0, TERMS))  # of the last sample
        self._number, self._silences = np.nan, 0  # of readings, and of samples without any
        self._last = np.full((1, 2), np.nan)  # silences and time [s] at the last reading

    def add(
        self, time: Array, steps: Array, terms: Array, watts: Array, number: Array
    ) -> list[tuple[Array, float, int]]:
        """Compare the readings of samples that follow those of the last call.

        Args:
            time: [samples], s; a step back begins anew.
            steps: bridged steps to them [samples], s, 0 where what the wall depends on is unknown.
            terms: rates of what the wall depends on [samples, 5].
            watts: column of the meter's last reading [samples], W.
            number: column of the number of readings [samples].
        """
        if len(self._time) and time[0] < self._time[-1]:
            self._restart()
        rows = np.concatenate([self._terms if len(self._terms) else terms[:1], terms])
        gains = 0.5 * steps[:, None] * (rows[1:] + rows[:-1])
        before = self._sums[-1] if len(self._sums) else np.zeros(TERMS)
        sums, self._terms = before + np.cumsum(gains, axis=0), terms[-1:]
        self._time = np.concatenate([self._time, time])
        self._sums = np.concatenate([self._sums, sums])
        new = np.isfinite(watts) & (np.diff(number, prepend=self._number) > 0.0)
        silences = self._silences + np.cumsum(np.isnan(watts))
        marks = np.column_stack([silences, sums[:, :SUPPLY].sum(axis=1)])[new]
        silent, seconds = np.diff(np.concatenate([self._last, marks]), axis=0).T
        # Not the first one, nor one after a silence or a number that stayed.
        seconds = np.where((silent == 0.0) & (seconds < FROZEN_SECONDS), seconds, 0.0)
        self._number, self._silences = float(number[-1]), int(silences[-1])
        self._last = np.concatenate([self._last, marks])[-1:]
        counted, places = list[tuple[Array, float]](), np.flatnonzero(new)
        for start in range(0, len(places), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            counted += self._compared(time[places[part]], watts[places[part]], seconds[part])
        keep = int(np.searchsorted(self._time, self._time[-1] - _REACH))
        self._time, self._sums = self._time[keep:], self._sums[keep:]
        return _grams(counted)

    def finish(self) -> list[tuple[Array, float, int]]:
        """The last readings of a recording."""
        held, self._held = self._held, []
        return _grams(held)

    def _compared(self, time: Array, watts: Array, seconds: Array) -> list[tuple[Array, float]]:
        """Rows [pairs, 7] and times of the readings that are known not to be frozen by now."""
        at = time[:, None] - STEP * np.arange(_BEGINS.max() + 2)
        sums = np.stack([np.interp(at, self._time, each) for each in self._sums.T], axis=-1)
        spans = sums[:, _ENDS] - sums[:, _BEGINS]
        later, earlier = (
            sums[:, _ENDS + k, SUPPLY] - sums[:, _BEGINS + k, SUPPLY] for k in (1, -1)
        )
        covered = spans[..., :SUPPLY].sum(axis=-1, keepdims=True)
        usable = (covered[..., 0] >= _LEAST_COVERED * AVERAGING).all(axis=1) & (seconds > 0.0)
        shift = (later - earlier)[..., None] / (2.0 * STEP)
        means = np.concatenate([spans, shift], axis=2)[usable] / covered[usable]
        readings = np.broadcast_to(watts[usable, None, None], (*means.shape[:2], 1))
        rows, ready = np.concatenate([means, readings], axis=2), list[tuple[Array, float]]()
        each = zip(rows, seconds[usable].tolist(), time[usable].tolist(), strict=True)
        for row, passed, moment in each:
            watt, power = float(row[0, -1]), float(row[_STEADY, SUPPLY])
            value, begin, low, high = self._run
            if watt != value:
                ready += self._held
                self._held = []
                if np.isfinite(value):
                    self.resolution = min(self.resolution, abs(watt - value))
                value, begin, low, high = watt, moment, power, power
            self._run = value, begin, min(low, power), max(high, power)
            stays = moment - begin > FROZEN_SECONDS
            if stays and self._run[3] - self._run[2] > FROZEN_CHANGE:
                self._held = []
                continue
            self._held.append((row, passed))
            if stays:
                ready += self._held
                self._held = []
        return ready


def _grams(rows: list[tuple[Array, float]]) -> list[tuple[Array, float, int]]:
    out = []
    for start in range(0, len(rows), _TOGETHER):
        part = rows[start : start + _TOGETHER]
        seconds = np.array([passed for _, passed in part])
        each = np.stack([row for row, _ in part], axis=1)  # [pairs, readings, 7]
        gram = (each * seconds[:, None]).swapaxes(-1, -2) @ each
        out.append((gram, float(seconds.sum()), len(part)))
    return out


def box_terms(states: Indices, power: Array) -> Array:
    """Rates of what the wall depends on [samples, 5]: state of the box, power at the supply, W."""
    terms = BOX_TERMS[states]
    terms[:, SUPPLY], terms[:, SQUARE] = power, power * power
    return terms


def rounding(resolution: float) -> float:
    """Standard deviation of the rounding of readings [W]; 0 where none differed."""
    return resolution / float(np.sqrt(12.0)) if np.isfinite(resolution) else 0.0


def best_pair(gram: Array) -> tuple[int, float]:
    """The pair of delay and averaging time whose means explain the readings best.

    Of Gram matrices [pairs, 7, 7]; the first one where the power is constant. Also returns what it
    leaves of the readings' squares, W^2 s.
    """
    cross, squares = gram[:, :-1, -1], gram[:, -1, -1]
    unit = np.sqrt(np.maximum(np.diagonal(gram[0])[:-1], 1e-30))
    inverse = np.linalg.pinv(gram[:, :-1, :-1] / np.outer(unit, unit), 1e-9, hermitian=True)
    scaled = cross / unit
    left = squares - np.einsum("ci,cij,cj->c", scaled, inverse, scaled)
    best = int(np.argmax(left <= left.min() + _TIE * squares[0]))
    return best, max(float(left[best]), 0.0)


class RecordedWall:
    """Energy at the wall of a recording: the meter's readings where it has some, else the model.

    What the readings cover is the time of their means; all else (before the first one, in gaps, the
    delay at the end) is the model's.
    """

    def __init__(self, channels: Channels) -> None:
        self._channels, self._readings = channels, MeterReadings()
        self._gram, self._count = np.zeros((len(DELAY), TERMS + 2, TERMS + 2)), 0

    def add(self, table: PowerTable) -> None:
        """Add powers of samples that follow those before."""
        columns = table.samples.columns
        if all(name in columns for name in READING_FIELDS):
            terms = self._channels.wall_terms(table.power)
            meter = (columns[name] for name in READING_FIELDS)
            found = self._readings.add(table.samples.time, table.steps.bridged, terms, *meter)
            self._include(found)

    def _include(self, found: list[tuple[Array, float, int]]) -> None:
        for gram, _, count in found:
            self._gram += gram
            self._count += count

    def energy(self, net: Array) -> WallEnergy:
        """The energy, with the integrals of all channels [channels], J."""
        self._include(self._readings.finish())
        model, terms = self._channels.wall, self._channels.wall_terms(net)
        if not self._count:
            energy, deviation = map(float, self._channels.at_wall(net))
            return WallEnergy(energy, deviation, model.energy_source)
        # The states cover all of the time, so these rows sum to the integrals over the readings.
        best, left = best_pair(self._gram)
        sums = self._gram[best, :SUPPLY].sum(axis=0)
        metered, seconds = float(sums[-1]), float(sums[:SUPPLY].sum())
        rest = terms - sums[:TERMS]
        share = 1.0 - seconds / max(float(terms[:SUPPLY].sum()), seconds, 1e-9)
        std = model.deviation(rest, share * self._channels.deviations_of_total(net))
        rounded = rounding(self._readings.resolution) * seconds
        # Readings that come irregularly count for more or less time than theirs.
        irregular = np.sqrt(left * seconds / self._count)
        return WallEnergy(
            metered + float(model.value(rest)),
            float(np.sqrt(std**2 + rounded**2 + irregular**2)),
            MEASURED,
        )
