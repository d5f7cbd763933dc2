"""Columns of the regression of current on load, friction and acceleration."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ur_energy_model.identification.friction.law_candidates import FrictionCandidate
from ur_energy_model.identification.regression.filtered_motion import FilteredMotion
from ur_energy_model.model.friction.terms import OperatingPoint, Term
from ur_energy_model.typing import Array


class CurrentColumns:
    """The distinct columns of all candidates: load, friction terms with their shapes, acceleration
    where a motor inertia is wanted, current.
    """  # noqa: D205

    def __init__(self, laws: Sequence[FrictionCandidate], accelerations: bool) -> None:
        self._terms: dict[tuple[Term, tuple[float, ...]], tuple[int, dict[str, float]]] = {}
        self.places: list[list[int]] = []
        for candidate in laws:
            shape = dict(candidate.shape)
            place = [0]
            for term in candidate.law.terms.values():
                key = (term, tuple(shape[name] for name in term.uses))
                entry = self._terms.setdefault(key, (len(self._terms) + 1, shape))
                place.append(entry[0])
            self.places.append(place)
        self.acceleration = len(self._terms) + 1 if accelerations else None
        self.width = len(self._terms) + 2 + accelerations

    def place(self, index: int, with_inertia: bool) -> list[int]:
        """Columns of one candidate, those of the motor inertia among them if wanted."""
        own = [self.acceleration] if with_inertia and self.acceleration is not None else []
        return [*self.places[index], *own, self.width - 1]

    def columns(self, point: OperatingPoint, motion: FilteredMotion) -> Array:
        """[samples, n, width]."""
        out = np.empty((*motion.current.shape, self.width))
        out[..., 0] = point.load / point.gear_ratio
        for (term, _), (place, shape) in self._terms.items():
            out[..., place] = term(point, shape)
        if self.acceleration is not None:
            out[..., self.acceleration] = motion.qdd / point.gear_ratio
        out[..., -1] = motion.current
        return out
