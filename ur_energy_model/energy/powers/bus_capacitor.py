"""What the supply gives, beside what the arm demands: power flows from it only.

What drives give back feeds the rest of the arm first, then charges the bus capacitor up to the
voltage at which a braking resistor burns the rest (Heredia et al.: power at the supply is never
negative). While the capacitor holds more than the supply's voltage the supply rests, so that
energy given back is not lost as far as the capacitor holds it.
"""

from __future__ import annotations

import numpy as np

from ur_energy_model.typing import Array


class BusCapacitor:
    """Power at the supply, batch by batch.

    Args:
        capacity: energy that the bus holds above the supply's voltage [J]; 0 burns all of it.
        floor: lowest power the supply can show [W].

    Attributes:
        stored: energy held now [J].
    """

    def __init__(self, capacity: float, floor: float = 0.0) -> None:
        self.capacity = capacity
        self.floor = floor
        self.stored = 0.0

    def __call__(self, steps: Array, demand: Array) -> Array:
        """Power at the supply [samples], W.

        Args:
            steps: bridged steps to the samples (`Steps.bridged`) [samples], s; a sample's demand
                holds since the one before.
            demand: of the whole arm, negative where it gives back [samples], W.
        """
        out = np.maximum(demand, self.floor)
        if self.capacity <= 0 or not len(demand):
            return out
        below = np.flatnonzero(demand < self.floor)
        k = 0 if self.stored > 0 else int(below[0]) if len(below) else len(demand)
        while k < len(demand):
            k = self._rest(k, steps, demand, out)
            later = below[np.searchsorted(below, k) :]
            k = int(later[0]) if len(later) else len(demand)
        return out

    def _rest(self, k: int, steps: Array, demand: Array, out: Array) -> int:
        """Follow the store from sample k until it is used up; the sample after that."""
        while k < len(out):
            step = float(steps[k])
            if step == 0.0:  # a gap: whatever was held is used up by now
                self.stored = 0.0
                return k + 1
            self.stored -= step * float(demand[k] - self.floor)
            if self.stored <= 0.0:
                out[k] = self.floor - self.stored / step  # what it lacked came from the supply
                self.stored = 0.0
                return k + 1
            self.stored = min(self.stored, self.capacity)
            out[k] = self.floor
            k += 1
        return k
