"""Least energy of a move over its duration."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ur_energy_model.optimization.least_energy import EnergyLaws
from ur_energy_model.optimization.time_law import TimeLaw
from ur_energy_model.typing import Array

PRICES = np.concatenate([-np.geomspace(1000.0, 1.0, 8), [0.0]])
"""Marginal energies of time at the points of the falling part [W]; zero at the minimum."""
LONGEST = 10.0
"""Longest duration of the curve, relative to the fastest."""
STEP = 1e-4
"""Least difference of consecutive durations [s]."""
_RISING = 4


@dataclass(frozen=True)
class DurationCurve:
    """Least energy of a move over its duration, k points.

    Energy falls with the duration up to the minimum and rises from there on: slower moves save
    ever less copper loss and braking, while standby and holding cost the more, the longer the move
    lasts.

    Attributes:
        duration: increasing [k], s.
        energy: whole arm at the supply [k], J.
        minimum: index of the least energy.
    """

    duration: Array
    energy: Array
    minimum: int

    @property
    def falling(self) -> slice:
        """Points up to the minimum."""
        return slice(0, self.minimum + 1)

    @property
    def rising(self) -> slice:
        """Points from the minimum on."""
        return slice(self.minimum, len(self.duration))


def duration_curve(laws: EnergyLaws, fastest: TimeLaw, holding: float) -> DurationCurve:
    """The curve of one move, from its fastest law to where waiting is cheaper than moving slower.

    Args:
        laws: of the move.
        fastest: its time-optimal law.
        holding: power of waiting [W], which is what a second costs at most.
    """
    prices = np.concatenate([PRICES, np.linspace(0.0, 0.999 * holding, _RISING + 1)[1:]])
    found = [fastest]
    for price in prices.tolist():
        found.append(laws.cheapest(price, found[-1] if len(found) > 1 else None))
    durations = np.array([law.duration for law in found])
    energies = np.array([laws.energy(law.b) for law in found])
    minimum = int(np.argmin(energies))
    kept = [minimum]
    for k in range(minimum - 1, -1, -1):  # rounding of the search would make it uneven there
        if energies[k] > energies[kept[0]] and durations[k] < durations[kept[0]] - STEP:
            kept.insert(0, k)
    for k in range(minimum + 1, len(found)):
        longer = durations[kept[-1]] + STEP < durations[k] < LONGEST * durations[0]
        if longer and energies[k] > energies[kept[-1]]:
            kept.append(k)
    return DurationCurve(durations[kept], energies[kept], kept.index(minimum))
