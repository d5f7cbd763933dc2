"""Columns of the regression of current on load, friction and acceleration."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ur_energy_model.identification.friction.known_friction import KnownFriction
from ur_energy_model.identification.friction.law_selection import FrictionCandidate
from ur_energy_model.identification.regression.filtered_motion import FilteredMotion
from ur_energy_model.model.friction.terms import OperatingPoint, Term
from ur_energy_model.typing import Array

LOAD, ACCELERATION, CURRENT = 0, -2, -1
"""Columns of one candidate: the load first, the current last, the acceleration before it where the
inertia is fitted; friction terms between."""


class CurrentColumns:
    """The distinct columns of all candidates, so that candidates share their common terms.

    Args:
        laws: candidates.
        accelerations: add a column for the motor inertia.
        known: friction of a model known before; None without.
    """

    def __init__(
        self,
        laws: Sequence[FrictionCandidate],
        accelerations: bool,
        known: KnownFriction | None = None,
    ) -> None:
        self._known = known
        self._terms: dict[tuple[Term, tuple[float, ...]], tuple[int, dict[str, float]]] = {}
        self._candidates: list[list[int]] = []
        for candidate in laws:
            shape = dict(candidate.shape)
            columns = [LOAD]
            for term in candidate.law.terms.values():
                key = (term, tuple(shape[name] for name in term.uses))
                column, _ = self._terms.setdefault(key, (len(self._terms) + 1, shape))
                columns.append(column)
            self._candidates.append(columns)
        self._accelerations = accelerations
        self._known_from = len(self._terms) + 1
        self.width = self._known_from + (0 if known is None else known.width) + 1 + accelerations

    def of_candidate(self, index: int, with_inertia: bool) -> list[int]:
        """Columns of one candidate, with that of the motor inertia if wanted and available."""
        own = [self.width + ACCELERATION] if with_inertia and self._accelerations else []
        return [*self._candidates[index], *own, self.width + CURRENT]

    def of_known(self, j: int, with_inertia: bool) -> list[int]:
        """Columns of a joint's friction as known before, with that of the motor inertia."""
        count = 0 if self._known is None else self._known.counts[j]
        own = [self.width + ACCELERATION] if with_inertia and self._accelerations else []
        first = self._known_from
        return [LOAD, *range(first, first + count), *own, self.width + CURRENT]

    def columns(self, point: OperatingPoint, motion: FilteredMotion) -> Array:
        """All columns [samples, n, width] of a motion [samples, n]."""
        out = np.empty((*motion.current.shape, self.width))
        out[..., LOAD] = point.load / point.gear_ratio
        for (term, _), (column, shape) in self._terms.items():
            out[..., column] = term(point, shape)
        if self._known is not None:
            first = self._known_from
            out[..., first : first + self._known.width] = self._known.columns(point)
        if self._accelerations:
            out[..., ACCELERATION] = motion.qdd / point.gear_ratio
        out[..., CURRENT] = motion.current
        return out
