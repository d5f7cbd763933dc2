"""Test for a change of a level between sessions: steps and ramps by generalised least squares.

The level of a unit of work is

    level = usual + slope (temperature - reference) + session + day + measurement error + change

with random sessions and days. For every possible onset the sizes of a step and of ramps are
estimated at once, and the likeliest one is returned (Willsky and Jones 1976, with a block-diagonal
covariance instead of a filter). The scale of the scatter is estimated with the size, from a scaled
inverse chi-squared prior, so that an arm that scatters more needs a larger change.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ur_energy_model.identification.assembly import PRIOR_FREEDOM
from ur_energy_model.plant.health.levels import Levels
from ur_energy_model.typing import Array

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
