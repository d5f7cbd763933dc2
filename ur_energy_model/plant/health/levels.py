"""Levels of slow quantities by unit of work: the part of a session that is in one day."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ur_energy_model.model.sessions import SESSION_GAP
from ur_energy_model.typing import Array, Indices

MOST_UNITS = 400
"""Units that are followed, the last ones: bounded time and memory for a store of any length."""
_DAY = 86400.0
_CORRELATED = 15.0
"""Consecutive minutes with errors in common (learning/friction_clock.py: 900 s)."""
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
