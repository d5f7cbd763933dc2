"""Power at the supply, which only delivers power, from the demand of the arm.

Regenerated power feeds the rest of the arm first, then charges the bus capacitor up to the voltage
at which a braking resistor dissipates the surplus (Heredia et al.: power at the supply is never
negative). While the capacitor is above the supply's voltage it feeds the arm and the supply rests.
"""

from __future__ import annotations

import numpy as np

from ur_energy_model.typing import Array


class BusCapacitor:
    """Computes the power at the supply, batch by batch.

    Args:
        capacity: energy that the capacitor holds above the supply's voltage [J]; with 0 all
            regenerated energy is dissipated.
        floor: lowest power the supply can show [W].

    Attributes:
        stored: energy held at present [J].
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
            demand: of the whole arm, negative where it regenerates [samples], W.
        """
        out = np.maximum(demand, self.floor)
        if self.capacity <= 0 or not len(demand):
            return out
        below = np.flatnonzero(demand < self.floor)
        k = 0 if self.stored > 0 else int(below[0]) if len(below) else len(demand)
        while k < len(demand):
            k = self._discharge(k, steps, demand, out)
            later = below[np.searchsorted(below, k) :]
            k = int(later[0]) if len(later) else len(demand)
        return out

    def _discharge(self, k: int, steps: Array, demand: Array, out: Array) -> int:
        """Discharge the capacitor from sample k on; returns the sample after it is empty.

        Writes the power at the supply into `out`.
        """
        while k < len(out):
            step = float(steps[k])
            if step == 0.0:  # a gap: discharged by now
                self.stored = 0.0
                return k + 1
            self.stored -= step * float(demand[k] - self.floor)
            if self.stored <= 0.0:
                out[k] = self.floor - self.stored / step  # the supply delivers the rest
                self.stored = 0.0
                return k + 1
            self.stored = min(self.stored, self.capacity)
            out[k] = self.floor
            k += 1
        return k
