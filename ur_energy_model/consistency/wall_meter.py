# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Power meters at the mains whose readings contradict the power of the robot's bus.

Whatever a control box takes, the power at the mains is above the power at the bus, is never
negative, changes with it, and is the bus power over the supply's efficiency plus some
tens of watts (`generic_wall`). A meter that contradicts this has a reversed or wrong
clamp, another unit or ratio, one phase of three, or belongs to another machine. Delay and
averaging time of meters are not known: a contradiction has to hold for every pair of them
that is plausible (`meter_readings`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ur_energy_model.consistency.contradiction import Contradiction
from ur_energy_model.consistency.meter_readings import (
    FINE,
    READING,
    SLOW,
    AveragingGrid,
    Compared,
    MeterReadings,
)
from ur_energy_model.model.wall import SUPPLY, TERMS, WallModel
from ur_energy_model.telemetry.samples import equal_runs
from ur_energy_model.typing import Array

QUICK_SECONDS = 5.0
"""Longest time between readings of a meter that averages over at most 10 s, as in FINE [s]."""
LEAST_SECONDS = 5.0
FEWEST_READINGS = 3
"""Least time [s] and number of readings for a verdict: with one reading a second, 15 s of a
recording, because the first readings may average over the time before it."""
LEAST_NEGATIVE = 5.0
"""Size of a negative power that the noise of a large clamp without load does not reach [W]."""
SURE = 4.0
"""Number of standard deviations from usual cells beyond which no cell's power at the wall is."""
CALIBRATION = 0.05
"""Relative standard deviation by the calibrations of meter, bus voltage and bus current
together."""
MOSTLY_FROZEN = 0.5
"""If a meter is frozen for more than this share of the time, none of its readings is used."""
BLOCK_SECONDS = 5.0
"""Time over which the power is averaged for its range in a recording [s]."""
FOLLOWING_SECONDS = 60.0
"""Least time of readings for a verdict whether they follow the bus power [s]."""
INDEPENDENT_SECONDS = 10.0
"""Time after which the error of a reading is independent, since other machines have cycles, too
[s]."""
READING_ERROR = 1.0
"""Error of any reading [W], which keeps the slope of readings without scatter
uncertain."""
LEAST_SLOPE = 0.5
"""Change of the reading per change of the bus power that is too small for any supply
[W/W]."""
REVERSED_REMEDY = "turn its clamp round, or swap the wires of its direction of current"
FACTORS: tuple[tuple[float, str], ...] = (
    (-1.0, REVERSED_REMEDY),
    (1e3, "state its unit: end the path of the meter's URL with @kW"),
    (1e-3, "state its unit: end the path of the meter's URL with @mW"),
    (
        3.0,
        "it seems to measure one phase of three: add all of them up (end the path with .*)",
    ),
    (1.0 / 3.0, "it seems to count three phases: meter the control box alone"),
    (10.0, "set the ratio of its current transformer, which seems to be off by 10"),
    (0.1, "set the ratio of its current transformer, which seems to be off by 10"),
)
"""Factors by which meters are wrong, and what to do."""
UNKNOWN_REMEDY = "meter the mains of this robot's control box, and of nothing else"


class Expectation(NamedTuple):
    """Power of usual cells, by pair of delay and averaging time, or by other cases [n], W.

    Attributes:
        bus: power at the robot's bus, as measured.
        wall: power at the mains.
        std: standard deviation of `wall` between cells, calibration included.
    """

    bus: Array
    wall: Array
    std: Array


class MeterMeans(NamedTuple):
    """Means over the readings of a meter.

    Attributes:
        seconds: time of the readings [s].
        reading: reading of the meter [W].
        expected: mean power at the wall by the generic model [W].
    """

    seconds: float
    reading: float
    expected: Expectation


class MeterSlope(NamedTuple):
    """Change of the reading per change of the bus power, by pair [pairs], W/W.

    Attributes:
        seconds: time of the readings [s].
        slope: slope of the readings over the expected power.
        std: standard deviation.
    """

    seconds: float
    slope: Array
    std: Array


class _Collected:
    """Readings by pair of delay and averaging time."""

    def __init__(self, windows: AveragingGrid) -> None:
        self.readings = MeterReadings(windows)
        self._gram = np.zeros((len(windows.delay), TERMS + 2, TERMS + 2))

    def include(self, found: list[Compared]) -> None:
        """Add readings that were compared."""
        for each in found:
            self._gram += each.gram

    @property
    def gram(self) -> Array:
        """Gram matrices of all readings, of those too that may yet be frozen [pairs, 7, 7]."""
        return self._gram + self.readings.waiting()


class MeterVerdict(NamedTuple):
    """What the readings of a meter show about it.

    Attributes:
        usable: whether readings, other than readings of a frozen meter, can belong to this
            robot.
        contradictions: what contradicts that it is the meter of this arm.
    """

    usable: bool
    contradictions: tuple[Contradiction, ...]


class WallMeterCheck:
    """Compares the readings of a meter with the bus power of the robot, batch by batch."""

    def __init__(self) -> None:
        self._fine = _Collected(FINE)
        self._slow = _Collected(SLOW)
        self._number = np.nan
        self._first = np.nan
        self._last = np.nan
        # Number of readings, and their sum [W].
        self._new = 0
        self._sum = 0.0
        self._block = np.nan  # number of the block of samples in progress
        self._block_sums = np.zeros(TERMS)
        # Terms of the blocks with the least and the most power at the bus [5].
        self._least = np.full(TERMS, np.inf)
        self._most = np.full(TERMS, -np.inf)

    @property
    def resolution(self) -> float:
        """Smallest difference between consecutive readings so far [W]."""
        return self._fine.readings.resolution

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
            Readings that were compared on the grid FINE.
        """
        new = np.isfinite(watts) & (np.diff(number, prepend=self._number) > 0.0)
        self._number = float(number[-1])
        if new.any():
            times = time[new]
            if np.isnan(self._first):
                self._first = float(times[0])
            self._last = float(times[-1])
            self._new += int(np.count_nonzero(new))
            self._sum += float(watts[new].sum())
        self._note_range(time, steps, terms)
        found = self._fine.readings.add(time, steps, terms, watts, number)
        self._fine.include(found)
        self._slow.include(self._slow.readings.add(time, steps, terms, watts, number))
        return found

    def finish(self) -> list[Compared]:
        """End a recording; returns the last readings that FINE compared."""
        found = self._fine.readings.finish()
        self._fine.include(found)
        self._slow.include(self._slow.readings.finish())
        return found

    def _note_range(self, time: Array, steps: Array, terms: Array) -> None:
        """Note the least and the most power, as means over blocks of BLOCK_SECONDS."""
        blocks = np.floor(time / BLOCK_SECONDS)
        for part in equal_runs(blocks):
            if blocks[part.start] != self._block:
                seconds = float(self._block_sums[:SUPPLY].sum())
                if seconds > 0.5 * BLOCK_SECONDS:
                    mean = self._block_sums / seconds
                    self._least = min(self._least, mean, key=_supply_of)
                    self._most = max(self._most, mean, key=_supply_of)
                self._block = float(blocks[part.start])
                self._block_sums = np.zeros(TERMS)
            self._block_sums += steps[part] @ terms[part]

    @property
    def period(self) -> float:
        """Mean time between readings [s]; NaN before the second one."""
        if self._new < 2:
            return float("nan")
        return (self._last - self._first) / (self._new - 1)

    def verdict(self, usual: WallModel, meter: str) -> MeterVerdict:
        """What the readings so far show; of several contradictions the first one.

        Args:
            usual: wall model of any cell with a controller of this generation.
            meter: name of the meter for messages.
        """
        stated = f"{meter} measures this robot at the mains"
        found = self._found(usual)
        if found is not None:
            return MeterVerdict(False, (Contradiction("wall_meter", stated, *found),))
        frozen = self._of_period().readings.frozen
        if not frozen.seconds:
            return MeterVerdict(True, ())
        shown = f"it repeated {_watts(frozen.value)} for {frozen.seconds:.0f} s"
        evidence = f"meanwhile the mean bus power changed by {_watts(frozen.change)}"
        remedy = "check the meter; this time counts without it"
        contradiction = Contradiction("wall_meter", stated, shown, evidence, remedy)
        mostly = frozen.total > MOSTLY_FROZEN * (self._last - self._first)
        return MeterVerdict(not mostly, (contradiction,))

    def _found(self, usual: WallModel) -> tuple[str, str, str] | None:
        """The contradiction of the readings, its evidence and its remedy; None without one."""
        if self._new < FEWEST_READINGS:
            return None
        mean = self._sum / self._new
        if mean < -LEAST_NEGATIVE:
            return (
                f"it shows {_watts(mean)}",
                f"mean of {self._new} readings",
                REVERSED_REMEDY,
            )
        quick = self.period <= QUICK_SECONDS
        views = [self._fine] if quick else [self._slow]
        if quick and not self._fine.readings.is_quick:
            # The meter may average over a minute although it has a reading every second.
            views.append(self._slow)
        grams = [view.gram for view in views]
        # The sums over all readings, then over the readings in each state of the box: a
        # meter that is wrong while the arm runs may appear right in a mean that includes
        # the time before the arm was on.
        for state in (slice(None), *range(SUPPLY)):
            means = [_means(gram[:, :SUPPLY][:, state], usual) for gram in grams]
            if means[0].seconds < LEAST_SECONDS:
                continue
            if means[-1].seconds < LEAST_SECONDS:  # too early for a slow meter
                means[-1] = self._possible(means[0], usual)
            found = _of_means(means)
            if found is not None:
                return found
        slopes = [_slope(each.gram, self.period) for each in (self._fine, self._slow)]
        if not quick:
            slopes = slopes[1:]
        return _of_slopes(slopes)

    def _possible(self, means: MeterMeans, usual: WallModel) -> MeterMeans:
        """The same readings for every mean power that the recording had so far."""
        if not np.isfinite([self._least, self._most]).all():
            return means
        terms = np.stack([self._least, self._most])
        return means._replace(expected=_expectation(terms, usual))

    def _of_period(self) -> _Collected:
        """The readings, compared as suits the time between them."""
        return self._fine if self.period <= QUICK_SECONDS else self._slow


def _means(sums: Array, usual: WallModel) -> MeterMeans:
    """Means over readings from sums of terms, shift and reading [pairs, states, 7] or [pairs, 7].

    The states cover all of the time.
    """
    sums = sums.reshape(len(sums), -1, TERMS + 2).sum(axis=1)
    seconds = float(sums[0, :SUPPLY].sum())
    reading = float(sums[0, READING]) / max(seconds, 1e-30)
    terms = sums[:, :TERMS] / max(seconds, 1e-30)
    return MeterMeans(seconds, reading, _expectation(terms, usual))


def _expectation(terms: Array, usual: WallModel) -> Expectation:
    """Power of usual cells from means of the terms [n, 5]."""
    wall = usual.value(terms)
    std = np.hypot(usual.deviation(terms, 0.0), CALIBRATION * wall)
    return Expectation(terms[:, SUPPLY], wall, std)


def _supply_of(terms: Array) -> float:
    """Power at the bus [W] of means of the terms [5]."""
    return float(terms[SUPPLY])


def _slope(gram: Array, period: float) -> MeterSlope:
    """Change of the readings with the bus power, from Gram matrices [pairs, 7, 7]."""
    sums = gram[:, :SUPPLY].sum(axis=1)
    seconds = float(sums[0, :SUPPLY].sum())
    mean = sums / max(seconds, 1e-30)
    squares = gram / max(seconds, 1e-30) - mean[:, :, None] * mean[:, None]
    variance = np.maximum(squares[:, SUPPLY, SUPPLY], 0.0)
    safe = np.where(variance > 0.0, variance, np.inf)
    slope = squares[:, SUPPLY, READING] / safe
    explained = slope * squares[:, SUPPLY, READING]
    unexplained = np.maximum(squares[:, READING, READING] - explained, 0.0)
    independent = max(seconds / max(INDEPENDENT_SECONDS, period), 1.0)
    std = np.sqrt((unexplained + READING_ERROR**2) / independent / safe)
    return MeterSlope(seconds, slope, np.where(variance > 0.0, std, np.inf))


def _of_means(means: Sequence[MeterMeans]) -> tuple[str, str, str] | None:
    """The contradiction of the mean power, its evidence and its remedy; None without one.

    Args:
        means: mean powers by the views of the readings; the contradiction must hold in
            each view, for every pair of delay and averaging time.
    """
    first = means[0]
    reading = first.reading
    taken = float(first.expected.bus.min())
    bus = np.concatenate([view.expected.bus for view in means])
    wall = np.concatenate([view.expected.wall for view in means])
    std = np.concatenate([view.expected.std for view in means])
    least = wall - SURE * std
    most = wall + SURE * std
    if reading < bus.min():
        shown = f"it shows {_watts(reading)}, less than the robot's bus takes"
    elif (reading < least).all() or (reading > most).all():
        lowest = max(float(least.min()), taken)
        shown = (
            f"it shows {_watts(reading)}, where cells take {_watts(lowest)} to "
            f"{_watts(float(most.max()))} with this bus power"
        )
    else:
        return None
    evidence = (
        f"mean of {first.seconds:.0f} s, while the robot's bus took {_watts(taken)}"
    )
    return shown, evidence, _remedy(first)


def _of_slopes(slopes: Sequence[MeterSlope]) -> tuple[str, str, str] | None:
    """The contradiction of changes of the power, its evidence and its remedy; None without one.

    Args:
        slopes: slopes of the readings, taken as readings of a quick and of a slow meter;
            in neither case may they follow the bus power.
    """
    for each in slopes:
        follows = each.slope + SURE * each.std >= LEAST_SLOPE
        if each.seconds < FOLLOWING_SECONDS or follows.any():
            return None
    quick = slopes[0]
    shown = "its readings do not follow the robot's bus power"
    evidence = (
        f"{quick.slope.max():.2f} ± {SURE * quick.std.min():.2f} W per W, where every supply has "
        "more than 1"
    )
    return shown, evidence, UNKNOWN_REMEDY


def _remedy(means: MeterMeans) -> str:
    """What to do about a meter that is wrong by a factor, or by anything else."""
    for factor, remedy in FACTORS:
        off = np.abs(factor * means.reading - means.expected.wall) / means.expected.std
        if off.min() < 2.0:
            return remedy
    return UNKNOWN_REMEDY


def _watts(power: float) -> str:
    """A power for messages."""
    return f"{power:.0f} W" if abs(power) >= 10.0 else f"{power:.2g} W"
