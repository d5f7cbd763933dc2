# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Levels of a quantity of one arm over days, at equal temperature, and the changes in them.

Minutes become levels of units of work (`levels`), which are the parts of a session in one
day. A change is a step or a ramp between sessions that is larger than the usual scatter
(`follow`). Quantities are friction and torque constant of each joint, whose levels are
logarithms, and the standby power of the arm.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ur_energy_model.identification.minute import LEVEL_SPREAD
from ur_energy_model.model.next_session import PRIOR_FREEDOM
from ur_energy_model.model.sessions import SESSION_GAP, STANDBY_SPREAD
from ur_energy_model.typing import Array, Indices


@dataclass(frozen=True)
class HealthQuantity:
    """A quantity of the joints or of the whole arm, with the scatter that is usual for its level.

    The scatters are standard deviations in the unit of the level; where levels are
    logarithms, they are relative.

    Attributes:
        name: name of the quantity, in words.
        relative: whether levels are logarithms, and changes are stated in percent.
        unit: unit of the quantity.
        least: smallest change that is stated, in the unit of the level.
        session: scatter between sessions.
        day: scatter between units of work of one session.
        common: scatter between sessions that all channels have in common.
        slope: scatter of the slope with temperature beyond the model [per kelvin].
        model: scatter between two models of the arm.
        work: scatter between programs of work, from which a change cannot be separated.
    """

    name: str
    relative: bool
    unit: str
    least: float
    session: float
    day: float
    common: float
    slope: float
    model: float
    work: float


FRICTION = HealthQuantity(
    "friction",
    relative=True,
    unit="N m",
    least=0.06,
    session=LEVEL_SPREAD.session,
    day=LEVEL_SPREAD.wander,
    common=LEVEL_SPREAD.common,
    slope=LEVEL_SPREAD.slope,
    model=0.05,
    work=0.015,
)
"""Friction torque of a joint at 0.5 rad/s, joint side.

The scatters are the ones that learning assumes. Two models of an arm state friction up to
5 % apart, and the friction of the simulated arm differs by 1.2 % between programs of work
(test/benchmarks/bench_learning.py).
"""
TORQUE_CONSTANT = HealthQuantity(
    "torque constant",
    relative=True,
    unit="N m/A",
    least=0.03,
    session=0.01,
    day=0.005,
    common=0.01,
    slope=0.0005,
    model=0.02,
    work=0.005,
)
"""Torque per ampere of a joint, motor side.

Magnets lose 0.1 % of their field per kelvin at most, and joints differ by less than that.
The error of payloads that were not set in the controller is common to the joints.
"""
STANDBY = HealthQuantity(
    "standby power",
    relative=False,
    unit="W",
    least=2.0,
    session=STANDBY_SPREAD,
    day=0.4,
    common=0.0,
    slope=0.05,
    model=0.5,
    work=0.2,
)
"""Power of the whole arm at standstill with released brakes."""

CERTAIN = 32.0
"""Twice the logarithm of the likelihood ratio from which a change is stated; measured
with test/benchmarks/bench_health.py."""
MOST_UNITS = 400
"""Number of units that are followed, the last of a store: time and memory are bounded."""
DAY = 86400.0  # s
_CORRELATED = 15.0
"""Consecutive minutes whose errors are equal (learning/changes.py: 900 s)."""
_FEWEST_MINUTES = 30
"""Minutes of a unit from which the warming up in this unit shows the effect of temperature."""
_MOST_CHANGES = 6  # most changes of one quantity of an arm
_FEWEST_JOINTS = 3  # joints from which their common change is estimated


@dataclass(frozen=True)
class MinuteLevels:
    """A quantity of c channels minute by minute, as logarithms where it is relative.

    Attributes:
        time: times of the minutes, ascending [minutes], s since 1970.
        value: values or logarithms [minutes, c]; NaN where nothing is measured.
        std: standard deviations of the values [minutes, c].
        temperature: temperatures of the channels [minutes, c], degC; NaN where unknown.
        model: numbers of the models that the values are stated with [minutes].
    """

    time: Array
    value: Array
    std: Array
    temperature: Array
    model: Indices


@dataclass(frozen=True)
class Levels:
    """A quantity of c channels by unit of work [u], the part of a session that is in one day.

    Attributes:
        time: mean time of each unit [u], s since 1970.
        session: number of its session [u].
        model: number of the model that its values are stated with [u].
        value: mean levels [u, c], NaN where nothing is measured.
        std: standard deviations of the levels [u, c], NaN where nothing is measured.
        temperature: mean temperatures [u, c], degC, NaN where they are unknown.
        slope: change of each channel with temperature as seen within units [c], per
            kelvin.
        slope_precision: inverse of the variance of the slopes [c], 0 where nothing is
            known.
    """

    time: Array
    session: Indices
    model: Indices
    value: Array
    std: Array
    temperature: Array
    slope: Array
    slope_precision: Array


@dataclass(frozen=True)
class ChannelChange:
    """A change of a level.

    Attributes:
        onset: index of the first unit of work after it.
        gradual: whether the level drifts from there on.
        size: change up to the last unit, in the level's unit.
        std: standard deviation of the size.
        ratio: twice the logarithm of the likelihood ratio against no change.
        course: the change at each unit [u].
        channel: number of the channel; None for a change that all joints have in common.
    """

    onset: int
    gradual: bool
    size: float
    std: float
    ratio: float
    course: Array
    channel: int | None = None


@dataclass(frozen=True)
class LevelCourse:
    """A quantity of c channels at equal temperature, by unit of work.

    Attributes:
        quantity: the quantity.
        time: mean times of the units [u], s since 1970.
        reference: temperature of the levels [c], degC.
        value: levels [u, c], NaN where they are unknown.
        std: standard deviations of the levels [u, c].
        changes: changes that are larger than their uncertainty, the likeliest first.
        now: level after the changes [c], mean over the scatter of sessions; NaN where it
            is unknown.
        now_std: standard deviation of the level now [c].
    """

    quantity: HealthQuantity
    time: Array
    reference: Array
    value: Array
    std: Array
    changes: tuple[ChannelChange, ...]
    now: Array
    now_std: Array


def follow(
    minutes: MinuteLevels, quantity: HealthQuantity, certain: float = CERTAIN
) -> LevelCourse:
    """Levels of a quantity of one arm over days, and the changes in them.

    Levels are brought to the median temperature of each channel. Changes are found one
    after the other: each is taken out of the levels before the next one is sought.

    Args:
        minutes: the quantity minute by minute, of at least one minute.
        quantity: the quantity, with the scatter of its levels.
        certain: likelihood ratio (twice its logarithm) from which a change is stated.
    """
    units = levels(minutes, quantity.day)
    channels = units.value.shape[1]
    warm = np.isfinite(units.temperature).any(axis=0)
    reference = np.full(channels, np.nan)
    reference[warm] = np.nanmedian(units.temperature[:, warm], axis=0)
    excess = np.nan_to_num(units.temperature - reference)
    # The effect of temperature: none is expected, with the deviation quantity.slope;
    # units in which the arm warms up show it.
    precision = units.slope_precision + quantity.slope**-2
    slope = units.slope * units.slope_precision / precision
    slope_std = precision**-0.5
    value = units.value - slope * excess
    search = _ChangeSearch(units, excess, slope_std, quantity)
    changes: list[ChannelChange] = []
    shift = np.zeros(value.shape)
    variance = np.square(search.mean_std)
    while True:
        unchanged = value - shift
        mean = search.means(unchanged)
        best = search.likeliest(unchanged - mean, certain)
        if best is None or len(changes) == _MOST_CHANGES:
            break
        changes.append(best)
        changed = list(range(channels)) if best.channel is None else [best.channel]
        shift[:, changed] += best.course[:, None]
        variance[changed] += best.std**2
    return LevelCourse(
        quantity=quantity,
        time=units.time,
        reference=reference,
        value=value,
        std=np.hypot(units.std, np.hypot(quantity.day, slope_std * excess)),
        changes=tuple(changes),
        now=mean + shift[-1],
        now_std=np.sqrt(variance),
    )


def levels(minutes: MinuteLevels, wander: float) -> Levels:
    """Levels of the last MOST_UNITS units of work: weighted means of their minutes.

    A session ends with a pause of SESSION_GAP; a unit also ends with a UTC day, and where
    another model is used.

    Args:
        minutes: the quantity minute by minute, of at least one minute.
        wander: scatter of the minutes of a unit besides their standard deviations.
    """
    session = np.cumsum(np.diff(minutes.time, prepend=minutes.time[0]) > SESSION_GAP)
    keys = np.stack([session, np.floor(minutes.time / DAY), minutes.model])
    begins = (np.diff(keys, axis=1) != 0).any(axis=0)
    unit = np.append(0, np.cumsum(begins))
    recent = unit > unit[-1] - MOST_UNITS
    unit = unit[recent] - unit[recent][0]
    units = int(unit[-1]) + 1
    first = np.searchsorted(unit, np.arange(units))
    value = minutes.value[recent]
    temperature = minutes.temperature[recent]
    known = np.isfinite(value) & np.isfinite(minutes.std[recent])
    weight = np.where(known, 1.0 / (np.square(minutes.std[recent]) + wander**2), 0.0)
    warm_weight = np.where(np.isfinite(temperature), weight, 0.0)

    def sums(values: Array) -> Array:
        """Sums of values [minutes, c] over the minutes of each unit [u, c]."""
        return np.stack([np.bincount(unit, column, units) for column in values.T], axis=1)

    information = sums(weight)
    count = sums(known.astype(float))
    with np.errstate(invalid="ignore", divide="ignore"):
        level = sums(np.where(weight > 0, weight * value, 0.0)) / information
        heat = sums(np.where(warm_weight > 0, warm_weight * temperature, 0.0))
        warmth = heat / sums(warm_weight)
        correlated = np.maximum(1.0, np.minimum(count, _CORRELATED))
        std = np.where(count > 0, np.sqrt(correlated / information), np.nan)
    # Regression of the value on temperature within units; errors of consecutive minutes
    # are correlated.
    used = warm_weight * (count >= _FEWEST_MINUTES)[unit]
    excess = np.where(used > 0, temperature - warmth[unit], 0.0)
    rest = np.where(used > 0, value - level[unit], 0.0)
    square = (used * excess**2).sum(axis=0)
    product = (used * excess * rest).sum(axis=0)
    minutes_of_unit = np.bincount(unit, minlength=units)
    return Levels(
        time=np.bincount(unit, minutes.time[recent], units) / minutes_of_unit,
        session=session[recent][first],
        model=minutes.model[recent][first],
        value=level,
        std=std,
        temperature=warmth,
        slope=np.where(square > 0, product / np.where(square > 0, square, 1.0), 0.0),
        slope_precision=square / _CORRELATED,
    )


# Search for changes between sessions, in each channel and in what the channels have in
# common.


class _ChangeSearch:
    """Tests of all channels of a quantity, and of what its joints have in common.

    The scatter of a session has a part of each channel and a common one. Before a channel
    is tested, what the other channels show of the common part is subtracted. Where joints
    have a common part, as joints of one lubricant share its temperature, the mean of all
    joints is tested as well.

    Args:
        units: levels by unit of work [u, c].
        excess: temperature above the reference [u, c], K, 0 where it is unknown.
        slope_std: standard deviations of the effect of temperature [c], per kelvin.
        quantity: what the levels are of, with its scatter.

    Attributes:
        mean_std: standard deviations of the mean levels [c].
    """

    def __init__(
        self, units: Levels, excess: Array, slope_std: Array, quantity: HealthQuantity
    ) -> None:
        self._least = quantity.least
        self._known = np.isfinite(units.std)
        own = quantity.session**2 + quantity.day**2
        common = quantity.common**2
        self._own = own
        self._common = common
        joints = len(slope_std)
        others = joints - 1 if joints >= _FEWEST_JOINTS else 0
        # Variance of the common part that the other channels leave open.
        left = common / (1.0 + others * common / own)
        alone = float(np.hypot(quantity.session, np.sqrt(left)))
        scatter = replace(quantity, session=alone)
        columns = zip(units.std.T, excess.T, slope_std, strict=True)
        self._tests = [_ChangeTest(units, *column, scatter) for column in columns]
        self.mean_std = np.array([test.mean_std for test in self._tests])
        self._together = None
        if others and common:
            spread = float(np.hypot(quantity.common, quantity.session / np.sqrt(joints)))
            enough = self._known.sum(axis=1) >= _FEWEST_JOINTS
            std = np.where(enough, quantity.day / np.sqrt(joints), np.nan)
            scatter = replace(quantity, session=spread)
            mean_excess = excess.mean(axis=1)
            self._together = _ChangeTest(
                units, std, mean_excess, slope_std.mean(), scatter
            )

    def means(self, value: Array) -> Array:
        """Mean levels [c] of values [u, c]; NaN where none is known."""
        pairs = zip(self._tests, value.T, strict=True)
        return np.array([test.mean(level) for test, level in pairs])

    def likeliest(self, rest: Array, certain: float) -> ChannelChange | None:
        """The likeliest change that is large enough to be stated.

        Args:
            rest: levels less their means [u, c].
            certain: likelihood ratio (twice its logarithm) that it needs.

        Returns:
            The change; None if there is none.
        """
        found = []
        for channel, test in enumerate(self._tests):
            shown = self._common_part(rest, without=channel)
            found.append(test.find(rest[:, channel] - shown, channel))
        if self._together is not None:
            total = np.where(self._known, rest, 0.0).sum(axis=1)
            count = np.maximum(self._known.sum(axis=1), 1)
            found.append(self._together.find(total / count))
        best = None
        for change in found:
            if change is None or change.ratio < certain or abs(change.size) < self._least:
                continue
            if best is None or change.ratio > best.ratio:
                best = change
        return best

    def _common_part(self, rest: Array, without: int) -> Array:
        """What all channels but one show of the common scatter of each session [u].

        It is the mean of a normal distribution: the other channels scatter around the
        common part by their own scatter.
        """
        if self._together is None:
            return np.zeros(len(rest))
        seen = self._known & (np.arange(rest.shape[1]) != without)
        count = np.maximum(seen.sum(axis=1), 1)
        gain = self._common / (self._common * count + self._own)
        return np.asarray(gain * np.where(seen, rest, 0.0).sum(axis=1))


# Test for a change of a level between sessions: steps and ramps by generalised least
# squares. The level of a unit of work is level = usual + slope (temperature - reference)
# + session + day + measurement error + change, with random sessions and days. For every
# possible onset the sizes of a step and of ramps are estimated at once, and the likeliest
# one is returned (Willsky and Jones 1976, with a block-diagonal covariance instead of a
# filter). The scale of the scatter is estimated with the size, from a scaled inverse
# chi-squared prior, so that an arm that scatters more needs a larger change.

_UNITS_BEFORE = 4  # units needed before an onset
_UNITS_AFTER = 2  # units needed after an onset
_RAMPS = (20.0, 60.0, np.inf)
"""Days that a gradual change takes, at most up to the last unit."""
_SCALE_LEAST = 0.25  # least variance of the scatter over the expected variance
_NO_INFORMATION = 1e-12  # information about the size of a change that is rounding


class _ChangeTest:
    """Finds the likeliest change of one channel.

    Args:
        levels: all channels by unit of work, for sessions, models and times of the units.
        std: standard deviations of the channel's levels [u]; NaN where it is not
            measured.
        excess: temperature above the reference [u], K, 0 where it is unknown.
        slope_std: standard deviation of the effect of temperature, per kelvin.
        scatter: quantity with the scatter of sessions, days and models, in the unit of
            the level.

    Attributes:
        mean_std: standard deviation of `mean`, sessions included.
    """

    def __init__(
        self,
        levels: Levels,
        std: Array,
        excess: Array,
        slope_std: float,
        scatter: HealthQuantity,
    ) -> None:
        self._work = scatter.work
        self._units = len(std)
        rows = np.flatnonzero(np.isfinite(std))
        self._rows = rows
        session = levels.session[rows]
        model = levels.model[rows]
        covariance = scatter.session**2 * (session[:, None] == session)
        covariance = covariance + np.diag(scatter.day**2 + np.square(std[rows]))
        covariance += slope_std**2 * np.outer(excess[rows], excess[rows])
        if (model != model[:1]).any():
            covariance += scatter.model**2 * (model[:, None] == model)
        precision = np.linalg.inv(covariance)
        ones = precision.sum(axis=1)
        total = float(ones.sum()) if len(rows) else 1.0
        self._weights = ones / total
        self.mean_std = total**-0.5 if len(rows) else np.inf
        # Precision of the levels less their mean, which is estimated from them.
        self._projected = precision - np.outer(ones, ones) / total
        onsets = np.arange(_UNITS_BEFORE, len(rows) - _UNITS_AFTER + 1)
        shapes = _shapes(levels.time[rows], onsets)
        self._onsets = np.tile(onsets, len(shapes))
        self._gradual = np.arange(len(self._onsets)) >= len(onsets)
        self._shapes = np.concatenate(shapes, axis=1)
        self._filtered = self._projected @ self._shapes
        self._information = np.einsum("us,us->s", self._shapes, self._filtered)

    def mean(self, level: Array) -> float:
        """Weighted mean of a level [u] over the units in which it is known; else NaN."""
        if not len(self._rows):
            return float("nan")
        return float(self._weights @ level[self._rows])

    def find(self, level: Array, channel: int | None = None) -> ChannelChange | None:
        """The likeliest change of a level.

        Onset and shape are not known either: its size is the mean over all onsets and
        shapes, weighted by their likelihoods.

        Args:
            level: level less its mean [u].
            channel: number that the change gets; None for the mean of all channels.

        Returns:
            The change; None with too few units.
        """
        if not len(self._onsets):
            return None
        own = level[self._rows]
        usable = self._information > _NO_INFORMATION
        information = np.where(usable, self._information, 1.0)
        sizes = np.where(usable, self._filtered.T @ own / information, 0.0)
        explained = sizes**2 * information
        freedom = len(own) - 2.0 + PRIOR_FREEDOM
        left = PRIOR_FREEDOM + float(own @ self._projected @ own) - explained
        variance = np.maximum(left / freedom, _SCALE_LEAST)
        ratio = (freedom + 1.0) * np.log1p(explained / (freedom * variance))
        best = int(np.argmax(ratio))
        course = np.zeros(self._units)
        course[self._rows] = sizes[best] * self._shapes[:, best]
        weight = np.where(usable, np.exp(0.5 * (ratio - ratio[best])), 0.0)
        weight /= weight.sum()
        size = float(weight @ sizes)
        spread = variance / information + np.square(sizes - size)
        return ChannelChange(
            onset=int(self._rows[self._onsets[best]]),
            gradual=bool(self._gradual[best]),
            size=size,
            std=float(np.hypot(np.sqrt(weight @ spread), self._work)),
            ratio=float(ratio[best]),
            course=course,
            channel=channel,
        )


def _shapes(time: Array, onsets: Indices) -> list[Array]:
    """Courses of changes of size one: a step, then ramps of each length of _RAMPS.

    Args:
        time: time of the units [u], s since 1970.
        onsets: numbers of the first units after a change [onsets].

    Returns:
        Matrices [u, onsets], 0 before the change and 1 when it is complete; the step
        alone without any onset.
    """
    step = (np.arange(len(time))[:, None] >= onsets).astype(float)
    shapes = [step]
    for days in _RAMPS if len(onsets) else ():
        begin = time[onsets - 1]
        span = np.maximum(np.minimum(days * DAY, time[-1] - begin), 1.0)
        shapes.append(np.clip((time[:, None] - begin) / span, 0.0, 1.0))
    return shapes
