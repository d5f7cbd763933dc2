"""Health of one arm: levels at equal temperature by unit of work, and the changes of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ur_energy_model.identification.assembly import PRIOR_FREEDOM
from ur_energy_model.learning.changes import NOISE
from ur_energy_model.model.sessions import SESSION_GAP, STANDBY_SPREAD
from ur_energy_model.typing import Array, Indices

# Levels of slow quantities by unit of work: the part of a session that is in one day.

MOST_UNITS = 400
"""Units that are followed, the last ones: bounded time and memory for a store of any length."""
_DAY = 86400.0
_CORRELATED = 15.0
"""Consecutive minutes with errors in common (learning/changes.py: 900 s)."""
_FEWEST = 30
"""Minutes of a unit from which its own warming up shows the effect of temperature."""


@dataclass(frozen=True)
class MinuteLevels:
    """A quantity of c channels minute by minute.

    Attributes:
        time: ascending [minutes], s since 1970.
        value: [minutes, c]; NaN where not measured.
        std: [minutes, c].
        temperature: of the channels [minutes, c], degC; NaN where unknown.
        model: number of the model that the values are stated with [minutes].
    """

    time: Array
    value: Array
    std: Array
    temperature: Array
    model: Indices


@dataclass(frozen=True)
class Levels:
    """The same by unit.

    Attributes:
        time: mean time of each unit [u], s since 1970.
        session: number of each unit's session [u].
        model: number of the model [u].
        value: [u, c]; NaN where not measured.
        std: of the measurement [u, c].
        temperature: [u, c], degC; NaN where unknown.
        slope: change of each channel with temperature, as seen within units [c], per kelvin.
        slope_precision: inverse of its variance [c]; 0 where nothing is known.
    """

    time: Array
    session: Indices
    model: Indices
    value: Array
    std: Array
    temperature: Array
    slope: Array
    slope_precision: Array


def levels(minutes: MinuteLevels, wander: float) -> Levels:
    """Levels of the last MOST_UNITS units.

    Args:
        minutes: one or more.
        wander: standard deviation of a minute's value within a unit, besides its own.
    """
    session = np.cumsum(np.diff(minutes.time, prepend=minutes.time[0]) > SESSION_GAP)
    keys = np.stack([session, np.floor(minutes.time / _DAY), minutes.model])
    changed = (np.diff(keys, axis=1) != 0).any(axis=0)
    unit = np.concatenate([[0], np.cumsum(changed)])
    recent = unit > unit[-1] - MOST_UNITS
    unit = unit[recent] - unit[recent][0]
    count = int(unit[-1]) + 1
    first = np.searchsorted(unit, np.arange(count))
    value, temperature = minutes.value[recent], minutes.temperature[recent]
    known = np.isfinite(value) & np.isfinite(minutes.std[recent])
    weight = np.where(known, 1.0 / (np.square(minutes.std[recent]) + wander**2), 0.0)
    weight[~known] = 0.0

    def mean(values: Array, weights: Array) -> Array:
        total = _sums(weights, unit, count)
        with np.errstate(invalid="ignore", divide="ignore"):
            return _sums(np.where(weights > 0, weights * values, 0.0), unit, count) / total

    warm = np.where(np.isfinite(temperature), weight, 0.0)
    out, warmth = mean(value, weight), mean(temperature, warm)
    information = _sums(weight, unit, count)
    many = _sums(known.astype(float), unit, count)
    fewer = np.maximum(1.0, np.minimum(many, _CORRELATED))
    with np.errstate(divide="ignore"):
        std = np.where(many > 0, np.sqrt(fewer / information), np.nan)
    # Within units: regression of the value on temperature, errors correlated over minutes.
    used = warm * (many >= _FEWEST)[unit]
    excess = np.where(used > 0, temperature - warmth[unit], 0.0)
    rest = np.where(used > 0, value - out[unit], 0.0)
    square = (used * excess**2).sum(axis=0)
    product = (used * excess * rest).sum(axis=0)
    slope = np.where(square > 0, product / np.where(square > 0, square, 1.0), 0.0)
    return Levels(
        time=np.bincount(unit, minutes.time[recent], count) / np.bincount(unit, minlength=count),
        session=session[recent][first],
        model=minutes.model[recent][first],
        value=out,
        std=std,
        temperature=warmth,
        slope=slope,
        slope_precision=square / _CORRELATED,
    )


def _sums(values: Array, unit: Indices, count: int) -> Array:
    """Sums [units, c] of values [minutes, c]."""
    return np.stack([np.bincount(unit, column, count) for column in values.T], axis=1)


# Test for a change of a level between sessions: steps and ramps by generalised least squares.
#
# The level of a unit of work is
#
# level = usual + slope (temperature - reference) + session + day + measurement error + change
#
# with random sessions and days. For every possible onset the sizes of a step and of ramps are
# estimated at once, and the likeliest one is returned (Willsky and Jones 1976, with a block-
# diagonal covariance instead of a filter). The scale of the scatter is estimated with the size,
# from a scaled inverse chi-squared prior, so that an arm that scatters more needs a larger change.

_BEFORE, _AFTER = 4, 2
"""Units needed before and after an onset."""
_RAMPS = (20.0, 60.0, np.inf)
"""Days that a gradual change takes, at most up to the last unit."""
_SCALE_LEAST = 0.25
"""Least variance of the scatter over the expected one."""


@dataclass(frozen=True)
class Scatter:
    """Expected scatter of a level, standard deviations in its unit.

    Attributes:
        session: between sessions.
        day: between units of one session.
        common: between sessions, in common with the other channels.
        slope: with temperature, per kelvin, beyond the model.
        model: between two models of the arm.
        work: between programs of work, which a change cannot be told from.
    """

    session: float
    day: float
    common: float
    slope: float
    model: float
    work: float


@dataclass(frozen=True)
class FoundChange:
    """The likeliest change of one channel.

    Attributes:
        onset: index of the first unit after it.
        gradual: whether the level changed gradually from then on.
        size: change up to the last unit, in the level's unit.
        std: its standard deviation.
        ratio: twice the logarithm of the likelihood ratio against no change.
        course: change at each unit [u].
    """

    onset: int
    gradual: bool
    size: float
    std: float
    ratio: float
    course: Array


class ChangeTest:
    """Finds the likeliest change of one channel.

    Args:
        levels: whose units are used.
        std: of the channel's measurement [u]; NaN where it was not measured.
        excess: temperature above the reference [u], K; 0 where unknown.
        slope_std: standard deviation of the effect of temperature, per kelvin.
        scatter: expected.

    Attributes:
        mean_std: standard deviation of `mean`, the scatter of sessions included.
    """

    def __init__(
        self, levels: Levels, std: Array, excess: Array, slope_std: float, scatter: Scatter
    ) -> None:
        self._rows = np.flatnonzero(np.isfinite(std))
        rows = self._rows
        session, model, warmth = levels.session[rows], levels.model[rows], excess[rows]
        self._work = scatter.work
        same = session[:, None] == session[None, :]
        covariance = scatter.session**2 * same
        covariance = covariance + np.diag(scatter.day**2 + np.square(std[rows]))
        covariance += slope_std**2 * np.outer(warmth, warmth)
        if len(rows) and (model != model[0]).any():
            covariance += scatter.model**2 * (model[:, None] == model[None, :])
        precision = np.linalg.inv(covariance) if len(rows) else np.zeros((0, 0))
        ones = precision.sum(axis=1)
        total = ones.sum()
        self._weights = ones / total if len(rows) else ones
        self.mean_std = float(total**-0.5) if len(rows) else float("inf")
        self._projected = precision - np.outer(ones, ones) / total if len(rows) else precision
        onsets = np.arange(_BEFORE, len(rows) - _AFTER + 1)
        after = np.arange(len(rows))[:, None] >= onsets
        own = levels.time[rows]
        shapes = [after.astype(float)]
        for days in _RAMPS if len(onsets) else ():
            begin = own[onsets - 1]
            span = np.maximum(np.minimum(days * 86400.0, own[-1] - begin), 1.0)
            shapes.append(np.clip((own[:, None] - begin) / span, 0.0, 1.0))
        self._onsets = np.tile(onsets, len(shapes))
        self._gradual = np.arange(len(self._onsets)) >= len(onsets)
        self._shapes = np.concatenate(shapes, axis=1)
        self._filtered = self._projected @ self._shapes
        self._information = np.einsum("us,us->s", self._shapes, self._filtered)
        self._units = len(levels.time)

    def mean(self, level: Array) -> float:
        """Weighted mean of a level [u] over the units in which it is known."""
        return float(self._weights @ level[self._rows]) if len(self._rows) else float("nan")

    def find(self, level: Array) -> FoundChange | None:
        """The likeliest change of a level [u]; None with too few units."""
        if not len(self._onsets):
            return None
        own = level[self._rows]
        product = self._filtered.T @ own
        usable = self._information > 1e-12
        explained = np.where(usable, product**2 / np.where(usable, self._information, 1.0), 0.0)
        freedom = len(own) - 2.0 + PRIOR_FREEDOM
        left = PRIOR_FREEDOM + float(own @ self._projected @ own) - explained
        variance = np.maximum(left / freedom, _SCALE_LEAST)
        ratio = (freedom + 1.0) * np.log1p(explained / (freedom * variance))
        best = int(np.argmax(ratio))
        sizes = np.where(usable, product / np.where(usable, self._information, 1.0), 0.0)
        course = np.zeros(self._units)
        course[self._rows] = sizes[best] * self._shapes[:, best]
        # Onset and shape are not known either: mean over all of them, by their likelihood.
        weight = np.where(usable, np.exp(0.5 * (ratio - ratio[best])), 0.0)
        weight /= weight.sum()
        size = float(weight @ sizes)
        spread = variance / np.where(usable, self._information, 1.0) + np.square(sizes - size)
        return FoundChange(
            onset=int(self._rows[self._onsets[best]]),
            gradual=bool(self._gradual[best]),
            size=size,
            std=float(np.hypot(np.sqrt(weight @ spread), self._work)),
            ratio=float(ratio[best]),
            course=course,
        )


# The quantities whose levels are followed, with the scatter that is usual for them.


@dataclass(frozen=True)
class Quantity:
    """A quantity of the joints or of the whole arm.

    Attributes:
        name: "friction", "torque constant" or "standby power".
        relative: whether levels are logarithms and changes are stated in percent; else in `unit`.
        unit: of its value.
        scatter: of the level.
        least: smallest change that is stated, in the level's unit.
    """

    name: str
    relative: bool
    unit: str
    scatter: Scatter
    least: float


FRICTION = Quantity(
    "friction",
    relative=True,
    unit="N m",
    scatter=Scatter(
        session=float(NOISE.session),
        day=float(NOISE.wander),
        common=NOISE.common,
        slope=float(NOISE.slope),
        model=0.05,
        work=0.015,
    ),
    least=0.06,
)
"""Scatter as learning expects it; two models of an arm state friction up to 5 % apart, and the
the simulated arm's differs by 1.2 % between programs of work (test/benchmarks/bench_drift.py)."""
TORQUE_CONSTANT = Quantity(
    "torque constant",
    relative=True,
    unit="N m/A",
    scatter=Scatter(session=0.01, day=0.005, common=0.01, slope=0.0005, model=0.02, work=0.005),
    least=0.03,
)
"""Magnets lose 0.1 % of their field per kelvin at most, joints differ by less than that; what
remains of payloads that the controller was not told is common to the joints."""
STANDBY = Quantity(
    "standby power",
    relative=False,
    unit="W",
    scatter=Scatter(session=STANDBY_SPREAD, day=0.4, common=0.0, slope=0.05, model=0.5, work=0.2),
    least=2.0,
)

CERTAIN = 32.0
"""Likelihood ratio (twice its logarithm) from which a change is stated; measured with
test/benchmarks/bench_health.py."""
_MOST_CHANGES = 6
"""Of one quantity of an arm."""
_FEWEST_JOINTS = 3
"""Joints from which what they have in common is estimated."""


@dataclass(frozen=True)
class LevelCourse:
    """A quantity of c channels at equal temperature, by unit of work.

    Attributes:
        quantity: what it is.
        units: measured levels.
        reference: temperature that the levels are stated at [c], degC; NaN where unknown.
        value: levels at that temperature [u, c]; NaN where not measured.
        std: standard deviation of the measured level [u, c].
        changes: as found, the likeliest first.
        now: level after the changes, mean over the scatter of sessions [c]; NaN if never measured.
        now_std: its standard deviation [c].
    """

    quantity: Quantity
    units: Levels
    reference: Array
    value: Array
    std: Array
    changes: tuple[LevelChange, ...]
    now: Array
    now_std: Array


@dataclass(frozen=True)
class LevelChange:
    """A change that is larger than its uncertainty.

    Attributes:
        channel: its number; None for a change that all joints have in common.
        found: size and onset.
    """

    channel: int | None
    found: FoundChange


def follow(minutes: MinuteLevels, quantity: Quantity, certain: float = CERTAIN) -> LevelCourse:
    """Levels of a quantity over days, and its changes.

    Args:
        minutes: of one arm, one or more.
        quantity: what they are.
        certain: likelihood ratio from which a change is stated.
    """
    scatter = quantity.scatter
    units = levels(minutes, scatter.day)
    reference = _median(units.temperature)
    excess = np.nan_to_num(units.temperature - reference)
    # The effect of temperature: none before, what units show of it, then what they leave open.
    precision = units.slope_precision + scatter.slope**-2
    slope, slope_std = units.slope * units.slope_precision / precision, precision**-0.5
    value = units.value - slope * excess
    count = value.shape[1]
    alone = _without_common(scatter, count)
    tests = [
        ChangeTest(units, units.std[:, j], excess[:, j], float(slope_std[j]), alone)
        for j in range(count)
    ]
    together = _Together(units, excess, float(slope_std.mean()), quantity)
    changes = tuple(_changes(value, tests, together, quantity, certain))
    shift, variance = np.zeros(value.shape), np.array([test.mean_std**2 for test in tests])
    for change in changes:
        part = _channels(change)
        shift[:, part] += change.found.course[:, None]
        variance[part] += change.found.std**2
    before = [test.mean(column) for test, column in zip(tests, (value - shift).T, strict=True)]
    return LevelCourse(
        quantity=quantity,
        units=units,
        reference=reference,
        value=value,
        std=np.hypot(units.std, np.hypot(scatter.day, slope_std * excess)),
        changes=changes,
        now=np.array(before) + shift[-1],
        now_std=np.sqrt(variance),
    )


def _changes(
    value: Array,
    tests: list[ChangeTest],
    together: _Together,
    quantity: Quantity,
    certain: float,
) -> Iterator[LevelChange]:
    """Changes, one after the other: each is taken out of the levels before the next is sought."""
    left = value.copy()
    for _ in range(_MOST_CHANGES):
        rest = left - [test.mean(column) for test, column in zip(tests, left.T, strict=True)]
        found: list[LevelChange] = []
        for j, test in enumerate(tests):
            change = test.find(rest[:, j] - together.estimate(rest, j))
            found += [] if change is None else [LevelChange(j, change)]
        change = together.find(rest)
        found += [] if change is None else [LevelChange(None, change)]
        stated = [
            each
            for each in found
            if each.found.ratio >= certain and abs(each.found.size) >= quantity.least
        ]
        if not stated:
            return
        best = max(stated, key=lambda each: each.found.ratio)
        yield best
        left[:, _channels(best)] -= best.found.course[:, None]


def _channels(change: LevelChange) -> slice:
    """The channels that a change is of."""
    return slice(None) if change.channel is None else slice(change.channel, change.channel + 1)


class _Together:
    """What the channels have in common in each unit.

    Args:
        units: measured levels.
        excess: temperature of the channels above the reference [u, c], K.
        slope_std: standard deviation of its effect, which joints of one lubricant share.
        quantity: what is measured.
    """

    def __init__(self, units: Levels, excess: Array, slope_std: float, quantity: Quantity) -> None:
        scatter, self._channels = quantity.scatter, excess.shape[1]
        self._known = np.isfinite(units.std)
        self._own = scatter.session**2 + scatter.day**2
        self._common = scatter.common**2
        self._test: ChangeTest | None = None
        if self._channels < _FEWEST_JOINTS or scatter.common == 0.0:
            return
        enough = self._known.sum(axis=1) >= _FEWEST_JOINTS
        shared = np.hypot(scatter.common, scatter.session / np.sqrt(self._channels))
        std = np.where(enough, scatter.day / np.sqrt(self._channels), np.nan)
        whole = replace(scatter, session=float(shared))
        self._test = ChangeTest(units, std, excess.mean(axis=1), slope_std, whole)

    def estimate(self, rest: Array, j: int) -> Array:
        """Common part of each unit as the channels other than j show it [u]."""
        if self._test is None:
            return np.zeros(len(rest))
        others = self._known & (np.arange(self._channels) != j)
        count = others.sum(axis=1)
        gain = self._common / (self._common * np.maximum(count, 1) + self._own)
        return np.asarray(gain * np.where(others, rest, 0.0).sum(axis=1))

    def find(self, rest: Array) -> FoundChange | None:
        """The likeliest change of all channels."""
        if self._test is None:
            return None
        count = np.maximum(self._known.sum(axis=1), 1)
        return self._test.find(np.where(self._known, rest, 0.0).sum(axis=1) / count)


def _without_common(scatter: Scatter, channels: int) -> Scatter:
    """Scatter of a channel once the common part, as the others show it, was deducted."""
    own, common = scatter.session**2 + scatter.day**2, scatter.common**2
    others = channels - 1 if channels >= _FEWEST_JOINTS else 0
    left = common / (1.0 + others * common / own) if own else common
    return replace(scatter, session=float(np.hypot(scatter.session, np.sqrt(left))))


def _median(temperature: Array) -> Array:
    """Median of each channel over the units [c]; NaN where none is known."""
    known = np.isfinite(temperature).any(axis=0)
    out = np.full(temperature.shape[1], np.nan)
    out[known] = np.nanmedian(temperature[:, known], axis=0)
    return out
