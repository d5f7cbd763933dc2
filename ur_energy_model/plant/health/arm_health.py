"""Health of one arm: levels at equal temperature by unit of work, and the changes of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ur_energy_model.plant.health.change_test import ChangeTest, FoundChange, Scatter
from ur_energy_model.plant.health.levels import Levels, MinuteLevels, levels
from ur_energy_model.plant.health.quantities import Quantity
from ur_energy_model.typing import Array

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
